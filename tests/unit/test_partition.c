/*
 * What is done with a proof that is wrong: a backend that computes nothing makes one as often as it is
 * asked to. That right proofs come out is shown by tests/system, with real parameters.
 */
#include "daemon/partition.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "gpu/srs_counts.h"
#include "tests/lib/files.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

/* ---- a backend that says what it is told to ---- */

struct idle_backend {
    struct backend base;
    unsigned sums;      /* how often a G2 sum was asked for: one in each proof */
    bool bad_transform; /* leaves something in h's last place */
    int code;
};

static int idle_ntt(struct backend *be, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
                    struct errmsg *err)
{
    struct idle_backend *idle = (struct idle_backend *)be;

    (void)kind, (void)err;
    memset(v, 0, sizeof(*v) << log2_len);
    if (idle->bad_transform)
        v[((size_t)1 << log2_len) - 1] = fr_from_u64((uint64_t)kind + 1);
    return 0;
}

static int idle_msm_g1(struct backend *be, g1_t *out, const g1_affine_t *bases, const fr_t *scalars,
                       size_t len, struct errmsg *err)
{
    (void)be, (void)bases, (void)scalars, (void)len, (void)err;
    *out = *blst_p1_generator();
    return 0;
}

static int idle_sum_g2(struct backend *be, g2_t *out, const g2_affine_t *points,
                       const struct msm_terms *terms, struct errmsg *err)
{
    struct idle_backend *idle = (struct idle_backend *)be;

    (void)points, (void)terms;
    idle->sums++;
    *out = *blst_p2_generator();
    return idle->code ? errmsg_set(err, idle->code, "made to fail") : 0;
}

static int idle_sum_g1(struct backend *be, g1_t *out, const g1_affine_t *points,
                       const struct msm_terms *terms, struct errmsg *err)
{
    return idle_msm_g1(be, out, points, terms->scalars, terms->len, err);
}

static const struct backend_ops idle_ops = {.name = "idle",
                                            .ntt = idle_ntt,
                                            .msm_g1 = idle_msm_g1,
                                            .takes_compact = true,
                                            .sum_g1 = idle_sum_g1,
                                            .sum_g2 = idle_sum_g2};

static struct idle_backend idle;
static struct srs srs;
static struct c1 *c1;
static struct errmsg err;

static void setup(void)
{
    struct srs_counts n;
    struct c1_extra extra;

    memset(&idle, 0, sizeof(idle));
    idle.base.ops = &idle_ops;
    ck_assert_int_eq(
        c1_read_file(c1_path("2KiB-sealed", "c1.json"), C1_CHECK_FORM, NULL, &c1, &extra, &err), 0);
    srs_counts(c1_size(c1), &n);
    srs = (struct srs){.size = c1_size(c1), .h_len = n.h, .l_len = n.l, .a_len = n.a, .b_len = n.b};
    vector_vk(c1_size(c1), &srs.vk);
    /* Never looked at: memory that is not there until it is touched. */
    srs.h = calloc(n.h, sizeof(*srs.h));
    srs.l = calloc(n.l, sizeof(*srs.l));
    srs.a = calloc(n.a, sizeof(*srs.a));
    srs.b_g1 = calloc(n.b, sizeof(*srs.b_g1));
    srs.b_g2 = calloc(n.b, sizeof(*srs.b_g2));
    log_set_level(0);
}

static void teardown(void)
{
    free(srs.h);
    free(srs.l);
    free(srs.a);
    free(srs.b_g1);
    free(srs.b_g2);
    vk_fini(&srs.vk);
    c1_destroy(c1);
}

static struct partition_task task_of(bool (*stage)(void *, enum partition_stage), void *ctx)
{
    return (struct partition_task){
        .c1 = c1, .srs = &srs, .backend = &idle.base, .stage = stage, .ctx = ctx};
}

START_TEST(partition_prove__hands_out_no_proof_that_does_not_verify)
{
    const struct partition_task task = task_of(NULL, NULL);
    struct partition_result result;

    memset(&result, 0x5a, sizeof(result));
    ck_assert_int_eq(partition_prove(&task, &result, &err), -EILSEQ);
    ck_assert_uint_eq(idle.sums, PARTITION_ATTEMPTS);
    ck_assert_ptr_nonnull(strstr(err.text, "do not verify"));
    for (size_t i = 0; i < sizeof(result); i++)
        ck_assert_uint_eq(((uint8_t *)&result)[i], 0x5a);
}
END_TEST

START_TEST(partition_prove__a_fault_the_prover_sees_is_an_attempt_too)
{
    const struct partition_task task = task_of(NULL, NULL);
    struct partition_result result;

    idle.bad_transform = true;
    ck_assert_int_eq(partition_prove(&task, &result, &err), -EILSEQ);
}
END_TEST

START_TEST(partition_prove__other_errors_are_handed_on)
{
    const struct partition_task task = task_of(NULL, NULL);
    struct partition_result result;

    idle.code = -ENOMEM;
    ck_assert_int_eq(partition_prove(&task, &result, &err), -ENOMEM);
    ck_assert_str_eq(err.text, "made to fail");
    ck_assert_uint_eq(idle.sums, 1);
}
END_TEST

static bool stop_at(void *ctx, enum partition_stage stage)
{
    return stage != *(enum partition_stage *)ctx;
}

START_TEST(partition_prove__stops_between_stages)
{
    enum partition_stage stage = _i ? PARTITION_PROVING : PARTITION_SYNTHESIZING;
    const struct partition_task task = task_of(stop_at, &stage);
    struct partition_result result;

    ck_assert_int_eq(partition_prove(&task, &result, &err), -ECANCELED);
    ck_assert_uint_eq(idle.sums, 0);
}
END_TEST

START_TEST(partition_verify_all__the_right_proof_and_no_other)
{
    uint8_t proof[PROOF_BYTES];
    bool valid = false;

    ck_assert(vector_proof("2KiB-sealed", "proof-r3-s5.txt", 0, proof));
    ck_assert_int_eq(partition_verify_all(c1, &srs.vk, proof, sizeof(proof), &valid, &err), 0);
    ck_assert(valid);
    for (size_t bit = 0; bit < 8 * sizeof(proof); bit += 37) {
        proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(partition_verify_all(c1, &srs.vk, proof, sizeof(proof), &valid, &err), 0);
        ck_assert(!valid);
        proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_int_eq(partition_verify_all(c1, &srs.vk, proof, sizeof(proof) - 1, &valid, &err),
                     -EINVAL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("partition");
    TCase *tc = tcase_create("partition");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, partition_prove__hands_out_no_proof_that_does_not_verify);
    tcase_add_test(tc, partition_prove__a_fault_the_prover_sees_is_an_attempt_too);
    tcase_add_test(tc, partition_prove__other_errors_are_handed_on);
    tcase_add_loop_test(tc, partition_prove__stops_between_stages, 0, 2);
    tcase_add_test(tc, partition_verify_all__the_right_proof_and_no_other);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
