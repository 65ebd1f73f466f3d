/*
 * A factor of F_r in the forms that fr4.h and fr8.h multiply by: times 2^260, in ten limbs of 26 bits or five of 52. Here, apart
 * from these, is what code for any CPU needs to make tables of them.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_CPU_FR_FACTOR_H
#define GPU_CPU_FR_FACTOR_H

#include "numa/circuit/fr.h"

#define FR_FACTOR_LIMBS 10
#define FR_FACTOR_BITS 26

#define FR_FACTOR52_LIMBS 5
#define FR_FACTOR52_BITS 52

struct fr_factor {
    uint32_t l[FR_FACTOR_LIMBS];
};

struct fr_factor52 {
    uint64_t l[FR_FACTOR52_LIMBS];
};

/* x * 2^4: blst's form, times 2^256, becomes that of a factor. */
static inline fr_t fr_factor_form(const fr_t *x)
{
    fr_t sixteen = fr_from_u64(16), out;

    fr_mul(&out, x, &sixteen);
    return out;
}

/* `bits` bits of v from bit `at` on. */
static inline uint64_t fr_factor_cut(const fr_t *v, int at, int bits)
{
    int word = at / 64, shift = at % 64;
    uint64_t limb = v->l[word] >> shift;

    if (shift > 64 - bits && word < 3)
        limb |= v->l[word + 1] << (64 - shift);
    return limb & ((UINT64_C(1) << bits) - 1);
}

static inline struct fr_factor fr_factor_make(const fr_t *x)
{
    fr_t v = fr_factor_form(x);
    struct fr_factor out;

    for (int i = 0; i < FR_FACTOR_LIMBS; i++)
        out.l[i] = (uint32_t)fr_factor_cut(&v, FR_FACTOR_BITS * i, FR_FACTOR_BITS);
    return out;
}

static inline struct fr_factor52 fr_factor52_make(const fr_t *x)
{
    fr_t v = fr_factor_form(x);
    struct fr_factor52 out;

    for (int i = 0; i < FR_FACTOR52_LIMBS; i++)
        out.l[i] = fr_factor_cut(&v, FR_FACTOR52_BITS * i, FR_FACTOR52_BITS);
    return out;
}

#endif
