/*
 * The groups of BLS12-381: names over blst. Affine points are in Montgomery form; infinity is (0, 0).
 * Any thread may call anything here.
 */
#ifndef GPU_CURVE_H
#define GPU_CURVE_H

#include "numa/base.h"
#include "numa/circuit/fr.h"

typedef blst_fp fp_t;
typedef blst_fp2 fp2_t;
typedef blst_p1 g1_t;
typedef blst_p2 g2_t;
typedef blst_p1_affine g1_affine_t;
typedef blst_p2_affine g2_affine_t;

#define G1_BYTES 96 /* uncompressed, big endian */
#define G2_BYTES 192
#define G1_COMPRESSED_BYTES 48
#define G2_COMPRESSED_BYTES 96

static inline bool g1_affine_is_infinity(const g1_affine_t *p)
{
    static const g1_affine_t infinity = {{{0}}, {{0}}};
    return memcmp(p, &infinity, sizeof(infinity)) == 0;
}

static inline bool g2_affine_is_infinity(const g2_affine_t *p)
{
    static const g2_affine_t infinity = {{{{{0}}, {{0}}}}, {{{{0}}, {{0}}}}};
    return memcmp(p, &infinity, sizeof(infinity)) == 0;
}

/* out += scalar * base. Leaves no copy of the scalar, but is not made to take the same time for all of them. */
void g1_mul_add(g1_t *out, const g1_t *base, const fr_t *scalar);
void g2_mul_add(g2_t *out, const g2_t *base, const fr_t *scalar);

#endif
