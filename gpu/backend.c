/*
 * What all backends have in common: scratch memory, and their end.
 */
#include "gpu/backend.h"

#include <errno.h>

static size_t room(const struct arena *a)
{
    return a ? arena_get_info(a)->bytes - arena_mark(a) : 0;
}

int backend_reserve(struct backend *be, size_t bytes, struct errmsg *err)
{
    const struct arena_options opt = {
        .bytes = bytes, .node = ARENA_ANY_NODE, .workers = be->workers};

    if (room(be->scratch) >= bytes)
        return 0;
    if (be->scratch && (be->scratch != be->own_scratch || arena_mark(be->scratch) > 0))
        return errmsg_set(err, -ENOMEM, "a proof needs %zu bytes of scratch memory, there are %zu",
                          bytes, room(be->scratch));
    backend_fini(be);
    int ret = arena_create(&opt, &be->own_scratch, err);
    if (ret < 0)
        return errmsg_prefix(err, ret, "scratch memory");
    be->scratch = be->own_scratch;
    return 0;
}

void backend_fini(struct backend *be)
{
    arena_destroy(be->own_scratch);
    if (be->scratch == be->own_scratch)
        be->scratch = NULL;
    be->own_scratch = NULL;
}

void backend_destroy(struct backend *be)
{
    if (!be)
        return;
    backend_fini(be);
    be->ops->destroy(be);
}
