/*
 * The prover on small random systems: the exact proof from the trapdoor, the verifier's word on it, and the naive backend
 * in place of the real one.
 */
#include "gpu/groth16.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/naive_backend.h"
#include "tests/lib/suite.h"
#include "tests/lib/toy_system.h"

#define SEED 0x70726f6f66640005

static const size_t sizes[] = {1, 2, 3, 5, 12, 30, 61, 100, 700, 3000};

static struct toy *make_toy(int i, struct random *rng)
{
    rng->state = SEED + (uint64_t)i;
    return toy_create(sizes[i], 1 + (uint32_t)i % 5, rng);
}

static void check_proof(struct backend *be, struct toy *t, const fr_t *r, const fr_t *s)
{
    struct groth16_sums sums;
    struct proof got, want;
    uint8_t got_bytes[PROOF_BYTES], want_bytes[PROOF_BYTES];
    struct errmsg err = {""};

    toy_fill_rows(t);
    ck_assert_msg(groth16_sums(be, &t->srs, &t->w, &sums, &err) == 0, "%s", err.text);
    groth16_assemble(&t->srs.vk, &sums, r, s, &got);
    toy_expected(t, r, s, &want);
    proof_encode(got_bytes, &got);
    proof_encode(want_bytes, &want);
    ck_assert_mem_eq(got_bytes, want_bytes, PROOF_BYTES);
}

static void check_proofs(int size_index, bool transformed)
{
    struct random rng;
    struct toy *t = make_toy(size_index, &rng);
    struct workers *workers = NULL;
    struct backend *cpu = NULL, *naive = NULL;
    fr_t zero = {0}, three = fr_from_u64(3), r = random_fr(&rng), s = random_fr(&rng);

    ck_assert_int_eq(workers_create(1 + (unsigned)size_index % 3, &workers, NULL), 0);
    ck_assert_int_eq(backend_cpu_create(workers, &cpu, NULL), 0);
    ck_assert_int_eq(backend_naive_create(&naive), 0);
    if (transformed)
        toy_transform(t);
    check_proof(cpu, t, &zero, &zero);
    check_proof(cpu, t, &three, &r);
    check_proof(cpu, t, &r, &s);
    if (sizes[size_index] <= 100)
        check_proof(naive, t, &r, &s);
    backend_destroy(cpu);
    backend_destroy(naive);
    workers_destroy(workers);
    toy_destroy(t);
}

START_TEST(groth16_sums__give_the_exact_proof)
{
    check_proofs(_i, false);
}
END_TEST

/* To the byte what they give without. */
START_TEST(groth16_sums__with_transformed_parameters_give_the_exact_proof)
{
    check_proofs(_i, true);
}
END_TEST

START_TEST(groth16_prove__verifies_and_never_repeats)
{
    struct random rng;
    struct toy *t = make_toy(_i, &rng);
    struct backend *be = NULL;
    struct proof first, second;
    bool valid = false;

    ck_assert_int_eq(backend_cpu_create(NULL, &be, NULL), 0);
    ck_assert_int_eq(groth16_prove(be, &t->srs, &t->w, &first, NULL), 0);
    toy_fill_rows(t);
    ck_assert_int_eq(groth16_prove(be, &t->srs, &t->w, &second, NULL), 0);
    ck_assert_mem_ne(&first.a, &second.a, sizeof(first.a));
    ck_assert_mem_ne(&first.b, &second.b, sizeof(first.b));
    ck_assert_mem_ne(&first.c, &second.c, sizeof(first.c));
    size_t public_len = t->w.n_inputs - 1;
    fr_t *inputs = calloc(public_len + 1, sizeof(*inputs)), one = fr_from_u64(1);
    memcpy(inputs, t->w.inputs + 1, public_len * sizeof(*inputs));
    const struct proof *proofs[] = {&first, &second};
    for (size_t i = 0; i < ARRAY_LEN(proofs); i++) {
        ck_assert_int_eq(groth16_verify(&t->srs.vk, inputs, public_len, proofs[i], &valid, NULL),
                         0);
        ck_assert(valid);
    }
    if (public_len > 0) { /* another statement */
        fr_add(&inputs[0], &inputs[0], &one);
        ck_assert_int_eq(groth16_verify(&t->srs.vk, inputs, public_len, &first, &valid, NULL), 0);
        ck_assert(!valid);
    }
    free(inputs);
    backend_destroy(be);
    toy_destroy(t);
}
END_TEST

/* A row of the assignment that its variables do not satisfy: a proof comes out, and does not verify. */
START_TEST(groth16_prove__false_row_makes_an_invalid_proof)
{
    struct random rng;
    struct toy *t = make_toy(5, &rng);
    struct backend *be = NULL;
    struct proof proof;
    bool valid = true;
    fr_t one = fr_from_u64(1);

    ck_assert_int_eq(backend_cpu_create(NULL, &be, NULL), 0);
    fr_add(&t->w.a[0], &t->w.a[0], &one);
    ck_assert_int_eq(groth16_prove(be, &t->srs, &t->w, &proof, NULL), 0);
    ck_assert_int_eq(
        groth16_verify(&t->srs.vk, t->w.inputs + 1, t->w.n_inputs - 1, &proof, &valid, NULL), 0);
    ck_assert(!valid);
    backend_destroy(be);
    toy_destroy(t);
}
END_TEST

START_TEST(groth16_sums__refuse_parameters_of_another_circuit)
{
    static const char *const names[] = {"ic", "h", "l", "a", "b"};
    struct random rng;
    struct toy *t = make_toy(6, &rng);
    struct backend *be = NULL;
    struct groth16_sums sums;
    struct errmsg err;
    char want[64];

    ck_assert_int_eq(backend_cpu_create(NULL, &be, NULL), 0);
    if (_i >= 5)
        toy_transform(t);
    struct srs srs = t->srs;
    size_t *counts[] = {NULL, &srs.h_len, &srs.l_len, &srs.a_len, &srs.b_len};
    if (_i % 5 == 0)
        srs.vk.ic_len--;
    else
        --*counts[_i % 5];
    ck_assert_int_eq(groth16_sums(be, &srs, &t->w, &sums, &err), -EINVAL);
    snprintf(want, sizeof(want), " points in %s,", names[_i % 5]);
    ck_assert_ptr_nonnull(strstr(err.text, want));
    backend_destroy(be);
    toy_destroy(t);
}
END_TEST

/* The CPU backend with a fault in one transform, as broken memory would make it. */
static struct backend *honest;

static int faulty_ntt(struct backend *be, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
                      struct errmsg *err)
{
    int ret = honest->ops->ntt(honest, v, log2_len, kind, err);

    (void)be;
    v[(size_t)1 << log2_len >> 1].l[0] ^= kind == NTT_COSET;
    return ret;
}

START_TEST(groth16_sums__notice_a_wrong_transform)
{
    struct random rng;
    struct toy *t = make_toy(7, &rng);
    struct backend_ops ops;
    struct backend faulty = {.ops = &ops};
    struct groth16_sums sums;
    struct errmsg err;

    ck_assert_int_eq(backend_cpu_create(NULL, &honest, NULL), 0);
    ops = *honest->ops;
    ops.ntt = faulty_ntt;
    ops.load = NULL; /* would look for a plan in *honest */
    ck_assert_int_eq(groth16_sums(&faulty, &t->srs, &t->w, &sums, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "transforms are wrong"));
    ck_assert_uint_eq(arena_mark(faulty.scratch), 0);
    backend_fini(&faulty);
    backend_destroy(honest);
    toy_destroy(t);
}
END_TEST

static void expect_valid(const struct toy *t, const uint8_t bytes[PROOF_BYTES])
{
    struct proof proof;
    bool valid = false;

    ck_assert_int_eq(proof_decode(&proof, bytes, NULL), 0);
    ck_assert_int_eq(
        groth16_verify(&t->srs.vk, t->w.inputs + 1, t->w.n_inputs - 1, &proof, &valid, NULL), 0);
    ck_assert(valid);
}

/* Between the two steps the rows' memory belongs to somebody else. */
START_TEST(groth16_prove_finish__needs_no_rows)
{
    struct random rng;
    struct toy *t = make_toy(8, &rng);
    struct backend *be = NULL;
    struct groth16_ticket ticket;
    uint8_t proof[PROOF_BYTES];

    ck_assert_int_eq(backend_cpu_create(NULL, &be, NULL), 0);
    ck_assert_int_eq(groth16_prove_start(be, &t->srs, &t->w, &ticket, NULL), 0);
    memset(t->w.a, 0x55, sizeof(fr_t) << t->w.log2_domain);
    memset(t->w.b, 0x55, sizeof(fr_t) << t->w.log2_domain);
    ck_assert_int_eq(groth16_prove_finish(&ticket, proof, NULL), 0);
    expect_valid(t, proof);
    ck_assert(ticket.start_ms > 0 && ticket.finish_ms > 0);
    ck_assert(ticket.transform_ms <= ticket.start_ms);
    backend_destroy(be);
    toy_destroy(t);
}
END_TEST

START_TEST(groth16_prove_abort__leaves_the_backend_as_it_was)
{
    struct random rng;
    struct toy *t = make_toy(7, &rng);
    struct backend *be = NULL;
    struct groth16_ticket ticket;
    uint8_t proof[PROOF_BYTES];

    ck_assert_int_eq(backend_cpu_create(NULL, &be, NULL), 0);
    for (int i = 0; i < 3; i++) {
        toy_fill_rows(t);
        ck_assert_int_eq(groth16_prove_start(be, &t->srs, &t->w, &ticket, NULL), 0);
        ck_assert_uint_eq(arena_mark(be->scratch), 0);
        if (i < 2)
            groth16_prove_abort(&ticket);
    }
    ck_assert_int_eq(groth16_prove_finish(&ticket, proof, NULL), 0);
    expect_valid(t, proof);
    backend_destroy(be);
    toy_destroy(t);
}
END_TEST

/* As much scratch as it says is enough, and a page less is too little, which is said before anything is touched. */
START_TEST(groth16_scratch_bytes__exactly)
{
    struct random rng;
    struct toy *t = make_toy(9, &rng);
    struct backend *be = NULL;
    struct arena_options opt = {.node = ARENA_ANY_NODE, .largest = ARENA_4KIB};
    struct groth16_ticket ticket;
    struct arena *arena = NULL;
    uint8_t proof[PROOF_BYTES];
    struct errmsg err;

    ck_assert_int_eq(backend_cpu_create(NULL, &be, NULL), 0);
    const struct srs_counts n = {
        .h = t->srs.h_len, .l = t->srs.l_len, .a = t->srs.a_len, .b = t->srs.b_len};
    opt.bytes = groth16_scratch_bytes(be, &n);
    ck_assert_int_eq(arena_create(&opt, &arena, NULL), 0);
    be->scratch = arena;
    ck_assert_ptr_nonnull(arena_carve(arena, 1));
    ck_assert_int_eq(groth16_prove_start(be, &t->srs, &t->w, &ticket, &err), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "scratch"));
    arena_rewind(arena, 0);
    ck_assert_int_eq(groth16_prepare(be, &t->srs, NULL, NULL, NULL), 0);
    ck_assert_int_eq(groth16_prove_start(be, &t->srs, &t->w, &ticket, NULL), 0);
    ck_assert_int_eq(groth16_prove_finish(&ticket, proof, NULL), 0);
    expect_valid(t, proof);
    ck_assert_ptr_null(be->own_scratch);
    backend_destroy(be);
    arena_destroy(arena);
    toy_destroy(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("groth16");
    TCase *tc = tcase_create("groth16");

    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, groth16_sums__give_the_exact_proof, 0, (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(tc, groth16_sums__with_transformed_parameters_give_the_exact_proof, 0,
                        (int)ARRAY_LEN(sizes) - 1);
    tcase_add_loop_test(tc, groth16_prove__verifies_and_never_repeats, 0,
                        (int)ARRAY_LEN(sizes) - 1);
    tcase_add_test(tc, groth16_prove__false_row_makes_an_invalid_proof);
    tcase_add_loop_test(tc, groth16_sums__refuse_parameters_of_another_circuit, 0, 10);
    tcase_add_test(tc, groth16_sums__notice_a_wrong_transform);
    tcase_add_test(tc, groth16_prove_finish__needs_no_rows);
    tcase_add_test(tc, groth16_prove_abort__leaves_the_backend_as_it_was);
    tcase_add_test(tc, groth16_scratch_bytes__exactly);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
