/*
 * The CUDA backend as C sees it: gpu/backend.h over a prover, and transforms and sums over host memory, which are for tests
 * and odd jobs. The one function that leaves the shared object is backend_cuda_open.
 */
#include "gpu/cuda/msm.cuh"
#include "gpu/cuda/point_transform.cuh"
#include "gpu/cuda/prover.cuh"

#include <new>

extern "C" {
#include "gpu/backend_cuda.h"
#include "gpu/groth16.h"
}

/* A step takes a second where parameters are large and the device is shared. */
static constexpr uint32_t STALL_MS = 30000;

struct cuda_backend {
    struct backend base = {};
    prover on;
    /* For calls over host memory: grows to what the largest of them needs. */
    device_buffer<char> memory;
    ntt_plan plan; /* of the last transform */
    enum ntt_kind plan_kind = NTT_FORWARD;
    void *ballast = nullptr; /* backend_cuda_ballast */
};

static cuda_backend *cuda_of(struct backend *be)
{
    return (cuda_backend *)be;
}

/* Memory for a call of `bytes`. */
static int call_space(cuda_backend &be, size_t bytes, scratch *out, struct errmsg *err)
{
    CUDA_TRY(cudaSetDevice(be.on.g.index), err);
    if (be.memory.len < bytes)
        TRY(be.memory.allocate(bytes, err));
    out->base = be.memory.ptr;
    out->size = be.memory.len;
    out->used = 0;
    return 0;
}

static int plan_for(cuda_backend &be, uint32_t log2_len, enum ntt_kind kind, struct errmsg *err)
{
    const fr one = fr_one(), seven = fr_from_u32(7);
    const bool backward = kind == NTT_INVERSE || kind == NTT_COSET_INVERSE;
    const fr factor = backward ? inverse(power(fr_from_u32(2), log2_len)) : one;
    const fr shift = kind == NTT_COSET ? seven : kind == NTT_COSET_INVERSE ? inverse(seven) : one;

    if (be.plan.log2_len == log2_len && be.plan_kind == kind)
        return 0;
    be.plan_kind = kind;
    int ret = ntt_plan_create(be.on.g, log2_len, backward, shift, factor, false, &be.plan, err);
    if (ret < 0)
        be.plan.release();
    return ret;
}

static int cuda_ntt(struct backend *backend, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
                    struct errmsg *err)
{
    cuda_backend &be = *cuda_of(backend);
    gpu &g = be.on.g;
    const size_t len = (size_t)1 << log2_len;
    scratch space;

    if (log2_len == 0)
        return 0; /* all four are the identity */
    if (log2_len > NTT_LOG2_MAX)
        return errmsg_set(err, -EINVAL, "a transform of 2^%u exceeds 2^%u", log2_len, NTT_LOG2_MAX);
    TRY(call_space(be, 2 * len * sizeof(fr) + 512, &space, err));
    TRY(plan_for(be, log2_len, kind, err));
    fr *d_v = space.take<fr>(len), *d_turned = space.take<fr>(len);
    TRY(be.on.up.copy(d_v, v, len * sizeof(fr), err));
    TRY(be.on.up.before(g.main, err));
    if (kind ==
        NTT_COSET) { /* the shift belongs to the side in reversed order: here what comes in */
        TRY(ntt_reverse(g, log2_len, d_v, d_turned, err));
        TRY(ntt_to_natural(g, be.plan, d_turned, d_turned, err));
    } else {
        TRY(ntt_to_reversed(g, be.plan, d_v, d_v, err));
        TRY(ntt_reverse(g, log2_len, d_v, d_turned, err));
    }
    CUDA_TRY(cudaMemcpyAsync(v, d_turned, len * sizeof(fr), cudaMemcpyDeviceToHost, g.main.handle),
             err);
    CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
    return 0;
}

template <class F>
static int host_msm(cuda_backend &be, typename host_group<F>::sum *out,
                    const typename host_group<F>::affine_point *bases, const fr_t *scalars,
                    size_t len, struct errmsg *err)
{
    scratch space;

    if (len > 1u << NTT_LOG2_MAX)
        return errmsg_set(err, -EINVAL, "a sum of %zu terms exceeds 2^%u", len, NTT_LOG2_MAX);
    CUDA_TRY(cudaSetDevice(be.on.g.index), err);
    const size_t inputs = len * (sizeof(affine<F>) + sizeof(fr)) + 512;
    TRY(call_space(be, inputs + msm_scratch_bytes<F>((uint32_t)len, len > 1u << 24 ? 1 : 0), &space,
                   err));
    affine<F> *d_bases = space.take<affine<F>>(len);
    fr *d_scalars = space.take<fr>(len);
    TRY(be.on.up.copy(d_bases, bases, len * sizeof(affine<F>), err));
    TRY(be.on.up.copy(d_scalars, scalars, len * sizeof(fr), err));
    TRY(be.on.up.before(be.on.g.main, err));
    const msm_input<F> in = {d_bases, d_scalars, fr_integer_one(), nullptr, nullptr, (uint32_t)len};
    int ret = msm<F>(be.on.g, in, space, be.on.workers, out, err);
    if (ret < 0)
        be.on.g.drain();
    return ret;
}

static int cuda_msm_g1(struct backend *be, g1_t *out, const g1_affine_t *bases, const fr_t *scalars,
                       size_t len, struct errmsg *err)
{
    return host_msm<fp>(*cuda_of(be), out, bases, scalars, len, err);
}

static int cuda_msm_g2(struct backend *be, g2_t *out, const g2_affine_t *bases, const fr_t *scalars,
                       size_t len, struct errmsg *err)
{
    return host_msm<fp2>(*cuda_of(be), out, bases, scalars, len, err);
}

/* What a device answers after an error is not to be believed, whatever it is. */
static int judged(struct backend *be, int ret, struct errmsg *err)
{
    if (ret != -EIO && ret != -ENODEV)
        return ret;
    be->broken = true;
    return errmsg_prefix(err, ret, "GPU %d", cuda_of(be)->on.g.index);
}

/* Of an expanded assignment all of it at once: the rows' values are free, and nothing is left to do for finish. */
static int cuda_start(struct backend *be, struct groth16_ticket *ticket, struct errmsg *err)
{
    prover &p = cuda_of(be)->on;

    p.memory_limit = be->memory_limit;
    if (ticket->w)
        return judged(be, p.sums(ticket->srs, ticket->w, &ticket->sums, err), err);
    flight *f = nullptr;
    const int ret = p.start(ticket->srs, ticket->compact, &f, err);
    ticket->device = f;
    return judged(be, ret, err);
}

static int cuda_finish(struct backend *be, struct groth16_ticket *ticket, struct errmsg *err)
{
    if (ticket->w)
        return 0;
    return judged(be, cuda_of(be)->on.finish((flight *)ticket->device, &ticket->sums, err), err);
}

static void cuda_abort(struct backend *be, struct groth16_ticket *ticket)
{
    if (!ticket->w)
        cuda_of(be)->on.abort((flight *)ticket->device);
}

static int cuda_load(struct backend *be, const struct srs *srs, const struct circuit *circuit,
                     backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    prover &p = cuda_of(be)->on;

    p.memory_limit = be->memory_limit;
    p.lacks = 0; /* of this call alone */
    const int ret = p.load(srs, circuit, progress, progress_ctx, err);
    be->lacks = p.lacks;
    return judged(be, ret, err);
}

static int cuda_develop(struct backend *be, const struct circuit *circuit, const struct secrets *t,
                        fr_t *ic, backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    prover &p = cuda_of(be)->on;

    p.memory_limit = be->memory_limit;
    p.lacks = 0;
    const int ret = p.develop(circuit, t, ic, progress, progress_ctx, err);
    be->lacks = p.lacks;
    return judged(be, ret, err);
}

static int cuda_fetch(struct backend *be, enum srs_section section, size_t first, size_t len,
                      void *points, struct errmsg *err)
{
    prover &p = cuda_of(be)->on;

    CUDA_TRY(cudaSetDevice(p.g.index), err);
    if (!p.resident)
        return errmsg_set(err, -EINVAL, "no points are on the device");
    return judged(be, p.resident->fetch(p.g, section, first, len, points, err), err);
}

static uint64_t cuda_holds(const struct backend *be, const struct srs *srs, bool *streamed)
{
    const resident_parameters *r = cuda_of((struct backend *)be)->on.find(srs);

    *streamed = r && r->streamed.in_use();
    return r ? r->bytes() : 0;
}

static void cuda_evict(struct backend *be, const struct srs *srs)
{
    cuda_of(be)->on.evict(srs);
}

/* The points of a call on the device. */
static int bring_points(cuda_backend &be, const g1_affine_t *points, uint32_t log2_len,
                        device_buffer<g1_point> &out, struct errmsg *err)
{
    const size_t len = (size_t)1 << log2_len, bytes = len * sizeof(g1_point);
    size_t available = 0;

    TRY(available_bytes(be.on, &available, err));
    if (bytes > available)
        return errmsg_set(err, -ENOMEM,
                          "a transform of 2^%u points takes %zu MB of device memory, %zu are free",
                          log2_len, bytes >> 20, available >> 20);
    TRY(out.allocate(len, err));
    TRY(be.on.up.copy(out.ptr, points, bytes, err));
    return be.on.up.before(be.on.g.main, err);
}

static int transform_host_points(cuda_backend &be, g1_affine_t *points, uint32_t log2_len,
                                 const fr &shift, const fr &factor, backend_progress progress,
                                 void *progress_ctx, struct errmsg *err)
{
    device_buffer<g1_point> v;
    gpu &g = be.on.g;

    if (log2_len > NTT_LOG2_MAX)
        return errmsg_set(err, -EINVAL, "a transform of 2^%u exceeds 2^%u", log2_len, NTT_LOG2_MAX);
    CUDA_TRY(cudaSetDevice(g.index), err);
    TRY(bring_points(be, points, log2_len, v, err));
    TRY(transform_points(g, v.ptr, log2_len, shift, factor, progress, progress_ctx, err));
    CUDA_TRY(cudaMemcpyAsync(points, v.ptr, v.len * sizeof(g1_point), cudaMemcpyDeviceToHost,
                             g.main.handle),
             err);
    CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
    return 0;
}

static int cuda_transform_points(struct backend *be, g1_affine_t *points, uint32_t log2_len,
                                 const fr_t *shift, const fr_t *factor, backend_progress progress,
                                 void *progress_ctx, struct errmsg *err)
{
    cuda_backend &c = *cuda_of(be);
    fr s, f;

    memcpy(&s, shift, sizeof(s));
    memcpy(&f, factor, sizeof(f));
    c.on.memory_limit = be->memory_limit;
    return judged(be, transform_host_points(c, points, log2_len, s, f, progress, progress_ctx, err),
                  err);
}

static int cuda_pin(struct backend *be, void *memory, size_t bytes, struct errmsg *err)
{
    CUDA_TRY(cudaSetDevice(cuda_of(be)->on.g.index), err);
    return host_pin(memory, bytes, err);
}

static void cuda_unpin(struct backend *be, void *memory)
{
    cudaSetDevice(cuda_of(be)->on.g.index);
    host_unpin(memory);
}

static void cuda_destroy(struct backend *be)
{
    cudaSetDevice(cuda_of(be)->on.g.index);
    cudaFree(cuda_of(be)->ballast);
    delete cuda_of(be);
}

static const struct backend_ops cuda_ops = {"cuda",       cuda_ntt,   cuda_msm_g1,
                                            cuda_msm_g2,  nullptr,    cuda_start,
                                            cuda_finish,  cuda_abort, nullptr,
                                            true,         cuda_load,  cuda_develop,
                                            cuda_fetch,   cuda_pin,   cuda_unpin,
                                            cuda_destroy, nullptr,    nullptr,
                                            cuda_holds,   cuda_evict, cuda_transform_points};

extern "C" void backend_cuda_times(const struct backend *be, struct prover_times *out)
{
    *out = ((const cuda_backend *)be)->on.times;
}

extern "C" uint64_t backend_cuda_allocations(void)
{
    return device_counts().allocations;
}

extern "C" uint64_t backend_cuda_device_bytes(void)
{
    return device_counts().device_bytes;
}

extern "C" uint32_t backend_cuda_windows(const struct backend *be)
{
    const resident_parameters *r = ((const cuda_backend *)be)->on.resident;

    return r ? (uint32_t)r->streamed.windows.size() : 0;
}

/* Not by way of device_allocate: it is no memory of the backend's. */
extern "C" int backend_cuda_ballast(struct backend *be, uint64_t leave, struct errmsg *err)
{
    cuda_backend &c = *cuda_of(be);
    size_t available = 0, total = 0;

    CUDA_TRY(cudaSetDevice(c.on.g.index), err);
    cudaFree(c.ballast);
    c.ballast = nullptr;
    CUDA_TRY(cudaMemGetInfo(&available, &total), err);
    if (leave && leave < available)
        CUDA_TRY(cudaMalloc(&c.ballast, available - leave), err);
    return 0;
}

extern "C" __attribute__((visibility("default"))) int backend_cuda_open(uint32_t abi, int device,
                                                                        struct workers *workers,
                                                                        struct backend **out,
                                                                        struct errmsg *err)
{
    int devices = 0;

    if (abi != BACKEND_CUDA_ABI)
        return errmsg_set(err, -EINVAL, "the CUDA object is of another version (%u, not %u)",
                          BACKEND_CUDA_ABI, abi);
    CUDA_TRY(cudaGetDeviceCount(&devices), err);
    if (device < 0 || device >= devices)
        return errmsg_set(err, -ENODEV, "there is no GPU %d, only %d of them", device, devices);
    cuda_backend *be = new (std::nothrow) cuda_backend;
    if (!be)
        return errmsg_set(err, -ENOMEM, "no memory for a backend");
    be->base.ops = &cuda_ops;
    be->base.workers = workers;
    be->base.tickets = FLIGHTS;
    be->base.stall_ms = STALL_MS;
    int ret = be->on.open(device, workers, err);
    if (ret < 0) {
        delete be;
        return ret;
    }
    *out = &be->base;
    return 0;
}
