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

static int naive_msm_g1(struct backend *be, g1_t *out, const g1_affine_t *bases,
                        const fr_t *scalars, size_t len, struct errmsg *err)
{
    g1_t sum = {0}, base;

    (void)be;
    (void)err;
    for (size_t i = 0; i < len; i++) {
        blst_p1_from_affine(&base, &bases[i]);
        g1_mul_add(&sum, &base, &scalars[i]);
    }
    *out = sum;
    return 0;
}

static int naive_msm_g2(struct backend *be, g2_t *out, const g2_affine_t *bases,
                        const fr_t *scalars, size_t len, struct errmsg *err)
{
    g2_t sum = {0}, base;

    (void)be;
    (void)err;
    for (size_t i = 0; i < len; i++) {
        blst_p2_from_affine(&base, &bases[i]);
        g2_mul_add(&sum, &base, &scalars[i]);
    }
    *out = sum;
    return 0;
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
