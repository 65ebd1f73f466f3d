#include "gpu/cuda/upload.cuh"

#include <algorithm>

/* What a worker copies at a time. */
static constexpr size_t SLICE = 1u << 20;

struct host_copy {
    char *to;
    const char *from;
    size_t bytes;
};

static void copy_slice(void *ctx, size_t slice, unsigned thread)
{
    const host_copy &c = *(const host_copy *)ctx;
    const size_t at = slice * SLICE;

    (void)thread;
    memcpy(c.to + at, c.from + at, std::min(SLICE, c.bytes - at));
}

int uploader::create(struct workers *w, struct errmsg *err)
{
    workers = w;
    TRY(stream.create(RANK_LAST, err));
    TRY(done.create(false, err));
    for (int k = 0; k < 2; k++) {
        TRY(staging[k].allocate(PIECE, err));
        TRY(free[k].create(false, err));
    }
    return 0;
}

int uploader::copy(void *device_memory, const void *host_memory, size_t bytes, struct errmsg *err)
{
    for (size_t at = 0; at < bytes; at += PIECE, turn ^= 1) {
        host_copy c = {staging[turn].ptr, (const char *)host_memory + at,
                       std::min(PIECE, bytes - at)};
        CUDA_TRY(cudaEventSynchronize(free[turn].handle), err);
        workers_run(workers, (c.bytes + SLICE - 1) / SLICE, copy_slice, &c);
        CUDA_TRY(cudaMemcpyAsync((char *)device_memory + at, c.to, c.bytes, cudaMemcpyHostToDevice,
                                 stream.handle),
                 err);
        CUDA_TRY(cudaEventRecord(free[turn].handle, stream.handle), err);
    }
    return 0;
}

int uploader::send(void *device_memory, const void *host_memory, size_t bytes, struct errmsg *err)
{
    cudaPointerAttributes from;

    CUDA_TRY(cudaPointerGetAttributes(&from, host_memory), err);
    if (from.type != cudaMemoryTypeHost)
        return copy(device_memory, host_memory, bytes, err);
    CUDA_TRY(
        cudaMemcpyAsync(device_memory, host_memory, bytes, cudaMemcpyHostToDevice, stream.handle),
        err);
    return 0;
}

int uploader::before(const cuda_stream &other, struct errmsg *err)
{
    CUDA_TRY(cudaEventRecord(done.handle, stream.handle), err);
    CUDA_TRY(cudaStreamWaitEvent(other.handle, done.handle, 0), err);
    return 0;
}

int uploader::after(const cuda_stream &other, struct errmsg *err)
{
    CUDA_TRY(cudaEventRecord(done.handle, other.handle), err);
    CUDA_TRY(cudaStreamWaitEvent(stream.handle, done.handle, 0), err);
    return 0;
}

int uploader::wait(struct errmsg *err)
{
    CUDA_TRY(cudaStreamSynchronize(stream.handle), err);
    return 0;
}
