/*
 * A thread takes a row. Terms are read again for every instance of a template, which is what the second-level cache is for, as
 * it is for the bits: 16 MB of them at 32 GiB. What moves is the results, 12.9 GB.
 */
#include "gpu/cuda/circuit.cuh"

#include "gpu/cuda/select.cuh"

template <class To, class From>
static int put(uploader &up, device_buffer<To> &d, const From *host, size_t len, struct errmsg *err)
{
    static_assert(sizeof(To) == sizeof(From), "one layout");
    TRY(d.allocate(len, err));
    return up.copy(d.ptr, host, len * sizeof(To), err);
}

static int put_tail(uploader &up, device_tail &d, const circuit_tail &t, struct errmsg *err)
{
    TRY(put(up, d.points, t.points.data(), t.points.size(), err));
    return put(up, d.values, t.values.data(), t.values.size(), err);
}

static int put_density(gpu &g, uploader &up, device_density &d, const uint64_t *bits,
                       uint32_t words, struct errmsg *err)
{
    const uint32_t len = words * 64;
    device_buffer<char> room;
    scratch space;

    TRY(d.bits.allocate((size_t)words * 2, err));
    TRY(d.rank.allocate((size_t)words * 2, err));
    TRY(room.allocate(rank_scratch_bytes(len) + 256, err));
    space.base = room.ptr;
    space.size = room.len;
    TRY(up.copy(d.bits.ptr, bits, words * sizeof(*bits), err));
    TRY(up.before(g.main, err));
    TRY(rank_bitmap(g, d.bits.ptr, len, d.rank.ptr, space, err));
    CUDA_TRY(cudaStreamSynchronize(g.main.handle), err); /* before `room` goes */
    return 0;
}

static int put_tables(resident_circuit &r, uploader &up, const struct circuit *c,
                      const circuit_extract &x, struct errmsg *err)
{
    TRY(put(up, r.coeffs, c->coeffs, c->n_coeffs, err));
    for (int side = 0; side < CIRCUIT_SIDES; side++) {
        const struct circuit_side &s = c->sides[side];
        TRY(put(up, r.first[side], s.first, (size_t)c->template_rows + 1, err));
        TRY(put(up, r.terms[side], s.terms, s.first[c->template_rows], err));
        r.tables.sides[side] = {r.first[side].ptr, r.terms[side].ptr};
    }
    TRY(put(up, r.instances, x.instances.data(), x.instances.size(), err));
    TRY(put(up, r.bases, c->bases, c->n_bases, err));
    TRY(put(up, r.tile_instance, x.tile_instance.data(), x.tile_instance.size(), err));
    TRY(put(up, r.value_aux, c->value_aux, c->n_values - c->n_inputs, err));
    r.tables.coeffs = r.coeffs.ptr;
    r.tables.instances = r.instances.ptr;
    r.tables.bases = r.bases.ptr;
    r.tables.tile_instance = r.tile_instance.ptr;
    r.tables.value_aux = r.value_aux.ptr;
    r.tables.n_instances = c->n_instances;
    r.tables.n_rows = (uint32_t)c->n_rows;
    r.tables.n_inputs = c->n_inputs;
    return 0;
}

static size_t tail_bytes(const circuit_tail &t)
{
    return (t.points.size() + t.values.size()) * sizeof(uint32_t);
}

/* What load allocates, but for what it takes for a moment. */
static size_t circuit_bytes(const struct circuit *c, const circuit_extract &x)
{
    size_t bytes = c->n_coeffs * sizeof(fr) + x.instances.size() * sizeof(row_instance) +
                   c->n_bases * sizeof(struct circuit_base) +
                   (x.tile_instance.size() + c->n_values - c->n_inputs) * sizeof(uint32_t) +
                   4 * (size_t)c->aux_words * sizeof(uint64_t);

    for (const struct circuit_side &s : c->sides)
        bytes += ((size_t)c->template_rows + 1) * sizeof(uint32_t) +
                 s.first[c->template_rows] * sizeof(struct circuit_term);
    return bytes + tail_bytes(x.l) + tail_bytes(x.a) + tail_bytes(x.b);
}

int resident_circuit::describe(const struct circuit *c, const circuit_extract &x,
                               struct errmsg *err)
{
    if (c->n_rows > UINT32_MAX || c->n_rows > (uint64_t)1 << c->log2_domain)
        return errmsg_set(err, -EINVAL, "a circuit of %llu rows", (unsigned long long)c->n_rows);
    n_inputs = c->n_inputs;
    n_aux = c->n_aux;
    n_values = c->n_values;
    aux_words = c->aux_words;
    log2_domain = c->log2_domain;
    a_len = circuit_a_len(c);
    b_len = circuit_b_len(c);
    l_rest = (uint32_t)x.l.points.size();
    a_rest = (uint32_t)x.a.points.size();
    b_rest = (uint32_t)x.b.points.size();
    bytes = circuit_bytes(c, x);
    return 0;
}

int resident_circuit::load(gpu &g, uploader &up, const struct circuit *c, const circuit_extract &x,
                           struct errmsg *err)
{
    loaded = false;
    TRY(put_tables(*this, up, c, x, err));
    TRY(put_tail(up, l_tail, x.l, err));
    TRY(put_tail(up, a_tail, x.a, err));
    TRY(put_tail(up, b_tail, x.b, err));
    TRY(put_density(g, up, a, c->a_density, c->aux_words, err));
    TRY(put_density(g, up, b, c->b_density, c->aux_words, err));
    TRY(up.wait(err));
    loaded = true;
    return 0;
}

/* ---- evaluation ---- */

__device__ static void store_fr(fr *to, const fr &v)
{
    uint4 *q = (uint4 *)to;

    q[0] = make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
    q[1] = make_uint4(v.v[4], v.v[5], v.v[6], v.v[7]);
}

static constexpr uint32_t THREADS = 256;

__global__ void __launch_bounds__(THREADS)
    evaluate_rows_kernel(const __grid_constant__ row_tables t, row_witness w, uint32_t domain,
                         fr *a, fr *b, fr *product)
{
    const uint32_t row = blockIdx.x * THREADS + threadIdx.x;
    fr va = fr_zero(), vb = fr_zero();

    if (row >= domain)
        return;
    if (row < t.n_rows) {
        const row_place at = place_of_row(t, row);
        va = row_value(t, t.sides[CIRCUIT_A], at, w);
        vb = row_value(t, t.sides[CIRCUIT_B], at, w);
    }
    if (a)
        store_fr(a + row, va);
    if (b)
        store_fr(b + row, vb);
    if (product)
        store_fr(product + row, canonical(mul(va, vb)));
}

int evaluate_rows(const gpu &g, const resident_circuit &c, const device_witness &w, fr *a, fr *b,
                  fr *product, struct errmsg *err)
{
    const uint32_t domain = 1u << c.log2_domain;

    evaluate_rows_kernel<<<blocks_for(domain, THREADS), THREADS, 0, g.main.handle>>>(
        c.tables, {w.values, w.bits}, domain, a, b, product);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}
