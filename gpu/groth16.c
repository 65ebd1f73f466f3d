/*
 * One transform fewer than the textbook. With A, B, C the polynomials that take the rows' values on the domain,
 * A B - C = h (X^m - 1), and C is the remainder of A B modulo X^m - 1. Modulo X^m - g^m, whose roots are the coset, the
 * remainder of A B is D = h (g^m - 1) + C, so that
 *
 *     h = (D - C) / (g^m - 1)        coefficient by coefficient,
 *
 * and C need never be evaluated on the coset: two transforms each for A and B, one for C, one for D.
 *
 * Transformed parameters (transform.h) do without the last two: their sum over h is over A B on the coset.
 */
#include "gpu/groth16.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "gpu/cpu/fr_vectors.h"
#include "gpu/domain.h"
#include "numa/circuit/compact.h"

#define CHUNK 16384

/* Loops over the domain, all of the form out[i] = f(x[i], y[i]). */
struct vectors {
    fr_t *out;
    const fr_t *x, *y;
    size_t len;
    fr_t factor;
};

static void multiply_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct vectors *v = ctx;
    const size_t first = chunk * CHUNK, end = min_size(v->len, first + CHUNK);

    (void)thread;
    fr_vectors_multiply(v->out + first, v->x + first, v->y + first, end - first);
}

static void subtract_scale_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct vectors *v = ctx;
    const size_t first = chunk * CHUNK, end = min_size(v->len, first + CHUNK);

    (void)thread;
    fr_vectors_subtract_scale(v->out + first, v->x + first, v->y + first, end - first, &v->factor);
}

static void vectors_run(struct backend *be, struct vectors *v,
                        void (*body)(void *ctx, size_t chunk, unsigned thread))
{
    workers_run(be->workers, (v->len + CHUNK - 1) / CHUNK, body, v);
}

/* The rows' values over the domain. */
struct rows {
    uint32_t log2_domain;
    fr_t *a, *b, *c;
};

/* a and b become values on the coset. */
static int evaluate_rows(struct backend *be, const struct rows *w, struct errmsg *err)
{
    uint32_t log2_len = w->log2_domain;
    int ret = be->ops->ntt(be, w->a, log2_len, NTT_INVERSE, err);

    if (ret == 0)
        ret = be->ops->ntt(be, w->a, log2_len, NTT_COSET, err);
    if (ret == 0)
        ret = be->ops->ntt(be, w->b, log2_len, NTT_INVERSE, err);
    if (ret == 0)
        ret = be->ops->ntt(be, w->b, log2_len, NTT_COSET, err);
    return ret;
}

/* 1 / (g^m - 1) */
static fr_t vanishing_inverse(uint32_t log2_domain)
{
    fr_t shift = domain_coset_shift(), one = fr_from_u64(1);
    fr_t z = fr_power(&shift, (uint64_t)1 << log2_domain);

    fr_sub(&z, &z, &one);
    fr_inverse(&z, &z);
    return z;
}

/* The values of A B on the coset come to stand in w->a; w->b is overwritten. */
static int compute_e(struct backend *be, const struct rows *w, struct errmsg *err)
{
    struct vectors v = {.out = w->a, .x = w->a, .y = w->b, .len = (size_t)1 << w->log2_domain};
    int ret = evaluate_rows(be, w, err);

    if (ret == 0)
        vectors_run(be, &v, multiply_chunk);
    return ret;
}

/* The coefficients of h come to stand in w->a; w->b is overwritten, w->c is room for c. */
static int compute_h(struct backend *be, const struct rows *w, struct errmsg *err)
{
    size_t m = (size_t)1 << w->log2_domain;
    struct vectors v = {.out = w->c, .x = w->a, .y = w->b, .len = m};

    vectors_run(be, &v, multiply_chunk);
    int ret = be->ops->ntt(be, w->c, w->log2_domain, NTT_INVERSE, err);
    if (ret == 0)
        ret = compute_e(be, w, err);
    if (ret == 0)
        ret = be->ops->ntt(be, w->a, w->log2_domain, NTT_COSET_INVERSE, err);
    if (ret < 0)
        return ret;
    v = (struct vectors){
        .out = w->a, .x = w->a, .y = w->c, .len = m, .factor = vanishing_inverse(w->log2_domain)};
    vectors_run(be, &v, subtract_scale_chunk);
    /* h has degree m - 2 at most, whatever the assignment: else a transform was wrong. */
    if (!fr_is_zero(&w->a[m - 1]))
        return errmsg_set(err, -EBADMSG, "h has a coefficient too many: %s transforms are wrong",
                          be->ops->name);
    return 0;
}

static int check_count(const char *what, uint64_t found, uint64_t wanted, struct errmsg *err)
{
    if (found == wanted)
        return 0;
    return errmsg_set(err, -EINVAL, "parameters have %llu points in %s, the circuit wants %llu",
                      (unsigned long long)found, what, (unsigned long long)wanted);
}

static int check_counts(const struct srs *srs, const struct srs_counts *want, struct errmsg *err)
{
    int ret = check_count("ic", srs->vk.ic_len, want->ic, err);

    if (ret == 0)
        ret = check_count("h", srs->h_len, want->h + srs->transformed, err);
    if (ret == 0)
        ret = check_count("l", srs->l_len, want->l, err);
    if (ret == 0)
        ret = check_count("a", srs->a_len, want->a, err);
    if (ret == 0)
        ret = check_count("b", srs->b_len, want->b, err);
    return ret;
}

static struct srs_counts assignment_counts(const struct assignment *w)
{
    return (struct srs_counts){
        .ic = w->n_inputs,
        .h = ((size_t)1 << w->log2_domain) - 1,
        .l = w->n_aux,
        .a = (size_t)w->n_inputs + w->a_aux_total,
        .b = (size_t)w->b_input_total + w->b_aux_total,
    };
}

static struct srs_counts circuit_counts(const struct circuit *c)
{
    return (struct srs_counts){
        .ic = c->n_inputs,
        .h = ((size_t)1 << c->log2_domain) - 1,
        .l = c->n_aux,
        .a = (size_t)c->n_inputs + circuit_density_total(c, c->a_rank),
        .b = (size_t)CIRCUIT_B_INPUTS + circuit_density_total(c, c->b_rank),
    };
}

/* Appends the values whose bit is set (all of them with density == NULL) and returns the new length. */
static size_t gather(fr_t *out, size_t at, const fr_t *values, const uint64_t *density, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!density || density[i / 64] >> (i % 64) & 1)
            out[at++] = values[i];
    return at;
}

/* With transformed parameters the inputs have points beside those of l. */
static int sum_inputs(struct backend *be, const struct srs *srs, const fr_t *inputs, g1_t *l,
                      struct errmsg *err)
{
    g1_t sum;
    int ret =
        srs->transformed ? be->ops->msm_g1(be, &sum, srs->input_l, inputs, srs->vk.ic_len, err) : 0;

    if (ret == 0 && srs->transformed)
        blst_p1_add_or_double(l, l, &sum);
    return ret;
}

/* The sums over the variables that occur in A and B, whose values are gathered in `scalars`. */
static int sum_dense(struct backend *be, const struct srs *srs, const struct assignment *w,
                     fr_t *scalars, struct groth16_sums *out, struct errmsg *err)
{
    size_t len = gather(scalars, 0, w->inputs, NULL, w->n_inputs);

    len = gather(scalars, len, w->aux, w->a_aux_density, w->n_aux);
    int ret = be->ops->msm_g1(be, &out->a, srs->a, scalars, len, err);
    if (ret < 0)
        return ret;
    len = gather(scalars, 0, w->inputs, w->b_input_density, w->n_inputs);
    len = gather(scalars, len, w->aux, w->b_aux_density, w->n_aux);
    ret = be->ops->msm_g1(be, &out->b_g1, srs->b_g1, scalars, len, err);
    if (ret < 0)
        return ret;
    return be->ops->msm_g2(be, &out->b_g2, srs->b_g2, scalars, len, err);
}

static int sum_variables(struct backend *be, const struct srs *srs, const struct assignment *w,
                         struct groth16_sums *out, struct errmsg *err)
{
    size_t len = srs->a_len > srs->b_len ? srs->a_len : srs->b_len;
    int ret = be->ops->msm_g1(be, &out->l, srs->l, w->aux, w->n_aux, err);

    if (ret == 0)
        ret = sum_inputs(be, srs, w->inputs, &out->l, err);
    if (ret < 0)
        return ret;
    size_t mark = arena_mark(be->scratch);
    fr_t *scalars =
        arena_carve(be->scratch, len * sizeof(*scalars)); /* groth16_prepare saw to it */
    ret = sum_dense(be, srs, w, scalars, out, err);
    arena_rewind(be->scratch, mark);
    return ret;
}

/* The terms of queries a and b: all values that have a point there, and the bits. */
static struct msm_terms dense_terms(const struct compact *w, const uint32_t *points,
                                    const uint64_t *density, const uint32_t *rank,
                                    uint32_t n_inputs)
{
    return (struct msm_terms){.scalars = w->values,
                              .point_of = points,
                              .len = w->circuit->n_values,
                              .ones = w->bits,
                              .dense = density,
                              .rank = rank,
                              .ones_len = w->circuit->n_aux,
                              .first = n_inputs};
}

/* The same sums from a compact witness. Query l has a point for every aux variable. */
static int sum_compact(struct backend *be, const struct srs *srs, const struct compact *w,
                       struct groth16_sums *out, struct errmsg *err)
{
    const struct circuit *c = w->circuit;
    const struct msm_terms l = {.scalars = w->values + c->n_inputs,
                                .point_of = c->value_aux,
                                .len = c->n_values - c->n_inputs,
                                .ones = w->bits,
                                .ones_len = c->n_aux},
                           a = dense_terms(w, c->a_points, c->a_density, c->a_rank, c->n_inputs),
                           b = dense_terms(w, c->b_points, c->b_density, c->b_rank,
                                           CIRCUIT_B_INPUTS);

    int ret = be->ops->sum_g1(be, &out->l, srs->l, &l, err);
    if (ret == 0)
        ret = sum_inputs(be, srs, w->values, &out->l, err);
    if (ret == 0)
        ret = be->ops->sum_g1(be, &out->a, srs->a, &a, err);
    if (ret == 0)
        ret = be->ops->sum_g1(be, &out->b_g1, srs->b_g1, &b, err);
    return ret == 0 ? be->ops->sum_g2(be, &out->b_g2, srs->b_g2, &b, err) : ret;
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- what a proof needs ---- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Of an expanded witness: first c beside a and b, then the gathered scalars and what a sum needs. */
static size_t expanded_scratch_bytes(const struct srs_counts *n, size_t sum)
{
    return larger(arena_carved_bytes((n->h + 1) * sizeof(fr_t)),
                  arena_carved_bytes(larger(n->a, n->b) * sizeof(fr_t)) + sum);
}

/* Of a compact one: first a, b and c, then h in place of a and what the sum over it needs. */
static size_t compact_scratch_bytes(const struct srs_counts *n, size_t sum)
{
    size_t vector = arena_carved_bytes((n->h + 1) * sizeof(fr_t));

    return vector + larger(2 * vector, sum);
}

size_t groth16_scratch_bytes(const struct backend *be, const struct srs_counts *n)
{
    size_t longest = larger(larger(n->h + 1, n->l), larger(n->a, n->b)), sum = 0;

    if (be->ops->start)
        return 0;
    if (be->ops->msm_scratch_bytes)
        sum = be->ops->msm_scratch_bytes(be, longest);
    return larger(expanded_scratch_bytes(n, sum),
                  be->ops->takes_compact ? compact_scratch_bytes(n, sum) : 0);
}

static int reserve_scratch(struct backend *be, const struct srs *srs, struct errmsg *err)
{
    const struct srs_counts n = {
        .h = srs->h_len - srs->transformed, .l = srs->l_len, .a = srs->a_len, .b = srs->b_len};
    size_t bytes = groth16_scratch_bytes(be, &n);

    return bytes ? backend_reserve(be, bytes, err) : 0;
}

int groth16_prepare(struct backend *be, const struct srs *srs, backend_progress progress,
                    void *progress_ctx, struct errmsg *err)
{
    int ret = reserve_scratch(be, srs, err);

    if (ret == 0 && be->ops->load)
        ret = be->ops->load(be, srs, NULL, progress, progress_ctx, err);
    return ret;
}

static int check_compact(const struct backend *be, const struct srs *srs, const struct circuit *c,
                         struct errmsg *err)
{
    const struct srs_counts want = circuit_counts(c);

    if (!be->ops->takes_compact)
        return errmsg_set(err, -EINVAL, "%s proves expanded witnesses alone", be->ops->name);
    return check_counts(srs, &want, err);
}

int groth16_prepare_compact(struct backend *be, const struct srs *srs,
                            const struct circuit *circuit, backend_progress progress,
                            void *progress_ctx, struct errmsg *err)
{
    int ret = check_compact(be, srs, circuit, err);

    if (ret == 0)
        ret = reserve_scratch(be, srs, err);
    if (ret == 0 && be->ops->load)
        ret = be->ops->load(be, srs, circuit, progress, progress_ctx, err);
    return ret;
}

/* ---- the two steps ---- */

/* What the points of h are multiplied by, and the sum. What is carved from `mark` on is given back in between. */
static int start_rows(struct groth16_ticket *t, const struct rows *rows, size_t mark,
                      struct errmsg *err)
{
    struct backend *be = t->be;
    double begin = now_ms();
    int ret = t->srs->transformed ? compute_e(be, rows, err) : compute_h(be, rows, err);

    arena_rewind(be->scratch, mark);
    t->transform_ms = now_ms() - begin;
    if (ret == 0)
        ret = be->ops->msm_g1(be, &t->sums.h, t->srs->h, rows->a, t->srs->h_len, err);
    return ret;
}

/* groth16_prepare saw to the scratch. */
static int start(struct groth16_ticket *t, struct errmsg *err)
{
    struct arena *scratch = t->be->scratch;
    struct rows rows = {.log2_domain = t->w->log2_domain, .a = t->w->a, .b = t->w->b};
    size_t mark = arena_mark(scratch);

    rows.c = arena_carve(scratch, sizeof(fr_t) << rows.log2_domain);
    return start_rows(t, &rows, mark, err);
}

/* The rows' values are in scratch memory too, and a, which becomes h, stays for its sum. */
static int start_compact(struct groth16_ticket *t, struct errmsg *err)
{
    struct arena *scratch = t->be->scratch;
    struct rows rows = {.log2_domain = t->compact->circuit->log2_domain};
    size_t bytes = sizeof(fr_t) << rows.log2_domain, first = arena_mark(scratch);

    rows.a = arena_carve(scratch, bytes);
    size_t mark = arena_mark(scratch);
    rows.b = arena_carve(scratch, bytes);
    rows.c = arena_carve(scratch, bytes);
    compact_all_rows(t->compact, t->be->workers, rows.a, rows.b);
    int ret = start_rows(t, &rows, mark, err);
    arena_rewind(scratch, first);
    return ret;
}

int groth16_prove_start(struct backend *be, const struct srs *srs, struct assignment *w,
                        struct groth16_ticket *ticket, struct errmsg *err)
{
    double begin = now_ms();
    const struct srs_counts want = assignment_counts(w);
    int ret = be->ops->finish_proof ? 0 : check_counts(srs, &want, err);

    if (ret == 0 && !be->ops->start)
        ret = groth16_prepare(be, srs, NULL, NULL, err);
    if (ret < 0)
        return ret;
    *ticket = (struct groth16_ticket){.be = be, .srs = srs, .w = w};
    ret = be->ops->start ? be->ops->start(be, ticket, err) : start(ticket, err);
    ticket->start_ms = now_ms() - begin;
    return ret;
}

int groth16_prove_start_compact(struct backend *be, const struct srs *srs, const struct compact *w,
                                struct groth16_ticket *ticket, struct errmsg *err)
{
    double begin = now_ms();
    int ret = be->ops->start ? check_compact(be, srs, w->circuit, err)
                             : groth16_prepare_compact(be, srs, w->circuit, NULL, NULL, err);

    if (ret < 0)
        return ret;
    *ticket = (struct groth16_ticket){.be = be, .srs = srs, .compact = w};
    ret = be->ops->start ? be->ops->start(be, ticket, err) : start_compact(ticket, err);
    ticket->start_ms = now_ms() - begin;
    return ret;
}

/* The remaining sums. */
static int finish_sums(struct groth16_ticket *t, struct errmsg *err)
{
    double begin = now_ms();
    int ret;

    if (t->be->ops->finish)
        ret = t->be->ops->finish(t->be, t, err);
    else if (t->compact)
        ret = sum_compact(t->be, t->srs, t->compact, &t->sums, err);
    else
        ret = sum_variables(t->be, t->srs, t->w, &t->sums, err);
    t->finish_ms = now_ms() - begin;
    return ret;
}

void groth16_prove_abort(struct groth16_ticket *t)
{
    if (t->be->ops->abort)
        t->be->ops->abort(t->be, t);
}

int groth16_sums(struct backend *be, const struct srs *srs, struct assignment *w,
                 struct groth16_sums *out, struct errmsg *err)
{
    struct groth16_ticket ticket;
    int ret = groth16_prove_start(be, srs, w, &ticket, err);

    if (ret == 0)
        ret = finish_sums(&ticket, err);
    if (ret == 0)
        *out = ticket.sums;
    return ret;
}

int groth16_sums_compact(struct backend *be, const struct srs *srs, const struct compact *w,
                         struct groth16_sums *out, struct errmsg *err)
{
    struct groth16_ticket ticket;
    int ret = groth16_prove_start_compact(be, srs, w, &ticket, err);

    if (ret == 0)
        ret = finish_sums(&ticket, err);
    if (ret == 0)
        *out = ticket.sums;
    return ret;
}

/* ---- a proof of its sums ---- */

static void g1_add_affine(g1_t *out, const g1_affine_t *p)
{
    blst_p1_add_or_double_affine(out, out, p);
}

static void g1_mul_affine_add(g1_t *out, const g1_affine_t *base, const fr_t *scalar)
{
    g1_t p;

    blst_p1_from_affine(&p, base);
    g1_mul_add(out, &p, scalar);
}

/* B = beta + SB2 + s delta */
static void assemble_b(const struct vk *vk, const struct groth16_sums *sums, const fr_t *s,
                       g2_affine_t *out)
{
    g2_t b = sums->b_g2, delta;

    blst_p2_add_or_double_affine(&b, &b, &vk->beta_g2);
    blst_p2_from_affine(&delta, &vk->delta_g2);
    g2_mul_add(&b, &delta, s);
    blst_p2_to_affine(out, &b);
}

/* C = H + L + s SA + r SB1 + s alpha + r beta + r s delta */
static void assemble_c(const struct vk *vk, const struct groth16_sums *sums, const fr_t *r,
                       const fr_t *s, g1_affine_t *out)
{
    fr_t rs;
    g1_t c = sums->h;

    fr_mul(&rs, r, s);
    blst_p1_add_or_double(&c, &c, &sums->l);
    g1_mul_add(&c, &sums->a, s);
    g1_mul_add(&c, &sums->b_g1, r);
    g1_mul_affine_add(&c, &vk->alpha_g1, s);
    g1_mul_affine_add(&c, &vk->beta_g1, r);
    g1_mul_affine_add(&c, &vk->delta_g1, &rs);
    blst_p1_to_affine(out, &c);
    explicit_bzero(&rs, sizeof(rs));
}

void groth16_assemble(const struct vk *vk, const struct groth16_sums *sums, const fr_t *r,
                      const fr_t *s, struct proof *out)
{
    g1_t a = sums->a; /* A = alpha + SA + r delta */

    g1_add_affine(&a, &vk->alpha_g1);
    g1_mul_affine_add(&a, &vk->delta_g1, r);
    blst_p1_to_affine(&out->a, &a);
    assemble_b(vk, sums, s, &out->b);
    assemble_c(vk, sums, r, s, &out->c);
}

/* Uniform below the modulus: 255 random bits, again until they are. */
static int draw_scalar(fr_t *out, struct errmsg *err)
{
    scalar_t drawn;
    bool done = false;

    while (!done) {
        ssize_t n = getrandom(drawn.b, sizeof(drawn.b), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof(drawn.b))
            return errmsg_set(err, n < 0 ? -errno : -EIO, "no randomness from the kernel");
        drawn.b[31] &= 0x7f; /* little endian */
        done = blst_scalar_fr_check(&drawn);
    }
    blst_fr_from_scalar(out, &drawn);
    explicit_bzero(&drawn, sizeof(drawn));
    return 0;
}

/* What leaves here is read back first: a proof that cannot be decoded shows a fault of this machine. */
static int encode(const struct groth16_ticket *t, const fr_t *r, const fr_t *s,
                  uint8_t out[PROOF_BYTES], struct errmsg *err)
{
    struct proof proof, again;
    uint8_t bytes[PROOF_BYTES];

    groth16_assemble(&t->srs->vk, &t->sums, r, s, &proof);
    proof_encode(bytes, &proof);
    int ret = proof_decode(&again, bytes, err);
    if (ret < 0)
        return errmsg_prefix(err, ret, "the proof just made");
    memcpy(out, bytes, PROOF_BYTES);
    return 0;
}

int groth16_prove_finish(struct groth16_ticket *ticket, uint8_t proof[PROOF_BYTES],
                         struct errmsg *err)
{
    fr_t r = {0}, s = {0};

    if (ticket->be->ops->finish_proof)
        return ticket->be->ops->finish_proof(ticket->be, ticket, proof, err);
    int ret = finish_sums(ticket, err);

    if (ret == 0)
        ret = draw_scalar(&r, err);
    if (ret == 0)
        ret = draw_scalar(&s, err);
    if (ret == 0)
        ret = encode(ticket, &r, &s, proof, err);
    explicit_bzero(&r, sizeof(r));
    explicit_bzero(&s, sizeof(s));
    return ret;
}

int groth16_prove(struct backend *be, const struct srs *srs, struct assignment *w,
                  struct proof *out, struct errmsg *err)
{
    struct groth16_ticket ticket;
    uint8_t bytes[PROOF_BYTES];
    int ret = groth16_prove_start(be, srs, w, &ticket, err);

    if (ret == 0)
        ret = groth16_prove_finish(&ticket, bytes, err);
    return ret == 0 ? proof_decode(out, bytes, err) : ret;
}
