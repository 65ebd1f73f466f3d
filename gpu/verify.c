/*
 * Both checks end in one product of pairings, so the Miller loops share their squarings and there is one final
 * exponentiation:
 *
 *     single   e(A, B) * e(-acc, gamma) * e(-C, delta)                            = e(alpha, beta)
 *     batch    prod_j e(z_j A_j, B_j) * e(-acc, gamma) * e(-sum_j z_j C_j, delta)
 *                                     * e(-(sum_j z_j) alpha, beta)               = 1
 *
 * acc is ic times the (weighted) inputs. Most inputs of a single proof are node numbers of a few dozen bits, so
 * the sum is taken in two parts, short scalars and long ones.
 */
#include "gpu/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define WEIGHT_BYTES ((size_t)16)
#define SHORT_BYTES 8 /* at most: the sum is as wide as its widest short scalar */

/* Bytes of a little-endian scalar without its leading zeros. */
static size_t scalar_bytes(const scalar_t *s)
{
    size_t len = FR_BYTES;

    while (len > 0 && s->b[len - 1] == 0)
        len--;
    return len;
}

/* A sum of products that is collected first: room for `max` terms. */
struct terms {
    g1_affine_t *points;
    uint8_t *scalars; /* `width` bytes each */
    size_t len, width;
};

static void terms_add(struct terms *t, const g1_affine_t *point, const scalar_t *s)
{
    t->points[t->len] = *point;
    memcpy(t->scalars + t->len * t->width, s->b, t->width);
    t->len++;
}

/* Adds the sum to *acc. `scratch` is for blst. */
static void terms_sum(const struct terms *t, g1_t *acc, limb_t *scratch)
{
    const g1_affine_t *points[2] = {t->points, NULL};
    const uint8_t *scalars[2] = {t->scalars, NULL};
    g1_t sum;

    if (t->len == 0)
        return;
    blst_p1s_mult_pippenger(&sum, points, t->len, scalars, 8 * t->width, scratch);
    blst_p1_add_or_double(acc, acc, &sum);
}

/* out = sum of scalars[i] * ic[i]. -ENOMEM. */
static int ic_sum(const struct vk *vk, const fr_t *scalars, g1_t *out)
{
    size_t n = vk->ic_len;
    struct terms small = {.width = 1}, large = {.width = FR_BYTES};
    limb_t *scratch = malloc(blst_p1s_mult_pippenger_scratch_sizeof(n));
    scalar_t *canonical = calloc(n, sizeof(*canonical));
    uint8_t *bytes = malloc(n * (SHORT_BYTES + FR_BYTES));
    g1_affine_t *points = malloc(2 * n * sizeof(*points));
    int ret = -ENOMEM;

    if (!scratch || !canonical || !bytes || !points)
        goto out;
    small.points = points;
    large.points = points + n;
    small.scalars = bytes;
    large.scalars = bytes + n * SHORT_BYTES;
    for (size_t i = 0; i < n; i++) {
        blst_scalar_from_fr(&canonical[i], &scalars[i]);
        size_t len = scalar_bytes(&canonical[i]);
        if (len <= SHORT_BYTES && len > small.width)
            small.width = len;
    }
    for (size_t i = 0; i < n; i++)
        terms_add(scalar_bytes(&canonical[i]) <= SHORT_BYTES ? &small : &large, &vk->ic[i],
                  &canonical[i]);
    memset(out, 0, sizeof(*out));
    terms_sum(&small, out, scratch);
    terms_sum(&large, out, scratch);
    ret = 0;
out:
    free(points);
    free(bytes);
    free(canonical);
    free(scratch);
    return ret;
}

/* The factors of a product of pairings. */
struct product {
    const g1_affine_t **p;
    const g2_affine_t **q;
    size_t len;
};

/* Infinity pairs to one with anything; blst's loop over many does not know that, so it is left out. */
static void product_add(struct product *f, const g1_affine_t *p, const g2_affine_t *q)
{
    if (blst_p1_affine_is_inf(p) || blst_p2_affine_is_inf(q))
        return;
    f->p[f->len] = p;
    f->q[f->len] = q;
    f->len++;
}

static blst_fp12 product_value(const struct product *f)
{
    blst_fp12 loop = *blst_fp12_one(), value;

    if (f->len > 0)
        blst_miller_loop_n(&loop, f->q, f->p, f->len);
    blst_final_exp(&value, &loop);
    return value;
}

static g1_affine_t negated(const g1_t *p)
{
    g1_t minus = *p;
    g1_affine_t out;

    blst_p1_cneg(&minus, true);
    blst_p1_to_affine(&out, &minus);
    return out;
}

static int check_inputs_len(const struct vk *vk, size_t inputs_len, struct errmsg *err)
{
    if (inputs_len + 1 == vk->ic_len)
        return 0;
    return errmsg_set(err, -EINVAL, "verify: %zu public inputs, the key takes %u", inputs_len,
                      vk->ic_len - 1);
}

static int no_memory(struct errmsg *err)
{
    return errmsg_set(err, -ENOMEM, "verify: no memory");
}

int groth16_verify(const struct vk *vk, const fr_t *inputs, size_t inputs_len,
                   const struct proof *proof, bool *valid, struct errmsg *err)
{
    const g1_affine_t *p[3];
    const g2_affine_t *q[3];
    struct product f = {p, q, 0};
    g1_t acc, c;

    int ret = check_inputs_len(vk, inputs_len, err);
    if (ret < 0)
        return ret;
    fr_t *scalars = malloc(vk->ic_len * sizeof(*scalars));
    if (!scalars)
        return no_memory(err);
    scalars[0] = fr_from_u64(1);
    memcpy(scalars + 1, inputs, inputs_len * sizeof(*inputs));
    ret = ic_sum(vk, scalars, &acc);
    free(scalars);
    if (ret < 0)
        return no_memory(err);

    blst_p1_from_affine(&c, &proof->c);
    g1_affine_t minus_acc = negated(&acc), minus_c = negated(&c);
    product_add(&f, &proof->a, &proof->b);
    product_add(&f, &minus_acc, &vk->gamma_g2);
    product_add(&f, &minus_c, &vk->delta_g2);
    blst_fp12 value = product_value(&f);
    *valid = blst_fp12_is_equal(&value, &vk->alpha_beta);
    return 0;
}

/* A weight of 128 random bits; zero would leave its proof unchecked. */
static int random_weight(scalar_t *out, struct errmsg *err)
{
    do {
        memset(out, 0, sizeof(*out));
        if (getrandom(out->b, WEIGHT_BYTES, 0) != WEIGHT_BYTES)
            return errmsg_set(err, -EIO, "verify: the kernel gives no random bytes");
    } while (scalar_bytes(out) == 0);
    return 0;
}

/* What a batch needs room for, besides the sums. */
struct batch {
    fr_t *scalars;      /* weighted inputs, ONE first */
    g1_affine_t *a;     /* z_j A_j */
    struct product f;
    g1_t c;             /* sum of z_j C_j */
};

static int batch_init(struct batch *b, const struct vk *vk, size_t count)
{
    size_t factors = count + 3;

    memset(b, 0, sizeof(*b));
    b->scalars = calloc(vk->ic_len, sizeof(*b->scalars));
    b->a = calloc(count, sizeof(*b->a));
    /* NOLINTBEGIN(bugprone-sizeof-expression): arrays of pointers */
    b->f.p = calloc(factors, sizeof(*b->f.p));
    b->f.q = calloc(factors, sizeof(*b->f.q));
    /* NOLINTEND(bugprone-sizeof-expression) */
    return b->scalars && b->a && b->f.p && b->f.q ? 0 : -ENOMEM;
}

static void batch_fini(struct batch *b)
{
    free(b->scalars);
    free(b->a);
    free(b->f.p);
    free(b->f.q);
}

static void g1_weighted(g1_t *out, const g1_affine_t *p, const scalar_t *weight)
{
    g1_t full;

    blst_p1_from_affine(&full, p);
    blst_p1_mult(out, &full, weight->b, 8 * WEIGHT_BYTES);
}

/* Takes proof j in, with its weight. */
static void batch_add(struct batch *b, size_t j, const struct proof *proof, const fr_t *inputs,
                      size_t inputs_len, const scalar_t *weight)
{
    g1_t point;
    fr_t z, term;

    blst_fr_from_scalar(&z, weight);
    fr_add(&b->scalars[0], &b->scalars[0], &z);
    for (size_t i = 0; i < inputs_len; i++) {
        fr_mul(&term, &z, &inputs[i]);
        fr_add(&b->scalars[1 + i], &b->scalars[1 + i], &term);
    }
    g1_weighted(&point, &proof->a, weight);
    blst_p1_to_affine(&b->a[j], &point);
    product_add(&b->f, &b->a[j], &proof->b);
    g1_weighted(&point, &proof->c, weight);
    blst_p1_add_or_double(&b->c, &b->c, &point);
}

static int batch_check(struct batch *b, const struct vk *vk, bool *valid)
{
    g1_t acc, alpha;
    scalar_t sum;

    int ret = ic_sum(vk, b->scalars, &acc);
    if (ret < 0)
        return ret;
    blst_scalar_from_fr(&sum, &b->scalars[0]);
    blst_p1_from_affine(&alpha, &vk->alpha_g1);
    blst_p1_mult(&alpha, &alpha, sum.b, FR_BITS);

    g1_affine_t minus_acc = negated(&acc), minus_c = negated(&b->c), minus_alpha = negated(&alpha);
    product_add(&b->f, &minus_acc, &vk->gamma_g2);
    product_add(&b->f, &minus_c, &vk->delta_g2);
    product_add(&b->f, &minus_alpha, &vk->beta_g2);
    blst_fp12 value = product_value(&b->f);
    *valid = blst_fp12_is_one(&value);
    return 0;
}

int groth16_verify_batch(const struct vk *vk, const fr_t *inputs, size_t inputs_len,
                         const struct proof *proofs, size_t count, bool *valid,
                         struct errmsg *err)
{
    struct batch b;
    int ret;

    if (count == 0)
        return errmsg_set(err, -EINVAL, "verify: no proof");
    if (count == 1)
        return groth16_verify(vk, inputs, inputs_len, proofs, valid, err);
    ret = check_inputs_len(vk, inputs_len, err);
    if (ret < 0)
        return ret;
    ret = batch_init(&b, vk, count);
    for (size_t j = 0; ret == 0 && j < count; j++) {
        scalar_t weight;
        ret = random_weight(&weight, err);
        if (ret == 0)
            batch_add(&b, j, &proofs[j], inputs + j * inputs_len, inputs_len, &weight);
    }
    if (ret == 0)
        ret = batch_check(&b, vk, valid);
    batch_fini(&b);
    return ret == -ENOMEM ? no_memory(err) : ret;
}
