/*
 * The Lagrange values come from their closed form,
 *
 *     L_i(tau) = (tau^m - 1)/m * omega^i / (tau - omega^i),
 *
 * in chunks that share one inversion each and that the workers take independently.
 *
 * Of a circuit's terms, nineteen in twenty are of variables that the instance itself allocates, so instances go side by side. ONE
 * is summed by each thread apart. What is left are terms of other instances' variables, which one thread adds afterwards.
 */
#include "gpu/qap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "gpu/domain.h"
#include "numa/circuit/circuit_foreign.h"
#include "numa/memory.h"

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

/* The values of u, v and w. */
static void clear_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct qap *q = ctx;
    const size_t variables = (size_t)q->n_inputs + q->n_aux, first = item * CHUNK,
                 bytes = min_size(CHUNK, variables - first) * sizeof(fr_t);

    (void)thread;
    memset(q->u + first, 0, bytes);
    memset(q->v + first, 0, bytes);
    memset(q->w + first, 0, bytes);
}

int qap_create(const struct porep_counts *counts, const fr_t *tau, struct workers *workers,
               struct qap **out, struct errmsg *err)
{
    size_t variables = (size_t)counts->inputs + counts->aux;
    fr_t one = fr_from_u64(1);

    if (counts->log2_domain >= DOMAIN_LOG2_LEN_MAX || counts->rows > UINT64_C(1)
                                                                         << counts->log2_domain)
        return errmsg_set(err, -EINVAL, "no domain of 2^%u for so many rows", counts->log2_domain);
    struct qap *q = calloc(1, sizeof(*q));
    if (!q)
        return errmsg_set(err, -ENOMEM, "no memory for a constraint system");
    q->n_inputs = counts->inputs;
    q->n_aux = counts->aux;
    q->n_rows = counts->rows;
    q->log2_domain = counts->log2_domain;
    q->u = memory_alloc(variables, sizeof(fr_t));
    q->v = memory_alloc(variables, sizeof(fr_t));
    q->w = memory_alloc(variables, sizeof(fr_t));
    q->lagrange = memory_alloc(counts->rows, sizeof(fr_t));
    if (!q->u || !q->v || !q->w || !q->lagrange) {
        qap_destroy(q);
        return errmsg_set(err, -ENOMEM, "no memory for the polynomials of %zu variables",
                          variables);
    }
    q->vanishing = fr_power(tau, UINT64_C(1) << q->log2_domain);
    fr_sub(&q->vanishing, &q->vanishing, &one);
    if (fr_is_zero(&q->vanishing)) {
        qap_destroy(q);
        return errmsg_set(err, -EINVAL, "tau is in the domain");
    }
    workers_run(workers, (variables + CHUNK - 1) / CHUNK, clear_chunk, q);
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

/* ---- row by row ---- */

static fr_t *value_of(const struct qap *q, fr_t *values, cs_var var)
{
    uint32_t index = var & ~CS_AUX;

    assert(index < (var & CS_AUX ? q->n_aux : q->n_inputs));
    return values + (var & CS_AUX ? q->n_inputs : 0) + index;
}

/* Nearly every coefficient is 1 or -1, and then there is nothing to multiply. */
static void add_terms(const struct qap *q, fr_t *values, const struct cs_lc *lc,
                      const fr_t *lagrange)
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

/* ---- from a circuit's templates ---- */

static fr_t *side_values(const struct qap *q, int side)
{
    return side == CIRCUIT_A ? q->u : side == CIRCUIT_B ? q->v : q->w;
}

struct taking {
    const struct qap *q;
    const struct circuit *c;
    fr_t (*ones)[CIRCUIT_SIDES]; /* of each thread: the values of ONE */
    struct circuit_foreign foreign;
};

/* The variable that a term of an instance is about. */
static fr_t *variable_at(const struct taking *t, int side, const struct circuit_base *bases,
                         uint32_t var)
{
    return side_values(t->q, side) + circuit_variable(t->c, bases, var);
}

/* *to += coefficient * lagrange */
static void add_term(const struct circuit *c, fr_t *to, uint32_t coeff, const fr_t *lagrange)
{
    fr_t term;

    if (coeff == CIRCUIT_SMALL + 1) {
        fr_add(to, to, lagrange);
    } else if (coeff == CIRCUIT_SMALL - 1) {
        fr_sub(to, to, lagrange);
    } else {
        fr_mul(&term, &c->coeffs[coeff], lagrange);
        fr_add(to, to, &term);
    }
}

/* One side of an instance's rows: the terms of ONE, and of what the instance allocates. */
static void take_side(const struct taking *t, const struct circuit_instance *in, int side,
                      fr_t *ones)
{
    const struct circuit_template *part = &t->c->templates[in->template_index];
    const struct circuit_side *from = &t->c->sides[side];
    const struct circuit_base *bases = &t->c->bases[in->first_base];
    const fr_t *lagrange = &t->q->lagrange[in->row];

    for (uint32_t r = part->first_row; r < part->first_row + part->n_rows; r++, lagrange++)
        for (uint32_t i = from->first[r]; i < from->first[r + 1]; i++) {
            const struct circuit_term *term = &from->terms[i];
            if (term->var == CIRCUIT_ONE)
                add_term(t->c, ones, term->coeff, lagrange);
            else if (CIRCUIT_SEGMENT(term->var) < CIRCUIT_FOREIGN)
                add_term(t->c, variable_at(t, side, bases, term->var), term->coeff, lagrange);
        }
}

static void take_instance(void *ctx, size_t item, unsigned thread)
{
    const struct taking *t = ctx;

    for (int side = 0; side < CIRCUIT_SIDES; side++)
        take_side(t, &t->c->instances[item], side, &t->ones[thread][side]);
}

static void take_foreign(const struct taking *t, const struct circuit_instance *in)
{
    const struct circuit_foreign *list = &t->foreign;
    const struct circuit_base *bases = &t->c->bases[in->first_base];

    for (size_t i = list->first[in->template_index]; i < list->first[in->template_index + 1]; i++) {
        const struct circuit_foreign_term *f = &list->terms[i];
        add_term(t->c, variable_at(t, (int)f->side, bases, f->term.var), f->term.coeff,
                 &t->q->lagrange[in->row + f->row]);
    }
}

int qap_take_circuit(struct qap *q, const struct circuit *circuit, struct workers *workers,
                     struct errmsg *err)
{
    const unsigned threads = workers_count(workers);
    struct taking t = {.q = q, .c = circuit, .ones = calloc(threads, sizeof(fr_t[CIRCUIT_SIDES]))};
    int ret = circuit_foreign_init(&t.foreign, circuit,
                                   1u << CIRCUIT_A | 1u << CIRCUIT_B | 1u << CIRCUIT_C);

    assert(circuit->n_inputs == q->n_inputs && circuit->n_aux == q->n_aux &&
           circuit->n_rows == q->n_rows);
    if (!t.ones)
        ret = -ENOMEM;
    if (ret == 0) {
        workers_run(workers, circuit->n_instances, take_instance, &t);
        for (unsigned thread = 0; thread < threads; thread++)
            for (int side = 0; side < CIRCUIT_SIDES; side++)
                fr_add(side_values(q, side), side_values(q, side), &t.ones[thread][side]);
        for (uint32_t i = 0; i < circuit->n_instances; i++)
            take_foreign(&t, &circuit->instances[i]);
    }
    circuit_foreign_fini(&t.foreign);
    free(t.ones);
    return ret < 0 ? errmsg_set(err, ret, "no memory for a circuit's terms") : 0;
}
