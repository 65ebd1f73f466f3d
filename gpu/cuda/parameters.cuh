/*
 * Parameters in device memory: the points, the tables for transforms over their domain, the circuit that they are for. Or all but the
 * points, which are streamed then (stream.cuh).
 *
 * They are known again by their verifying key and lengths.
 */
#ifndef GPU_CUDA_PARAMETERS_CUH
#define GPU_CUDA_PARAMETERS_CUH

#include "gpu/cuda/circuit.cuh"
#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/ntt.cuh"
#include "gpu/cuda/stream.cuh"
#include "gpu/cuda/upload.cuh"

extern "C" {
#include "gpu/backend.h"
#include "gpu/secrets.h"
#include "gpu/srs.h"
}

struct resident_parameters {
    bool loaded = false;
    g1_affine_t alpha_g1, delta_g1; /* who they are: delta differs from setup to setup */
    size_t h_len, l_len, a_len, b_len, n_inputs;
    uint32_t log2_domain;
    device_buffer<g1_point>
        h; /* in bit-reversed order, infinity last: as the transforms leave the scalars */
    device_buffer<g1_point> l, a, b_g1;
    device_buffer<g2_point> b_g2;
    ntt_plan inverse, coset, coset_inverse;
    fr h_convert;             /* 1 / (g^m - 1), as an integer; negative where points are streamed */
    streamed_points streamed; /* in place of the five buffers */
    resident_circuit circuit; /* not loaded where only expanded assignments are proved */

    bool are(const struct srs *srs) const;
    void release();
    uint64_t bytes() const; /* of the points that are on the device */
    /* What the key and the lengths say, of parameters to be loaded. -EINVAL where h fits no domain. */
    int describe(const struct srs *srs, struct errmsg *err);
    size_t points_bytes() const;
    /* After describe: from the host's copy, or to be streamed from there. progress (may be NULL) hears of bytes. */
    int load(gpu &g, uploader &up, const struct srs *srs, bool stream, backend_progress progress,
             void *progress_ctx, struct errmsg *err);
    /* Development parameters for a circuit, made here. `ic` as in develop_points. progress hears of points. */
    int develop(gpu &g, uploader &up, const struct circuit *circuit, const struct secrets *t,
                fr_t *ic, backend_progress progress, void *progress_ctx, struct errmsg *err);
    /* Points as a file has them, h in natural order. For setup: takes memory for a moment. */
    int fetch(gpu &g, enum srs_section section, size_t first, size_t count, void *points,
              struct errmsg *err) const;
};

#endif
