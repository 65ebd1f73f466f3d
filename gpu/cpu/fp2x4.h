/*
 * Four elements of F_p2 side by side, on fp4.h. The two products of a coordinate share their columns and one reduction.
 *
 * Factors are tidy here: sixteen products of loose ones would not fit a column.
 */
#ifndef GPU_CPU_FP2X4_H
#define GPU_CPU_FP2X4_H

#include "gpu/cpu/fp4.h"

struct fp2x4 {
    struct fp4 c[2]; /* c[0] + c[1] u, u^2 = -1 */
};

/* wide = a * b + c * d */
static inline void fp4_mul_two_wide(struct fp4_wide *wide, const struct fp4 *a, const struct fp4 *b,
                                    const struct fp4 *c, const struct fp4 *d)
{
    fp4_limb high = _mm256_setzero_pd();

    FP4_UNROLL for (int k = 0; k < 2 * FP4_LIMBS - 1; k++)
    {
        struct fp4_column column = fp4_column(high);
        FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++)
        {
            if (k - i < 0 || k - i >= FP4_LIMBS)
                continue;
            fp4_accumulate(&column, a->l[i], b->l[k - i]);
            fp4_accumulate(&column, c->l[i], d->l[k - i]);
        }
        high = fp4_high(&column);
        wide->l[k] = column.low;
    }
    wide->l[2 * FP4_LIMBS - 1] = high;
}

static __attribute__((noinline)) void fp4_mul_two(struct fp4 *out, const struct fp4 *a,
                                                  const struct fp4 *b, const struct fp4 *c,
                                                  const struct fp4 *d)
{
    struct fp4_wide wide;

    fp4_mul_two_wide(&wide, a, b, c, d);
    fp4_reduce_wide(out, &wide);
}

static inline void fp2x4_mul(struct fp2x4 *out, const struct fp2x4 *a, const struct fp2x4 *b)
{
    struct fp4 minus, real;

    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) minus.l[i] =
        _mm256_sub_pd(_mm256_setzero_pd(), a->c[1].l[i]);
    fp4_mul_two(&real, &a->c[0], &b->c[0], &minus, &b->c[1]);
    fp4_mul_two(&out->c[1], &a->c[0], &b->c[1], &a->c[1], &b->c[0]);
    out->c[0] = real;
}

/* (a0 + a1)(a0 - a1) + 2 a0 a1 u */
static inline void fp2x4_sqr(struct fp2x4 *out, const struct fp2x4 *a)
{
    struct fp4 sum, difference, twice;

    fp4_add(&sum, &a->c[0], &a->c[1]);
    fp4_sub(&difference, &a->c[0], &a->c[1]);
    fp4_add(&twice, &a->c[0], &a->c[0]);
    fp4_carry(&sum);
    fp4_carry(&difference);
    fp4_carry(&twice);
    fp4_mul(&out->c[1], &twice, &a->c[1]);
    fp4_mul(&out->c[0], &sum, &difference);
}

static inline void fp2x4_sub(struct fp2x4 *out, const struct fp2x4 *a, const struct fp2x4 *b)
{
    fp4_sub(&out->c[0], &a->c[0], &b->c[0]);
    fp4_sub(&out->c[1], &a->c[1], &b->c[1]);
}

static inline void fp2x4_carry(struct fp2x4 *x)
{
    fp4_carry(&x->c[0]);
    fp4_carry(&x->c[1]);
}

static inline void fp2x4_negate(struct fp2x4 *x, fp4_limb mask)
{
    fp4_negate(&x->c[0], mask);
    fp4_negate(&x->c[1], mask);
}

static inline void fp2x4_load(struct fp2x4 *out, const fp2_t *const in[4])
{
    for (int i = 0; i < 2; i++) {
        const fp_t *coordinate[4] = {&in[0]->fp[i], &in[1]->fp[i], &in[2]->fp[i], &in[3]->fp[i]};
        fp4_load(&out->c[i], coordinate);
    }
}

static inline void fp2x4_store(fp2_t *const out[4], const struct fp2x4 *x)
{
    for (int i = 0; i < 2; i++) {
        fp_t *coordinate[4] = {&out[0]->fp[i], &out[1]->fp[i], &out[2]->fp[i], &out[3]->fp[i]};
        fp4_store(coordinate, &x->c[i]);
    }
}

#endif
