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

/* sums[k] = the sum of the bases that refs[start[k]] .. refs[start[k + 1] - 1] name, for k < lists. Returns 0 or -ENOMEM: it
 * takes some 12 bytes for each list. */
int summer_add_lists(struct summer *s, const void *bases, const base_ref *refs,
                     const uint32_t *start, size_t lists, void *sums);

/* out = the sum over k < len of (first + k) * points[k]. */
void summer_weigh(struct summer *s, union point *out, const void *points, size_t len,
                  uint64_t first);

#endif
