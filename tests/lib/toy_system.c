#include "tests/lib/toy_system.h"

#include <assert.h>
#include <stdlib.h>

#define TERMS 3

/* A linear combination: variables number from 0, inputs first. */
struct toy_lc {
    uint32_t var[TERMS];
    fr_t coeff[TERMS];
    int len;
};

struct toy_rows {
    size_t len; /* closing rows included */
    struct toy_lc *a, *b, *c;
    uint32_t vars;
    fr_t *values;    /* of all variables */
    fr_t *u, *v, *w; /* the polynomials of the variables at tau */
};

static struct toy_lc random_lc(uint32_t vars, struct random *rng)
{
    struct toy_lc lc = {.len = 1 + (int)(random_u64(rng) % TERMS)};

    for (int i = 0; i < lc.len; i++) {
        bool repeated = false;
        lc.var[i] = (uint32_t)(random_u64(rng) % vars);
        for (int k = 0; k < i; k++)
            repeated = repeated || lc.var[k] == lc.var[i];
        lc.coeff[i] = random_u64(rng) & 1 ? random_fr(rng) : fr_from_u64(1);
        if (repeated)
            return lc.len = i, lc;
    }
    return lc;
}

static fr_t lc_value(const struct toy_lc *lc, const fr_t *values)
{
    fr_t sum = {0}, term;

    for (int i = 0; i < lc->len; i++) {
        fr_mul(&term, &lc->coeff[i], &values[lc->var[i]]);
        fr_add(&sum, &sum, &term);
    }
    return sum;
}

static struct toy_lc single(uint32_t var)
{
    return (struct toy_lc){.len = 1, .var = {var}, .coeff = {fr_from_u64(1)}};
}

/* The new variable and a multiple of an input. */
static struct toy_lc with_input(uint32_t var, uint32_t input, struct random *rng)
{
    return (struct toy_lc){
        .len = 2, .var = {var, input}, .coeff = {fr_from_u64(1), random_fr(rng)}};
}

/* Row k: b * b = b for a new bit b, or the product of two combinations is a new variable and, since transformed parameters have points of
 * inputs for that, a multiple of an input. The first is one of those. */
static void make_row(struct toy_rows *t, size_t k, uint32_t inputs, struct random *rng)
{
    uint32_t var = t->vars++;

    t->c[k] = single(var);
    if (k > 0 && random_u64(rng) % 4) {
        t->a[k] = t->b[k] = single(var);
        t->values[var] = fr_from_u64(random_u64(rng) & 1);
        return;
    }
    t->a[k] = random_lc(var, rng);
    t->b[k] = random_lc(var, rng);
    t->c[k] = with_input(var, (uint32_t)(random_u64(rng) % inputs), rng);
    fr_t a = lc_value(&t->a[k], t->values), b = lc_value(&t->b[k], t->values);
    fr_t inputs_part = lc_value(&t->c[k], t->values); /* the new one is 0 yet */
    fr_mul(&t->values[var], &a, &b);
    fr_sub(&t->values[var], &t->values[var], &inputs_part);
}

static struct toy_rows *make_rows(size_t rows, uint32_t inputs, struct random *rng)
{
    struct toy_rows *t = calloc(1, sizeof(*t));

    t->len = rows + inputs;
    t->a = calloc(t->len, sizeof(*t->a));
    t->b = calloc(t->len, sizeof(*t->b));
    t->c = calloc(t->len, sizeof(*t->c));
    t->values = calloc(t->len, sizeof(*t->values));
    t->values[0] = fr_from_u64(1);
    for (t->vars = 1; t->vars < inputs; t->vars++)
        t->values[t->vars] = random_fr(rng);
    for (size_t k = 0; k < rows; k++)
        make_row(t, k, inputs, rng);
    for (uint32_t i = 0; i < inputs; i++)
        t->a[rows + i] = single(i);
    return t;
}

static void set_density(uint64_t *bits, uint32_t *total, uint32_t i)
{
    *total += !(bits[i / 64] >> i % 64 & 1);
    bits[i / 64] |= (uint64_t)1 << i % 64;
}

static void make_assignment(struct assignment *w, const struct toy_rows *t, uint32_t inputs)
{
    w->n_inputs = inputs;
    w->n_aux = t->vars - inputs;
    w->n_rows = t->len;
    while ((size_t)1 << w->log2_domain < t->len)
        w->log2_domain++;
    w->inputs = t->values;
    w->aux = t->values + inputs;
    w->a = calloc((size_t)1 << w->log2_domain, sizeof(*w->a));
    w->b = calloc((size_t)1 << w->log2_domain, sizeof(*w->b));
    w->a_aux_density = calloc(t->vars / 64 + 1, sizeof(uint64_t));
    w->b_aux_density = calloc(t->vars / 64 + 1, sizeof(uint64_t));
    w->b_input_density = calloc(t->vars / 64 + 1, sizeof(uint64_t));
    for (size_t k = 0; k < t->len; k++) {
        for (int i = 0; i < t->a[k].len; i++)
            if (t->a[k].var[i] >= inputs)
                set_density(w->a_aux_density, &w->a_aux_total, t->a[k].var[i] - inputs);
        for (int i = 0; i < t->b[k].len; i++) {
            uint32_t var = t->b[k].var[i];
            if (var >= inputs)
                set_density(w->b_aux_density, &w->b_aux_total, var - inputs);
            else
                set_density(w->b_input_density, &w->b_input_total, var);
        }
    }
}

void toy_fill_rows(struct toy *t)
{
    const struct toy_rows *rows = t->rows;
    size_t m = (size_t)1 << t->w.log2_domain;

    memset(t->w.a, 0, m * sizeof(*t->w.a));
    memset(t->w.b, 0, m * sizeof(*t->w.b));
    for (size_t k = 0; k < rows->len; k++) {
        t->w.a[k] = lc_value(&rows->a[k], rows->values);
        t->w.b[k] = lc_value(&rows->b[k], rows->values);
    }
}

static fr_t power(const fr_t *base, uint64_t e)
{
    fr_t out = fr_from_u64(1);

    for (; e > 0; e--)
        fr_mul(&out, &out, base);
    return out;
}

static fr_t vanishing(const struct toy *t)
{
    fr_t one = fr_from_u64(1), z = power(&t->tau, (uint64_t)1 << t->w.log2_domain);

    fr_sub(&z, &z, &one);
    return z;
}

static void add_lc(fr_t *polynomials, const struct toy_lc *lc, const fr_t *lagrange)
{
    fr_t term;

    for (int i = 0; i < lc->len; i++) {
        fr_mul(&term, &lc->coeff[i], lagrange);
        fr_add(&polynomials[lc->var[i]], &polynomials[lc->var[i]], &term);
    }
}

/* By squaring the 2^32-th root of the specification. */
static fr_t root(uint32_t log2_len)
{
    fr_t omega = {{0xb9b58d8c5f0e466a, 0x5b1b4c801819d7ec, 0x0af53ae352a31e64, 0x5bf3adda19e9b27b}};

    for (uint32_t i = log2_len; i < 32; i++)
        fr_sqr(&omega, &omega);
    return omega;
}

/* L_i(tau) = (tau^m - 1)/m * omega^i / (tau - omega^i) */
static void make_polynomials(struct toy *t)
{
    struct toy_rows *rows = t->rows;
    fr_t m = fr_from_u64((uint64_t)1 << t->w.log2_domain), z = vanishing(t), x = fr_from_u64(1);
    fr_t omega = root(t->w.log2_domain);

    fr_inverse(&m, &m);
    fr_mul(&z, &z, &m);
    rows->u = calloc(rows->vars, sizeof(fr_t));
    rows->v = calloc(rows->vars, sizeof(fr_t));
    rows->w = calloc(rows->vars, sizeof(fr_t));
    for (size_t k = 0; k < rows->len; k++) {
        fr_t lagrange;
        fr_sub(&lagrange, &t->tau, &x);
        fr_inverse(&lagrange, &lagrange);
        fr_mul(&lagrange, &lagrange, &x);
        fr_mul(&lagrange, &lagrange, &z);
        add_lc(rows->u, &rows->a[k], &lagrange);
        add_lc(rows->v, &rows->b[k], &lagrange);
        add_lc(rows->w, &rows->c[k], &lagrange);
        fr_mul(&x, &x, &omega);
    }
}

/* (beta u + alpha v + w) / divisor */
static fr_t linear_part(const struct toy *t, uint32_t var, const fr_t *divisor)
{
    fr_t sum, term, inverse;

    fr_mul(&sum, &t->beta, &t->rows->u[var]);
    fr_mul(&term, &t->alpha, &t->rows->v[var]);
    fr_add(&sum, &sum, &term);
    fr_add(&sum, &sum, &t->rows->w[var]);
    fr_inverse(&inverse, divisor);
    fr_mul(&sum, &sum, &inverse);
    return sum;
}

static void make_vk(struct toy *t)
{
    struct vk vk = {.alpha_g1 = g1_of(&t->alpha),
                    .beta_g1 = g1_of(&t->beta),
                    .delta_g1 = g1_of(&t->delta),
                    .beta_g2 = g2_of(&t->beta),
                    .gamma_g2 = g2_of(&t->gamma),
                    .delta_g2 = g2_of(&t->delta),
                    .ic_len = t->w.n_inputs};

    vk.ic = calloc(vk.ic_len, sizeof(*vk.ic));
    for (uint32_t i = 0; i < vk.ic_len; i++) {
        fr_t k = linear_part(t, i, &t->gamma);
        vk.ic[i] = g1_of(&k);
    }
    /* Through its encoding, which fills in the rest. */
    uint8_t *bytes = malloc(vk_bytes(vk.ic_len));
    vk_write(bytes, &vk);
    int ret = vk_read(bytes, vk_bytes(vk.ic_len), &t->srs.vk, NULL);
    assert(ret == 0);
    (void)ret;
    free(bytes);
    free(vk.ic);
}

static void make_queries(struct toy *t)
{
    const struct toy_rows *rows = t->rows;
    struct srs *srs = &t->srs;
    uint32_t inputs = t->w.n_inputs;
    fr_t z = vanishing(t), delta;

    fr_inverse(&delta, &t->delta);
    fr_mul(&z, &z, &delta);
    srs->h = calloc((size_t)1 << t->w.log2_domain, sizeof(*srs->h));
    for (srs->h_len = 0; srs->h_len + 1 < (size_t)1 << t->w.log2_domain; srs->h_len++) {
        srs->h[srs->h_len] = g1_of(&z);
        fr_mul(&z, &z, &t->tau);
    }
    srs->l = calloc(rows->vars, sizeof(*srs->l));
    srs->a = calloc(rows->vars, sizeof(*srs->a));
    srs->b_g1 = calloc(rows->vars, sizeof(*srs->b_g1));
    srs->b_g2 = calloc(rows->vars, sizeof(*srs->b_g2));
    for (uint32_t i = 0; i < rows->vars; i++) {
        if (i >= inputs) {
            fr_t k = linear_part(t, i, &t->delta);
            srs->l[srs->l_len++] = g1_of(&k);
        }
        if (!fr_is_zero(&rows->u[i]))
            srs->a[srs->a_len++] = g1_of(&rows->u[i]);
        if (!fr_is_zero(&rows->v[i])) {
            srs->b_g1[srs->b_len] = g1_of(&rows->v[i]);
            srs->b_g2[srs->b_len++] = g2_of(&rows->v[i]);
        }
    }
}

struct toy *toy_create(size_t rows, uint32_t inputs, struct random *rng)
{
    struct toy *t = calloc(1, sizeof(*t));

    t->alpha = random_fr(rng);
    t->beta = random_fr(rng);
    t->gamma = random_fr(rng);
    t->delta = random_fr(rng);
    t->tau = random_fr(rng);
    t->rows = make_rows(rows, inputs, rng);
    make_assignment(&t->w, t->rows, inputs);
    toy_fill_rows(t);
    make_polynomials(t);
    make_vk(t);
    make_queries(t);
    return t;
}

/* H'_j or H''_j with x = shift w^-j: factor * sum_k x^k (logarithm of H_k), the last H being infinity. */
static fr_t transformed_h(const struct toy *t, const fr_t *x, const fr_t *factor)
{
    fr_t sum = {0}, z = vanishing(t), tau_x, delta;

    fr_mul(&tau_x, &t->tau, x);
    for (size_t k = 0; k < ((size_t)1 << t->w.log2_domain) - 1; k++) { /* by Horner */
        fr_t one = fr_from_u64(1);
        fr_mul(&sum, &sum, &tau_x);
        fr_add(&sum, &sum, &one);
    }
    fr_inverse(&delta, &t->delta);
    fr_mul(&sum, &sum, &z);
    fr_mul(&sum, &sum, &delta);
    fr_mul(&sum, &sum, factor);
    return sum;
}

/* 1 / (m z) */
static fr_t transform_factor(const struct toy *t)
{
    const uint64_t m = (uint64_t)1 << t->w.log2_domain;
    fr_t g = fr_from_u64(7), z = power(&g, m), one = fr_from_u64(1), len = fr_from_u64(m);

    fr_sub(&z, &z, &one);
    fr_mul(&z, &z, &len);
    fr_inverse(&z, &z);
    return z;
}

static void take_rows_from_variables(struct toy *t, const fr_t *w_inverse, const fr_t *factor)
{
    const struct toy_rows *rows = t->rows;
    fr_t *folded = calloc(rows->vars, sizeof(*folded)), x = fr_from_u64(1);

    for (size_t j = 0; j < rows->len; j++) {
        const fr_t h = transformed_h(t, &x, factor);
        add_lc(folded, &rows->c[j], &h);
        fr_mul(&x, &x, w_inverse);
    }
    for (uint32_t i = 0; i < rows->vars; i++) {
        fr_t k = {0};
        if (i >= t->w.n_inputs)
            k = linear_part(t, i, &t->delta);
        fr_sub(&k, &k, &folded[i]);
        if (i < t->w.n_inputs)
            t->srs.input_l[i] = g1_of(&k);
        else
            t->srs.l[i - t->w.n_inputs] = g1_of(&k);
    }
    free(folded);
}

void toy_transform(struct toy *t)
{
    const fr_t factor = transform_factor(t);
    fr_t x = fr_from_u64(7), w_inverse = root(t->w.log2_domain);

    fr_inverse(&w_inverse, &w_inverse);
    t->srs.input_l = calloc(t->w.n_inputs, sizeof(*t->srs.input_l));
    take_rows_from_variables(t, &w_inverse, &factor);
    fr_inverse(&x, &x);
    t->srs.h_len = (size_t)1 << t->w.log2_domain;
    for (size_t j = 0; j < t->srs.h_len; j++) {
        const fr_t k = transformed_h(t, &x, &factor);
        t->srs.h[j] = g1_of(&k);
        fr_mul(&x, &x, &w_inverse);
    }
    t->srs.transformed = true;
}

void toy_destroy(struct toy *t)
{
    struct toy_rows *rows = t->rows;

    vk_fini(&t->srs.vk);
    free(t->srs.h);
    free(t->srs.l);
    free(t->srs.a);
    free(t->srs.b_g1);
    free(t->srs.b_g2);
    free(t->srs.input_l);
    free(t->w.a);
    free(t->w.b);
    free(t->w.a_aux_density);
    free(t->w.b_aux_density);
    free(t->w.b_input_density);
    free(rows->a);
    free(rows->b);
    free(rows->c);
    free(rows->values);
    free(rows->u);
    free(rows->v);
    free(rows->w);
    free(rows);
    free(t);
}

/* start + the sum of values times polynomials + factor * delta */
static fr_t combine(const struct toy *t, const fr_t *polynomials, const fr_t *start,
                    const fr_t *factor)
{
    fr_t sum, term;

    fr_mul(&sum, factor, &t->delta);
    fr_add(&sum, &sum, start);
    for (uint32_t i = 0; i < t->rows->vars; i++) {
        fr_mul(&term, &t->rows->values[i], &polynomials[i]);
        fr_add(&sum, &sum, &term);
    }
    return sum;
}

void toy_expected(const struct toy *t, const fr_t *r, const fr_t *s, struct proof *out)
{
    fr_t a = combine(t, t->rows->u, &t->alpha, r), b = combine(t, t->rows->v, &t->beta, s);
    fr_t c, term, one = fr_from_u64(1), delta;

    fr_mul(&c, &a, &b);
    fr_mul(&term, &t->alpha, &t->beta);
    fr_sub(&c, &c, &term);
    for (uint32_t i = 0; i < t->w.n_inputs; i++) {
        term = linear_part(t, i, &one);
        fr_mul(&term, &term, &t->rows->values[i]);
        fr_sub(&c, &c, &term);
    }
    fr_inverse(&delta, &t->delta);
    fr_mul(&c, &c, &delta);
    out->a = g1_of(&a);
    out->b = g2_of(&b);
    out->c = g1_of(&c);
}
