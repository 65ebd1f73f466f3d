#include "numa/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CACHE_LINE ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)

void *memory_alloc(size_t len, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(len, bytes, &total) || total > SIZE_MAX - HUGE_PAGE)
        return NULL;
    if (total < HUGE_PAGE)
        return aligned_alloc(CACHE_LINE, total / CACHE_LINE * CACHE_LINE + CACHE_LINE);
    total = (total + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *out = aligned_alloc(HUGE_PAGE, total);
    if (out)
        (void)madvise(out, total, MADV_HUGEPAGE); /* only faster */
    return out;
}
