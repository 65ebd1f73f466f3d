/*
 * A transform of 2^12 and more elements goes over device memory in two or three passes, each of sub-transforms of 2^6 to 2^9
 * elements (three times 2^9 for 2^27), done by rounds of radix 8 in registers with exchanges through shared memory.
 *
 * To reversed order ("dif"): pass 1 transforms the most significant digit, elements n / 2^width apart, and multiplies by w^(f column)
 * for row f from a full table, `between`; pass 2 does the same inside each block of n / 2^width; the last pass is contiguous. To
 * natural order ("dit") is the transposed network with the same tables, last pass first.
 *
 * Factors cost nothing where a table entry is multiplied in anyhow: the plan's factor and the shift's powers of all digits but
 * the last are in `between`; the last digit's are in the last pass's own tables and, for the round that has none, in `tail`.
 *
 * All products are by constants held twice (fr.cuh): 85.6 G/s against 67.1 for Montgomery products. Blocks are small, 128
 * threads and four on a multiprocessor, so that the four warps of a scheduler are in different phases: then the multiplier need
 * not wait for all of them to add. H200, 2^27: 24.9 ms to reversed order, 26.2 to natural. Persistent blocks, larger blocks, more
 * registers, and fusing the last inverse pass with the first coset pass gained nothing.
 *
 * The first `between` of three passes has as many entries as the transform. A small plan has two tables of its square root instead, one
 * for the upper and one for the lower digits of the column, and multiplies twice.
 */
#include "gpu/cuda/ntt.cuh"

#include <algorithm>

static constexpr uint32_t PLAIN_BELOW = 12, WIDTH_MAX = 9;
/* log2 of the elements that a block holds */
static constexpr int BLOCK_LOG2 = 10;

__host__ __device__ constexpr int reverse3(int x)
{
    return (x & 1) << 2 | (x & 2) | x >> 2;
}

/* x with its low `bits` (0 to 3) bits reversed */
__host__ __device__ constexpr int reverse_low(int x, int bits)
{
    return bits == 3 ? reverse3(x) : bits == 2 ? (x & 4) | (x & 1) << 1 | (x >> 1 & 1) : x;
}

/* ---- memory ---- */

DEVICE uint4 load_once(const uint4 *p)
{
    uint4 v;
    asm volatile("ld.global.L1::evict_first.v4.u32 {%0,%1,%2,%3},[%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

DEVICE uint4 load_table(const uint4 *p)
{
    uint4 v;
    asm("ld.global.nc.v4.u32 {%0,%1,%2,%3},[%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p));
    return v;
}

DEVICE void unpack4(uint32_t *limbs, uint4 q)
{
    limbs[0] = q.x;
    limbs[1] = q.y;
    limbs[2] = q.z;
    limbs[3] = q.w;
}

DEVICE uint4 pack4(const uint32_t *limbs)
{
    return make_uint4(limbs[0], limbs[1], limbs[2], limbs[3]);
}

DEVICE fr load_fr(const fr *p)
{
    fr f;

    unpack4(f.v, load_once((const uint4 *)p));
    unpack4(f.v + 4, load_once((const uint4 *)p + 1));
    return f;
}

DEVICE void store_fr(fr *p, const fr &f)
{
    ((uint4 *)p)[0] = pack4(f.v);
    ((uint4 *)p)[1] = pack4(f.v + 4);
}

/* x times the constant whose four pieces are `plane` apart from `p` on */
DEVICE fr mul_table(const fr &x, const uint4 *p, uint32_t plane)
{
    uint32_t w[16];

    UNROLL
    for (int k = 0; k < 4; k++)
        unpack4(w + 4 * k, load_table(p + k * plane));
    return mul_constant(x, w, w + 8);
}

DEVICE void store_constant(uint4 *p, uint32_t plane, const fr &value)
{
    fr_constant c = make_constant(value);

    p[0] = pack4(c.w128);
    p[plane] = pack4(c.w128 + 4);
    p[2 * plane] = pack4(c.w256);
    p[3 * plane] = pack4(c.w256 + 4);
}

/* Where entry i of a `between` table starts: four entries are interleaved, so that four lanes read whole sectors. */
DEVICE uint4 *between_entry(uint4 *table, uint32_t i)
{
    return table + (size_t)(i >> 2) * 16 + (i & 3);
}

DEVICE const uint4 *between_entry(const uint4 *table, uint32_t i)
{
    return table + (size_t)(i >> 2) * 16 + (i & 3);
}

static constexpr uint32_t BETWEEN_PLANE = 4;

/* ---- small transforms in registers, natural order in and out ---- */

/* ptxas interleaves independent products until carries end in general registers (a tenth more instructions). This makes x
 * depend on y for one logic instruction: the word is 0, which the compiler cannot know. */
__constant__ uint32_t opaque_zero;

DEVICE void after(fr &x, const fr &y)
{
    x.v[0] |= y.v[0] & opaque_zero;
}

DEVICE void butterfly(fr &a, fr &b)
{
    fr s = add(a, b);

    b = sub(a, b);
    a = s;
}

DEVICE void swap(fr &a, fr &b)
{
    fr t = a;

    a = b;
    b = t;
}

/* Winograd's: four products and 26 additions, against five products. */
DEVICE void transform8(fr *x, const ntt_radix8 &k)
{
    butterfly(x[0], x[4]);
    butterfly(x[1], x[5]);
    butterfly(x[2], x[6]);
    butterfly(x[3], x[7]);
    /* outputs 0, 2, 4, 6: a transform of four */
    butterfly(x[0], x[2]);
    butterfly(x[1], x[3]);
    x[3] = mul_constant(x[3], k.i);
    butterfly(x[0], x[1]);
    butterfly(x[2], x[3]);
    /* outputs 1, 3, 5, 7 */
    after(x[6], x[3]);
    x[6] = mul_constant(x[6], k.i);
    butterfly(x[4], x[6]);
    butterfly(x[5], x[7]);
    after(x[5], x[6]);
    x[5] = mul_constant(x[5], k.half_sum);
    after(x[7], x[5]);
    x[7] = mul_constant(x[7], k.half_difference);
    butterfly(x[5], x[7]);
    butterfly(x[4], x[5]);
    butterfly(x[6], x[7]);
    swap(x[1], x[4]);
    swap(x[3], x[6]);
}

DEVICE void transform4(fr *x, const ntt_radix8 &k)
{
    butterfly(x[0], x[2]);
    butterfly(x[1], x[3]);
    x[3] = mul_constant(x[3], k.i);
    butterfly(x[0], x[1]);
    butterfly(x[2], x[3]);
    swap(x[1], x[2]);
}

/* Eight elements as 8 / RADIX transforms of RADIX, 1 to 4. */
template <int RADIX> DEVICE void transform_last(fr *x, const ntt_radix8 &k)
{
    if (RADIX == 4) {
        transform4(x, k);
        transform4(x + 4, k);
    }
    if (RADIX == 2) {
        UNROLL
        for (int i = 0; i < 8; i += 2)
            butterfly(x[i], x[i + 1]);
    }
}

/* ---- geometry ---- */

/* A block's columns and a thread's place in them. A sub-transform has rounds of radix 8, 8 and RADIX; a thread holds eight of
 * its elements. CONTIGUOUS: the last pass, whose elements are neighbours. */
template <int WIDTH, bool CONTIGUOUS> struct geometry {
    static constexpr int N = 1 << WIDTH, RADIX = N / 64, RADIX_LOG2 = WIDTH - 6, QUARTER = N / 8;
    static constexpr int COLUMNS_LOG2 = BLOCK_LOG2 - WIDTH, COLUMNS = 1 << COLUMNS_LOG2;
    static constexpr int THREADS = QUARTER * COLUMNS, ELEMENTS = N * COLUMNS;
    static constexpr int SHARED_BYTES = ELEMENTS * (int)sizeof(fr);
    static constexpr int RESIDENT = 512 / THREADS, ROUNDS = RADIX == 8 ? 3 : 2;
    int column, q;        /* q: index among the threads of a column */
    uint32_t base, table; /* first element of the column; the same inside `between` */

    DEVICE geometry(uint32_t stride)
    {
        if (CONTIGUOUS) {
            column = threadIdx.x / QUARTER;
            q = threadIdx.x % QUARTER;
            base = (uint32_t)(blockIdx.x * COLUMNS + column) << WIDTH;
            table = 0;
        } else {
            const uint32_t groups_log2 =
                stride - COLUMNS_LOG2; /* of columns, in one block of the transform */
            const uint32_t high = blockIdx.x >> groups_log2,
                           group = blockIdx.x & ((1u << groups_log2) - 1);
            column = threadIdx.x % COLUMNS;
            q = threadIdx.x / COLUMNS;
            table = (group << COLUMNS_LOG2) + column;
            base = (high << (stride + WIDTH)) + table;
        }
    }

    /* Place in shared memory, swizzled: no bank conflicts in any round. Halves of an element are ELEMENTS apart. */
    static DEVICE int place(int position, int in_column)
    {
        int p = position ^ ((position >> 3) & 7);
        return CONTIGUOUS ? in_column * N + p : p * COLUMNS + in_column;
    }

    DEVICE void store(uint4 *shared, int position, const fr &f) const
    {
        int at = place(position, column);
        shared[at] = pack4(f.v);
        shared[at + ELEMENTS] = pack4(f.v + 4);
    }

    DEVICE fr load(const uint4 *shared, int position) const
    {
        int at = place(position, column);
        fr f;
        unpack4(f.v, shared[at]);
        unpack4(f.v + 4, shared[at + ELEMENTS]);
        return f;
    }

    /* Piece `plane` of table entry i waits where this thread alone reads and writes: four entries in flight. */
    DEVICE uint4 *slot(uint4 *shared, int i, int plane) const
    {
        return shared + (plane & 1) * ELEMENTS + place(8 * q + 2 * (i & 3) + (plane >> 1), column);
    }

    DEVICE void fetch(uint4 *shared, const uint4 *entry, int i) const
    {
        UNROLL
        for (int plane = 0; plane < 4; plane++) {
            uint32_t to = (uint32_t)__cvta_generic_to_shared(slot(shared, i, plane));
            asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(to),
                         "l"(entry + BETWEEN_PLANE * plane)
                         : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    DEVICE fr mul_fetched(uint4 *shared, const fr &x, int i) const
    {
        uint32_t w[16];

        asm volatile("cp.async.wait_group 3;" ::: "memory");
        UNROLL
        for (int plane = 0; plane < 4; plane++)
            unpack4(w + 4 * plane, *slot(shared, i, plane));
        return mul_constant(x, w, w + 8);
    }
};

/* ---- to reversed order ---- */

/* The rounds of radix 8 of a sub-transform. Rolled, so that the code stays in the instruction cache. After the last of three,
 * a contiguous pass with a shift multiplies by `tail`. In the other passes the entries of `between` are asked for when shared
 * memory becomes free, unless it is SPLIT. */
template <class G, bool CONTIGUOUS, bool SPLIT>
DEVICE void rounds_to_reversed(const G &g, fr *x, uint4 *shared, const uint4 *by_position,
                               const uint4 *tail, const uint4 *between, uint32_t first_entry,
                               uint32_t stride, const ntt_radix8 &k)
{
    const int block = g.q / G::RADIX, rest = g.q % G::RADIX;
    int offset = g.q, step = G::QUARTER;
    const uint4 *factors = by_position + g.q;
    uint32_t row = 4 * G::QUARTER, plane = G::QUARTER;

#pragma unroll 1
    for (int round = 0; round < G::ROUNDS; round++) {
        if (!CONTIGUOUS && !SPLIT && G::ROUNDS == 3 && round == 2) {
            UNROLL
            for (int i = 0; i < 4; i++)
                g.fetch(shared, between_entry(between, first_entry + ((uint32_t)i << stride)), i);
        }
        transform8(x, k);
        if (round < 2 || (CONTIGUOUS && tail)) {
            UNROLL
            for (int i = 1; i < 8; i++) {
                if (i > 1)
                    after(x[i], x[i - 1]);
                x[i] = mul_table(x[i], factors + reverse3(i) * row, plane);
            }
        }
        if (round == 2)
            break;
        UNROLL
        for (int i = 0; i < 8; i++)
            g.store(shared, offset + step * reverse3(i), x[i]);
        __syncthreads();
        if (round == 0) {
            offset = block * G::QUARTER + rest;
            step = G::RADIX;
            factors = by_position + 32 * G::QUARTER + rest;
        } else {
            offset = 8 * g.q;
            step = 1;
            factors = tail + 32; /* the powers in bit-reversed order */
            row = 4;
            plane = 1;
        }
        UNROLL
        for (int j = 0; j < 8; j++)
            x[j] = g.load(shared, offset + step * j);
    }
}

struct pass_arguments {
    const fr *in;
    fr *out;
    const fr *subtract;    /* last pass to reversed order: is taken off the result, or NULL */
    uint32_t stride;       /* log2; not of the contiguous pass */
    const uint4 *factors;  /* by_position or by_index */
    const uint4 *between;  /* NULL where no pass follows */
    uint32_t between_mask; /* entries - 1 */
    /* Where it is split: `between` is for the upper digits of the column, and this for the lower ones, split_log2 bits of
     * column_log2. */
    const uint4 *between_low;
    uint32_t split_log2, column_log2;
    const uint4 *tail;     /* NULL without a shift */
    ntt_radix8 radix8;
};

/* The factors of a row and a column from the two tables. */
DEVICE fr mul_split(const fr &x, const pass_arguments &a, uint32_t row, uint32_t column)
{
    const uint32_t high = (row << (a.column_log2 - a.split_log2)) + (column >> a.split_log2),
                   low = (row << a.split_log2) + (column & ((1u << a.split_log2) - 1));

    return mul_table(mul_table(x, between_entry(a.between, high), BETWEEN_PLANE),
                     between_entry(a.between_low, low), BETWEEN_PLANE);
}

template <int WIDTH, bool CONTIGUOUS, bool SPLIT>
__global__ void __launch_bounds__(geometry<WIDTH, CONTIGUOUS>::THREADS,
                                  geometry<WIDTH, CONTIGUOUS>::RESIDENT)
    pass_to_reversed_kernel(const __grid_constant__ pass_arguments a)
{
    typedef geometry<WIDTH, CONTIGUOUS> G;
    extern __shared__ uint4 shared[];
    const uint32_t stride = CONTIGUOUS ? 0 : a.stride;
    const G g(stride);
    const uint32_t first_entry = g.table + ((uint32_t)(8 * g.q) << stride);
    fr x[8];

    UNROLL
    for (int j = 0; j < 8; j++)
        x[j] = load_fr(a.in + g.base + ((uint32_t)(g.q + G::QUARTER * j) << stride));
    rounds_to_reversed<G, CONTIGUOUS, SPLIT>(g, x, shared, a.factors, a.tail, a.between,
                                             first_entry, stride, a.radix8);
    if (G::ROUNDS == 2) {
        if (!CONTIGUOUS && !SPLIT) {
            UNROLL
            for (int i = 0; i < 4; i++)
                g.fetch(shared, between_entry(a.between, first_entry + ((uint32_t)i << stride)), i);
        }
        transform_last<G::RADIX>(x, a.radix8);
    }
    const uint32_t first = g.base + ((uint32_t)(8 * g.q) << stride);
    UNROLL
    for (int i = 0; i < 8; i++) {
        const int index = i & (G::RADIX - 1), k = (i - index) + reverse_low(index, G::RADIX_LOG2);
        const int power = k & (G::RADIX - 1);
        if (SPLIT) {
            x[k] = mul_split(x[k], a, (uint32_t)(8 * g.q + i), g.table);
            store_fr(a.out + first + ((uint32_t)i << stride), x[k]);
        } else if (!CONTIGUOUS) {
            x[k] = g.mul_fetched(shared, x[k], i);
            if (i < 4)
                g.fetch(shared,
                        between_entry(a.between, first_entry + ((uint32_t)(i + 4) << stride)), i);
            else /* keeps the count of pending groups */
                asm volatile("cp.async.commit_group;" ::: "memory");
            store_fr(a.out + first + ((uint32_t)i << stride), x[k]);
        } else {
            if (G::ROUNDS == 2 && power && a.tail)
                x[k] = mul_table(x[k], a.tail + 4 * power, 1);
            g.store(shared, 8 * g.q + i, x[k]);
        }
    }
    if (!CONTIGUOUS)
        return;
    __syncthreads();
    const uint32_t block_first = (uint32_t)(blockIdx.x * G::COLUMNS) << WIDTH;
    UNROLL
    for (int i = 0; i < 8; i++) {
        const int e = threadIdx.x + G::THREADS * i, at = G::place(e % G::N, e / G::N);
        fr f;
        unpack4(f.v, shared[at]);
        unpack4(f.v + 4, shared[at + G::ELEMENTS]);
        if (a.subtract)
            f = sub(f, load_fr(a.subtract + block_first + e));
        store_fr(a.out + block_first + e, canonical(f));
    }
}

/* ---- to natural order ---- */

/* The entries of `between` that this thread will use: neighbouring lanes share sectors, each asks for two of four planes. */
DEVICE void prefetch_between(const uint4 *entry, uint32_t row)
{
    const uint4 *p = entry - (threadIdx.x & 1) + (threadIdx.x & 1) * 2 * BETWEEN_PLANE;

    UNROLL
    for (int k = 0; k < 8; k++) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(p + k * row));
        asm volatile("prefetch.global.L2 [%0];" ::"l"(p + k * row + BETWEEN_PLANE));
    }
}

/* The rounds of radix 8, and as a round of their own the products by `entry` (row k at entry + k * row) on what they give; where
 * `between` is SPLIT, as another those by `low`, which is the same for all rows. */
template <class G, bool SPLIT>
DEVICE void rounds_to_natural(const G &g, fr *x, uint4 *shared, const uint4 *by_index,
                              const uint4 *tail, const uint4 *entry, uint32_t entry_row,
                              const uint4 *low, const ntt_radix8 &k)
{
    const int block = g.q / G::RADIX, rest = g.q % G::RADIX;
    const uint4 *factors = tail;
    uint32_t row = 4, plane = 1;
    int offset = 8 * g.q, step = 1;

    if (G::ROUNDS == 2) {
        offset = block * G::QUARTER + rest;
        step = G::RADIX;
        factors = by_index + 32 * G::QUARTER + rest;
        row = 4 * G::QUARTER;
        plane = G::QUARTER;
    }
#pragma unroll 1
    for (int round = 3 - G::ROUNDS;; round++) {
        if (round == 1 || round == 2) {
            __syncthreads();
            UNROLL
            for (int j = 0; j < 8; j++)
                x[j] = g.load(shared, offset + step * reverse3(j));
        }
        if (round > 0 || tail) {
            UNROLL
            for (int i = 1; i < 8; i++) {
                if (i > 1)
                    after(x[i], x[i - 1]);
                x[i] = mul_table(x[i], factors + i * row, plane);
            }
        }
        if (round >= 3) {
            x[0] = mul_table(x[0], factors, plane);
            if (!SPLIT || round == 4)
                return;
            factors = low;
            row = 0;
            continue;
        }
        if (round == 2 && entry && !SPLIT)
            prefetch_between(entry, entry_row);
        transform8(x, k);
        if (round < 2) {
            UNROLL
            for (int i = 0; i < 8; i++)
                g.store(shared, offset + step * i, x[i]);
            row = 4 * G::QUARTER;
            plane = G::QUARTER;
            if (round == 0) {
                offset = block * G::QUARTER + rest;
                step = G::RADIX;
                factors = by_index + 32 * G::QUARTER + rest;
            } else {
                offset = g.q;
                step = G::QUARTER;
                factors = by_index + g.q;
            }
        } else {
            if (!entry)
                return;
            factors = entry;
            row = entry_row;
            plane = BETWEEN_PLANE;
        }
    }
}

template <int WIDTH, bool CONTIGUOUS, bool SPLIT>
__global__ void __launch_bounds__(geometry<WIDTH, CONTIGUOUS>::THREADS,
                                  geometry<WIDTH, CONTIGUOUS>::RESIDENT)
    pass_to_natural_kernel(const __grid_constant__ pass_arguments a)
{
    typedef geometry<WIDTH, CONTIGUOUS> G;
    extern __shared__ uint4 shared[];
    const uint32_t stride = CONTIGUOUS ? 0 : a.stride;
    const G g(stride);
    fr x[8];

    if (CONTIGUOUS) {
        const uint32_t block_first = (uint32_t)(blockIdx.x * G::COLUMNS) << WIDTH;
        UNROLL
        for (int i = 0; i < 8; i++) {
            const int e = threadIdx.x + G::THREADS * i, at = G::place(e % G::N, e / G::N);
            fr f = load_fr(a.in + block_first + e);
            shared[at] = pack4(f.v);
            shared[at + G::ELEMENTS] = pack4(f.v + 4);
        }
        __syncthreads();
    }
    UNROLL
    for (int i = 0; i < 8; i++) {
        const int index = i & (G::RADIX - 1), k = (i - index) + reverse_low(index, G::RADIX_LOG2);
        x[k] = CONTIGUOUS ? g.load(shared, 8 * g.q + i)
                          : load_fr(a.in + g.base + ((uint32_t)(8 * g.q + i) << stride));
    }
    if (G::ROUNDS == 2) {
        UNROLL
        for (int k = 0; k < 8; k++)
            if (CONTIGUOUS && a.tail && (k & (G::RADIX - 1)))
                x[k] = mul_table(x[k], a.tail + 4 * (k & (G::RADIX - 1)), 1);
        transform_last<G::RADIX>(x, a.radix8);
        UNROLL
        for (int i = 0; i < 8; i++)
            g.store(shared, 8 * g.q + i, x[i]);
    }
    const uint4 *entry = nullptr, *low = nullptr;
    const uint32_t at = (g.base + ((uint32_t)g.q << stride)) & a.between_mask;
    uint32_t entry_row = (uint32_t)G::QUARTER << (stride + 2);
    if (SPLIT) { /* a column's upper digits are this pass's: at is row, q, and what is below the stride */
        entry = between_entry(a.between, at >> stride);
        entry_row = (uint32_t)G::QUARTER << 2;
        low = between_entry(a.between_low, ((at >> a.column_log2) << stride) + g.table);
    } else if (a.between) {
        entry = between_entry(a.between, at);
    }
    rounds_to_natural<G, SPLIT>(g, x, shared, a.factors, CONTIGUOUS ? a.tail : nullptr, entry,
                                entry_row, low, a.radix8);
    UNROLL
    for (int k = 0; k < 8; k++)
        store_fr(a.out + g.base + ((uint32_t)(g.q + G::QUARTER * k) << stride),
                 a.between ? x[k] : canonical(x[k]));
}

/* ---- tables ---- */

/* Two rounds' factors, eight rows of four planes of QUARTER: w^(q k) s^k, then w^(8 q k) s^(8 k), w of order 2^width. */
__global__ void pass_table_kernel(uint4 *table, uint32_t width, fr w, fr shift, bool by_position)
{
    const uint32_t quarter = 1u << (width - 3), i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t round = i / (8 * quarter), k = i / quarter & 7, q = i % quarter;
    const uint32_t each = round ? 8 : 1;

    if (round > 1)
        return;
    fr value = mul(power(w, (uint64_t)each * q * k), power(shift, each * k));
    store_constant(table + (size_t)(round * 8 + (by_position ? reverse3(k) : k)) * 4 * quarter + q,
                   quarter, value);
}

/* Powers of s^64: eight in natural order, then in bit-reversed order. */
__global__ void tail_table_kernel(uint4 *table, fr shift64)
{
    const uint32_t i = threadIdx.x;

    store_constant(table + i * 4, 1, power(shift64, i & 8 ? reverse3(i & 7) : i));
}

/* out[i] = base^(each * i) * factor */
__global__ void powers_kernel(fr *out, fr base, uint32_t each, fr factor, uint32_t len)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < len)
        out[i] = mul(power(base, (uint64_t)each * i), factor);
}

static constexpr uint32_t POWERS_LOG2 = 14, POWERS = 1u << POWERS_LOG2;

/* Entry row << stride | column: w^(f each column) s^f factor for f = the row's bits reversed. w's powers come in two tables. */
__global__ void between_table_kernel(uint4 *table, uint32_t width, uint32_t stride, uint32_t each,
                                     const fr *giant, const fr *small, const fr *shifts)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >> (width + stride))
        return;
    const uint32_t f = __brev(i >> stride) >> (32 - width),
                   e = f * each * (i & ((1u << stride) - 1));
    fr value = mul(mul(giant[e >> POWERS_LOG2], small[e & (POWERS - 1)]), shifts[f]);
    store_constant(between_entry(table, i), BETWEEN_PLANE, value);
}

fr ntt_root(uint32_t log2_len)
{
    /* 7^((r - 1) / 2^32), c2-formats 6.2 */
    fr root = {{0x5f0e466a, 0xb9b58d8c, 0x1819d7ec, 0x5b1b4c80, 0x52a31e64, 0x0af53ae3, 0x19e9b27b,
                0x5bf3adda}};

    return power(root, 1ull << (32 - log2_len));
}

static ntt_radix8 make_radix8(const fr &w8)
{
    const fr w8_2 = mul(w8, w8), w8_3 = mul(w8_2, w8), half = inverse(fr_from_u32(2));

    return {make_constant(w8_2), make_constant(mul(add(w8, w8_3), half)),
            make_constant(mul(sub(w8, w8_3), half))};
}

/* Temporary tables of powers from which a `between` table is made. */
struct power_tables {
    device_buffer<fr> giant, small, shifts;
};

/* Factors of rows and columns of 2^stride, `each` apart. */
static int fill_between(gpu &g, device_buffer<uint4> &table, uint32_t width, uint32_t stride,
                        uint32_t each, const fr &shift, const fr &factor, power_tables &t,
                        struct errmsg *err)
{
    const uint32_t entries = 1u << (width + stride), rows = 1u << width;
    cudaStream_t stream = g.main.handle;

    TRY(table.allocate((size_t)entries * 4, err));
    powers_kernel<<<blocks_for(rows, 256), 256, 0, stream>>>(t.shifts.ptr, shift, 1, factor, rows);
    between_table_kernel<<<blocks_for(entries, 256), 256, 0, stream>>>(
        table.ptr, width, stride, each, t.giant.ptr, t.small.ptr, t.shifts.ptr);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

static int make_between(gpu &g, ntt_plan &p, uint32_t pass, const fr &w, const fr &shift,
                        const fr &factor, power_tables &t, struct errmsg *err)
{
    const uint32_t width = p.width[pass], stride = p.stride[pass];
    cudaStream_t stream = g.main.handle;

    powers_kernel<<<POWERS / 256, 256, 0, stream>>>(t.giant.ptr, w, POWERS, fr_one(), POWERS);
    powers_kernel<<<POWERS / 256, 256, 0, stream>>>(t.small.ptr, w, 1, fr_one(), POWERS);
    if (!p.small || pass > 0 || p.passes < 3)
        return fill_between(g, p.between[pass], width, stride, 1, shift, factor, t, err);
    const uint32_t low = p.stride[1];
    TRY(fill_between(g, p.between[0], width, stride - low, 1u << low, shift, factor, t, err));
    return fill_between(g, p.between_low, width, low, 1, fr_one(), fr_one(), t, err);
}

static int make_pass_tables(gpu &g, ntt_plan &p, uint32_t pass, const fr &w, const fr &shift,
                            struct errmsg *err)
{
    const uint32_t entries = 2u << p.width[pass], blocks = entries / 64;
    cudaStream_t stream = g.main.handle;

    TRY(p.by_position[pass].allocate((size_t)entries * 4, err));
    TRY(p.by_index[pass].allocate((size_t)entries * 4, err));
    pass_table_kernel<<<blocks, 64, 0, stream>>>(p.by_position[pass].ptr, p.width[pass], w, shift,
                                                 true);
    pass_table_kernel<<<blocks, 64, 0, stream>>>(p.by_index[pass].ptr, p.width[pass], w, shift,
                                                 false);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

/* Two passes where their tables are small, else three; widths as even as can be. */
static void split_passes(ntt_plan &p)
{
    uint32_t left = p.log2_len;

    p.passes = left <= 2 * WIDTH_MAX ? 2 : 3;
    for (uint32_t i = 0; i < p.passes; i++) {
        p.width[i] = (left + p.passes - i - 1) / (p.passes - i);
        left -= p.width[i];
        p.stride[i] = left;
    }
}

size_t ntt_plan_bytes(uint32_t log2_len, bool small)
{
    const size_t entry = 4 * sizeof(uint4), pass_tables = 4 * NTT_PASSES * (entry << WIDTH_MAX);

    if (log2_len < PLAIN_BELOW)
        return sizeof(fr) << log2_len;
    if (small && log2_len > 2 * WIDTH_MAX) /* three tables of two digits each */
        log2_len = 2 * WIDTH_MAX + 2;
    return (entry << log2_len) + (entry << 2 * WIDTH_MAX) + pass_tables;
}

int ntt_plan_create(gpu &g, uint32_t log2_len, bool inverse_root, const fr &shift, const fr &factor,
                    bool small, ntt_plan *out, struct errmsg *err)
{
    ntt_plan &p = *out;
    power_tables powers;

    if (log2_len < 1 || log2_len > NTT_LOG2_MAX)
        return errmsg_set(err, -EINVAL, "transforms go from 2^1 to 2^%u, not 2^%u", NTT_LOG2_MAX,
                          log2_len);
    p.release();
    p.log2_len = log2_len;
    p.passes = 0;
    p.root = ntt_root(log2_len);
    if (inverse_root)
        p.root = inverse(p.root);
    p.shift = shift;
    p.factor = factor;
    p.small = small;
    p.shifted = !equal(canonical(shift), fr_one());
    if (log2_len < PLAIN_BELOW)
        return p.room.allocate((size_t)1 << log2_len, err);

    split_passes(p);
    p.radix8 = make_radix8(power(p.root, 1ull << (log2_len - 3)));
    TRY(powers.giant.allocate(POWERS, err));
    TRY(powers.small.allocate(POWERS, err));
    TRY(powers.shifts.allocate(1u << WIDTH_MAX, err));
    uint32_t done = 0;
    for (uint32_t i = 0; i < p.passes; i++) {
        const bool last = i + 1 == p.passes;
        const fr digit_shift = power(shift, 1ull << done), w = power(p.root, 1ull << done);
        TRY(make_pass_tables(g, p, i, power(p.root, 1ull << (log2_len - p.width[i])),
                             last ? digit_shift : fr_one(), err));
        if (!last)
            TRY(make_between(g, p, i, w, digit_shift, i + 2 == p.passes ? factor : fr_one(), powers,
                             err));
        else if (p.shifted) {
            TRY(p.tail.allocate(64, err));
            tail_table_kernel<<<1, 16, 0, g.main.handle>>>(p.tail.ptr, power(digit_shift, 64));
            CUDA_TRY(cudaGetLastError(), err);
        }
        done += p.width[i];
    }
    CUDA_TRY(cudaStreamSynchronize(g.main.handle), err); /* before `powers` goes */
    return 0;
}

void ntt_plan::release()
{
    for (uint32_t i = 0; i < NTT_PASSES; i++) {
        by_position[i].reset();
        by_index[i].reset();
    }
    for (device_buffer<uint4> &b : between)
        b.reset();
    between_low.reset();
    tail.reset();
    room.reset();
    log2_len = 0;
}

/* ---- launching ---- */

enum direction { TO_REVERSED, TO_NATURAL };

template <int WIDTH, bool CONTIGUOUS, bool SPLIT>
static int launch(gpu &g, const ntt_plan &p, enum direction direction, const pass_arguments &a,
                  struct errmsg *err)
{
    typedef geometry<WIDTH, CONTIGUOUS> G;
    const uint32_t blocks = (uint32_t)((1ull << p.log2_len) / G::ELEMENTS);
    cudaStream_t stream = g.main.handle;

    if (direction == TO_REVERSED)
        pass_to_reversed_kernel<WIDTH, CONTIGUOUS, SPLIT>
            <<<blocks, G::THREADS, G::SHARED_BYTES, stream>>>(a);
    else
        pass_to_natural_kernel<WIDTH, CONTIGUOUS, SPLIT>
            <<<blocks, G::THREADS, G::SHARED_BYTES, stream>>>(a);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

template <int WIDTH>
static int launch_width(gpu &g, const ntt_plan &p, enum direction direction, uint32_t pass,
                        const pass_arguments &a, struct errmsg *err)
{
    if (pass + 1 == p.passes)
        return launch<WIDTH, true, false>(g, p, direction, a, err);
    if (a.between_low)
        return launch<WIDTH, false, true>(g, p, direction, a, err);
    return launch<WIDTH, false, false>(g, p, direction, a, err);
}

static int run_pass(gpu &g, const ntt_plan &p, enum direction direction, uint32_t pass,
                    const fr *in, fr *out, const fr *subtract, struct errmsg *err)
{
    const bool last = pass + 1 == p.passes;
    pass_arguments a = {};

    a.in = in;
    a.out = out;
    a.subtract = subtract;
    a.stride = p.stride[pass];
    a.tail = last ? p.tail.ptr : nullptr;
    a.radix8 = p.radix8;
    if (p.between_low.ptr && pass == (direction == TO_REVERSED ? 0 : 1)) {
        a.between_low = p.between_low.ptr;
        a.split_log2 = p.stride[1];
        a.column_log2 = p.stride[0];
    }
    if (direction == TO_REVERSED) {
        a.factors = p.by_position[pass].ptr;
        a.between = last ? nullptr : p.between[pass].ptr;
    } else {
        a.factors = p.by_index[pass].ptr;
        if (pass > 0) {
            a.between = p.between[pass - 1].ptr;
            a.between_mask = (1u << (p.stride[pass - 1] + p.width[pass - 1])) - 1;
        }
    }
    switch (p.width[pass]) {
    case 6:
        return launch_width<6>(g, p, direction, pass, a, err);
    case 7:
        return launch_width<7>(g, p, direction, pass, a, err);
    case 8:
        return launch_width<8>(g, p, direction, pass, a, err);
    default:
        return launch_width<9>(g, p, direction, pass, a, err);
    }
}

__global__ void subtract_kernel(fr *out, const fr *sub_from_it, uint32_t len)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < len)
        store_fr(out + i, canonical(sub(load_fr(out + i), load_fr(sub_from_it + i))));
}

int ntt_to_reversed_minus(gpu &g, const ntt_plan &p, const fr *in, fr *out, const fr *subtract,
                          struct errmsg *err)
{
    if (p.passes == 0) {
        TRY(ntt_plain_to_reversed(g, p, in, out, err));
        if (!subtract)
            return 0;
        subtract_kernel<<<blocks_for(1u << p.log2_len, 256), 256, 0, g.main.handle>>>(
            out, subtract, 1u << p.log2_len);
        CUDA_TRY(cudaGetLastError(), err);
        return 0;
    }
    for (uint32_t pass = 0; pass < p.passes; pass++)
        TRY(run_pass(g, p, TO_REVERSED, pass, pass ? out : in, out,
                     pass + 1 == p.passes ? subtract : nullptr, err));
    return 0;
}

int ntt_to_reversed(gpu &g, const ntt_plan &p, const fr *in, fr *out, struct errmsg *err)
{
    return ntt_to_reversed_minus(g, p, in, out, nullptr, err);
}

int ntt_to_natural(gpu &g, const ntt_plan &p, const fr *in, fr *out, struct errmsg *err)
{
    if (p.passes == 0)
        return ntt_plain_to_natural(g, p, in, out, err);
    for (uint32_t pass = p.passes; pass-- > 0;)
        TRY(run_pass(g, p, TO_NATURAL, pass, pass + 1 == p.passes ? in : out, out, nullptr, err));
    return 0;
}

/* ---- plain transforms ---- */

__global__ void reverse_kernel(const fr *in, fr *out, uint32_t log2_len)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >> log2_len == 0)
        store_fr(out + i, load_fr(in + (__brev(i) >> (32 - log2_len))));
}

/* Level by level from neighbours on: natural order out of reversed order. */
__global__ void level_kernel(fr *v, uint32_t log2_len, uint32_t level, fr root)
{
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, half = 1u << level;

    if (t >> (log2_len - 1))
        return;
    const uint32_t k = t & (half - 1), i = (t - k) * 2 + k;
    fr a = load_fr(v + i),
       b = mul(load_fr(v + i + half), power(root, (uint64_t)k << (log2_len - 1 - level)));
    butterfly(a, b);
    store_fr(v + i, canonical(a));
    store_fr(v + i + half, canonical(b));
}

__global__ void scale_kernel(fr *v, uint32_t log2_len, fr shift, fr factor, bool reversed)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >> log2_len)
        return;
    const uint32_t k = reversed ? __brev(i) >> (32 - log2_len) : i;
    store_fr(v + i, canonical(mul(load_fr(v + i), mul(power(shift, k), factor))));
}

static int plain_levels(gpu &g, const ntt_plan &p, fr *v, struct errmsg *err)
{
    for (uint32_t level = 0; level < p.log2_len; level++)
        level_kernel<<<blocks_for(1u << (p.log2_len - 1), 256), 256, 0, g.main.handle>>>(
            v, p.log2_len, level, p.root);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

static int plain_scale(gpu &g, const ntt_plan &p, fr *v, bool reversed, struct errmsg *err)
{
    scale_kernel<<<blocks_for(1u << p.log2_len, 256), 256, 0, g.main.handle>>>(
        v, p.log2_len, p.shift, p.factor, reversed);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

int ntt_plain_to_reversed(gpu &g, const ntt_plan &p, const fr *in, fr *out, struct errmsg *err)
{
    TRY(ntt_reverse(g, p.log2_len, in, p.room.ptr, err));
    TRY(plain_levels(g, p, p.room.ptr, err));
    TRY(plain_scale(g, p, p.room.ptr, false, err));
    return ntt_reverse(g, p.log2_len, p.room.ptr, out, err);
}

int ntt_plain_to_natural(gpu &g, const ntt_plan &p, const fr *in, fr *out, struct errmsg *err)
{
    if (in != out)
        CUDA_TRY(cudaMemcpyAsync(out, in, sizeof(fr) << p.log2_len, cudaMemcpyDeviceToDevice,
                                 g.main.handle),
                 err);
    TRY(plain_scale(g, p, out, true, err));
    return plain_levels(g, p, out, err);
}

int ntt_reverse(gpu &g, uint32_t log2_len, const fr *in, fr *out, struct errmsg *err)
{
    reverse_kernel<<<blocks_for(1u << log2_len, 256), 256, 0, g.main.handle>>>(in, out, log2_len);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

__global__ void multiply_kernel(const fr *a, const fr *b, fr *out, size_t len)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < len)
        store_fr(out + i, canonical(mul(load_fr(a + i), load_fr(b + i))));
}

int ntt_multiply(gpu &g, size_t len, const fr *a, const fr *b, fr *out, struct errmsg *err)
{
    multiply_kernel<<<blocks_for(len, 256), 256, 0, g.main.handle>>>(a, b, out, len);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}
