/*
 * Every list is a column (columns.h): the first points of as many lists as share an inversion are added together, then the
 * second ones, and so on. Lists are taken in the order of their lengths, so that those which go together end together. One
 * that is so long that it would end alone is cut into pieces, whose sums are a list again.
 *
 * The weighted sum of buckets cuts them into strips and goes down all strips in step: the usual running sums, but as many at
 * a time as there are columns.
 */
#include "gpu/cpu/bucket_sum.h"

#include <errno.h>
#include <stdlib.h>

/* Pieces are so long that a quarter of a batch of them would hold all points, and not shorter than this: the sums of pieces
 * are to be added up, too. */
#define PIECE_MIN 8
#define STRIP_MIN 8    /* shorter strips would leave more of them to weigh */
#define WEIGH_ALONE 64 /* points that are weighed one by one */

struct summer {
    const struct group *group;
    size_t batch;
    struct columns *columns; /* two batches */
    base_ref *refs[2];       /* a batch each: those that are added, and those that come next */
    void *points;            /* a batch of affine points */
};

struct summer *summer_create(const struct group *group)
{
    struct summer *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->group = group;
    s->batch = columns_batch(group);
    s->columns = columns_create(group, 2 * s->batch);
    s->refs[0] = calloc(s->batch, sizeof(*s->refs[0]));
    s->refs[1] = calloc(s->batch, sizeof(*s->refs[1]));
    s->points = calloc(s->batch, group->affine_bytes);
    if (s->columns && s->refs[0] && s->refs[1] && s->points)
        return s;
    summer_destroy(s);
    return NULL;
}

void summer_destroy(struct summer *s)
{
    if (!s)
        return;
    columns_destroy(s->columns);
    free(s->refs[0]);
    free(s->refs[1]);
    free(s->points);
    free(s);
}

/* ------------------------------------------------------------------------------------------ lists */

/* A list, or a part of one. */
struct piece {
    uint32_t start, len;
    uint32_t to; /* number of the list; that of the part, after those of all lists */
};

/* The lists that are cut, by number; the parts of cut[i] are cut_start[i] .. cut_start[i + 1] - 1. */
struct cuts {
    uint32_t *list, *start;
    size_t len;
};

/* All pieces, the longest first. */
struct division {
    size_t piece_max;
    uint32_t *counts; /* pieces by length; then where those of a length go */
    struct piece *pieces;
    size_t len;
    struct cuts cuts;
};

static void division_fini(struct division *d)
{
    free(d->counts);
    free(d->pieces);
    free(d->cuts.list);
    free(d->cuts.start);
}

/* Counts pieces by length and lists that are cut. */
static void division_count(struct division *d, const uint32_t *start, size_t lists)
{
    for (size_t k = 0; k < lists; k++) {
        size_t len = start[k + 1] - start[k], whole = len / d->piece_max;
        d->counts[d->piece_max] += (uint32_t)whole;
        d->counts[len % d->piece_max]++;
        d->len += whole + 1;
        d->cuts.len += len > d->piece_max;
    }
    d->len -= d->counts[0]; /* of no length */
    d->counts[0] = 0;
    for (size_t at = 0, len = d->piece_max; len > 0; len--) {
        size_t count = d->counts[len];
        d->counts[len] = (uint32_t)at;
        at += count;
    }
}

static void piece_place(struct division *d, uint32_t start, size_t len, size_t to)
{
    d->pieces[d->counts[len]++] =
        (struct piece){.start = start, .len = (uint32_t)len, .to = (uint32_t)to};
}

/* The sum that a cut list has already is one more part of it, the last. */
static void division_place(struct division *d, const uint32_t *start, size_t lists, bool grow)
{
    size_t part = lists, cut = 0;

    for (size_t k = 0; k < lists; k++) {
        size_t len = start[k + 1] - start[k];
        if (len <= d->piece_max) {
            if (len > 0)
                piece_place(d, start[k], len, k);
            continue;
        }
        d->cuts.list[cut] = (uint32_t)k;
        d->cuts.start[cut++] = (uint32_t)(part - lists);
        for (size_t at = 0; at < len; at += d->piece_max)
            piece_place(d, start[k] + (uint32_t)at, min_size(d->piece_max, len - at), part++);
        part += grow;
    }
    d->cuts.start[cut] = (uint32_t)(part - lists);
}

static int division_init(struct division *d, const struct lists *l, bool grow, size_t batch)
{
    size_t piece_max = (l->start[l->len] - l->start[0]) / (batch / 4) + 1;

    *d = (struct division){.piece_max = piece_max < PIECE_MIN ? PIECE_MIN : piece_max};
    d->counts = calloc(d->piece_max + 1, sizeof(*d->counts));
    if (!d->counts)
        return -ENOMEM;
    division_count(d, l->start, l->len);
    d->pieces = malloc((d->len + 1) * sizeof(*d->pieces));
    d->cuts.list = malloc((d->cuts.len + 1) * sizeof(*d->cuts.list));
    d->cuts.start = malloc((d->cuts.len + 1) * sizeof(*d->cuts.start));
    if (!d->pieces || !d->cuts.list || !d->cuts.start) {
        division_fini(d);
        return -ENOMEM;
    }
    division_place(d, l->start, l->len, grow);
    return 0;
}

/* The refs number `step` of some pieces, the longest first; how many have one. */
static size_t take_refs(const struct piece *pieces, size_t len, const base_ref *refs, uint32_t step,
                        base_ref *out)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): division_place has set as many */
    while (len > 0 && pieces[len - 1].len <= step)
        len--;
    for (size_t i = 0; i < len; i++)
        out[i] = refs[pieces[i].start + step];
    return len;
}

/* What is divided, and where sums go: those of lists to `sums`, those of parts to `parts`. */
struct summing {
    const struct lists *lists;
    struct division division;
    bool grow;
    void *sums, *parts;
};

/* The columns of pieces that are whole lists begin with the sums that these have. */
static void take_sums(struct summer *s, const struct summing *g, const struct piece *pieces,
                      size_t len, const struct addends *next)
{
    struct addends add = {s->points, s->refs[1], len};

    for (size_t i = 0; i < len; i++) {
        void *point = group_at(s->group, s->points, i);
        if (pieces[i].to < g->lists->len)
            memcpy(point, group_at(s->group, g->sums, pieces[i].to), s->group->affine_bytes);
        else
            memset(point, 0, s->group->affine_bytes);
        s->refs[1][i] = base_ref_make(i, false);
    }
    columns_add(s->columns, 0, &add, next);
}

/* Sums of up to a batch of pieces, into the columns. */
static void add_pieces(struct summer *s, const struct summing *g, const struct piece *pieces,
                       size_t len)
{
    const struct lists *l = g->lists;
    unsigned now = 0;
    struct addends add = {l->bases, s->refs[now], take_refs(pieces, len, l->refs, 0, s->refs[now])};

    columns_clear(s->columns, 0, len);
    if (g->grow)
        take_sums(s, g, pieces, len, &add);
    for (uint32_t step = 1; add.len > 0; step++) {
        struct addends next = {l->bases, s->refs[!now], 0};
        next.len = take_refs(pieces, add.len, l->refs, step, s->refs[!now]);
        columns_add(s->columns, 0, &add, next.len ? &next : NULL);
        add = next;
        now = !now;
    }
}

static void sum_pieces(struct summer *s, const struct summing *g)
{
    const struct division *d = &g->division;
    const size_t lists = g->lists->len;

    for (size_t first = 0; first < d->len; first += s->batch) {
        const struct piece *pieces = d->pieces + first;
        size_t len = min_size(s->batch, d->len - first);
        add_pieces(s, g, pieces, len);
        columns_store(s->columns, 0, len, s->points);
        for (size_t i = 0; i < len; i++) {
            size_t to = pieces[i].to;
            memcpy(to < lists ? group_at(s->group, g->sums, to)
                              : group_at(s->group, g->parts, to - lists),
                   group_at(s->group, s->points, i), s->group->affine_bytes);
        }
    }
}

/* The parts of each list that was cut are a list again. */
static int sum_parts(struct summer *s, const struct summing *g)
{
    const struct cuts *cuts = &g->division.cuts;
    const size_t bytes = s->group->affine_bytes, len = cuts->start[cuts->len];
    base_ref *refs = malloc(len * sizeof(*refs));
    void *part_sums = malloc(cuts->len * bytes);
    const struct lists l = {g->parts, refs, cuts->start, cuts->len};
    int ret = -ENOMEM;

    if (!refs || !part_sums)
        goto out;
    for (size_t i = 0; i < len; i++)
        refs[i] = base_ref_make(i, false);
    /* NOLINTBEGIN(clang-analyzer-core.CallAndMessage,clang-analyzer-core.UndefinedBinaryOperatorResult): division_place has set as many */
    for (size_t i = 0; g->grow && i < cuts->len; i++)
        memcpy(group_at(s->group, g->parts, cuts->start[i + 1] - 1),
               group_at(s->group, g->sums, cuts->list[i]), bytes);
    ret = summer_add_lists(s, &l, false, part_sums);
    for (size_t i = 0; ret == 0 && i < cuts->len; i++)
        memcpy(group_at(s->group, g->sums, cuts->list[i]), group_at(s->group, part_sums, i), bytes);
    /* NOLINTEND(clang-analyzer-core.CallAndMessage,clang-analyzer-core.UndefinedBinaryOperatorResult) */
out:
    free(refs);
    free(part_sums);
    return ret;
}

int summer_add_lists(struct summer *s, const struct lists *lists, bool grow, void *sums)
{
    struct summing g = {.lists = lists, .grow = grow, .sums = sums};
    const struct cuts *cuts = &g.division.cuts;
    int ret = division_init(&g.division, lists, grow, s->batch);

    if (ret < 0)
        return ret;
    if (!grow)
        memset(sums, 0, lists->len * s->group->affine_bytes); /* infinity, where nothing is added */
    if (cuts->len > 0) {
        g.parts = malloc(cuts->start[cuts->len] * s->group->affine_bytes);
        ret = g.parts ? 0 : -ENOMEM;
    }
    if (ret == 0)
        sum_pieces(s, &g);
    if (ret == 0 && cuts->len > 0)
        ret = sum_parts(s, &g);
    free(g.parts);
    division_fini(&g.division);
    return ret;
}

/* ---------------------------------------------------------------------------------------- weighing */

/* Of some points, their sum and the sum of k * points[k]. */
struct weighed {
    union point sum, weighted;
};

static void weigh_alone(const struct summer *s, struct weighed *out, const void *points, size_t len)
{
    const struct group *g = s->group;

    memset(out, 0, sizeof(*out));
    for (size_t k = len; k-- > 0;) {
        g->add(&out->weighted, &out->sum);
        g->add_affine(&out->sum, group_at(g, points, k));
    }
}

/* How strips go down: strip j has running sums in column j, and their sum so far in column batch + j. Strips that have no
 * k-th point are the last. */
static void strips_step(struct summer *s, const void *points, size_t len, size_t strip, size_t k)
{
    size_t with_point = len > k ? (len - k - 1) / strip + 1 : 0;
    struct addends add = {points, s->refs[0], with_point};

    columns_add_columns(s->columns, s->batch, 0, with_point);
    for (size_t j = 0; j < with_point; j++)
        s->refs[0][j] = base_ref_make(j * strip + k, false);
    columns_add(s->columns, 0, &add, NULL);
}

/* With strips of length `strip`, point k is number k % strip of strip k / strip: what the strips' own weighing leaves over is
 * the weight of a whole strip, a multiple of `strip`. */
static void weigh(struct summer *s, struct weighed *out, const void *points, size_t len)
{
    const struct group *g = s->group;
    size_t strip = (len + s->batch - 1) / s->batch;
    union point within;

    if (len <= WEIGH_ALONE) {
        weigh_alone(s, out, points, len);
        return;
    }
    strip = strip < STRIP_MIN ? STRIP_MIN : strip;
    size_t strips = (len + strip - 1) / strip;
    columns_clear(s->columns, 0, strips);
    columns_clear(s->columns, s->batch, strips);
    for (size_t k = strip; k-- > 0;)
        strips_step(s, points, len, strip, k);
    columns_store(s->columns, 0, strips, s->points);
    columns_total(s->columns, s->batch, strips, &within);
    weigh(s, out, s->points, strips);
    group_mul_u64(g, &out->weighted, strip);
    g->add(&out->weighted, &within);
}

void summer_weigh(struct summer *s, union point *out, const void *points, size_t len,
                  uint64_t first)
{
    struct weighed w;

    weigh(s, &w, points, len);
    *out = w.sum;
    group_mul_u64(s->group, out, first);
    s->group->add(out, &w.weighted);
}
