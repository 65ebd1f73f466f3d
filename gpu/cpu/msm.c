/*
 * Pippenger's method with signed windows. Scalars are sorted out first, for in a witness most are 0 or 1: zeros are
 * dropped, +-1 become one long list of points to be added up, and only the rest, gathered by index, goes through the
 * windows. For each window and range of buckets, one thread sorts the points by bucket, sums each bucket
 * (bucket_sum.h) and weighs the sums.
 *
 * Memory is bounded by taking the scalars in slabs of SLAB_MAX of the third kind; a slab costs a sum of buckets for each
 * window, so it should be large.
 */
#include "gpu/cpu/msm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gpu/cpu/bucket_sum.h"
#include "gpu/cpu/digits.h"

#define CHUNK 16384 /* scalars that are classified at a time */
#define SLAB_MAX \
    (1u          \
     << 22) /* scalars through the windows at a time: 36 bytes each, and 4 more for each thread */

enum kind { KIND_ZERO, KIND_UNIT, KIND_WIDE };

struct msm {
    const struct group *group;
    struct workers *workers;
    const void *bases;
    const fr_t *scalars;
    size_t len;
    fr_t one, minus_one;
    struct summer **summers; /* one a thread, as are the next two */
    base_ref **refs;         /* points of a range, sorted by bucket */
    union point *unit_sums;
    /* A slab: chunks [chunk_begin, chunk_end), their wide scalars and where they stand. */
    uint32_t *wide_counts; /* by chunk; then where its first one goes */
    size_t chunk_begin, chunk_end, wide_len;
    struct recoded *wide;
    uint32_t *wide_index;
    /* The windows of a slab, each cut into `ranges` of `buckets` buckets. */
    struct digits digits;
    size_t ranges, buckets;
    uint32_t **starts;  /* by thread: where each bucket's points begin */
    char **sums;        /* by thread: of the buckets */
    union point *parts; /* by window and range */
};

unsigned msm_window_bits(size_t len)
{
    unsigned best = DIGITS_BITS_MIN;
    uint64_t best_cost = UINT64_MAX;

    for (unsigned bits = DIGITS_BITS_MIN; bits <= 20; bits++) {
        uint64_t windows = (255 + bits - 1) / bits;
        uint64_t cost = windows * (len + ((uint64_t)2 << (bits - 1)));
        if (cost < best_cost) {
            best_cost = cost;
            best = bits;
        }
    }
    return best;
}

static enum kind scalar_kind(const struct msm *m, const fr_t *s)
{
    if (fr_is_zero(s))
        return KIND_ZERO;
    return fr_equal(s, &m->one) || fr_equal(s, &m->minus_one) ? KIND_UNIT : KIND_WIDE;
}

static void chunk_count(void *ctx, size_t chunk, unsigned thread)
{
    struct msm *m = ctx;
    size_t end = min_size(m->len, (chunk + 1) * CHUNK);

    (void)thread;
    for (size_t i = chunk * CHUNK; i < end; i++)
        m->wide_counts[chunk] += scalar_kind(m, &m->scalars[i]) == KIND_WIDE;
}

static void recode(const struct digits *d, struct recoded *out, const fr_t *s)
{
    uint64_t magnitude[4];
    bool negative;

    digits_magnitude(magnitude, &negative, s);
    digits_recode(d, out, magnitude, negative);
}

/* Gathers the wide scalars of a chunk, and adds up the points of its units. */
static void chunk_take(void *ctx, size_t item, unsigned thread)
{
    struct msm *m = ctx;
    size_t chunk = m->chunk_begin + item, end = min_size(m->len, (chunk + 1) * CHUNK);
    uint32_t at = m->wide_counts[chunk], units[2] = {0};
    base_ref refs[CHUNK];

    for (size_t i = chunk * CHUNK; i < end; i++) {
        const fr_t *s = &m->scalars[i];
        switch (scalar_kind(m, s)) {
        case KIND_ZERO:
            break;
        case KIND_UNIT:
            refs[units[1]++] = base_ref_make(i, !fr_equal(s, &m->one));
            break;
        case KIND_WIDE:
            m->wide_index[at] = (uint32_t)i;
            recode(&m->digits, &m->wide[at++], s);
            break;
        }
    }
    g2_affine_t sum = {0}; /* has room for a point of G1 */
    summer_add_lists(m->summers[thread], m->bases, refs, units, 1, &sum);
    m->group->add_affine(&m->unit_sums[thread], &sum);
}

/* Bucket of a digit relative to a range, or a number that is not below the count of its buckets. */
static inline size_t bucket_of(int32_t digit, size_t first)
{
    return (size_t)abs(digit) - 1 - first;
}

/* Counting sort of the points whose digit falls into the range. */
static void range_sort(const struct msm *m, unsigned window, size_t first, uint32_t *start,
                       base_ref *refs)
{
    memset(start, 0, (m->buckets + 2) * sizeof(*start));
    for (size_t i = 0; i < m->wide_len; i++) {
        size_t bucket = bucket_of(digits_get(&m->digits, &m->wide[i], window), first);
        if (bucket < m->buckets)
            start[bucket + 2]++;
    }
    for (size_t b = 2; b < m->buckets + 2; b++)
        start[b] += start[b - 1];
    /* start[b + 1] is where bucket b begins and moves on to its end, the beginning of the next. */
    for (size_t i = 0; i < m->wide_len; i++) {
        int32_t digit = digits_get(&m->digits, &m->wide[i], window);
        size_t bucket = bucket_of(digit, first);
        if (bucket < m->buckets)
            refs[start[bucket + 1]++] =
                base_ref_make(m->wide_index[i], (digit < 0) != digits_negative(&m->wide[i]));
    }
}

static void range_sum(void *ctx, size_t item, unsigned thread)
{
    struct msm *m = ctx;
    size_t first = item % m->ranges * m->buckets;
    uint32_t *start = m->starts[thread];

    range_sort(m, (unsigned)(item / m->ranges), first, start, m->refs[thread]);
    memset(m->sums[thread], 0, m->buckets * m->group->affine_bytes); /* infinity */
    summer_add_lists(m->summers[thread], m->bases, m->refs[thread], start, m->buckets,
                     m->sums[thread]);
    summer_weigh(m->summers[thread], &m->parts[item], m->sums[thread], m->buckets, first + 1);
}

/* Enough ranges that the threads end at about the same time: each thread several. */
static size_t choose_ranges(const struct digits *d, unsigned threads)
{
    size_t ranges = 1, buckets = (size_t)1 << (d->bits - 1);

    while (ranges * d->windows < 8 * (size_t)threads && threads > 1 && buckets / ranges > 64)
        ranges *= 2;
    return ranges;
}

static void slab_free(struct msm *m)
{
    for (unsigned t = 0; t < workers_count(m->workers); t++) {
        free(m->refs[t]);
        free(m->starts[t]);
        free(m->sums[t]);
        m->refs[t] = NULL;
        m->starts[t] = NULL;
        m->sums[t] = NULL;
    }
    free(m->wide);
    free(m->wide_index);
    free(m->parts);
    m->wide = NULL;
    m->wide_index = NULL;
    m->parts = NULL;
}

static int slab_alloc(struct msm *m)
{
    unsigned threads = workers_count(m->workers);

    digits_init(&m->digits, msm_window_bits(m->wide_len));
    m->ranges = choose_ranges(&m->digits, threads);
    m->buckets = ((size_t)1 << (m->digits.bits - 1)) / m->ranges;
    m->wide = malloc((m->wide_len + 1) * sizeof(*m->wide));
    m->wide_index = malloc((m->wide_len + 1) * sizeof(*m->wide_index));
    m->parts = malloc(m->digits.windows * m->ranges * sizeof(*m->parts));
    if (!m->wide || !m->wide_index || !m->parts)
        return -ENOMEM;
    for (unsigned t = 0; t < threads; t++) {
        m->refs[t] = malloc((m->wide_len + 1) * sizeof(*m->refs[t]));
        m->starts[t] = malloc((m->buckets + 2) * sizeof(*m->starts[t]));
        m->sums[t] = malloc(m->buckets * m->group->affine_bytes);
        if (!m->refs[t] || !m->starts[t] || !m->sums[t])
            return -ENOMEM;
    }
    return 0;
}

/* out += the sum over the windows of 2^(bits * window) * (the sum of the window's ranges). */
static void windows_join(const struct msm *m, union point *out)
{
    const struct group *g = m->group;
    union point sum = {0};

    for (size_t w = m->digits.windows; w-- > 0;) {
        for (unsigned i = 0; i < m->digits.bits; i++)
            g->twice(&sum);
        for (size_t r = 0; r < m->ranges; r++)
            g->add(&sum, &m->parts[w * m->ranges + r]);
    }
    g->add(out, &sum);
}

static int slab_run(struct msm *m, union point *out)
{
    int ret = slab_alloc(m);

    if (ret < 0)
        goto out;
    workers_run(m->workers, m->chunk_end - m->chunk_begin, chunk_take, m);
    if (m->wide_len > 0) {
        workers_run(m->workers, m->digits.windows * m->ranges, range_sum, m);
        windows_join(m, out);
    }
out:
    slab_free(m);
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
    for (unsigned t = 0; m->summers && t < workers_count(m->workers); t++)
        summer_destroy(m->summers[t]);
    free(m->summers);
    free(m->refs);
    free(m->starts);
    free(m->sums);
    free(m->unit_sums);
    free(m->wide_counts);
}

static int msm_init(struct msm *m, size_t chunks)
{
    unsigned threads = workers_count(m->workers);

    m->one = fr_from_u64(1);
    fr_neg(&m->minus_one, &m->one);
    m->summers = calloc(threads, sizeof(*m->summers));
    m->refs = calloc(threads, sizeof(*m->refs));
    m->starts = calloc(threads, sizeof(*m->starts));
    m->sums = calloc(threads, sizeof(*m->sums));
    m->unit_sums = calloc(threads, sizeof(*m->unit_sums));
    m->wide_counts = calloc(chunks + 1, sizeof(*m->wide_counts));
    if (!m->summers || !m->refs || !m->starts || !m->sums || !m->unit_sums || !m->wide_counts)
        return -ENOMEM;
    for (unsigned t = 0; t < threads; t++) {
        m->summers[t] = summer_create(m->group);
        if (!m->summers[t])
            return -ENOMEM;
    }
    return 0;
}

int msm_run(const struct group *group, struct workers *workers, union point *out, const void *bases,
            const fr_t *scalars, size_t len, struct errmsg *err)
{
    struct msm m = {
        .group = group, .workers = workers, .bases = bases, .scalars = scalars, .len = len};
    size_t chunks = (len + CHUNK - 1) / CHUNK;
    union point sum = {0};

    if (len > MSM_LEN_MAX)
        return errmsg_set(err, -EINVAL, "%zu points in one sum: too many", len);
    int ret = msm_init(&m, chunks);
    if (ret < 0)
        goto out;
    workers_run(workers, chunks, chunk_count, &m);
    ret = slabs_run(&m, chunks, &sum);
    for (unsigned t = 0; ret == 0 && t < workers_count(workers); t++)
        group->add(&sum, &m.unit_sums[t]);
    if (ret == 0)
        *out = sum;
out:
    msm_fini(&m);
    return ret ? errmsg_set(err, ret, "no memory for a sum of %zu points", len) : 0;
}
