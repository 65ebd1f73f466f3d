/*
 * Two sets of parts with a bit for each that is free. Any two free parts make a slot: all memory of a node is alike.
 */
#include "numa/slots.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct parts {
    char *base;
    size_t bytes;  /* of one, in the arena */
    uint64_t free; /* guarded by the slots' lock */
};

struct slots {
    struct slots_shape shape;
    pthread_mutex_t lock;
    struct parts witness, evaluation;
    struct slots_counts counts; /* guarded by lock */
};

static size_t parts_bytes(size_t bytes, uint32_t count)
{
    size_t total;

    if (bytes > SIZE_MAX / 2 || __builtin_mul_overflow(arena_carved_bytes(bytes), count, &total))
        return SIZE_MAX;
    return total;
}

size_t slots_bytes(const struct slots_shape *shape)
{
    size_t total;

    if (__builtin_add_overflow(parts_bytes(shape->witness_bytes, shape->witnesses),
                               parts_bytes(shape->evaluation_bytes, shape->evaluations), &total))
        return SIZE_MAX;
    return total;
}

static bool is_possible(const struct slots_shape *shape)
{
    return shape->witness_bytes > 0 && shape->witnesses > 0 && shape->witnesses <= SLOTS_MAX &&
           shape->evaluations <= shape->witnesses &&
           (shape->evaluations > 0 || shape->evaluation_bytes == 0) &&
           slots_bytes(shape) != SIZE_MAX;
}

static bool carve(struct arena *arena, struct parts *p, size_t bytes, uint32_t count)
{
    if (bytes == 0)
        return true;
    p->bytes = arena_carved_bytes(bytes);
    p->base = arena_carve(arena, parts_bytes(bytes, count));
    p->free = UINT64_MAX >> (64 - count);
    return p->base != NULL;
}

int slots_create(struct arena *arena, const struct slots_shape *shape, struct slots **out,
                 struct errmsg *err)
{
    size_t mark = arena_mark(arena);

    if (!is_possible(shape))
        return errmsg_set(
            err, -EINVAL, "%u slots of %zu bytes with %u evaluation parts of %zu bytes",
            shape->witnesses, shape->witness_bytes, shape->evaluations, shape->evaluation_bytes);
    struct slots *s = calloc(1, sizeof(*s));
    if (!s)
        return errmsg_set(err, -ENOMEM, "no memory for slots");
    s->shape = *shape;
    pthread_mutex_init(&s->lock, NULL);
    if (!carve(arena, &s->witness, shape->witness_bytes, shape->witnesses) ||
        !carve(arena, &s->evaluation, shape->evaluation_bytes, shape->evaluations)) {
        slots_destroy(s);
        arena_rewind(arena, mark);
        return errmsg_set(err, -ENOMEM, "slots of %zu bytes do not fit an arena that has %zu left",
                          slots_bytes(shape), arena_get_info(arena)->bytes - mark);
    }
    *out = s;
    return 0;
}

void slots_destroy(struct slots *s)
{
    if (!s)
        return;
    assert(s->counts.witnesses == 0 && s->counts.evaluations == 0);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const struct slots_shape *slots_shape(const struct slots *s)
{
    return &s->shape;
}

static void *part_take(struct parts *p)
{
    unsigned i = (unsigned)__builtin_ctzll(p->free);

    p->free &= p->free - 1;
    return p->base + i * p->bytes;
}

static void part_return(struct parts *p, const void *part)
{
    size_t i = (size_t)((const char *)part - p->base) / p->bytes;

    assert(i < SLOTS_MAX && part == p->base + i * p->bytes && !(p->free >> i & 1));
    p->free |= UINT64_C(1) << i;
}

/* With lock. */
static bool any_free(const struct slots *s)
{
    return s->witness.free && (s->evaluation.free || s->shape.evaluation_bytes == 0);
}

static void count_bytes(struct slots *s, uint64_t bytes)
{
    struct slots_counts *c = &s->counts;

    c->bytes += bytes;
    if (c->bytes > c->bytes_peak)
        c->bytes_peak = c->bytes;
}

bool slots_take(struct slots *s, struct slot *out)
{
    struct slots_counts *c = &s->counts;

    pthread_mutex_lock(&s->lock);
    bool taken = any_free(s);
    if (taken) {
        *out = (struct slot){.witness = part_take(&s->witness)};
        c->witnesses++;
        if (c->witnesses > c->witnesses_peak)
            c->witnesses_peak = c->witnesses;
        if (s->shape.evaluation_bytes > 0) {
            out->evaluation = part_take(&s->evaluation);
            c->evaluations++;
        }
        count_bytes(s, s->shape.witness_bytes + s->shape.evaluation_bytes);
    }
    pthread_mutex_unlock(&s->lock);
    return taken;
}

bool slots_free(struct slots *s)
{
    pthread_mutex_lock(&s->lock);
    bool is = any_free(s);
    pthread_mutex_unlock(&s->lock);
    return is;
}

/* With lock. */
static void give_back(struct slots *s, struct parts *p, void **part, uint32_t *in_use, size_t bytes)
{
    if (!*part)
        return;
    part_return(p, *part);
    *part = NULL;
    --*in_use;
    s->counts.bytes -= bytes;
    s->counts.returned_bytes += bytes;
}

void slots_return_evaluation(struct slots *s, struct slot *slot)
{
    pthread_mutex_lock(&s->lock);
    give_back(s, &s->evaluation, &slot->evaluation, &s->counts.evaluations,
              s->shape.evaluation_bytes);
    pthread_mutex_unlock(&s->lock);
}

void slots_return(struct slots *s, struct slot *slot)
{
    pthread_mutex_lock(&s->lock);
    give_back(s, &s->evaluation, &slot->evaluation, &s->counts.evaluations,
              s->shape.evaluation_bytes);
    give_back(s, &s->witness, &slot->witness, &s->counts.witnesses, s->shape.witness_bytes);
    pthread_mutex_unlock(&s->lock);
}

void slots_counts(struct slots *s, struct slots_counts *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->counts;
    pthread_mutex_unlock(&s->lock);
}
