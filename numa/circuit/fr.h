/*
 * The scalar field F_r of BLS12-381: names over blst.
 *
 * An fr_t is always in Montgomery form, below the modulus. A canonical integer is a scalar_t (blst:
 * 32 bytes, little endian). Any thread may call anything here.
 */
#ifndef CIRCUIT_FR_H
#define CIRCUIT_FR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <blst.h>

#define FR_BYTES 32
#define FR_BITS 255

typedef blst_fr fr_t;
typedef blst_scalar scalar_t;

/* Initializer of the value 1: 2^256 mod r. */
#define FR_ONE                                                                                     \
    {                                                                                              \
        {                                                                                          \
            UINT64_C(0x00000001fffffffe), UINT64_C(0x5884b7fa00034802),                            \
                UINT64_C(0x998c4fefecbc4ff5), UINT64_C(0x1824b159acc5056f)                         \
        }                                                                                          \
    }

static inline void fr_add(fr_t *out, const fr_t *a, const fr_t *b)
{
    blst_fr_add(out, a, b);
}

static inline void fr_sub(fr_t *out, const fr_t *a, const fr_t *b)
{
    blst_fr_sub(out, a, b);
}

static inline void fr_mul(fr_t *out, const fr_t *a, const fr_t *b)
{
    blst_fr_mul(out, a, b);
}

static inline void fr_sqr(fr_t *out, const fr_t *a)
{
    blst_fr_sqr(out, a);
}

static inline void fr_neg(fr_t *out, const fr_t *a)
{
    blst_fr_cneg(out, a, true);
}

/* The inverse of 0 is 0. */
static inline void fr_inverse(fr_t *out, const fr_t *a)
{
    blst_fr_eucl_inverse(out, a);
}

static inline fr_t fr_from_u64(uint64_t v)
{
    uint64_t limbs[4] = {v, 0, 0, 0};
    fr_t out;

    blst_fr_from_uint64(&out, limbs);
    return out;
}

static inline bool fr_is_zero(const fr_t *a)
{
    return (a->l[0] | a->l[1] | a->l[2] | a->l[3]) == 0;
}

static inline bool fr_equal(const fr_t *a, const fr_t *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Reads 32 bytes, little endian. False, with *out untouched, when the value is not below r. */
static inline bool fr_from_bytes(fr_t *out, const uint8_t bytes[FR_BYTES])
{
    scalar_t s;

    blst_scalar_from_lendian(&s, bytes);
    if (!blst_scalar_fr_check(&s))
        return false;
    blst_fr_from_scalar(out, &s);
    return true;
}

/* Writes the canonical value, 32 bytes little endian. */
static inline void fr_to_bytes(uint8_t bytes[FR_BYTES], const fr_t *a)
{
    scalar_t s;

    blst_scalar_from_fr(&s, a);
    blst_lendian_from_scalar(bytes, &s);
}

#endif
