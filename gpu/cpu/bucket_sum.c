/*
 * Lists are summed as trees: neighbours pair up, then their sums, and so on. All pairs of a level, over as many lists as
 * fit the second-level cache, are independent and share inversions; there is no bucket to wait for. A list longer than
 * that is cut into pieces.
 *
 * The weighted sum of buckets cuts them into strips and goes down all strips in step, again with shared inversions: the
 * usual running sums, but a few hundred at a time.
 */
#include "gpu/cpu/bucket_sum.h"

#include <stdlib.h>

/* Points of one round, and pairs handed over at a time: while a batch of G1 is added, its points and scratch, the points of
 * the next and the partial sums are some 400 KiB, of the 512 KiB that a core's second-level cache has at least. */
#define ROUND_REFS 4096
#define PAIRS 512
#define STRIPS 512

/* Part of a list: its sum grows in partial[first]. */
struct piece {
    uint32_t first, count;
    size_t list;
};

struct summer {
    const struct group *group;
    struct batch_scratch batch;
    /* Pairs are collected in one buffer while the other, if `waiting`, is full and knows what comes next. */
    struct add_pair pairs[2][PAIRS];
    unsigned filling;
    size_t pairs_len;
    bool waiting;
    struct piece pieces[ROUND_REFS];
    size_t pieces_len;
    size_t refs_len, partial_len;
    char *partial;            /* ROUND_REFS points: a list of one has a partial sum of its own */
    char *running, *weighted; /* STRIPS points each */
};

struct summer *summer_create(const struct group *group)
{
    struct summer *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->group = group;
    s->partial = calloc(ROUND_REFS, group->affine_bytes);
    s->running = calloc(STRIPS, group->affine_bytes);
    s->weighted = calloc(STRIPS, group->affine_bytes);
    if (s->partial && s->running && s->weighted)
        return s;
    summer_destroy(s);
    return NULL;
}

void summer_destroy(struct summer *s)
{
    if (!s)
        return;
    free(s->partial);
    free(s->running);
    free(s->weighted);
    free(s);
}

/* Adds the pairs that wait. */
static void pairs_run_waiting(struct summer *s)
{
    if (s->waiting)
        s->group->add_pairs_ahead(s->pairs[!s->filling], PAIRS, s->pairs[s->filling], s->pairs_len,
                                  &s->batch);
    s->waiting = false;
}

static void pairs_flush(struct summer *s)
{
    pairs_run_waiting(s);
    s->group->add_pairs(s->pairs[s->filling], s->pairs_len, &s->batch);
    s->pairs_len = 0;
}

static inline void pairs_push(struct summer *s, struct add_pair pair)
{
    s->pairs[s->filling][s->pairs_len++] = pair;
    if (s->pairs_len < PAIRS)
        return;
    pairs_run_waiting(s);
    s->waiting = true;
    s->filling = !s->filling;
    s->pairs_len = 0;
}

/* First level of a piece: pairs of bases become partial sums; the odd one out is added to infinity. */
static void piece_begin(struct summer *s, const void *bases, const base_ref *refs, size_t count,
                        size_t list)
{
    static const g2_affine_t infinity; /* zero bytes serve both groups */
    const struct group *g = s->group;
    size_t sums = (count + 1) / 2;

    for (size_t k = 0; k < sums; k++) {
        base_ref a = refs[2 * k], b = 2 * k + 1 < count ? refs[2 * k + 1] : 0;
        bool single = 2 * k + 1 == count;
        pairs_push(
            s, (struct add_pair){.a = group_at(g, bases, a >> 1),
                                 .b = single ? (const void *)&infinity : group_at(g, bases, b >> 1),
                                 .out = group_at(g, s->partial, s->partial_len + k),
                                 .negate_a = a & 1,
                                 .negate_b = b & 1});
    }
    s->pieces[s->pieces_len++] =
        (struct piece){.first = (uint32_t)s->partial_len, .count = (uint32_t)sums, .list = list};
    s->partial_len += sums;
    s->refs_len += count;
}

/* The other levels: partial sums `step` apart pair up in place. */
static void pieces_reduce(struct summer *s)
{
    const struct group *g = s->group;
    bool more = true;

    for (size_t step = 1; more; step *= 2) {
        more = false;
        for (size_t p = 0; p < s->pieces_len; p++) {
            struct piece *piece = &s->pieces[p];
            for (size_t k = 0; k + step < piece->count; k += 2 * step) {
                void *sum = group_at(g, s->partial, piece->first + k);
                pairs_push(s,
                           (struct add_pair){.a = sum,
                                             .b = group_at(g, s->partial, piece->first + k + step),
                                             .out = sum});
            }
            more = more || 2 * step < piece->count;
        }
        pairs_flush(s);
    }
}

/* Sums all pieces and adds each to its list's sum. No two of them are of one list. */
static void round_finish(struct summer *s, void *sums)
{
    const struct group *g = s->group;

    pairs_flush(s);
    pieces_reduce(s);
    for (size_t p = 0; p < s->pieces_len; p++) {
        void *sum = group_at(g, sums, s->pieces[p].list);
        pairs_push(s, (struct add_pair){
                          .a = sum, .b = group_at(g, s->partial, s->pieces[p].first), .out = sum});
    }
    pairs_flush(s);
    s->pieces_len = s->refs_len = s->partial_len = 0;
}

void summer_add_lists(struct summer *s, const void *bases, const base_ref *refs,
                      const uint32_t *start, size_t lists, void *sums)
{
    for (size_t list = 0; list < lists; list++) {
        size_t at = start[list], end = start[list + 1];
        while (at < end) {
            size_t count = min_size(end - at, ROUND_REFS - s->refs_len);
            piece_begin(s, bases, refs + at, count, list);
            at += count;
            if (s->refs_len == ROUND_REFS)
                round_finish(s, sums);
        }
    }
    round_finish(s, sums);
}

/* running[j] += points[j * strip + k], then weighted[j] += running[j], for every strip that has a k-th point. */
static void strips_step(struct summer *s, const void *points, size_t len, size_t strip, size_t k)
{
    const struct group *g = s->group;

    for (size_t j = 0; j * strip + k < len; j++) {
        void *running = group_at(g, s->running, j);
        pairs_push(s, (struct add_pair){
                          .a = running, .b = group_at(g, points, j * strip + k), .out = running});
    }
    pairs_flush(s);
    for (size_t j = 0; j * strip < len; j++) {
        void *weighted = group_at(g, s->weighted, j);
        pairs_push(
            s, (struct add_pair){.a = weighted, .b = group_at(g, s->running, j), .out = weighted});
    }
    pairs_flush(s);
}

/* Strip j now has running[j] = the sum of its points and weighted[j] = the sum of (k + 1) * points[j * strip + k].
 * Their total is the sum over j of weighted[j] + (first - 1 + j * strip) * running[j]. */
static void strips_join(struct summer *s, union point *out, size_t strips, size_t strip,
                        uint64_t first)
{
    const struct group *g = s->group;
    union point all = {0}, above = {0}, total = {0};

    for (size_t j = strips; j-- > 0;) {
        g->add_affine(&total, group_at(g, s->weighted, j));
        g->add(&above, &all); /* in the end the sum of j * running[j] */
        g->add_affine(&all, group_at(g, s->running, j));
    }
    group_mul_u64(g, &above, strip);
    group_mul_u64(g, &all, first - 1);
    g->add(&total, &above);
    g->add(&total, &all);
    *out = total;
}

void summer_weigh(struct summer *s, union point *out, const void *points, size_t len,
                  uint64_t first)
{
    size_t strip = (len + STRIPS - 1) / STRIPS;

    memset(s->running, 0, STRIPS * s->group->affine_bytes);
    memset(s->weighted, 0, STRIPS * s->group->affine_bytes);
    for (size_t k = strip; k-- > 0;)
        strips_step(s, points, len, strip, k);
    strips_join(s, out, strip ? (len + strip - 1) / strip : 0, strip, first);
}
