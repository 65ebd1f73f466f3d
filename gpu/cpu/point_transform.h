/*
 * The transform of ntt.h over points of G1 in place of scalars, plain: radix 2, a product with blst for every butterfly. For small circuits, and
 * the oracle of what devices do.
 *
 * One call at a time on a set of workers.
 */
#ifndef GPU_CPU_POINT_TRANSFORM_H
#define GPU_CPU_POINT_TRANSFORM_H

#include "gpu/backend.h"

/* transform_points of struct backend_ops: -EINVAL where there are no roots of unity that long, -ENOMEM. */
int point_transform(g1_affine_t *points, uint32_t log2_len, const fr_t *shift, const fr_t *factor,
                    struct workers *workers, backend_progress progress, void *progress_ctx,
                    struct errmsg *err);

#endif
