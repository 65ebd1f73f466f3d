/*
 * Sixteen digits at a time.
 */
#include "gpu/cpu/digits_pick.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 16

size_t digits_pick_ifma(const int32_t *digits, size_t len, uint32_t first, uint32_t buckets,
                        uint16_t *out)
{
    const __m512i below = _mm512_set1_epi32((int)(first + 1)),
                  width = _mm512_set1_epi32((int)buckets), step = _mm512_set1_epi32(LANES);
    __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    size_t n = 0;

    for (size_t i = 0; i < len; i += LANES) {
        const size_t left = len - i;
        const __mmask16 there = left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
        const __m512i d = _mm512_abs_epi32(_mm512_maskz_loadu_epi32(there, digits + i));
        const __mmask16 in = _mm512_mask_cmplt_epu32_mask(there, _mm512_sub_epi32(d, below), width);
        _mm256_storeu_si256((__m256i *)(void *)(out + n),
                            _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(in, place)));
        n += (size_t)__builtin_popcount(in);
        place = _mm512_add_epi32(place, step);
    }
    return n;
}

#else

size_t digits_pick_ifma(const int32_t *digits, size_t len, uint32_t first, uint32_t buckets,
                        uint16_t *out)
{
    (void)digits;
    (void)len;
    (void)first;
    (void)buckets;
    (void)out;
    return 0;
}

#endif
