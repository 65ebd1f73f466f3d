/*
 * Multi-scalar multiplication: the sum of scalars[i] * bases[i].
 *
 * One call at a time on a set of workers; calls on different sets do not meet.
 */
#ifndef GPU_CPU_MSM_H
#define GPU_CPU_MSM_H

#include "gpu/cpu/group.h"
#include "numa/workers.h"

/* Most points in one call: an index and a sign share 32 bits. */
#define MSM_LEN_MAX ((size_t)1 << 31)

/* bases are affine points of `group`. Returns 0, -EINVAL when len is above MSM_LEN_MAX, -ENOMEM. */
int msm_run(const struct group *group, struct workers *workers, union point *out, const void *bases,
            const fr_t *scalars, size_t len, struct errmsg *err);

/* Bits of the windows for `len` scalars of full width. */
unsigned msm_window_bits(size_t len);

#endif
