/*
 * Points are multiplied by their factors on the way to the bit-reversed order, and then levels of butterflies bring them back. Each step is cut into
 * slices, so that the caller hears how far it is.
 */
#include "gpu/cpu/point_transform.h"

#include <errno.h>
#include <stdlib.h>

#include "gpu/domain.h"
#include "numa/memory.h"

#define CHUNK 64  /* products that a worker takes at a time: some milliseconds */
#define SLICE 128 /* chunks between two reports */

struct transform {
    g1_affine_t *points;
    uint32_t log2_len;
    const fr_t *shift, *factor;
    g1_t *sums;
    uint8_t (*roots)[FR_BYTES]; /* w^-i, i < m/2 */
    size_t half;                /* butterflies of a block on this level */
    size_t first;               /* chunk of this slice */
    size_t len;                 /* of what this step goes over */
    /* products */
    uint64_t done, total;
    backend_progress progress;
    void *progress_ctx;
};

/* Of a chunk of this slice: the first of its items, and where they end. */
static size_t chunk_at(const struct transform *t, size_t item, size_t *end)
{
    const size_t first = (t->first + item) * CHUNK;

    *end = min_size(t->len, first + CHUNK);
    return first;
}

static void roots_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    fr_t root = domain_root(t->log2_len), power;
    size_t end, i = chunk_at(t, item, &end);

    (void)thread;
    fr_inverse(&root, &root);
    power = fr_power(&root, i);
    for (; i < end; i++) {
        fr_to_bytes(t->roots[i], &power);
        fr_mul(&power, &power, &root);
    }
}

static size_t reversed(size_t i, uint32_t bits)
{
    size_t out = 0;

    for (uint32_t bit = 0; bit < bits; bit++)
        out = out << 1 | (i >> bit & 1);
    return out;
}

static void scale_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    size_t end, k = chunk_at(t, item, &end);
    fr_t power = fr_power(t->shift, k);
    uint8_t scalar[FR_BYTES];
    g1_t point;

    (void)thread;
    fr_mul(&power, &power, t->factor);
    for (; k < end; k++) {
        fr_to_bytes(scalar, &power);
        blst_p1_from_affine(&point, &t->points[k]);
        blst_p1_mult(&t->sums[reversed(k, t->log2_len)], &point, scalar, FR_BITS);
        fr_mul(&power, &power, t->shift);
    }
}

static void butterfly_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    const size_t step = ((size_t)1 << t->log2_len) / 2 / t->half;
    size_t end, i = chunk_at(t, item, &end);
    g1_t product;

    (void)thread;
    for (; i < end; i++) {
        const size_t at = i % t->half;
        g1_t *low = &t->sums[2 * (i - at) + at], *high = low + t->half;
        if (at > 0)
            blst_p1_mult(&product, high, t->roots[at * step], FR_BITS);
        else
            product = *high;
        *high = product;
        blst_p1_cneg(high, true);
        blst_p1_add_or_double(high, low, high);
        blst_p1_add_or_double(low, low, &product);
    }
}

static void store_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct transform *t = ctx;
    size_t end, i = chunk_at(t, item, &end);

    (void)thread;
    for (; i < end; i++)
        blst_p1_to_affine(&t->points[i], &t->sums[i]);
}

/* One step over `len` items, which are as many products or (free) none. */
static void run_step(struct transform *t, struct workers *workers, size_t len,
                     bool free_of_products, void (*body)(void *ctx, size_t item, unsigned thread))
{
    const size_t chunks = (len + CHUNK - 1) / CHUNK;

    t->len = len;
    for (t->first = 0; t->first < chunks; t->first += SLICE) {
        workers_run(workers, min_size(SLICE, chunks - t->first), body, t);
        if (free_of_products)
            continue;
        t->done += min_size(SLICE * CHUNK, len - t->first * CHUNK);
        if (t->progress)
            t->progress(t->progress_ctx, "transform", t->done, t->total);
    }
}

static void run(struct transform *t, struct workers *workers)
{
    const size_t m = (size_t)1 << t->log2_len;

    t->total = m + m / 2 * t->log2_len;
    run_step(t, workers, m / 2, true, roots_chunk);
    run_step(t, workers, m, false, scale_chunk);
    for (t->half = 1; t->half < m; t->half *= 2)
        run_step(t, workers, m / 2, false, butterfly_chunk);
    run_step(t, workers, m, true, store_chunk);
}

int point_transform(g1_affine_t *points, uint32_t log2_len, const fr_t *shift, const fr_t *factor,
                    struct workers *workers, backend_progress progress, void *progress_ctx,
                    struct errmsg *err)
{
    struct transform t = {.points = points,
                          .log2_len = log2_len,
                          .shift = shift,
                          .factor = factor,
                          .progress = progress,
                          .progress_ctx = progress_ctx};
    int ret = 0;

    if (log2_len >= DOMAIN_LOG2_LEN_MAX)
        return errmsg_set(err, -EINVAL, "no transform of 2^%u points", log2_len);
    t.sums = memory_alloc((size_t)1 << log2_len, sizeof(*t.sums));
    t.roots = memory_alloc(((size_t)1 << log2_len) / 2 + 1, sizeof(*t.roots));
    if (t.sums && t.roots)
        run(&t, workers);
    else
        ret = errmsg_set(err, -ENOMEM, "no memory to transform 2^%u points", log2_len);
    free(t.sums);
    free(t.roots);
    return ret;
}
