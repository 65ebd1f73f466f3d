#include "gpu/cpu/digits_pick.h"

#include <stdlib.h>

#include "gpu/cpu/features.h"

/* A place is written in any case, and kept if it counts: which do is not to be foreseen. */
static size_t pick_plain(const int32_t *digits, size_t len, uint32_t first, uint32_t buckets,
                         uint16_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        out[n] = (uint16_t)i;
        n += (uint32_t)abs(digits[i]) - 1 - first < buckets;
    }
    return n;
}

size_t digits_pick(const int32_t *digits, size_t len, uint32_t first, uint32_t buckets,
                   uint16_t *out)
{
    return cpu_has(CPU_IFMA) ? digits_pick_ifma(digits, len, first, buckets, out)
                             : pick_plain(digits, len, first, buckets, out);
}
