/*
 * The inside of batch_add.c: batches of chord additions, four side by side, for CPUs with AVX2 and FMA.
 */
#ifndef GPU_CPU_BATCH_ADD_AVX2_H
#define GPU_CPU_BATCH_ADD_AVX2_H

#include "gpu/cpu/batch_add.h"

/* What will be added after a batch: its points are asked for in the meantime. */
struct add_pairs_next {
    const struct add_pair *pairs;
    size_t len;
};

/* Into the second-level cache: a batch and its next are too much for the first. */
static inline void prefetch_point(const void *point, size_t point_bytes)
{
    const char *p = point;

    for (size_t at = 0; at < point_bytes; at += 64)
        __builtin_prefetch(p + at, 0, 2);
    __builtin_prefetch(p + point_bytes - 1, 0, 2); /* a point begins anywhere in a cache line */
}

static inline void prefetch_pair(const struct add_pair *pair, size_t point_bytes)
{
    prefetch_point(pair->a, point_bytes);
    prefetch_point(pair->b, point_bytes);
}

/* Adds pairs of points with different x, none at infinity; len is a multiple of four, at most that of a batch. */
void g1_add_chords_avx2(const struct add_pair *const *pairs, size_t len,
                        const struct add_pairs_next *next, struct batch_scratch *scratch);
void g2_add_chords_avx2(const struct add_pair *const *pairs, size_t len,
                        const struct add_pairs_next *next, struct batch_scratch *scratch);

#endif
