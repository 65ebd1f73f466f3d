/*
 * A row's a and b are evaluated and multiplied into their Lagrange values at once; the values of the Lagrange basis
 * are made a chunk of rows ahead. Of the variables' polynomials only those of the inputs are needed.
 */
#include "tests/lib/trapdoor.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK 1024

struct trapdoor {
    fr_t alpha, beta, gamma, delta, tau;
    struct porep_counts counts;
    fr_t omega;                /* generates the domain */
    fr_t next_power;           /* omega^(first row of the next chunk) */
    fr_t factor;               /* (tau^m - 1)/m */
    fr_t basis[CHUNK];         /* L_i(tau) of the rows of a chunk */
    fr_t *inputs, *aux;        /* values */
    fr_t *u, *v, *w;           /* of the inputs */
    fr_t sum_a, sum_b;         /* of a_i L_i(tau), b_i L_i(tau) */
};

fr_t trapdoor_secret(const char *name)
{
    char text[64];
    uint8_t digest[32];
    fr_t out;

    snprintf(text, sizeof(text), "proof development parameters: %s", name);
    SHA256((const uint8_t *)text, strlen(text), digest);
    digest[31] &= 0x3f;
    if (!fr_from_bytes(&out, digest))
        abort();
    return out;
}

/* The 2^log2_len-th root of unity: squares of the 2^32-th one that c2-formats 6.2 gives. */
static fr_t domain_generator(uint32_t log2_len)
{
    fr_t root = {{0xb9b58d8c5f0e466a, 0x5b1b4c801819d7ec, 0x0af53ae352a31e64, 0x5bf3adda19e9b27b}};

    for (; log2_len < 32; log2_len++)
        fr_sqr(&root, &root);
    return root;
}

/* L_i(tau) for the next CHUNK rows: each is factor * omega^i / (tau - omega^i). */
static void fill_basis(struct trapdoor *t)
{
    fr_t power[CHUNK], difference[CHUNK], prefix[CHUNK + 1], inverse;

    prefix[0] = fr_from_u64(1);
    for (size_t i = 0; i < CHUNK; i++) {
        power[i] = t->next_power;
        fr_mul(&t->next_power, &t->next_power, &t->omega);
        fr_sub(&difference[i], &t->tau, &power[i]);
        fr_mul(&prefix[i + 1], &prefix[i], &difference[i]);
    }
    fr_inverse(&inverse, &prefix[CHUNK]);
    for (size_t i = CHUNK; i > 0; i--) {
        fr_t *value = &t->basis[i - 1];
        fr_mul(value, &inverse, &prefix[i - 1]);
        fr_mul(&inverse, &inverse, &difference[i - 1]);
        fr_mul(value, value, &power[i - 1]);
        fr_mul(value, value, &t->factor);
    }
}

static void take_input(void *ctx, uint32_t index, const fr_t *value)
{
    struct trapdoor *t = ctx;

    if (index >= t->counts.inputs)
        abort();
    t->inputs[index] = *value;
}

static void take_aux(void *ctx, uint32_t index, const fr_t *value)
{
    struct trapdoor *t = ctx;

    if (index >= t->counts.aux)
        abort();
    t->aux[index] = *value;
}

/* The value of a combination; what it says of inputs goes into `columns`, weighted. */
static fr_t evaluate(const struct trapdoor *t, const struct cs_lc *lc, const fr_t *weight, fr_t *columns)
{
    fr_t sum = fr_from_u64(0), term;

    for (size_t i = 0; i < lc->len; i++) {
        cs_var var = lc->terms[i].var;
        const fr_t *coeff = &lc->terms[i].coeff;
        fr_mul(&term, coeff, var & CS_AUX ? &t->aux[var & ~CS_AUX] : &t->inputs[var]);
        fr_add(&sum, &sum, &term);
        if (var & CS_AUX)
            continue;
        fr_mul(&term, coeff, weight);
        fr_add(&columns[var], &columns[var], &term);
    }
    return sum;
}

static void take_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                     const struct cs_lc *c)
{
    struct trapdoor *t = ctx;

    if (row % CHUNK == 0)
        fill_basis(t);
    const fr_t *weight = &t->basis[row % CHUNK];
    fr_t value_a = evaluate(t, a, weight, t->u), value_b = evaluate(t, b, weight, t->v);
    (void)evaluate(t, c, weight, t->w);
    fr_mul(&value_a, &value_a, weight);
    fr_mul(&value_b, &value_b, weight);
    fr_add(&t->sum_a, &t->sum_a, &value_a);
    fr_add(&t->sum_b, &t->sum_b, &value_b);
}

static void prepare(struct trapdoor *t)
{
    fr_t m = fr_from_u64((uint64_t)1 << t->counts.log2_domain), one = fr_from_u64(1);

    t->alpha = trapdoor_secret("alpha");
    t->beta = trapdoor_secret("beta");
    t->gamma = trapdoor_secret("gamma");
    t->delta = trapdoor_secret("delta");
    t->tau = trapdoor_secret("tau");
    t->omega = domain_generator(t->counts.log2_domain);
    t->next_power = one;
    t->factor = t->tau;
    for (uint32_t i = 0; i < t->counts.log2_domain; i++)
        fr_sqr(&t->factor, &t->factor);
    fr_sub(&t->factor, &t->factor, &one);
    fr_inverse(&m, &m);
    fr_mul(&t->factor, &t->factor, &m);
}

int trapdoor_create(const struct sector_size *size, const struct c1 *c1, uint32_t partition,
                    struct trapdoor **out, struct errmsg *err)
{
    struct trapdoor *t = calloc(1, sizeof(*t));
    struct cs_sink sink = {.row = take_row, .input = take_input, .aux = take_aux, .ctx = t};

    if (!t)
        return errmsg_set(err, -ENOMEM, "trapdoor: no memory");
    porep_counts(size, &t->counts);
    prepare(t);
    t->inputs = calloc(t->counts.inputs, sizeof(fr_t));
    t->u = calloc(t->counts.inputs, sizeof(fr_t));
    t->v = calloc(t->counts.inputs, sizeof(fr_t));
    t->w = calloc(t->counts.inputs, sizeof(fr_t));
    t->aux = calloc(t->counts.aux, sizeof(fr_t));
    int ret = -ENOMEM;
    if (t->inputs && t->u && t->v && t->w && t->aux)
        ret = c1 ? porep_synthesize(c1, partition, &sink, err) : porep_synthesize_blank(size, &sink, err);
    if (ret < 0) {
        trapdoor_destroy(t);
        return ret;
    }
    *out = t;
    return 0;
}

void trapdoor_destroy(struct trapdoor *t)
{
    if (!t)
        return;
    free(t->inputs);
    free(t->aux);
    free(t->u);
    free(t->v);
    free(t->w);
    free(t);
}

const fr_t *trapdoor_inputs(const struct trapdoor *t)
{
    return t->inputs + 1;
}

static g1_affine_t times_g1(const fr_t *scalar)
{
    scalar_t s;
    g1_t p;
    g1_affine_t out;

    blst_scalar_from_fr(&s, scalar);
    blst_p1_mult(&p, blst_p1_generator(), s.b, 255);
    blst_p1_to_affine(&out, &p);
    return out;
}

static g2_affine_t times_g2(const fr_t *scalar)
{
    scalar_t s;
    g2_t p;
    g2_affine_t out;

    blst_scalar_from_fr(&s, scalar);
    blst_p2_mult(&p, blst_p2_generator(), s.b, 255);
    blst_p2_to_affine(&out, &p);
    return out;
}

/* beta u + alpha v + w of input i: what ic holds, times gamma. */
static fr_t input_scalar(const struct trapdoor *t, uint32_t i)
{
    fr_t sum, term;

    fr_mul(&sum, &t->beta, &t->u[i]);
    fr_mul(&term, &t->alpha, &t->v[i]);
    fr_add(&sum, &sum, &term);
    fr_add(&sum, &sum, &t->w[i]);
    return sum;
}

void trapdoor_proof(const struct trapdoor *t, const fr_t *r, const fr_t *s, uint8_t out[PROOF_BYTES])
{
    fr_t a, b, c, term;

    fr_mul(&term, r, &t->delta);
    fr_add(&a, &t->alpha, &t->sum_a);
    fr_add(&a, &a, &term);
    fr_mul(&term, s, &t->delta);
    fr_add(&b, &t->beta, &t->sum_b);
    fr_add(&b, &b, &term);

    fr_mul(&c, &a, &b);
    fr_mul(&term, &t->alpha, &t->beta);
    fr_sub(&c, &c, &term);
    for (uint32_t i = 0; i < t->counts.inputs; i++) {
        fr_t scalar = input_scalar(t, i);
        fr_mul(&term, &t->inputs[i], &scalar);
        fr_sub(&c, &c, &term);
    }
    fr_inverse(&term, &t->delta);
    fr_mul(&c, &c, &term);

    g1_affine_t point_a = times_g1(&a), point_c = times_g1(&c);
    g2_affine_t point_b = times_g2(&b);
    blst_p1_affine_compress(out, &point_a);
    blst_p2_affine_compress(out + 48, &point_b);
    blst_p1_affine_compress(out + 144, &point_c);
}

static uint8_t *put_g1(uint8_t *at, const fr_t *scalar)
{
    g1_affine_t p = times_g1(scalar);

    blst_p1_affine_serialize(at, &p);
    return at + 96;
}

static uint8_t *put_g2(uint8_t *at, const fr_t *scalar)
{
    g2_affine_t p = times_g2(scalar);

    blst_p2_affine_serialize(at, &p);
    return at + 192;
}

void trapdoor_vk(const struct trapdoor *t, uint8_t *out)
{
    fr_t per_gamma;

    fr_inverse(&per_gamma, &t->gamma);
    out = put_g1(out, &t->alpha);
    out = put_g1(out, &t->beta);
    out = put_g2(out, &t->beta);
    out = put_g2(out, &t->gamma);
    out = put_g1(out, &t->delta);
    out = put_g2(out, &t->delta);
    store_be32(out, t->counts.inputs);
    out += 4;
    for (uint32_t i = 0; i < t->counts.inputs; i++) {
        fr_t scalar = input_scalar(t, i);
        fr_mul(&scalar, &scalar, &per_gamma);
        out = put_g1(out, &scalar);
    }
}
