#include "gpu/cuda/select.cuh"

#include <cub/cub.cuh>

static constexpr uint32_t THREADS = 256;

__global__ void __launch_bounds__(THREADS)
    classify_kernel(const fr *values, uint32_t len, uint32_t *ones, uint32_t *rest)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    bool one = false, other = false;

    if (i < len) {
        const uint4 *p = (const uint4 *)(values + i);
        const uint4 low = p[0], high = p[1];
        const fr v = {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
        one = equal(v, fr_one());
        other = !one && !is_zero(v);
    }
    const uint32_t one_bits = __ballot_sync(~0u, one), rest_bits = __ballot_sync(~0u, other);
    if ((threadIdx.x & 31) == 0 && i < len) {
        ones[i / 32] = one_bits;
        rest[i / 32] = rest_bits;
    }
}

int classify_values(gpu &g, const fr *values, uint32_t len, uint32_t *ones, uint32_t *rest,
                    struct errmsg *err)
{
    if (len == 0)
        return 0;
    classify_kernel<<<blocks_for(len, THREADS), THREADS, 0, g.main.handle>>>(values, len, ones,
                                                                             rest);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

__global__ void popcount_kernel(const uint32_t *bitmap, uint32_t words, uint32_t *counts)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < words)
        counts[i] = __popc(bitmap[i]);
}

size_t rank_scratch_bytes(uint32_t len)
{
    size_t bytes = 0;
    uint32_t *none = nullptr;

    if (cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, (int)bitmap_words(len)) !=
        cudaSuccess)
        return SIZE_MAX / 2; /* no such scratch: whoever cuts it will say so */
    return bytes;
}

int rank_bitmap(gpu &g, const uint32_t *bitmap, uint32_t len, uint32_t *rank, scratch space,
                struct errmsg *err)
{
    const uint32_t words = (uint32_t)bitmap_words(len);
    size_t bytes = rank_scratch_bytes(len);
    char *room = space.take<char>(bytes);

    if (words == 0)
        return 0;
    if (space.overflowed())
        return errmsg_set(err, -ENOMEM, "no scratch to count %u bits", len);
    popcount_kernel<<<blocks_for(words, THREADS), THREADS, 0, g.main.handle>>>(bitmap, words, rank);
    CUDA_TRY(cudaGetLastError(), err);
    CUDA_TRY(cub::DeviceScan::ExclusiveSum(room, bytes, rank, rank, (int)words, g.main.handle),
             err);
    return 0;
}

/* A thread takes a word, a block its share of each list by one atomic addition. The ones, which are many, leave through
 * shared memory as whole lines. */
__global__ void __launch_bounds__(THREADS) select_kernel(selection_part part, selection out)
{
    typedef cub::BlockScan<uint32_t, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage scan_space;
    __shared__ uint32_t base_ones, base_rest, gathered[THREADS * 32];
    const uint32_t word = blockIdx.x * THREADS + threadIdx.x;
    const bool inside = word < (part.len + 31) / 32;
    const uint32_t dense = !inside ? 0 : part.density ? part.density[word] : ~0u;
    const uint32_t first_point = part.first_point + (!inside     ? 0
                                                     : part.rank ? part.rank[word]
                                                                 : word * 32);
    uint32_t ones = inside ? part.ones[word] & dense : 0,
             rest = inside && part.rest ? part.rest[word] & dense : 0;
    uint32_t at_one, at_rest, n_ones, n_rest;

    block_scan(scan_space).ExclusiveSum(__popc(ones), at_one, n_ones);
    __syncthreads();
    block_scan(scan_space).ExclusiveSum(__popc(rest), at_rest, n_rest);
    if (threadIdx.x == 0) {
        base_ones = atomicAdd(&out.lens[0], n_ones);
        base_rest = atomicAdd(&out.lens[1], n_rest);
    }
    __syncthreads();
    for (; ones; ones &= ones - 1)
        gathered[at_one++] = first_point + __popc(dense & ((ones & -ones) - 1));
    for (; rest; rest &= rest - 1) {
        const uint32_t bit = __ffs(rest) - 1;
        out.rest_points[base_rest + at_rest] = first_point + __popc(dense & ((1u << bit) - 1));
        out.rest_values[base_rest + at_rest++] = part.first_value + word * 32 + bit;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < n_ones; k += THREADS)
        out.one_points[base_ones + k] = gathered[k];
}

int select_part(gpu &g, const selection_part &part, const selection &out, struct errmsg *err)
{
    if (part.len == 0)
        return 0;
    select_kernel<<<blocks_for(bitmap_words(part.len), THREADS), THREADS, 0, g.main.handle>>>(part,
                                                                                              out);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}
