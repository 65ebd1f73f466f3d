/*
 * Multi-scalar multiplication and plain sums in G1 (F = fp) and G2 (F = fp2), on points and scalars in device memory.
 *
 * One thread uses these at a time for a gpu. The result is on the host when a function returns.
 */
#ifndef GPU_CUDA_MSM_CUH
#define GPU_CUDA_MSM_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/fr.cuh"

/* Sums on the host: blst's Jacobian points. */
template <class F> struct host_group;
template <> struct host_group<fp> {
    typedef g1_t sum;
    typedef g1_affine_t affine_point;
};
template <> struct host_group<fp2> {
    typedef g2_t sum;
    typedef g2_affine_t affine_point;
};

template <class F> struct msm_input {
    const affine<F> *points; /* fewer than 2^30 */
    const fr *scalars;
    /* The integer that multiplies a point is scalars[i] * convert / 2^256: 1 for scalars in Montgomery form, their common
     * factor times that. */
    fr convert;
    /* Term i is scalars[scalar_index[i]] * points[point_index[i]]; NULL: i. */
    const uint32_t *point_index, *scalar_index;
    uint32_t len;
};

/* Scratch that an MSM of `len` terms takes when it handles `windows_at_once` windows together (0: as many as it likes, which
 * is fastest; 1: least memory). Grows with len. */
template <class F> size_t msm_scratch_bytes(uint32_t len, uint32_t windows_at_once);

/* *out = the sum. Takes its memory from a copy of `space`, in as large groups of windows as fit; -ENOMEM when not even
 * one fits. `workers` (may be NULL) do the last additions. */
template <class F>
int msm(gpu &g, const msm_input<F> &in, scratch space, struct workers *workers,
        typename host_group<F>::sum *out, struct errmsg *err);

/* Scratch for sum_points of `len` points. */
template <class F> size_t sum_scratch_bytes(uint32_t len);

/* *out = the sum of points[index[i]], i < len. index[len] must be writable. */
template <class F>
int sum_points(gpu &g, const affine<F> *points, uint32_t *index, uint32_t len, scratch space,
               typename host_group<F>::sum *out, struct errmsg *err);

/* The same in two steps, on a stream of its own: what is queued between them runs beside it (an MSM, say). One at a time on a
 * gpu, and its scratch is in use until the end. */
template <class F> struct sum_begun {
    const typename host_group<F>::affine_point *left = nullptr;
    uint32_t len = 0;
};
template <class F>
int sum_points_begin(gpu &g, const affine<F> *points, uint32_t *index, uint32_t len, scratch &space,
                     sum_begun<F> *out, struct errmsg *err);
template <class F>
int sum_points_end(gpu &g, const sum_begun<F> &begun, typename host_group<F>::sum *out,
                   struct errmsg *err);

/* Queues additions of pairs (add_pairs.cuh) on `stream`: the one place that holds their kernels. */
template <class F> struct pairs;
template <class F>
int queue_pairs(const gpu &g, cudaStream_t stream, const pairs<F> &job, struct errmsg *err);

/* Once for a device, before the others. */
template <class F> int msm_prepare(gpu &g, struct errmsg *err);

#endif
