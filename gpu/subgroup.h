/*
 * Are all of many points in the subgroup of prime order? Millions of points at the price of a few additions each.
 *
 * Points are summed up in random buckets and the sums are checked. A point outside the subgroup makes the sum of
 * its bucket fall outside unless others in the same bucket make up for it; whatever the points are, the last of
 * them hits the one bucket that would hide it with probability 1 in SUBGROUP_BUCKETS at most. Independent rounds
 * multiply: 2^-84. (One random combination of all points would not do: the cofactor of G1 is divisible by 3, and
 * a component of order 3 vanishes from it by chance once in three times.)
 *
 * The buckets of a point follow from a secret key and the point's place alone, so that after a failure the
 * culprit can be found. A check belongs to one thread; subgroup_check_add alone may be called by several at once,
 * each with a `thread` of its own.
 */
#ifndef GPU_SUBGROUP_H
#define GPU_SUBGROUP_H

#include "gpu/cpu/group.h"
#include "numa/workers.h"

#define SUBGROUP_BUCKETS 16384
#define SUBGROUP_ROUNDS 6
#define SUBGROUP_PIECE 4096 /* points at most in one call */

struct subgroup_check;

/* For `threads` threads: 9.4 MB for each that adds points of G1, 18.9 MB for G2. Returns 0 with *out set (end it
 * with subgroup_check_destroy), -ENOMEM, -EIO (no random key). */
int subgroup_check_create(const struct group *group, unsigned threads, struct subgroup_check **out,
                          struct errmsg *err);
void subgroup_check_destroy(struct subgroup_check *check);

/* Takes in `len` points on the curve. `piece` numbers the calls: each number once. */
void subgroup_check_add(struct subgroup_check *check, uint64_t piece, const void *points, size_t len,
                        unsigned thread);

/* Where a bad sum was found. */
struct subgroup_fault {
    unsigned round;
    uint32_t bucket;
};

/* After the last point: *good says that every sum is in the subgroup, else *fault is one that is not. Returns 0,
 * or -EIO when the random choice failed on the way. */
int subgroup_check_finish(struct subgroup_check *check, struct workers *workers, bool *good,
                          struct subgroup_fault *fault, struct errmsg *err);

/* The index of the first point of a piece that went into the bucket of `fault` and is outside the subgroup
 * itself; `len` when there is none. The arguments are those of subgroup_check_add. */
size_t subgroup_check_find(const struct subgroup_check *check, const struct subgroup_fault *fault,
                           uint64_t piece, const void *points, size_t len);

#endif
