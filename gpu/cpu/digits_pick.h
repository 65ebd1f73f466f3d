/*
 * Which digits of a window fall into a range of buckets: every range of a sum asks that of all digits.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_CPU_DIGITS_PICK_H
#define GPU_CPU_DIGITS_PICK_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_PICK_MAX 65536 /* digits at a time */
#define DIGITS_PICK_SPARE 16  /* places behind those of `len` that `out` has */

/* The places of the digits d of digits[0 .. len), in order, with first < |d| <= first + buckets. Returns how many. */
size_t digits_pick(const int32_t *digits, size_t len, uint32_t first, uint32_t buckets,
                   uint16_t *out);

/* The same with AVX-512, for digits_pick alone. */
size_t digits_pick_ifma(const int32_t *digits, size_t len, uint32_t first, uint32_t buckets,
                        uint16_t *out);

#endif
