/*
 * What all backends have in common: their end.
 */
#include "gpu/backend.h"

void backend_destroy(struct backend *be)
{
    if (be)
        be->ops->destroy(be);
}
