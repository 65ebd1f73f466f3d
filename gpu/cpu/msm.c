/*
 * Pippenger's method with signed windows. Scalars are sorted out first, for in a witness most are 0 or 1: zeros are
 * dropped, +-1 become one long list of points to be added up, and only the rest, gathered by index, goes through the
 * windows. A thread takes a window, or a range of its buckets: sorts the points by bucket, sums each bucket
 * (bucket_sum.h) and weighs the sums.
 *
 * Buckets are dealt with in parts of a few batches of sums. The points of a window are first written part by part, which
 * are few streams through memory; a part is then sorted where the second-level cache holds it, and summed while it is there.
 *
 * Scalars of the third kind are taken in slabs, which bounds the memory: their digits are written down window by window. Bases are read
 * from all over, in the order of the buckets, so a slab is gone through in stretches that the CPU's tables of pages cover; the sums
 * of the buckets grow from one stretch to the next and are weighed once a slab.
 */
#include "gpu/cpu/msm.h"

#include <errno.h>
#include <stdlib.h>

#include "gpu/cpu/bucket_sum.h"
#include "gpu/cpu/digits.h"
#include "gpu/cpu/digits_pick.h"
#include "numa/circuit/circuit.h"

#define CHUNK 16384 /* scalars that are classified at a time */
/* Scalars through the windows at a time: 60 bytes each. */
#define SLAB_MAX ((size_t)1 << 22)
/* Of these, whose bases are read at a time: 10 bytes each for each thread. */
#define STRETCH ((size_t)1 << 19)

#define RANGES_A_THREAD 2 /* at least; */
#define FINER 4           /* of the last windows so many times as many */
#define PICKED 2048       /* digits that are looked through at a time */
#define PART_LOG2_MIN 6   /* buckets of the smallest parts */
/* Sums that go together are of lists of like length, so it takes more lists than one batch to choose from. */
#define BATCHES_A_PART 4

enum kind { KIND_ZERO, KIND_UNIT, KIND_WIDE };

/* Parts [first, first + parts) of a window: what a thread takes at a time. */
struct range {
    unsigned window;
    size_t first, parts;
    union point sum;
};

/* Points that are added up as they come: a batch of refs is collected, and each goes to a column of its own. */
struct unit_sum {
    struct columns *columns;
    base_ref *refs;
    size_t len;
};

/* What a thread works with. */
struct sorter {
    struct summer *summer;
    struct unit_sum units;
    int ret; /* -ENOMEM: a sum is missing */
    /* Points of each stretch, window and part, among the scalars that this thread recoded. */
    uint32_t *part_counts;
    size_t *part_start; /* where each part of a range begins; one more at the end */
    base_ref *parted;   /* points of a range and stretch, part by part, */
    uint16_t *bucket;   /* and the bucket of each within its part */
    base_ref *refs;     /* points of a part, sorted by bucket */
    uint32_t *start;    /* where each bucket's points begin */
    void *bucket_sums;  /* of a range */
};

struct msm {
    const struct group *group;
    struct workers *workers;
    struct arena *scratch;
    const void *bases;
    struct msm_terms terms;
    fr_t one, minus_one;
    struct sorter *sorters; /* one a thread */
    size_t batch;           /* additions that share an inversion */
    unsigned threads;
    /* A slab: chunks [chunk_begin, chunk_end), their wide scalars and where they stand. */
    uint32_t *wide_counts; /* by chunk; then where its first one goes */
    size_t chunk_begin, chunk_end, wide_len;
    int32_t *wide_digits; /* of window w from w * wide_len on */
    uint32_t *wide_index;
    struct digits digits;
    unsigned log2_part;             /* buckets to a part */
    size_t parts;                   /* of the widest windows */
    struct range *ranges;           /* in the order of the windows */
    size_t ranges_len, range_parts; /* range_parts: of the longest range */
};

static unsigned windows_of(unsigned bits)
{
    return (255 + bits - 1) / bits;
}

unsigned msm_window_bits(size_t len)
{
    unsigned best = DIGITS_BITS_MIN;
    uint64_t best_cost = UINT64_MAX;

    for (unsigned bits = DIGITS_BITS_MIN; bits <= 20; bits++) {
        uint64_t windows = windows_of(bits);
        uint64_t cost = windows * (len + ((uint64_t)2 << (bits - 1)));
        if (cost < best_cost) {
            best_cost = cost;
            best = bits;
        }
    }
    return best;
}

/* The base of scalar `i`. */
static inline uint32_t base_of(const struct msm *m, size_t i)
{
    return m->terms.point_of ? m->terms.point_of[i] : (uint32_t)i;
}

static enum kind scalar_kind(const struct msm *m, size_t i)
{
    const fr_t *s = &m->terms.scalars[i];

    if (fr_is_zero(s) || base_of(m, i) == MSM_NO_POINT)
        return KIND_ZERO;
    return fr_equal(s, &m->one) || fr_equal(s, &m->minus_one) ? KIND_UNIT : KIND_WIDE;
}

static void chunk_count(void *ctx, size_t chunk, unsigned thread)
{
    struct msm *m = ctx;
    size_t end = min_size(m->terms.len, (chunk + 1) * CHUNK);

    (void)thread;
    for (size_t i = chunk * CHUNK; i < end; i++)
        m->wide_counts[chunk] += scalar_kind(m, i) == KIND_WIDE;
}

/* Points of the parts of this window in this stretch. */
static uint32_t *counts_at(const struct msm *m, uint32_t *part_counts, size_t stretch,
                           unsigned window)
{
    return part_counts + (stretch * m->digits.windows + window) * m->parts;
}

static size_t stretches_of(size_t len)
{
    return (len + STRETCH - 1) / STRETCH;
}

/* Writes the digits of a scalar, the `at`th of the slab, and counts it in the parts that they fall into. A digit of zero has no
 * bucket. */
static void put_digits(const struct msm *m, size_t at, const fr_t *s, uint32_t *part_counts)
{
    uint32_t *counts = counts_at(m, part_counts, at / STRETCH, 0);
    uint64_t magnitude[4];
    struct recoded recoded;
    bool negative;

    digits_magnitude(magnitude, &negative, s);
    digits_recode(&m->digits, &recoded, magnitude, negative);
    for (unsigned w = 0; w < m->digits.windows; w++) {
        int32_t digit = digits_get(&m->digits, &recoded, w);
        m->wide_digits[w * m->wide_len + at] = negative ? -digit : digit;
        if (digit != 0)
            counts[w * m->parts + (((size_t)abs(digit) - 1) >> m->log2_part)]++;
    }
}

static void units_add(const struct msm *m, struct unit_sum *u)
{
    struct addends add = {m->bases, u->refs, u->len};

    columns_add(u->columns, 0, &add, NULL);
    u->len = 0;
}

static inline void units_put(const struct msm *m, struct unit_sum *u, base_ref ref)
{
    u->refs[u->len++] = ref;
    if (u->len == m->batch)
        units_add(m, u);
}

/* The bases of the ones in a word, whose first dense variable has base `base`. */
static void put_ones(const struct msm *m, struct unit_sum *u, uint64_t ones, uint64_t dense,
                     uint32_t base)
{
    for (ones &= dense; ones; ones &= ones - 1) {
        const uint64_t below = (ones & -ones) - 1;
        units_put(m, u, base_ref_make(base + (uint32_t)__builtin_popcountll(dense & below), false));
    }
}

_Static_assert(CHUNK / 64 % CIRCUIT_RANK_WORDS == 0, "a chunk begins where there is a rank");

/* Adds up the points that the bitmap picks, a chunk of variables at a time. */
static void chunk_ones(void *ctx, size_t chunk, unsigned thread)
{
    struct msm *m = ctx;
    const struct msm_terms *t = &m->terms;
    const size_t first = chunk * (CHUNK / 64),
                 end = min_size(first + CHUNK / 64, (t->ones_len + 63) / 64);
    uint32_t base =
        t->dense ? t->first + t->rank[first / CIRCUIT_RANK_WORDS] : (uint32_t)(first * 64);

    for (size_t word = first; word < end; word++) {
        const uint64_t dense = t->dense ? t->dense[word] : UINT64_MAX;
        put_ones(m, &m->sorters[thread].units, t->ones[word], dense, base);
        base += (uint32_t)__builtin_popcountll(dense);
    }
}

/* Gathers the wide scalars of a chunk, and adds up the points of its units. */
static void chunk_take(void *ctx, size_t item, unsigned thread)
{
    struct msm *m = ctx;
    struct sorter *sorter = &m->sorters[thread];
    struct unit_sum *units = &sorter->units;
    size_t chunk = m->chunk_begin + item, end = min_size(m->terms.len, (chunk + 1) * CHUNK);
    uint32_t at = m->wide_counts[chunk];

    for (size_t i = chunk * CHUNK; i < end; i++) {
        const fr_t *s = &m->terms.scalars[i];
        switch (scalar_kind(m, i)) {
        case KIND_ZERO:
            break;
        case KIND_UNIT:
            units_put(m, units, base_ref_make(base_of(m, i), !fr_equal(s, &m->one)));
            break;
        case KIND_WIDE:
            m->wide_index[at] = base_of(m, i);
            put_digits(m, at++, s, sorter->part_counts);
            break;
        }
    }
}

/* Writes the points that a range has in a stretch, part by part. */
static void range_part(const struct msm *m, const struct range *range, size_t stretch,
                       struct sorter *s)
{
    const uint32_t *counts =
        counts_at(m, m->sorters[0].part_counts, stretch, range->window) + range->first;
    const int32_t *digits = m->wide_digits + range->window * m->wide_len;
    const size_t end = min_size(m->wide_len, (stretch + 1) * STRETCH);
    const uint32_t first = (uint32_t)(range->first << m->log2_part),
                   buckets = (uint32_t)(range->parts << m->log2_part),
                   mask = (1u << m->log2_part) - 1;
    uint16_t picked[PICKED + DIGITS_PICK_SPARE];

    /* part_start[p + 1] is where part p begins and moves on to its end, the beginning of the next. */
    s->part_start[0] = s->part_start[1] = 0;
    for (size_t p = 1; p < range->parts; p++)
        s->part_start[p + 1] = s->part_start[p] + counts[p - 1];
    for (size_t i = stretch * STRETCH; i < end; i += PICKED) {
        const size_t n = digits_pick(digits + i, min_size(PICKED, end - i), first, buckets, picked);
        for (size_t k = 0; k < n; k++) {
            const int32_t digit = digits[i + picked[k]];
            const uint32_t bucket = (uint32_t)abs(digit) - 1 - first;
            const size_t at = s->part_start[(bucket >> m->log2_part) + 1]++;
            s->parted[at] = base_ref_make(m->wide_index[i + picked[k]], digit < 0);
            s->bucket[at] = (uint16_t)(bucket & mask);
        }
    }
}

/* Counting sort of a part: the points of bucket b begin at refs[start[b]]. */
static void part_sort(const struct msm *m, struct sorter *s, size_t part)
{
    size_t buckets = (size_t)1 << m->log2_part;

    memset(s->start, 0, (buckets + 2) * sizeof(*s->start));
    for (size_t i = s->part_start[part]; i < s->part_start[part + 1]; i++)
        s->start[s->bucket[i] + 2]++;
    for (size_t b = 2; b < buckets + 2; b++)
        s->start[b] += s->start[b - 1];
    /* start[b + 1] moves on to the end of bucket b. */
    for (size_t i = s->part_start[part]; i < s->part_start[part + 1]; i++)
        s->refs[s->start[s->bucket[i] + 1]++] = s->parted[i];
}

/* Adds the points of a stretch to the buckets of a range. */
static int range_add(const struct msm *m, const struct range *range, size_t stretch,
                     struct sorter *s)
{
    const size_t buckets = (size_t)1 << m->log2_part;
    const struct lists lists = {m->bases, s->refs, s->start, buckets};
    int ret = 0;

    range_part(m, range, stretch, s);
    for (size_t part = 0; ret == 0 && part < range->parts; part++) {
        part_sort(m, s, part);
        ret = summer_add_lists(s->summer, &lists, stretch > 0,
                               group_at(m->group, s->bucket_sums, part * buckets));
    }
    return ret;
}

static void range_sum(void *ctx, size_t item, unsigned thread)
{
    struct msm *m = ctx;
    struct range *range = &m->ranges[item];
    struct sorter *s = &m->sorters[thread];
    size_t buckets = (size_t)1 << m->log2_part;
    int ret = 0;

    for (size_t stretch = 0; ret == 0 && stretch < stretches_of(m->wide_len); stretch++)
        ret = range_add(m, range, stretch, s);
    if (ret < 0)
        s->ret = ret;
    else
        summer_weigh(s->summer, &range->sum, s->bucket_sums, range->parts * buckets,
                     range->first * buckets + 1);
}

/* How many ranges a window is cut into: as few as will do, for every range costs a look at all digits of its window. The last
 * quarter of the windows is cut finer, so that threads end together. */
static size_t ranges_wanted(const struct msm *m, unsigned window)
{
    size_t ranges = 1;

    while (ranges * m->digits.windows < RANGES_A_THREAD * (size_t)m->threads)
        ranges *= 2;
    return window < m->digits.windows - m->digits.windows / 4 ? ranges : FINER * ranges;
}

/* Parts are of so many batches, or smaller where there would not be as many as ranges are wanted. */
static void parts_init(struct msm *m)
{
    size_t wanted = ranges_wanted(m, m->digits.windows - 1), batch = columns_batch(m->group);
    unsigned narrowest = digits_log2_max(&m->digits, m->digits.windows - 1);

    m->log2_part = narrowest;
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): no window has 64 bits */
    while (m->log2_part > PART_LOG2_MIN && ((size_t)1 << m->log2_part > BATCHES_A_PART * batch ||
                                            (size_t)1 << (narrowest - m->log2_part) < wanted))
        m->log2_part--;
    m->parts = (size_t)1 << (m->digits.bits - 1 - m->log2_part);
}

static int ranges_init(struct msm *m)
{
    const size_t most = ranges_wanted(m, m->digits.windows - 1);

    m->ranges_len = m->range_parts = 0;
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): there is a window */
    m->ranges = malloc(most * m->digits.windows * sizeof(*m->ranges));
    if (!m->ranges)
        return -ENOMEM;
    for (unsigned w = 0; w < m->digits.windows; w++) {
        const size_t parts = (size_t)1 << (digits_log2_max(&m->digits, w) - m->log2_part),
                     a_window = min_size(parts, ranges_wanted(m, w)), length = parts / a_window;
        for (size_t r = 0; r < a_window; r++)
            m->ranges[m->ranges_len++] =
                (struct range){.window = w, .first = r * length, .parts = length};
        m->range_parts = length > m->range_parts ? length : m->range_parts;
    }
    return 0;
}

static size_t counts_len(const struct msm *m)
{
    return stretches_of(m->wide_len) * m->digits.windows * m->parts;
}

static int sorter_alloc(const struct msm *m, struct sorter *s)
{
    size_t buckets = (size_t)1 << m->log2_part, stretch = min_size(m->wide_len, STRETCH),
           counts = counts_len(m);

    s->part_counts = arena_carve(m->scratch, counts * sizeof(*s->part_counts));
    s->part_start = arena_carve(m->scratch, (m->parts + 1) * sizeof(*s->part_start));
    s->parted = arena_carve(m->scratch, stretch * sizeof(*s->parted));
    s->bucket = arena_carve(m->scratch, stretch * sizeof(*s->bucket));
    s->refs = arena_carve(m->scratch, stretch * sizeof(*s->refs));
    s->start = arena_carve(m->scratch, (buckets + 2) * sizeof(*s->start));
    s->bucket_sums = arena_carve(m->scratch, m->range_parts * buckets * m->group->affine_bytes);
    if (!s->part_counts || !s->part_start || !s->parted || !s->bucket || !s->refs || !s->start ||
        !s->bucket_sums)
        return -ENOMEM;
    memset(s->part_counts, 0, counts * sizeof(*s->part_counts));
    return 0;
}

static int slab_alloc(struct msm *m)
{
    digits_init_even(&m->digits, windows_of(msm_window_bits(m->wide_len)));
    parts_init(m);
    m->wide_digits =
        arena_carve(m->scratch, m->digits.windows * m->wide_len * sizeof(*m->wide_digits));
    m->wide_index = arena_carve(m->scratch, m->wide_len * sizeof(*m->wide_index));
    int ret = m->wide_digits && m->wide_index ? ranges_init(m) : -ENOMEM;
    for (unsigned t = 0; ret == 0 && t < m->threads; t++)
        ret = sorter_alloc(m, &m->sorters[t]);
    return ret;
}

/* What slab_alloc carves for the longest slab, whose windows have the most buckets. */
size_t msm_scratch_bytes(const struct group *group, size_t len, unsigned threads)
{
    size_t slab = min_size(len, SLAB_MAX);
    unsigned bits = msm_window_bits(slab);
    size_t buckets = (size_t)1 << (bits - 1), parts = (buckets >> PART_LOG2_MIN) + 2;
    size_t windows = windows_of(bits), stretch = min_size(slab, STRETCH);
    size_t sorter =
        2 * arena_carved_bytes(stretch * sizeof(base_ref)) +
        arena_carved_bytes(stretch * sizeof(uint16_t)) +
        arena_carved_bytes(stretches_of(slab) * windows * (parts + 1) * sizeof(uint32_t)) +
        arena_carved_bytes((parts + 2) * sizeof(size_t)) +
        arena_carved_bytes((buckets + 2) * sizeof(uint32_t)) +
        arena_carved_bytes(buckets * group->affine_bytes);

    /* A shorter slab may have more digits, but no more than the cost that msm_window_bits makes least, which grows with length. */
    return arena_carved_bytes(windows * (slab + 2 * buckets) * sizeof(int32_t)) +
           arena_carved_bytes(slab * sizeof(uint32_t)) + threads * sorter;
}

/* out += the sum over the windows of 2^(bits * window) * (the sum of the window's ranges). */
static void windows_join(const struct msm *m, union point *out)
{
    const struct group *g = m->group;
    union point sum = {0};
    unsigned window = m->digits.windows - 1;

    for (size_t r = m->ranges_len; r-- > 0;) {
        for (unsigned at = digits_at(&m->digits, window),
                      to = digits_at(&m->digits, m->ranges[r].window);
             at > to; at--)
            g->twice(&sum);
        window = m->ranges[r].window;
        g->add(&sum, &m->ranges[r].sum);
    }
    g->add(out, &sum);
}

static int slab_run(struct msm *m, union point *out)
{
    size_t mark = arena_mark(m->scratch);
    int ret = slab_alloc(m);

    if (ret < 0)
        goto out;
    workers_run(m->workers, m->chunk_end - m->chunk_begin, chunk_take, m);
    for (unsigned t = 1; t < m->threads; t++)
        for (size_t i = 0; i < counts_len(m); i++)
            m->sorters[0].part_counts[i] += m->sorters[t].part_counts[i];
    if (m->wide_len > 0) {
        workers_run(m->workers, m->ranges_len, range_sum, m);
        for (unsigned t = 0; t < m->threads; t++)
            ret = ret < 0 ? ret : m->sorters[t].ret;
        windows_join(m, out);
    }
out:
    free(m->ranges);
    m->ranges = NULL;
    arena_rewind(m->scratch, mark);
    return ret;
}

/* Runs the slabs, each as many chunks as SLAB_MAX allows. */
static int slabs_run(struct msm *m, size_t chunks, union point *out)
{
    int ret = 0;

    for (m->chunk_begin = 0; ret == 0 && m->chunk_begin < chunks; m->chunk_begin = m->chunk_end) {
        m->wide_len = 0;
        for (m->chunk_end = m->chunk_begin; m->chunk_end < chunks; m->chunk_end++) {
            uint32_t count = m->wide_counts[m->chunk_end];
            if (m->wide_len + count > SLAB_MAX)
                break;
            m->wide_counts[m->chunk_end] = (uint32_t)m->wide_len;
            m->wide_len += count;
        }
        ret = slab_run(m, out);
    }
    return ret;
}

static void msm_fini(struct msm *m)
{
    for (unsigned t = 0; m->sorters && t < m->threads; t++) {
        summer_destroy(m->sorters[t].summer);
        columns_destroy(m->sorters[t].units.columns);
        free(m->sorters[t].units.refs);
    }
    free(m->sorters);
    free(m->wide_counts);
}

static int msm_init(struct msm *m, size_t chunks)
{
    m->one = fr_from_u64(1);
    fr_neg(&m->minus_one, &m->one);
    m->threads = workers_count(m->workers);
    m->sorters = calloc(m->threads, sizeof(*m->sorters));
    m->wide_counts = calloc(chunks + 1, sizeof(*m->wide_counts));
    if (!m->sorters || !m->wide_counts)
        return -ENOMEM;
    m->batch = columns_batch(m->group);
    for (unsigned t = 0; t < m->threads; t++) {
        struct sorter *s = &m->sorters[t];
        s->summer = summer_create(m->group);
        s->units.columns = columns_create(m->group, m->batch);
        s->units.refs = malloc(m->batch * sizeof(*s->units.refs));
        if (!s->summer || !s->units.columns || !s->units.refs)
            return -ENOMEM;
        columns_clear(s->units.columns, 0, m->batch);
    }
    return 0;
}

int msm_run(const struct msm_task *task, union point *out, struct errmsg *err)
{
    struct msm m = {.group = task->group,
                    .workers = task->workers,
                    .scratch = task->scratch,
                    .bases = task->bases,
                    .terms = task->terms};
    const size_t len = m.terms.len, ones_len = m.terms.ones_len, chunks = (len + CHUNK - 1) / CHUNK;
    union point sum = {0};

    if (len > MSM_LEN_MAX || ones_len > MSM_LEN_MAX)
        return errmsg_set(err, -EINVAL, "%zu points in one sum: too many",
                          len > ones_len ? len : ones_len);
    int ret = msm_init(&m, chunks);
    if (ret == 0) {
        workers_run(m.workers, (ones_len + CHUNK - 1) / CHUNK, chunk_ones, &m);
        workers_run(m.workers, chunks, chunk_count, &m);
        ret = slabs_run(&m, chunks, &sum);
    }
    for (unsigned t = 0; ret == 0 && t < m.threads; t++) {
        union point units;
        units_add(&m, &m.sorters[t].units);
        columns_total(m.sorters[t].units.columns, 0, m.batch, &units);
        m.group->add(&sum, &units);
    }
    if (ret == 0)
        *out = sum;
    msm_fini(&m);
    return ret ? errmsg_set(err, ret, "no memory for a sum of %zu points", len) : 0;
}
