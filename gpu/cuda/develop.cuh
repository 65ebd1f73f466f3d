/*
 * Development parameters (gpu/setup.h) made where they are used: from the circuit and the secrets straight into device memory.
 * gpu/setup.c is the oracle: the same points.
 */
#ifndef GPU_CUDA_DEVELOP_CUH
#define GPU_CUDA_DEVELOP_CUH

#include "gpu/cuda/circuit.cuh"
#include "gpu/cuda/ec.cuh"

extern "C" {
#include "gpu/backend.h"
#include "gpu/secrets.h"
}

/* Where the points go: as many as the queries have, h in bit-reversed order with infinity last. */
struct developed_points {
    g1_point *h, *l, *a, *b_g1;
    g2_point *b_g2;
};

/* Device memory that develop_points takes and gives back, some 25 GB at 32 GiB; of a circuit that is described. */
size_t develop_scratch_bytes(const resident_circuit &c);
/* `ic` receives the scalars of the verifying key's points, n_inputs of them. progress (may be NULL) hears of points. */
int develop_points(gpu &g, const resident_circuit &c, const struct secrets *t,
                   const developed_points &out, fr_t *ic, backend_progress progress,
                   void *progress_ctx, struct errmsg *err);

#endif
