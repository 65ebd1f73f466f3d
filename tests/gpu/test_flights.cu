/*
 * What proofs of compact witnesses are made of, on a GPU: rows against the host's, parameters made there against their logarithms and
 * the file's digest.
 */
#include "gpu/cuda/circuit.cuh"
#include "gpu/cuda/prover.cuh"
#include "tests/gpu/device_test.cuh"

#include <check.h>
#include <openssl/evp.h>

extern "C" {
#include "gpu/groth16.h"
#include "gpu/point.h"
#include "gpu/secrets.h"
#include "numa/circuit/compact.h"
#include "tests/lib/circuit_qap.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"
}

static constexpr uint64_t SEED = 0x666c69676874;
static struct workers *all_workers;
static struct circuit *small_circuit; /* 2 KiB */
static prover *p;
static std::vector<fr_t> ic;

/* Any bits and values do where nobody asks whether rows are satisfied. */
static struct compact *random_witness(const struct circuit *c, uint64_t seed)
{
    struct random rng = {seed};
    struct compact *w = nullptr;

    MUST(compact_create(c, &w, err));
    memset(w->values, 0, w->bytes);
    for (uint32_t i = 0; i < c->n_aux; i++)
        w->bits[i / 64] |= (random_u64(&rng) & 1) << i % 64;
    for (uint32_t i = 0; i < c->n_values - c->n_inputs; i++)
        w->bits[c->value_aux[i] / 64] &= ~(UINT64_C(1) << c->value_aux[i] % 64);
    for (uint32_t i = 0; i < c->n_values; i++)
        w->values[i] = i % 5 ? random_fr(&rng) : fr_from_u64(i % 3);
    w->values[0] = fr_from_u64(1);
    return w;
}

START_TEST(rows__equal_the_hosts)
{
    const struct circuit *c = small_circuit;
    struct compact *w = random_witness(c, SEED);
    const circuit_extract x = extract_circuit(c);
    const row_tables t = host_row_tables(c, x);
    const row_witness bits = {(const fr *)w->values, (const uint32_t *)w->bits};
    const size_t domain = (size_t)1 << c->log2_domain;
    device_buffer<fr> values, a, b, product;
    device_buffer<uint32_t> d_bits;

    MUST(values.allocate(c->n_values, err));
    MUST(d_bits.allocate(c->aux_words * 2, err));
    for (device_buffer<fr> *v : {&a, &b, &product})
        MUST(v->allocate(domain, err));
    MUST_CUDA(cudaMemcpy(values.ptr, w->values, c->n_values * sizeof(fr), cudaMemcpyHostToDevice));
    MUST_CUDA(cudaMemcpy(d_bits.ptr, w->bits, c->aux_words * 8, cudaMemcpyHostToDevice));
    MUST_CUDA(cudaDeviceSynchronize());
    MUST(evaluate_rows(p->g, p->resident->circuit, {values.ptr, d_bits.ptr}, a.ptr, b.ptr,
                       product.ptr, err));
    const std::vector<fr> got_a = from_device(a.ptr, domain, p->g),
                          got_b = from_device(b.ptr, domain, p->g),
                          got_c = from_device(product.ptr, domain, p->g);
    for (uint32_t row = 0; row < domain; row++) {
        fr want_a = fr_zero(), want_b = fr_zero();
        if (row < c->n_rows) {
            const row_place at = place_of_row(t, row);
            want_a = row_value(t, t.sides[CIRCUIT_A], at, bits);
            want_b = row_value(t, t.sides[CIRCUIT_B], at, bits);
        }
        ck_assert_msg(equal(got_a[row], want_a), "A of row %u", row);
        ck_assert_msg(equal(got_b[row], want_b), "B of row %u", row);
        ck_assert_msg(equal(got_c[row], canonical(mul(want_a, want_b))), "C of row %u", row);
    }
    compact_destroy(w);
}
END_TEST

static void expect_point(const g1_point &got, const fr_t &log, const char *what, size_t i)
{
    g1_t p1 = {};
    g1_affine_t want;

    g1_mul_add(&p1, blst_p1_generator(), &log);
    blst_p1_to_affine(&want, &p1);
    ck_assert_msg(memcmp(&got, &want, sizeof(got)) == 0, "point %zu of %s", i, what);
}

static void expect_point(const g2_point &got, const fr_t &log, const char *what, size_t i)
{
    g2_t p2 = {};
    g2_affine_t want;

    g2_mul_add(&p2, blst_p2_generator(), &log);
    blst_p2_to_affine(&want, &p2);
    ck_assert_msg(memcmp(&got, &want, sizeof(got)) == 0, "point %zu of %s", i, what);
}

static constexpr size_t SAMPLE = 9973;

template <class F>
static void expect_points(const device_buffer<affine<F>> &d, const std::vector<fr_t> &logs,
                          const char *what)
{
    const std::vector<affine<F>> got = from_device(d.ptr, d.len, p->g);

    ck_assert_uint_eq(got.size(), logs.size());
    for (size_t i = 0; i < got.size(); i += i < 20 ? 1 : SAMPLE)
        expect_point(got[i], logs[i], what, i);
}

static size_t reversed_index(uint32_t i, uint32_t bits)
{
    uint32_t r = 0;

    for (uint32_t k = 0; k < bits; k++)
        r |= (i >> k & 1) << (bits - 1 - k);
    return r;
}

/* By the constraint system's own way to its polynomials. */
START_TEST(develop__makes_the_points_of_the_setup)
{
    const struct circuit *c = small_circuit;
    const struct secrets t = secrets_from_labels();
    struct circuit_qap q;
    std::vector<fr_t> l, a, b, h((size_t)1 << c->log2_domain);
    fr_t gamma, delta, power = fr_from_u64(1), scale = fr_from_u64(1), one = scale;

    circuit_qap_make(c, &t.tau, &q);
    fr_inverse(&gamma, &t.gamma);
    fr_inverse(&delta, &t.delta);
    for (size_t i = 0; i < (size_t)c->n_inputs + c->n_aux; i++) {
        fr_t w = q.side[CIRCUIT_C][i], term;
        fr_mul(&term, &t.beta, &q.side[CIRCUIT_A][i]);
        fr_add(&w, &w, &term);
        fr_mul(&term, &t.alpha, &q.side[CIRCUIT_B][i]);
        fr_add(&w, &w, &term);
        fr_mul(&w, &w, i < c->n_inputs ? &gamma : &delta);
        if (i < c->n_inputs)
            ck_assert(fr_equal(&ic[i], &w));
        else
            l.push_back(w);
        if (!fr_is_zero(&q.side[CIRCUIT_A][i]))
            a.push_back(q.side[CIRCUIT_A][i]);
        if (!fr_is_zero(&q.side[CIRCUIT_B][i]))
            b.push_back(q.side[CIRCUIT_B][i]);
    }
    for (uint32_t i = 0; i < c->log2_domain; i++)
        fr_mul(&scale, i ? &scale : &t.tau, i ? &scale : &t.tau);
    fr_sub(&scale, &scale, &one);
    fr_mul(&scale, &scale, &delta);
    for (size_t i = 0; i < h.size(); i++) {
        const size_t at = reversed_index((uint32_t)i, c->log2_domain);
        fr_mul(&h[at], &power, &scale);
        fr_mul(&power, &power, &t.tau);
    }
    h.back() = fr_from_u64(0);
    expect_points(p->resident->l, l, "l");
    expect_points(p->resident->a, a, "a");
    expect_points(p->resident->b_g1, b, "b_g1");
    expect_points(p->resident->b_g2, b, "b_g2");
    expect_points(p->resident->h, h, "h");
    circuit_qap_end(&q);
}
END_TEST

struct encoding {
    const void *points;
    std::vector<uint8_t> *out;
    bool g2;
};

static void encode_one(void *ctx, size_t i, unsigned)
{
    const encoding &e = *(const encoding *)ctx;

    if (e.g2)
        g2_encode(e.out->data() + i * G2_BYTES, (const g2_affine_t *)e.points + i);
    else
        g1_encode(e.out->data() + i * G1_BYTES, (const g1_affine_t *)e.points + i);
}

static void hash_section(EVP_MD_CTX *md, const void *points, size_t len, bool g2)
{
    std::vector<uint8_t> bytes(len * (g2 ? G2_BYTES : G1_BYTES));
    encoding e = {points, &bytes, g2};
    uint8_t count[4];

    store_be32(count, (uint32_t)len);
    workers_run(all_workers, len, encode_one, &e);
    ck_assert_int_eq(EVP_DigestUpdate(md, count, sizeof(count)), 1);
    ck_assert_int_eq(EVP_DigestUpdate(md, bytes.data(), bytes.size()), 1);
}

/* The file that a setup writes, from the points in device memory. */
START_TEST(develop__makes_the_file_of_known_digest)
{
    const struct secrets t = secrets_from_labels();
    const resident_parameters &r = *p->resident;
    char path[VECTOR_PATH_MAX];
    uint8_t got[64];
    char hex[2 * sizeof(got) + 1];
    struct vk vk;
    EVP_MD_CTX *md = EVP_MD_CTX_new();

    MUST(secrets_key(&t, ic.data(), (uint32_t)ic.size(), &vk, err));
    std::vector<uint8_t> key(vk_bytes(vk.ic_len));
    vk_write(key.data(), &vk);
    vk_fini(&vk);
    std::vector<g1_point> reversed = from_device(r.h.ptr, r.h.len, p->g), h(r.h.len);
    for (size_t i = 0; i < h.size(); i++)
        h[i] = reversed[reversed_index((uint32_t)i, r.log2_domain)];
    ck_assert_int_eq(EVP_DigestInit_ex(md, EVP_blake2b512(), nullptr), 1);
    ck_assert_int_eq(EVP_DigestUpdate(md, key.data(), key.size()), 1);
    hash_section(md, h.data(), h.size() - 1, false);
    hash_section(md, from_device(r.l.ptr, r.l.len, p->g).data(), r.l.len, false);
    hash_section(md, from_device(r.a.ptr, r.a.len, p->g).data(), r.a.len, false);
    hash_section(md, from_device(r.b_g1.ptr, r.b_g1.len, p->g).data(), r.b_g1.len, false);
    hash_section(md, from_device(r.b_g2.ptr, r.b_g2.len, p->g).data(), r.b_g2.len, true);
    ck_assert_int_eq(EVP_DigestFinal_ex(md, got, nullptr), 1);
    EVP_MD_CTX_free(md);
    ck_assert(vector_find(path, "params/2KiB.json"));
    char *json = vector_read(path, nullptr);
    hex_encode(hex, got, sizeof(got));
    ck_assert_msg(strstr(json, hex) != nullptr, "%s is not the digest", hex);
    free(json);
}
END_TEST

static int prove(const struct srs *srs, const struct compact *w, struct groth16_sums *out,
                 struct errmsg *err)
{
    flight *f = nullptr;

    TRY(p->start(srs, w, &f, err));
    return p->finish(f, out, err);
}

/* Coordinates are any multiple of the points': the lists that are summed have no fixed order. */
static bool same_sums(const struct groth16_sums &a, const struct groth16_sums &b)
{
    return blst_p1_is_equal(&a.h, &b.h) && blst_p1_is_equal(&a.l, &b.l) &&
           blst_p1_is_equal(&a.a, &b.a) && blst_p1_is_equal(&a.b_g1, &b.b_g1) &&
           blst_p2_is_equal(&a.b_g2, &b.b_g2);
}

/* The parameters that the prover has made. */
static struct srs resident_srs()
{
    const resident_parameters &r = *p->resident;
    struct srs srs = {};

    srs.h_len = r.h_len;
    srs.l_len = r.l_len;
    srs.a_len = r.a_len;
    srs.b_len = r.b_len;
    srs.vk.alpha_g1 = r.alpha_g1;
    srs.vk.delta_g1 = r.delta_g1;
    return srs;
}

static void expect_nothing_behind(const struct srs &srs)
{
    struct compact *w = random_witness(small_circuit, SEED + 1);
    struct groth16_sums want, got;
    struct errmsg err;
    uint64_t failed = 0;

    MUST(prove(&srs, w, &want, err));
    device_fail_call(0);
    MUST(prove(&srs, w, &got, err));
    const uint64_t calls = device_fail_call(0);
    ck_assert(same_sums(got, want));
    const struct device_counts before = device_counts();
    const uint64_t step =
        std::max<uint64_t>(29, calls / 64); /* of thousands, where points are streamed */
    for (uint64_t n = 1; n <= calls; n += n < 40 ? 1 : step) {
        memset(&got, 0xa5, sizeof(got));
        device_fail_call(n);
        const int ret = prove(&srs, w, &got, &err);
        device_fail_call(0);
        failed += ret < 0;
        ck_assert_msg(ret == 0 || ret == -EIO, "call %llu: %d", (unsigned long long)n, ret);
        ck_assert(ret < 0 || same_sums(got, want));
        ck_assert(!p->in_flight());
    }
    MUST(prove(&srs, w, &got, err));
    ck_assert(same_sums(got, want));
    ck_assert_uint_eq(device_counts().allocations, before.allocations);
    ck_assert_uint_eq(device_counts().device_bytes, before.device_bytes);
    printf("    %llu calls, %llu proofs failed\n", (unsigned long long)calls,
           (unsigned long long)failed);
    ck_assert_uint_gt(failed, 0);
    compact_destroy(w);
}

START_TEST(faults__of_any_call_leave_nothing_behind)
{
    expect_nothing_behind(resident_srs());
}
END_TEST

/* The points on the host, as a file's are. */
struct host_srs {
    struct srs srs;
    std::vector<g1_point> h, l, a, b_g1;
    std::vector<g2_point> b_g2;

    template <class P> void fetch(enum srs_section section, std::vector<P> &v, size_t len)
    {
        v.resize(len);
        MUST(p->resident->fetch(p->g, section, 0, len, v.data(), err));
    }

    host_srs() : srs(resident_srs())
    {
        fetch(SRS_H, h, srs.h_len);
        fetch(SRS_L, l, srs.l_len);
        fetch(SRS_A, a, srs.a_len);
        fetch(SRS_B_G1, b_g1, srs.b_len);
        fetch(SRS_B_G2, b_g2, srs.b_len);
        srs.h = (g1_affine_t *)h.data();
        srs.l = (g1_affine_t *)l.data();
        srs.a = (g1_affine_t *)a.data();
        srs.b_g1 = (g1_affine_t *)b_g1.data();
        srs.b_g2 = (g2_affine_t *)b_g2.data();
        srs.vk.ic_len = small_circuit->n_inputs;
    }
};

/* Under the first limit of less and less memory that makes it stream; the last one that suffices with `least`. */
static void load_streamed(const struct srs *srs, bool least)
{
    struct errmsg err;
    uint64_t good = 0;

    for (uint64_t limit = UINT64_C(1) << 30;; limit = limit / 8 * 7) {
        p->evict(srs);
        p->memory_limit = limit;
        if (p->load(srs, small_circuit, nullptr, nullptr, &err) < 0)
            break;
        good = limit;
        if (!least && p->resident->streamed.in_use())
            return;
    }
    p->memory_limit = good;
    MUST(p->load(srs, small_circuit, nullptr, nullptr, err));
}

/* Where it streams: the sums of the resident prover, whatever the witness, with one window and with many; then with any call failing. */
START_TEST(streamed__sums_equal_the_resident_ones)
{
    const host_srs host;
    struct compact *w[3] = {};
    struct groth16_sums want[3], got;

    for (int i = 0; i < 3; i++)
        w[i] = random_witness(small_circuit, 100 + i);
    memset(w[2]->bits, 0, w[2]->circuit->aux_words * sizeof(*w[2]->bits)); /* no ones */
    for (int i = 0; i < 3; i++)
        MUST(prove(&host.srs, w[i], &want[i], err));
    for (bool least : {false, true}) {
        load_streamed(&host.srs, least);
        ck_assert(p->resident->streamed.in_use());
        printf("    %zu windows\n", p->resident->streamed.windows.size());
        for (int i : {0, 1, 2, 1, 0}) {
            MUST(prove(&host.srs, w[i], &got, err));
            ck_assert_msg(same_sums(got, want[i]), "witness %d, least %d", i, least);
        }
        expect_nothing_behind(host.srs);
    }
    p->evict(&host.srs);
    ck_assert(p->sets.empty());
    for (struct compact *c : w)
        compact_destroy(c);
}
END_TEST

/* With less than making takes nothing is taken, and both numbers are said. */
START_TEST(develop__is_refused_before_memory_is_taken)
{
    const struct secrets t = secrets_from_labels();
    const struct srs there = resident_srs();
    struct errmsg err;

    p->evict(&there); /* or its memory would do for those that take its place */
    p->memory_limit = device_counts().device_bytes + (UINT64_C(1) << 30);
    const struct device_counts before = device_counts();
    ck_assert_int_eq(p->develop(small_circuit, &t, ic.data(), nullptr, nullptr, &err), -ENOMEM);
    ck_assert_uint_eq(device_counts().allocations, before.allocations);
    ck_assert_msg(strstr(err.text, ", 1024 are free"), "%s", err.text);
    printf("    %s\n", err.text);
    p->memory_limit = 0;
    MUST(p->develop(small_circuit, &t, ic.data(), nullptr, nullptr, err));
}
END_TEST

START_TEST(flights__two_at_a_time_and_no_more)
{
    const struct srs srs = resident_srs();
    struct compact *w[2] = {random_witness(small_circuit, 1), random_witness(small_circuit, 2)};
    flight *f[3] = {};
    struct groth16_sums want[2], got;
    struct errmsg err;

    for (int i = 0; i < 2; i++)
        MUST(prove(&srs, w[i], &want[i], err));
    for (int i = 0; i < 2; i++)
        MUST(p->start(&srs, w[i], &f[i], err));
    ck_assert_int_eq(p->start(&srs, w[0], &f[2], &err), -EBUSY);
    for (int i = 0; i < 2; i++) {
        MUST(p->finish(f[i], &got, err));
        ck_assert(same_sums(got, want[i]));
    }
    MUST(p->start(&srs, w[1], &f[0], err));
    MUST(p->start(&srs, w[0], &f[1], err));
    p->abort(f[0]);
    MUST(p->finish(f[1], &got, err));
    ck_assert(same_sums(got, want[0]));
    ck_assert(!p->in_flight());
    for (struct compact *c : w)
        compact_destroy(c);
}
END_TEST

struct prover_thread {
    const struct srs *srs;
    const struct compact *w;
    struct groth16_sums want, got;
    bool same;
};

static void *prove_some(void *arg)
{
    prover_thread &t = *(prover_thread *)arg;

    t.same = true;
    for (int i = 0; i < 6; i++) {
        MUST(prove(t.srs, t.w, &t.got, err));
        t.same = t.same && same_sums(t.got, t.want);
    }
    return nullptr;
}

/* As the threads of an engine do it, one for each ticket. */
START_TEST(flights__of_two_threads)
{
    const struct srs srs = resident_srs();
    struct compact *w[2] = {random_witness(small_circuit, 3), random_witness(small_circuit, 4)};
    prover_thread t[2];
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        t[i] = {&srs, w[i], {}, {}, false};
        MUST(prove(&srs, w[i], &t[i].want, err));
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], nullptr, prove_some, &t[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], nullptr);
        ck_assert(t[i].same);
        compact_destroy(w[i]);
    }
}
END_TEST

int main()
{
    Suite *s = suite_create("flights");
    TCase *tc = tcase_create("flights"),
          *large = tcase_create("large"); /* sanitize.sh leaves that out */
    const struct secrets t = secrets_from_labels();
    gpu probe;

    setenv("CK_FORK", "no", 1); /* a forked child has no CUDA context */
    open_gpu_or_skip(probe);
    MUST(workers_create(0, &all_workers, err));
    MUST(circuit_create(sector_size_by_name("2KiB"), &small_circuit, err));
    p = new prover;
    MUST(p->open(0, all_workers, err));
    ic.resize(small_circuit->n_inputs);
    MUST(p->develop(small_circuit, &t, ic.data(), nullptr, nullptr, err));
    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, rows__equal_the_hosts);
    tcase_add_test(tc, develop__makes_the_points_of_the_setup);
    tcase_add_test(large, develop__makes_the_file_of_known_digest);
    tcase_add_test(tc, flights__two_at_a_time_and_no_more);
    tcase_add_test(tc, flights__of_two_threads);
    tcase_add_test(large, faults__of_any_call_leave_nothing_behind);
    tcase_add_test(large, streamed__sums_equal_the_resident_ones);
    tcase_set_timeout(large, 600);
    tcase_add_test(tc, develop__is_refused_before_memory_is_taken);
    suite_add_tcase(s, tc);
    suite_add_tcase(s, large);
    int ret = suite_run(s);
    delete p;
    circuit_destroy(small_circuit);
    workers_destroy(all_workers);
    return ret;
}
