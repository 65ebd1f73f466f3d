/*
 * The order of things is chosen for the bus: the rows' values go up first, and while they are transformed the witness follows.
 *
 * h takes six transforms (groth16.c says why): C is transformed once, and its coefficients are taken off those of the coset's
 * product in that transform's last pass. The common factor 1 / (g^m - 1) costs nothing: the MSM has to take scalars out of
 * Montgomery form by a product anyhow. Transforms to reversed and to natural order alternate, and the scalars of h end in
 * reversed order, as its points are kept.
 */
#include "gpu/cuda/prover.cuh"

#include "gpu/cuda/msm.cuh"
#include "gpu/cuda/select.cuh"

#include <algorithm>
#include <chrono>

extern "C" {
#include "gpu/groth16.h"
}

/* Left alone when memory is taken: for the driver, and for whoever else is on the card. */
static constexpr size_t RESERVE_BYTES = 512u << 20;

int prover::open(int device_index, struct workers *w, struct errmsg *err)
{
    workers = w;
    TRY(g.open(device_index, err));
    TRY(up.create(w, err));
    TRY(msm_prepare<fp>(g, err));
    return msm_prepare<fp2>(g, err);
}

/* ---- memory of a prove ---- */

/* What a bitmap of variables is about: where its bits and their ranks are. */
struct bitmap {
    uint32_t *bits, *rank;
};

/* Everything in the arena. From `rows_a` on memory is used twice: rows are gone when sums begin. */
struct prove_space {
    fr *values; /* inputs, then aux */
    uint32_t *input_ones, *input_rest, *aux_ones, *aux_rest;
    bitmap a_aux, b_inputs, b_aux;
    selection chosen;
    fr *h;
    fr *rows_a, *rows_b;
    scratch rest; /* from rows_a on */
};

struct prove_lens {
    uint32_t inputs, aux, log2_domain;
};

static bitmap bitmap_layout(scratch &space, size_t len)
{
    bitmap b;

    b.bits = space.take<uint32_t>((len + 63) / 64 * 2); /* as the host has them: in words of 64 */
    b.rank = space.take<uint32_t>(bitmap_words(len));
    return b;
}

static prove_space space_layout(const prove_lens &n, scratch space)
{
    const size_t all = (size_t)n.inputs + n.aux, domain = (size_t)1 << n.log2_domain;
    prove_space s;

    s.values = space.take<fr>(all);
    s.input_ones = space.take<uint32_t>(bitmap_words(n.inputs));
    s.input_rest = space.take<uint32_t>(bitmap_words(n.inputs));
    s.aux_ones = space.take<uint32_t>(bitmap_words(n.aux));
    s.aux_rest = space.take<uint32_t>(bitmap_words(n.aux));
    s.a_aux = bitmap_layout(space, n.aux);
    s.b_inputs = bitmap_layout(space, n.inputs);
    s.b_aux = bitmap_layout(space, n.aux);
    s.chosen.one_points = space.take<uint32_t>(all + 1);
    s.chosen.rest_points = space.take<uint32_t>(all);
    s.chosen.rest_values = space.take<uint32_t>(all);
    s.chosen.lens = space.take<uint32_t>(2);
    s.h = space.take<fr>(domain);
    s.rest = space;
    s.rows_a = space.take<fr>(domain);
    s.rows_b = space.take<fr>(domain);
    return s;
}

/* Bytes of an arena whose sums handle `at_once` windows together (0: all that help). Enough for any witness. */
static size_t arena_bytes(const prove_lens &n, const struct srs *srs, uint32_t at_once)
{
    const prove_space s = space_layout(n, scratch());
    const uint32_t longest =
        (uint32_t)std::max({(size_t)1 << n.log2_domain, srs->a_len, srs->l_len, srs->b_len});
    size_t most = 2 * (sizeof(fr) << n.log2_domain) + 512; /* the rows */

    most = std::max(most, rank_scratch_bytes(n.aux) + 256);
    most = std::max(most, msm_scratch_bytes<fp>(longest, at_once));
    most = std::max(most, msm_scratch_bytes<fp2>((uint32_t)srs->b_len, 1));
    most = std::max(most, sum_scratch_bytes<fp>(longest));
    most = std::max(most, sum_scratch_bytes<fp2>((uint32_t)srs->b_len));
    return s.rest.used + most;
}

/* As large as helps and fits. */
static int allocate_arena(resident_parameters &r, const prove_lens &n, const struct srs *srs,
                          struct errmsg *err)
{
    size_t available = 0, total = 0;

    CUDA_TRY(cudaMemGetInfo(&available, &total), err);
    available -= std::min(available, RESERVE_BYTES);
    for (uint32_t at_once : {0u, 8u, 4u, 2u, 1u})
        if (arena_bytes(n, srs, at_once) <= available)
            return r.arena.allocate(arena_bytes(n, srs, at_once), err);
    return errmsg_set(
        err, -ENOMEM,
        "proofs over these parameters take %zu MB of device memory beside them, %zu are free",
        arena_bytes(n, srs, 1) >> 20, available >> 20);
}

/* ---- parameters ---- */

static bool same_parameters(const resident_parameters &r, const struct srs *srs)
{
    return r.loaded && r.h_len == srs->h_len && r.l_len == srs->l_len && r.a_len == srs->a_len &&
           r.b_len == srs->b_len &&
           memcmp(&r.alpha_g1, &srs->vk.alpha_g1, sizeof(r.alpha_g1)) == 0 &&
           memcmp(&r.delta_g1, &srs->vk.delta_g1, sizeof(r.delta_g1)) == 0;
}

struct loading {
    prover &p;
    backend_progress progress;
    void *ctx;
    uint64_t done, total;

    /* Pieces of whole points, so that progress is seen. */
    template <class To, class From>
    int copy(To *device, const From *host, size_t len, struct errmsg *err)
    {
        const size_t piece = uploader::PIECE / sizeof(To);

        static_assert(sizeof(To) == sizeof(From), "one layout");
        for (size_t at = 0; at < len; at += piece) {
            const size_t n = std::min(piece, len - at);
            TRY(p.up.copy(device + at, host + at, n * sizeof(To), err));
            done += n * sizeof(To);
            if (progress)
                progress(ctx, "device", done, total);
        }
        return 0;
    }

    template <class To, class From>
    int fill(device_buffer<To> &buffer, const From *host, size_t len, struct errmsg *err)
    {
        TRY(buffer.allocate(len, err));
        return copy(buffer.ptr, host, len, err);
    }
};

/* A thread moves a piece of 16 bytes. */
__global__ void reverse_points_kernel(const uint4 *in, uint4 *out, uint32_t first, uint32_t len,
                                      uint32_t log2_len)
{
    constexpr uint32_t PIECES = sizeof(g1_point) / sizeof(uint4);
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, i = t / PIECES;

    if (i < len)
        out[(size_t)(__brev(first + i) >> (32 - log2_len)) * PIECES + t % PIECES] = in[t];
}

/* h in reversed order, by way of a piece on the device. */
static int load_h(loading &l, resident_parameters &r, const struct srs *srs, struct errmsg *err)
{
    const uint32_t piece = uploader::PIECE / sizeof(g1_point);
    const size_t domain = (size_t)1 << r.log2_domain;
    device_buffer<g1_point> room;

    TRY(room.allocate(piece, err));
    TRY(r.h.allocate(domain, err));
    CUDA_TRY(cudaMemsetAsync(r.h.ptr + domain - 1, 0, sizeof(g1_point), l.p.up.stream.handle), err);
    for (size_t at = 0; at < srs->h_len; at += piece) {
        const uint32_t n = (uint32_t)std::min<size_t>(piece, srs->h_len - at);
        TRY(l.copy(room.ptr, srs->h + at, n, err));
        reverse_points_kernel<<<blocks_for((uint64_t)n * 6, 256), 256, 0, l.p.up.stream.handle>>>(
            (const uint4 *)room.ptr, (uint4 *)r.h.ptr, (uint32_t)at, n, r.log2_domain);
        CUDA_TRY(cudaGetLastError(), err);
    }
    return l.p.up.wait(err); /* before `room` goes */
}

static int load_points(loading &l, resident_parameters &r, const struct srs *srs,
                       struct errmsg *err)
{
    TRY(load_h(l, r, srs, err));
    TRY(l.fill(r.l, srs->l, srs->l_len, err));
    TRY(l.fill(r.a, srs->a, srs->a_len, err));
    TRY(l.fill(r.b_g1, srs->b_g1, srs->b_len, err));
    TRY(l.fill(r.b_g2, srs->b_g2, srs->b_len, err));
    return l.p.up.wait(err);
}

static int make_plans(gpu &g, resident_parameters &r, struct errmsg *err)
{
    const fr one = fr_one(), seven = fr_from_u32(7);
    const fr fraction = inverse(power(fr_from_u32(2), r.log2_domain));

    r.h_convert = to_integer(inverse(sub(power(seven, 1ull << r.log2_domain), one)));
    TRY(ntt_plan_create(g, r.log2_domain, true, one, fraction, &r.inverse, err));
    TRY(ntt_plan_create(g, r.log2_domain, false, seven, one, &r.coset, err));
    return ntt_plan_create(g, r.log2_domain, true, inverse(seven), fraction, &r.coset_inverse, err);
}

static void release(resident_parameters &r)
{
    r.loaded = false;
    r.h.reset();
    r.l.reset();
    r.a.reset();
    r.b_g1.reset();
    r.b_g2.reset();
    r.inverse.release();
    r.coset.release();
    r.coset_inverse.release();
    r.arena.reset();
}

/* The domain of which h has one point less than elements; 0 when there is none. */
static uint32_t log2_of_domain(size_t h_len)
{
    uint32_t log2_len = 1;

    while (log2_len <= NTT_LOG2_MAX && ((size_t)1 << log2_len) - 1 != h_len)
        log2_len++;
    return log2_len <= NTT_LOG2_MAX ? log2_len : 0;
}

static int load_all(prover &p, const struct srs *srs, backend_progress progress, void *ctx,
                    struct errmsg *err)
{
    resident_parameters &r = p.resident;
    const uint64_t g1_points = srs->h_len + srs->l_len + srs->a_len + srs->b_len;
    loading l = {p, progress, ctx, 0, g1_points * sizeof(g1_point) + srs->b_len * sizeof(g2_point)};
    const prove_lens n = {(uint32_t)srs->vk.ic_len, (uint32_t)srs->l_len,
                          log2_of_domain(srs->h_len)};

    if (n.log2_domain == 0)
        return errmsg_set(err, -EINVAL, "%zu points in h fit no domain", srs->h_len);
    r.h_len = srs->h_len;
    r.l_len = srs->l_len;
    r.a_len = srs->a_len;
    r.b_len = srs->b_len;
    r.n_inputs = srs->vk.ic_len;
    r.log2_domain = n.log2_domain;
    r.alpha_g1 = srs->vk.alpha_g1;
    r.delta_g1 = srs->vk.delta_g1;
    TRY(load_points(l, r, srs, err));
    TRY(make_plans(p.g, r, err));
    TRY(allocate_arena(r, n, srs, err));
    r.loaded = true;
    return 0;
}

int prover::load(const struct srs *srs, backend_progress progress, void *progress_ctx,
                 struct errmsg *err)
{
    CUDA_TRY(cudaSetDevice(g.index), err);
    if (same_parameters(resident, srs))
        return 0;
    release(resident);
    int ret = load_all(*this, srs, progress, progress_ctx, err);
    if (ret < 0)
        release(resident);
    return ret;
}

/* ---- sums ---- */

/* Time since it was last asked. */
struct stopwatch {
    std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();

    double lap_ms()
    {
        const auto now = std::chrono::steady_clock::now();
        const double ms = std::chrono::duration<double, std::milli>(now - last).count();

        last = now;
        return ms;
    }
};

struct proving {
    prover &p;
    gpu &g;
    const resident_parameters &r;
    const struct assignment *w;
    prove_space s;
    prover_times &times;
    stopwatch watch;

    /* Queues the copy of one vector of row values; what the main stream is given after this waits for it. */
    int upload_rows(fr *rows, const fr_t *host, struct errmsg *err)
    {
        const size_t n = w->n_rows, padding = ((size_t)1 << r.log2_domain) - n;

        CUDA_TRY(cudaMemsetAsync(rows + n, 0, padding * sizeof(fr), p.up.stream.handle), err);
        TRY(p.up.copy(rows, host, n * sizeof(fr), err));
        return p.up.before(g.main, err);
    }

    int upload_bitmap(const bitmap &b, const uint64_t *host, size_t len, struct errmsg *err)
    {
        return p.up.copy(b.bits, host, (len + 63) / 64 * sizeof(*host), err);
    }

    int upload_witness(struct errmsg *err)
    {
        TRY(p.up.copy(s.values, w->inputs, w->n_inputs * sizeof(fr), err));
        TRY(p.up.copy(s.values + w->n_inputs, w->aux, (size_t)w->n_aux * sizeof(fr), err));
        TRY(upload_bitmap(s.a_aux, w->a_aux_density, w->n_aux, err));
        TRY(upload_bitmap(s.b_inputs, w->b_input_density, w->n_inputs, err));
        TRY(upload_bitmap(s.b_aux, w->b_aux_density, w->n_aux, err));
        return p.up.before(g.main, err);
    }

    /* Uploads the rows and queues h times g^m - 1, in reversed order. While b is on the bus, a is transformed; c takes the
     * place of a. */
    int transform_rows(struct errmsg *err)
    {
        const size_t domain = (size_t)1 << r.log2_domain;

        TRY(p.up.after(g.main, err)); /* the last sums may still use the memory */
        TRY(upload_rows(s.rows_a, w->a, err));
        TRY(ntt_to_reversed(g, r.inverse, s.rows_a, s.h, err));
        TRY(ntt_to_natural(g, r.coset, s.h, s.h, err));
        TRY(upload_rows(s.rows_b, w->b, err));
        TRY(ntt_multiply(g, domain, s.rows_a, s.rows_b, s.rows_a, err));
        TRY(ntt_to_reversed(g, r.inverse, s.rows_a, s.rows_a, err));
        TRY(ntt_to_reversed(g, r.inverse, s.rows_b, s.rows_b, err));
        TRY(ntt_to_natural(g, r.coset, s.rows_b, s.rows_b, err));
        TRY(ntt_multiply(g, domain, s.h, s.rows_b, s.h, err));
        return ntt_to_reversed_minus(g, r.coset_inverse, s.h, s.h, s.rows_a, err);
    }

    /* h has degree m - 2 at most, whatever the assignment: else a transform was wrong. */
    int check_degree(struct errmsg *err)
    {
        fr *last = g.host_space().take<fr>(1);

        CUDA_TRY(cudaMemcpyAsync(last, s.h + ((size_t)1 << r.log2_domain) - 1, sizeof(fr),
                                 cudaMemcpyDeviceToHost, g.main.handle),
                 err);
        CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
        if (!is_zero(*last))
            return errmsg_set(err, -EBADMSG,
                              "h has a coefficient too many: cuda transforms are wrong");
        return 0;
    }

    int sum_h(g1_t *out, struct errmsg *err)
    {
        const msm_input<fp> in = {r.h.ptr, s.h, r.h_convert, nullptr, nullptr, (uint32_t)r.h.len};

        return msm<fp>(g, in, s.rest, p.workers, out, err);
    }

    int classify(struct errmsg *err)
    {
        TRY(classify_values(g, s.values, w->n_inputs, s.input_ones, s.input_rest, err));
        TRY(classify_values(g, s.values + w->n_inputs, w->n_aux, s.aux_ones, s.aux_rest, err));
        TRY(rank_bitmap(g, s.a_aux.bits, w->n_aux, s.a_aux.rank, s.rest, err));
        TRY(rank_bitmap(g, s.b_inputs.bits, w->n_inputs, s.b_inputs.rank, s.rest, err));
        return rank_bitmap(g, s.b_aux.bits, w->n_aux, s.b_aux.rank, s.rest, err);
    }

    selection_part inputs_part(const uint32_t *density, const uint32_t *rank) const
    {
        return {w->n_inputs, s.input_ones, s.input_rest, density, rank, 0, 0};
    }

    selection_part aux_part(const uint32_t *density, const uint32_t *rank,
                            uint32_t first_point) const
    {
        return {w->n_aux, s.aux_ones, s.aux_rest, density, rank, first_point, w->n_inputs};
    }

    int begin_selection(struct errmsg *err)
    {
        CUDA_TRY(cudaMemsetAsync(s.chosen.lens, 0, 2 * sizeof(*s.chosen.lens), g.main.handle), err);
        return 0;
    }

    /* How many were chosen, from the device. */
    int end_selection(uint32_t lens[2], struct errmsg *err)
    {
        uint32_t *host = g.host_space().take<uint32_t>(2);

        CUDA_TRY(cudaMemcpyAsync(host, s.chosen.lens, 2 * sizeof(*host), cudaMemcpyDeviceToHost,
                                 g.main.handle),
                 err);
        CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
        lens[0] = host[0];
        lens[1] = host[1];
        return 0;
    }

    /* The ones beside the rest, which alone would not fill the chip; one after the other if memory is short. */
    template <class F>
    int sum_chosen(const affine<F> *points, const uint32_t lens[2],
                   typename host_group<F>::sum *out, struct errmsg *err)
    {
        const msm_input<F> in = {
            points, s.values, fr_integer_one(), s.chosen.rest_points, s.chosen.rest_values,
            lens[1]};
        typename host_group<F>::sum ones, rest;
        const size_t room = s.rest.size - s.rest.used;
        const bool together =
            sum_scratch_bytes<F>(lens[0]) + msm_scratch_bytes<F>(lens[1], 4) <= room;
        scratch rest_space = s.rest;
        sum_begun<F> begun;

        TRY(sum_points_begin<F>(g, points, s.chosen.one_points, lens[0], rest_space, &begun, err));
        if (!together) {
            TRY(sum_points_end<F>(g, begun, &ones, err));
            rest_space = s.rest;
        }
        TRY(msm<F>(g, in, rest_space, p.workers, &rest, err));
        if (together)
            TRY(sum_points_end<F>(g, begun, &ones, err));
        host_add(&ones, &rest);
        *out = ones;
        return 0;
    }

    static void host_add(g1_t *r, const g1_t *p)
    {
        blst_p1_add_or_double(r, r, p);
    }

    static void host_add(g2_t *r, const g2_t *p)
    {
        blst_p2_add_or_double(r, r, p);
    }

    int sum_variables(struct groth16_sums *out, struct errmsg *err)
    {
        uint32_t lens[2] = {0, 0};

        TRY(begin_selection(err));
        TRY(select_part(g, aux_part(nullptr, nullptr, 0), s.chosen, err));
        TRY(end_selection(lens, err));
        times.classify = watch.lap_ms();
        TRY(sum_chosen<fp>(r.l.ptr, lens, &out->l, err));
        times.l = watch.lap_ms();

        TRY(begin_selection(err));
        TRY(select_part(g, inputs_part(nullptr, nullptr), s.chosen, err));
        TRY(select_part(g, aux_part(s.a_aux.bits, s.a_aux.rank, w->n_inputs), s.chosen, err));
        TRY(end_selection(lens, err));
        TRY(sum_chosen<fp>(r.a.ptr, lens, &out->a, err));
        times.a = watch.lap_ms();

        TRY(begin_selection(err));
        TRY(select_part(g, inputs_part(s.b_inputs.bits, s.b_inputs.rank), s.chosen, err));
        TRY(select_part(g, aux_part(s.b_aux.bits, s.b_aux.rank, w->b_input_total), s.chosen, err));
        TRY(end_selection(lens, err));
        TRY(sum_chosen<fp>(r.b_g1.ptr, lens, &out->b_g1, err));
        times.b_g1 = watch.lap_ms();
        TRY(sum_chosen<fp2>(r.b_g2.ptr, lens, &out->b_g2, err));
        times.b_g2 = watch.lap_ms();
        return 0;
    }

    int all(struct groth16_sums *out, struct errmsg *err)
    {
        TRY(transform_rows(err));
        times.upload_rows = watch.lap_ms();
        TRY(upload_witness(err));
        times.upload_witness = watch.lap_ms();
        TRY(check_degree(err));
        times.h = watch.lap_ms();
        TRY(sum_h(&out->h, err));
        times.msm_h = watch.lap_ms();
        TRY(classify(err));
        return sum_variables(out, err);
    }
};

int prover::sums(const struct srs *srs, const struct assignment *w, struct groth16_sums *out,
                 struct errmsg *err)
{
    struct groth16_sums made = {};

    TRY(load(srs, nullptr, nullptr, err));
    if (w->n_rows > (uint64_t)1 << resident.log2_domain)
        return errmsg_set(err, -EINVAL, "%llu rows exceed the domain of 2^%u",
                          (unsigned long long)w->n_rows, resident.log2_domain);
    scratch space;
    space.base = resident.arena.ptr;
    space.size = resident.arena.len;
    const prove_lens n = {w->n_inputs, w->n_aux, resident.log2_domain};
    proving run = {*this, g, resident, w, space_layout(n, space), times, {}};
    int ret = run.all(&made, err);
    if (ret < 0) {
        g.drain();
        return ret;
    }
    *out = made;
    return 0;
}
