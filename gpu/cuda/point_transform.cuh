/*
 * Transforms of points of G1 in device memory: for parameters, once for a set. Plain radix 2, a thread a butterfly (point_multiply.cuh), in
 * place and without any memory beside, since products of points are all that takes time.
 *
 * One thread at a time for a gpu.
 */
#ifndef GPU_CUDA_POINT_TRANSFORM_CUH
#define GPU_CUDA_POINT_TRANSFORM_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/fr.cuh"

extern "C" {
#include "gpu/backend.h"
}

/* v[j] becomes the sum over k of factor shift^k w^-jk v[k], j and k < 2^log2_len up to 2^NTT_LOG2_MAX, w as ntt_root has it. shift and factor in
 * Montgomery form. progress as in struct backend_ops. The result is there on return. */
int transform_points(gpu &g, g1_point *v, uint32_t log2_len, const fr &shift, const fr &factor,
                     backend_progress progress, void *progress_ctx, struct errmsg *err);

#endif
