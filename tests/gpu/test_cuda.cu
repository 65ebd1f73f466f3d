/*
 * The primitives of the CUDA backend on a device: arithmetic against the host's, transforms against the plain ones and those
 * against the CPU backend, sums and transforms of points by known logarithms.
 */
#include "gpu/cuda/point_transform.cuh"
#include "tests/gpu/device_test.cuh"

#include <check.h>

extern "C" {
#include "gpu/backend.h"
#include "gpu/domain.h"
#include "tests/lib/suite.h"
}

static constexpr uint64_t SEED = 0x9e3779b97f4a7c15;
static gpu device;
static struct workers *all_workers;

/* ---- arithmetic ---- */

template <class F> struct results {
    F product, square, sum, difference, inverted, negated;
};

template <class F>
__global__ void operations_kernel(const F *a, const F *b, results<F> *out, uint32_t len)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < len)
        out[i] = {reduce_2p(mul(a[i], b[i])),
                  reduce_2p(sqr(a[i])),
                  add(a[i], b[i]),
                  sub(a[i], b[i]),
                  reduce_2p(inverse(a[i])),
                  reduce_2p(negate_lazy_if(a[i], true))};
}

__global__ void operations_kernel(const fr *a, const fr *b, results<fr> *out, uint32_t len)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < len)
        out[i] = {canonical(mul(a[i], b[i])),
                  canonical(mul_constant(a[i], make_constant(b[i]))),
                  canonical(add(a[i], b[i])),
                  canonical(sub(a[i], b[i])),
                  inverse(a[i]),
                  to_integer(a[i])};
}

template <class F> static results<F> on_host(const F &a, const F &b)
{
    return {reduce_2p(mul(a, b)),
            reduce_2p(sqr(a)),
            add(a, b),
            sub(a, b),
            reduce_2p(inverse(a)),
            reduce_2p(negate_lazy_if(a, true))};
}

static results<fr> on_host(const fr &a, const fr &b)
{
    return {canonical(mul(a, b)), canonical(mul_constant(a, make_constant(b))),
            canonical(add(a, b)), canonical(sub(a, b)),
            inverse(a),           to_integer(a)};
}

static fp random_value(struct random *rng, const fp &)
{
    fp a;

    for (uint32_t &limb : a.v)
        limb = (uint32_t)random_u64(rng);
    a.v[11] %= fp_modulus().v[11];
    return a;
}

static fp2 random_value(struct random *rng, const fp2 &)
{
    return {random_value(rng, fp()), random_value(rng, fp())};
}

static fr random_value(struct random *rng, const fr &)
{
    return as<fr>(random_fr(rng));
}

static void edge(fp &a, int kind)
{
    set_zero(a);
    if (kind == 1)
        a = fp_one();
    if (kind == 2 || kind == 3) /* p - 1, and all limbs but the last full */
        a = sub_raw(fp_modulus(), fp{{1}});
    if (kind == 3)
        for (int k = 0; k < 11; k++)
            a.v[k] = ~0u;
    if (kind == 3)
        a.v[11]--;
}

static void edge(fp2 &a, int kind)
{
    edge(a.c0, kind & 3);
    edge(a.c1, kind >> 2);
}

static void edge(fr &a, int kind)
{
    a = fr_zero();
    if (kind == 1)
        a = fr_one();
    if (kind >= 2)
        a = fr_modulus();
    a.v[0] -= kind == 2;
    if (kind == 3) { /* r + 1, loose */
        a.v[0]++;
    }
}

template <class F> static void compare_operations(int edges)
{
    struct random rng = {SEED};
    std::vector<F> a, b;
    device_buffer<F> d_a, d_b;
    device_buffer<results<F>> d_out;

    for (int i = 0; i < edges; i++)
        for (int j = 0; j < edges; j++) {
            F x, y;
            edge(x, i);
            edge(y, j);
            a.push_back(x);
            b.push_back(y);
        }
    for (int i = 0; i < 20000; i++) {
        a.push_back(random_value(&rng, F()));
        b.push_back(random_value(&rng, F()));
    }
    to_device(d_a, a, device);
    to_device(d_b, b, device);
    MUST(d_out.allocate(a.size(), err));
    operations_kernel<<<blocks_for(a.size(), 128), 128, 0, device.main.handle>>>(
        d_a.ptr, d_b.ptr, d_out.ptr, (uint32_t)a.size());
    MUST_CUDA(cudaGetLastError());
    auto got = from_device(d_out.ptr, a.size(), device);
    for (size_t i = 0; i < a.size(); i++) {
        results<F> want = on_host(a[i], b[i]);
        ck_assert_mem_eq(&got[i].product, &want.product, sizeof(F));
        ck_assert_mem_eq(&got[i].square, &want.square, sizeof(F));
        ck_assert_mem_eq(&got[i].sum, &want.sum, sizeof(F));
        ck_assert_mem_eq(&got[i].difference, &want.difference, sizeof(F));
        ck_assert_mem_eq(&got[i].inverted, &want.inverted, sizeof(F));
        ck_assert_mem_eq(&got[i].negated, &want.negated, sizeof(F));
    }
}

START_TEST(fields__equal_the_hosts)
{
    compare_operations<fp>(4);
    compare_operations<fp2>(16);
    compare_operations<fr>(4);
}
END_TEST

/* ---- transforms ---- */

static std::vector<fr> random_vector(uint32_t log2_len, uint64_t seed)
{
    struct random rng = {SEED + seed};
    std::vector<fr> v((size_t)1 << log2_len);

    for (fr &f : v)
        f = as<fr>(random_fr(&rng));
    return v;
}

static fr one_over(uint32_t log2_len)
{
    return inverse(power(fr_from_u32(2), log2_len));
}

/* The plans that a prover has, and the forward one. */
static void make_plan(uint32_t log2_len, enum ntt_kind kind, bool small, ntt_plan &p)
{
    const fr one = fr_one(), seven = fr_from_u32(7), n = one_over(log2_len);

    switch (kind) {
    case NTT_FORWARD:
        MUST(ntt_plan_create(device, log2_len, false, one, one, small, &p, err));
        return;
    case NTT_INVERSE:
        MUST(ntt_plan_create(device, log2_len, true, one, n, small, &p, err));
        return;
    case NTT_COSET:
        MUST(ntt_plan_create(device, log2_len, false, seven, one, small, &p, err));
        return;
    case NTT_COSET_INVERSE:
        MUST(ntt_plan_create(device, log2_len, true, inverse(seven), n, small, &p, err));
        return;
    }
}

static const enum ntt_kind kinds[] = {NTT_FORWARD, NTT_INVERSE, NTT_COSET, NTT_COSET_INVERSE};

/* A shift belongs to the side that is in reversed order: for values of coefficients that is the input. */
START_TEST(ntt_plain__equals_the_cpu_backend)
{
    const uint32_t log2_len = (uint32_t)_i;
    struct backend *cpu = NULL;

    MUST(backend_cpu_create(all_workers, &cpu, err));
    for (enum ntt_kind kind : kinds) {
        std::vector<fr> v = random_vector(log2_len, log2_len);
        device_buffer<fr> d_v, d_out;
        ntt_plan p;
        make_plan(log2_len, kind, false, p);
        if (p.room.len == 0)
            MUST(p.room.allocate(v.size(), err));
        to_device(d_v, v, device);
        MUST(d_out.allocate(v.size(), err));
        if (kind == NTT_COSET) {
            MUST(ntt_reverse(device, log2_len, d_v.ptr, d_out.ptr, err));
            MUST(ntt_plain_to_natural(device, p, d_out.ptr, d_out.ptr, err));
        } else {
            MUST(ntt_plain_to_reversed(device, p, d_v.ptr, d_v.ptr, err));
            MUST(ntt_reverse(device, log2_len, d_v.ptr, d_out.ptr, err));
        }
        auto got = from_device(d_out.ptr, v.size(), device);
        MUST(cpu->ops->ntt(cpu, (fr_t *)v.data(), log2_len, kind, err));
        ck_assert_mem_eq(got.data(), v.data(), v.size() * sizeof(fr));
    }
    backend_destroy(cpu);
}
END_TEST

static void compare_ntt(uint32_t log2_len, enum ntt_kind kind, bool small)
{
    const size_t len = (size_t)1 << log2_len;
    std::vector<fr> v = random_vector(std::min(log2_len, 16u), log2_len);
    device_buffer<fr> d_v, d_fast, d_plain;
    ntt_plan p;

    make_plan(log2_len, kind, small, p);
    if (p.room.len == 0)
        MUST(p.room.allocate(len, err));
    MUST(d_v.allocate(len, err));
    for (size_t i = 0; i < len;
         i += v.size()) { /* not periodic: every copy starts with another value */
        v[0].v[0] = (uint32_t)(i >> 4) + 5;
        MUST_CUDA(cudaMemcpy(d_v.ptr + i, v.data(), v.size() * sizeof(fr), cudaMemcpyHostToDevice));
    }
    MUST_CUDA(cudaDeviceSynchronize());
    MUST(d_fast.allocate(len, err));
    MUST(d_plain.allocate(len, err));
    for (int in_place = 0; in_place < 2; in_place++)
        for (int to_natural = 0; to_natural < 2; to_natural++) {
            const fr *in = d_v.ptr;
            if (in_place) {
                MUST_CUDA(cudaMemcpyAsync(d_fast.ptr, d_v.ptr, len * sizeof(fr),
                                          cudaMemcpyDeviceToDevice, device.main.handle));
                in = d_fast.ptr;
            }
            if (to_natural) {
                MUST(ntt_to_natural(device, p, in, d_fast.ptr, err));
                MUST(ntt_plain_to_natural(device, p, d_v.ptr, d_plain.ptr, err));
            } else {
                MUST(ntt_to_reversed(device, p, in, d_fast.ptr, err));
                MUST(ntt_plain_to_reversed(device, p, d_v.ptr, d_plain.ptr, err));
            }
            auto fast = from_device(d_fast.ptr, len, device),
                 plain = from_device(d_plain.ptr, len, device);
            ck_assert_msg(memcmp(fast.data(), plain.data(), len * sizeof(fr)) == 0,
                          "2^%u kind %d to_natural %d in_place %d", log2_len, kind, to_natural,
                          in_place);
        }
}

START_TEST(ntt__equals_the_plain_one)
{
    for (enum ntt_kind kind : kinds)
        for (bool small : {false, true})
            compare_ntt((uint32_t)_i, kind, small);
}
END_TEST

START_TEST(ntt__equals_the_plain_one_at_large_sizes)
{
    for (uint32_t log2_len = 23; log2_len <= NTT_LOG2_MAX; log2_len++)
        compare_ntt(log2_len, kinds[log2_len % 4], log2_len & 1); /* each kind of plan */
}
END_TEST

START_TEST(ntt__subtracts)
{
    const uint32_t log2_len = (uint32_t)_i;
    std::vector<fr> v = random_vector(log2_len, 1), w = random_vector(log2_len, 2);
    device_buffer<fr> d_v, d_w, d_out;
    ntt_plan p;

    make_plan(log2_len, NTT_COSET_INVERSE, false, p);
    to_device(d_v, v, device);
    to_device(d_w, w, device);
    MUST(d_out.allocate(v.size(), err));
    MUST(ntt_to_reversed(device, p, d_v.ptr, d_out.ptr, err));
    auto whole = from_device(d_out.ptr, v.size(), device);
    MUST(ntt_to_reversed_minus(device, p, d_v.ptr, d_v.ptr, d_w.ptr, err));
    auto got = from_device(d_v.ptr, v.size(), device);
    for (size_t i = 0; i < v.size(); i++)
        ck_assert(equal(got[i], canonical(sub(whole[i], w[i]))));
}
END_TEST

/* ---- sums ---- */

enum points_kind { DISTINCT, ALL_EQUAL, OPPOSITE, SOME_INFINITE, FEW, ALL_INFINITE, POINTS_KINDS };
enum scalars_kind { RANDOM, BITS, ZERO, EDGES, SAME, SMALL, SCALARS_KINDS };

static fr_t log_of(enum points_kind kind, size_t i, const std::vector<fr_t> &base)
{
    fr_t k = base[i % base.size()];

    switch (kind) {
    case ALL_EQUAL:
        k = base[0];
        break;
    case OPPOSITE:
        k = base[i / 2 % base.size()];
        if (i & 1)
            fr_neg(&k, &k);
        break;
    case SOME_INFINITE:
        if (i % 3 == 1)
            k = fr_from_u64(0);
        break;
    case FEW:
        k = base[i * 7 % 5];
        if (i % 11 < 5)
            fr_neg(&k, &k);
        break;
    case ALL_INFINITE:
        k = fr_from_u64(0);
        break;
    default:
        break;
    }
    return k;
}

static fr_t scalar_of(enum scalars_kind kind, size_t i, struct random *rng)
{
    fr_t s = random_fr(rng), one = fr_from_u64(1);

    switch (kind) {
    case BITS:
        return fr_from_u64(random_u64(rng) & 1);
    case ZERO:
        return fr_from_u64(0);
    case EDGES:
        s = fr_from_u64(i % 3 == 1);
        if (i % 3 == 2)
            fr_neg(&s, &one); /* r - 1 */
        return s;
    case SAME:
        return fr_from_u64(0x123456789abcdef);
    case SMALL:
        return fr_from_u64(random_u64(rng) & 255);
    default:
        return s;
    }
}

template <class F> struct terms {
    std::vector<fr_t> logs, scalars;
    device_buffer<affine<F>> points;
    device_buffer<fr> d_scalars;
};

template <class F>
static void make_terms(terms<F> &t, size_t len, enum points_kind pk, enum scalars_kind sk)
{
    struct random rng = {SEED + len};
    std::vector<fr_t> base(len);
    std::vector<affine<F>> points;
    std::vector<fr> scalars(len);

    for (fr_t &k : base)
        k = random_fr(&rng);
    t.logs.resize(len);
    t.scalars.resize(len);
    for (size_t i = 0; i < len; i++) {
        t.logs[i] = log_of(pk, i, base);
        t.scalars[i] = scalar_of(sk, i, &rng);
        scalars[i] = as<fr>(t.scalars[i]);
    }
    points_of(t.logs, points, all_workers);
    to_device(t.points, points, device);
    to_device(t.d_scalars, scalars, device);
}

template <class F> static scratch make_space(device_buffer<char> &memory, size_t bytes)
{
    scratch s;

    MUST(memory.allocate(bytes, err));
    MUST_CUDA(cudaMemset(memory.ptr, 0xa5, bytes)); /* whatever was there before */
    MUST_CUDA(cudaDeviceSynchronize());
    s.base = memory.ptr;
    s.size = bytes;
    return s;
}

template <class F>
static void check_msm(size_t len, enum points_kind pk, enum scalars_kind sk, uint32_t at_once)
{
    terms<F> t;
    device_buffer<char> memory;
    fr_t want = fr_from_u64(0), term;
    typename host_group<F>::sum got;

    make_terms(t, len, pk, sk);
    for (size_t i = 0; i < len; i++) {
        fr_mul(&term, &t.logs[i], &t.scalars[i]);
        fr_add(&want, &want, &term);
    }
    scratch space = make_space<F>(memory, msm_scratch_bytes<F>((uint32_t)len, at_once));
    msm_input<F> in = {t.points.ptr, t.d_scalars.ptr, fr_integer_one(),
                       nullptr,      nullptr,         (uint32_t)len};
    MUST(msm<F>(device, in, space, all_workers, &got, err));
    ck_assert_msg(is_multiple(got, want), "%zu terms, points %d, scalars %d, windows at once %u",
                  len, pk, sk, at_once);
}

START_TEST(msm_g1__by_logarithms)
{
    for (int sk = 0; sk < SCALARS_KINDS; sk++)
        check_msm<fp>(3000, (enum points_kind)_i, (enum scalars_kind)sk, 0);
}
END_TEST

START_TEST(msm_g2__by_logarithms)
{
    for (int sk = 0; sk < SCALARS_KINDS; sk++)
        check_msm<fp2>(1500, (enum points_kind)_i, (enum scalars_kind)sk, 0);
}
END_TEST

START_TEST(msm__of_any_length)
{
    for (size_t len : {1, 2, 3, 31, 32, 33, 127, 128, 129, 1000, 4097}) {
        check_msm<fp>(len, DISTINCT, RANDOM, 0);
        check_msm<fp2>(len, DISTINCT, RANDOM, 0);
    }
}
END_TEST

START_TEST(msm__in_groups_of_windows)
{
    for (uint32_t at_once : {1, 2, 3, 5}) {
        check_msm<fp>(5000, DISTINCT, RANDOM, at_once);
        check_msm<fp>(5000, FEW, BITS, at_once);
        check_msm<fp2>(2000, DISTINCT, RANDOM, at_once);
    }
}
END_TEST

START_TEST(msm__of_many_terms)
{
    check_msm<fp>(1u << 20, DISTINCT, RANDOM, 0);
    check_msm<fp>((1u << 20) - 12345, SOME_INFINITE, SAME, 2);
    check_msm<fp>(1u << 18, ALL_EQUAL, SAME, 0);
    check_msm<fp>(1u << 18, OPPOSITE, BITS, 0);
    check_msm<fp2>(1u << 18, DISTINCT, RANDOM, 0);
    check_msm<fp2>((1u << 16) + 1, FEW, RANDOM, 1);
}
END_TEST

/* Enough terms that blocks sort what CUB's passes left; then so many equal ones that they cannot. */
START_TEST(msm__of_bins)
{
    const size_t len = 1u << 24, n_points = 1u << 16;
    struct random rng = {SEED};
    terms<fp> t;
    std::vector<fr> scalars(len);
    std::vector<uint32_t> index(len);
    device_buffer<fr> d_scalars;
    device_buffer<uint32_t> d_index;
    device_buffer<char> memory;
    scratch space = make_space<fp>(memory, msm_scratch_bytes<fp>((uint32_t)len, 0));

    make_terms(t, n_points, DISTINCT, ZERO);
    for (size_t equal_ones : {(size_t)0, len / 8}) {
        std::vector<fr_t> of_point(n_points, fr_from_u64(0));
        fr_t want = fr_from_u64(0), s = random_fr(&rng), term;
        g1_t got;
        for (size_t i = 0; i < len; i++) {
            if (i >= equal_ones)
                s = random_fr(&rng);
            scalars[i] = as<fr>(s);
            index[i] = (uint32_t)(random_u64(&rng) % n_points);
            fr_add(&of_point[index[i]], &of_point[index[i]], &s);
        }
        for (size_t k = 0; k < n_points; k++) {
            fr_mul(&term, &of_point[k], &t.logs[k]);
            fr_add(&want, &want, &term);
        }
        to_device(d_scalars, scalars, device);
        to_device(d_index, index, device);
        msm_input<fp> in = {t.points.ptr, d_scalars.ptr, fr_integer_one(),
                            d_index.ptr,  nullptr,       (uint32_t)len};
        MUST(msm<fp>(device, in, space, all_workers, &got, err));
        ck_assert_msg(is_multiple(got, want), "%zu equal scalars", equal_ones);
    }
}
END_TEST

START_TEST(msm__says_that_scratch_is_short)
{
    terms<fp> t;
    device_buffer<char> memory;
    struct errmsg message = {};
    g1_t got;

    make_terms(t, 1000, DISTINCT, RANDOM);
    scratch space = make_space<fp>(memory, 1 << 16);
    msm_input<fp> in = {t.points.ptr, t.d_scalars.ptr, fr_integer_one(), nullptr, nullptr, 1000};
    ck_assert_int_eq(msm<fp>(device, in, space, all_workers, &got, &message), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(message.text, "scratch"));
}
END_TEST

/* Index lists: scalars and points picked out of longer arrays. */
template <class F> static void check_indexed(size_t len)
{
    terms<F> t;
    device_buffer<char> memory;
    device_buffer<uint32_t> d_points, d_scalars;
    std::vector<uint32_t> point_index, scalar_index;
    struct random rng = {SEED};
    fr_t want = fr_from_u64(0), term;
    typename host_group<F>::sum got;

    make_terms(t, len, DISTINCT, RANDOM);
    for (size_t i = 0; i < len / 3; i++) {
        point_index.push_back((uint32_t)(random_u64(&rng) % len));
        scalar_index.push_back((uint32_t)(random_u64(&rng) % len));
        fr_mul(&term, &t.logs[point_index[i]], &t.scalars[scalar_index[i]]);
        fr_add(&want, &want, &term);
    }
    to_device(d_points, point_index, device);
    to_device(d_scalars, scalar_index, device);
    scratch space = make_space<F>(memory, msm_scratch_bytes<F>((uint32_t)len, 0));
    msm_input<F> in = {t.points.ptr, t.d_scalars.ptr, fr_integer_one(),
                       d_points.ptr, d_scalars.ptr,   (uint32_t)point_index.size()};
    MUST(msm<F>(device, in, space, nullptr, &got, err));
    ck_assert(is_multiple(got, want));
}

START_TEST(msm__takes_indices)
{
    check_indexed<fp>(5000);
    check_indexed<fp2>(2000);
}
END_TEST

template <class F> static void check_sum(size_t len, enum points_kind pk)
{
    const size_t n_points = 4096;
    static terms<F> t[POINTS_KINDS];
    device_buffer<char> memory;
    device_buffer<uint32_t> d_index;
    std::vector<uint32_t> index(len);
    struct random rng = {SEED + len};
    fr_t want = fr_from_u64(0);
    typename host_group<F>::sum got;

    if (t[pk].logs.empty())
        make_terms(t[pk], n_points, pk, ZERO);
    for (uint32_t &i : index) {
        i = (uint32_t)(random_u64(&rng) % n_points);
        fr_add(&want, &want, &t[pk].logs[i]);
    }
    to_device(d_index, index, device);
    scratch space = make_space<F>(memory, sum_scratch_bytes<F>((uint32_t)len));
    MUST(sum_points<F>(device, t[pk].points.ptr, d_index.ptr, (uint32_t)len, space, &got, err));
    ck_assert_msg(is_multiple(got, want), "%zu points of kind %d", len, pk);
}

START_TEST(sum_points__by_logarithms)
{
    for (size_t len : {0, 1, 2, 3, 255, 256, 257, 513, 1025, 4000, 100001}) {
        check_sum<fp>(len, (enum points_kind)_i);
        check_sum<fp2>(len, (enum points_kind)_i);
    }
}
END_TEST

/* Every kernel with shared memory at the least size that reaches it: racecheck takes thousands of times as long. */
START_TEST(race__transforms)
{
    for (uint32_t log2_len : {5, 12, 13})
        compare_ntt(log2_len, kinds[log2_len % 4], log2_len == 13);
}
END_TEST

START_TEST(race__sums)
{
    check_msm<fp>(600, DISTINCT, RANDOM, 0);
    check_msm<fp>(600, FEW, BITS, 2);
    check_msm<fp2>(300, DISTINCT, RANDOM, 0);
    check_sum<fp>(513, DISTINCT);
    check_sum<fp2>(257, OPPOSITE);
}
END_TEST

/* ---- transforms of points ---- */

/* The logarithms of a transform's results, by the CPU's transform of scalars, which divides by the length. */
static std::vector<fr_t> transformed_logs(std::vector<fr_t> logs, uint32_t log2_len,
                                          const fr_t &shift, const fr_t &factor)
{
    struct backend *cpu = NULL;
    fr_t power = fr_from_u64(logs.size());

    fr_mul(&power, &power, &factor);
    for (fr_t &log : logs) {
        fr_mul(&log, &log, &power);
        fr_mul(&power, &power, &shift);
    }
    MUST(backend_cpu_create(all_workers, &cpu, err));
    if (log2_len > 0)
        MUST(cpu->ops->ntt(cpu, logs.data(), log2_len, NTT_INVERSE, err));
    backend_destroy(cpu);
    return logs;
}

struct heard {
    uint64_t done, total;
};

static void hear(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    heard &h = *(heard *)ctx;

    ck_assert_str_eq(stage, "transform");
    ck_assert(done > h.done && done <= total);
    h = {done, total};
}

static void check_point_transform(uint32_t log2_len, enum points_kind kind, const fr_t &shift,
                                  const fr_t &factor)
{
    const size_t len = (size_t)1 << log2_len;
    struct random rng = {SEED + log2_len};
    std::vector<fr_t> base(len), logs(len);
    std::vector<g1_point> points, want;
    device_buffer<g1_point> d;
    heard h = {};

    for (fr_t &k : base)
        k = random_fr(&rng);
    for (size_t i = 0; i < len; i++)
        logs[i] = log_of(kind, i, base);
    points_of(logs, points, all_workers);
    to_device(d, points, device);
    MUST(transform_points(device, d.ptr, log2_len, as<fr>(shift), as<fr>(factor), hear, &h, err));
    ck_assert_uint_eq(h.done, h.total);
    points_of(transformed_logs(logs, log2_len, shift, factor), want, all_workers);
    ck_assert_msg(
        memcmp(from_device(d.ptr, len, device).data(), want.data(), len * sizeof(g1_point)) == 0,
        "2^%u points of kind %d", log2_len, kind);
}

/* The two that parameters need, and the plain one; those of equal and opposite points are full of equal and opposite points on their
 * way. */
START_TEST(transform_points__by_logarithms)
{
    struct random rng = {SEED};
    const fr_t one = fr_from_u64(1), seven = domain_coset_shift(), factor = random_fr(&rng);
    fr_t shift;

    fr_inverse(&shift, &seven);
    for (int kind = 0; kind < POINTS_KINDS; kind++) {
        check_point_transform((uint32_t)_i, (enum points_kind)kind, one, one);
        check_point_transform((uint32_t)_i, (enum points_kind)kind, one, factor);
        check_point_transform((uint32_t)_i, (enum points_kind)kind, shift, factor);
    }
}
END_TEST

/* The last one takes more than one launch a level. */
START_TEST(transform_points__of_many)
{
    struct random rng = {SEED};
    const fr_t shift = random_fr(&rng), factor = random_fr(&rng);

    for (uint32_t log2_len : {16u, 18u, 20u, 23u})
        check_point_transform(log2_len, log2_len == 18 ? SOME_INFINITE : DISTINCT, shift, factor);
}
END_TEST

int main()
{
    Suite *s = suite_create("cuda");
    TCase *fields = tcase_create("fields"), *ntt = tcase_create("ntt"),
          *sums = tcase_create("sums"), *bins = tcase_create("bins"),
          *points = tcase_create("points"), *race = tcase_create("race"),
          *large = tcase_create("large"); /* sanitize.sh leaves these out */

    setenv("CK_FORK", "no", 1); /* a forked child has no CUDA context */
    open_gpu_or_skip(device);
    MUST(workers_create(0, &all_workers, err));
    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_add_test(fields, fields__equal_the_hosts);
    tcase_add_loop_test(ntt, ntt_plain__equals_the_cpu_backend, 1, 15);
    tcase_add_loop_test(ntt, ntt__equals_the_plain_one, 1, 15);
    tcase_add_loop_test(large, ntt__equals_the_plain_one, 15, 23);
    tcase_add_loop_test(ntt, ntt__subtracts, 10, 16);
    tcase_add_test(large, ntt__equals_the_plain_one_at_large_sizes);
    tcase_add_loop_test(sums, msm_g1__by_logarithms, 0, POINTS_KINDS);
    tcase_add_loop_test(sums, msm_g2__by_logarithms, 0, POINTS_KINDS);
    tcase_add_test(sums, msm__of_any_length);
    tcase_add_test(sums, msm__in_groups_of_windows);
    tcase_add_test(sums, msm__takes_indices);
    tcase_add_test(sums, msm__says_that_scratch_is_short);
    tcase_add_loop_test(sums, sum_points__by_logarithms, 0, POINTS_KINDS);
    tcase_add_test(bins, msm__of_bins);
    tcase_add_test(race, race__transforms);
    tcase_add_test(race, race__sums);
    tcase_add_test(large, msm__of_many_terms);
    tcase_add_loop_test(points, transform_points__by_logarithms, 0, 7);
    tcase_add_loop_test(large, transform_points__by_logarithms, 7, 13);
    tcase_add_test(large, transform_points__of_many);
    for (TCase *tc : {fields, ntt, sums, bins, points, race, large}) {
        tcase_set_timeout(tc, 600);
        suite_add_tcase(s, tc);
    }
    return suite_run(s);
}
