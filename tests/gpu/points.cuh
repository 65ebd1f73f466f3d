/*
 * Millions of distinct points of known logarithm, for bench programs: point i is a[i mod 2^low] + b[i >> low], made by the
 * addition kernel itself; every sum over them is checked, so a wrong point would show.
 */
#ifndef TESTS_GPU_POINTS_CUH
#define TESTS_GPU_POINTS_CUH

#include "gpu/cuda/add_pairs.cuh"
#include "tests/gpu/device_test.cuh"

static constexpr uint64_t POINTS_SEED = 0x51eed;

/* Logarithms of the two tables. */
struct table_logs {
    uint32_t low;
    std::vector<fr_t> a, b;
};

/* Adds up scalar * point, as logarithms. */
struct table_sums {
    const table_logs &logs;
    std::vector<fr_t> a, b;

    explicit table_sums(const table_logs &l)
        : logs(l), a(l.a.size(), fr_from_u64(0)), b(l.b.size(), fr_from_u64(0))
    {
    }

    void add(size_t point, const fr_t &scalar)
    {
        fr_t &x = a[point & ((1u << logs.low) - 1)], &y = b[point >> logs.low];

        fr_add(&x, &x, &scalar);
        fr_add(&y, &y, &scalar);
    }

    fr_t total() const
    {
        fr_t sum = fr_from_u64(0), term;

        for (size_t k = 0; k < a.size(); k++) {
            fr_mul(&term, &a[k], &logs.a[k]);
            fr_add(&sum, &sum, &term);
        }
        for (size_t k = 0; k < b.size(); k++) {
            fr_mul(&term, &b[k], &logs.b[k]);
            fr_add(&sum, &sum, &term);
        }
        return sum;
    }
};

static __global__ void pairs_of_tables_kernel(uint2 *list, uint32_t len, uint32_t low)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < len; i += gridDim.x * blockDim.x)
        list[i] = make_uint2(i & ((1u << low) - 1), (1u << low) + (i >> low));
}

template <class F>
static void make_points(gpu &g, struct workers *workers, uint32_t log2_len, table_logs &logs,
                        device_buffer<affine<F>> &out)
{
    struct random rng = {POINTS_SEED};
    const uint32_t len = 1u << log2_len;
    std::vector<fr_t> all;
    std::vector<affine<F>> tables;
    device_buffer<affine<F>> d_tables;
    device_buffer<uint2> list;
    device_buffer<uint4> prefix;
    device_buffer<uint32_t> special;
    pairs<F> job = {};

    logs.low = log2_len / 2;
    for (uint32_t i = 0; i < (1u << logs.low) + (1u << (log2_len - logs.low)); i++) {
        all.push_back(random_fr(&rng));
        (i < 1u << logs.low ? logs.a : logs.b).push_back(all.back());
    }
    points_of(all, tables, workers);
    to_device(d_tables, tables, g);
    MUST(pairs_prepare<F>(g, err)); /* the kernel's copy in this program's own file */
    MUST(out.allocate(len, err));
    MUST(list.allocate(len, err));
    MUST(prefix.allocate(pairs_prefix_bytes<F>(len) / 16, err));
    MUST(special.allocate((size_t)len + 1, err));
    pairs_of_tables_kernel<<<1024, 256, 0, g.main.handle>>>(list.ptr, len, logs.low);
    job.inputs = d_tables.ptr;
    job.results = out.ptr;
    job.list = list.ptr;
    job.len = len;
    job.prefix = prefix.ptr;
    job.prefix_stride = len;
    job.special = special.ptr;
    job.special_len = special.ptr + len;
    MUST(add_pairs<F>(g, g.main.handle, job, err));
    MUST_CUDA(cudaStreamSynchronize(g.main.handle));
}

/* Clock and power while the GPU is warm from what was just measured. */
static inline void print_gpu_state()
{
    fflush(stdout);
    if (system("nvidia-smi --query-gpu=name,clocks.sm,power.draw,temperature.gpu "
               "--format=csv,noheader") != 0)
        printf("no nvidia-smi: clock and power unknown\n");
}

#endif
