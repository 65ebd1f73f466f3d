/*
 * The rows' A and B from bits and values, as the circuit's plan has them sorted. For the small rows an instance's bits are
 * laid out a byte each, so that a row is four loads, a look into a table of field elements, and two stores.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "numa/circuit/circuit_plan.h"
#include "numa/circuit/compact.h"
#include "numa/circuit/fr_dot.h"

#define BYTES_MAX (UINT16_MAX + 1 + 64) /* of an instance's bits; 64 may be written past the end */
#define CHUNK_ROWS 32768

/* What rows are evaluated with. */
struct evaluation {
    const struct compact *w;
    const struct circuit *c;
    const struct circuit_plan *plan;
    /* The instance at hand. */
    const struct circuit_template *template;
    const struct circuit_plan_part *part;
    const struct circuit_base *bases;
    bool bytes_there;
    uint8_t bytes[BYTES_MAX];
};

/* ---- single bits and words of them ---- */

static inline uint64_t bits_at(const uint64_t *bits, uint32_t at)
{
    const uint64_t *word = bits + at / 64;
    const unsigned shift = at % 64;

    return shift == 0 ? word[0]
                      : word[0] >> shift | word[1] << (64 - shift); /* there is a spare word */
}

/* The bits at even places, moved together. */
static inline uint64_t gather_even(uint64_t x)
{
    x &= UINT64_C(0x5555555555555555);
    x = (x | x >> 1) & UINT64_C(0x3333333333333333);
    x = (x | x >> 2) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    x = (x | x >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (x | x >> 16) & UINT64_C(0x00000000ffffffff);
}

/* A byte for each of `len` bits, and up to 63 more. */
static void bits_to_bytes(uint8_t *out, const uint64_t *bits, uint32_t at, uint32_t len)
{
    for (uint32_t done = 0; done < len; done += 64) {
        const uint64_t word = bits_at(bits, at + done);
        for (uint32_t i = 0; i < 8; i++) {
            /* Bit k of eight to byte k, then to its lowest bit. */
            uint64_t x = (word >> 8 * i & 0xff) * UINT64_C(0x0101010101010101) &
                         UINT64_C(0x8040201008040201);
            x = (x + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
            store_le64(out + done + 8 * i, x);
        }
    }
}

/* ---- rows of each kind ---- */

/* Rows are read again much later, so they go past the caches. */
static inline void store(fr_t *out, const fr_t *value)
{
#ifdef __SSE2__
    if (((uintptr_t)out & 15) == 0) {
        const __m128i *from = (const __m128i *)value;
        _mm_stream_si128((__m128i *)out, _mm_loadu_si128(from));
        _mm_stream_si128((__m128i *)out + 1, _mm_loadu_si128(from + 1));
        return;
    }
#endif
    *out = *value;
}

static void lay_out_bits(struct evaluation *e)
{
    const struct circuit_gather *gather = &e->plan->gathers[e->part->first_gather];

    if (e->bytes_there)
        return;
    e->bytes_there = true;
    e->bytes[0] = 0;
    bits_to_bytes(e->bytes + 1, e->w->bits, e->bases[CIRCUIT_OWN].aux,
                  (uint32_t)min_size(e->template->n_aux, UINT16_MAX));
    for (uint32_t i = 0; i < e->part->n_gathers; i++)
        bits_to_bytes(e->bytes + gather[i].number, e->w->bits, e->bases[gather[i].segment].aux,
                      gather[i].len);
}

static void small_rows(struct evaluation *e, const struct circuit_small *rows, uint32_t n, fr_t *a,
                       fr_t *b)
{
    const struct circuit_form *forms = e->plan->forms;
    const fr_t *integer = e->c->coeffs + CIRCUIT_SMALL;
    const uint8_t *bytes = e->bytes;

    lay_out_bits(e);
    for (uint32_t i = 0; i < n; i++) {
        const struct circuit_small *row = &rows[i];
        const struct circuit_form *form = &forms[row->form];
        const unsigned in_a =
            bytes[row->bit[0]] | bytes[row->bit[1]] << 1 | bytes[row->bit[2]] << 2;
        store(&a[i], &integer[form->a[in_a]]);
        store(&b[i], &integer[form->b[bytes[row->bit[3]]]]);
    }
}

/* Limbs of 32 bits, not carried. */
struct wide {
    int64_t limb[9];
};

static void wide_add_word(struct wide *sum, uint64_t bits, unsigned shift, bool negative)
{
    const uint64_t shifted = bits << shift % 32;
    const int64_t low = (int64_t)(shifted & UINT32_MAX), high = (int64_t)(shifted >> 32);
    const int64_t sign = negative ? -1 : 1;

    sum->limb[shift / 32] += sign * low;
    sum->limb[shift / 32 + 1] += sign * high;
}

/* Of a sum between -2^256 and 2^256. */
static fr_t wide_reduce(const struct wide *sum)
{
    uint32_t limb[8];
    uint64_t words[4];
    int64_t carry = 0;
    fr_t out;

    for (int i = 0; i < 8; i++) {
        carry += sum->limb[i];
        limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    carry += sum->limb[8];
    const bool negative = carry < 0;
    uint64_t borrow = negative; /* negating is to invert and add 1 */
    for (int i = 0; i < 8; i++) {
        borrow += negative ? (uint32_t)~limb[i] : limb[i];
        limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    for (int i = 0; i < 4; i++)
        words[i] = limb[2 * i] | (uint64_t)limb[2 * i + 1] << 32;
    blst_fr_from_uint64(&out, words);
    blst_fr_cneg(&out, &out, negative);
    return out;
}

static fr_t sum_row(const struct evaluation *e, const struct circuit_sum *row)
{
    const struct circuit_word *words = &e->plan->words[row->first_word];
    struct wide sum = {{0}};

    for (uint32_t i = 0; i < row->n_words; i++) {
        const struct circuit_word *word = &words[i];
        uint64_t bits = bits_at(e->w->bits, e->bases[CIRCUIT_SEGMENT(word->var)].aux +
                                                CIRCUIT_OFFSET(word->var));
        if (word->stride == 2)
            bits = gather_even(bits);
        wide_add_word(&sum, bits & ((UINT64_C(1) << word->len) - 1), word->shift, word->negative);
    }
    fr_t out = wide_reduce(&sum);
    fr_add(&out, &out, &e->c->coeffs[row->constant]);
    return out;
}

/* Products that wait to be added up. */
struct products {
    fr_t x[FR_DOT_MAX], y[FR_DOT_MAX];
    uint32_t len;
};

static void products_add(struct products *p, fr_t *sum)
{
    fr_t dot;

    fr_dot(&dot, p->x, p->y, p->len);
    fr_add(sum, sum, &dot);
    p->len = 0;
}

static void add_value(struct products *p, fr_t *sum, const fr_t *value, const fr_t *coeff,
                      uint32_t coeff_index)
{
    if (coeff_index == CIRCUIT_SMALL + 1) {
        fr_add(sum, sum, value);
    } else if (coeff_index == CIRCUIT_SMALL - 1) {
        fr_sub(sum, sum, value);
    } else {
        p->x[p->len] = *value;
        p->y[p->len++] = *coeff;
        if (p->len == FR_DOT_MAX)
            products_add(p, sum);
    }
}

static fr_t general_side(const struct evaluation *e, int side, uint32_t template_row)
{
    const struct circuit_side *from = &e->c->sides[side];
    const struct circuit_term *terms = from->terms;
    struct products products = {.len = 0};
    fr_t sum = {{0}};

    for (uint32_t i = from->first[template_row]; i < from->first[template_row + 1]; i++) {
        const uint32_t var = terms[i].var;
        const struct circuit_base *base = &e->bases[CIRCUIT_SEGMENT(var)];
        const fr_t *coeff = &e->c->coeffs[terms[i].coeff];
        if (var != CIRCUIT_ONE && (var & CIRCUIT_VALUE))
            add_value(&products, &sum, &e->w->values[base->value + CIRCUIT_OFFSET(var)], coeff,
                      terms[i].coeff);
        else if (var == CIRCUIT_ONE || (bits_at(e->w->bits, base->aux + CIRCUIT_OFFSET(var)) & 1))
            fr_add(&sum, &sum, coeff);
    }
    if (products.len > 0)
        products_add(&products, &sum);
    return sum;
}

/* `n` rows of a run from its row `skip` on. */
static void run_rows(struct evaluation *e, const struct circuit_run *run, uint32_t skip, uint32_t n,
                     fr_t *a, fr_t *b)
{
    static const fr_t zero, one = FR_ONE;
    const uint32_t row = e->template->first_row + run->row + skip;

    switch ((enum circuit_run_kind)run->kind) {
    case CIRCUIT_RUN_SMALL:
        small_rows(e, &e->plan->small[run->first + skip], n, a, b);
        return;
    case CIRCUIT_RUN_SUM:
        *a = sum_row(e, &e->plan->sums[run->first]);
        *b = one;
        return;
    case CIRCUIT_RUN_GENERAL:
        for (uint32_t i = 0; i < n; i++) {
            a[i] = general_side(e, CIRCUIT_A, row + i);
            b[i] = general_side(e, CIRCUIT_B, row + i);
        }
        return;
    case CIRCUIT_RUN_ZERO:
        for (uint32_t i = 0; i < n; i++)
            a[i] = b[i] = zero;
    }
}

/* ---- instances ---- */

/* Rows [first, end) of an instance, counted from its first. */
static void instance_rows(struct evaluation *e, uint32_t first, uint32_t end, fr_t *a, fr_t *b)
{
    const struct circuit_run *runs = &e->plan->runs[e->part->first_run];

    for (uint32_t i = 0; i < e->part->n_runs && runs[i].row < end; i++) {
        const uint32_t run_end = runs[i].row + runs[i].n_rows;
        if (run_end <= first)
            continue;
        const uint32_t from = first > runs[i].row ? first : runs[i].row,
                       to = end < run_end ? end : run_end;
        run_rows(e, &runs[i], from - runs[i].row, to - from, a + (from - first),
                 b + (from - first));
    }
}

/* The last instance that begins at `row` or before. */
static uint32_t instance_of(const struct circuit *c, uint64_t row)
{
    uint32_t low = 0, high = c->n_instances;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->instances[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void compact_rows(const struct compact *w, uint64_t first, uint64_t end, fr_t *a, fr_t *b)
{
    const struct circuit *c = w->circuit;
    struct evaluation e;

    assert(end <= c->n_rows);
    e.w = w;
    e.c = c;
    e.plan = c->plan;
    for (uint32_t i = instance_of(c, first); first < end; i++) {
        const struct circuit_instance *in = &c->instances[i];
        e.template = &c->templates[in->template_index];
        e.part = &c->plan->parts[in->template_index];
        e.bases = &c->bases[in->first_base];
        e.bytes_there = false;
        const uint64_t stop = min_size(end, (uint64_t)in->row + e.template->n_rows);
        instance_rows(&e, (uint32_t)(first - in->row), (uint32_t)(stop - in->row), a, b);
        a += stop - first;
        b += stop - first;
        first = stop;
    }
#ifdef __SSE2__
    _mm_sfence();
#endif
}

struct all_rows {
    const struct compact *w;
    fr_t *a, *b;
};

static void chunk_rows(void *ctx, size_t chunk, unsigned thread)
{
    const struct all_rows *all = ctx;
    const struct circuit *c = all->w->circuit;
    const uint64_t first = chunk * CHUNK_ROWS,
                   end = min_size(first + CHUNK_ROWS, (size_t)1 << c->log2_domain),
                   rows_end = min_size(end, c->n_rows);

    (void)thread;
    if (first < rows_end)
        compact_rows(all->w, first, rows_end, all->a + first, all->b + first);
    const uint64_t zeros = first > rows_end ? first : rows_end;
    memset(all->a + zeros, 0, (end - zeros) * sizeof(fr_t));
    memset(all->b + zeros, 0, (end - zeros) * sizeof(fr_t));
}

void compact_all_rows(const struct compact *w, struct workers *workers, fr_t *a, fr_t *b)
{
    const size_t domain = (size_t)1 << w->circuit->log2_domain;
    struct all_rows all = {w, a, b};

    workers_run(workers, (domain + CHUNK_ROWS - 1) / CHUNK_ROWS, chunk_rows, &all);
}
