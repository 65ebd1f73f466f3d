/*
 * One base times hundreds of millions of scalars, for development parameters: a table of the multiples that a digit may ask for in
 * each window, and then an addition a window, by the kernel that sums spend their time in.
 *
 * One thread at a time for a gpu. Takes and gives back device memory: this is no part of a prove.
 */
#ifndef GPU_CUDA_FIXED_BASE_CUH
#define GPU_CUDA_FIXED_BASE_CUH

#include "gpu/cuda/add_pairs.cuh"
#include "gpu/cuda/fixed_digits.cuh"
#include "gpu/cuda/msm.cuh"

/* Scalars piece by piece: `fill` queues on `stream` the scalars [first, first + len) in Montgomery form. */
struct fixed_scalars {
    int (*fill)(void *ctx, fr *out, uint32_t first, uint32_t len, cudaStream_t stream,
                struct errmsg *err);
    void *ctx;
};

template <class F> struct fixed_base {
    device_buffer<affine<F>> table, work;
    device_buffer<fr> scalars;
    device_buffer<uint32_t> refs;
    device_buffer<uint2> list;
    device_buffer<uint4> prefix;
    device_buffer<uint32_t> special;

    /* Device memory that create takes. */
    static size_t bytes();
    /* The table of the group's generator, and room for products. */
    int create(gpu &g, struct errmsg *err);
    /* out[i] = scalar i times the generator, canonical; queued on the main stream. */
    int multiply(gpu &g, const fixed_scalars &s, uint32_t len, affine<F> *out, struct errmsg *err);
};

#endif
