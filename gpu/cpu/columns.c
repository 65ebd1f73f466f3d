/*
 * Columns as affine points, added in pairs; and the choice between this and vectors.
 */
#include "gpu/cpu/columns.h"

#include <stdlib.h>

#include "gpu/cpu/columns_code.h"
#include "numa/memory.h"

#define PAIRS BATCH_ADD_LEN_G1 /* a whole batch of additions, two of G2 */

struct pair_columns {
    struct columns base;
    char *sums;
    struct add_pair pairs[PAIRS];
    struct batch_scratch batch;
};

static void pair_columns_destroy(struct columns *c)
{
    struct pair_columns *p = (struct pair_columns *)c;

    free(p->sums);
    free(p);
}

static struct columns *pair_columns_create(const struct group *group, size_t len)
{
    struct pair_columns *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->sums = memory_alloc(len, group->affine_bytes);
    if (p->sums)
        return &p->base;
    free(p);
    return NULL;
}

static void *sum_at(const struct pair_columns *p, size_t i)
{
    return group_at(p->base.group, p->sums, i);
}

static void pair_columns_clear(struct columns *c, size_t at, size_t len)
{
    memset(sum_at((struct pair_columns *)c, at), 0, len * c->group->affine_bytes);
}

/* `next` would gain nothing here: these additions take several times as long as the way to memory. */
static void pair_columns_add(struct columns *c, size_t at, const struct addends *add,
                             const struct addends *next)
{
    struct pair_columns *p = (struct pair_columns *)c;

    (void)next;
    for (size_t first = 0; first < add->len; first += PAIRS) {
        size_t n = min_size(PAIRS, add->len - first);
        for (size_t i = 0; i < n; i++) {
            base_ref ref = add->refs[first + i];
            void *sum = sum_at(p, at + first + i);
            p->pairs[i] = (struct add_pair){.a = sum,
                                            .b = group_at(c->group, add->bases, ref >> 1),
                                            .out = sum,
                                            .negate_b = ref & 1};
        }
        c->group->add_pairs(p->pairs, n, &p->batch);
    }
}

static void pair_columns_add_columns(struct columns *c, size_t to, size_t from, size_t len)
{
    struct pair_columns *p = (struct pair_columns *)c;

    for (size_t first = 0; first < len; first += PAIRS) {
        size_t n = min_size(PAIRS, len - first);
        for (size_t i = 0; i < n; i++) {
            void *sum = sum_at(p, to + first + i);
            p->pairs[i] = (struct add_pair){.a = sum, .b = sum_at(p, from + first + i), .out = sum};
        }
        c->group->add_pairs(p->pairs, n, &p->batch);
    }
}

static void pair_columns_store(struct columns *c, size_t at, size_t len, void *out)
{
    memcpy(out, sum_at((struct pair_columns *)c, at), len * c->group->affine_bytes);
}

static const struct columns_code pair_columns = {
    .batch = PAIRS,
    .create = pair_columns_create,
    .destroy = pair_columns_destroy,
    .clear = pair_columns_clear,
    .add = pair_columns_add,
    .add_columns = pair_columns_add_columns,
    .store = pair_columns_store,
};

static const struct columns_code *code_for(const struct group *group)
{
    const struct columns_code *ifma = columns_ifma(group);

    return ifma ? ifma : &pair_columns;
}

struct columns *columns_create(const struct group *group, size_t len)
{
    const struct columns_code *code = code_for(group);
    struct columns *c =
        code->create(group, (len + COLUMNS_ALIGN - 1) / COLUMNS_ALIGN * COLUMNS_ALIGN);

    if (c)
        *c = (struct columns){.code = code, .group = group};
    return c;
}

void columns_destroy(struct columns *c)
{
    if (c)
        c->code->destroy(c);
}

size_t columns_batch(const struct group *group)
{
    return code_for(group)->batch;
}

void columns_clear(struct columns *c, size_t at, size_t len)
{
    c->code->clear(c, at, len);
}

void columns_add(struct columns *c, size_t at, const struct addends *add,
                 const struct addends *next)
{
    c->code->add(c, at, add, next);
}

void columns_add_columns(struct columns *c, size_t to, size_t from, size_t len)
{
    c->code->add_columns(c, to, from, len);
}

void columns_store(struct columns *c, size_t at, size_t len, void *out)
{
    c->code->store(c, at, len, out);
}

/* Folds the range in half until few are left. */
void columns_total(struct columns *c, size_t at, size_t len, union point *out)
{
    g2_affine_t last[COLUMNS_ALIGN]; /* have room for points of G1 */

    while (len > COLUMNS_ALIGN) {
        size_t half = ((len + 1) / 2 + COLUMNS_ALIGN - 1) / COLUMNS_ALIGN * COLUMNS_ALIGN;
        columns_add_columns(c, at, at + half, len - half);
        len = half;
    }
    memset(out, 0, sizeof(*out));
    columns_store(c, at, len, last);
    for (size_t i = 0; i < len; i++)
        c->group->add_affine(out, group_at(c->group, last, i));
}
