/*
 * Two phases (Bailey's four-step scheme). With len = rows * columns, index n = columns * n1 + n2 and output
 * k = k1 + rows * k2:
 *
 *     phase one    for each n2:  a transform over n1, giving k1; then a factor for each (n2, k1)
 *     phase two    for each k1:  a transform over n2, giving k2
 *
 * Each phase takes NTT_LANES neighbouring columns of a matrix into a block that stays in the second-level cache, transforms
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

#include "gpu/cpu/features.h"
#include "gpu/cpu/ntt_plan.h"
#include "gpu/domain.h"
#include "numa/memory.h"

/* The table once more, in the form that the plan's code multiplies by. */
static int widen(const struct ntt_plan *plan, const fr_t *w, size_t len, struct wide_factors *out)
{
    if (plan->code == CPU_AVX2)
        out->avx2 = malloc(len * sizeof(*out->avx2));
    if (plan->code == CPU_IFMA)
        out->ifma = malloc(len * sizeof(*out->ifma));
    for (size_t i = 0; out->avx2 && i < len; i++)
        out->avx2[i] = fr_factor_make(&w[i]);
    for (size_t i = 0; out->ifma && i < len; i++)
        out->ifma[i] = fr_factor52_make(&w[i]);
    return plan->code == CPU_PLAIN || out->avx2 || out->ifma ? 0 : -ENOMEM;
}

static void narrow(struct wide_factors *f)
{
    free(f->avx2);
    free(f->ifma);
}

static int factors_init(const struct ntt_plan *plan, struct factors *f, uint32_t log2_len,
                        const fr_t *root, const fr_t *shift)
{
    size_t len = (size_t)1 << log2_len;
    fr_t one = fr_from_u64(1), level_root = *root, level_shift = *shift; /* of the longest level */

    f->log2_len = log2_len;
    f->plain = fr_equal(shift, &one);
    f->w = malloc(len * sizeof(*f->w));
    if (!f->w)
        return -ENOMEM;
    f->w[0] = one; /* unused */
    for (size_t half = len / 2; half > 0; half /= 2) {
        f->w[half] = level_shift;
        for (size_t j = 1; j < half; j++)
            fr_mul(&f->w[half + j], &f->w[half + j - 1], &level_root);
        fr_sqr(&level_root, &level_root);
        fr_sqr(&level_shift, &level_shift);
    }
    return widen(plan, f->w, len, &f->wide);
}

static int scale_init(const struct ntt_plan *plan, struct passes *p, size_t len, const fr_t *ratio)
{
    p->scale = malloc(len * sizeof(*p->scale));
    if (!p->scale)
        return -ENOMEM;
    p->scale[0] = fr_from_u64(1);
    for (size_t i = 1; i < len; i++)
        fr_mul(&p->scale[i], &p->scale[i - 1], ratio);
    return widen(plan, p->scale, len, &p->wide_scale);
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
        ret = scale_init(plan, p, columns, &ratio);
    }
    fr_t row_root = fr_power(&p->root, columns), column_root = fr_power(&p->root, rows);
    if (ret == 0)
        ret = factors_init(plan, &p->rows, plan->log2_rows, &row_root, &row_shift);
    if (ret == 0)
        ret = factors_init(plan, &p->columns, plan->log2_columns, &column_root, &one);
    return ret;
}

static uint32_t bit_reverse(uint32_t i, uint32_t bits)
{
    uint32_t out = 0;

    for (uint32_t b = 0; b < bits; b++)
        out |= (i >> b & 1) << (bits - 1 - b);
    return out;
}

static int order_init(struct ntt_plan *plan)
{
    uint32_t rows = 1u << plan->log2_rows, columns = 1u << plan->log2_columns;

    plan->order = malloc(((size_t)rows + columns) * sizeof(*plan->order));
    if (!plan->order)
        return -ENOMEM;
    for (uint32_t i = 0; i < rows; i++)
        plan->order[i] = bit_reverse(i, plan->log2_rows);
    for (uint32_t i = 0; i < columns; i++)
        plan->order[rows + i] = bit_reverse(i, plan->log2_columns);
    return 0;
}

/* The fastest code whose groups of columns the matrix has whole. */
static enum cpu_code choose_code(uint32_t log2_columns)
{
    size_t columns = (size_t)1 << log2_columns;

    if (columns >= NTT_LANES_IFMA && cpu_has(CPU_IFMA))
        return CPU_IFMA;
    return columns >= NTT_LANES && cpu_has(CPU_AVX2) ? CPU_AVX2 : CPU_PLAIN;
}

static size_t block_bytes(const struct ntt_plan *plan)
{
    switch (plan->code) {
    case CPU_IFMA:
        return ntt_ifma_block_bytes(plan->log2_rows);
    case CPU_AVX2:
        return ntt_avx2_block_bytes(plan->log2_rows);
    default:
        return NTT_LANES * sizeof(fr_t) << plan->log2_rows;
    }
}

static int plan_init(struct ntt_plan *plan, uint32_t log2_len, unsigned threads)
{
    plan->log2_len = log2_len;
    plan->log2_rows = (log2_len + 1) / 2;
    plan->log2_columns = log2_len / 2;
    plan->code = choose_code(plan->log2_columns);
    plan->threads = threads;
    plan->block_bytes = block_bytes(plan);
    plan->scratch = memory_alloc((size_t)1 << log2_len, sizeof(fr_t));
    plan->blocks = calloc(threads, plan->block_bytes);
    int ret = plan->scratch && plan->blocks ? order_init(plan) : -ENOMEM;
    for (int kind = 0; ret == 0 && kind < (int)ARRAY_LEN(plan->passes); kind++)
        ret = passes_init(plan, (enum ntt_kind)kind);
    return ret;
}

int ntt_plan_create(uint32_t log2_len, struct workers *workers, struct ntt_plan **out,
                    struct errmsg *err)
{
    if (log2_len > DOMAIN_LOG2_LEN_MAX)
        return errmsg_set(err, -EINVAL, "no domain of 2^%u elements: 2^%u is the longest", log2_len,
                          DOMAIN_LOG2_LEN_MAX);

    struct ntt_plan *plan = calloc(1, sizeof(*plan));
    int ret = plan ? plan_init(plan, log2_len, workers_count(workers)) : -ENOMEM;
    if (ret < 0) {
        ntt_plan_destroy(plan);
        return errmsg_set(err, ret, "no memory for a transform of 2^%u elements", log2_len);
    }
    *out = plan;
    return 0;
}

static void factors_fini(struct factors *f)
{
    free(f->w);
    narrow(&f->wide);
}

void ntt_plan_destroy(struct ntt_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < ARRAY_LEN(plan->passes); i++) {
        struct passes *p = &plan->passes[i];
        factors_fini(&p->rows);
        factors_fini(&p->columns);
        free(p->scale);
        narrow(&p->wide_scale);
    }
    free(plan->order);
    free(plan->scratch);
    free(plan->blocks);
    free(plan);
}

uint32_t ntt_plan_log2_len(const struct ntt_plan *plan)
{
    return plan->log2_len;
}

/* NTT_LANES transforms side by side: element i of lane l is x[i * NTT_LANES + l]; the input is in bit-reversed order. */
static void block_transform(fr_t *x, const struct factors *f)
{
    size_t len = (size_t)1 << f->log2_len;

    for (size_t half = 1; half < len; half *= 2)
        for (size_t start = 0; start < len; start += 2 * half)
            for (size_t j = 0; j < half; j++) {
                const fr_t *w = &f->w[half + j];
                fr_t *a = x + (start + j) * NTT_LANES, *b = a + half * NTT_LANES, t;
                for (size_t l = 0; l < NTT_LANES; l++) {
                    fr_mul(&t, &b[l], w);
                    fr_sub(&b[l], &a[l], &t);
                    fr_add(&a[l], &a[l], &t);
                }
            }
}

static fr_t *block_of(const struct ntt_plan *plan, unsigned thread)
{
    return (fr_t *)(plan->blocks + thread * plan->block_bytes);
}

/* Takes `lanes` columns of a matrix of `width` columns. */
static void block_load(fr_t *x, const fr_t *matrix, size_t height, size_t width, size_t lanes,
                       const uint32_t *order)
{
    for (size_t i = 0; i < height; i++)
        memcpy(x + (size_t)order[i] * NTT_LANES, matrix + i * width, lanes * sizeof(*x));
}

void ntt_between(const struct passes *p, size_t n2, fr_t *factor, fr_t *ratio)
{
    *factor = fr_power(&p->column, n2);
    fr_mul(factor, factor, &p->start);
    *ratio = fr_power(&p->root, n2);
    fr_mul(ratio, ratio, &p->step);
}

/* Writes lane `l` as row n2 of the scratch matrix, with the factors between the phases. */
static void block_store_row(const struct transform *t, const fr_t *x, size_t l, size_t n2)
{
    size_t rows = (size_t)1 << t->plan->log2_rows;
    fr_t *row = t->plan->scratch + n2 * rows, w, ratio;

    ntt_between(t->passes, n2, &w, &ratio);
    for (size_t k1 = 0; k1 < rows; k1++) {
        fr_mul(&row[k1], &x[k1 * NTT_LANES + l], &w);
        fr_mul(&w, &w, &ratio);
    }
}

static void phase_one(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    const struct ntt_plan *plan = t->plan;
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    size_t first = item * NTT_LANES, lanes = min_size(NTT_LANES, columns - first);
    fr_t *x = block_of(plan, thread);

    block_load(x, t->v + first, rows, columns, lanes, ntt_row_order(plan));
    block_transform(x, &t->passes->rows);
    for (size_t l = 0; l < lanes; l++)
        block_store_row(t, x, l, first + l);
}

static void phase_two(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    const struct ntt_plan *plan = t->plan;
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    size_t first = item * NTT_LANES, lanes = min_size(NTT_LANES, rows - first);
    fr_t *x = block_of(plan, thread);

    block_load(x, plan->scratch + first, columns, rows, lanes, ntt_column_order(plan));
    block_transform(x, &t->passes->columns);
    for (size_t k2 = 0; k2 < columns; k2++) {
        fr_t *in = x + k2 * NTT_LANES;
        for (size_t l = 0; t->passes->scale && l < lanes; l++)
            fr_mul(&in[l], &in[l], &t->passes->scale[k2]);
        memcpy(t->v + k2 * rows + first, in, lanes * sizeof(*in));
    }
}

/* How each kind of code runs a plan. */
static const struct {
    size_t lanes;
    void (*phases[2])(void *ctx, size_t item, unsigned thread);
} codes[CPU_CODES] = {
    [CPU_PLAIN] = {NTT_LANES, {phase_one, phase_two}},
    [CPU_AVX2] = {NTT_LANES, {ntt_phase_one_avx2, ntt_phase_two_avx2}},
    [CPU_IFMA] = {NTT_LANES_IFMA, {ntt_phase_one_ifma, ntt_phase_two_ifma}},
};

void ntt_run(struct ntt_plan *plan, struct workers *workers, fr_t *v, enum ntt_kind kind)
{
    struct transform t = {.plan = plan, .passes = &plan->passes[kind], .v = v};
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    size_t lanes = codes[plan->code].lanes;

    workers_run(workers, (columns + lanes - 1) / lanes, codes[plan->code].phases[0], &t);
    workers_run(workers, (rows + lanes - 1) / lanes, codes[plan->code].phases[1], &t);
}
