/*
 * Copies from ordinary host memory to the device through two pinned buffers: while one is on the bus, the workers fill the
 * other. (A plain cudaMemcpy of such memory goes at 8 GB/s, the bus at 55.)
 */
#ifndef GPU_CUDA_UPLOAD_CUH
#define GPU_CUDA_UPLOAD_CUH

#include "gpu/cuda/device.cuh"

struct uploader {
    static constexpr size_t PIECE = 32u << 20;

    cuda_stream stream;
    pinned_buffer<char> staging[2];
    cuda_event free[2], done;
    unsigned turn = 0;
    struct workers *workers = nullptr;

    int create(struct workers *w, struct errmsg *err);

    /* Queues the copy of `bytes`. The source may change when this returns. */
    int copy(void *device_memory, const void *host_memory, size_t bytes, struct errmsg *err);

    /* The same, but from pinned memory straight on: then the source must not change until it has arrived. */
    int send(void *device_memory, const void *host_memory, size_t bytes, struct errmsg *err);

    /* What was queued so far comes before what `stream` is given from now on. */
    int before(const cuda_stream &other, struct errmsg *err);
    /* And the other way round: what is queued from now on comes after what `other` was given so far. */
    int after(const cuda_stream &other, struct errmsg *err);
    /* Returns when all has arrived. */
    int wait(struct errmsg *err);
};

#endif
