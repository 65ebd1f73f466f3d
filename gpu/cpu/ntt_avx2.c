/*
 * The two phases of ntt.c with the columns of a block in the lanes of a vector: all lanes take the same factor. A block of
 * 2^11 rows is 320 KiB and stays in the second-level cache.
 */
#include "gpu/cpu/ntt_plan.h"

#if defined(__x86_64__)

#include "gpu/cpu/fr4.h"

#define PREFETCH_ROWS \
    8 /* rows of a column lie a page or more apart: no hardware prefetcher sees them coming */

size_t ntt_avx2_block_bytes(uint32_t log2_rows)
{
    return (sizeof(struct fr4) << log2_rows) + 64;
}

static struct fr4 *block_of(const struct ntt_plan *plan, unsigned thread)
{
    char *at = plan->blocks + thread * plan->block_bytes;

    return (struct fr4 *)(void *)(at + (-(uintptr_t)at & 63));
}

/* Four columns from `column` on of a matrix of `width` columns, in bit-reversed order. */
static void block_load(struct fr4 *x, const fr_t *matrix, size_t height, size_t width,
                       const uint32_t *order)
{
    for (size_t i = 0; i < height; i++) {
        if (i + PREFETCH_ROWS < height) {
            const char *ahead = (const char *)(matrix + (i + PREFETCH_ROWS) * width);
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + 64);
        }
        x[order[i]] = fr4_load(matrix + i * width);
    }
}

static inline void butterfly(struct fr4 *a, struct fr4 *b, const struct fr_factor *w)
{
    struct fr4 t = fr4_mul_factor(b, w);

    *b = fr4_sub(a, &t);
    *a = fr4_add(a, &t);
}

/* The first level of a plain transform: the factors are 1, and what was just loaded is tidy. */
static void level_of_ones(struct fr4 *x, size_t len)
{
    for (size_t i = 0; i + 1 < len; i += 2) {
        struct fr4 t = x[i + 1];
        x[i + 1] = fr4_sub(&x[i], &t);
        x[i] = fr4_add(&x[i], &t);
    }
}

static void block_transform(struct fr4 *x, const struct factors *f)
{
    size_t len = (size_t)1 << f->log2_len, half = 1;

    if (f->plain) {
        level_of_ones(x, len);
        half = 2;
    }
    for (; half < len; half *= 2)
        for (size_t start = 0; start < len; start += 2 * half)
            for (size_t j = 0; j < half; j++)
                butterfly(&x[start + j], &x[start + half + j], &f->wide.avx2[half + j]);
}

/* Writes lane l as row n2 + l of the scratch matrix, with the factors between the phases. */
static void block_store_rows(const struct transform *t, const struct fr4 *x, size_t n2)
{
    size_t rows = (size_t)1 << t->plan->log2_rows;
    fr_t *out = t->plan->scratch + n2 * rows, factors[4], ratios[4];

    for (size_t l = 0; l < 4; l++) {
        ntt_between(t->passes, n2 + l, &factors[l], &ratios[l]);
        factors[l] = fr_factor_form(&factors[l]);
        ratios[l] = fr_factor_form(&ratios[l]);
    }
    struct fr4 w = fr4_load(factors), ratio = fr4_load(ratios);
    for (size_t k1 = 0; k1 < rows; k1++) {
        __m256i lanes[4];
        struct fr4 y = fr4_mul(&x[k1], &w);
        fr4_to_rows(lanes, &y);
        for (size_t l = 0; l < 4; l++)
            _mm256_storeu_si256((__m256i *)out[l * rows + k1].l, lanes[l]);
        w = fr4_mul(&w, &ratio);
    }
}

void ntt_phase_one_avx2(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    const struct ntt_plan *plan = t->plan;
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    size_t first = item * NTT_LANES;
    struct fr4 *x = block_of(plan, thread);

    block_load(x, t->v + first, rows, columns, ntt_row_order(plan));
    block_transform(x, &t->passes->rows);
    block_store_rows(t, x, first);
}

void ntt_phase_two_avx2(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    const struct ntt_plan *plan = t->plan;
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    size_t first = item * NTT_LANES;
    struct fr4 *x = block_of(plan, thread);

    block_load(x, plan->scratch + first, columns, rows, ntt_column_order(plan));
    block_transform(x, &t->passes->columns);
    for (size_t k2 = 0; k2 < columns; k2++) {
        if (t->passes->scale)
            x[k2] = fr4_mul_factor(&x[k2], &t->passes->wide_scale.avx2[k2]);
        fr4_store(t->v + k2 * rows + first, &x[k2]);
    }
}

#else

size_t ntt_avx2_block_bytes(uint32_t log2_rows)
{
    (void)log2_rows;
    return 0;
}

void ntt_phase_one_avx2(void *ctx, size_t item, unsigned thread)
{
    (void)ctx;
    (void)item;
    (void)thread;
}

void ntt_phase_two_avx2(void *ctx, size_t item, unsigned thread)
{
    (void)ctx;
    (void)item;
    (void)thread;
}

#endif
