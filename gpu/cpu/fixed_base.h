/*
 * One base times many scalars: what the parameter setup does some ten million times.
 *
 * A table holds, for each window of the scalar, the multiples of the base that its digit may ask for; a product is
 * then one addition a window, and the additions of many products share their inversions (batch_add.h).
 *
 * A table is immutable once made and may be used by any thread; a call with workers is the only one on them.
 */
#ifndef GPU_CPU_FIXED_BASE_H
#define GPU_CPU_FIXED_BASE_H

#include "gpu/curve.h"
#include "numa/workers.h"

/* Windows that make some millions of products fastest: 50 MB for G1, 16 MB for G2. With more bits there are fewer additions, but
 * what the tables take outgrows the caches and the CPU's tables of pages (Zen 5, virtual, under load: 0.88 us a product in G1 with
 * 15, 0.83 with 16, 0.86 with 17, 1.03 with 18). */
#define FIXED_BASE_G1_BITS 16
#define FIXED_BASE_G2_BITS 13

struct fixed_base;

/* Makes the table of `base`, which must be in the prime-order subgroup, for windows of `window_bits` (2 to 20), on all
 * of `workers` (NULL: this thread alone). Returns 0 with *out set (end it with fixed_base_destroy), -EINVAL, -ENOMEM. */
int fixed_base_g1_create(const g1_affine_t *base, unsigned window_bits, struct workers *workers,
                         struct fixed_base **out, struct errmsg *err);
int fixed_base_g2_create(const g2_affine_t *base, unsigned window_bits, struct workers *workers,
                         struct fixed_base **out, struct errmsg *err);
void fixed_base_destroy(struct fixed_base *table);

/* out[i] = scalars[i] * base for i < len; a zero scalar gives infinity. The table must be of the group that the name
 * says. -ENOMEM. */
int fixed_base_g1_mul(const struct fixed_base *table, struct workers *workers, const fr_t *scalars,
                      size_t len, g1_affine_t *out, struct errmsg *err);
int fixed_base_g2_mul(const struct fixed_base *table, struct workers *workers, const fr_t *scalars,
                      size_t len, g2_affine_t *out, struct errmsg *err);

#endif
