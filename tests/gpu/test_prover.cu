/*
 * The CUDA backend behind its interface: the exact proofs of small systems with known secrets, its primitives against the
 * CPU backend's.
 */
#include "tests/gpu/device_test.cuh"

#include <check.h>

extern "C" {
#include "gpu/backend_cuda.h"
#include "gpu/groth16.h"
#include "tests/lib/suite.h"
#include "tests/lib/toy_system.h"
}

static constexpr uint64_t SEED = 0x70726f6f66640006;
static struct workers *all_workers;
static struct backend *cuda, *cpu;

static void expect_proof(struct toy *t, const fr_t &r, const fr_t &s)
{
    struct groth16_sums sums;
    struct proof got, want;
    uint8_t got_bytes[PROOF_BYTES], want_bytes[PROOF_BYTES];

    toy_fill_rows(t);
    MUST(groth16_sums(cuda, &t->srs, &t->w, &sums, err));
    groth16_assemble(&t->srs.vk, &sums, &r, &s, &got);
    toy_expected(t, &r, &s, &want);
    proof_encode(got_bytes, &got);
    proof_encode(want_bytes, &want);
    ck_assert_mem_eq(got_bytes, want_bytes, PROOF_BYTES);
}

static const size_t sizes[] = {1, 2, 3, 5, 12, 30, 61, 100, 700, 3000, 20000};

START_TEST(sums__give_the_exact_proof)
{
    struct random rng = {SEED + (uint64_t)_i};
    struct toy *t = toy_create(sizes[_i], 1 + (uint32_t)_i % 5, &rng);

    expect_proof(t, fr_from_u64(0), fr_from_u64(0));
    const uint64_t allocations = device_counts().allocations;
    expect_proof(t, random_fr(&rng), random_fr(&rng));
    ck_assert_uint_eq(device_counts().allocations,
                      allocations); /* what is resident takes no memory */
    toy_destroy(t);
}
END_TEST

/* And then with the same parameters transformed, which take the place of the others. */
START_TEST(sums__over_transformed_parameters_give_the_exact_proof)
{
    struct random rng = {SEED + (uint64_t)_i};
    struct toy *t = toy_create(sizes[_i], 1 + (uint32_t)_i % 5, &rng);
    bool streamed;

    expect_proof(t, random_fr(&rng), random_fr(&rng));
    const struct srs plain = t->srs;
    ck_assert_uint_gt(cuda->ops->holds(cuda, &plain, &streamed), 0);
    toy_transform(t);
    expect_proof(t, fr_from_u64(0), fr_from_u64(0));
    ck_assert_uint_eq(cuda->ops->holds(cuda, &plain, &streamed), 0);
    const uint64_t allocations = device_counts().allocations;
    expect_proof(t, random_fr(&rng), random_fr(&rng));
    ck_assert_uint_eq(device_counts().allocations, allocations);
    toy_destroy(t);
}
END_TEST

/* Few launches: what compute-sanitizer gets through (CK_RUN_CASE=small). */
START_TEST(sums__of_a_small_system)
{
    struct random rng = {SEED};
    struct toy *t = toy_create(3000, 2, &rng);

    expect_proof(t, random_fr(&rng), random_fr(&rng));
    toy_destroy(t);
}
END_TEST

START_TEST(sums__of_two_sets_of_parameters_by_turns)
{
    struct random rng = {SEED};
    struct toy *first = toy_create(100, 3, &rng), *second = toy_create(100, 3, &rng);

    for (int k = 0; k < 2; k++) {
        expect_proof(first, random_fr(&rng), random_fr(&rng));
        expect_proof(second, random_fr(&rng), random_fr(&rng));
    }
    toy_destroy(first);
    toy_destroy(second);
}
END_TEST

START_TEST(sums__refuse_parameters_of_another_circuit)
{
    struct random rng = {SEED};
    struct toy *t = toy_create(100, 3, &rng);
    struct groth16_sums sums;
    struct errmsg err = {};

    t->srs.l_len--;
    ck_assert_int_eq(groth16_sums(cuda, &t->srs, &t->w, &sums, &err), -EINVAL);
    t->srs.l_len++;
    toy_destroy(t);
}
END_TEST

static uint64_t seen_done, seen_total, calls;

static void watch(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    ck_assert_str_eq(stage, "device");
    ck_assert_ptr_eq(ctx, &calls);
    ck_assert_uint_gt(done, seen_done);
    seen_done = done;
    seen_total = total;
    calls++;
}

START_TEST(load__tells_of_its_progress_once)
{
    struct random rng = {SEED + 99};
    struct toy *t = toy_create(500, 2, &rng);

    MUST(cuda->ops->load(cuda, &t->srs, nullptr, watch, &calls, err));
    ck_assert_uint_eq(seen_done, seen_total);
    ck_assert_uint_eq(calls, 5);
    MUST(cuda->ops->load(cuda, &t->srs, nullptr, watch, &calls, err));
    ck_assert_uint_eq(calls, 5);
    toy_destroy(t);
}
END_TEST

START_TEST(ntt__equals_the_cpu_backend)
{
    struct random rng = {SEED};
    std::vector<fr_t> v((size_t)1 << _i);

    for (int kind = NTT_FORWARD; kind <= NTT_COSET_INVERSE; kind++) {
        for (fr_t &f : v)
            f = random_fr(&rng);
        std::vector<fr_t> want = v;
        MUST(cuda->ops->ntt(cuda, v.data(), (uint32_t)_i, (enum ntt_kind)kind, err));
        MUST(cpu->ops->ntt(cpu, want.data(), (uint32_t)_i, (enum ntt_kind)kind, err));
        ck_assert_mem_eq(v.data(), want.data(), v.size() * sizeof(fr_t));
    }
}
END_TEST

static void watch_transform(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    ck_assert_str_eq(stage, "transform");
    *(bool *)ctx = done == total;
}

START_TEST(transform_points__equals_the_cpu_backend)
{
    struct random rng = {SEED};
    const fr_t shift = random_fr(&rng), factor = random_fr(&rng);
    std::vector<fr_t> logs((size_t)1 << _i);
    std::vector<g1_point> points, want;
    const uint64_t held = device_counts().device_bytes;
    bool whole = false;

    for (size_t i = 0; i < logs.size(); i++)
        logs[i] = i % 7 == 6 ? fr_from_u64(0) : random_fr(&rng);
    points_of(logs, points, all_workers);
    want = points;
    MUST(cuda->ops->transform_points(cuda, (g1_affine_t *)points.data(), (uint32_t)_i, &shift,
                                     &factor, watch_transform, &whole, err));
    MUST(cpu->ops->transform_points(cpu, (g1_affine_t *)want.data(), (uint32_t)_i, &shift, &factor,
                                    nullptr, nullptr, err));
    ck_assert_mem_eq(points.data(), want.data(), want.size() * sizeof(g1_point));
    ck_assert(whole);
    ck_assert_uint_eq(device_counts().device_bytes, held); /* what it took is given back */
}
END_TEST

START_TEST(transform_points__says_what_it_lacks)
{
    const fr_t one = fr_from_u64(1);
    std::vector<g1_affine_t> points((size_t)1 << 16);
    struct errmsg err = {};

    cuda->memory_limit = device_counts().device_bytes + (5u << 20);
    ck_assert_int_eq(
        cuda->ops->transform_points(cuda, points.data(), 16, &one, &one, nullptr, nullptr, &err),
        -ENOMEM);
    ck_assert_msg(strstr(err.text, " 6 MB") && strstr(err.text, " 5 are free"), "%s", err.text);
    cuda->memory_limit = 0;
    ck_assert_int_eq(cuda->ops->transform_points(cuda, points.data(), NTT_LOG2_MAX + 1, &one, &one,
                                                 nullptr, nullptr, &err),
                     -EINVAL);
}
END_TEST

START_TEST(msm__equals_the_cpu_backend)
{
    struct random rng = {SEED};
    const size_t len = 20000;
    std::vector<fr_t> logs(len), scalars(len);
    std::vector<g1_point> g1;
    std::vector<g2_point> g2;
    g1_t got1, want1;
    g2_t got2, want2;

    for (size_t i = 0; i < len; i++) {
        logs[i] = random_fr(&rng);
        scalars[i] = random_u64(&rng) % 3 ? fr_from_u64(random_u64(&rng) & 1) : random_fr(&rng);
    }
    points_of(logs, g1, all_workers);
    points_of(logs, g2, all_workers);
    for (size_t n : {(size_t)0, (size_t)1, (size_t)100, len}) {
        MUST(
            cuda->ops->msm_g1(cuda, &got1, (const g1_affine_t *)g1.data(), scalars.data(), n, err));
        MUST(cpu->ops->msm_g1(cpu, &want1, (const g1_affine_t *)g1.data(), scalars.data(), n, err));
        ck_assert(blst_p1_is_equal(&got1, &want1));
        MUST(
            cuda->ops->msm_g2(cuda, &got2, (const g2_affine_t *)g2.data(), scalars.data(), n, err));
        MUST(cpu->ops->msm_g2(cpu, &want2, (const g2_affine_t *)g2.data(), scalars.data(), n, err));
        ck_assert(blst_p2_is_equal(&got2, &want2));
    }
}
END_TEST

int main()
{
    Suite *s = suite_create("cuda backend");
    TCase *toys = tcase_create("systems"), *primitives = tcase_create("primitives"),
          *small = tcase_create("small");
    gpu probe;

    setenv("CK_FORK", "no", 1); /* a forked child has no CUDA context */
    open_gpu_or_skip(probe);
    MUST(workers_create(0, &all_workers, err));
    MUST(backend_cuda_open(BACKEND_CUDA_ABI, 0, all_workers, &cuda, err));
    MUST(backend_cpu_create(all_workers, &cpu, err));
    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_add_loop_test(toys, sums__give_the_exact_proof, 0, (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(toys, sums__over_transformed_parameters_give_the_exact_proof, 0,
                        (int)ARRAY_LEN(sizes) - 1);
    tcase_add_test(toys, sums__of_two_sets_of_parameters_by_turns);
    tcase_add_test(toys, sums__refuse_parameters_of_another_circuit);
    tcase_add_test(toys, load__tells_of_its_progress_once);
    tcase_add_test(small, sums__of_a_small_system);
    tcase_add_loop_test(primitives, ntt__equals_the_cpu_backend, 0, 17);
    tcase_add_loop_test(primitives, transform_points__equals_the_cpu_backend, 0, 11);
    tcase_add_test(primitives, transform_points__says_what_it_lacks);
    tcase_add_test(primitives, msm__equals_the_cpu_backend);
    for (TCase *tc : {toys, small, primitives}) {
        tcase_set_timeout(tc, 600);
        suite_add_tcase(s, tc);
    }
    int ret = suite_run(s);
    backend_destroy(cuda);
    backend_destroy(cpu);
    workers_destroy(all_workers);
    return ret;
}
