/*
 * Signed digits of a scalar for a table of multiples (fixed_base.cuh), for host and device alike.
 */
#ifndef GPU_CUDA_FIXED_DIGITS_CUH
#define GPU_CUDA_FIXED_DIGITS_CUH

#include "gpu/cuda/fr.cuh"
#include "gpu/cuda/refs.cuh"

static constexpr uint32_t FIXED_BITS = 16, FIXED_WINDOWS = fr::LIMBS * 32 / FIXED_BITS;
/* Multiples 0 .. 2^15 of a window's power of the base. Digits are signed. */
static constexpr uint32_t FIXED_ROW = (1u << (FIXED_BITS - 1)) + 1;

/* References into the table for each window of a scalar's canonical integer: multiple and sign. */
HOST_DEVICE void fixed_references(const fr &integer, uint32_t refs[FIXED_WINDOWS])
{
    uint32_t carry = 0;

    for (uint32_t w = 0; w < FIXED_WINDOWS; w++) {
        const uint32_t digit = (integer.v[w / 2] >> (w % 2 * FIXED_BITS) & 0xffff) + carry;

        carry = digit > 1u << (FIXED_BITS - 1); /* never out of the top: scalars are below 2^255 */
        const uint32_t multiple = carry ? (1u << FIXED_BITS) - digit : digit;
        refs[w] = w * FIXED_ROW + multiple;
        if (carry && multiple)
            refs[w] |= REF_NEGATIVE;
    }
}

#endif
