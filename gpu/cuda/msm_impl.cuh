/*
 * The body of msm_g1.cu and msm_g2.cu.
 *
 * An MSM goes window group by window group. The main stream adds pairs, round after round, until a bucket has one point, and
 * copies that to the bucket array; meanwhile the side stream sorts and lists the next group.
 *
 * The integration, sum over j of (j + 1) * bucket[j], sees the buckets of a window as blocks of 2^m rows of 2^m and makes row sums
 * and column sums by regular additions with the same kernel; then does the same with those sums; so that a few thousand points go
 * to the host, which does what weights are left and the doublings between windows.
 */
#ifndef GPU_CUDA_MSM_IMPL_CUH
#define GPU_CUDA_MSM_IMPL_CUH

#include "gpu/cuda/add_pairs.cuh"
#include "gpu/cuda/msm.cuh"
#include "gpu/cuda/msm_lists.cuh"

/* From here on two streams share the chip: rounds of fewer additions do not fill it (2^19 to 2^23 gave the same, H200). */
static constexpr uint32_t FOLD_TOGETHER = 1u << 21;
/* A sum of points ends on the host when so few are left: a launch costs what 200 additions cost there. */
static constexpr uint32_t SUM_ON_HOST = 256;

/* ---- the host's share, on blst ---- */

static inline void group_add(g1_t *r, const g1_t *p)
{
    blst_p1_add_or_double(r, r, p);
}

static inline void group_add(g1_t *r, const g1_affine_t *p)
{
    if (!g1_affine_is_infinity(p))
        blst_p1_add_or_double_affine(r, r, p);
}

static inline void group_add(g2_t *r, const g2_t *p)
{
    blst_p2_add_or_double(r, r, p);
}

static inline void group_add(g2_t *r, const g2_affine_t *p)
{
    if (!g2_affine_is_infinity(p))
        blst_p2_add_or_double_affine(r, r, p);
}

static inline void group_double(g1_t *p, uint32_t times)
{
    while (times-- > 0)
        blst_p1_double(p, p);
}

static inline void group_double(g2_t *p, uint32_t times)
{
    while (times-- > 0)
        blst_p2_double(p, p);
}

/* The sum of j * p[j], j < len; *plain, if given, becomes the sum of the p[j]. */
template <class F>
static typename host_group<F>::sum weighted_sum(const typename host_group<F>::affine_point *p,
                                                uint32_t len, typename host_group<F>::sum *plain)
{
    typename host_group<F>::sum running = {}, out = {};

    for (uint32_t j = len - 1; j > 0; j--) {
        group_add(&running, p + j);
        group_add(&out, &running);
    }
    if (plain) {
        group_add(&running, p);
        *plain = running;
    }
    return out;
}

/* How the buckets are cut for the integration. A bucket's index in its window is
 * block << 2m | row << m | column, and row and column are m_high << m_low wide. */
struct integration {
    uint32_t m, m_low, m_high, blocks;
};

static inline integration make_integration(const msm_plan &plan)
{
    integration s;
    uint32_t narrowest = plan.bits[plan.windows - 1];

    s.m = (narrowest - 1) / 2;
    s.m_low = (s.m + 1) / 2;
    s.m_high = s.m - s.m_low;
    s.blocks = plan.buckets >> (2 * s.m);
    return s;
}

/* What comes to the host: for each block the row sums' row-of-rows sums, and so on. */
template <class F> struct integrated {
    typedef typename host_group<F>::affine_point point;
    const msm_plan *plan;
    integration shape;
    const point *row_high, *row_low, *column_high, *column_low; /* [block][2^m_high or 2^m_low] */
    typename host_group<F>::sum window[MSM_WINDOWS_MAX];
};

/* One block: adds sum (index + 1) * bucket to *out, *total becomes the plain sum. */
template <class F>
static void finish_block(const integrated<F> &in, uint32_t block, typename host_group<F>::sum *out,
                         typename host_group<F>::sum *total)
{
    const integration &s = in.shape;
    typename host_group<F>::sum rows, columns, low;

    rows = weighted_sum<F>(in.row_high + ((size_t)block << s.m_high), 1u << s.m_high, total);
    group_double(&rows, s.m_low);
    low = weighted_sum<F>(in.row_low + ((size_t)block << s.m_low), 1u << s.m_low, nullptr);
    group_add(&rows, &low);
    group_double(&rows, s.m);
    columns =
        weighted_sum<F>(in.column_high + ((size_t)block << s.m_high), 1u << s.m_high, nullptr);
    group_double(&columns, s.m_low);
    low = weighted_sum<F>(in.column_low + ((size_t)block << s.m_low), 1u << s.m_low, nullptr);
    group_add(&columns, &low);
    group_add(out, &rows);
    group_add(out, &columns);
    group_add(out, total); /* the weight is index + 1 */
}

template <class F> static void finish_window(void *ctx, size_t window, unsigned thread)
{
    integrated<F> &in = *(integrated<F> *)ctx;
    const integration &s = in.shape;
    const uint32_t blocks = 1u << (in.plan->bits[window] - 1 - 2 * s.m);
    typename host_group<F>::sum sum = {}, above = {}, weighted = {}, total;
    uint32_t first = 0;

    (void)thread;
    for (uint32_t w = 0; w < window; w++)
        first += 1u << (in.plan->bits[w] - 1 - 2 * s.m);
    for (uint32_t k = blocks; k-- > 0;) {
        finish_block<F>(in, first + k, &sum, &total);
        if (k == 0)
            break;
        group_add(&above, &total);
        group_add(&weighted, &above);
    }
    group_double(&weighted, 2 * s.m);
    group_add(&sum, &weighted);
    in.window[window] = sum;
}

template <class F>
static void finish_windows(integrated<F> &in, struct workers *workers,
                           typename host_group<F>::sum *out)
{
    workers_run(workers, in.plan->windows, finish_window<F>, &in);
    *out = in.window[in.plan->windows - 1];
    for (uint32_t w = in.plan->windows - 1; w-- > 0;) {
        group_double(out, in.plan->bits[w]);
        group_add(out, &in.window[w]);
    }
}

/* ---- the device's share ---- */

/* Points and what the additions need, beside msm_lists. Results: room for the sums of a group or for the folds of the
 * integration, whichever is more; the buckets; one point at infinity. */
template <class F> struct msm_points {
    affine<F> *results;
    uint32_t buckets, nothing; /* where those are */
    uint4 *prefix;
    size_t prefix_stride;
    uint32_t *special;
    uint32_t *special_len; /* one for each of the two streams that add */
};

/* A second level of folds makes a little more than the first. */
static inline uint32_t fold_results(const msm_plan &plan)
{
    return plan.buckets + plan.buckets / 8 + 1024;
}

template <class F> static msm_points<F> msm_points_layout(const msm_plan &plan, scratch &space)
{
    const size_t digits = (size_t)plan.windows_at_once * plan.len;
    msm_points<F> p;

    p.buckets = (uint32_t)std::max<size_t>(digits, 2 * (size_t)fold_results(plan));
    p.nothing = p.buckets + plan.buckets;
    p.results = space.take<affine<F>>((size_t)p.nothing + 1);
    /* Both directions of a fold run at once, each on its half. */
    p.prefix_stride = std::max<size_t>(digits / 2, plan.buckets) + 1024;
    p.prefix = space.take<uint4>(p.prefix_stride * pairs_shape<F>::CHUNKS);
    p.special = space.take<uint32_t>(p.prefix_stride);
    p.special_len = space.take<uint32_t>(2);
    return p;
}

template <class F> static size_t plan_bytes(const msm_plan &plan, struct errmsg *err)
{
    scratch measure;
    msm_lists lists;

    if (msm_lists_layout(plan, measure, &lists, err) < 0)
        return SIZE_MAX;
    msm_points_layout<F>(plan, measure);
    return measure.used;
}

template <class F> size_t msm_scratch_bytes(uint32_t len, uint32_t windows_at_once)
{
    return plan_bytes<F>(make_msm_plan(len, windows_at_once), nullptr);
}

DEVICE uint4 chunk_of(const fp &a, uint32_t chunk)
{
    uint4 q = pack(a.v);

    UNROLL
    for (uint32_t k = 1; k < 3; k++)
        if (k == chunk)
            q = pack(a.v + 4 * k);
    return q;
}

DEVICE uint4 chunk_of(const fp2 &a, uint32_t chunk)
{
    return chunk < 3 ? chunk_of(a.c0, chunk) : chunk_of(a.c1, chunk - 3);
}

/* Copies a group's last sums to `buckets`, infinity where there is none. A thread moves one piece of a bucket, with four
 * buckets in flight (.6 to .25 ms for 2^23 buckets, H200). */
template <class F>
__global__ void finalize_kernel(msm_slot s, uint32_t n, const affine<F> *__restrict__ inputs,
                                const affine<F> *__restrict__ results,
                                affine<F> *__restrict__ buckets)
{
    constexpr uint32_t CHUNKS = pairs_shape<F>::CHUNKS, PIECES = 2 * CHUNKS, IN_FLIGHT = 4;
    __shared__ uint32_t first[MSM_ROUNDS];
    const uint32_t threads = gridDim.x * blockDim.x;
    const uint32_t pieces = n * PIECES;

    first_outputs(s.counts, first);
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < pieces;
         at += IN_FLIGHT * threads) {
        uint32_t ref[IN_FLIGHT];
        uint4 piece[IN_FLIGHT];

        UNROLL
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            const uint32_t i = at + k * threads, bucket = i / PIECES;
            ref[k] = ~0u;
            if (i >= pieces || s.last[bucket] == ~0u)
                continue;
            const uint32_t round = s.last[bucket] >> 27, place = s.last[bucket] & ((1u << 27) - 1);
            ref[k] = round ? (first[round] + place) | REF_RESULT : s.single[bucket];
        }
        UNROLL
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            const uint32_t chunk = (at + k * threads) % PIECES;
            piece[k] = make_uint4(0, 0, 0, 0);
            if (ref[k] == ~0u)
                continue;
            const affine<F> *p = ((ref[k] & REF_RESULT) ? results : inputs) + (ref[k] & REF_INDEX);
            piece[k] = ((const uint4 *)p)[chunk];
            if ((ref[k] & REF_NEGATIVE) && chunk >= CHUNKS) {
                F y = loaded<F>((const uint4 *)p + CHUNKS, 1);
                piece[k] = chunk_of(reduce_2p(negate_lazy_if(y, true)), chunk - CHUNKS);
            }
        }
        UNROLL
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            const uint32_t i = at + k * threads;
            if (i < pieces)
                ((uint4 *)buckets)[i] = piece[k];
        }
    }
}

/* One MSM on its way. */
template <class F> struct msm_run {
    gpu &g;
    const msm_input<F> &in;
    msm_plan plan;
    msm_lists lists;
    msm_points<F> space;

    msm_run(gpu &on, const msm_input<F> &input) : g(on), in(input) {}

    pairs<F> job() const
    {
        pairs<F> j = {};

        j.inputs = in.points;
        j.results = space.results;
        j.nothing = space.nothing | REF_RESULT;
        j.prefix = space.prefix;
        j.prefix_stride = space.prefix_stride;
        j.special = space.special;
        j.special_len = space.special_len;
        return j;
    }

    int list_group(uint32_t group, uint32_t *host_counts, struct errmsg *err)
    {
        cudaStream_t side = g.side.handle;

        if (group >= 2) /* the slot's lists are still being added from */
            CUDA_TRY(cudaStreamWaitEvent(side, g.added[group & 1].handle, 0), err);
        TRY(msm_group_lists(g, plan, lists, group, side, host_counts, g.counted.handle, err));
        CUDA_TRY(cudaEventRecord(g.listed[group & 1].handle, side), err);
        CUDA_TRY(cudaEventSynchronize(g.counted.handle), err);
        return 0;
    }

    int add_group(uint32_t group, const uint32_t *host_counts, uint32_t first_bucket,
                  struct errmsg *err)
    {
        const msm_slot &slot = lists.slot[group & 1];
        const uint32_t n = plan.group_buckets[group];
        cudaStream_t stream = g.main.handle;
        pairs<F> j = job();
        uint32_t done = 0;

        CUDA_TRY(cudaStreamWaitEvent(stream, g.listed[group & 1].handle, 0), err);
        for (int round = 1; round < MSM_ROUNDS && host_counts[round]; round++) {
            j.list = slot.list + done;
            j.len = host_counts[round];
            j.out = done;
            TRY(add_pairs<F>(g, stream, j, err));
            done += j.len;
        }
        uint32_t blocks = std::min(g.multiprocessors * 8,
                                   blocks_for((uint64_t)n * 2 * pairs_shape<F>::CHUNKS, 256));
        finalize_kernel<F><<<blocks, 256, 0, stream>>>(
            slot, n, in.points, space.results, space.results + space.buckets + first_bucket);
        CUDA_TRY(cudaGetLastError(), err);
        CUDA_TRY(cudaEventRecord(g.added[group & 1].handle, stream), err);
        return 0;
    }

    int make_buckets(uint32_t *host_counts, struct errmsg *err)
    {
        uint32_t first_bucket = 0;

        CUDA_TRY(
            cudaMemsetAsync(space.results + space.nothing, 0, sizeof(affine<F>), g.main.handle),
            err);
        TRY(g.order(g.main, g.begun, g.side,
                    err)); /* the scalars may be in the making, the memory in use */
        TRY(msm_digits(g, plan, lists, {in.scalars, in.convert, in.point_index, in.scalar_index},
                       g.side.handle, err));
        for (uint32_t group = 0; group < plan.groups; group++) {
            TRY(list_group(group, host_counts, err));
            TRY(add_group(group, host_counts, first_bucket, err));
            first_bucket += plan.group_buckets[group];
        }
        return 0;
    }

    /* Points of one direction of a fold: where they are, and where the next go. */
    struct line {
        uint32_t at, len, next;
        bool second; /* uses the second half of prefix and the like */
    };

    int fold(cudaStream_t stream, line &l, uint32_t log2_stride, struct errmsg *err)
    {
        const size_t half = l.second ? space.prefix_stride / 2 : 0;
        pairs<F> j = job();

        j.in = l.at;
        j.in_end = l.at + l.len;
        j.log2_stride = log2_stride;
        j.len = l.len / 2;
        j.out = l.next;
        j.prefix += half;
        j.special += half;
        j.special_len += l.second;
        TRY(add_pairs<F>(g, stream, j, err));
        l.at = l.next;
        l.len = j.len;
        l.next += j.len;
        return 0;
    }

    int fold_rounds(cudaStream_t stream, line &l, uint32_t log2_stride, uint32_t rounds,
                    struct errmsg *err)
    {
        for (uint32_t r = 0; r < rounds; r++)
            TRY(fold(stream, l, log2_stride, err));
        return 0;
    }

    /* Copies to the host what a direction's second level left and advances *at. */
    int fetch(const line &l, typename host_group<F>::affine_point *host, size_t *at,
              struct errmsg *err)
    {
        CUDA_TRY(cudaMemcpyAsync(host + *at, space.results + l.at, l.len * sizeof(affine<F>),
                                 cudaMemcpyDeviceToHost, g.main.handle),
                 err);
        *at += l.len;
        return 0;
    }

    int integrate(struct workers *workers, typename host_group<F>::sum *out, struct errmsg *err)
    {
        typedef typename host_group<F>::affine_point point;
        const integration s = make_integration(plan);
        cudaStream_t main = g.main.handle, third = main;
        line rows = {space.buckets, plan.buckets, 0, false};
        line columns = {space.buckets, plan.buckets, fold_results(plan), true};

        for (uint32_t r = 0; r < s.m; r++) {
            if (third == main && rows.len < FOLD_TOGETHER) {
                TRY(g.order(g.main, g.forked, g.third, err));
                third = g.third.handle;
            }
            TRY(fold(main, rows, 0, err));
            TRY(fold(third, columns, s.m, err));
        }
        if (third == main) {
            TRY(g.order(g.main, g.forked, g.third, err));
            third = g.third.handle;
        }
        line rows_low = rows, columns_low = columns;
        TRY(fold_rounds(main, rows, 0, s.m_low, err));
        TRY(fold_rounds(third, columns, 0, s.m_low, err));
        rows_low.next = rows.next;
        columns_low.next = columns.next;
        TRY(fold_rounds(main, rows_low, s.m_low, s.m_high, err));
        TRY(fold_rounds(third, columns_low, s.m_low, s.m_high, err));
        TRY(g.order(g.third, g.joined, g.main, err));

        scratch host_space = g.host_space();
        point *host = host_space.take<point>(2 * ((size_t)rows.len + rows_low.len));
        size_t at = 0;
        if (host_space.overflowed())
            return errmsg_set(err, -ENOMEM, "%u block sums exceed the pinned memory", s.blocks);
        integrated<F> result;
        result.plan = &plan;
        result.shape = s;
        result.row_high = host + at;
        TRY(fetch(rows, host, &at, err));
        result.row_low = host + at;
        TRY(fetch(rows_low, host, &at, err));
        result.column_high = host + at;
        TRY(fetch(columns, host, &at, err));
        result.column_low = host + at;
        TRY(fetch(columns_low, host, &at, err));
        CUDA_TRY(cudaStreamSynchronize(main), err);
        finish_windows<F>(result, workers, out);
        return 0;
    }
};

/* The most windows at once for which `space` suffices. */
template <class F>
static int fit_plan(uint32_t len, const scratch &space, msm_plan *out, struct errmsg *err)
{
    const size_t room = space.size - space.used;

    for (uint32_t at_once = make_msm_plan(len, 0).windows_at_once; at_once > 0; at_once--) {
        *out = make_msm_plan(len, at_once);
        if (plan_bytes<F>(*out, err) <= room)
            return 0;
    }
    return errmsg_set(err, -ENOMEM, "a sum of %u terms takes %zu MB of scratch, %zu are there", len,
                      plan_bytes<F>(*out, nullptr) >> 20, room >> 20);
}

template <class F>
int msm(gpu &g, const msm_input<F> &in, scratch space, struct workers *workers,
        typename host_group<F>::sum *out, struct errmsg *err)
{
    msm_run<F> run(g, in);

    if (in.len == 0) {
        *out = {};
        return 0;
    }
    TRY(fit_plan<F>(in.len, space, &run.plan, err));
    TRY(msm_lists_layout(run.plan, space, &run.lists, err));
    run.space = msm_points_layout<F>(run.plan, space);
    TRY(run.make_buckets(g.host_space().take<uint32_t>(MSM_ROUNDS), err));
    return run.integrate(workers, out, err);
}

/* ---- plain sums ---- */

template <class F> struct sum_space {
    affine<F> *results;
    uint32_t nothing;
    uint4 *prefix;
    size_t prefix_stride;
    uint32_t *special, *special_len;
};

/* Half of the points after the first round, a quarter after the second, which goes elsewhere, and so on by turns. */
template <class F> static sum_space<F> sum_layout(uint32_t len, scratch &space)
{
    const size_t first = (len + 1) / 2;
    sum_space<F> s;

    s.nothing = 0;
    s.results = space.take<affine<F>>(1 + first + (first + 1) / 2);
    s.prefix_stride = first;
    s.prefix = space.take<uint4>(first * pairs_shape<F>::CHUNKS);
    s.special = space.take<uint32_t>(first);
    s.special_len = space.take<uint32_t>(1);
    return s;
}

template <class F> size_t sum_scratch_bytes(uint32_t len)
{
    scratch measure;

    sum_layout<F>(len, measure);
    return measure.used;
}

template <class F>
int sum_points_begin(gpu &g, const affine<F> *points, uint32_t *index, uint32_t len, scratch &space,
                     sum_begun<F> *out, struct errmsg *err)
{
    cudaStream_t stream = g.apart.handle;
    scratch host = {g.pinned_apart.ptr, g.pinned_apart.len};

    *out = {};
    if (len == 0)
        return 0;
    sum_space<F> s = sum_layout<F>(len, space);
    auto *left = host.take<typename host_group<F>::affine_point>(SUM_ON_HOST);
    uint32_t *nothing = host.take<uint32_t>(1);
    if (space.overflowed() || host.overflowed())
        return errmsg_set(err, -ENOMEM, "a sum of %u points takes %zu MB of scratch", len,
                          sum_scratch_bytes<F>(len) >> 20);
    const uint32_t first = (len + 1) / 2;
    pairs<F> j = {};
    j.inputs = points;
    j.results = s.results;
    j.nothing = *nothing = s.nothing | REF_RESULT;
    j.prefix = s.prefix;
    j.prefix_stride = s.prefix_stride;
    j.special = s.special;
    j.special_len = s.special_len;
    TRY(g.order(g.main, g.begun_apart, g.apart, err));
    CUDA_TRY(cudaMemsetAsync(s.results + s.nothing, 0, sizeof(affine<F>), stream), err);
    if (len & 1)
        CUDA_TRY(
            cudaMemcpyAsync(index + len, nothing, sizeof(*nothing), cudaMemcpyHostToDevice, stream),
            err);

    j.list = (const uint2 *)index;
    j.len = first;
    j.out = 1;
    TRY(add_pairs<F>(g, stream, j, err));
    j.list = nullptr;
    while (j.len > SUM_ON_HOST) {
        j.in = j.out;
        j.in_end = j.in + j.len;
        j.out = j.in == 1 ? 1 + first : 1;
        j.len = (j.len + 1) / 2;
        TRY(add_pairs<F>(g, stream, j, err));
    }
    CUDA_TRY(cudaMemcpyAsync(left, s.results + j.out, j.len * sizeof(affine<F>),
                             cudaMemcpyDeviceToHost, stream),
             err);
    out->left = left;
    out->len = j.len;
    return 0;
}

template <class F>
int sum_points_end(gpu &g, const sum_begun<F> &begun, typename host_group<F>::sum *out,
                   struct errmsg *err)
{
    typename host_group<F>::sum sum = {};

    CUDA_TRY(cudaStreamSynchronize(g.apart.handle), err);
    for (uint32_t k = 0; k < begun.len; k++)
        group_add(&sum, begun.left + k);
    *out = sum;
    return 0;
}

template <class F>
int sum_points(gpu &g, const affine<F> *points, uint32_t *index, uint32_t len, scratch space,
               typename host_group<F>::sum *out, struct errmsg *err)
{
    sum_begun<F> begun;

    TRY(sum_points_begin<F>(g, points, index, len, space, &begun, err));
    return sum_points_end<F>(g, begun, out, err);
}

template <class F>
int queue_pairs(const gpu &g, cudaStream_t stream, const pairs<F> &job, struct errmsg *err)
{
    return add_pairs<F>(g, stream, job, err);
}

template <class F> int msm_prepare(gpu &g, struct errmsg *err)
{
    return pairs_prepare<F>(g, err);
}

#define MSM_INSTANTIATE(F)                                                                      \
    template size_t msm_scratch_bytes<F>(uint32_t, uint32_t);                                   \
    template int msm<F>(gpu &, const msm_input<F> &, scratch, struct workers *,                 \
                        typename host_group<F>::sum *, struct errmsg *);                        \
    template size_t sum_scratch_bytes<F>(uint32_t);                                             \
    template int sum_points_begin<F>(gpu &, const affine<F> *, uint32_t *, uint32_t, scratch &, \
                                     sum_begun<F> *, struct errmsg *);                          \
    template int sum_points_end<F>(gpu &, const sum_begun<F> &, typename host_group<F>::sum *,  \
                                   struct errmsg *);                                            \
    template int sum_points<F>(gpu &, const affine<F> *, uint32_t *, uint32_t, scratch,         \
                               typename host_group<F>::sum *, struct errmsg *);                 \
    template int queue_pairs<F>(const gpu &, cudaStream_t, const pairs<F> &, struct errmsg *);  \
    template int msm_prepare<F>(gpu &, struct errmsg *)

#endif
