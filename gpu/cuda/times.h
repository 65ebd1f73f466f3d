/*
 * What test and bench programs that hold the CUDA code themselves ask it.
 */
#ifndef GPU_CUDA_TIMES_H
#define GPU_CUDA_TIMES_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the last sums spent their time, in ms on the calling thread. Of expanded assignments: what the device does while the
 * host uploads is in h. Of compact ones: `rows` and `transforms` on the device, then `main` over h and `aside` over the witness, side
 * by side. */
struct prover_times {
    double upload_rows, upload_witness, h, msm_h, classify, l, a, b_g1, b_g2;
    double start, rows, transforms, main, aside, finish;
};

void backend_cuda_times(const struct backend *be, struct prover_times *out);

/* How often memory of the device or pinned memory was taken. */
uint64_t backend_cuda_allocations(void);
/* Device memory that is taken now. */
uint64_t backend_cuda_device_bytes(void);

/* In how many windows the queries come of parameters that are streamed; 0: what was proved over last is not. */
uint32_t backend_cuda_windows(const struct backend *be);

/* Takes all free memory of the backend's device but `leave` bytes, until it is called again or the backend ends: so that a limit cannot
 * be exceeded unseen. 0: gives it back. */
int backend_cuda_ballast(struct backend *be, uint64_t leave, struct errmsg *err);

#ifdef __cplusplus
}
#endif

#endif
