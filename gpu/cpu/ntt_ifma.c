/*
 * The two phases of ntt.c with the columns of a block in the lanes of a vector: all lanes take the same factor. A block of
 * 2^11 rows is 640 KiB and stays in the second-level cache, longer ones do not; levels go through it in pairs, the first ones a
 * part at a time that the first-level cache holds, the next ones a part that the second-level cache holds.
 *
 * Between the phases, a group of columns lies as phase one has it: for each k1 four vectors, the words of eight elements, not
 * canonical but below 2^256. Phase two reads tiles of eight k1, 2 KiB in one piece, and transposes them.
 *
 * Of a value: it is below r when it is taken in, or below 2.03 r between the phases; each level adds less than 2 r; after 16
 * levels, of which no transform has more, it is below 34.1 r, and 2^260 is 35.3 r.
 */
#include "gpu/cpu/ntt_plan.h"

#if defined(__x86_64__)

#include "gpu/cpu/fr8.h"

#define LANES NTT_LANES_IFMA
/* Rows of a column lie a page or more apart: no hardware prefetcher sees them coming. */
#define PREFETCH_ROWS 8
/* Vectors of a block that the caches hold: 40 KiB of the first level's, 320 KiB of the second's. */
#define PART_FIRST 128
#define PART_SECOND 1024

/* A group of columns between the phases, for one k1. */
struct between {
    struct fr8_words lanes;
};

_Static_assert(sizeof(struct between) == LANES * sizeof(fr_t), "as large as the elements");

size_t ntt_ifma_block_bytes(uint32_t log2_rows)
{
    return (sizeof(struct fr8) << log2_rows) + 64;
}

static struct fr8 *block_of(const struct ntt_plan *plan, unsigned thread)
{
    char *at = plan->blocks + thread * plan->block_bytes;

    return (struct fr8 *)(void *)(at + (-(uintptr_t)at & 63));
}

/* One level: pairs `half` apart. */
static void level(struct fr8 *x, size_t len, const struct factors *f, size_t half)
{
    for (size_t start = 0; start < len; start += 2 * half)
        for (size_t j = 0; j < half; j++) {
            struct fr8 *a = &x[start + j], *b = a + half, t, w;
            w = fr8_broadcast(&f->wide.ifma[half + j]);
            fr8_carry(b);
            fr8_mul(&t, b, &w);
            fr8_sub(b, a, &t);
            fr8_add(a, a, &t);
        }
}

/* The first level of a plain transform: the factors are 1, and what was just loaded is below r or 2.03 r. */
static void level_of_ones(struct fr8 *x, size_t len)
{
    for (size_t i = 0; i + 1 < len; i += 2) {
        struct fr8 t = x[i + 1];
        fr8_sub(&x[i + 1], &x[i], &t);
        fr8_add(&x[i], &x[i], &t);
    }
}

/* Levels of `half` and of twice that, on four elements of a block. */
static inline void two_levels(struct fr8 *x, const struct fr_factor52 *f, size_t half, size_t j)
{
    struct fr8 *a = &x[j], *b = a + half, *c = b + half, *d = c + half;
    struct fr8 w = fr8_broadcast(&f[half + j]), w_even = fr8_broadcast(&f[2 * half + j]);
    struct fr8 w_odd = fr8_broadcast(&f[3 * half + j]), s, t, a_minus, c_plus, c_minus;

    fr8_carry(b);
    fr8_carry(d);
    fr8_mul_two(&s, b, &w, &t, d, &w);
    fr8_add(&c_plus, c, &t);
    fr8_sub(&c_minus, c, &t);
    fr8_carry(&c_plus);
    fr8_carry(&c_minus);
    fr8_sub(&a_minus, a, &s);
    fr8_add(a, a, &s);
    fr8_mul_two(&s, &c_plus, &w_even, &t, &c_minus, &w_odd);
    fr8_sub(c, a, &s);
    fr8_add(a, a, &s);
    fr8_sub(d, &a_minus, &t);
    fr8_add(b, &a_minus, &t);
}

/* Levels from `half` on, up to that of length `len`, two at a time. */
static void levels(struct fr8 *x, size_t len, const struct factors *f, size_t half, size_t part)
{
    for (; half < part; half *= 4)
        for (size_t start = 0; start < len; start += 4 * half)
            for (size_t j = 0; j < half; j++)
                two_levels(x + start, f->wide.ifma, half, j);
}

/* The largest part of a block that `most` vectors hold, after a number of pairs of levels above `half`. */
static size_t part_of(size_t len, size_t half, size_t most)
{
    while (half < len && 4 * half <= most)
        half *= 4;
    return half;
}

/* The levels inside a part that the first-level cache holds. */
static void part_transform(struct fr8 *x, size_t len, const struct factors *f, size_t half)
{
    if (half == 2 && f->plain)
        level_of_ones(x, len);
    else if (half == 2)
        level(x, len, f, 1);
    levels(x, len, f, half, len);
}

static void block_transform(struct fr8 *x, const struct factors *f)
{
    const size_t len = (size_t)1 << f->log2_len, half = f->log2_len % 2 ? 2 : 1;
    const size_t first = part_of(len, half, PART_FIRST), second = part_of(len, half, PART_SECOND);

    for (size_t outer = 0; outer < len; outer += second) {
        for (size_t start = outer; start < outer + second; start += first)
            part_transform(x + start, first, f, half);
        levels(x + outer, second, f, first, second);
    }
    levels(x, len, f, second, len);
}

/* Eight columns from `column` on of a matrix of `width` columns, in bit-reversed order. */
static void load_columns(struct fr8 *x, const fr_t *matrix, size_t height, size_t width,
                         const uint32_t *order)
{
    for (size_t i = 0; i < height; i++) {
        if (i + PREFETCH_ROWS < height) {
            const char *ahead = (const char *)(matrix + (i + PREFETCH_ROWS) * width);
            for (size_t at = 0; at < LANES * sizeof(fr_t); at += 64)
                __builtin_prefetch(ahead + at);
        }
        struct fr8_words words = fr8_words_load(matrix + i * width);
        x[order[i]] = fr8_of_words(&words);
    }
}

static struct fr8 load_lanes(const fr_t factors[LANES])
{
    struct fr8_words words = fr8_words_load(factors);

    return fr8_of_words(&words);
}

/* Writes the group of columns n2 .. n2 + 7 with the factors between the phases: below 1.06 r, as products of each other, so that
 * what is written is below 2.03 r. */
static void store_between(const struct transform *t, struct fr8 *x, size_t n2)
{
    size_t rows = (size_t)1 << t->plan->log2_rows;
    struct between *out = (struct between *)(void *)t->plan->scratch + n2 / LANES * rows;
    fr_t factors[LANES], ratios[LANES];

    for (size_t l = 0; l < LANES; l++) {
        ntt_between(t->passes, n2 + l, &factors[l], &ratios[l]);
        factors[l] = fr_factor_form(&factors[l]);
        ratios[l] = fr_factor_form(&ratios[l]);
    }
    struct fr8 w = load_lanes(factors), ratio = load_lanes(ratios), y;
    for (size_t k1 = 0; k1 < rows; k1++) {
        fr8_carry(&x[k1]);
        fr8_mul_two(&y, &x[k1], &w, &w, &w, &ratio);
        fr8_carry(&y);
        fr8_carry(&w);
        struct fr8_words words = fr8_to_words(&y);
        for (int i = 0; i < 4; i++)
            _mm512_stream_si512(&out[k1].lanes.w[i], words.w[i]);
    }
    _mm_sfence();
}

void ntt_phase_one_ifma(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    const struct ntt_plan *plan = t->plan;
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    struct fr8 *x = block_of(plan, thread);

    load_columns(x, t->v + item * LANES, rows, columns, ntt_row_order(plan));
    block_transform(x, &t->passes->rows);
    store_between(t, x, item * LANES);
}

/* Columns k1 .. k1 + 7 of the matrix between the phases, in bit-reversed order. */
static void load_between(const struct ntt_plan *plan, struct fr8 *x, size_t k1)
{
    size_t rows = (size_t)1 << plan->log2_rows, groups = ((size_t)1 << plan->log2_columns) / LANES;
    const struct between *in = (const struct between *)(const void *)plan->scratch + k1;
    const uint32_t *order = ntt_column_order(plan);
    __m512i tile[4][LANES];

    for (size_t g = 0; g < groups; g++, in += rows, order += LANES) {
        for (size_t at = 0; g + 1 < groups && at < LANES * sizeof(*in); at += 64)
            __builtin_prefetch((const char *)(in + rows) + at);
        for (int i = 0; i < 4; i++) {
            for (int l = 0; l < LANES; l++)
                tile[i][l] = _mm512_loadu_si512(&in[fr8_order[l]].lanes.w[i]);
            fr8_transpose(tile[i]);
        }
        for (int l = 0; l < LANES; l++) {
            struct fr8_words words = {{tile[0][l], tile[1][l], tile[2][l], tile[3][l]}};
            x[order[fr8_order[l]]] = fr8_of_words(&words);
        }
    }
}

void ntt_phase_two_ifma(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    const struct ntt_plan *plan = t->plan;
    size_t rows = (size_t)1 << plan->log2_rows, columns = (size_t)1 << plan->log2_columns;
    struct fr8 *x = block_of(plan, thread);

    load_between(plan, x, item * LANES);
    block_transform(x, &t->passes->columns);
    for (size_t k2 = 0; k2 < columns; k2++) {
        if (t->passes->scale) {
            struct fr8 scale = fr8_broadcast(&t->passes->wide_scale.ifma[k2]);
            fr8_carry(&x[k2]);
            fr8_mul(&x[k2], &x[k2], &scale);
        }
        fr8_canonical(&x[k2]);
        fr8_store(t->v + k2 * rows + item * LANES, &x[k2]);
    }
    _mm_sfence();
}

#else

size_t ntt_ifma_block_bytes(uint32_t log2_rows)
{
    (void)log2_rows;
    return 0;
}

void ntt_phase_one_ifma(void *ctx, size_t item, unsigned thread)
{
    (void)ctx;
    (void)item;
    (void)thread;
}

void ntt_phase_two_ifma(void *ctx, size_t item, unsigned thread)
{
    (void)ctx;
    (void)item;
    (void)thread;
}

#endif
