/*
 * Parameters in device memory: the points and the circuit that they are for. Or all but the points, which are streamed then
 * (stream.cuh).
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

/* The tables of the transforms over one domain. */
struct transforms {
    ntt_plan inverse, coset, coset_inverse;

    /* `small`: as in ntt_plan_create. */
    int make(gpu &g, uint32_t log2_domain, bool small, struct errmsg *err);
    void release();
    static size_t bytes(uint32_t log2_domain, bool small)
    {
        return 3 * ntt_plan_bytes(log2_domain, small);
    }
};

struct resident_parameters {
    bool loaded = false;
    g1_affine_t alpha_g1, delta_g1; /* who they are: delta differs from setup to setup */
    size_t h_len, l_len, a_len, b_len, n_inputs;
    uint32_t log2_domain;
    bool transformed = false; /* as in struct srs */
    /* In bit-reversed order, infinity last, as the transforms leave the scalars; of transformed ones in natural order, for the same
     * reason. */
    device_buffer<g1_point> h;
    device_buffer<g1_point> l, a, b_g1;
    device_buffer<g2_point> b_g2;
    /* As in msm_input: 1 / (g^m - 1), negative where points are streamed; 1 of transformed ones. */
    fr h_convert;
    /* Of transformed ones, on the host: a few hundred. */
    std::vector<g1_affine_t> input_l;
    streamed_points streamed; /* in place of the five buffers */
    resident_circuit circuit; /* not loaded where only expanded assignments are proved */

    bool are(const struct srs *srs) const;
    bool are_as_long_as(const resident_parameters &other) const;
    uint64_t bytes() const; /* of the device, to be given back with them */
    /* What the key and the lengths say, of parameters to be loaded. -EINVAL where h fits no domain. */
    int describe(const struct srs *srs, struct errmsg *err);
    void describe(const struct circuit *c, const struct secrets *t);
    size_t points_bytes() const;
    /* After describe: from the host's copy, or to be streamed from there. progress (may be NULL) hears of bytes. */
    int load(uploader &up, const struct srs *srs, bool stream, backend_progress progress,
             void *progress_ctx, struct errmsg *err);
    /* After describe, with the circuit loaded: development parameters, made here. `ic` as in develop_points. progress hears of points. */
    int develop(gpu &g, const struct secrets *t, fr_t *ic, backend_progress progress,
                void *progress_ctx, struct errmsg *err);
    /* Adds the sum of the inputs' points, each times its value, to *l; on the host's workers. */
    void add_inputs(const fr_t *values, struct workers *workers, g1_t *l) const;
    /* Points as a file has them, h in natural order. For setup: takes memory for a moment. */
    int fetch(gpu &g, enum srs_section section, size_t first, size_t count, void *points,
              struct errmsg *err) const;
};

#endif
