/*
 * Eight elements of F_p2 side by side, on fp8.h. The two products of a coordinate share their columns and one reduction.
 */
#ifndef GPU_CPU_FP2X8_H
#define GPU_CPU_FP2X8_H

#include "gpu/cpu/fp8.h"

struct fp2x8 {
    struct fp8 c[2]; /* c[0] + c[1] u, u^2 = -1 */
};

/* wide += a * b */
static inline void fp8_mul_add_wide(struct fp8_wide *wide, const struct fp8 *a, const struct fp8 *b)
{
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++)
    {
        fp8_limb x = b->l[i];
        FP8_UNROLL for (int j = 0; j < FP8_LIMBS; j++) wide->l[i + j] =
            _mm512_madd52lo_epu64(wide->l[i + j], a->l[j], x);
        FP8_UNROLL for (int j = 0; j < FP8_LIMBS; j++) wide->l[i + j + 1] =
            _mm512_madd52hi_epu64(wide->l[i + j + 1], a->l[j], x);
    }
}

/* out = (a0 b0 - a1 b1) / R + p, loose and, where a b is below 2^33 p^2, between 0 and 2.5 p */
static __attribute__((noinline)) void fp2x8_mul_real(struct fp8 *out, const struct fp2x8 *a,
                                                     const struct fp2x8 *b)
{
    struct fp8_wide wide;

    fp8_mul_wide(&wide, &a->c[1], &b->c[1]);
    FP8_UNROLL for (int i = 0; i < 2 * FP8_LIMBS; i++) wide.l[i] =
        _mm512_sub_epi64(_mm512_setzero_si512(), wide.l[i]);
    fp8_mul_add_wide(&wide, &a->c[0], &b->c[0]);
    fp8_reduce_wide(out, &wide);
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) out->l[i] =
        _mm512_add_epi64(out->l[i], fp8_set(fp8_p[i]));
}

/* out = (a0 b1 + a1 b0) / R, loose and below 2 p */
static __attribute__((noinline)) void fp2x8_mul_imaginary(struct fp8 *out, const struct fp2x8 *a,
                                                          const struct fp2x8 *b)
{
    struct fp8_wide wide;

    fp8_mul_wide(&wide, &a->c[0], &b->c[1]);
    fp8_mul_add_wide(&wide, &a->c[1], &b->c[0]);
    fp8_reduce_wide(out, &wide);
}

static inline void fp2x8_mul_loose(struct fp2x8 *out, const struct fp2x8 *a, const struct fp2x8 *b)
{
    struct fp8 real;

    fp2x8_mul_real(&real, a, b);
    fp2x8_mul_imaginary(&out->c[1], a, b);
    out->c[0] = real;
}

static inline void fp2x8_carry(struct fp2x8 *x)
{
    fp8_carry(&x->c[0]);
    fp8_carry(&x->c[1]);
}

/* Both coordinates of a product are below 2.5 p. */
static inline void fp2x8_mul(struct fp2x8 *out, const struct fp2x8 *a, const struct fp2x8 *b)
{
    fp2x8_mul_loose(out, a, b);
    fp2x8_carry(out);
}

/* (a0 + a1)(a0 - a1) + 2 a0 a1 u; the coordinates of a are below 4 p */
static inline void fp2x8_sqr_loose(struct fp2x8 *out, const struct fp2x8 *a)
{
    struct fp8 sum, difference, twice;

    fp8_add(&sum, &a->c[0], &a->c[1]);
    fp8_sub(&difference, &a->c[0], &a->c[1]);
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) difference.l[i] =
        _mm512_add_epi64(difference.l[i], fp8_set(4 * fp8_p[i]));
    fp8_add(&twice, &a->c[0], &a->c[0]);
    fp8_carry(&sum);
    fp8_carry(&difference);
    fp8_carry(&twice);
    fp8_mul_loose(&out->c[1], &twice, &a->c[1]);
    fp8_mul_loose(&out->c[0], &sum, &difference);
}

static inline void fp2x8_add(struct fp2x8 *out, const struct fp2x8 *a, const struct fp2x8 *b)
{
    fp8_add(&out->c[0], &a->c[0], &b->c[0]);
    fp8_add(&out->c[1], &a->c[1], &b->c[1]);
}

static inline void fp2x8_sub(struct fp2x8 *out, const struct fp2x8 *a, const struct fp2x8 *b)
{
    fp8_sub(&out->c[0], &a->c[0], &b->c[0]);
    fp8_sub(&out->c[1], &a->c[1], &b->c[1]);
}

static inline void fp2x8_offset(struct fp2x8 *x, const struct fp8 *n)
{
    fp8_offset(&x->c[0], n);
    fp8_offset(&x->c[1], n);
}

static inline void fp2x8_deduct(struct fp2x8 *x, const struct fp8 *n)
{
    fp8_deduct(&x->c[0], n);
    fp8_deduct(&x->c[1], n);
}

static inline void fp2x8_negate(struct fp2x8 *x, __mmask8 lanes)
{
    fp8_negate(&x->c[0], lanes);
    fp8_negate(&x->c[1], lanes);
}

static inline void fp2x8_select(struct fp2x8 *out, __mmask8 mask, const struct fp2x8 *a,
                                const struct fp2x8 *b)
{
    fp8_select(&out->c[0], mask, &a->c[0], &b->c[0]);
    fp8_select(&out->c[1], mask, &a->c[1], &b->c[1]);
}

static inline void fp2x8_rotate(struct fp2x8 *out, const struct fp2x8 *x, int n)
{
    fp8_rotate(&out->c[0], &x->c[0], n);
    fp8_rotate(&out->c[1], &x->c[1], n);
}

static inline void fp2x8_broadcast(struct fp2x8 *out, const uint64_t limbs[FP8_LIMBS])
{
    static const uint64_t zero[FP8_LIMBS];

    fp8_broadcast(&out->c[0], limbs);
    fp8_broadcast(&out->c[1], zero);
}

static inline void fp2x8_scale(struct fp2x8 *out, const struct fp2x8 *x, const struct fp8 *k)
{
    fp8_mul(&out->c[0], &x->c[0], k);
    fp8_mul(&out->c[1], &x->c[1], k);
}

static inline void fp2x8_canonical(struct fp2x8 *x)
{
    fp8_canonical(&x->c[0]);
    fp8_canonical(&x->c[1]);
}

static inline __mmask8 fp2x8_maybe_zero(const struct fp2x8 *x)
{
    return fp8_maybe_zero(&x->c[0]) & fp8_maybe_zero(&x->c[1]);
}

static inline __mmask8 fp2x8_is_zero(const struct fp2x8 *x)
{
    return fp8_is_zero(&x->c[0]) & fp8_is_zero(&x->c[1]);
}

static inline void fp2x8_load(struct fp2x8 *out, const fp2_t *const in[FP8_LANES], int shift)
{
    const fp_t *coordinate[FP8_LANES];

    FP8_UNROLL for (int i = 0; i < 2; i++)
    {
        FP8_UNROLL for (int l = 0; l < FP8_LANES; l++) coordinate[l] = &in[l]->fp[i];
        fp8_load(&out->c[i], coordinate, shift);
    }
}

static inline void fp2x8_store(fp2_t *const out[FP8_LANES], const struct fp2x8 *x, __mmask8 lanes)
{
    fp_t *coordinate[FP8_LANES];

    for (int i = 0; i < 2; i++) {
        for (int l = 0; l < FP8_LANES; l++)
            coordinate[l] = lanes >> l & 1 ? &out[l]->fp[i] : NULL;
        fp8_store(coordinate, &x->c[i], lanes);
    }
}

#endif
