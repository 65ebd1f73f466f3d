/*
 * Sums of lists of points: what a multi-scalar multiplication consists of once its points are sorted by bucket.
 *
 * A summer belongs to one thread.
 */
#ifndef GPU_CPU_BUCKET_SUM_H
#define GPU_CPU_BUCKET_SUM_H

#include "gpu/cpu/columns.h"

struct summer;

/* Returns NULL when there is no memory (about 1 MiB). */
struct summer *summer_create(const struct group *group);
void summer_destroy(struct summer *s);

/* Points that are sorted: list k is what refs[start[k]] .. refs[start[k + 1] - 1] name. */
struct lists {
    const void *bases;
    const base_ref *refs;
    const uint32_t *start; /* len + 1 of them */
    size_t len;
};

/* sums[k] = the sum of list k; or += where the sums are to `grow`. Returns 0 or -ENOMEM: it takes some 12 bytes for each list. */
int summer_add_lists(struct summer *s, const struct lists *lists, bool grow, void *sums);

/* out = the sum over k < len of (first + k) * points[k]. */
void summer_weigh(struct summer *s, union point *out, const void *points, size_t len,
                  uint64_t first);

#endif
