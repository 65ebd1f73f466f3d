/*
 * A lane has the next two pieces under way at any time, those of the next proof as soon as the last of this one is summed. Of a window, the
 * ones are selected and summed as the resident prover does it for a whole query; the points that its values ask for are copied aside, so
 * that each query has one MSM over all of them at its end: an MSM of a few thousand points takes as long as one of a million.
 */
#include "gpu/cuda/prover.cuh"

#include "gpu/cuda/query.cuh"
#include "gpu/cuda/select.cuh"

#include <algorithm>

extern "C" {
#include "gpu/groth16.h"
}

/* Less is in pages that others' memory may share; it is copied all the same. */
static constexpr size_t PIN_BYTES = 2u << 20;

/* ---- the host's points ---- */

struct section_place {
    const void *points;
    size_t bytes;
};

static section_place place_of(const struct srs *srs, int section)
{
    const section_place places[SRS_SECTIONS] = {
        {srs->h, srs->h_len * sizeof(g1_affine_t)},
        {srs->l, srs->l_len * sizeof(g1_affine_t)},
        {srs->a, srs->a_len * sizeof(g1_affine_t)},
        {srs->b_g1, srs->b_len * sizeof(g1_affine_t)},
        {srs->b_g2, srs->b_len * sizeof(g2_affine_t)},
    };

    return places[section];
}

bool streamed_points::are(const struct srs *srs) const
{
    bool same = true;

    for (int k = 0; k < SRS_SECTIONS; k++)
        same = same && section[k] == place_of(srs, k).points;
    return same;
}

int streamed_points::pin(const struct srs *srs, backend_progress progress, void *progress_ctx,
                         struct errmsg *err)
{
    uint64_t done = 0, total = 0;

    for (int k = 0; k < SRS_SECTIONS; k++)
        total += place_of(srs, k).bytes;
    for (int k = 0; k < SRS_SECTIONS; k++) {
        const section_place from = place_of(srs, k);
        if (from.bytes >= PIN_BYTES) {
            int ret = host_pin((void *)from.points, from.bytes, err);
            if (ret < 0) {
                release();
                return errmsg_prefix(
                    err, ret,
                    "parameters of %llu MB that are to stay in host memory, %llu MB "
                    "of them pinned so far",
                    (unsigned long long)(total >> 20), (unsigned long long)(done >> 20));
            }
            pinned[k] = true;
        }
        section[k] = from.points;
        done += from.bytes;
        if (progress)
            progress(progress_ctx, "device", done, total);
    }
    return 0;
}

void streamed_points::release()
{
    for (int k = 0; k < SRS_SECTIONS; k++) {
        if (pinned[k])
            host_unpin((void *)section[k]);
        pinned[k] = false;
        section[k] = nullptr;
    }
    windows.clear();
}

/* ---- the bus ---- */

int bus_lane::create(struct errmsg *err)
{
    TRY(stream.create(RANK_LAST, err));
    for (cuda_event &e : arrived)
        TRY(e.create(false, err));
    return 0;
}

void bus_lane::restart()
{
    cudaStreamSynchronize(stream.handle);
    queued = taken = 0;
}

int bus_lane::fetch(const void *host, size_t bytes, struct errmsg *err)
{
    const unsigned k = queued % PLACES;

    CUDA_TRY(cudaMemcpyAsync(place[k], host, bytes, cudaMemcpyHostToDevice, stream.handle), err);
    CUDA_TRY(cudaEventRecord(arrived[k].handle, stream.handle), err);
    queued++;
    return 0;
}

int bus_lane::before(const cuda_stream &other, struct errmsg *err)
{
    CUDA_TRY(cudaStreamWaitEvent(other.handle, arrived[here()].handle, 0), err);
    return 0;
}

/* ---- memory ---- */

static uint32_t longest_window(const std::vector<query_window> &windows, bool g2)
{
    uint32_t longest = 0;

    for (const query_window &w : windows)
        if ((w.section == SRS_B_G2) == g2)
            longest = std::max(longest, w.len);
    return longest;
}

/* Windows of digits at a time in the MSMs of the values, for which a second or two of 2^21 terms matter less than memory. */
static constexpr uint32_t TAIL_AT_ONCE = 2;

flight_space streamed_layout(const resident_parameters &r, scratch space)
{
    const resident_circuit &c = r.circuit;
    const streamed_points &from = r.streamed;
    const uint32_t longest_g1 = longest_window(from.windows, false),
                   longest_g2 = longest_window(from.windows, true);
    const uint32_t tail_g1 = std::max(c.l_rest, c.a_rest), tail_g2 = c.b_rest;
    const size_t domain = (size_t)1 << c.log2_domain;
    flight_space s = {};

    for (device_witness &w : s.witness) {
        w.values = space.take<fr>(c.n_values);
        w.bits = space.take<uint32_t>((size_t)c.aux_words * 2);
    }
    s.ones = space.take<uint32_t>((size_t)std::max(longest_g1, longest_g2) + 1);
    s.ones_len = space.take<uint32_t>(2);
    s.tail = space.take<char>(std::max(tail_g1 * sizeof(g1_point), tail_g2 * sizeof(g2_point)));
    for (char *&p : s.window)
        p = space.take<char>(
            std::max(longest_g1 * sizeof(g1_point), longest_g2 * sizeof(g2_point)));
    for (char *&p : s.slab)
        p = space.take<char>(from.shape.slab * sizeof(g1_point));
    s.aside = space;
    space.take<char>(
        std::max(std::max(sum_scratch_bytes<fp>(longest_g1), sum_scratch_bytes<fp2>(longest_g2)),
                 std::max(msm_scratch_bytes<fp>(tail_g1, TAIL_AT_ONCE),
                          tail_g2 ? msm_scratch_bytes<fp2>(tail_g2, TAIL_AT_ONCE) : 0)));
    s.aside.size = space.used;
    s.vector[0] = space.take<fr>(domain);
    /* The second vector has been used when the sum over h begins. */
    s.main = space;
    s.vector[1] = space.take<fr>(domain);
    space = s.main;
    space.take<char>(
        std::max(domain * sizeof(fr), msm_scratch_bytes<fp>(from.shape.slab, from.shape.at_once)));
    s.main.size = space.used;
    return s;
}

/* Large windows and few slabs where they fit: less than 64 MB comes slower, and a sum over a sixteenth of h costs a quarter more in all. */
int choose_stream_shape(resident_parameters &r, const struct circuit *circuit, size_t available,
                        size_t *bytes, struct errmsg *err)
{
    const size_t least_bytes = window_points_least(circuit) * sizeof(g2_affine_t);
    size_t least = SIZE_MAX;

    for (size_t window : {512u << 20, 256u << 20, 128u << 20, 64u << 20, 16u << 20, 4u << 20,
                          1u << 20, 256u << 10, 64u << 10}) {
        r.streamed.windows = cut_queries(circuit, std::max(window, least_bytes));
        for (uint32_t shift = 2; shift <= 6; shift++)
            for (uint32_t at_once : {2u, 1u}) {
                const uint32_t slab = std::max(1u << r.log2_domain >> shift, 1u);
                r.streamed.shape = {window, slab, at_once};
                *bytes = streamed_layout(r, scratch()).main.size;
                if (*bytes <= available)
                    return 0;
                least = std::min(least, *bytes);
            }
    }
    return errmsg_set(err, -ENOMEM,
                      "proofs over streamed parameters take %zu MB of device memory beside tables, "
                      "%zu are free",
                      least >> 20, available >> 20);
}

static uint32_t count_slabs(const resident_parameters &r)
{
    return (uint32_t)((r.h_len + r.streamed.shape.slab - 1) / r.streamed.shape.slab);
}

/* ---- h ---- */

/* C less A times B over the coset, as coefficients, or, of transformed parameters, that product itself: in place of the first vector and in
 * natural order, as the points are in host memory. */
int queue_h_streamed(prover &p, const flight &f, struct errmsg *err)
{
    const resident_parameters &r = *p.resident;
    const transforms &t = p.tables[r.log2_domain];
    gpu &g = p.early;
    fr *const a = p.space.vector[0], *const b = p.space.vector[1];

    TRY(evaluate_rows(g, r.circuit, f.w, a, b, nullptr, err));
    CUDA_TRY(cudaEventRecord(p.evaluated.handle, g.main.handle), err);
    TRY(queue_coset_product(g, t, r.log2_domain, a, b, err));
    if (r.transformed)
        return 0;
    TRY(ntt_to_reversed(g, t.coset_inverse, a, a, err));
    TRY(evaluate_rows(g, r.circuit, f.w, nullptr, nullptr, b, err));
    TRY(ntt_to_reversed_minus(g, t.inverse, b, b, a, err));
    return ntt_reverse(g, r.log2_domain, b, a, err);
}

/* The slabs of h on their lane, as far as there is room. */
static int fetch_slabs(prover &p, struct errmsg *err)
{
    const resident_parameters &r = *p.resident;
    const uint32_t slab = r.streamed.shape.slab, slabs = count_slabs(r);

    while (p.h_lane.has_room()) {
        const size_t first = p.h_lane.queued % slabs * slab,
                     len = std::min<size_t>(slab, r.h_len - first);
        TRY(p.h_lane.fetch((const g1_point *)r.streamed.section[SRS_H] + first,
                           len * sizeof(g1_point), err));
    }
    return 0;
}

int sum_h_streamed(prover &p, g1_t *out, struct errmsg *err)
{
    const resident_parameters &r = *p.resident;
    const uint32_t slab = r.streamed.shape.slab, slabs = count_slabs(r);
    g1_t sum = {}, part;

    for (uint32_t k = 0; k < slabs; k++) {
        const size_t first = (size_t)k * slab, len = std::min<size_t>(slab, r.h_len - first);
        TRY(fetch_slabs(p, err));
        TRY(p.h_lane.before(p.g.main, err));
        const msm_input<fp> in = {(const g1_point *)p.h_lane.place[p.h_lane.here()],
                                  p.space.vector[0] + first,
                                  r.h_convert,
                                  nullptr,
                                  nullptr,
                                  (uint32_t)len};
        TRY(msm<fp>(p.g, in, p.space.main, p.workers, &part, err));
        p.h_lane.taken++;
        host_add(&sum, &part);
    }
    *out = sum;
    return fetch_slabs(p, err);
}

/* ---- the queries over the witness ---- */

/* Those of a tail's points that are in a window. A thread moves 16 bytes. */
__global__ void gather_tail_kernel(const uint32_t *points, uint32_t len, uint32_t pieces,
                                   const uint4 *window, uint32_t first, uint32_t window_len,
                                   uint4 *out)
{
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, i = t / pieces;

    if (i < len && points[i] - first < window_len)
        out[t] = window[(size_t)(points[i] - first) * pieces + t % pieces];
}

struct streamed_queries {
    prover &p;
    const flight &f;

    int fetch_windows(struct errmsg *err)
    {
        const streamed_points &from = p.resident->streamed;

        while (p.window_lane.has_room()) {
            const query_window &w = from.windows[p.window_lane.queued % from.windows.size()];
            const size_t bytes = point_bytes(w.section);
            TRY(p.window_lane.fetch((const char *)from.section[w.section] + w.first * bytes,
                                    w.len * bytes, err));
        }
        return 0;
    }

    /* Places in the window of the points that bits ask for. */
    int list_ones(const query_window &w, uint32_t *len, struct errmsg *err)
    {
        const resident_circuit &c = p.resident->circuit;
        const device_density *d = w.section == SRS_L ? nullptr : w.section == SRS_A ? &c.a : &c.b;
        const uint32_t inputs = w.section == SRS_A ? c.n_inputs : (uint32_t)CIRCUIT_B_INPUTS;
        const uint32_t first_word = 2 * w.first_word; /* of 32 here */
        const selection_part part = {w.words * 64,
                                     f.w.bits + first_word,
                                     nullptr,
                                     d ? d->bits.ptr + first_word : nullptr,
                                     d ? d->rank.ptr + first_word : nullptr,
                                     d ? inputs - w.first : 0, /* ranks begin with the query */
                                     0};

        return select_ones(p, part, len, err);
    }

    template <class F>
    int gather_tail(const query_window &w, const device_tail &tail, const char *window,
                    struct errmsg *err)
    {
        constexpr uint32_t PIECES = sizeof(affine<F>) / sizeof(uint4);
        const uint32_t len = (uint32_t)tail.points.len;

        if (len == 0)
            return 0;
        gather_tail_kernel<<<blocks_for((uint64_t)len * PIECES, 256), 256, 0,
                             p.aside.main.handle>>>(tail.points.ptr, len, PIECES,
                                                    (const uint4 *)window, w.first, w.len,
                                                    (uint4 *)p.space.tail);
        CUDA_TRY(cudaGetLastError(), err);
        return 0;
    }

    template <class F>
    int sum_window(const query_window &w, const device_tail &tail, typename host_group<F>::sum *sum,
                   struct errmsg *err)
    {
        const char *window = p.window_lane.place[p.window_lane.here()];
        typename host_group<F>::sum part;
        uint32_t ones = 0;

        TRY(p.window_lane.before(p.aside.main, err));
        TRY(gather_tail<F>(w, tail, window, err));
        TRY(list_ones(w, &ones, err));
        TRY(sum_points<F>(p.aside, (const affine<F> *)window, p.space.ones, ones, p.space.aside,
                          &part, err));
        p.window_lane.taken++;
        host_add(sum, &part);
        return 0;
    }

    /* The windows of one query, which are next, and then its tail. */
    template <class F>
    int sum_query(enum srs_section section, const device_tail &tail,
                  typename host_group<F>::sum *out, struct errmsg *err)
    {
        const std::vector<query_window> &windows = p.resident->streamed.windows;
        typename host_group<F>::sum sum = {}, part;

        for (const query_window &w : windows)
            if (w.section == section) {
                TRY(fetch_windows(err));
                TRY(sum_window<F>(w, tail, &sum, err));
            }
        TRY(fetch_windows(err));
        const msm_input<F> rest = {
            (const affine<F> *)p.space.tail, f.w.values, fr_integer_one(), nullptr, tail.values.ptr,
            (uint32_t)tail.points.len};
        TRY(msm<F>(p.aside, rest, p.space.aside, nullptr, &part, err));
        host_add(&sum, &part);
        *out = sum;
        return 0;
    }
};

int sum_queries_streamed(prover &p, const flight &f, struct groth16_sums *out, struct errmsg *err)
{
    const resident_circuit &c = p.resident->circuit;
    streamed_queries q = {p, f};

    TRY(q.sum_query<fp>(SRS_L, c.l_tail, &out->l, err));
    TRY(q.sum_query<fp>(SRS_A, c.a_tail, &out->a, err));
    TRY(q.sum_query<fp>(SRS_B_G1, c.b_tail, &out->b_g1, err));
    return q.sum_query<fp2>(SRS_B_G2, c.b_tail, &out->b_g2, err);
}
