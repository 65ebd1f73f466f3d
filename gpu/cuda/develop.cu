/*
 * First the scalars: Lagrange values at tau, from them the polynomials of all variables by going through the rows' terms, and from
 * those the scalars of the queries. Then a fixed base times all of them.
 */
#include "gpu/cuda/develop.cuh"

#include "gpu/cuda/fixed_base.cuh"
#include "gpu/cuda/ntt.cuh"
#include "gpu/cuda/qap_terms.cuh"

static constexpr uint32_t THREADS = 256;
/* Elements that share an inversion, which costs 380 products by this field's way. */
static constexpr uint32_t SHARED = 64;

/* ---- scalars ---- */

struct lagrange {
    fr tau, omega, step, step_inverse; /* step: omega^threads */
    fr scale;                          /* (tau^m - 1) / m */
    uint32_t len, threads;
};

/* A thread takes every threads-th value, as qap.c takes a chunk. */
__global__ void __launch_bounds__(THREADS) lagrange_kernel(fr *out, const lagrange l)
{
    const uint32_t first = blockIdx.x * THREADS + threadIdx.x;
    fr x = power(l.omega, first), product = fr_one();
    uint32_t end = first;

    if (first >= l.len)
        return;
    for (; end < l.len; end += l.threads) {
        out[end] = product;
        product = mul(product, sub(l.tau, x));
        x = mul(x, l.step);
    }
    product = inverse(canonical(product));
    for (uint32_t i = end; i > first;) {
        i -= l.threads;
        x = mul(x, l.step_inverse);
        out[i] = canonical(mul(mul(mul(out[i], product), x), l.scale));
        product = mul(product, sub(l.tau, x));
    }
}

__device__ static void add_limbs(limb_sums *to, const fr &v)
{
    for (int k = 0; k < fr::LIMBS; k++)
        atomicAdd(&to->v[k], (unsigned long long)v.v[k]);
}

/* A thread takes a row. ONE, which occurs in most rows, is summed in the thread, then in the block. */
__global__ void __launch_bounds__(THREADS)
    scatter_kernel(const __grid_constant__ row_tables t, const row_side side, const fr *values,
                   limb_sums *sums)
{
    __shared__ limb_sums one;
    const uint32_t row = blockIdx.x * THREADS + threadIdx.x;
    fr own = fr_zero();

    if (threadIdx.x < fr::LIMBS)
        one.v[threadIdx.x] = 0;
    __syncthreads();
    if (row < t.n_rows) {
        const row_place at = place_of_row(t, row);
        const fr x = load_fr(values + row);
        for (uint32_t i = side.first[at.row]; i < side.first[at.row + 1]; i++) {
            const struct circuit_term term = side.terms[i];
            const fr product = qap_term(t, term.coeff, x);
            if (term.var == CIRCUIT_ONE)
                own = add(own, product);
            else
                add_limbs(sums + variable_of(t, at.bases, term.var), product);
        }
        own = canonical(own);
        if (!is_zero(own))
            add_limbs(&one, own);
    }
    __syncthreads();
    if (threadIdx.x < fr::LIMBS)
        atomicAdd(&sums[0].v[threadIdx.x], one.v[threadIdx.x]);
}

__global__ void fold_kernel(const limb_sums *sums, fr *out, uint32_t len)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i < len)
        out[i] = fold_limbs(sums[i]);
}

struct combination {
    fr alpha, beta, input_scale, aux_scale; /* 1 / gamma, 1 / delta */
    uint32_t n_inputs, len;
};

/* w = (beta u + alpha v + w) / gamma for inputs, / delta for aux. */
__global__ void combine_kernel(const fr *u, const fr *v, fr *w, const combination c)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i >= c.len)
        return;
    const fr sum = add(add(mul(u[i], c.beta), mul(v[i], c.alpha)), w[i]);
    w[i] = canonical(mul(sum, i < c.n_inputs ? c.input_scale : c.aux_scale));
}

/* The values of the dense aux variables, together. */
__global__ void gather_dense_kernel(const fr *aux, const uint32_t *density, const uint32_t *rank,
                                    uint32_t len, fr *out)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i < len && density[i / 32] >> (i % 32) & 1)
        out[rank[i / 32] + __popc(density[i / 32] & ((1u << i % 32) - 1))] = aux[i];
}

struct powers {
    fr tau, scale; /* (tau^m - 1) / delta */
    uint32_t log2_len;
};

/* tau^i for i in reversed order, and nothing for the last. */
__global__ void powers_kernel(fr *out, uint32_t first, uint32_t len, const powers p)
{
    const uint32_t k = blockIdx.x * THREADS + threadIdx.x;

    if (k >= len)
        return;
    const uint32_t i = __brev(first + k) >> (32 - p.log2_len);
    out[k] = i == (1u << p.log2_len) - 1 ? fr_zero() : canonical(mul(power(p.tau, i), p.scale));
}

static fr own(const fr_t &v)
{
    fr r;

    memcpy(&r, &v, sizeof(r));
    return r;
}

struct scalar_maker {
    gpu &g;
    const resident_circuit &c;
    fr alpha, beta, gamma, delta, tau, vanishing;
    device_buffer<fr> lagrange_values, u, v, w, gathered;
    device_buffer<limb_sums> sums;

    uint32_t variables() const
    {
        return c.n_inputs + c.n_aux;
    }

    int fill_lagrange(struct errmsg *err)
    {
        const fr m = power(fr_from_u32(2), c.log2_domain);
        lagrange l = {};

        l.len = c.tables.n_rows;
        l.threads = blocks_for((l.len + SHARED - 1) / SHARED, THREADS) * THREADS;
        l.tau = tau;
        l.omega = ntt_root(c.log2_domain);
        l.step = canonical(power(l.omega, l.threads));
        l.step_inverse = inverse(l.step);
        l.scale = canonical(mul(vanishing, inverse(m)));
        lagrange_kernel<<<l.threads / THREADS, THREADS, 0, g.main.handle>>>(lagrange_values.ptr, l);
        CUDA_TRY(cudaGetLastError(), err);
        return 0;
    }

    int evaluate(int side, fr *out, struct errmsg *err)
    {
        CUDA_TRY(cudaMemsetAsync(sums.ptr, 0, variables() * sizeof(limb_sums), g.main.handle), err);
        scatter_kernel<<<blocks_for(c.tables.n_rows, THREADS), THREADS, 0, g.main.handle>>>(
            c.tables, c.tables.sides[side], lagrange_values.ptr, sums.ptr);
        CUDA_TRY(cudaGetLastError(), err);
        fold_kernel<<<blocks_for(variables(), THREADS), THREADS, 0, g.main.handle>>>(sums.ptr, out,
                                                                                     variables());
        CUDA_TRY(cudaGetLastError(), err);
        return 0;
    }

    int combine(struct errmsg *err)
    {
        const combination k = {alpha,          beta,       inverse(gamma),
                               inverse(delta), c.n_inputs, variables()};

        combine_kernel<<<blocks_for(k.len, THREADS), THREADS, 0, g.main.handle>>>(u.ptr, v.ptr,
                                                                                  w.ptr, k);
        CUDA_TRY(cudaGetLastError(), err);
        return 0;
    }

    /* The `inputs` first values, then those of the dense variables. */
    int gather(const fr *values, uint32_t inputs, const device_density &d, struct errmsg *err)
    {
        CUDA_TRY(cudaMemcpyAsync(gathered.ptr, values, inputs * sizeof(fr),
                                 cudaMemcpyDeviceToDevice, g.main.handle),
                 err);
        gather_dense_kernel<<<blocks_for(c.n_aux, THREADS), THREADS, 0, g.main.handle>>>(
            values + c.n_inputs, d.bits.ptr, d.rank.ptr, c.n_aux, gathered.ptr + inputs);
        CUDA_TRY(cudaGetLastError(), err);
        return 0;
    }

    int make(const struct secrets *t, struct errmsg *err)
    {
        alpha = own(t->alpha);
        beta = own(t->beta);
        gamma = own(t->gamma);
        delta = own(t->delta);
        tau = own(t->tau);
        vanishing = canonical(sub(power(tau, 1ull << c.log2_domain), fr_one()));
        if (is_zero(vanishing))
            return errmsg_set(err, -EINVAL, "tau is in the domain");
        TRY(lagrange_values.allocate(c.tables.n_rows, err));
        for (device_buffer<fr> *b : {&u, &v, &w})
            TRY(b->allocate(variables(), err));
        TRY(sums.allocate(variables(), err));
        TRY(fill_lagrange(err));
        TRY(evaluate(CIRCUIT_A, u.ptr, err));
        TRY(evaluate(CIRCUIT_B, v.ptr, err));
        TRY(evaluate(CIRCUIT_C, w.ptr, err));
        TRY(combine(err));
        CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
        sums.reset();
        lagrange_values.reset();
        return gathered.allocate(std::max(c.a_len, c.b_len), err);
    }
};

/* ---- points ---- */

static int copy_scalars(void *ctx, fr *out, uint32_t first, uint32_t len, cudaStream_t stream,
                        struct errmsg *err)
{
    CUDA_TRY(cudaMemcpyAsync(out, (const fr *)ctx + first, len * sizeof(fr),
                             cudaMemcpyDeviceToDevice, stream),
             err);
    return 0;
}

static int power_scalars(void *ctx, fr *out, uint32_t first, uint32_t len, cudaStream_t stream,
                         struct errmsg *err)
{
    powers_kernel<<<blocks_for(len, THREADS), THREADS, 0, stream>>>(out, first, len,
                                                                    *(const powers *)ctx);
    CUDA_TRY(cudaGetLastError(), err);
    return 0;
}

struct point_maker {
    gpu &g;
    backend_progress progress;
    void *ctx;
    uint64_t done, total;

    template <class F>
    int multiply(fixed_base<F> &base, const fixed_scalars &s, size_t len, affine<F> *out,
                 struct errmsg *err)
    {
        TRY(base.multiply(g, s, (uint32_t)len, out, err));
        CUDA_TRY(cudaStreamSynchronize(g.main.handle), err);
        done += len;
        if (progress)
            progress(ctx, "points", done, total);
        return 0;
    }
};

size_t develop_scratch_bytes(const resident_circuit &c)
{
    const size_t variables = (size_t)c.n_inputs + c.n_aux;
    const size_t scalars = (sizeof(fr) << c.log2_domain) + variables * sizeof(limb_sums);
    const size_t points = std::max(c.a_len, c.b_len) * sizeof(fr) + fixed_base<fp>::bytes() +
                          fixed_base<fp2>::bytes();

    return 3 * variables * sizeof(fr) + std::max(scalars, points);
}

int develop_points(gpu &g, const resident_circuit &c, const struct secrets *t,
                   const developed_points &out, fr_t *ic, backend_progress progress,
                   void *progress_ctx, struct errmsg *err)
{
    const size_t domain = (size_t)1 << c.log2_domain;
    scalar_maker s = {g, c, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    point_maker p = {g, progress, progress_ctx, 0, domain + c.n_aux + c.a_len + 2 * c.b_len};
    fixed_base<fp> g1;
    fixed_base<fp2> g2;

    TRY(s.make(t, err));
    CUDA_TRY(cudaMemcpy(ic, s.w.ptr, c.n_inputs * sizeof(*ic), cudaMemcpyDeviceToHost), err);
    TRY(g1.create(g, err));
    powers h = {s.tau, canonical(mul(s.vanishing, inverse(s.delta))), c.log2_domain};
    TRY(p.multiply(g1, {power_scalars, &h}, domain, out.h, err));
    TRY(p.multiply(g1, {copy_scalars, s.w.ptr + c.n_inputs}, c.n_aux, out.l, err));
    TRY(s.gather(s.u.ptr, c.n_inputs, c.a, err));
    TRY(p.multiply(g1, {copy_scalars, s.gathered.ptr}, c.a_len, out.a, err));
    TRY(s.gather(s.v.ptr, CIRCUIT_B_INPUTS, c.b, err));
    TRY(p.multiply(g1, {copy_scalars, s.gathered.ptr}, c.b_len, out.b_g1, err));
    TRY(g2.create(g, err));
    return p.multiply(g2, {copy_scalars, s.gathered.ptr}, c.b_len, out.b_g2, err);
}
