#include "gpu/cpu/pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

void *pages_alloc(size_t bytes)
{
    void *p = NULL;

    if (bytes < HUGE_BYTES)
        return malloc(bytes);
    if (posix_memalign(&p, HUGE_BYTES, bytes) != 0)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE); /* a wish: without it all is right, and slower */
    return p;
}
