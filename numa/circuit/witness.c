/*
 * A sink that stores values and evaluates A and B of each row over them. The header goes first; then every
 * challenge is a work item of its own, with its own ranges of variables and rows.
 */
#include "numa/circuit/witness.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "numa/memory.h"

#define LINE 64 /* bytes; arrays begin at multiples */

static size_t density_words(uint32_t bits)
{
    return ((size_t)bits + 63) / 64;
}

static size_t round_up(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

void assignment_parts(const struct sector_size *size, struct assignment_parts *out)
{
    struct porep_counts n;

    porep_counts(size, &n);
    out->witness_bytes = round_up(n.inputs * sizeof(fr_t)) + round_up(n.aux * sizeof(fr_t)) +
                         round_up(density_words(n.inputs) * sizeof(uint64_t)) +
                         2 * round_up(density_words(n.aux) * sizeof(uint64_t));
    out->evaluation_bytes = 2 * (sizeof(fr_t) << n.log2_domain);
}

size_t assignment_bytes(const struct sector_size *size)
{
    struct assignment_parts parts;

    assignment_parts(size, &parts);
    return sizeof(struct assignment) + parts.witness_bytes + parts.evaluation_bytes;
}

/* The next `bytes` of *memory. */
static void *take(char **memory, size_t bytes)
{
    char *p = *memory;

    *memory += round_up(bytes);
    return p;
}

void assignment_place(const struct sector_size *size, void *witness, void *evaluation,
                      struct assignment *out)
{
    struct porep_counts n;
    char *next = witness;

    porep_counts(size, &n);
    *out = (struct assignment){.size = size,
                               .n_inputs = n.inputs,
                               .n_aux = n.aux,
                               .n_rows = n.rows,
                               .log2_domain = n.log2_domain};
    out->inputs = take(&next, n.inputs * sizeof(fr_t));
    out->aux = take(&next, n.aux * sizeof(fr_t));
    out->a_aux_density = take(&next, density_words(n.aux) * sizeof(uint64_t));
    out->b_input_density = take(&next, density_words(n.inputs) * sizeof(uint64_t));
    out->b_aux_density = take(&next, density_words(n.aux) * sizeof(uint64_t));
    out->a = evaluation;
    out->b = out->a + ((size_t)1 << n.log2_domain);
}

void assignment_destroy(struct assignment *w)
{
    if (!w)
        return;
    free(w->inputs); /* where its part begins */
    free(w->a);
    free(w);
}

static int assignment_create(const struct sector_size *size, struct assignment **out,
                             struct errmsg *err)
{
    struct assignment_parts parts;

    assignment_parts(size, &parts);
    struct assignment *w = calloc(1, sizeof(*w));
    void *witness = memory_alloc(parts.witness_bytes, 1);
    void *evaluation = memory_alloc(parts.evaluation_bytes, 1);
    if (!w || !witness || !evaluation) {
        free(w);
        free(witness);
        free(evaluation);
        return errmsg_set(err, -ENOMEM, "no memory for an assignment of %zu bytes",
                          assignment_bytes(size));
    }
    assignment_place(size, witness, evaluation, w);
    *out = w;
    return 0;
}

/* What rows add to, and what no row writes. */
static void clear(struct assignment *w)
{
    size_t beyond = (((size_t)1 << w->log2_domain) - w->n_rows) * sizeof(fr_t);

    memset(w->a + w->n_rows, 0, beyond);
    memset(w->b + w->n_rows, 0, beyond);
    memset(w->a_aux_density, 0, density_words(w->n_aux) * sizeof(uint64_t));
    memset(w->b_input_density, 0, density_words(w->n_inputs) * sizeof(uint64_t));
    memset(w->b_aux_density, 0, density_words(w->n_aux) * sizeof(uint64_t));
}

/* Where one synthesis writes. */
struct writer {
    struct assignment *w;
    /* Words of the densities that belong to this synthesis alone; others may share the rest. */
    size_t own_first, own_end;
};

static struct writer writer_for(struct assignment *w, uint32_t aux_first, uint32_t aux_end)
{
    return (struct writer){.w = w, .own_first = (aux_first + 63) / 64, .own_end = aux_end / 64};
}

static void write_input(void *ctx, uint32_t index, const fr_t *value)
{
    ((struct writer *)ctx)->w->inputs[index] = *value;
}

static void write_aux(void *ctx, uint32_t index, const fr_t *value)
{
    ((struct writer *)ctx)->w->aux[index] = *value;
}

static const fr_t *value_of(const struct assignment *w, cs_var var)
{
    return var & CS_AUX ? &w->aux[var & ~CS_AUX] : &w->inputs[var];
}

/* The combination's value. Nearly all variables are bits and nearly all coefficients small, so a
 * multiplication is the exception. */
static fr_t evaluate(const struct assignment *w, const struct cs_lc *lc)
{
    static const fr_t one = FR_ONE;
    fr_t sum = {{0}}, product;

    for (size_t i = 0; i < lc->len; i++) {
        const fr_t *value = value_of(w, lc->terms[i].var), *coeff = &lc->terms[i].coeff;
        if (fr_is_zero(value))
            continue;
        if (fr_equal(value, &one)) {
            fr_add(&sum, &sum, coeff);
        } else if (fr_equal(coeff, &one)) {
            fr_add(&sum, &sum, value);
        } else {
            fr_mul(&product, value, coeff);
            fr_add(&sum, &sum, &product);
        }
    }
    return sum;
}

static void set_bit(const struct writer *wr, uint64_t *density, uint32_t index)
{
    const size_t word = index / 64;
    const uint64_t bit = UINT64_C(1) << (index % 64);

    if (word >= wr->own_first && word < wr->own_end)
        density[word] |= bit;
    else if (!(__atomic_load_n(&density[word], __ATOMIC_RELAXED) & bit))
        __atomic_fetch_or(&density[word], bit, __ATOMIC_RELAXED);
}

static void write_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                      const struct cs_lc *c)
{
    const struct writer *wr = ctx;
    struct assignment *w = wr->w;

    (void)c; /* a * b */
    w->a[row] = evaluate(w, a);
    w->b[row] = evaluate(w, b);
    for (size_t i = 0; i < a->len; i++)
        if (a->terms[i].var & CS_AUX)
            set_bit(wr, w->a_aux_density, a->terms[i].var & ~CS_AUX);
    for (size_t i = 0; i < b->len; i++) {
        if (b->terms[i].var & CS_AUX)
            set_bit(wr, w->b_aux_density, b->terms[i].var & ~CS_AUX);
        else
            set_bit(wr, w->b_input_density, b->terms[i].var);
    }
}

static struct cs_sink writer_sink(struct writer *wr)
{
    return (struct cs_sink){.row = write_row, .input = write_input, .aux = write_aux, .ctx = wr};
}

/* The work that is shared out. */
struct job {
    const struct c1 *c1;
    uint32_t partition;
    struct assignment *w;
    struct porep_roots roots;
    struct porep_header header;
    atomic_int ret;      /* 0 or the first error */
    struct errmsg *errs; /* one for each challenge */
};

static void assign_challenge(void *ctx, size_t item, unsigned thread)
{
    struct job *job = ctx;
    struct porep_challenge challenge;
    const uint32_t i = (uint32_t)item;
    struct cs start, end, cs;

    (void)thread;
    if (atomic_load(&job->ret) < 0)
        return;
    int ret =
        porep_read_challenge(job->c1, job->partition, i, &job->roots, &challenge, &job->errs[i]);
    if (ret < 0) {
        atomic_store(&job->ret, ret);
        return;
    }
    porep_challenge_start(job->w->size, i, &start);
    porep_challenge_start(job->w->size, i + 1, &end);
    struct writer writer = writer_for(job->w, start.n_aux, end.n_aux);
    const struct cs_sink sink = writer_sink(&writer);
    cs_init_at(&cs, &sink, &start);
    porep_synthesize_challenge(&cs, job->w->size, &job->header, &challenge);
}

static uint32_t count_bits(const uint64_t *density, uint32_t bits)
{
    uint32_t n = 0;

    for (size_t i = 0; i < density_words(bits); i++)
        n += (uint32_t)__builtin_popcountll(density[i]);
    return n;
}

static void close_rows(struct assignment *w)
{
    struct writer writer = writer_for(w, 0, 0);
    const struct cs_sink sink = writer_sink(&writer);
    struct cs cs, end;

    porep_challenge_start(w->size, w->size->challenges, &end);
    cs_init_at(&cs, &sink, &end);
    cs_close(&cs);
}

/* Header, challenges side by side, closing rows. */
static int assign(struct job *job, struct workers *workers, struct errmsg *err)
{
    struct assignment *w = job->w;
    struct writer writer = writer_for(w, 0, 0);
    const struct cs_sink sink = writer_sink(&writer);
    struct cs cs;

    porep_read_roots(job->c1, job->partition, &job->roots);
    cs_init(&cs, &sink);
    porep_synthesize_header(&cs, &job->roots, &job->header);
    workers_run(workers, w->size->challenges, assign_challenge, job);
    int ret = atomic_load(&job->ret);
    for (uint32_t i = 0; ret < 0 && i < w->size->challenges; i++)
        if (job->errs[i].text[0])
            return errmsg_set(err, ret, "%s", job->errs[i].text);
    if (ret < 0)
        return ret;
    close_rows(w);
    w->a_aux_total = count_bits(w->a_aux_density, w->n_aux);
    w->b_input_total = count_bits(w->b_input_density, w->n_inputs);
    w->b_aux_total = count_bits(w->b_aux_density, w->n_aux);
    return 0;
}

int witness_fill(const struct c1 *c1, uint32_t partition, struct workers *workers,
                 struct assignment *w, struct errmsg *err)
{
    struct job job = {.c1 = c1, .partition = partition, .w = w};

    assert(w->size == c1_size(c1));
    job.errs = calloc(w->size->challenges, sizeof(*job.errs));
    if (!job.errs)
        return errmsg_set(err, -ENOMEM, "no memory");
    clear(w);
    int ret = assign(&job, workers, err);
    free(job.errs);
    return ret;
}

int witness_assign(const struct c1 *c1, uint32_t partition, struct workers *workers,
                   struct assignment **out, struct errmsg *err)
{
    struct assignment *w = NULL;
    int ret = assignment_create(c1_size(c1), &w, err);

    if (ret == 0)
        ret = witness_fill(c1, partition, workers, w, err);
    if (ret == 0) {
        *out = w;
        w = NULL; /* now the caller's */
    }
    assignment_destroy(w);
    return ret;
}
