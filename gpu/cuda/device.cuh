/*
 * What every CUDA source needs: errors as errno, device memory that counts itself, streams and events with owners, and a
 * scratch arena that is cut up without allocating.
 *
 * All cudaMalloc, cudaFree and pinning of the backend goes through here, so that device_counts() says what a warm prove must
 * not do. Everything works on the current device of the calling thread.
 */
#ifndef GPU_CUDA_DEVICE_CUH
#define GPU_CUDA_DEVICE_CUH

#include "gpu/cuda/c_headers.cuh"

#include <cuda_runtime.h>
#include <initializer_list>

/* Turns a failed call into -ENOMEM, -ENODEV or -EIO, *err in CUDA's words. */
int cuda_failed(cudaError_t status, const char *call, struct errmsg *err);

/* For tests: the n-th call that is tried from now on is not made and fails (1: the next one; 0: none). Returns how many were tried
 * since this was called before. */
uint64_t device_fail_call(uint64_t n);
/* Whether the call that is tried now is that one. */
bool device_call_fails();

#define CUDA_TRY(call, err)                                                            \
    do {                                                                               \
        cudaError_t cuda_try_status = device_call_fails() ? cudaErrorUnknown : (call); \
        if (cuda_try_status != cudaSuccess)                                            \
            return cuda_failed(cuda_try_status, #call, err);                           \
    } while (0)

/* The same for a function of ours, which has filled err. */
#define TRY(call)             \
    do {                      \
        int try_ret = (call); \
        if (try_ret < 0)      \
            return try_ret;   \
    } while (0)

struct device_counts {
    uint64_t allocations, frees; /* device memory and pinned host memory together */
    uint64_t device_bytes, pinned_bytes;
};
struct device_counts device_counts();
/* Memory of the current device. */
uint64_t device_bytes_here();

int device_allocate(void **out, size_t bytes, struct errmsg *err);
void device_free(void *ptr, size_t bytes);
int pinned_allocate(void **out, size_t bytes, struct errmsg *err);
void pinned_free(void *ptr, size_t bytes);
/* Pins memory of others', which they give back. */
int host_pin(void *memory, size_t bytes, struct errmsg *err);
void host_unpin(void *memory);

/* Device memory for `len` elements, freed on every return. */
template <class T> struct device_buffer {
    T *ptr = nullptr;
    size_t len = 0;

    device_buffer() = default;
    device_buffer(const device_buffer &) = delete;
    device_buffer &operator=(const device_buffer &) = delete;
    ~device_buffer()
    {
        reset();
    }

    void reset()
    {
        if (ptr)
            device_free(ptr, len * sizeof(T));
        ptr = nullptr;
        len = 0;
    }

    int allocate(size_t n, struct errmsg *err)
    {
        reset();
        void *p = nullptr;
        if (n > SIZE_MAX / sizeof(T))
            return errmsg_set(err, -ENOMEM, "device buffer of %zu elements", n);
        TRY(device_allocate(&p, n * sizeof(T), err));
        ptr = (T *)p;
        len = n;
        return 0;
    }
};

/* The same in pinned host memory. */
template <class T> struct pinned_buffer {
    T *ptr = nullptr;
    size_t len = 0;

    pinned_buffer() = default;
    pinned_buffer(const pinned_buffer &) = delete;
    pinned_buffer &operator=(const pinned_buffer &) = delete;
    ~pinned_buffer()
    {
        if (ptr)
            pinned_free(ptr, len * sizeof(T));
    }

    int allocate(size_t n, struct errmsg *err)
    {
        void *p = nullptr;
        TRY(pinned_allocate(&p, n * sizeof(T), err));
        ptr = (T *)p;
        len = n;
        return 0;
    }
};

/* Whose kernels' blocks go before whose on the chip. */
enum stream_rank { RANK_LAST, RANK_MIDDLE, RANK_FIRST };

struct cuda_stream {
    cudaStream_t handle = nullptr;

    cuda_stream() = default;
    cuda_stream(const cuda_stream &) = delete;
    cuda_stream &operator=(const cuda_stream &) = delete;
    ~cuda_stream()
    {
        if (handle)
            cudaStreamDestroy(handle);
    }
    int create(stream_rank rank, struct errmsg *err);
};

struct cuda_event {
    cudaEvent_t handle = nullptr;

    cuda_event() = default;
    cuda_event(const cuda_event &) = delete;
    cuda_event &operator=(const cuda_event &) = delete;
    ~cuda_event()
    {
        if (handle)
            cudaEventDestroy(handle);
    }
    int create(bool timed, struct errmsg *err);
};

/*
 * Memory that is cut from one piece and given back in bulk. With base NULL it only measures: the function that cuts says how
 * much it needs when it is run on an empty one, so that sizes are written once.
 */
struct scratch {
    char *base = nullptr;
    size_t size = 0, used = 0;

    template <class T> T *take(size_t n)
    {
        size_t at = used;

        used = (at + n * sizeof(T) + 255) / 256 * 256;
        return base ? (T *)(base + at) : nullptr;
    }

    bool overflowed() const
    {
        return base && used > size;
    }
};

/* The chip, the streams on which everything runs, and what a call needs for a moment on the host. One thread at a time. */
struct gpu {
    /* What a call copies back for its last steps on the host. */
    static constexpr size_t PINNED_BYTES = 8u << 20, PINNED_APART_BYTES = 64u << 10;

    int index;
    uint32_t multiprocessors;
    uint32_t resident[2]; /* blocks of the addition kernel on a multiprocessor: G1, G2 */
    /* main and third, of the rank that open is given: additions; side: sorting for the next ones; apart: a plain sum beside all
     * this */
    cuda_stream main, side, third, apart;
    cuda_event begun, counted, listed[2], added[2], forked, joined, begun_apart;
    pinned_buffer<char> pinned, pinned_apart;

    int open(int device_index, stream_rank rank, struct errmsg *err);

    /* What `from` was given so far comes before what `to` is given from now on. */
    int order(const cuda_stream &from, const cuda_event &event, const cuda_stream &to,
              struct errmsg *err)
    {
        CUDA_TRY(cudaEventRecord(event.handle, from.handle), err);
        CUDA_TRY(cudaStreamWaitEvent(to.handle, event.handle, 0), err);
        return 0;
    }

    /* Waits for all streams: after an error, before their memory is used for something else. */
    void drain()
    {
        for (cuda_stream *s : {&main, &side, &third, &apart})
            cudaStreamSynchronize(s->handle);
    }

    /* The pinned memory, whole, for the call at hand. */
    scratch host_space() const
    {
        scratch s;

        s.base = pinned.ptr;
        s.size = pinned.len;
        return s;
    }
};

static inline uint32_t blocks_for(uint64_t threads, uint32_t block)
{
    return (uint32_t)((threads + block - 1) / block);
}

#endif
