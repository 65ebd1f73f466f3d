/*
 * Sums of points that grow side by side: every column takes one more point at a time, and the additions of all columns
 * share an inversion. All sums of the CPU prover and of the parameter setup are columns: the buckets of a multi-scalar
 * multiplication, running sums over buckets, products with a fixed base.
 *
 * The sums are complete: infinity, equal and opposite points are right, for any points on the curve (in the subgroup or not).
 * Nothing here is constant in time. How columns are kept depends on the CPU: as affine points that are added in pairs
 * (batch_add.h), or eight side by side in vectors (columns_ifma.c).
 *
 * Columns belong to one thread at a time.
 */
#ifndef GPU_CPU_COLUMNS_H
#define GPU_CPU_COLUMNS_H

#include "gpu/cpu/group.h"

/* A base by index, times the sign in the lowest bit (1: negated). */
typedef uint32_t base_ref;

static inline base_ref base_ref_make(size_t index, bool negate)
{
    return (base_ref)(index << 1 | negate);
}

/* What columns take: refs[i] names an affine point of `bases` for column i. */
struct addends {
    const void *bases;
    const base_ref *refs;
    size_t len;
};

/* Ranges of columns begin at multiples of this. */
#define COLUMNS_ALIGN 8

struct columns;

/* `len` columns of a group, of no contents; a range is cleared before it is used. NULL without memory. */
struct columns *columns_create(const struct group *group, size_t len);
void columns_destroy(struct columns *c);

/* As many additions as should go together: more gain little and leave the second-level cache, with fewer the inversion is
 * felt. A multiple of COLUMNS_ALIGN, the same for all columns of a group. */
size_t columns_batch(const struct group *group);

/* Columns [at, at + len) become infinity. */
void columns_clear(struct columns *c, size_t at, size_t len);

/* Column at + i += what refs[i] names, i < add->len. Meanwhile the points of `next` (NULL: none) may be read, which are what the
 * caller adds in the next call and stay as they are until then: it hides the way to memory where they are taken from all over a
 * long array. */
void columns_add(struct columns *c, size_t at, const struct addends *add,
                 const struct addends *next);

/* Column to + i += column from + i, i < len. The ranges are the same (doubling) or do not overlap. */
void columns_add_columns(struct columns *c, size_t to, size_t from, size_t len);

/* Writes columns [at, at + len) as affine points. */
void columns_store(struct columns *c, size_t at, size_t len, void *out);

/* *out = the sum of columns [at, at + len), whose contents are lost. */
void columns_total(struct columns *c, size_t at, size_t len, union point *out);

#endif
