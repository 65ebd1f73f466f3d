/*
 * The sums of a Groth16 proof (gpu/groth16.h), on one GPU, over parameters that stay there.
 *
 * One thread at a time. Parameters are known again by their verifying key and lengths; those of another circuit take the place
 * of what was there. Memory is taken when parameters are loaded; sums over parameters that are there take none.
 */
#ifndef GPU_CUDA_PROVER_CUH
#define GPU_CUDA_PROVER_CUH

#include "gpu/cuda/c_headers.cuh"
#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/ntt.cuh"
#include "gpu/cuda/upload.cuh"

/* Points of one set of parameters on the device, and the tables for its domain. */
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
    fr h_convert;              /* 1 / (g^m - 1), as an integer */
    device_buffer<char> arena; /* vectors, lists and the scratch of sums */
};

/* Where the last sums spent their time, in ms on the calling thread. What the device does while the host uploads is in h. */
struct prover_times {
    double upload_rows, upload_witness, h, msm_h, classify, l, a, b_g1, b_g2;
};

struct prover {
    gpu g;
    prover_times times = {};
    uploader up;
    struct workers *workers = nullptr;
    resident_parameters resident;

    int open(int device_index, struct workers *w, struct errmsg *err);

    /* Makes the parameters resident if they are not. progress (may be NULL) hears of bytes. */
    int load(const struct srs *srs, backend_progress progress, void *progress_ctx,
             struct errmsg *err);

    /* groth16_sums, after its checks of counts; loads what is not there. */
    int sums(const struct srs *srs, const struct assignment *w, struct groth16_sums *out,
             struct errmsg *err);
};

#endif
