/*
 * The part of an MSM that knows no points: digits of the scalars, the sort of (bucket, point), and from it the lists of
 * pairs to be added, round by round.
 *
 * Signed windows: one constant is added to each scalar, half a window in every window but the top one, so that a digit is in
 * [-2^(bits-1), 2^(bits-1)). Widths are mixed so that they add up to 256. Bucket j of a window is for digits j + 1 and -j - 1.
 *
 * A bucket of c points takes c - 1 additions in rounds: round l adds the points and sums that round l - 1 left, in pairs. An odd
 * one out is never copied: its reference waits for the round that needs it.
 */
#ifndef GPU_CUDA_MSM_LISTS_CUH
#define GPU_CUDA_MSM_LISTS_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/fr.cuh"

static constexpr int MSM_WINDOWS_MAX = 32;
/* Rounds are numbered from 1: 2^27 equal digits need 27. */
static constexpr int MSM_ROUNDS = 32;
static constexpr int SCALAR_BITS = 256;

struct msm_plan {
    uint32_t len, windows, windows_at_once, groups; /* at once: in the largest group */
    uint32_t bits[MSM_WINDOWS_MAX];
    uint32_t first_bucket[MSM_WINDOWS_MAX];     /* inside the window's group */
    uint32_t group_window[MSM_WINDOWS_MAX + 1]; /* the first of each group, then `windows` */
    uint32_t group_of[MSM_WINDOWS_MAX];
    uint32_t group_buckets[MSM_WINDOWS_MAX];
    uint32_t buckets, buckets_max;    /* of all groups; of the largest */
    uint32_t half_windows[fr::LIMBS]; /* what is added to a scalar */
};

/* The plan with the fewest additions. windows_at_once as in msm_scratch_bytes. */
msm_plan make_msm_plan(uint32_t len, uint32_t windows_at_once);

/* Arrays of one group in flight. */
struct msm_slot {
    uint32_t *keys, *points; /* sorted: sign and bucket; point */
    uint32_t *start, *end;   /* of a bucket among them; start of a bin where they are sorted by bins */
    uint32_t *place;         /* [round][bucket]: first output of that bucket in that round */
    uint32_t *last;          /* (last round << 27) | its output; ~0: no point at all */
    uint32_t *single;        /* reference to the point of a bucket with one */
    uint32_t *counts;        /* [round]: additions; [0]: not 0 where a bin had too many digits */
    uint2 *list;             /* pairs of references, round after round */
};

#ifdef __CUDACC__
/* Into shared memory: the first output of each round. */
DEVICE void first_outputs(const uint32_t *counts, uint32_t *first)
{
    if (threadIdx.x == 0) {
        uint32_t sum = 0;
        for (int round = 1; round < MSM_ROUNDS; round++) {
            first[round] = sum;
            sum += counts[round];
        }
    }
    __syncthreads();
}
#endif

struct msm_lists {
    uint32_t *keys,
        *points; /* [window][len] digits; [window in group][len] points, before the sort */
    void *sort_space;
    size_t sort_bytes;
    msm_slot slot[2];
};

/* Cuts the arrays from `space` (which may only measure). */
int msm_lists_layout(const msm_plan &plan, scratch &space, msm_lists *out, struct errmsg *err);

struct msm_scalars {
    const fr *scalars;
    fr convert; /* as in msm_input */
    const uint32_t *point_index, *scalar_index;
};

/* Queues on `stream`: the digits of all windows. */
int msm_digits(const gpu &g, const msm_plan &plan, const msm_lists &lists, const msm_scalars &in,
               cudaStream_t stream, struct errmsg *err);

/* Queues sort, bounds and outputs of a group, then the copy of its counts to `host_counts` (pinned, MSM_ROUNDS of them), after
 * which `counted` is recorded, then the lists. Waits for the counts where it sorts by bins, and does it all again, by whole keys, if a bin
 * had too many digits. */
int msm_group_lists(const gpu &g, const msm_plan &plan, const msm_lists &lists, uint32_t group,
                    cudaStream_t stream, uint32_t *host_counts, cudaEvent_t counted,
                    struct errmsg *err);

#endif
