/*
 * The order of things is chosen for the bus: the rows' values go up first, and while they are transformed the witness follows.
 *
 * h takes six transforms (groth16.c says why): C is transformed once, and its coefficients are taken off those of the coset's
 * product in that transform's last pass. The common factor 1 / (g^m - 1) costs nothing: the MSM has to take scalars out of
 * Montgomery form by a product anyhow. Transforms to reversed and to natural order alternate, and the scalars of h end in
 * reversed order, as its points are kept. Over transformed parameters four are left, and the scalars of h are what the last of them give.
 */
#include "gpu/cuda/prover.cuh"

#include "gpu/cuda/develop.cuh"
#include "gpu/cuda/msm.cuh"
#include "gpu/cuda/query.cuh"
#include "gpu/cuda/select.cuh"

#include <algorithm>
#include <chrono>

extern "C" {
#include "gpu/groth16.h"
}

/* Left alone when memory is taken: for the driver, and for whoever else is on the card. */
static constexpr size_t RESERVE_BYTES = 512u << 20;

static int open_lane(gpu &g, int device_index, stream_rank rank, struct errmsg *err)
{
    TRY(g.open(device_index, rank, err));
    TRY(msm_prepare<fp>(g, err));
    return msm_prepare<fp2>(g, err);
}

int prover::open(int device_index, struct workers *w, struct errmsg *err)
{
    workers = w;
    /* The many short sums first: they leave gaps that the long one fills, and not the other way round (768 against 797 ms a
     * proof with two on their way, H200). */
    TRY(open_lane(aside, device_index, RANK_FIRST, err));
    TRY(open_lane(g, device_index, RANK_MIDDLE, err));
    TRY(open_lane(early, device_index, RANK_LAST, err));
    TRY(up.create(w, err));
    TRY(last_coefficient.allocate(1, err));
    TRY(window_lane.create(err));
    TRY(h_lane.create(err));
    for (cuda_event *e : {&begun, &evaluated, &ready})
        TRY(e->create(true, err));
    for (flight &f : flights) {
        f.on = this;
        TRY(f.arrived.create(false, err));
    }
    return aside_thread.create("gpu sums", err);
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
    uint32_t inputs, aux, log2_domain, a, b;
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
static size_t arena_bytes(const prove_lens &n, uint32_t at_once)
{
    const prove_space s = space_layout(n, scratch());
    const uint32_t longest = std::max({1u << n.log2_domain, n.a, n.aux, n.b});
    size_t most = 2 * (sizeof(fr) << n.log2_domain) + 512; /* the rows */

    most = std::max(most, rank_scratch_bytes(n.aux) + 256);
    most = std::max(most, msm_scratch_bytes<fp>(longest, at_once));
    most = std::max(most, msm_scratch_bytes<fp2>(n.b, 1));
    most = std::max(most, sum_scratch_bytes<fp>(longest));
    most = std::max(most, sum_scratch_bytes<fp2>(n.b));
    return s.rest.used + most;
}

int available_bytes(const prover &p, size_t *out, struct errmsg *err)
{
    const uint64_t held = device_bytes_here();
    size_t available = 0, total = 0;

    CUDA_TRY(cudaMemGetInfo(&available, &total), err);
    if (p.memory_limit)
        *out = (size_t)std::min<uint64_t>(available, p.memory_limit -
                                                         std::min<uint64_t>(p.memory_limit, held));
    else
        *out = available - std::min(available, RESERVE_BYTES);
    return 0;
}

static scratch whole_arena(const prover &p)
{
    scratch space;

    space.base = p.arena.ptr;
    space.size = p.arena.len;
    return space;
}

static prove_lens lens_of(const resident_parameters &r)
{
    return {(uint32_t)r.n_inputs, (uint32_t)r.l_len, r.log2_domain, (uint32_t)r.a_len,
            (uint32_t)r.b_len};
}

static bool is_domain_used(const prover &p, uint32_t log2_domain)
{
    bool used = false;

    for (const resident_parameters &r : p.sets)
        used |= r.log2_domain == log2_domain;
    return used;
}

/* How proofs work: the more memory, the less time. */
struct workspace_shape {
    bool small_tables;
    uint32_t at_once; /* as in arena_bytes */
};

static constexpr workspace_shape WORKSPACES[] = {{false, 0}, {false, 8}, {false, 4}, {false, 2},
                                                 {false, 1}, {true, 0},  {true, 8},  {true, 4},
                                                 {true, 2},  {true, 1}};
static constexpr workspace_shape LEAST_WORKSPACE = {true, 1};

static size_t arena_bytes_of(const prover &p, bool compact, uint32_t at_once)
{
    size_t most = compact ? 0 : arena_bytes(lens_of(*p.resident), at_once);

    for (const resident_parameters &r : p.sets)
        if (compact && r.circuit.bytes && !r.streamed.in_use())
            most = std::max(most, flight_bytes(r, at_once));
    return most;
}

/* What proofs over any of the sets take beside them. */
static size_t workspace_bytes(const prover &p, bool compact, const workspace_shape &shape)
{
    size_t bytes = arena_bytes_of(p, compact, shape.at_once);

    for (uint32_t d = 0; d <= NTT_LOG2_MAX; d++)
        if (is_domain_used(p, d))
            bytes += transforms::bytes(d, shape.small_tables);
    return bytes;
}

static void release_workspace(prover &p)
{
    p.arena.reset();
    for (transforms &t : p.tables)
        t.release();
}

static int make_tables(prover &p, bool small, struct errmsg *err)
{
    for (uint32_t d = 0; d <= NTT_LOG2_MAX; d++)
        if (is_domain_used(p, d))
            TRY(p.tables[d].make(p.g, d, small, err));
    return 0;
}

/* As much as helps and fits. */
static int take_workspace(prover &p, bool compact, struct errmsg *err)
{
    size_t available = 0, bytes = 0;

    TRY(available_bytes(p, &available, err));
    for (const workspace_shape &shape : WORKSPACES) {
        bytes = workspace_bytes(p, compact, shape);
        if (bytes > available)
            continue;
        TRY(make_tables(p, shape.small_tables, err));
        TRY(p.arena.allocate(arena_bytes_of(p, compact, shape.at_once), err));
        p.at_once = shape.at_once;
        return 0;
    }
    return errmsg_set(
        err, -ENOMEM,
        "proofs over these parameters take %zu MB of device memory beside them, %zu are free",
        bytes >> 20, available >> 20);
}

static int take_streamed_workspace(prover &p, const struct circuit *circuit, struct errmsg *err)
{
    resident_parameters &r = *p.resident;
    size_t available = 0, bytes = 0;

    TRY(make_tables(p, true, err));
    TRY(available_bytes(p, &available, err));
    TRY(choose_stream_shape(r, circuit, available, &bytes, err));
    TRY(p.arena.allocate(bytes, err));
    p.space = streamed_layout(r, whole_arena(p));
    for (unsigned k = 0; k < bus_lane::PLACES; k++) {
        p.window_lane.place[k] = p.space.window[k];
        p.h_lane.place[k] = p.space.slab[k];
    }
    p.window_lane.restart();
    p.h_lane.restart();
    return 0;
}

/* ---- sets of parameters ---- */

resident_parameters *prover::find(const struct srs *srs)
{
    for (resident_parameters &r : sets)
        if (r.are(srs))
            return &r;
    return nullptr;
}

static void drop(prover &p, const resident_parameters &gone)
{
    if (p.resident == &gone)
        p.resident = nullptr;
    p.sets.remove_if([&](const resident_parameters &r) { return &r == &gone; });
}

void prover::evict(const struct srs *srs)
{
    resident_parameters *r = find(srs);

    cudaSetDevice(g.index);
    if (!r || (r == resident && in_flight()))
        return;
    if (r == resident)
        for (bus_lane *lane : {&window_lane, &h_lane})
            lane->restart(); /* what comes over the bus may come from there */
    drop(*this, *r);
    if (sets.empty())
        release_workspace(*this);
    for (uint32_t d = 0; d <= NTT_LOG2_MAX; d++)
        if (!is_domain_used(*this, d))
            tables[d].release();
}

/* Of a circuit there is one set. */
static void drop_those_of_its_circuit(prover &p, const resident_parameters &r)
{
    p.sets.remove_if(
        [&](const resident_parameters &other) { return &other != &r && other.are_as_long_as(r); });
}

/* What may be taken, where `bytes` are wanted for the set at hand: no less, if others can give up what it lacks. */
static int find_room(prover &p, size_t bytes, size_t *available, struct errmsg *err)
{
    TRY(available_bytes(p, available, err));
    if (bytes <= *available || p.sets.size() == 1)
        return 0;
    p.lacks = bytes - *available;
    return errmsg_set(err, -ENOSPC,
                      "parameters take %zu MB of device memory beside others, %zu are free",
                      bytes >> 20, *available >> 20);
}

/* Whether what is to come has no room on the device beside what proofs take at least. */
static int decide_stream(prover &p, size_t bytes, bool compact, bool *stream, struct errmsg *err)
{
    const size_t need = bytes + workspace_bytes(p, compact, LEAST_WORKSPACE);
    size_t available = 0;

    TRY(find_room(p, need, &available, err));
    *stream = need > available;
    if (*stream && !compact)
        return errmsg_set(
            err, -ENOMEM,
            "expanded assignments over these parameters take %zu MB of device memory, "
            "%zu are free",
            need >> 20, available >> 20);
    return 0;
}

/* One that streams has the device for itself: the larger its windows, the better. */
static int be_alone(prover &p, struct errmsg *err)
{
    if (p.sets.size() == 1)
        return 0;
    p.lacks = UINT64_MAX;
    return errmsg_set(err, -ENOSPC, "parameters that are streamed go with no others");
}

static int describe_circuit(prover &p, const struct circuit *circuit, const circuit_extract &x,
                            struct errmsg *err)
{
    resident_parameters &r = *p.resident;

    if (circuit->n_aux != r.l_len || circuit->log2_domain != r.log2_domain ||
        circuit_a_len(circuit) != r.a_len || circuit_b_len(circuit) != r.b_len)
        return errmsg_set(err, -EINVAL, "these parameters are for another circuit");
    return r.circuit.describe(circuit, x, err);
}

static int begin_set(prover &p, const struct srs *srs, struct errmsg *err)
{
    p.resident = p.find(srs);
    if (p.resident)
        return 0;
    p.sets.emplace_back();
    p.resident = &p.sets.back();
    TRY(p.resident->describe(srs, err));
    drop_those_of_its_circuit(p, *p.resident);
    return 0;
}

/* Brings what is not there of p.resident: circuit, points; if it has room, and a workspace too. */
static int load_set(prover &p, const struct srs *srs, const struct circuit *circuit,
                    backend_progress progress, void *ctx, struct errmsg *err)
{
    resident_parameters &r = *p.resident;
    const bool new_circuit = circuit && !r.circuit.is(circuit);
    bool stream = r.streamed.in_use();
    circuit_extract x;

    if (new_circuit) {
        x = extract_circuit(circuit);
        TRY(describe_circuit(p, circuit, x, err));
    }
    const size_t bytes = (r.loaded ? 0 : r.points_bytes()) + (new_circuit ? r.circuit.bytes : 0);
    if (!stream)
        TRY(decide_stream(p, bytes, circuit != nullptr, &stream, err));
    if (stream)
        TRY(be_alone(p, err));
    if (new_circuit)
        TRY(r.circuit.load(p.g, p.up, circuit, x, err));
    return r.loaded ? 0 : r.load(p.up, srs, stream, progress, ctx, err);
}

static bool is_there(const prover &p, const struct srs *srs, const struct circuit *c)
{
    return p.resident && p.resident->are(srs) && p.arena.ptr &&
           p.arena_is_compact == (c != nullptr) && (!c || p.resident->circuit.is(c));
}

/* Whether proofs over one of the sets need no more than the workspace that there is. */
static bool is_ready(prover &p, const struct srs *srs, const struct circuit *c)
{
    const resident_parameters *r = p.find(srs);

    return r && c && r->circuit.is(c) && !r->streamed.in_use() && p.arena.ptr &&
           p.arena_is_compact && flight_bytes(*r, p.at_once) <= p.arena.len;
}

static int load_all(prover &p, const struct srs *srs, const struct circuit *circuit,
                    backend_progress progress, void *ctx, struct errmsg *err)
{
    const bool compact = circuit != nullptr, ready = is_ready(p, srs, circuit);

    if (!ready)
        release_workspace(p);
    TRY(begin_set(p, srs, err));
    if (!ready) {
        TRY(load_set(p, srs, circuit, progress, ctx, err));
        p.arena_is_compact = compact;
        if (p.resident->streamed.in_use() && compact)
            return take_streamed_workspace(p, circuit, err);
        if (p.resident->streamed.in_use())
            return errmsg_set(err, -ENOMEM,
                              "expanded assignments are not proved over streamed parameters");
        TRY(take_workspace(p, compact, err));
    }
    if (compact)
        p.space = flight_layout(*p.resident, p.at_once, whole_arena(p));
    return 0;
}

/* After an error the set at hand is not there, unless it was and only lacks room. */
static int settle(prover &p, int ret)
{
    if (ret == 0)
        return 0;
    release_workspace(p);
    if (p.resident && !(ret == -ENOSPC && p.resident->loaded))
        drop(p, *p.resident);
    p.resident = nullptr;
    return ret;
}

int prover::load(const struct srs *srs, const struct circuit *circuit, backend_progress progress,
                 void *progress_ctx, struct errmsg *err)
{
    CUDA_TRY(cudaSetDevice(g.index), err);
    if (is_there(*this, srs, circuit))
        return 0;
    if (in_flight())
        return errmsg_set(err, -EBUSY, "proofs over other parameters are on their way");
    return settle(*this, load_all(*this, srs, circuit, progress, progress_ctx, err));
}

/* Points, circuit, and then what making takes, or proofs at least. */
static int find_room_to_develop(prover &p, struct errmsg *err)
{
    const resident_parameters &r = *p.resident;
    const size_t need =
        r.points_bytes() + r.circuit.bytes +
        std::max(develop_scratch_bytes(r.circuit), workspace_bytes(p, true, LEAST_WORKSPACE));
    size_t available = 0;

    TRY(find_room(p, need, &available, err));
    if (need <= available)
        return 0;
    return errmsg_set(err, -ENOMEM,
                      "parameters that are made on the device take %zu MB of its memory meanwhile, "
                      "%zu are free",
                      need >> 20, available >> 20);
}

static int develop_all(prover &p, const struct circuit *circuit, const struct secrets *t, fr_t *ic,
                       backend_progress progress, void *ctx, struct errmsg *err)
{
    const circuit_extract x = extract_circuit(circuit);

    release_workspace(p);
    p.sets.emplace_back();
    p.resident = &p.sets.back();
    p.resident->describe(circuit, t);
    drop_those_of_its_circuit(p, *p.resident);
    TRY(p.resident->circuit.describe(circuit, x, err));
    TRY(find_room_to_develop(p, err));
    TRY(p.resident->circuit.load(p.g, p.up, circuit, x, err));
    TRY(p.resident->develop(p.g, t, ic, progress, ctx, err));
    TRY(take_workspace(p, true, err));
    p.arena_is_compact = true;
    p.space = flight_layout(*p.resident, p.at_once, whole_arena(p));
    return 0;
}

int prover::develop(const struct circuit *circuit, const struct secrets *t, fr_t *ic,
                    backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    CUDA_TRY(cudaSetDevice(g.index), err);
    if (in_flight())
        return errmsg_set(err, -EBUSY, "proofs are on their way");
    return settle(*this, develop_all(*this, circuit, t, ic, progress, progress_ctx, err));
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
    const transforms &t;
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

    /* Uploads the rows and queues the scalars of h, as in flights.cu. While b is on the bus, a is transformed; c takes the place of
     * a. */
    int transform_rows(struct errmsg *err)
    {
        const size_t domain = (size_t)1 << r.log2_domain;

        TRY(p.up.after(g.main, err)); /* the last sums may still use the memory */
        TRY(upload_rows(s.rows_a, w->a, err));
        TRY(ntt_to_reversed(g, t.inverse, s.rows_a, s.h, err));
        TRY(ntt_to_natural(g, t.coset, s.h, s.h, err));
        TRY(upload_rows(s.rows_b, w->b, err));
        if (!r.transformed) {
            TRY(ntt_multiply(g, domain, s.rows_a, s.rows_b, s.rows_a, err));
            TRY(ntt_to_reversed(g, t.inverse, s.rows_a, s.rows_a, err));
        }
        TRY(ntt_to_reversed(g, t.inverse, s.rows_b, s.rows_b, err));
        TRY(ntt_to_natural(g, t.coset, s.rows_b, s.rows_b, err));
        TRY(ntt_multiply(g, domain, s.h, s.rows_b, s.h, err));
        if (r.transformed)
            return 0;
        return ntt_to_reversed_minus(g, t.coset_inverse, s.h, s.h, s.rows_a, err);
    }

    /* h has degree m - 2 at most, whatever the assignment: else a transform was wrong. */
    int check_degree(struct errmsg *err)
    {
        fr *last = g.host_space().take<fr>(1);

        CUDA_TRY(cudaMemcpyAsync(last, s.h + ((size_t)1 << r.log2_domain) - 1, sizeof(fr),
                                 cudaMemcpyDeviceToHost, g.main.handle),
                 err);
        CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
        if (!r.transformed && !is_zero(*last))
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

    template <class F>
    int sum_chosen(const affine<F> *points, const uint32_t lens[2],
                   typename host_group<F>::sum *out, struct errmsg *err)
    {
        const query<F> q = {points,
                            s.chosen.one_points,
                            lens[0],
                            {points, s.values, fr_integer_one(), s.chosen.rest_points,
                             s.chosen.rest_values, lens[1]}};

        return sum_query<F>(g, q, s.rest, p.workers, out, err);
    }

    int sum_variables(struct groth16_sums *out, struct errmsg *err)
    {
        uint32_t lens[2] = {0, 0};

        TRY(begin_selection(err));
        TRY(select_part(g, aux_part(nullptr, nullptr, 0), s.chosen, err));
        TRY(end_selection(lens, err));
        times.classify = watch.lap_ms();
        TRY(sum_chosen<fp>(r.l.ptr, lens, &out->l, err));
        r.add_inputs(w->inputs, p.workers, &out->l);
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

    if (in_flight())
        return errmsg_set(err, -EBUSY, "proofs are on their way");
    TRY(load(srs, nullptr, nullptr, nullptr, err));
    if (w->n_rows > (uint64_t)1 << resident->log2_domain)
        return errmsg_set(err, -EINVAL, "%llu rows exceed the domain of 2^%u",
                          (unsigned long long)w->n_rows, resident->log2_domain);
    const prove_lens n = {w->n_inputs, w->n_aux, resident->log2_domain, 0, 0};
    proving run = {
        *this, g, *resident, tables[resident->log2_domain], w, space_layout(n, whole_arena(*this)),
        times, {}};
    int ret = run.all(&made, err);
    if (ret < 0) {
        g.drain();
        return ret;
    }
    *out = made;
    return 0;
}
