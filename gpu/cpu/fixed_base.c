/*
 * A table has a row for each window: row[d] = d * 2^(bits * window) * base for d = 0 .. 2^(bits-1), entry 0 being
 * infinity, so that a zero digit needs no case of its own. A row grows by doubling: entries m+1 .. 2m are entry m plus
 * entries 1 .. m, in one batch.
 *
 * Products go through the windows together, a block of scalars at a time: the block's sums stay in the second-level
 * cache and a batch of additions shares its inversion. While one window is added, the entries that the next one wants
 * are on their way.
 */
#include "gpu/cpu/fixed_base.h"

#include <assert.h>
#include <errno.h>

#include "gpu/cpu/digits.h"
#include "gpu/cpu/group.h"
#include "numa/memory.h"

#define BLOCK BATCH_ADD_LEN_G1 /* scalars; a whole batch of additions, two of G2 */

struct fixed_base {
    const struct group *group;
    struct digits digits;
    size_t row_len; /* 2^(bits-1) + 1 */
    char *rows;
};

static void *row_at(const struct fixed_base *t, unsigned window, size_t digit)
{
    return group_at(t->group, t->rows, window * t->row_len + digit);
}

static void row_double(const struct fixed_base *t, unsigned window, size_t known,
                       struct batch_scratch *scratch)
{
    struct add_pair pairs[256];

    for (size_t j = 1; j <= known; j += ARRAY_LEN(pairs)) {
        size_t n = min_size(ARRAY_LEN(pairs), known + 1 - j);
        for (size_t k = 0; k < n; k++)
            pairs[k] = (struct add_pair){.a = row_at(t, window, known),
                                         .b = row_at(t, window, j + k),
                                         .out = row_at(t, window, known + j + k)};
        t->group->add_pairs(pairs, n, scratch);
    }
}

struct fill {
    const struct fixed_base *table;
    struct batch_scratch *scratch; /* one a thread */
};

static void row_fill(void *ctx, size_t window, unsigned thread)
{
    const struct fill *f = ctx;
    const struct fixed_base *t = f->table;

    for (size_t known = 1; known < t->row_len - 1; known *= 2)
        row_double(t, (unsigned)window, known, &f->scratch[thread]);
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
    struct fill fill = {.table = t,
                        .scratch = calloc(workers_count(workers), sizeof(*fill.scratch))};
    int ret = -ENOMEM;

    if (!t || !fill.scratch)
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
    free(fill.scratch);
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

struct block {
    struct recoded scalars[BLOCK];
    struct add_pair pairs[2][BLOCK]; /* of a window and of the one after it */
    struct batch_scratch batch;
};

struct products {
    const struct fixed_base *table;
    const fr_t *scalars;
    size_t len;
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

/* The pairs of one window: out[i] += the row's entry for the digit of scalar i. */
static struct add_pair *block_pairs(const struct fixed_base *t, struct block *b, unsigned window,
                                    void *out, size_t len)
{
    struct add_pair *pairs = b->pairs[window % 2];

    for (size_t i = 0; i < len; i++) {
        int32_t digit = digits_get(&t->digits, &b->scalars[i], window);
        bool negate = (digit < 0) != digits_negative(&b->scalars[i]);
        void *sum = group_at(t->group, out, i);

        pairs[i] = (struct add_pair){
            .a = sum, .b = row_at(t, window, (size_t)abs(digit)), .out = sum, .negate_b = negate};
    }
    return pairs;
}

static void block_multiply(void *ctx, size_t item, unsigned thread)
{
    const struct products *p = ctx;
    const struct fixed_base *t = p->table;
    struct block *b = &p->blocks[thread];
    size_t first = item * BLOCK, len = min_size(BLOCK, p->len - first);
    unsigned last = t->digits.windows - 1;
    void *out = group_at(t->group, p->out, first);

    block_recode(&t->digits, b, p->scalars + first, len);
    memset(out, 0, len * t->group->affine_bytes); /* infinity */
    struct add_pair *pairs = block_pairs(t, b, 0, out, len);
    for (unsigned w = 0; w < last; w++) {
        struct add_pair *next = block_pairs(t, b, w + 1, out, len);
        t->group->add_pairs_ahead(pairs, len, next, len, &b->batch);
        pairs = next;
    }
    t->group->add_pairs(pairs, len, &b->batch);
}

static int fixed_base_mul(const struct fixed_base *table, struct workers *workers,
                          const fr_t *scalars, size_t len, void *out, struct errmsg *err)
{
    struct products p = {.table = table, .scalars = scalars, .len = len, .out = out};

    p.blocks = calloc(workers_count(workers), sizeof(*p.blocks));
    if (!p.blocks)
        return errmsg_set(err, -ENOMEM, "no memory for fixed-base products");
    workers_run(workers, (len + BLOCK - 1) / BLOCK, block_multiply, &p);
    free(p.blocks);
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
