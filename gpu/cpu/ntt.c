/*
 * Two phases (Bailey's four-step scheme). With len = rows * columns, index n = columns * n1 + n2 and output
 * k = k1 + rows * k2:
 *
 *     phase one    for each n2:  a transform over n1, giving k1; then a factor for each (n2, k1)
 *     phase two    for each k1:  a transform over n2, giving k2
 *
 * Each phase takes LANES neighbouring columns of a matrix into a block that stays in the second-level cache, transforms
 * them there side by side, and writes the block back: phase one as rows of the scratch matrix, so that phase two sees
 * columns again, phase two as columns of the result, in natural order. Taking columns in bit-reversed order costs
 * nothing, for they are copied anyway.
 *
 * Cosets and the 1/len of the inverse hide in tables. A transform over a shifted domain s * H differs from the plain
 * one only in its factors: at the level of length 2h they are s^(rows/2h) * root^j instead of root^j. What remains of
 * a shift depends on n2 or on k1 alone and goes into the factors between the phases; the inverse coset's powers of k2
 * are multiplied in at the end.
 */
#include "gpu/cpu/ntt.h"

#include <errno.h>
#include <stdlib.h>

#include "gpu/domain.h"

#define LANES 4

/* Factors of one transform of `len` over a coset: entry h + j belongs to level 2h, for j < h. */
struct factors {
    uint32_t log2_len;
    fr_t *w;
};

/* What differs between the kinds of transform. */
struct passes {
    struct factors rows, columns; /* of the transforms over n1 and over n2 */
    /* Between the phases, element (n2, k1) is multiplied by start * column^n2 * (step * root^n2)^k1. */
    fr_t start, column, step, root;
    fr_t *scale; /* of k2 at the end; NULL: none */
};

struct ntt_plan {
    uint32_t log2_len, log2_rows, log2_columns;
    struct passes passes[4]; /* by enum ntt_kind */
    fr_t *scratch;           /* the matrix between the phases */
    fr_t *blocks;            /* LANES columns for each thread */
    unsigned threads;
};

static int factors_init(struct factors *f, uint32_t log2_len, const fr_t *root, const fr_t *shift)
{
    f->log2_len = log2_len;
    f->w = malloc(sizeof(*f->w) << log2_len);
    if (!f->w)
        return -ENOMEM;
    fr_t level_root = *root, level_shift = *shift; /* of the longest level */
    f->w[0] = fr_from_u64(1);                      /* unused */
    for (size_t half = (size_t)1 << log2_len >> 1; half > 0; half /= 2) {
        f->w[half] = level_shift;
        for (size_t j = 1; j < half; j++)
            fr_mul(&f->w[half + j], &f->w[half + j - 1], &level_root);
        fr_sqr(&level_root, &level_root);
        fr_sqr(&level_shift, &level_shift);
    }
    return 0;
}

static int scale_init(struct passes *p, size_t len, const fr_t *ratio)
{
    p->scale = malloc(len * sizeof(*p->scale));
    if (!p->scale)
        return -ENOMEM;
    p->scale[0] = fr_from_u64(1);
    for (size_t i = 1; i < len; i++)
        fr_mul(&p->scale[i], &p->scale[i - 1], ratio);
    return 0;
}

static int passes_init(struct ntt_plan *plan, enum ntt_kind kind)
{
    struct passes *p = &plan->passes[kind];
    bool inverse = kind == NTT_INVERSE || kind == NTT_COSET_INVERSE;
    fr_t one = fr_from_u64(1), row_shift = one;
    uint64_t rows = (uint64_t)1 << plan->log2_rows, columns = (uint64_t)1 << plan->log2_columns;

    p->root = domain_root(plan->log2_len);
    p->start = p->column = p->step = one;
    if (inverse) {
        fr_t len = fr_from_u64(rows * columns);
        fr_inverse(&p->root, &p->root);
        fr_inverse(&p->start, &len);
    }
    if (kind == NTT_COSET) {
        p->column = domain_coset_shift();
        row_shift = fr_power(&p->column, columns);
    }
    int ret = 0;
    if (kind == NTT_COSET_INVERSE) {
        fr_t shift = domain_coset_shift();
        fr_inverse(&p->step, &shift);
        fr_t ratio = fr_power(&p->step, rows);
        ret = scale_init(p, columns, &ratio);
    }
    fr_t row_root = fr_power(&p->root, columns), column_root = fr_power(&p->root, rows);
    if (ret == 0)
        ret = factors_init(&p->rows, plan->log2_rows, &row_root, &row_shift);
    if (ret == 0)
        ret = factors_init(&p->columns, plan->log2_columns, &column_root, &one);
    return ret;
}

int ntt_plan_create(uint32_t log2_len, struct workers *workers, struct ntt_plan **out,
                    struct errmsg *err)
{
    if (log2_len > DOMAIN_LOG2_LEN_MAX)
        return errmsg_set(err, -EINVAL, "no domain of 2^%u elements: 2^%u is the longest", log2_len,
                          DOMAIN_LOG2_LEN_MAX);

    struct ntt_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return errmsg_set(err, -ENOMEM, "no memory for a transform");
    plan->log2_len = log2_len;
    plan->log2_rows = (log2_len + 1) / 2;
    plan->log2_columns = log2_len / 2;
    plan->threads = workers_count(workers);
    plan->scratch = malloc(sizeof(fr_t) << log2_len);
    plan->blocks = calloc(plan->threads * LANES << plan->log2_rows, sizeof(fr_t));
    int ret = plan->scratch && plan->blocks ? 0 : -ENOMEM;
    for (int kind = 0; ret == 0 && kind < (int)ARRAY_LEN(plan->passes); kind++)
        ret = passes_init(plan, (enum ntt_kind)kind);
    if (ret < 0) {
        ntt_plan_destroy(plan);
        return errmsg_set(err, ret, "no memory for a transform of 2^%u elements", log2_len);
    }
    *out = plan;
    return 0;
}

void ntt_plan_destroy(struct ntt_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < ARRAY_LEN(plan->passes); i++) {
        free(plan->passes[i].rows.w);
        free(plan->passes[i].columns.w);
        free(plan->passes[i].scale);
    }
    free(plan->scratch);
    free(plan->blocks);
    free(plan);
}

uint32_t ntt_plan_log2_len(const struct ntt_plan *plan)
{
    return plan->log2_len;
}

/* LANES transforms side by side: element i of lane l is x[i * LANES + l], taken in bit-reversed order. */
static void block_transform(fr_t *x, const struct factors *f)
{
    size_t len = (size_t)1 << f->log2_len;

    for (size_t half = 1; half < len; half *= 2)
        for (size_t start = 0; start < len; start += 2 * half)
            for (size_t j = 0; j < half; j++) {
                const fr_t *w = &f->w[half + j];
                fr_t *a = x + (start + j) * LANES, *b = a + half * LANES, t;
                for (size_t l = 0; l < LANES; l++) {
                    fr_mul(&t, &b[l], w);
                    fr_sub(&b[l], &a[l], &t);
                    fr_add(&a[l], &a[l], &t);
                }
            }
}

static size_t bit_reverse(size_t i, uint32_t bits)
{
    size_t out = 0;

    for (uint32_t b = 0; b < bits; b++)
        out |= (i >> b & 1) << (bits - 1 - b);
    return out;
}

/* Takes `lanes` columns from `first` on of a matrix with 2^log2_height rows. */
static void block_load(fr_t *x, const fr_t *matrix, uint32_t log2_height, size_t width,
                       size_t first, size_t lanes)
{
    for (size_t i = 0; i < (size_t)1 << log2_height; i++)
        memcpy(x + bit_reverse(i, log2_height) * LANES, matrix + i * width + first,
               lanes * sizeof(*x));
}

struct transform {
    struct ntt_plan *plan;
    const struct passes *passes;
    fr_t *v;
};

/* Writes lane `l` as row n2 of the scratch matrix, with the factors between the phases. */
static void block_store_row(const struct transform *t, const fr_t *x, size_t l, size_t n2)
{
    const struct passes *p = t->passes;
    size_t rows = (size_t)1 << t->plan->log2_rows;
    fr_t *row = t->plan->scratch + n2 * rows;
    fr_t w = fr_power(&p->column, n2), ratio = fr_power(&p->root, n2);

    fr_mul(&w, &w, &p->start);
    fr_mul(&ratio, &ratio, &p->step);
    for (size_t k1 = 0; k1 < rows; k1++) {
        fr_mul(&row[k1], &x[k1 * LANES + l], &w);
        fr_mul(&w, &w, &ratio);
    }
}

static void phase_one(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    struct ntt_plan *plan = t->plan;
    size_t columns = (size_t)1 << plan->log2_columns, first = item * LANES;
    size_t lanes = min_size(LANES, columns - first);
    fr_t *x = plan->blocks + ((size_t)thread * LANES << plan->log2_rows);

    block_load(x, t->v, plan->log2_rows, columns, first, lanes);
    block_transform(x, &t->passes->rows);
    for (size_t l = 0; l < lanes; l++)
        block_store_row(t, x, l, first + l);
}

static void phase_two(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    struct ntt_plan *plan = t->plan;
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    size_t first = item * LANES, lanes = min_size(LANES, rows - first);
    fr_t *x = plan->blocks + ((size_t)thread * LANES << plan->log2_rows);

    block_load(x, plan->scratch, plan->log2_columns, rows, first, lanes);
    block_transform(x, &t->passes->columns);
    for (size_t k2 = 0; k2 < columns; k2++) {
        fr_t *in = x + k2 * LANES;
        for (size_t l = 0; t->passes->scale && l < lanes; l++)
            fr_mul(&in[l], &in[l], &t->passes->scale[k2]);
        memcpy(t->v + k2 * rows + first, in, lanes * sizeof(*in));
    }
}

void ntt_run(struct ntt_plan *plan, struct workers *workers, fr_t *v, enum ntt_kind kind)
{
    struct transform t = {.plan = plan, .passes = &plan->passes[kind], .v = v};
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;

    workers_run(workers, (columns + LANES - 1) / LANES, phase_one, &t);
    workers_run(workers, (rows + LANES - 1) / LANES, phase_two, &t);
}
