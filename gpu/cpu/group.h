/*
 * A group as the sums of the CPU backend see it: sizes and operations, so that bucket sums and tables of multiples are
 * written once for G1 and G2. Points are passed as void pointers, of the group's affine or projective type.
 *
 * Constant; any thread may use it.
 */
#ifndef GPU_CPU_GROUP_H
#define GPU_CPU_GROUP_H

#include "gpu/cpu/batch_add.h"

/* A projective point of either group; all zero is infinity. */
union point {
    g1_t g1;
    g2_t g2;
};

struct group {
    size_t affine_bytes;
    void (*add_pairs)(const struct add_pair *pairs, size_t len, struct batch_scratch *scratch);
    void (*add_pairs_ahead)(const struct add_pair *pairs, size_t len, const struct add_pair *next,
                            size_t next_len, struct batch_scratch *scratch);
    void (*add_affine)(union point *acc, const void *affine);
    void (*add)(union point *acc, const union point *p);
    void (*twice)(union point *acc);
    void (*from_affine)(union point *out, const void *affine);
    void (*to_affine)(void *out, const union point *p);
};

extern const struct group group_g1, group_g2;

static inline void *group_at(const struct group *g, const void *points, size_t i)
{
    return (char *)points + i * g->affine_bytes;
}

/* acc = factor * acc */
void group_mul_u64(const struct group *g, union point *acc, uint64_t factor);

#endif
