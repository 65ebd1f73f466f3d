/*
 * A table has a row for each window: row[d] = d * 2^(bits * window) * base for d = 0 .. 2^(bits-1), entry 0 being
 * infinity, so that a zero digit needs no case of its own. A row grows by doubling: entries m+1 .. 2m are entry m plus
 * entries 1 .. m, in columns (columns.h).
 *
 * Products are columns, too: every window adds its entry to each, while the entries that the next window wants are on their
 * way.
 */
#include "gpu/cpu/fixed_base.h"

#include <assert.h>
#include <errno.h>

#include "gpu/cpu/columns.h"
#include "gpu/cpu/digits.h"
#include "numa/memory.h"

struct fixed_base {
    const struct group *group;
    struct digits digits;
    size_t row_len; /* 2^(bits-1) + 1 */
    char *rows;
};

static base_ref entry_ref(const struct fixed_base *t, unsigned window, size_t digit, bool negate)
{
    return base_ref_make(window * t->row_len + digit, negate);
}

static void *row_at(const struct fixed_base *t, unsigned window, size_t digit)
{
    return group_at(t->group, t->rows, window * t->row_len + digit);
}

/* What a thread works with: columns of a batch, what they take, and what comes next. */
struct block {
    struct columns *columns;
    base_ref *refs[2];
    struct recoded *scalars;
};

static void blocks_free(struct block *blocks, unsigned threads)
{
    for (unsigned t = 0; blocks && t < threads; t++) {
        columns_destroy(blocks[t].columns);
        free(blocks[t].refs[0]);
        free(blocks[t].refs[1]);
        free(blocks[t].scalars);
    }
    free(blocks);
}

/* NULL without memory. */
static struct block *blocks_alloc(const struct group *group, unsigned threads)
{
    size_t batch = columns_batch(group);
    struct block *blocks = calloc(threads, sizeof(*blocks));
    bool whole = blocks;

    for (unsigned t = 0; whole && t < threads; t++) {
        struct block *b = &blocks[t];
        b->columns = columns_create(group, batch);
        b->refs[0] = calloc(batch, sizeof(*b->refs[0]));
        b->refs[1] = calloc(batch, sizeof(*b->refs[1]));
        b->scalars = calloc(batch, sizeof(*b->scalars));
        whole = b->columns && b->refs[0] && b->refs[1] && b->scalars;
    }
    if (whole)
        return blocks;
    blocks_free(blocks, threads);
    return NULL;
}

static void row_double(const struct fixed_base *t, struct block *b, unsigned window, size_t known)
{
    size_t batch = columns_batch(t->group);

    for (size_t j = 1; j <= known; j += batch) {
        struct addends entries = {t->rows, b->refs[0], min_size(batch, known + 1 - j)};
        struct addends last = {t->rows, b->refs[1], entries.len};
        for (size_t k = 0; k < entries.len; k++) {
            b->refs[0][k] = entry_ref(t, window, j + k, false);
            b->refs[1][k] = entry_ref(t, window, known, false);
        }
        columns_clear(b->columns, 0, entries.len);
        columns_add(b->columns, 0, &entries, NULL);
        columns_add(b->columns, 0, &last, NULL);
        columns_store(b->columns, 0, entries.len, row_at(t, window, known + j));
    }
}

struct fill {
    const struct fixed_base *table;
    struct block *blocks; /* one a thread */
};

static void row_fill(void *ctx, size_t window, unsigned thread)
{
    const struct fill *f = ctx;
    const struct fixed_base *t = f->table;

    for (size_t known = 1; known < t->row_len - 1; known *= 2)
        row_double(t, &f->blocks[thread], (unsigned)window, known);
}

/* Entries 0 and 1 of every row. */
static void rows_start(const struct fixed_base *t, const void *base)
{
    union point p;

    t->group->from_affine(&p, base);
    for (unsigned w = 0; w < t->digits.windows; w++) {
        memset(row_at(t, w, 0), 0, t->group->affine_bytes);
        t->group->to_affine(row_at(t, w, 1), &p);
        for (unsigned i = 0; i < t->digits.bits; i++)
            t->group->twice(&p);
    }
}

static int fixed_base_create(const struct group *group, const void *base, unsigned bits,
                             struct workers *workers, struct fixed_base **out, struct errmsg *err)
{
    if (bits < DIGITS_BITS_MIN || bits > 20)
        return errmsg_set(err, -EINVAL, "windows of %u bits: 2 to 20 are possible", bits);

    struct fixed_base *t = calloc(1, sizeof(*t));
    struct fill fill = {.table = t, .blocks = blocks_alloc(group, workers_count(workers))};
    int ret = -ENOMEM;

    if (!t || !fill.blocks)
        goto out;
    t->group = group;
    digits_init(&t->digits, bits);
    t->row_len = ((size_t)1 << (bits - 1)) + 1;
    t->rows = memory_alloc(t->row_len * t->digits.windows, group->affine_bytes);
    if (!t->rows)
        goto out;
    rows_start(t, base);
    workers_run(workers, t->digits.windows, row_fill, &fill);
    *out = t;
    t = NULL;
    ret = 0;
out:
    blocks_free(fill.blocks, workers_count(workers));
    fixed_base_destroy(t);
    return ret ? errmsg_set(err, ret, "no memory for a table of multiples") : 0;
}

int fixed_base_g1_create(const g1_affine_t *base, unsigned window_bits, struct workers *workers,
                         struct fixed_base **out, struct errmsg *err)
{
    return fixed_base_create(&group_g1, base, window_bits, workers, out, err);
}

int fixed_base_g2_create(const g2_affine_t *base, unsigned window_bits, struct workers *workers,
                         struct fixed_base **out, struct errmsg *err)
{
    return fixed_base_create(&group_g2, base, window_bits, workers, out, err);
}

void fixed_base_destroy(struct fixed_base *t)
{
    if (!t)
        return;
    free(t->rows);
    free(t);
}

struct products {
    const struct fixed_base *table;
    const fr_t *scalars;
    size_t len, batch;
    char *out;
    struct block *blocks; /* one a thread */
};

static void block_recode(const struct digits *d, struct block *b, const fr_t *scalars, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t magnitude[4];
        bool negative;

        digits_magnitude(magnitude, &negative, &scalars[i]);
        digits_recode(d, &b->scalars[i], magnitude, negative);
    }
}

/* What one window adds: the row's entries for the digits of the scalars. */
static struct addends block_entries(const struct fixed_base *t, struct block *b, unsigned window,
                                    size_t len)
{
    base_ref *refs = b->refs[window % 2];

    for (size_t i = 0; i < len; i++) {
        int32_t digit = digits_get(&t->digits, &b->scalars[i], window);
        bool negate = (digit < 0) != digits_negative(&b->scalars[i]);
        refs[i] = entry_ref(t, window, (size_t)abs(digit), negate);
    }
    return (struct addends){t->rows, refs, len};
}

static void block_multiply(void *ctx, size_t item, unsigned thread)
{
    const struct products *p = ctx;
    const struct fixed_base *t = p->table;
    struct block *b = &p->blocks[thread];
    size_t first = item * p->batch, len = min_size(p->batch, p->len - first);

    block_recode(&t->digits, b, p->scalars + first, len);
    columns_clear(b->columns, 0, len);
    struct addends add = block_entries(t, b, 0, len);
    for (unsigned w = 1; w < t->digits.windows; w++) {
        struct addends next = block_entries(t, b, w, len);
        columns_add(b->columns, 0, &add, &next);
        add = next;
    }
    columns_add(b->columns, 0, &add, NULL);
    columns_store(b->columns, 0, len, group_at(t->group, p->out, first));
}

static int fixed_base_mul(const struct fixed_base *table, struct workers *workers,
                          const fr_t *scalars, size_t len, void *out, struct errmsg *err)
{
    unsigned threads = workers_count(workers);
    struct products p = {.table = table,
                         .scalars = scalars,
                         .len = len,
                         .batch = columns_batch(table->group),
                         .out = out,
                         .blocks = blocks_alloc(table->group, threads)};

    if (!p.blocks)
        return errmsg_set(err, -ENOMEM, "no memory for fixed-base products");
    workers_run(workers, (len + p.batch - 1) / p.batch, block_multiply, &p);
    blocks_free(p.blocks, threads);
    return 0;
}

int fixed_base_g1_mul(const struct fixed_base *table, struct workers *workers, const fr_t *scalars,
                      size_t len, g1_affine_t *out, struct errmsg *err)
{
    assert(table->group == &group_g1);
    return fixed_base_mul(table, workers, scalars, len, out, err);
}

int fixed_base_g2_mul(const struct fixed_base *table, struct workers *workers, const fr_t *scalars,
                      size_t len, g2_affine_t *out, struct errmsg *err)
{
    assert(table->group == &group_g2);
    return fixed_base_mul(table, workers, scalars, len, out, err);
}
