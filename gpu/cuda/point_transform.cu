/*
 * A pass that multiplies by factor and powers of the shift, unless all are 1; then the levels of a transform that takes points in reversed
 * order.
 *
 * A level is several launches, so that none takes more than a fraction of a second: others may be on the device, and progress is told of
 * between them.
 */
#include "gpu/cuda/point_transform.cuh"

#include "gpu/cuda/ntt.cuh"
#include "gpu/cuda/point_multiply.cuh"

#include <algorithm>

/* RESIDENT blocks on a multiprocessor leave a thread 168 registers; what these do not hold is spilled outside the loops. */
static constexpr uint32_t THREADS = 128, RESIDENT = 3;
/* Products of a launch. */
static constexpr uint64_t LAUNCH = 1u << 22;

__global__ void __launch_bounds__(THREADS, RESIDENT)
    scale_points_kernel(g1_point *v, uint32_t first, uint32_t end, fr shift, fr factor)
{
    const uint32_t i = first + blockIdx.x * THREADS + threadIdx.x;

    if (i < end)
        v[i] = to_affine(turned_point(v[i], mul(power(shift, i), factor)));
}

__global__ void __launch_bounds__(THREADS, RESIDENT)
    point_butterflies_kernel(g1_point *v, uint32_t log2_len, uint32_t level, uint32_t first,
                             uint32_t end, fr root)
{
    const uint32_t i = first + blockIdx.x * THREADS + threadIdx.x;

    if (i >= end)
        return;
    const butterfly_place at = place_of_butterfly(log2_len, level, i);
    g1_point &second = v[at.first + (1u << level)];
    const jacobian q = turned_point(second, power(root, at.power));
    g1_point a = v[at.first], b; /* not before: it would take registers */
    point_butterfly(q, a, b);
    v[at.first] = a;
    second = b;
}

__global__ void reverse_points_in_place_kernel(g1_point *v, uint32_t log2_len)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i >> log2_len)
        return;
    const uint32_t k = __brev(i) >> (32 - log2_len);
    if (i >= k)
        return;
    const g1_point p = v[i];
    v[i] = v[k];
    v[k] = p;
}

/* On its way. */
struct point_run {
    gpu &g;
    g1_point *v;
    uint32_t log2_len;
    backend_progress progress;
    void *ctx;
    uint64_t done, total;

    /* Products 0 .. count - 1 by launches of a kernel, `queue(first, end)`. */
    template <class Queue> int in_pieces(uint64_t count, Queue queue, struct errmsg *err)
    {
        for (uint64_t first = 0; first < count; first += LAUNCH) {
            const uint64_t end = std::min(count, first + LAUNCH);
            queue((uint32_t)first, (uint32_t)end, blocks_for(end - first, THREADS));
            CUDA_TRY(cudaGetLastError(), err);
            CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
            done += end - first;
            if (progress)
                progress(ctx, "transform", done, total);
        }
        return 0;
    }

    int scale(const fr &shift, const fr &factor, struct errmsg *err)
    {
        auto queue = [&](uint32_t first, uint32_t end, uint32_t blocks) {
            scale_points_kernel<<<blocks, THREADS, 0, g.main.handle>>>(v, first, end, shift,
                                                                       factor);
        };

        return in_pieces((uint64_t)1 << log2_len, queue, err);
    }

    int reverse(struct errmsg *err)
    {
        const uint32_t blocks = blocks_for((uint64_t)1 << log2_len, THREADS);

        reverse_points_in_place_kernel<<<blocks, THREADS, 0, g.main.handle>>>(v, log2_len);
        CUDA_TRY(cudaGetLastError(), err);
        return 0;
    }

    int run_level(uint32_t level, struct errmsg *err)
    {
        const fr root = inverse(ntt_root(level + 1));
        auto queue = [&](uint32_t first, uint32_t end, uint32_t blocks) {
            point_butterflies_kernel<<<blocks, THREADS, 0, g.main.handle>>>(v, log2_len, level,
                                                                            first, end, root);
        };

        return in_pieces((uint64_t)1 << (log2_len - 1), queue, err);
    }
};

static bool is_one(const fr &a)
{
    return equal(canonical(a), fr_one());
}

int transform_points(gpu &g, g1_point *v, uint32_t log2_len, const fr &shift, const fr &factor,
                     backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    const uint64_t len = (uint64_t)1 << log2_len;
    const bool scaled = !is_one(shift) || !is_one(factor);
    point_run run = {
        g, v, log2_len, progress, progress_ctx, 0, (scaled ? len : 0) + len / 2 * log2_len};

    if (scaled)
        TRY(run.scale(shift, factor, err));
    if (log2_len > 0)
        TRY(run.reverse(err));
    for (uint32_t level = 0; level < log2_len; level++)
        TRY(run.run_level(level, err));
    return 0;
}
