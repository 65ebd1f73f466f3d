/*
 * Digits, sort and pair lists. Sorting is CUB's, but of many digits only by the upper bits of their keys: what is left is a bin
 * of neighbouring buckets, which one block sorts in its shared memory while it makes the lists. Where a bin does not fit, or there
 * are few digits, the sort goes to the end, and what follows works on one thread a sorted digit where a bucket may be huge, and on
 * one thread a bucket where that is cheaper.
 */
#include "gpu/cuda/msm_lists.cuh"

#include "gpu/cuda/add_pairs.cuh"

#include <cub/cub.cuh>

static constexpr uint32_t ASSIGN_THREADS = 512, LISTS_THREADS = 256;
/* A bin: the digits of 2^local_bits neighbouring buckets, which one block sorts in its shared memory. */
static constexpr uint32_t BIN_THREADS = ASSIGN_THREADS, BIN_DIGITS = 10240, BIN_SEARCH = 1024;
static constexpr int SORT_PASS_BITS = 8; /* of a key in one pass of CUB's */
/* Buckets of more points than this are listed by a whole block. */
static constexpr uint32_t BIG_BUCKET = 1024;

static uint64_t plan_additions(uint32_t len, uint32_t windows)
{
    uint32_t bits = SCALAR_BITS / windows, wider = SCALAR_BITS % windows;
    uint64_t buckets = ((uint64_t)(windows - wider) << (bits - 1)) + ((uint64_t)wider << bits);

    return (uint64_t)windows * len + 2 * buckets; /* integration takes two a bucket */
}

/* Groups as even as can be; the first is the one that may be smaller, since nothing is added while it is sorted. (Two groups where
 * one would do, for the sake of that, lost: 71.5 ms against 70.0 for 2^24, 22.4 against 21.8 for 2^22, H200.) */
static void split_groups(msm_plan &p, uint32_t at_once)
{
    p.groups = (p.windows + at_once - 1) / at_once;
    p.windows_at_once = (p.windows + p.groups - 1) / p.groups;
    p.groups = (p.windows + p.windows_at_once - 1) / p.windows_at_once;
    const uint32_t first = p.windows - (p.groups - 1) * p.windows_at_once;
    for (uint32_t k = 1; k <= p.groups; k++)
        p.group_window[k] = first + (k - 1) * p.windows_at_once;
    for (uint32_t k = 0; k < p.groups; k++)
        for (uint32_t w = p.group_window[k]; w < p.group_window[k + 1]; w++)
            p.group_of[w] = k;
}

static void place_windows(msm_plan &p)
{
    uint32_t at = 0;

    for (uint32_t w = 0; w < p.windows; w++) {
        const uint32_t group = p.group_of[w];
        p.bits[w] = SCALAR_BITS / p.windows + (w < SCALAR_BITS % p.windows);
        p.first_bucket[w] = p.group_buckets[group];
        p.group_buckets[group] += 1u << (p.bits[w] - 1);
        at += p.bits[w];
        if (w < p.windows - 1)
            p.half_windows[(at - 1) / 32] |= 1u << ((at - 1) % 32);
    }
    for (uint32_t k = 0; k < p.groups; k++) {
        p.buckets += p.group_buckets[k];
        p.buckets_max = std::max(p.buckets_max, p.group_buckets[k]);
    }
}

msm_plan make_msm_plan(uint32_t len, uint32_t windows_at_once)
{
    /* As many at once as make 2^28 digits: more gains nothing, and references have 30 bits. */
    uint32_t at_once = (uint32_t)std::max<uint64_t>(1, (1ull << 28) / std::max(1u, len));
    msm_plan p = {};

    p.len = len;
    p.windows = MSM_WINDOWS_MAX;
    for (uint32_t w = 10; w < MSM_WINDOWS_MAX; w++)
        if (plan_additions(len, w) < plan_additions(len, p.windows))
            p.windows = w;
    if (windows_at_once)
        at_once = std::min(at_once, windows_at_once);
    split_groups(p, std::min(at_once, p.windows));
    place_windows(p);
    return p;
}

/* Bits of the key that says "no bucket", which is the number of buckets. */
static int key_bits(uint32_t buckets)
{
    int bits = 0;

    while (buckets >> bits)
        bits++;
    return bits;
}

/*
 * How many bits of a group's keys are left to the blocks: the sort stops at bins after two passes, and what makes places and
 * lists counts and sorts a bin on the way. 0: the whole key is sorted, as where there are too few digits, or too many in a bin
 * even if they are random (then the top window's have a tenth more than the others').
 */
static int local_bits(const msm_plan &plan, uint32_t group)
{
    const int bits = key_bits(plan.group_buckets[group]) - 2 * SORT_PASS_BITS;
    const uint32_t narrowest = plan.bits[plan.group_window[group + 1] - 1] - 1;

    if (bits < 7 || (1u << bits) > BIN_THREADS || narrowest < (uint32_t)bits)
        return 0;
    return ((uint64_t)plan.len << bits) >> narrowest <= BIN_DIGITS / 5 * 4 ? bits : 0;
}

int msm_lists_layout(const msm_plan &plan, scratch &space, msm_lists *out, struct errmsg *err)
{
    const size_t digits = (size_t)plan.windows_at_once * plan.len, buckets = plan.buckets_max;
    uint32_t *none = nullptr;

    CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, out->sort_bytes, none, none, none, none,
                                             (int)digits, 0, key_bits(plan.buckets_max)),
             err);
    size_t by_bins = 0;
    CUDA_TRY(cub::DeviceRadixSort::SortPairs(nullptr, by_bins, none, none, none, none, (int)digits,
                                             7, key_bits(plan.buckets_max)),
             err);
    out->sort_bytes = std::max(out->sort_bytes, by_bins);
    out->keys = space.take<uint32_t>((size_t)plan.windows * plan.len);
    out->points = space.take<uint32_t>(digits);
    out->sort_space = space.take<char>(out->sort_bytes);
    for (msm_slot &s : out->slot) {
        s.keys = space.take<uint32_t>(digits);
        s.points = space.take<uint32_t>(digits);
        s.start = space.take<uint32_t>(buckets + 1);
        s.end = space.take<uint32_t>(buckets + 1);
        s.place = space.take<uint32_t>(buckets * MSM_ROUNDS);
        s.last = space.take<uint32_t>(buckets);
        s.single = space.take<uint32_t>(buckets);
        s.counts = space.take<uint32_t>(MSM_ROUNDS);
        s.list = space.take<uint2>(digits);
    }
    return 0;
}

__global__ void digits_kernel(msm_scalars in, uint32_t *keys, uint32_t *points,
                              const __grid_constant__ msm_plan plan)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < plan.len;
         i += gridDim.x * blockDim.x) {
        const uint4 *from =
            (const uint4 *)(in.scalars + (in.scalar_index ? in.scalar_index[i] : i));
        uint32_t s[fr::LIMBS + 1];
        fr scalar;

        unpack(scalar.v, from[0]);
        unpack(scalar.v + 4, from[1]);
        scalar = canonical(mul(scalar, in.convert));
        limbs_add<fr::LIMBS>(s, scalar.v, plan.half_windows);
        s[fr::LIMBS] = 0;
        /* From the bottom, shifting the whole number: so limbs have fixed indices. */
        for (uint32_t w = 0; w < plan.windows; w++) {
            const uint32_t bits = plan.bits[w];
            int digit = (int)(s[0] & ((1u << bits) - 1));

            if (w < plan.windows - 1)
                digit -= 1 << (bits - 1);
            UNROLL
            for (int k = 0; k < fr::LIMBS; k++)
                s[k] = __funnelshift_r(s[k], s[k + 1], bits);
            const uint32_t none = plan.group_buckets[plan.group_of[w]];
            uint32_t size = digit < 0 ? -digit : digit;
            keys[(size_t)w * plan.len + i] =
                (digit < 0 ? REF_NEGATIVE : 0) | (size ? plan.first_bucket[w] + size - 1 : none);
        }
        const uint32_t point = in.point_index ? in.point_index[i] : i;
        for (uint32_t k = 0; k < plan.windows_at_once; k++)
            points[(size_t)k * plan.len + i] = point;
    }
}

int msm_digits(const gpu &g, const msm_plan &plan, const msm_lists &lists, const msm_scalars &in,
               cudaStream_t stream, struct errmsg *err)
{
    uint32_t blocks = std::min(g.multiprocessors * 8, blocks_for(plan.len, 256));

    digits_kernel<<<blocks, 256, 0, stream>>>(in, lists.keys, lists.points, plan);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

__global__ void bounds_kernel(const uint32_t *__restrict__ keys, uint32_t *__restrict__ start,
                              uint32_t *__restrict__ end, uint32_t digits)
{
#pragma unroll 4
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < digits;
         i += gridDim.x * blockDim.x) {
        uint32_t key = keys[i] & ~REF_NEGATIVE, before = i ? keys[i - 1] & ~REF_NEGATIVE : ~0u;

        if (key != before) {
            start[key] = i;
            if (i)
                end[before] = i;
        }
        if (i == digits - 1)
            end[key] = digits;
    }
}

typedef cub::BlockScan<uint32_t, ASSIGN_THREADS, cub::BLOCK_SCAN_WARP_SCANS> assign_scan;

struct assign_space {
    typename assign_scan::TempStorage scan;
    uint32_t base;
};

/* Gives a bucket of `points` points its place in the output of every round; the order of buckets does not matter, so a block
 * takes its share by one atomic addition a round. A block's places in a round are neighbours, in the order of its threads.
 * Threads without a bucket (one not below `buckets`) have no points. */
DEVICE void assign_places(const msm_slot &s, uint32_t buckets, uint32_t bucket, uint32_t points,
                          assign_space &space)
{
    uint32_t left = points, last = 0, last_place = 0;

    for (uint32_t round = 1; round < MSM_ROUNDS; round++) {
        uint32_t additions = left >> 1, place, total;

        if (!__syncthreads_or(additions > 0))
            break;
        assign_scan(space.scan).ExclusiveSum(additions, place, total);
        if (threadIdx.x == 0)
            space.base = atomicAdd(&s.counts[round], total);
        __syncthreads();
        place += space.base;
        if (bucket < buckets)
            s.place[(size_t)round * buckets + bucket] = place;
        if (additions) {
            last = round;
            last_place = place;
        }
        left -= additions;
    }
    if (bucket < buckets)
        s.last[bucket] = points ? last << 27 | last_place : ~0u;
}

__global__ void __launch_bounds__(ASSIGN_THREADS) assign_kernel(msm_slot s, uint32_t buckets)
{
    __shared__ assign_space space;
    const uint32_t bucket = blockIdx.x * ASSIGN_THREADS + threadIdx.x;

    assign_places(s, buckets, bucket, bucket < buckets ? s.end[bucket] - s.start[bucket] : 0,
                  space);
}

/* The reference to sorted point i, with the sign of its digit. */
DEVICE uint32_t sorted_ref(const msm_slot &s, uint32_t i)
{
    return s.points[i] | (s.keys[i] & REF_NEGATIVE);
}

__global__ void first_list_kernel(msm_slot s, uint32_t buckets, uint32_t digits)
{
#pragma unroll 4
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < digits;
         i += gridDim.x * blockDim.x) {
        uint32_t bucket = s.keys[i] & ~REF_NEGATIVE;

        if (bucket >= buckets)
            continue;
        uint32_t rank = i - s.start[bucket];
        if (!(rank & 1) && i + 1 < s.end[bucket])
            s.list[s.place[buckets + bucket] + (rank >> 1)] =
                make_uint2(sorted_ref(s, i), sorted_ref(s, i + 1));
    }
}

/* Rounds 2 and later of a bucket of `points` points, by threads t, t + step, ..: all of them keep the same books. `waiting`:
 * the odd one out of the first round. */
DEVICE void list_bucket(const msm_slot &s, uint32_t buckets, const uint32_t *first, uint32_t bucket,
                        uint32_t points, uint32_t waiting, uint32_t t, uint32_t step)
{
    if (points == 1) {
        if (t == 0)
            s.single[bucket] = waiting;
        return;
    }
    /* `made` sums of the round before start at `from`; with the one that waits there are `left`. */
    uint32_t made = points >> 1, left = points - made;
    uint32_t from = first[1] + s.place[buckets + bucket];
    for (int round = 2; left > 1; round++) {
        uint32_t additions = left >> 1,
                 out = first[round] + s.place[(size_t)round * buckets + bucket];

        for (uint32_t j = t; j < additions; j += step) {
            uint32_t second = 2 * j + 1 < made ? (from + 2 * j + 1) | REF_RESULT : waiting;
            s.list[out + j] = make_uint2((from + 2 * j) | REF_RESULT, second);
        }
        if ((left & 1) && left == made)
            waiting = (from + made - 1) | REF_RESULT;
        from = out;
        made = additions;
        left -= additions;
    }
}

/* The same for a bucket whose points are sorted. */
DEVICE void list_sorted_bucket(const msm_slot &s, uint32_t buckets, const uint32_t *first,
                               uint32_t bucket, uint32_t t, uint32_t step)
{
    const uint32_t points = s.end[bucket] - s.start[bucket];

    list_bucket(s, buckets, first, bucket, points,
                points & 1 ? sorted_ref(s, s.end[bucket] - 1) : 0, t, step);
}

__global__ void __launch_bounds__(LISTS_THREADS) later_lists_kernel(msm_slot s, uint32_t buckets)
{
    __shared__ uint32_t first[MSM_ROUNDS], n_big, big[LISTS_THREADS];
    const uint32_t bucket = blockIdx.x * LISTS_THREADS + threadIdx.x;

    if (threadIdx.x == 0)
        n_big = 0;
    first_outputs(s.counts, first);
    if (bucket < buckets) {
        uint32_t points = s.end[bucket] - s.start[bucket];
        if (points > BIG_BUCKET)
            big[atomicAdd(&n_big, 1u)] = bucket;
        else if (points)
            list_sorted_bucket(s, buckets, first, bucket, 0, 1);
    }
    __syncthreads();
    for (uint32_t k = 0; k < n_big; k++)
        list_sorted_bucket(s, buckets, first, big[k], threadIdx.x, LISTS_THREADS);
}

/* ---- the same from digits that are sorted by bins ---- */

DEVICE uint32_t bin_of(uint32_t key, int bits)
{
    return (key & ~REF_NEGATIVE) >> bits;
}

/* start[bin] = its first digit, for all bins and the one after them, which is of the digits without a bucket. */
__global__ void bin_starts_kernel(msm_slot s, uint32_t digits, uint32_t bins, int bits)
{
    const uint32_t from = (blockIdx.x * blockDim.x + threadIdx.x) * BIN_SEARCH;

    if (from >= digits)
        return;
    const uint32_t to = min(from + BIN_SEARCH, digits);
    const uint32_t last = to == digits ? bins : bin_of(s.keys[to - 1], bits);
    for (uint32_t bin = from ? bin_of(s.keys[from - 1], bits) + 1 : 0; bin <= last; bin++) {
        uint32_t low = from, high = to;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (bin_of(s.keys[middle], bits) < bin)
                low = middle + 1;
            else
                high = middle;
        }
        s.start[bin] = low;
    }
}

/* points[k] = how many digits bucket k of the block's bin has, in shared memory. */
DEVICE void count_bin(const msm_slot &s, uint32_t from, uint32_t to, int bits, uint32_t *points)
{
    points[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll 4
    for (uint32_t i = from + threadIdx.x; i < to; i += BIN_THREADS)
        atomicAdd(&points[__ldg(s.keys + i) & ((1u << bits) - 1)], 1u);
    __syncthreads();
}

/* A block a bin. A bin of too many digits is said in counts[0], and no list is made then. */
__global__ void __launch_bounds__(BIN_THREADS)
    assign_bins_kernel(msm_slot s, uint32_t buckets, int bits)
{
    __shared__ uint32_t points[BIN_THREADS];
    __shared__ assign_space space;
    const uint32_t from = s.start[blockIdx.x], to = s.start[blockIdx.x + 1];

    if (to - from > BIN_DIGITS) {
        if (threadIdx.x == 0)
            s.counts[0] = 1;
        return;
    }
    count_bin(s, from, to, bits, points);
    assign_places(s, buckets, threadIdx.x >> bits ? buckets : (blockIdx.x << bits) + threadIdx.x,
                  points[threadIdx.x], space);
}

/* All lists of a block's bin. The first round's pairs are put in order in shared memory, where they lie as in the list. */
__global__ void __launch_bounds__(BIN_THREADS)
    list_bins_kernel(msm_slot s, uint32_t buckets, int bits)
{
    __shared__ uint2 pairs[BIN_DIGITS / 2];
    /* next[k]: where the next point of bucket k goes, in halves of pairs; end[k]: where its pairs end. */
    __shared__ uint32_t first[MSM_ROUNDS], next[BIN_THREADS], end[BIN_THREADS], odd[BIN_THREADS];
    __shared__ typename assign_scan::TempStorage scan_space;
    const uint32_t from = s.start[blockIdx.x], to = s.start[blockIdx.x + 1];
    const uint32_t first_bucket = blockIdx.x << bits;
    uint32_t at, all;

    if (s.counts[0])
        return;
    first_outputs(s.counts, first);
    count_bin(s, from, to, bits, next);
    const uint32_t points = next[threadIdx.x];
    assign_scan(scan_space).ExclusiveSum(points >> 1, at, all);
    next[threadIdx.x] = 2 * at;
    end[threadIdx.x] = 2 * at + (points & ~1u);
    __syncthreads();
#pragma unroll 4
    for (uint32_t i = from + threadIdx.x; i < to; i += BIN_THREADS) {
        const uint32_t key = __ldg(s.keys + i), ref = __ldg(s.points + i) | (key & REF_NEGATIVE);
        const uint32_t bucket = key & ((1u << bits) - 1), place = atomicAdd(&next[bucket], 1u);
        if (place < end[bucket])
            ((uint32_t *)pairs)[place] = ref;
        else
            odd[bucket] = ref;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < all; k += BIN_THREADS)
        s.list[s.place[buckets + first_bucket] + k] = pairs[k];
    if (points)
        list_bucket(s, buckets, first, first_bucket + threadIdx.x, points, odd[threadIdx.x], 0, 1);
}

/* Sort of a group's digits by the bits from `low` on. */
static int sort_group(const msm_plan &plan, const msm_lists &lists, const msm_slot &s,
                      uint32_t group, int low, cudaStream_t stream, struct errmsg *err)
{
    const uint32_t first = plan.group_window[group], buckets = plan.group_buckets[group];
    const uint32_t digits = (plan.group_window[group + 1] - first) * plan.len;
    size_t sort_bytes = lists.sort_bytes;

    CUDA_TRY(cub::DeviceRadixSort::SortPairs(
                 lists.sort_space, sort_bytes, lists.keys + (size_t)first * plan.len, s.keys,
                 lists.points, s.points, (int)digits, low, key_bits(buckets), stream),
             err);
    CUDA_TRY(cudaMemsetAsync(s.counts, 0, MSM_ROUNDS * sizeof(*s.counts), stream), err);
    return 0;
}

static int send_counts(const msm_slot &s, uint32_t *host_counts, cudaStream_t stream,
                       cudaEvent_t counted, struct errmsg *err)
{
    CUDA_TRY(cudaMemcpyAsync(host_counts, s.counts, MSM_ROUNDS * sizeof(*s.counts),
                             cudaMemcpyDeviceToHost, stream),
             err);
    CUDA_TRY(cudaEventRecord(counted, stream), err);
    return 0;
}

static int list_by_bins(const msm_slot &s, uint32_t buckets, uint32_t digits, int bits,
                        cudaStream_t stream, uint32_t *host_counts, cudaEvent_t counted,
                        struct errmsg *err)
{
    const uint32_t bins = buckets >> bits;

    bin_starts_kernel<<<blocks_for(blocks_for(digits, BIN_SEARCH), 128), 128, 0, stream>>>(
        s, digits, bins, bits);
    CUDA_TRY(cudaGetLastError(), err);
    assign_bins_kernel<<<bins, BIN_THREADS, 0, stream>>>(s, buckets, bits);
    CUDA_TRY(cudaGetLastError(), err);
    TRY(send_counts(s, host_counts, stream, counted, err));
    list_bins_kernel<<<bins, BIN_THREADS, 0, stream>>>(s, buckets, bits);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

static int list_by_buckets(const gpu &g, const msm_slot &s, uint32_t buckets, uint32_t digits,
                           cudaStream_t stream, uint32_t *host_counts, cudaEvent_t counted,
                           struct errmsg *err)
{
    const uint32_t blocks = std::min(g.multiprocessors * 8, blocks_for(digits, 256));

    CUDA_TRY(cudaMemsetAsync(s.start, 0, (buckets + 1) * sizeof(*s.start), stream), err);
    CUDA_TRY(cudaMemsetAsync(s.end, 0, (buckets + 1) * sizeof(*s.end), stream), err);
    bounds_kernel<<<blocks, 256, 0, stream>>>(s.keys, s.start, s.end, digits);
    CUDA_TRY(cudaGetLastError(), err);
    assign_kernel<<<blocks_for(buckets, ASSIGN_THREADS), ASSIGN_THREADS, 0, stream>>>(s, buckets);
    CUDA_TRY(cudaGetLastError(), err);
    TRY(send_counts(s, host_counts, stream, counted, err));
    first_list_kernel<<<blocks, 256, 0, stream>>>(s, buckets, digits);
    CUDA_TRY(cudaGetLastError(), err);
    later_lists_kernel<<<blocks_for(buckets, LISTS_THREADS), LISTS_THREADS, 0, stream>>>(s,
                                                                                         buckets);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

int msm_group_lists(const gpu &g, const msm_plan &plan, const msm_lists &lists, uint32_t group,
                    cudaStream_t stream, uint32_t *host_counts, cudaEvent_t counted,
                    struct errmsg *err)
{
    const msm_slot &s = lists.slot[group & 1];
    const uint32_t buckets = plan.group_buckets[group];
    const uint32_t digits = (plan.group_window[group + 1] - plan.group_window[group]) * plan.len;
    const int bits = local_bits(plan, group);

    if (bits) {
        TRY(sort_group(plan, lists, s, group, bits, stream, err));
        TRY(list_by_bins(s, buckets, digits, bits, stream, host_counts, counted, err));
        CUDA_TRY(cudaEventSynchronize(counted), err);
        if (!host_counts[0])
            return 0;
    }
    TRY(sort_group(plan, lists, s, group, 0, stream, err));
    return list_by_buckets(g, s, buckets, digits, stream, host_counts, counted, err);
}
