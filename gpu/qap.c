/*
 * The Lagrange values come from their closed form,
 *
 *     L_i(tau) = (tau^m - 1)/m * omega^i / (tau - omega^i),
 *
 * in chunks that share one inversion each and that the workers take independently.
 */
#include "gpu/qap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "gpu/domain.h"

#define CHUNK 4096

struct lagrange {
    fr_t *values;
    size_t len;
    fr_t tau, omega, omega_inverse;
    fr_t scale; /* (tau^m - 1)/m */
};

/* values[first..] of one chunk: numerators in `values`, denominators' running products beside them. */
static void lagrange_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct lagrange *l = ctx;
    size_t first = item * CHUNK, n = min_size(CHUNK, l->len - first);
    fr_t *out = l->values + first;
    fr_t denominators[CHUNK], x = fr_power(&l->omega, first), product = fr_from_u64(1), inverse;

    (void)thread;
    for (size_t i = 0; i < n; i++) {
        fr_sub(&denominators[i], &l->tau, &x);
        out[i] = product; /* of the denominators before i */
        fr_mul(&product, &product, &denominators[i]);
        fr_mul(&x, &x, &l->omega);
    }
    /* From the end: `inverse` is that of the product up to i, x the power i + 1. */
    fr_inverse(&inverse, &product);
    for (size_t i = n; i-- > 0;) {
        fr_mul(&x, &x, &l->omega_inverse);
        fr_mul(&out[i], &out[i], &inverse);
        fr_mul(&inverse, &inverse, &denominators[i]);
        fr_mul(&out[i], &out[i], &x);
        fr_mul(&out[i], &out[i], &l->scale);
    }
}

static void lagrange_fill(struct qap *q, const fr_t *tau, struct workers *workers)
{
    struct lagrange l = {
        .values = q->lagrange,
        .len = q->n_rows,
        .tau = *tau,
        .omega = domain_root(q->log2_domain),
    };
    fr_t m = fr_from_u64(UINT64_C(1) << q->log2_domain);

    fr_inverse(&l.omega_inverse, &l.omega);
    fr_inverse(&m, &m);
    fr_mul(&l.scale, &q->vanishing, &m);
    workers_run(workers, (l.len + CHUNK - 1) / CHUNK, lagrange_chunk, &l);
}

int qap_create(const struct porep_counts *counts, const fr_t *tau, struct workers *workers,
               struct qap **out, struct errmsg *err)
{
    size_t variables = (size_t)counts->inputs + counts->aux;
    fr_t one = fr_from_u64(1);

    if (counts->log2_domain >= DOMAIN_LOG2_LEN_MAX || counts->rows > UINT64_C(1) << counts->log2_domain)
        return errmsg_set(err, -EINVAL, "no domain of 2^%u for so many rows", counts->log2_domain);
    struct qap *q = calloc(1, sizeof(*q));
    if (!q)
        return errmsg_set(err, -ENOMEM, "no memory for a constraint system");
    q->n_inputs = counts->inputs;
    q->n_aux = counts->aux;
    q->n_rows = counts->rows;
    q->log2_domain = counts->log2_domain;
    q->u = calloc(variables, sizeof(fr_t));
    q->v = calloc(variables, sizeof(fr_t));
    q->w = calloc(variables, sizeof(fr_t));
    q->lagrange = malloc(counts->rows * sizeof(fr_t));
    if (!q->u || !q->v || !q->w || !q->lagrange) {
        qap_destroy(q);
        return errmsg_set(err, -ENOMEM, "no memory for the polynomials of %zu variables", variables);
    }
    q->vanishing = fr_power(tau, UINT64_C(1) << q->log2_domain);
    fr_sub(&q->vanishing, &q->vanishing, &one);
    if (fr_is_zero(&q->vanishing)) {
        qap_destroy(q);
        return errmsg_set(err, -EINVAL, "tau is in the domain");
    }
    lagrange_fill(q, tau, workers);
    *out = q;
    return 0;
}

void qap_drop_lagrange(struct qap *q)
{
    free(q->lagrange);
    q->lagrange = NULL;
}

void qap_destroy(struct qap *q)
{
    if (!q)
        return;
    qap_drop_lagrange(q);
    free(q->u);
    free(q->v);
    free(q->w);
    free(q);
}

static fr_t *value_of(const struct qap *q, fr_t *values, cs_var var)
{
    uint32_t index = var & ~CS_AUX;

    assert(index < (var & CS_AUX ? q->n_aux : q->n_inputs));
    return values + (var & CS_AUX ? q->n_inputs : 0) + index;
}

/* Nearly every coefficient is 1 or -1, and then there is nothing to multiply. */
static void add_terms(const struct qap *q, fr_t *values, const struct cs_lc *lc, const fr_t *lagrange)
{
    fr_t one = fr_from_u64(1), minus_one, term;

    fr_neg(&minus_one, &one);
    for (size_t i = 0; i < lc->len; i++) {
        fr_t *value = value_of(q, values, lc->terms[i].var);
        if (fr_equal(&lc->terms[i].coeff, &one)) {
            fr_add(value, value, lagrange);
        } else if (fr_equal(&lc->terms[i].coeff, &minus_one)) {
            fr_sub(value, value, lagrange);
        } else {
            fr_mul(&term, &lc->terms[i].coeff, lagrange);
            fr_add(value, value, &term);
        }
    }
}

static void take_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                     const struct cs_lc *c)
{
    struct qap *q = ctx;

    assert(row < q->n_rows);
    add_terms(q, q->u, a, &q->lagrange[row]);
    add_terms(q, q->v, b, &q->lagrange[row]);
    add_terms(q, q->w, c, &q->lagrange[row]);
}

struct cs_sink qap_sink(struct qap *q)
{
    return (struct cs_sink){.row = take_row, .ctx = q};
}
