/*
 * Speed of the primitives of the CUDA backend. One line a measurement: median of five runs after one, least and most. Every
 * sum is checked by known logarithms.
 *
 * usage: bench_cuda [log2 of the longest vectors, 27]
 */
#include "gpu/cuda/msm_lists.cuh"
#include "gpu/cuda/point_transform.cuh"
#include "gpu/cuda/prover.cuh"
#include "tests/gpu/points.cuh"

#include <chrono>
#include <string>

static constexpr uint64_t SEED = POINTS_SEED;
static constexpr int RUNS = 5;
static gpu device;
static struct workers *all_workers;

static double now_ms()
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

template <class Run>
static double measure(const char *what, uint32_t log2_len, double items, Run run)
{
    std::vector<double> times;

    run();
    MUST_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < RUNS; i++) {
        double start = now_ms();
        run();
        MUST_CUDA(cudaDeviceSynchronize());
        times.push_back(now_ms() - start);
    }
    std::sort(times.begin(), times.end());
    double median = times[RUNS / 2];
    printf("%-34s 2^%-2u %9.2f ms  [%.2f, %.2f]  %8.3f G/s\n", what, log2_len, median, times[0],
           times[RUNS - 1], items / median / 1e6);
    fflush(stdout);
    return median;
}

__global__ void random_scalars_kernel(fr *out, uint32_t len, uint64_t seed)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += gridDim.x * blockDim.x) {
        fr s;
        for (int k = 0; k < 8; k += 2) {
            uint64_t x = seed + ((uint64_t)i * 4 + k / 2) * 0x9e3779b97f4a7c15ull;
            x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
            x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
            x ^= x >> 31;
            s.v[k] = (uint32_t)x;
            s.v[k + 1] = (uint32_t)(x >> 32);
        }
        s.v[7] &= 0x3fffffff;
        out[i] = s;
    }
}

/* ---- products ---- */

/* Each thread multiplies two values by each other, or squares them: nothing else that takes time. */
template <bool SQUARE> __global__ void __launch_bounds__(128) products_kernel(fp *io, int rounds)
{
    fp a = io[2 * (blockIdx.x * 128 + threadIdx.x)],
       b = io[2 * (blockIdx.x * 128 + threadIdx.x) + 1];

#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        a = SQUARE ? sqr(a) : mul(a, b);
        b = SQUARE ? sqr(b) : mul(b, a);
    }
    io[2 * (blockIdx.x * 128 + threadIdx.x)] = a;
    io[2 * (blockIdx.x * 128 + threadIdx.x) + 1] = b;
}

/* ns of one product and of one square where all multiprocessors do nothing else: the mark for sums. */
static double mul_ns, sqr_ns;

static void bench_products()
{
    constexpr uint32_t ROUNDS = 2000;
    const uint32_t threads = device.multiprocessors * 16 * 128;
    const double items = 2.0 * threads * ROUNDS;
    device_buffer<fp> v;

    MUST(v.allocate(2 * threads, err));
    MUST_CUDA(cudaMemset(v.ptr, 0x11, 2 * threads * sizeof(fp)));
    mul_ns = 1e6 / items * measure("products of fp", 20, items, [&] {
                 products_kernel<false><<<threads / 128, 128>>>(v.ptr, ROUNDS);
             });
    sqr_ns = 1e6 / items * measure("squares of fp", 20, items, [&] {
                 products_kernel<true><<<threads / 128, 128>>>(v.ptr, ROUNDS);
             });
}

/* Of the time of a sum of random terms, the part that its additions' five products and a square would take alone: buckets take
 * one addition less than they have points, their weighing two each. */
static double share_of_products(uint32_t len, uint32_t at_once, double ms)
{
    const msm_plan plan = make_msm_plan(len, at_once);
    const double additions = (double)plan.windows * len + plan.buckets;

    return additions * (5 * mul_ns + sqr_ns) / (ms * 1e6);
}

/* ---- transforms ---- */

static void bench_ntt(uint32_t log2_len)
{
    const size_t len = (size_t)1 << log2_len;
    device_buffer<fr> v;
    ntt_plan plain, coset;

    MUST(v.allocate(len, err));
    random_scalars_kernel<<<1024, 256>>>(v.ptr, (uint32_t)len, SEED);
    MUST(ntt_plan_create(device, log2_len, false, fr_one(), fr_one(), false, &plain, err));
    MUST(ntt_plan_create(device, log2_len, false, fr_from_u32(7), fr_one(), false, &coset, err));
    measure("ntt to reversed", log2_len, (double)len,
            [&] { MUST(ntt_to_reversed(device, plain, v.ptr, v.ptr, err)); });
    measure("ntt to natural", log2_len, (double)len,
            [&] { MUST(ntt_to_natural(device, plain, v.ptr, v.ptr, err)); });
    measure("ntt to natural, coset", log2_len, (double)len,
            [&] { MUST(ntt_to_natural(device, coset, v.ptr, v.ptr, err)); });
}

/* From the rows' values to the scalars of h: with C, and as transformed parameters take them. */
static void bench_quotient(uint32_t log2_len)
{
    const size_t len = (size_t)1 << log2_len;
    device_buffer<fr> a, b, c;
    transforms t;

    for (device_buffer<fr> *v : {&a, &b, &c}) {
        MUST(v->allocate(len, err));
        random_scalars_kernel<<<1024, 256>>>(v->ptr, (uint32_t)len, SEED);
    }
    MUST(t.make(device, log2_len, false, err));
    measure("quotient, six transforms", log2_len, (double)len, [&] {
        MUST(queue_coset_product(device, t, log2_len, a.ptr, b.ptr, err));
        MUST(ntt_to_reversed(device, t.inverse, c.ptr, c.ptr, err));
        MUST(ntt_to_reversed_minus(device, t.coset_inverse, a.ptr, a.ptr, c.ptr, err));
    });
    measure("the same transformed, four", log2_len, (double)len,
            [&] { MUST(queue_coset_product(device, t, log2_len, a.ptr, b.ptr, err)); });
}

/* ---- sums ---- */

template <class F> struct points {
    table_logs logs;
    device_buffer<affine<F>> d;
};

template <class F>
static void bench_msm(const char *what, const points<F> &p, uint32_t log2_len, uint32_t at_once)
{
    const uint32_t len = 1u << log2_len;
    device_buffer<fr> scalars;
    device_buffer<char> memory;
    scratch space;
    typename host_group<F>::sum got;

    MUST(scalars.allocate(len, err));
    random_scalars_kernel<<<1024, 256>>>(scalars.ptr, len, SEED + log2_len);
    MUST_CUDA(cudaDeviceSynchronize());
    space.size = msm_scratch_bytes<F>(len, at_once);
    MUST(memory.allocate(space.size, err));
    space.base = memory.ptr;
    msm_input<F> in = {p.d.ptr, scalars.ptr, fr_integer_one(), nullptr, nullptr, len};
    const uint64_t allocations = device_counts().allocations;
    double ms = measure(what, log2_len, len,
                        [&] { MUST(msm<F>(device, in, space, all_workers, &got, err)); });
    std::vector<fr> host = from_device(scalars.ptr, len, device);
    table_sums want(p.logs);
    for (size_t i = 0; i < len; i++)
        want.add(i, as<fr_t>(host[i]));
    printf("    %s; %.1f GB of scratch, %llu allocations; %.2f ms a million",
           is_multiple(got, want.total()) ? "right" : "WRONG", (double)space.size / 1e9,
           (unsigned long long)(device_counts().allocations - allocations), ms / len * 1e6);
    if (sizeof(F) == sizeof(fp))
        printf("; %.0f %% of the rate of products", 100 * share_of_products(len, at_once, ms));
    printf("\n");
}

template <class F> static void bench_sum(const char *what, const points<F> &p, uint32_t log2_len)
{
    const uint32_t len = 1u << log2_len;
    struct random rng = {SEED};
    std::vector<uint32_t> index;
    device_buffer<uint32_t> d_index;
    device_buffer<char> memory;
    scratch space;
    typename host_group<F>::sum got;

    for (uint32_t i = 0; i < len; i++) /* every other point, on average */
        if (random_u64(&rng) & 1)
            index.push_back(i);
    to_device(d_index, index, device);
    space.size = sum_scratch_bytes<F>((uint32_t)index.size());
    MUST(memory.allocate(space.size, err));
    space.base = memory.ptr;
    measure(what, log2_len, (double)index.size(), [&] {
        MUST(sum_points<F>(device, p.d.ptr, d_index.ptr, (uint32_t)index.size(), space, &got, err));
    });
    table_sums want(p.logs);
    for (uint32_t i : index)
        want.add(i, fr_from_u64(1));
    printf("    %s; %zu points\n", is_multiple(got, want.total()) ? "right" : "WRONG",
           index.size());
}

/* ---- transforms of points ---- */

/* Result j of the points' transform, as a logarithm. */
static fr_t transformed_log(const table_logs &logs, uint32_t log2_len, uint32_t j)
{
    table_sums sum(logs);
    fr power_j = fr_one();
    const fr w = power(inverse(ntt_root(log2_len)), j);

    for (uint32_t k = 0; k < 1u << log2_len; k++) {
        sum.add(k, as<fr_t>(canonical(power_j)));
        power_j = mul(power_j, w);
    }
    return sum.total();
}

static bool is_transform(const points<fp> &p, const device_buffer<g1_point> &v, uint32_t log2_len)
{
    bool right = true;

    for (uint32_t j : {0u, 1u, 54321u}) {
        const g1_affine_t point = as<g1_affine_t>(from_device(v.ptr + j, 1, device)[0]);
        g1_t got;
        blst_p1_from_affine(&got, &point);
        right = right && is_multiple(got, transformed_log(p.logs, log2_len, j));
    }
    return right;
}

/* Items are products: m / 2 for each of the levels. */
static void bench_point_transform(const points<fp> &p, uint32_t log2_len)
{
    const size_t len = (size_t)1 << log2_len;
    device_buffer<g1_point> v;

    MUST(v.allocate(len, err));
    measure("transform of points g1", log2_len, (double)(len / 2 * log2_len), [&] {
        MUST_CUDA(cudaMemcpy(v.ptr, p.d.ptr, len * sizeof(g1_point), cudaMemcpyDeviceToDevice));
        MUST_CUDA(cudaDeviceSynchronize());
        MUST(transform_points(device, v.ptr, log2_len, fr_one(), fr_one(), nullptr, nullptr, err));
    });
    printf("    %s\n", is_transform(p, v, log2_len) ? "right" : "WRONG");
}

int main(int argc, char **argv)
{
    const uint32_t longest = argc > 1 ? (uint32_t)atoi(argv[1]) : 27;

    open_gpu_or_skip(device);
    MUST(workers_create(0, &all_workers, err));
    print_gpu_state();
    for (uint32_t l : {20u, 22u, 24u, 27u})
        if (l <= longest)
            bench_ntt(l);
    bench_quotient(longest);
    print_gpu_state();
    {
        points<fp> p;
        bench_products();
        make_points(device, all_workers, longest, p.logs, p.d);
        for (uint32_t l : {16u, 18u, 20u, 21u, 22u, 24u, 26u, 27u})
            if (l <= longest)
                bench_msm("msm g1", p, l, 0);
        bench_msm("msm g1, one window at once", p, longest, 1);
        for (uint32_t at_once : {2u, 4u, 8u})
            for (uint32_t l : {20u, 22u, 24u})
                if (l <= longest)
                    bench_msm(("msm g1, windows at once: " + std::to_string(at_once)).c_str(), p, l,
                              at_once);
        print_gpu_state();
        bench_sum("sum of ones g1", p, longest);
        bench_point_transform(p, std::min(longest, 20u));
    }
    {
        points<fp2> p;
        const uint32_t g2_longest = std::min(longest, 25u);
        make_points(device, all_workers, g2_longest, p.logs, p.d);
        for (uint32_t l : {16u, 18u, 20u, 22u, 24u})
            if (l <= g2_longest)
                bench_msm("msm g2", p, l, 0);
        bench_sum("sum of ones g2", p, g2_longest);
    }
    print_gpu_state();
    workers_destroy(all_workers);
    return 0;
}
