#include "gpu/cuda/parameters.cuh"

#include "gpu/cuda/develop.cuh"

#include <algorithm>

bool resident_parameters::are(const struct srs *srs) const
{
    return loaded && h_len == srs->h_len && l_len == srs->l_len && a_len == srs->a_len &&
           b_len == srs->b_len && memcmp(&alpha_g1, &srs->vk.alpha_g1, sizeof(alpha_g1)) == 0 &&
           memcmp(&delta_g1, &srs->vk.delta_g1, sizeof(delta_g1)) == 0 &&
           (!streamed.in_use() || streamed.are(srs));
}

struct loading {
    uploader &up;
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
            TRY(up.copy(device + at, host + at, n * sizeof(To), err));
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
static int load_reversed_h(loading &l, resident_parameters &r, const struct srs *srs,
                           struct errmsg *err)
{
    const uint32_t piece = uploader::PIECE / sizeof(g1_point);
    const size_t domain = (size_t)1 << r.log2_domain;
    device_buffer<g1_point> room;

    TRY(room.allocate(piece, err));
    TRY(r.h.allocate(domain, err));
    CUDA_TRY(cudaMemsetAsync(r.h.ptr + domain - 1, 0, sizeof(g1_point), l.up.stream.handle), err);
    for (size_t at = 0; at < srs->h_len; at += piece) {
        const uint32_t n = (uint32_t)std::min<size_t>(piece, srs->h_len - at);
        TRY(l.copy(room.ptr, srs->h + at, n, err));
        reverse_points_kernel<<<blocks_for((uint64_t)n * 6, 256), 256, 0, l.up.stream.handle>>>(
            (const uint4 *)room.ptr, (uint4 *)r.h.ptr, (uint32_t)at, n, r.log2_domain);
        CUDA_TRY(cudaGetLastError(), err);
    }
    return l.up.wait(err); /* before `room` goes */
}

static int load_points(loading &l, resident_parameters &r, const struct srs *srs,
                       struct errmsg *err)
{
    if (r.transformed)
        TRY(l.fill(r.h, srs->h, srs->h_len, err));
    else
        TRY(load_reversed_h(l, r, srs, err));
    TRY(l.fill(r.l, srs->l, srs->l_len, err));
    TRY(l.fill(r.a, srs->a, srs->a_len, err));
    TRY(l.fill(r.b_g1, srs->b_g1, srs->b_len, err));
    TRY(l.fill(r.b_g2, srs->b_g2, srs->b_len, err));
    return l.up.wait(err);
}

int transforms::make(gpu &g, uint32_t log2_domain, bool small, struct errmsg *err)
{
    const fr one = fr_one(), seven = fr_from_u32(7);
    const fr fraction = ::inverse(power(fr_from_u32(2), log2_domain));

    TRY(ntt_plan_create(g, log2_domain, true, one, fraction, small, &inverse, err));
    TRY(ntt_plan_create(g, log2_domain, false, seven, one, small, &coset, err));
    return ntt_plan_create(g, log2_domain, true, ::inverse(seven), fraction, small, &coset_inverse,
                           err);
}

void transforms::release()
{
    inverse.release();
    coset.release();
    coset_inverse.release();
}

uint64_t resident_parameters::bytes() const
{
    const uint64_t points =
        streamed.in_use()
            ? bus_lane::PLACES *
                  (streamed.shape.window_bytes + streamed.shape.slab * sizeof(g1_point))
            : (h.len + l.len + a.len + b_g1.len) * sizeof(g1_point) + b_g2.len * sizeof(g2_point);

    return points + (circuit.loaded ? circuit.bytes : 0);
}

bool resident_parameters::are_as_long_as(const resident_parameters &other) const
{
    return log2_domain == other.log2_domain && l_len == other.l_len && a_len == other.a_len &&
           b_len == other.b_len;
}

/* The domain of so many elements; 0 when there is none. */
static uint32_t log2_of_domain(size_t len)
{
    uint32_t log2_len = 1;

    while (log2_len <= NTT_LOG2_MAX && (size_t)1 << log2_len != len)
        log2_len++;
    return log2_len <= NTT_LOG2_MAX ? log2_len : 0;
}

int resident_parameters::describe(const struct srs *srs, struct errmsg *err)
{
    transformed = srs->transformed;
    log2_domain = log2_of_domain(srs->h_len + !transformed); /* else the last is infinity */
    if (log2_domain == 0)
        return errmsg_set(err, -EINVAL, "%zu points in h fit no domain", srs->h_len);
    if (!srs->l)
        return errmsg_set(err, -ENODATA, "the points of these parameters are not here");
    h_len = srs->h_len;
    l_len = srs->l_len;
    a_len = srs->a_len;
    b_len = srs->b_len;
    n_inputs = srs->vk.ic_len;
    alpha_g1 = srs->vk.alpha_g1;
    delta_g1 = srs->vk.delta_g1;
    if (transformed)
        input_l.assign(srs->input_l, srs->input_l + n_inputs);
    return 0;
}

static g1_affine_t generator_times(const fr_t &k)
{
    g1_t p = {};
    g1_affine_t out;

    g1_mul_add(&p, blst_p1_generator(), &k);
    blst_p1_to_affine(&out, &p);
    return out;
}

void resident_parameters::describe(const struct circuit *c, const struct secrets *t)
{
    log2_domain = c->log2_domain;
    h_len = ((size_t)1 << log2_domain) - 1;
    l_len = c->n_aux;
    a_len = circuit_a_len(c);
    b_len = circuit_b_len(c);
    n_inputs = c->n_inputs;
    alpha_g1 = generator_times(t->alpha);
    delta_g1 = generator_times(t->delta);
}

size_t resident_parameters::points_bytes() const
{
    return (h_len + l_len + a_len + b_len) * sizeof(g1_point) + b_len * sizeof(g2_point);
}

static void become_loaded(resident_parameters &r)
{
    const fr one = fr_one(), power_m = power(fr_from_u32(7), 1ull << r.log2_domain);

    r.h_convert = to_integer(inverse(r.streamed.in_use() ? sub(one, power_m) : sub(power_m, one)));
    if (r.transformed)
        r.h_convert = fr_integer_one();
    r.loaded = true;
}

int resident_parameters::load(uploader &up, const struct srs *srs, bool stream,
                              backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    loading l = {up, progress, progress_ctx, 0, points_bytes()};

    if (stream)
        TRY(streamed.pin(srs, progress, progress_ctx, err));
    else
        TRY(load_points(l, *this, srs, err));
    become_loaded(*this);
    return 0;
}

int resident_parameters::develop(gpu &g, const struct secrets *t, fr_t *ic,
                                 backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    TRY(h.allocate(h_len + 1, err));
    TRY(l.allocate(l_len, err));
    TRY(a.allocate(a_len, err));
    TRY(b_g1.allocate(b_len, err));
    TRY(b_g2.allocate(b_len, err));
    TRY(develop_points(g, circuit, t, {h.ptr, l.ptr, a.ptr, b_g1.ptr, b_g2.ptr}, ic, progress,
                       progress_ctx, err));
    become_loaded(*this);
    return 0;
}

struct input_products {
    const g1_affine_t *points;
    const fr_t *values;
    std::vector<g1_t> out;
};

static void multiply_input(void *ctx, size_t i, unsigned)
{
    input_products &in = *(input_products *)ctx;
    g1_t p;

    if (g1_affine_is_infinity(&in.points[i]))
        return;
    blst_p1_from_affine(&p, &in.points[i]);
    g1_mul_add(&in.out[i], &p, &in.values[i]);
}

void resident_parameters::add_inputs(const fr_t *values, struct workers *workers, g1_t *l) const
{
    input_products in = {input_l.data(), values, std::vector<g1_t>(input_l.size())};

    workers_run(workers, input_l.size(), multiply_input, &in);
    for (const g1_t &p : in.out)
        blst_p1_add_or_double(l, l, &p);
}

/* A thread moves a piece of 16 bytes. */
__global__ void natural_points_kernel(const uint4 *in, uint4 *out, uint32_t first, uint32_t len,
                                      uint32_t log2_len)
{
    constexpr uint32_t PIECES = sizeof(g1_point) / sizeof(uint4);
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, i = t / PIECES;

    if (i < len)
        out[t] = in[(size_t)(__brev(first + i) >> (32 - log2_len)) * PIECES + t % PIECES];
}

static int fetch_h(gpu &g, const resident_parameters &r, size_t first, size_t count, void *points,
                   struct errmsg *err)
{
    device_buffer<g1_point> room;

    TRY(room.allocate(count, err));
    natural_points_kernel<<<blocks_for((uint64_t)count * 6, 256), 256, 0, g.main.handle>>>(
        (const uint4 *)r.h.ptr, (uint4 *)room.ptr, (uint32_t)first, (uint32_t)count, r.log2_domain);
    CUDA_TRY(cudaGetLastError(), err);
    CUDA_TRY(cudaMemcpyAsync(points, room.ptr, count * sizeof(g1_point), cudaMemcpyDeviceToHost,
                             g.main.handle),
             err);
    CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
    return 0;
}

int resident_parameters::fetch(gpu &g, enum srs_section section, size_t first, size_t count,
                               void *points, struct errmsg *err) const
{
    const device_buffer<g1_point> *const g1[] = {&h, &l, &a, &b_g1};
    const size_t lens[] = {h_len, l_len, a_len, b_len, b_len};

    if (!loaded || section >= SRS_SECTIONS || first > lens[section] ||
        count > lens[section] - first)
        return errmsg_set(err, -EINVAL, "no such points are on the device");
    if (section == SRS_H && !transformed)
        return fetch_h(g, *this, first, count, points, err);
    if (section == SRS_B_G2)
        CUDA_TRY(cudaMemcpyAsync(points, b_g2.ptr + first, count * sizeof(g2_point),
                                 cudaMemcpyDeviceToHost, g.main.handle),
                 err);
    else
        CUDA_TRY(cudaMemcpyAsync(points, g1[section]->ptr + first, count * sizeof(g1_point),
                                 cudaMemcpyDeviceToHost, g.main.handle),
                 err);
    CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
    return 0;
}
