#include "gpu/cuda/device.cuh"

#include <atomic>
#include <initializer_list>

/* Engines read these from another thread than the one that proves. */
static std::atomic<uint64_t> allocations, frees, device_bytes, pinned_bytes;
/* device_bytes by device, those of all from DEVICES - 1 on together. */
static constexpr int DEVICES = 64;
static std::atomic<uint64_t> bytes_of[DEVICES];

static std::atomic<uint64_t> tried, fail_at;

uint64_t device_fail_call(uint64_t n)
{
    const uint64_t before = tried.exchange(0);

    fail_at = n;
    return before;
}

bool device_call_fails()
{
    return tried.fetch_add(1, std::memory_order_relaxed) + 1 ==
           fail_at.load(std::memory_order_relaxed);
}

int cuda_failed(cudaError_t status, const char *call, struct errmsg *err)
{
    int code = -EIO;

    if (status == cudaErrorMemoryAllocation)
        code = -ENOMEM;
    if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver ||
        status == cudaErrorInvalidDevice)
        code = -ENODEV;
    cudaGetLastError(); /* what is not sticky is forgotten: the caller may go on without */
    return errmsg_set(err, code, "%.80s: %s", call, cudaGetErrorString(status));
}

struct device_counts device_counts()
{
    struct device_counts c;

    c.allocations = allocations;
    c.frees = frees;
    c.device_bytes = device_bytes;
    c.pinned_bytes = pinned_bytes;
    return c;
}

static std::atomic<uint64_t> &bytes_here()
{
    int device = 0;

    (void)cudaGetDevice(&device);
    return bytes_of[device < DEVICES ? device : DEVICES - 1];
}

uint64_t device_bytes_here()
{
    return bytes_here();
}

int device_allocate(void **out, size_t bytes, struct errmsg *err)
{
    size_t available = 0, total = 0;
    void *p = nullptr;
    cudaError_t status =
        device_call_fails() ? cudaErrorMemoryAllocation : cudaMalloc(&p, bytes ? bytes : 1);

    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        cudaMemGetInfo(&available, &total);
        return errmsg_set(err, -ENOMEM, "%zu MB of device memory wanted, %zu of %zu MB free",
                          bytes >> 20, available >> 20, total >> 20);
    }
    if (status != cudaSuccess)
        return cuda_failed(status, "cudaMalloc", err);
    allocations++;
    device_bytes += bytes;
    bytes_here() += bytes;
    *out = p;
    return 0;
}

void device_free(void *ptr, size_t bytes)
{
    if (!ptr)
        return;
    cudaFree(ptr);
    frees++;
    device_bytes -= bytes;
    bytes_here() -= bytes;
}

int pinned_allocate(void **out, size_t bytes, struct errmsg *err)
{
    void *p = nullptr;

    CUDA_TRY(cudaMallocHost(&p, bytes ? bytes : 1), err);
    allocations++;
    pinned_bytes += bytes;
    *out = p;
    return 0;
}

void pinned_free(void *ptr, size_t bytes)
{
    if (!ptr)
        return;
    cudaFreeHost(ptr);
    frees++;
    pinned_bytes -= bytes;
}

int host_pin(void *memory, size_t bytes, struct errmsg *err)
{
    CUDA_TRY(cudaHostRegister(memory, bytes, cudaHostRegisterPortable), err);
    allocations++;
    return 0;
}

void host_unpin(void *memory)
{
    cudaHostUnregister(memory);
    frees++;
}

int cuda_stream::create(stream_rank rank, struct errmsg *err)
{
    int least = 0, greatest = 0;

    CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest), err);
    const int priority = least + (greatest - least) * (int)rank / (int)RANK_FIRST;
    CUDA_TRY(cudaStreamCreateWithPriority(&handle, cudaStreamNonBlocking, priority), err);
    return 0;
}

int cuda_event::create(bool timed, struct errmsg *err)
{
    CUDA_TRY(cudaEventCreateWithFlags(&handle, timed ? cudaEventDefault : cudaEventDisableTiming),
             err);
    return 0;
}

int gpu::open(int device_index, stream_rank rank, struct errmsg *err)
{
    int count = 0;

    CUDA_TRY(cudaSetDevice(device_index), err);
    CUDA_TRY(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device_index), err);
    index = device_index;
    multiprocessors = (uint32_t)count;
    TRY(main.create(rank, err));
    TRY(side.create(RANK_LAST, err));
    TRY(third.create(rank, err));
    TRY(apart.create(rank, err));
    for (cuda_event *e : {&begun, &counted, &listed[0], &listed[1], &added[0], &added[1], &forked,
                          &joined, &begun_apart})
        TRY(e->create(false, err));
    TRY(pinned.allocate(PINNED_BYTES, err));
    return pinned_apart.allocate(PINNED_APART_BYTES, err);
}
