/*
 * One query's sum over a witness: points that are added as they are, and points times values.
 */
#ifndef GPU_CUDA_QUERY_CUH
#define GPU_CUDA_QUERY_CUH

#include "gpu/cuda/msm.cuh"

/* Points that are summed at a time: what bounds the scratch. */
static constexpr uint32_t ONES_PIECE = 1u << 26;

template <class F> struct query {
    const affine<F> *points;
    uint32_t *ones; /* room for one more */
    uint32_t ones_len;
    msm_input<F> rest;
};

static inline void host_add(g1_t *r, const g1_t *p)
{
    blst_p1_add_or_double(r, r, p);
}

static inline void host_add(g2_t *r, const g2_t *p)
{
    blst_p2_add_or_double(r, r, p);
}

/* Scratch for a query of up to so many ones and rest, the two side by side; at_once: as in msm_scratch_bytes, of the rest. */
template <class F>
size_t query_scratch_bytes(uint32_t ones_len, uint32_t rest_len, uint32_t at_once)
{
    const uint32_t piece = ones_len < ONES_PIECE ? ones_len : ONES_PIECE;

    return sum_scratch_bytes<F>(piece) + (rest_len ? msm_scratch_bytes<F>(rest_len, at_once) : 0);
}

/* The ones beside the rest, which alone would not fill the chip; one after the other if memory is short. */
template <class F>
int sum_query(gpu &g, const query<F> &q, const scratch &space, struct workers *workers,
              typename host_group<F>::sum *out, struct errmsg *err)
{
    const uint32_t first = q.ones_len < ONES_PIECE ? q.ones_len : ONES_PIECE;
    const bool together =
        sum_scratch_bytes<F>(first) + (q.rest.len ? msm_scratch_bytes<F>(q.rest.len, 4) : 0) <=
        space.size - space.used;
    typename host_group<F>::sum sum = {}, part = {};
    scratch rest_space = space;
    sum_begun<F> begun;

    TRY(sum_points_begin<F>(g, q.points, q.ones, first, rest_space, &begun, err));
    if (!together) {
        TRY(sum_points_end<F>(g, begun, &sum, err));
        rest_space = space;
    }
    TRY(msm<F>(g, q.rest, rest_space, workers, &part, err));
    if (together)
        TRY(sum_points_end<F>(g, begun, &sum, err));
    host_add(&sum, &part);
    for (uint32_t at = first; at < q.ones_len; at += ONES_PIECE) {
        const uint32_t n = q.ones_len - at < ONES_PIECE ? q.ones_len - at : ONES_PIECE;
        TRY(sum_points<F>(g, q.points, q.ones + at, n, space, &part, err));
        host_add(&sum, &part);
    }
    *out = sum;
    return 0;
}

#endif
