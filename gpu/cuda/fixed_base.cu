/*
 * A row of the table grows by doubling: multiples m+1 .. 2m are multiple m plus multiples 1 .. m. Sums of a piece go to and fro
 * between two places, because an addition may not write over what it reads.
 */
#include "gpu/cuda/fixed_base.cuh"

/* Products at a time: 2.5 GB of room in G1. Fewer would not fill the chip with each window's additions. */
static constexpr uint32_t PIECE = 1u << 22;
static constexpr uint32_t THREADS = 256;

/* ---- the table ---- */

static void power_bases(g1_affine_t out[FIXED_WINDOWS])
{
    g1_t p = *blst_p1_generator();

    for (uint32_t w = 0; w < FIXED_WINDOWS; w++) {
        blst_p1_to_affine(&out[w], &p);
        for (uint32_t i = 0; i < FIXED_BITS; i++)
            blst_p1_double(&p, &p);
    }
}

static void power_bases(g2_affine_t out[FIXED_WINDOWS])
{
    g2_t p = *blst_p2_generator();

    for (uint32_t w = 0; w < FIXED_WINDOWS; w++) {
        blst_p2_to_affine(&out[w], &p);
        for (uint32_t i = 0; i < FIXED_BITS; i++)
            blst_p2_double(&p, &p);
    }
}

__global__ void row_pairs_kernel(uint2 *list, uint32_t row, uint32_t known)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i < known)
        list[i] = make_uint2((row + known) | REF_RESULT, (row + 1 + i) | REF_RESULT);
}

template <class F> static pairs<F> job_of(const fixed_base<F> &b)
{
    pairs<F> j = {};

    j.list = b.list.ptr;
    j.prefix = b.prefix.ptr;
    j.prefix_stride = b.list.len;
    j.special = b.special.ptr;
    j.special_len = b.special.ptr + b.list.len;
    return j;
}

template <class F> static int fill_row(gpu &g, fixed_base<F> &b, uint32_t w, struct errmsg *err)
{
    const uint32_t row = w * FIXED_ROW;
    pairs<F> j = job_of(b);

    j.results = b.table.ptr;
    for (uint32_t known = 1; known < FIXED_ROW - 1; known *= 2) {
        row_pairs_kernel<<<blocks_for(known, THREADS), THREADS, 0, g.main.handle>>>(b.list.ptr, row,
                                                                                    known);
        CUDA_TRY(cudaGetLastError(), err);
        j.len = known;
        j.out = row + known + 1;
        TRY(queue_pairs<F>(g, g.main.handle, j, err));
    }
    return 0;
}

template <class F> size_t fixed_base<F>::bytes()
{
    return ((size_t)FIXED_WINDOWS * FIXED_ROW + 2 * (size_t)PIECE) * sizeof(affine<F>) +
           PIECE * (sizeof(fr) + (FIXED_WINDOWS + 1) * sizeof(uint32_t) + sizeof(uint2)) +
           pairs_prefix_bytes<F>(PIECE) + sizeof(uint32_t);
}

template <class F> int fixed_base<F>::create(gpu &g, struct errmsg *err)
{
    typename host_group<F>::affine_point bases[FIXED_WINDOWS];

    power_bases(bases);
    TRY(table.allocate((size_t)FIXED_WINDOWS * FIXED_ROW, err));
    TRY(work.allocate(2 * (size_t)PIECE, err));
    TRY(scalars.allocate(PIECE, err));
    TRY(refs.allocate((size_t)FIXED_WINDOWS * PIECE, err));
    TRY(list.allocate(PIECE, err));
    TRY(prefix.allocate(pairs_prefix_bytes<F>(PIECE) / sizeof(uint4), err));
    TRY(special.allocate((size_t)PIECE + 1, err));
    CUDA_TRY(cudaMemsetAsync(table.ptr, 0, table.len * sizeof(affine<F>), g.main.handle), err);
    for (uint32_t w = 0; w < FIXED_WINDOWS; w++)
        CUDA_TRY(cudaMemcpyAsync(table.ptr + w * FIXED_ROW + 1, bases + w, sizeof(affine<F>),
                                 cudaMemcpyHostToDevice, g.main.handle),
                 err);
    for (uint32_t w = 0; w < FIXED_WINDOWS; w++)
        TRY(fill_row(g, *this, w, err));
    CUDA_TRY(cudaStreamSynchronize(g.main.handle), err); /* `bases` is ours */
    return 0;
}

/* ---- products ---- */

/* refs[window][i] */
__global__ void __launch_bounds__(THREADS)
    references_kernel(const fr *scalars, uint32_t len, uint32_t *refs)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    uint32_t own[FIXED_WINDOWS];

    if (i >= len)
        return;
    fixed_references(to_integer(scalars[i]), own);
    UNROLL
    for (uint32_t w = 0; w < FIXED_WINDOWS; w++)
        refs[(size_t)w * PIECE + i] = own[w];
}

/* The sums so far, from `sums` on, and a window's multiples; of the first two windows both are multiples. */
__global__ void window_pairs_kernel(uint2 *list, uint32_t len, const uint32_t *refs,
                                    uint32_t window, uint32_t sums)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i < len)
        list[i] = make_uint2(window == 1 ? refs[i] : (sums + i) | REF_RESULT,
                             refs[(size_t)window * PIECE + i]);
}

template <class F>
static int multiply_piece(gpu &g, fixed_base<F> &b, uint32_t len, affine<F> *out,
                          struct errmsg *err)
{
    const uint32_t blocks = blocks_for(len, THREADS);
    pairs<F> j = job_of(b);

    references_kernel<<<blocks, THREADS, 0, g.main.handle>>>(b.scalars.ptr, len, b.refs.ptr);
    CUDA_TRY(cudaGetLastError(), err);
    j.inputs = b.table.ptr;
    j.results = b.work.ptr;
    j.len = len;
    for (uint32_t w = 1; w < FIXED_WINDOWS; w++) {
        const uint32_t from = j.out;
        j.out = w % 2 ? 0 : PIECE;
        window_pairs_kernel<<<blocks, THREADS, 0, g.main.handle>>>(b.list.ptr, len, b.refs.ptr, w,
                                                                   from);
        CUDA_TRY(cudaGetLastError(), err);
        TRY(queue_pairs<F>(g, g.main.handle, j, err));
    }
    CUDA_TRY(cudaMemcpyAsync(out, b.work.ptr + j.out, len * sizeof(*out), cudaMemcpyDeviceToDevice,
                             g.main.handle),
             err);
    return 0;
}

template <class F>
int fixed_base<F>::multiply(gpu &g, const fixed_scalars &s, uint32_t len, affine<F> *out,
                            struct errmsg *err)
{
    for (uint32_t first = 0; first < len; first += PIECE) {
        const uint32_t n = std::min(PIECE, len - first);
        TRY(s.fill(s.ctx, scalars.ptr, first, n, g.main.handle, err));
        TRY(multiply_piece(g, *this, n, out + first, err));
    }
    return 0;
}

template struct fixed_base<fp>;
template struct fixed_base<fp2>;
