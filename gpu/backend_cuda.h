/*
 * The CUDA backend, from the shared object libproofd-cuda.so, which is opened when it is asked for: no program links CUDA.
 *
 * Any thread may create one; then as gpu/backend.h says.
 */
#ifndef GPU_BACKEND_CUDA_H
#define GPU_BACKEND_CUDA_H

#include "gpu/backend.h"

/* Grows with every change of what passes between the programs and the object. */
#define BACKEND_CUDA_ABI 10u

/* The backend on GPU number `device` as CUDA counts them, its host work on `workers` (borrowed; may be NULL). The object is looked
 * for beside the program, then in the library directory. Returns 0 with *out set, -ENOENT when the object is not there,
 * -ENODEV when there is no driver or no such GPU, -EINVAL when the object is of another version, -ENOMEM, -EIO. */
int backend_cuda_create(int device, struct workers *workers, struct backend **out,
                        struct errmsg *err);

/* What the object exports. */
typedef int backend_cuda_open_fn(uint32_t abi, int device, struct workers *workers,
                                 struct backend **out, struct errmsg *err);
backend_cuda_open_fn backend_cuda_open;

#endif
