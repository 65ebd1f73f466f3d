/*
 * Two transforms of h by the backend, with the fold of the first one's result between them: what that takes is one copy of h. Sums before and
 * after must agree (transform_check.h).
 *
 * The fold goes as qap.c does: instances side by side, each over the variables that it allocates itself; ONE by each thread apart; terms of other
 * instances' variables afterwards, every thread taking those of variables that are its own. A term is an affine addition to its variable's point,
 * in batches that share an inversion; what meets a variable that is in the batch already waits for the next one. At 32 GiB 250 million terms are
 * 1 or -1 times a row's point, and those of MultiEq's rows, 32 million, its powers of two in order, so that each is one doubling further on.
 * Memory beside the points is the same for every size: some 400 KB a thread.
 */
#include "gpu/transform.h"

#include <errno.h>
#include <stdlib.h>

#include "gpu/cpu/batch_add.h"
#include "gpu/domain.h"
#include "gpu/transform_check.h"
#include "numa/circuit/circuit_foreign.h"
#include "numa/memory.h"

/* ---------------------------------------------------------------------------------------- the adder */

#define BATCH BATCH_ADD_LEN_G1
#define STAMPS 4096 /* places: so many neighbours in a row have one each */

/* Additions to points, any number of them to the same point, in any order. */
struct adder {
    struct batch_scratch scratch;
    struct add_pair now[BATCH], later[BATCH]; /* no two of `now` are to the same point */
    size_t now_len, later_len;
    uint32_t
        stamp[STAMPS]; /* the batch that last had a point of this place; two points may share one */
    uint32_t batch;
};

static void adder_init(struct adder *a)
{
    memset(a->stamp, 0, sizeof(a->stamp));
    a->now_len = a->later_len = 0;
    a->batch = 1;
}

static bool adder_takes(struct adder *a, const g1_affine_t *to)
{
    uint32_t *stamp = &a->stamp[(uintptr_t)to / sizeof(*to) % STAMPS];

    if (*stamp == a->batch)
        return false;
    *stamp = a->batch;
    return true;
}

/* Does the batch; of those that wait the next one is made, as far as they do not meet again. */
static void adder_next(struct adder *a)
{
    size_t waiting = 0;

    g1_add_pairs(a->now, a->now_len, &a->scratch);
    a->now_len = 0;
    a->batch++;
    for (size_t i = 0; i < a->later_len; i++) {
        if (adder_takes(a, a->later[i].out))
            a->now[a->now_len++] = a->later[i];
        else
            a->later[waiting++] = a->later[i];
    }
    a->later_len = waiting;
}

/* *to += point, or -= it. *point stays as it is until the adder is flushed. */
static void adder_add(struct adder *a, g1_affine_t *to, const g1_affine_t *point, bool subtract)
{
    const struct add_pair pair = {.a = to, .b = point, .out = to, .negate_b = subtract};

    if (adder_takes(a, to))
        a->now[a->now_len++] = pair;
    else
        a->later[a->later_len++] = pair;
    while (a->now_len == BATCH || a->later_len == BATCH)
        adder_next(a);
}

static void adder_flush(struct adder *a)
{
    while (a->now_len > 0)
        adder_next(a);
}

/* ------------------------------------------------------------------------------------- coefficients */

/* A coefficient: a power of two, times -1 or not, or neither. */
struct coeff {
    int16_t power; /* -1: none */
    bool negative;
};

static void classify(const fr_t *coeff, const fr_t powers[FR_BITS], struct coeff *out)
{
    fr_t negative;

    fr_neg(&negative, coeff);
    *out = (struct coeff){.power = -1};
    for (int16_t i = 0; i < FR_BITS && out->power < 0; i++) {
        if (fr_equal(coeff, &powers[i]))
            *out = (struct coeff){i, false};
        else if (fr_equal(&negative, &powers[i]))
            *out = (struct coeff){i, true};
    }
}

static struct coeff *classify_all(const struct circuit *c)
{
    struct coeff *out = malloc(c->n_coeffs * sizeof(*out));
    fr_t powers[FR_BITS];

    powers[0] = fr_from_u64(1);
    for (int i = 1; i < FR_BITS; i++)
        fr_add(&powers[i], &powers[i - 1], &powers[i - 1]);
    for (uint32_t i = 0; out && i < c->n_coeffs; i++)
        classify(&c->coeffs[i], powers, &out[i]);
    return out;
}

/* ---------------------------------------------------------------------------------------- the fold */

/* Multiples of rows' points that are brought into affine form together. */
#define MULTIPLES 512

/* A row's point times the powers of two, one after another. */
struct chain {
    const g1_affine_t *row;
    g1_t point; /* 2^power times that */
    int power;
};

/* What a thread has of its own. */
struct hand {
    struct adder adder;
    g1_t one; /* the terms of ONE */
    /* Multiples, and what they are taken from. */
    size_t len;
    g1_t multiples[MULTIPLES];
    g1_affine_t affine[MULTIPLES];
    struct {
        g1_affine_t *to;
        bool subtract;
    } terms[MULTIPLES];
};

struct fold {
    const struct circuit *c;
    const struct coeff *coeffs;
    const g1_affine_t *rows;
    g1_affine_t *l, *input_l;
    struct hand **hands;
    unsigned threads;
    size_t first; /* instance of this slice */
};

/* Not for infinity, which no multiple is: coefficients are below the order, and rows that are infinity were left out. */
static void flush_multiples(struct hand *h)
{
    const g1_t *const from[2] = {h->multiples, NULL};

    if (h->len > 0)
        blst_p1s_to_affine(h->affine, from, h->len);
    for (size_t i = 0; i < h->len; i++)
        adder_add(&h->adder, h->terms[i].to, &h->affine[i], h->terms[i].subtract);
    adder_flush(&h->adder);
    h->len = 0;
}

/* *out = coefficient times the row's point, but for its sign: *negative. */
static void multiply(const struct fold *f, uint32_t coeff, struct chain *chain, g1_t *out,
                     bool *negative)
{
    const struct coeff *c = &f->coeffs[coeff];
    uint8_t scalar[FR_BYTES];

    *negative = c->negative;
    if (chain->power < 0 || c->power < chain->power) { /* from the beginning */
        blst_p1_from_affine(&chain->point, chain->row);
        chain->power = 0;
    }
    if (c->power < 0) {
        fr_to_bytes(scalar, &f->c->coeffs[coeff]);
        blst_p1_mult(out, &chain->point, scalar, FR_BITS);
        return;
    }
    for (; chain->power < c->power; chain->power++)
        blst_p1_double(&chain->point, &chain->point);
    *out = chain->point;
}

/* hand->one += coefficient times the row's point */
static void take_one(const struct fold *f, struct hand *h, uint32_t coeff, struct chain *chain)
{
    bool negative;
    g1_t product;

    multiply(f, coeff, chain, &product, &negative);
    blst_p1_cneg(&product, negative);
    blst_p1_add_or_double(&h->one, &h->one, &product);
}

/* *to -= coefficient times the row's point */
static void take_term(const struct fold *f, struct hand *h, g1_affine_t *to, uint32_t coeff,
                      struct chain *chain)
{
    bool negative;

    if (f->coeffs[coeff].power == 0) {
        adder_add(&h->adder, to, chain->row, !f->coeffs[coeff].negative);
        return;
    }
    multiply(f, coeff, chain, &h->multiples[h->len], &negative);
    h->terms[h->len].to = to;
    h->terms[h->len].subtract = !negative;
    if (++h->len == MULTIPLES)
        flush_multiples(h);
}

/* The point that a term of an instance goes to. */
static g1_affine_t *variable_at(const struct fold *f, const struct circuit_base *bases,
                                uint32_t var)
{
    const uint32_t number = circuit_variable(f->c, bases, var), inputs = f->c->n_inputs;

    return number < inputs ? f->input_l + number : f->l + (number - inputs);
}

/* An instance's terms of ONE and of what it allocates. */
static void take_instance(void *ctx, size_t item, unsigned thread)
{
    const struct fold *f = ctx;
    const struct circuit_instance *in = &f->c->instances[f->first + item];
    const struct circuit_template *part = &f->c->templates[in->template_index];
    const struct circuit_side *from = &f->c->sides[CIRCUIT_C];
    const struct circuit_base *bases = &f->c->bases[in->first_base];
    struct hand *h = f->hands[thread];
    struct chain chain = {.row = f->rows + in->row};

    for (uint32_t r = part->first_row; r < part->first_row + part->n_rows; r++, chain.row++) {
        chain.power = -1;
        if (g1_affine_is_infinity(chain.row))
            continue;
        for (uint32_t i = from->first[r]; i < from->first[r + 1]; i++) {
            const struct circuit_term *term = &from->terms[i];
            if (term->var == CIRCUIT_ONE)
                take_one(f, h, term->coeff, &chain);
            else if (CIRCUIT_SEGMENT(term->var) < CIRCUIT_FOREIGN)
                take_term(f, h, variable_at(f, bases, term->var), term->coeff, &chain);
        }
    }
    flush_multiples(h);
}

/* ---- terms of other instances' variables ---- */

struct foreign {
    const struct fold *f;
    struct circuit_foreign list;
};

/* Variables in stripes, one thread's each. */
#define STRIPE 4096

static bool is_own(const struct fold *f, const g1_affine_t *to, size_t item)
{
    return (uintptr_t)to / sizeof(*to) / STRIPE % f->threads == item;
}

static void take_foreign(void *ctx, size_t item, unsigned thread)
{
    const struct foreign *foreign = ctx;
    const struct circuit_foreign *list = &foreign->list;
    const struct fold *f = foreign->f;
    struct hand *h = f->hands[thread];

    for (uint32_t k = 0; k < f->c->n_instances; k++) {
        const struct circuit_instance *in = &f->c->instances[k];
        const struct circuit_base *bases = &f->c->bases[in->first_base];
        for (size_t i = list->first[in->template_index]; i < list->first[in->template_index + 1];
             i++) {
            const struct circuit_foreign_term *t = &list->terms[i];
            struct chain chain = {.row = f->rows + in->row + t->row, .power = -1};
            g1_affine_t *to = variable_at(f, bases, t->term.var);
            if (is_own(f, to, item) && !g1_affine_is_infinity(chain.row))
                take_term(f, h, to, t->term.coeff, &chain);
        }
    }
    flush_multiples(h);
}

/* ---- all of it ---- */

static int hands_create(struct fold *f)
{
    f->hands = calloc(f->threads, sizeof(*f->hands)); /* NOLINT(bugprone-sizeof-expression): pointers */
    for (unsigned i = 0; f->hands && i < f->threads; i++) {
        f->hands[i] = malloc(sizeof(*f->hands[i]));
        if (!f->hands[i])
            return -ENOMEM;
        adder_init(&f->hands[i]->adder);
        f->hands[i]->len = 0;
        memset(&f->hands[i]->one, 0, sizeof(f->hands[i]->one));
    }
    return f->hands ? 0 : -ENOMEM;
}

static void hands_destroy(struct fold *f)
{
    for (unsigned i = 0; f->hands && i < f->threads; i++)
        free(f->hands[i]);
    free(f->hands);
}

static void take_ones(const struct fold *f)
{
    g1_t sum, one;

    memset(&sum, 0, sizeof(sum));
    for (unsigned i = 0; i < f->threads; i++)
        blst_p1_add_or_double(&sum, &sum, &f->hands[i]->one);
    blst_p1_cneg(&sum, true);
    blst_p1_from_affine(&one, &f->input_l[0]);
    blst_p1_add_or_double(&sum, &sum, &one);
    blst_p1_to_affine(&f->input_l[0], &sum);
}

#define SLICE 256 /* instances between two reports */

static void take_instances(struct fold *f, struct workers *workers, backend_progress progress,
                           void *progress_ctx)
{
    for (f->first = 0; f->first < f->c->n_instances; f->first += SLICE) {
        workers_run(workers, min_size(SLICE, f->c->n_instances - f->first), take_instance, f);
        if (progress && f->first + SLICE < f->c->n_instances)
            progress(progress_ctx, "fold", f->c->instances[f->first + SLICE].row, f->c->n_rows);
    }
}

int transform_fold(const struct circuit *circuit, const g1_affine_t *rows, g1_affine_t *l,
                   g1_affine_t *input_l, struct workers *workers, backend_progress progress,
                   void *progress_ctx, struct errmsg *err)
{
    struct coeff *coeffs = classify_all(circuit);
    struct fold f = {.c = circuit,
                     .coeffs = coeffs,
                     .rows = rows,
                     .l = l,
                     .input_l = input_l,
                     .threads = workers_count(workers)};
    struct foreign foreign = {.f = &f};
    int ret = circuit_foreign_init(&foreign.list, circuit, 1u << CIRCUIT_C);

    if (ret == 0)
        ret = coeffs ? hands_create(&f) : -ENOMEM;
    if (ret == 0) {
        take_instances(&f, workers, progress, progress_ctx);
        take_ones(&f);
        workers_run(workers, f.threads, take_foreign, &foreign);
        if (progress)
            progress(progress_ctx, "fold", circuit->n_rows, circuit->n_rows);
    }
    circuit_foreign_fini(&foreign.list);
    hands_destroy(&f);
    free(coeffs);
    return ret < 0 ? errmsg_set(err, ret, "no memory for a fold of the circuit's rows") : 0;
}

/* ----------------------------------------------------------------------------------- the parameters */

#define COPY ((size_t)1 << 16) /* points */

struct copying {
    const g1_affine_t *from;
    g1_affine_t *to;
    size_t len;
};

static void copy_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct copying *c = ctx;
    const size_t first = item * COPY;

    (void)thread;
    memcpy(c->to + first, c->from + first, min_size(COPY, c->len - first) * sizeof(*c->to));
}

/* What both transforms have in common: 1 / (m (g^m - 1)) */
static fr_t common_factor(uint64_t m)
{
    fr_t shift = domain_coset_shift(), one = fr_from_u64(1), len = fr_from_u64(m);
    fr_t z = fr_power(&shift, m);

    fr_sub(&z, &z, &one);
    fr_mul(&z, &z, &len);
    fr_inverse(&z, &z);
    return z;
}

struct transforming {
    struct backend *be;
    const struct srs *srs;
    uint32_t log2_domain;
    backend_progress progress;
    void *progress_ctx;
};

/* h as the file has it and infinity behind it, transformed, comes to stand in `out`. */
static int transform_h(const struct transforming *t, const fr_t *shift, g1_affine_t *out,
                       struct errmsg *err)
{
    struct copying c = {.from = t->srs->h, .to = out, .len = t->srs->h_len};
    const fr_t factor = common_factor(c.len + 1);

    workers_run(t->be->workers, (c.len + COPY - 1) / COPY, copy_chunk, &c);
    memset(&out[c.len], 0, sizeof(*out));
    return t->be->ops->transform_points(t->be, out, t->log2_domain, shift, &factor, t->progress,
                                        t->progress_ctx, err);
}

static int check(const struct srs *srs, const struct circuit *c, const struct backend *be,
                 struct errmsg *err)
{
    if (!be->ops->transform_points)
        return errmsg_set(err, -EINVAL, "%s transforms no parameters", be->ops->name);
    if (srs->transformed)
        return errmsg_set(err, -EINVAL, "%s: transformed already", srs->path);
    if (srs->h_len + 1 != (size_t)1 << c->log2_domain || srs->l_len != c->n_aux ||
        srs->vk.ic_len != c->n_inputs || !srs->h || !srs->l)
        return errmsg_set(err, -EINVAL, "%s: not the points of this circuit", srs->path);
    return 0;
}

static void tell_check(const struct transforming *t)
{
    if (t->progress)
        t->progress(t->progress_ctx, "check", 1, 1);
}

/* `room` becomes H', input_l IL and srs->l L'. */
static int transform(const struct transforming *t, const struct circuit *circuit, g1_affine_t *room,
                     g1_affine_t *input_l, struct errmsg *err)
{
    fr_t shift = fr_from_u64(1);
    int ret = transform_h(t, &shift, room, err);

    if (ret == 0)
        ret = transform_fold(circuit, room, t->srs->l, input_l, t->be->workers, t->progress,
                             t->progress_ctx, err);
    if (ret < 0)
        return ret;
    shift = domain_coset_shift();
    fr_inverse(&shift, &shift);
    return transform_h(t, &shift, room, err);
}

int transform_srs(struct srs *srs, const struct circuit *circuit, struct backend *be,
                  backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    const struct transforming t = {be, srs, circuit->log2_domain, progress, progress_ctx};
    struct transform_check before;
    int ret = check(srs, circuit, be, err);

    if (ret == 0)
        ret = transform_check_begin(&before, srs, circuit, be->workers, err);
    if (ret < 0)
        return ret;
    tell_check(&t);
    g1_affine_t *room = memory_alloc(srs->h_len + 1, sizeof(*room));
    g1_affine_t *input_l = calloc(circuit->n_inputs, sizeof(*input_l));
    ret = room && input_l ? transform(&t, circuit, room, input_l, err)
                          : errmsg_set(err, -ENOMEM, "%s: no memory for %zu points more", srs->path,
                                       srs->h_len + 1);
    if (ret < 0) {
        free(room);
        free(input_l);
        return ret;
    }
    free(srs->h);
    srs->h = room;
    srs->h_len++;
    srs->input_l = input_l;
    srs->transformed = true;
    ret = transform_check_end(&before, srs, circuit, be->workers, err);
    tell_check(&t);
    return ret;
}
