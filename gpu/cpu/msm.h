/*
 * Multi-scalar multiplication: the sum of scalars[i] * bases[i], and of bases that a bitmap picks.
 *
 * One call at a time on a set of workers; calls on different sets do not meet.
 */
#ifndef GPU_CPU_MSM_H
#define GPU_CPU_MSM_H

#include "gpu/backend.h"
#include "gpu/cpu/group.h"

/* Most points in one call: an index and a sign share 32 bits. */
#define MSM_LEN_MAX ((size_t)1 << 31)

struct msm_task {
    const struct group *group;
    struct workers *workers; /* may be NULL */
    struct arena *scratch;   /* of which msm_scratch_bytes are carved, and given back */
    const void *bases;       /* affine points of `group` */
    struct msm_terms terms;
};

/* Returns 0, -EINVAL when there are more terms than MSM_LEN_MAX of either kind, -ENOMEM. */
int msm_run(const struct msm_task *task, union point *out, struct errmsg *err);

/* Scratch memory for sums of up to `len` scalars. */
size_t msm_scratch_bytes(const struct group *group, size_t len, unsigned threads);

/* Bits of the windows for `len` scalars of full width. */
unsigned msm_window_bits(size_t len);

#endif
