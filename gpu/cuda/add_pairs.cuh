/*
 * Many additions of two affine points, one inversion for hundreds of them: the kernel in which sums spend their time, for G1
 * (F = fp) and G2 (F = fp2).
 *
 * A thread takes `rows` pairs, PAIRS_THREADS apart. Forward: the running product of x2 - x1, kept in `prefix`. Then one
 * inversion for the four threads of the same lane in the block's warps. Backward: slope and sum. Both loops fetch one pair
 * ahead into shared memory; the lanes of a warp share the work, so that neighbouring lanes ask for the pieces of one point
 * and memory moves in whole sectors. Results leave through shared memory as contiguous lines.
 *
 * Pairs whose x are equal, or whose x is 0 (infinity, perhaps), count as factor 1 in the product and are noted; a second kernel
 * does them one by one, whatever they are. Keeping their code out of the hot kernel saves its registers.
 */
#ifndef GPU_CUDA_ADD_PAIRS_CUH
#define GPU_CUDA_ADD_PAIRS_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/refs.cuh"

#include <algorithm>

static constexpr int PAIRS_THREADS = 128, PAIRS_WARPS = PAIRS_THREADS / 32;
static constexpr int PAIRS_SEGMENTS = 16;

/* Blocks from block[i] on take rows[i] rows of PAIRS_THREADS pairs each, the first of them starting at row first[i]. */
struct pairs_schedule {
    uint32_t segments, blocks;
    uint32_t block[PAIRS_SEGMENTS], first[PAIRS_SEGMENTS], rows[PAIRS_SEGMENTS];
};

template <class F> struct pairs {
    const affine<F> *inputs;
    affine<F> *results; /* sums go to results[out], results[out + 1], .. */
    uint32_t len, out;
    /* Pairs from a list, or regular ones: sum i of the results in, in + 1, .. is of those at distance 2^log2_stride, the
     * bits of i below log2_stride staying where they are. A second one at or after in_end is `nothing`. */
    const uint2 *list; /* NULL: regular */
    uint32_t in, in_end, log2_stride;
    uint32_t nothing; /* reference to a point at infinity */
    uint4 *prefix;    /* pairs_prefix_bytes(len), in planes of prefix_stride */
    size_t prefix_stride;
    uint32_t *special, *special_len; /* room for len; a counter, zero before */
    pairs_schedule schedule;
};

template <class F> struct pairs_shape {
    static constexpr int CHUNKS = sizeof(F) / 16;  /* of 16 bytes, in a coordinate */
    static constexpr int ROW = 33;                 /* 32 lanes and one, against bank conflicts */
    static constexpr int STAGE = 4 * CHUNKS * ROW; /* two points for 32 lanes, in uint4 */
    static constexpr int SHARED_BYTES = 2 * STAGE * 16 * PAIRS_WARPS;
    /* Blocks on a multiprocessor, at least where it has that much shared memory. G1: 128 registers are enough without spills and four blocks hide more than three (3.85
     * against 3.6 G/s, H200). G2 needs up to 255, and two blocks fill its shared memory. */
    static constexpr int RESIDENT = sizeof(F) == sizeof(fp) ? 4 : 2;
    static constexpr int GROUP = sizeof(F) == sizeof(fp) ? 0 : 1; /* index in gpu::resident */
    /* In G1 a square of its own is worth its code; in G2 it is a product like the others. */
    static constexpr bool SQUARE_APART = sizeof(F) == sizeof(fp);
};

template <class F> constexpr size_t pairs_prefix_bytes(size_t len)
{
    return len * sizeof(F);
}

#ifdef __CUDACC__
DEVICE void unpack(uint32_t *limbs, uint4 q)
{
    limbs[0] = q.x;
    limbs[1] = q.y;
    limbs[2] = q.z;
    limbs[3] = q.w;
}

DEVICE uint4 pack(const uint32_t *limbs)
{
    return make_uint4(limbs[0], limbs[1], limbs[2], limbs[3]);
}

/* A coordinate whose 16-byte pieces are `stride` apart. */
DEVICE void load_strided(fp &r, const uint4 *p, size_t stride)
{
    UNROLL
    for (int i = 0; i < 3; i++)
        unpack(r.v + 4 * i, p[i * stride]);
}

DEVICE void load_strided(fp2 &r, const uint4 *p, size_t stride)
{
    load_strided(r.c0, p, stride);
    load_strided(r.c1, p + 3 * stride, stride);
}

DEVICE void store_strided(uint4 *p, size_t stride, const fp &a)
{
    UNROLL
    for (int i = 0; i < 3; i++)
        p[i * stride] = pack(a.v + 4 * i);
}

DEVICE void store_strided(uint4 *p, size_t stride, const fp2 &a)
{
    store_strided(p, stride, a.c0);
    store_strided(p + 3 * stride, stride, a.c1);
}

template <class F> DEVICE F loaded(const uint4 *p, size_t stride)
{
    F r;

    load_strided(r, p, stride);
    return r;
}

template <class F> DEVICE affine<F> load_point(const affine<F> *p)
{
    const uint4 *q = (const uint4 *)p;

    return {loaded<F>(q, 1), loaded<F>(q + pairs_shape<F>::CHUNKS, 1)};
}

template <class F> DEVICE void store_point(affine<F> *p, const affine<F> &a)
{
    uint4 *q = (uint4 *)p;

    store_strided(q, 1, a.x);
    store_strided(q + pairs_shape<F>::CHUNKS, 1, a.y);
}

template <class F> DEVICE const affine<F> *point_at(const pairs<F> &job, uint32_t ref)
{
    return ((ref & REF_RESULT) ? job.results : job.inputs) + (ref & REF_INDEX);
}

template <class F, bool LIST> DEVICE uint2 pair_refs(const pairs<F> &job, uint32_t i)
{
    if (LIST)
        return job.list[i];
    uint32_t low = i & ((1u << job.log2_stride) - 1);
    uint32_t a = job.in + ((i - low) << 1) + low, b = a + (1u << job.log2_stride);
    return make_uint2(a | REF_RESULT, b < job.in_end ? b | REF_RESULT : job.nothing);
}

DEVICE void copy_async(uint32_t shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(shared), "l"(global));
}

DEVICE void copy_async_commit()
{
    asm volatile("cp.async.commit_group;");
}

template <int PENDING> DEVICE void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* The first COUNT chunks of the points to which the 32 lanes' references lead, into the stage at shared address `stage`. */
template <class F, int COUNT>
DEVICE void fetch_pairs(const pairs<F> &job, uint32_t stage, uint2 refs, uint32_t lane)
{
    constexpr int ROW = pairs_shape<F>::ROW, SECOND = 2 * pairs_shape<F>::CHUNKS;
    constexpr int AT_ONCE = 96 / COUNT; /* pairs that three chunks a lane make up */

    UNROLL
    for (int i = 0; i < 3; i++) {
        uint32_t id = i * 32 + lane, first = id / COUNT, chunk = id - first * COUNT;
        UNROLL
        for (int h = 0; h < COUNT / 3; h++) {
            uint32_t from = first + AT_ONCE * h;
            uint32_t a = __shfl_sync(~0u, refs.x, from), b = __shfl_sync(~0u, refs.y, from);
            copy_async(stage + (chunk * ROW + from) * 16, (const uint4 *)point_at(job, a) + chunk);
            copy_async(stage + ((SECOND + chunk) * ROW + from) * 16,
                       (const uint4 *)point_at(job, b) + chunk);
        }
    }
}

/* Equal x, or an x of 0. Looks at one limb first. */
template <class F> DEVICE bool is_special(const F &x1, const F &x2)
{
    if (low_limb(x1) != low_limb(x2) && low_limb(x1) != 0 && low_limb(x2) != 0)
        return false;
    return equal(x1, x2) || is_zero(x1) || is_zero(x2);
}

/* Inverts one value for each lane, the product of those that the block's warps hold at `slot` of their shared memory, and
 * leaves each warp the inverse of its own there. The second stages serve as scratch. */
template <class F> DEVICE void invert_over_warps(uint4 *shared, uint32_t lane)
{
    constexpr int STAGE = pairs_shape<F>::STAGE, ROW = pairs_shape<F>::ROW;
    F x = loaded<F>(shared + lane, ROW);

#pragma unroll 1
    for (int w = 1; w < PAIRS_WARPS; w++) {
        store_strided(shared + (w * 2 + 1) * STAGE + lane, ROW, x);
        x = mul_call(x, loaded<F>(shared + w * 2 * STAGE + lane, ROW));
    }
    x = inverse(reduce_2p(x));
#pragma unroll 1
    for (int w = PAIRS_WARPS - 1; w > 0; w--) {
        F own = loaded<F>(shared + w * 2 * STAGE + lane, ROW);
        store_strided(shared + w * 2 * STAGE + lane, ROW,
                      mul_call(x, loaded<F>(shared + (w * 2 + 1) * STAGE + lane, ROW)));
        x = mul_call(x, own);
    }
    store_strided(shared + lane, ROW, x);
}

template <class F, bool LIST>
__global__ void __launch_bounds__(PAIRS_THREADS, pairs_shape<F>::RESIDENT)
    add_pairs_kernel(const __grid_constant__ pairs<F> job)
{
    typedef pairs_shape<F> shape;
    constexpr int ROW = shape::ROW, STAGE = shape::STAGE, CHUNKS = shape::CHUNKS;
    constexpr int X1 = 0, Y1 = CHUNKS * ROW, X2 = 2 * CHUNKS * ROW, Y2 = 3 * CHUNKS * ROW;
    extern __shared__ uint4 shared[];
    const uint32_t lane = threadIdx.x & 31, last = job.len - 1;
    uint4 *stages = shared + (threadIdx.x >> 5) * 2 * STAGE;
    const uint32_t stage_address = (uint32_t)__cvta_generic_to_shared(stages);
    uint32_t segment = 0;

    for (uint32_t i = 1; i < job.schedule.segments; i++)
        if (blockIdx.x >= job.schedule.block[i])
            segment = i;
    const uint32_t rows = job.schedule.rows[segment];
    const uint32_t start =
        (job.schedule.first[segment] + (blockIdx.x - job.schedule.block[segment]) * rows) *
            PAIRS_THREADS +
        threadIdx.x;
    const uint32_t warp_start = start - lane;
    /* The same number for all lanes of a warp; lanes past the end repeat the last pair and store nothing. */
    const int n = warp_start < job.len
                      ? (int)min(rows, (job.len - warp_start + PAIRS_THREADS - 1) / PAIRS_THREADS)
                      : 0;

    F acc;
    set_one(acc);
    uint2 refs = pair_refs<F, LIST>(job, min(start, last)), next;
    if (n)
        fetch_pairs<F, CHUNKS>(job, stage_address, refs, lane);
    copy_async_commit();
    next = pair_refs<F, LIST>(job, min(start + PAIRS_THREADS, last));
#pragma unroll 1
    for (int j = 0; j < n; j++) {
        const uint32_t i = start + j * PAIRS_THREADS;
        __syncwarp();
        if (j + 1 < n) {
            refs = next;
            fetch_pairs<F, CHUNKS>(job, stage_address + ((j + 1) & 1) * (STAGE * 16), refs, lane);
        }
        copy_async_commit();
        if (j + 2 < n)
            next = pair_refs<F, LIST>(job, min(i + 2 * PAIRS_THREADS, last));
        copy_async_wait<1>();
        __syncwarp();
        const uint4 *stage = stages + (j & 1) * STAGE + lane;
        F x1 = loaded<F>(stage + X1, ROW), x2 = loaded<F>(stage + X2, ROW);
        if (i <= last) {
            F d = sub_lazy(x2, x1);
            if (is_special(x1, x2))
                set_one(d);
            store_strided(job.prefix + i, job.prefix_stride, acc);
            acc = mul(acc, d);
        }
    }
    copy_async_wait<0>();
    __syncwarp();
    store_strided(stages + lane, ROW, acc);
    __syncthreads();
    if (threadIdx.x < 32)
        invert_over_warps<F>(shared, lane);
    __syncthreads();
    acc = loaded<F>(stages + lane, ROW);
    if (n == 0)
        return;
    __syncwarp();
    fetch_pairs<F, 2 * CHUNKS>(job, stage_address + ((n - 1) & 1) * (STAGE * 16), refs, lane);
    copy_async_commit(); /* refs is still that of pair n - 1 */
    next = n > 1 ? pair_refs<F, LIST>(job, min(start + (n - 2) * PAIRS_THREADS, last)) : refs;
#pragma unroll 1
    for (int j = n - 1; j >= 0; j--) {
        const uint32_t i = start + j * PAIRS_THREADS;
        const bool negate1 = refs.x & REF_NEGATIVE, negate2 = refs.y & REF_NEGATIVE;
        F a = acc, b = loaded<F>(job.prefix + min(i, last), job.prefix_stride), kept;
        __syncwarp();
        if (j > 0) {
            refs = next;
            fetch_pairs<F, 2 * CHUNKS>(job, stage_address + ((j - 1) & 1) * (STAGE * 16), refs,
                                       lane);
        }
        copy_async_commit();
        if (j > 1)
            next = pair_refs<F, LIST>(job, min(i - 2 * PAIRS_THREADS, last));
        copy_async_wait<1>();
        __syncwarp();
        uint4 *stage = stages + (j & 1) * STAGE + lane;
        /* One product in the code for all five: inlined five times the loop is 50 KB, and the warps wait for
         * instructions. Steps: 0 inverse of d, 1 inverse of the product before it, 2 slope, 3 its square, 4 last product. */
        uint32_t step = 0;
#pragma unroll 1
        do {
            F r = mul(a, b);
            if (step == 0) {
                kept = r;
                F x1 = loaded<F>(stage + X1, ROW), x2 = loaded<F>(stage + X2, ROW);
                b = sub_lazy(x2, x1);
                if (is_special(x1, x2)) {
                    set_one(b);
                    if (i <= last)
                        job.special[atomicAdd(job.special_len, 1u)] = i;
                }
            } else if (step == 1) {
                if (i <= last)
                    acc = r;
                a = kept;
                F y1 = negate_lazy_if(loaded<F>(stage + Y1, ROW), negate1);
                b = sub_lazy(negate_lazy_if(loaded<F>(stage + Y2, ROW), negate2), y1);
            } else if (step == 2 && !shape::SQUARE_APART) {
                kept = a = b = r;
            } else if (step == 2 || step == 3) {
                if (shape::SQUARE_APART) {
                    kept = r;
                    r = sqr(r);
                    step = 3;
                }
                F x1 = loaded<F>(stage + X1, ROW);
                r = chord_x(r, x1, loaded<F>(stage + X2, ROW));
                a = kept;
                b = sub_lazy(x1, r);
                store_strided(stage + X2, ROW, r);
            } else {
                F y1 = negate_lazy_if(loaded<F>(stage + Y1, ROW), negate1);
                store_strided(stage + Y2, ROW, chord_y(r, y1));
            }
            /* Hides from the compiler which step comes next, or it writes the product out five times. */
            asm volatile("add.u32 %0,%0,1;" : "+r"(step));
        } while (step < 5);
        __syncwarp();
        uint4 *out = (uint4 *)(job.results + job.out + i - lane);
        const uint32_t left = job.len - (i - lane);
        UNROLL
        for (int k = 0; k < 2 * CHUNKS; k++) {
            uint32_t id = k * 32 + lane, point = id / (2 * CHUNKS),
                     chunk = id - point * (2 * CHUNKS);
            if (point < left)
                out[id] = stages[(j & 1) * STAGE + (2 * CHUNKS + chunk) * ROW + point];
        }
    }
}

template <class F> DEVICE affine<F> signed_point(const pairs<F> &job, uint32_t ref)
{
    affine<F> p = load_point(point_at(job, ref));

    if ((ref & REF_NEGATIVE) && !is_infinity(p))
        p = negate(p);
    return p;
}

template <class F, bool LIST>
__global__ void __launch_bounds__(128)
    add_special_pairs_kernel(const __grid_constant__ pairs<F> job)
{
    for (uint32_t k = blockIdx.x * 128 + threadIdx.x; k < *job.special_len; k += gridDim.x * 128) {
        uint32_t i = job.special[k];
        uint2 refs = pair_refs<F, LIST>(job, i);
        store_point(job.results + job.out + i,
                    add_complete(signed_point(job, refs.x), signed_point(job, refs.y)));
    }
}

static constexpr uint32_t PAIRS_ROWS = 192, PAIRS_ROWS_MIN = 48;

/* A first wave in unequal pieces, so that the blocks of a multiprocessor are in different phases (one multiplies while
 * another waits for its inversion: 523 to 481 ms for 2^27 points, H200); then PAIRS_ROWS a block; shrinking pieces at the
 * end. Little work goes in one wave. 192 rows: 96, 128 and 384 gave the same; 24 instead of 48 for the least, too. */
static inline pairs_schedule schedule_pairs(uint32_t len, uint32_t multiprocessors,
                                            uint32_t resident)
{
    pairs_schedule s = {};
    const uint32_t units = (len + PAIRS_THREADS - 1) / PAIRS_THREADS,
                   wave = multiprocessors * resident;
    uint32_t row = 0, fixed = 0, rows;
    auto add_segment = [&](uint32_t blocks, uint32_t n) {
        if (!blocks)
            return;
        s.block[s.segments] = s.blocks;
        s.first[s.segments] = row;
        s.rows[s.segments] = n;
        s.segments++;
        s.blocks += blocks;
        row += blocks * n;
    };

    for (rows = PAIRS_ROWS; rows >= PAIRS_ROWS_MIN; rows = rows / 2 / 8 * 8) {
        fixed = wave * (rows / 2) + wave * (rows / 4);
        for (uint32_t k = 1; k <= resident; k++)
            fixed += multiprocessors * (rows * k / resident);
        if (units >= fixed + wave * rows / 2)
            break;
    }
    if (rows < PAIRS_ROWS_MIN) {
        rows = std::max(1u, (units + wave - 1) / wave);
        add_segment((units + rows - 1) / rows, rows);
        return s;
    }
    for (uint32_t k = 1; k <= resident; k++)
        add_segment(multiprocessors, rows * k / resident);
    add_segment((units - fixed) / rows, rows);
    add_segment(wave, rows / 2);
    add_segment(wave, rows / 4);
    const uint32_t tail = std::max(1u, rows / 8);
    if (row < units)
        add_segment((units - row + tail - 1) / tail, tail);
    return s;
}

/* Allows the kernels their shared memory and finds how many blocks stay on a multiprocessor; once for a device, and in each
 * program file that launches them. */
template <class F> static int pairs_prepare(gpu &g, struct errmsg *err)
{
    const int bytes = pairs_shape<F>::SHARED_BYTES;
    int resident = 0;

    CUDA_TRY(cudaFuncSetAttribute(add_pairs_kernel<F, true>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             err);
    CUDA_TRY(cudaFuncSetAttribute(add_pairs_kernel<F, false>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             err);
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, add_pairs_kernel<F, true>,
                                                           PAIRS_THREADS, bytes),
             err);
    if (resident < 1)
        return errmsg_set(err, -ENODEV, "this GPU has not %d bytes of shared memory for a block",
                          bytes);
    g.resident[pairs_shape<F>::GROUP] = (uint32_t)resident;
    return 0;
}

/* Queues the additions of `job` (schedule is filled in here) on `stream`. */
template <class F>
static int add_pairs(const gpu &g, cudaStream_t stream, pairs<F> job, struct errmsg *err)
{
    typedef pairs_shape<F> shape;

    if (job.len == 0)
        return 0;
    job.schedule = schedule_pairs(job.len, g.multiprocessors, g.resident[shape::GROUP]);
    CUDA_TRY(cudaMemsetAsync(job.special_len, 0, sizeof(*job.special_len), stream), err);
    if (job.list) {
        add_pairs_kernel<F, true>
            <<<job.schedule.blocks, PAIRS_THREADS, shape::SHARED_BYTES, stream>>>(job);
        CUDA_TRY(cudaGetLastError(), err);
        add_special_pairs_kernel<F, true><<<g.multiprocessors * 2, 128, 0, stream>>>(job);
    } else {
        add_pairs_kernel<F, false>
            <<<job.schedule.blocks, PAIRS_THREADS, shape::SHARED_BYTES, stream>>>(job);
        CUDA_TRY(cudaGetLastError(), err);
        add_special_pairs_kernel<F, false><<<g.multiprocessors * 2, 128, 0, stream>>>(job);
    }
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}
#endif

#endif
