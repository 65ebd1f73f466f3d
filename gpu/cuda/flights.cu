/*
 * Proofs of compact witnesses, in two steps that overlap from proof to proof.
 *
 * start uploads. finish queues A, B and C of all rows and six transforms (of transformed parameters, A and B and four), and then sums: over
 * h on one thread, over the witness beside it on another, because each of the many short sums alone leaves the chip idle now and then, while
 * its digits are sorted or its last few points wait for the host. One finish at a time: transforms of the next proof beside the sums of
 * this one cost more than they gain (783 ms a proof against 756 one after the other, H200), since they want the same multipliers and each
 * other's shared memory.
 *
 * The transforms are those of groth16.c; the factor of h costs nothing, since the sum takes scalars out of Montgomery form by a
 * product anyhow. Transforms to reversed and to natural order alternate, and the scalars of h end in reversed order, as its points are
 * kept. Four end in natural order, as transformed points are kept.
 */
#include "gpu/cuda/prover.cuh"

#include "gpu/cuda/query.cuh"
#include "gpu/cuda/select.cuh"

#include <algorithm>
#include <chrono>

extern "C" {
#include "gpu/groth16.h"
#include "numa/circuit/compact.h"
}

/* ---- memory ---- */

flight_space flight_layout(const resident_parameters &r, uint32_t at_once, scratch space)
{
    const resident_circuit &c = r.circuit;
    const uint32_t bits = c.n_aux - (c.n_values - c.n_inputs);
    const uint32_t rest = std::max(c.l_rest, c.a_rest);
    const uint32_t rest_at_once = at_once == 1 ? 4 : 0; /* short, beside a long one */
    const size_t domain = (size_t)1 << c.log2_domain;
    flight_space s = {};

    for (device_witness &w : s.witness) {
        w.values = space.take<fr>(c.n_values);
        w.bits = space.take<uint32_t>((size_t)c.aux_words * 2);
    }
    s.vector[0] = space.take<fr>(domain);
    s.ones = space.take<uint32_t>((size_t)bits + 1);
    s.ones_len = space.take<uint32_t>(2);
    s.aside = space;
    space.take<char>(std::max(query_scratch_bytes<fp>(bits, rest, rest_at_once),
                              query_scratch_bytes<fp2>((uint32_t)c.b_len, c.b_rest, rest_at_once)));
    s.aside.size = space.used;
    /* The other vectors have been used when the sum over h begins. */
    s.main = space;
    s.vector[1] = space.take<fr>(domain);
    if (!r.transformed)
        s.vector[2] = space.take<fr>(domain);
    s.main.size = space.used;
    space = s.main;
    space.take<char>(msm_scratch_bytes<fp>(1u << c.log2_domain, at_once));
    s.main.size = std::max(s.main.size, space.used);
    return s;
}

size_t flight_bytes(const resident_parameters &r, uint32_t at_once)
{
    return flight_layout(r, at_once, scratch()).main.size;
}

static double now_ms()
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* ---- start ---- */

static flight *take_flight(prover &p)
{
    std::lock_guard<std::mutex> hold(p.lock);

    for (unsigned i = 0; i < FLIGHTS; i++)
        if (!p.flights[i].used) {
            p.flights[i].used = true;
            p.flights[i].w = p.space.witness[i];
            return &p.flights[i];
        }
    return nullptr;
}

static void end_flight(prover &p, flight &f)
{
    std::lock_guard<std::mutex> hold(p.lock);

    f.used = false;
}

bool prover::in_flight()
{
    std::lock_guard<std::mutex> hold(lock);
    bool any = false;

    for (const flight &f : flights)
        any |= f.used;
    return any;
}

void prover::drain()
{
    g.drain();
    early.drain();
    aside.drain();
    cudaStreamSynchronize(up.stream.handle);
}

/* Values and bits. */
static int upload_witness(prover &p, const flight &f, const struct compact *w, struct errmsg *err)
{
    const resident_circuit &c = p.resident->circuit;

    TRY(p.up.send(f.w.values, w->values, c.n_values * sizeof(fr), err));
    TRY(p.up.send(f.w.bits, w->bits, c.aux_words * sizeof(*w->bits), err));
    CUDA_TRY(cudaEventRecord(f.arrived.handle, p.up.stream.handle), err);
    return 0;
}

int queue_coset_product(gpu &g, const transforms &t, uint32_t log2_domain, fr *a, fr *b,
                        struct errmsg *err)
{
    for (fr *v : {a, b}) {
        TRY(ntt_to_reversed(g, t.inverse, v, v, err));
        TRY(ntt_to_natural(g, t.coset, v, v, err));
    }
    return ntt_multiply(g, (size_t)1 << log2_domain, a, b, a, err);
}

/* The scalars of h in place of a, and c is used up: h times g^m - 1 in reversed order; of transformed parameters, which have no c, A times B
 * over the coset. */
static int transform(prover &p, fr *a, fr *b, fr *c, struct errmsg *err)
{
    const uint32_t log2_domain = p.resident->log2_domain;
    const transforms &t = p.tables[log2_domain];

    TRY(queue_coset_product(p.early, t, log2_domain, a, b, err));
    if (p.resident->transformed)
        return 0;
    TRY(ntt_to_reversed(p.early, t.inverse, c, c, err));
    return ntt_to_reversed_minus(p.early, t.coset_inverse, a, a, c, err);
}

static int queue_h(prover &p, const flight &f, struct errmsg *err)
{
    cudaStream_t early = p.early.main.handle;
    fr *const *v = p.space.vector;

    CUDA_TRY(cudaStreamWaitEvent(early, f.arrived.handle, 0), err);
    CUDA_TRY(cudaEventRecord(p.begun.handle, early), err);
    if (p.resident->streamed.in_use()) {
        TRY(queue_h_streamed(p, f, err));
    } else {
        TRY(evaluate_rows(p.early, p.resident->circuit, f.w, v[0], v[1], v[2], err));
        CUDA_TRY(cudaEventRecord(p.evaluated.handle, early), err);
        TRY(transform(p, v[0], v[1], v[2], err));
    }
    CUDA_TRY(cudaMemcpyAsync(p.last_coefficient.ptr,
                             v[0] + ((size_t)1 << p.resident->log2_domain) - 1, sizeof(fr),
                             cudaMemcpyDeviceToHost, early),
             err);
    CUDA_TRY(cudaEventRecord(p.ready.handle, early), err);
    return 0;
}

int prover::start(const struct srs *srs, const struct compact *w, flight **out, struct errmsg *err)
{
    std::lock_guard<std::mutex> one(starting);
    const double begin = now_ms();

    CUDA_TRY(cudaSetDevice(g.index), err);
    TRY(load(srs, w->circuit, nullptr, nullptr, err));
    flight *f = take_flight(*this);
    if (!f)
        return errmsg_set(err, -EBUSY, "%u proofs are on their way", FLIGHTS);
    f->inputs = w->values;
    int ret = upload_witness(*this, *f, w, err);
    if (ret < 0) {
        drain();
        end_flight(*this, *f);
        return ret;
    }
    times.start = now_ms() - begin;
    *out = f;
    return 0;
}

/* ---- finish ---- */

int select_ones(prover &p, const selection_part &part, uint32_t *len, struct errmsg *err)
{
    const selection out_list = {p.space.ones, nullptr, nullptr, p.space.ones_len};
    uint32_t *host = p.aside.host_space().take<uint32_t>(2);
    cudaStream_t stream = p.aside.main.handle;

    CUDA_TRY(cudaMemsetAsync(p.space.ones_len, 0, 2 * sizeof(*host), stream), err);
    TRY(select_part(p.aside, part, out_list, err));
    CUDA_TRY(
        cudaMemcpyAsync(host, p.space.ones_len, 2 * sizeof(*host), cudaMemcpyDeviceToHost, stream),
        err);
    CUDA_TRY(cudaStreamSynchronize(stream), err);
    *len = host[0];
    return 0;
}

/* The sums over the witness, on the thread beside. */
struct aside_sums {
    prover &p;
    flight &f;
    struct groth16_sums *out;
    struct errmsg err;
    int ret;

    /* The points of a query that bits ask for, and how many. */
    int list_ones(const device_density *d, uint32_t first_point, uint32_t *len, struct errmsg *e)
    {
        const resident_circuit &c = p.resident->circuit;
        const selection_part part = {
            c.n_aux,     f.w.bits, nullptr, d ? d->bits.ptr : nullptr, d ? d->rank.ptr : nullptr,
            first_point, 0};

        return select_ones(p, part, len, e);
    }

    template <class F>
    int sum(const affine<F> *points, uint32_t ones, const device_tail &tail,
            typename host_group<F>::sum *to, struct errmsg *e)
    {
        const query<F> q = {points,
                            p.space.ones,
                            ones,
                            {points, f.w.values, fr_integer_one(), tail.points.ptr, tail.values.ptr,
                             (uint32_t)tail.points.len}};

        return sum_query<F>(p.aside, q, p.space.aside, nullptr, to, e);
    }

    /* Not before the transforms are done: they would only be in each other's way. */
    int all(struct errmsg *e)
    {
        const resident_parameters &r = *p.resident;
        const resident_circuit &c = r.circuit;
        uint32_t ones = 0;

        CUDA_TRY(cudaSetDevice(p.g.index), e);
        if (r.streamed.in_use()) { /* the bus is waited for, not the chip: at once */
            CUDA_TRY(cudaStreamWaitEvent(p.aside.main.handle, f.arrived.handle, 0), e);
            return sum_queries_streamed(p, f, out, e);
        }
        CUDA_TRY(cudaStreamWaitEvent(p.aside.main.handle, p.ready.handle, 0), e);
        TRY(list_ones(nullptr, 0, &ones, e));
        TRY(sum<fp>(r.l.ptr, ones, c.l_tail, &out->l, e));
        TRY(list_ones(&c.a, c.n_inputs, &ones, e));
        TRY(sum<fp>(r.a.ptr, ones, c.a_tail, &out->a, e));
        TRY(list_ones(&c.b, CIRCUIT_B_INPUTS, &ones, e));
        TRY(sum<fp>(r.b_g1.ptr, ones, c.b_tail, &out->b_g1, e));
        return sum<fp2>(r.b_g2.ptr, ones, c.b_tail, &out->b_g2, e);
    }

    static void run(void *ctx)
    {
        aside_sums &s = *(aside_sums *)ctx;
        const double begin = now_ms();

        s.ret = s.all(&s.err);
        s.p.times.aside = now_ms() - begin;
    }
};

static int read_times(prover &p, struct errmsg *err)
{
    float rows, transforms;

    CUDA_TRY(cudaEventElapsedTime(&rows, p.begun.handle, p.evaluated.handle), err);
    CUDA_TRY(cudaEventElapsedTime(&transforms, p.evaluated.handle, p.ready.handle), err);
    p.times.rows = rows;
    p.times.transforms = transforms;
    return 0;
}

/* h has degree m - 2 at most, whatever the witness: else a transform was wrong. */
static int sum_h(prover &p, g1_t *out, struct errmsg *err)
{
    const resident_parameters &r = *p.resident;
    const msm_input<fp> in = {r.h.ptr, p.space.vector[0], r.h_convert,
                              nullptr, nullptr,           (uint32_t)r.h.len};

    CUDA_TRY(cudaEventSynchronize(p.ready.handle), err);
    TRY(read_times(p, err));
    if (!r.transformed && !is_zero(*p.last_coefficient.ptr))
        return errmsg_set(err, -EBADMSG, "h has a coefficient too many: cuda transforms are wrong");
    const double begin = now_ms();
    if (r.streamed.in_use())
        TRY(sum_h_streamed(p, out, err));
    else
        TRY(msm<fp>(p.g, in, p.space.main, p.workers, out, err));
    p.times.main = now_ms() - begin;
    return 0;
}

static int sum_all(prover &p, flight &f, struct groth16_sums *out, struct errmsg *err)
{
    aside_sums beside = {p, f, out, {}, 0};
    g1_t inputs = {};

    CUDA_TRY(cudaSetDevice(p.g.index), err);
    TRY(queue_h(p, f, err));
    p.aside_thread.begin(aside_sums::run, &beside);
    p.resident->add_inputs(f.inputs, p.workers, &inputs); /* while the device transforms */
    int ret = sum_h(p, &out->h, err);
    p.aside_thread.wait();
    host_add(&out->l, &inputs);
    if (ret == 0 && beside.ret < 0)
        ret = errmsg_set(err, beside.ret, "%s", beside.err.text);
    return ret;
}

int prover::finish(flight *f, struct groth16_sums *out, struct errmsg *err)
{
    std::lock_guard<std::mutex> one(finishing);
    struct groth16_sums made = {};
    const double begin = now_ms();
    int ret = sum_all(*this, *f, &made, err);

    if (ret < 0) {
        drain();
        window_lane.restart();
        h_lane.restart();
    }
    end_flight(*this, *f);
    times.finish = now_ms() - begin;
    if (ret == 0)
        *out = made;
    return ret;
}

void prover::abort(flight *f)
{
    cudaSetDevice(g.index);
    cudaEventSynchronize(f->arrived.handle); /* the witness is not borrowed any longer */
    end_flight(*this, *f);
}
