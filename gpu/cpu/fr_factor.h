/*
 * A factor of F_r in the form that fr4.h multiplies by: times 2^260, in ten limbs of 26 bits. Here, apart from fr4.h, is
 * what code for any CPU needs to make tables of them.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_CPU_FR_FACTOR_H
#define GPU_CPU_FR_FACTOR_H

#include "numa/circuit/fr.h"

#define FR_FACTOR_LIMBS 10
#define FR_FACTOR_BITS 26

struct fr_factor {
    uint32_t l[FR_FACTOR_LIMBS];
};

/* x * 2^4: blst's form, times 2^256, becomes that of a factor. */
static inline fr_t fr_factor_form(const fr_t *x)
{
    fr_t sixteen = fr_from_u64(16), out;

    fr_mul(&out, x, &sixteen);
    return out;
}

static inline struct fr_factor fr_factor_make(const fr_t *x)
{
    fr_t v = fr_factor_form(x);
    struct fr_factor out;

    for (int i = 0; i < FR_FACTOR_LIMBS; i++) {
        int word = FR_FACTOR_BITS * i / 64, shift = FR_FACTOR_BITS * i % 64;
        uint64_t limb = v.l[word] >> shift;
        if (shift > 64 - FR_FACTOR_BITS && word < 3)
            limb |= v.l[word + 1] << (64 - shift);
        out.l[i] = (uint32_t)(limb & ((1u << FR_FACTOR_BITS) - 1));
    }
    return out;
}

#endif
