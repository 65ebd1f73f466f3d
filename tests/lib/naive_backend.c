#include "tests/lib/naive_backend.h"

#include <errno.h>
#include <stdlib.h>

/* 7^((r-1) / 2^log2_len), the exponent taken from r - 1 itself. */
static fr_t naive_root(uint32_t log2_len)
{
    static const uint64_t r_minus_one[4] = {0xffffffff00000000, 0x53bda402fffe5bfe,
                                            0x3339d80809a1d805, 0x73eda753299d7d48};
    fr_t seven = fr_from_u64(7), out = fr_from_u64(1);

    for (int bit = 255; bit >= (int)log2_len; bit--) {
        fr_mul(&out, &out, &out);
        if (r_minus_one[bit / 64] >> (bit % 64) & 1)
            fr_mul(&out, &out, &seven);
    }
    return out;
}

/* sum of v[i] * x^i */
static fr_t evaluate(const fr_t *v, size_t len, const fr_t *x)
{
    fr_t out = {0};

    for (size_t i = len; i-- > 0;) {
        fr_mul(&out, &out, x);
        fr_add(&out, &out, &v[i]);
    }
    return out;
}

/* v[i] *= ratio^i * start */
static void scale(fr_t *v, size_t len, fr_t start, const fr_t *ratio)
{
    for (size_t i = 0; i < len; i++) {
        fr_mul(&v[i], &v[i], &start);
        fr_mul(&start, &start, ratio);
    }
}

static int naive_ntt(struct backend *be, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
                     struct errmsg *err)
{
    size_t len = (size_t)1 << log2_len;
    bool inverse = kind == NTT_INVERSE || kind == NTT_COSET_INVERSE;
    fr_t seven = fr_from_u64(7), one = fr_from_u64(1), root = naive_root(log2_len), x = one;
    fr_t *in = malloc(len * sizeof(*in)), scaled = fr_from_u64(len);

    (void)be;
    if (!in)
        return errmsg_set(err, -ENOMEM, "no memory");
    if (kind == NTT_COSET)
        scale(v, len, one, &seven);
    memcpy(in, v, len * sizeof(*in));
    if (inverse)
        fr_inverse(&root, &root);
    for (size_t k = 0; k < len; k++) {
        v[k] = evaluate(in, len, &x);
        fr_mul(&x, &x, &root);
    }
    fr_inverse(&scaled, &scaled);
    fr_inverse(&seven, &seven);
    if (inverse)
        scale(v, len, scaled, kind == NTT_COSET_INVERSE ? &seven : &one);
    free(in);
    return 0;
}

/* The point of variable `i`, counted one by one; false when it has none. */
static bool point_of_variable(const struct msm_terms *t, size_t i, size_t *point)
{
    *point = i;
    if (!t->dense)
        return true;
    *point = t->first;
    for (size_t k = 0; k < i; k++)
        *point += t->dense[k / 64] >> (k % 64) & 1;
    return t->dense[i / 64] >> (i % 64) & 1;
}

/* Calls `add` for every point and its scalar. */
static void each_term(const struct msm_terms *t,
                      void (*add)(void *ctx, size_t point, const fr_t *s), void *ctx)
{
    const fr_t one = fr_from_u64(1);
    size_t point;

    for (size_t i = 0; i < t->len; i++)
        if (!t->point_of || t->point_of[i] != MSM_NO_POINT)
            add(ctx, t->point_of ? t->point_of[i] : i, &t->scalars[i]);
    for (size_t i = 0; i < t->ones_len; i++)
        if ((t->ones[i / 64] >> (i % 64) & 1) && point_of_variable(t, i, &point))
            add(ctx, point, &one);
}

struct g1_sum {
    const g1_affine_t *points;
    g1_t sum;
};

static void add_g1(void *ctx, size_t point, const fr_t *scalar)
{
    struct g1_sum *s = ctx;
    g1_t base;

    blst_p1_from_affine(&base, &s->points[point]);
    g1_mul_add(&s->sum, &base, scalar);
}

static int naive_sum_g1(struct backend *be, g1_t *out, const g1_affine_t *points,
                        const struct msm_terms *terms, struct errmsg *err)
{
    struct g1_sum sum = {.points = points};

    (void)be, (void)err;
    each_term(terms, add_g1, &sum);
    *out = sum.sum;
    return 0;
}

struct g2_sum {
    const g2_affine_t *points;
    g2_t sum;
};

static void add_g2(void *ctx, size_t point, const fr_t *scalar)
{
    struct g2_sum *s = ctx;
    g2_t base;

    blst_p2_from_affine(&base, &s->points[point]);
    g2_mul_add(&s->sum, &base, scalar);
}

static int naive_sum_g2(struct backend *be, g2_t *out, const g2_affine_t *points,
                        const struct msm_terms *terms, struct errmsg *err)
{
    struct g2_sum sum = {.points = points};

    (void)be, (void)err;
    each_term(terms, add_g2, &sum);
    *out = sum.sum;
    return 0;
}

static int naive_msm_g1(struct backend *be, g1_t *out, const g1_affine_t *bases,
                        const fr_t *scalars, size_t len, struct errmsg *err)
{
    return naive_sum_g1(be, out, bases, &(struct msm_terms){.scalars = scalars, .len = len}, err);
}

static int naive_msm_g2(struct backend *be, g2_t *out, const g2_affine_t *bases,
                        const fr_t *scalars, size_t len, struct errmsg *err)
{
    return naive_sum_g2(be, out, bases, &(struct msm_terms){.scalars = scalars, .len = len}, err);
}

static void naive_destroy(struct backend *be)
{
    free(be);
}

static const struct backend_ops naive_ops = {
    .name = "naive",
    .ntt = naive_ntt,
    .msm_g1 = naive_msm_g1,
    .msm_g2 = naive_msm_g2,
    .destroy = naive_destroy,
    .sum_g1 = naive_sum_g1,
    .sum_g2 = naive_sum_g2,
};

int backend_naive_create(struct backend **out)
{
    struct backend *be = calloc(1, sizeof(*be));

    if (!be)
        return -ENOMEM;
    be->ops = &naive_ops;
    *out = be;
    return 0;
}
