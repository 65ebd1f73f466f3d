/*
 * Assignments of 32 GiB partitions, digested as they stream: 130 million variables each and no memory for them. By
 * default the first and the last partition, half a minute of two cores; PROOFD_ALL=1 takes all ten and one of
 * 64 GiB, PROOFD_QUICK=1 none.
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_reader.h"
#include "numa/circuit/porep.h"
#include "tests/lib/r1cs.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

#define VECTOR "32GiB-sparse"
#define PARTITIONS 10

static struct c1 *c1;
static char *witness; /* witness.json */

struct run {
    uint32_t partition;
    int ret;
    struct errmsg err;
    char digest[R1CS_DIGEST_HEX];
};

static void *run(void *arg)
{
    struct run *r = arg;
    struct aux_digest *d = aux_digest_create();
    const struct cs_sink sink = {.aux = aux_digest_value, .ctx = d};

    r->ret = porep_synthesize(c1, r->partition, &sink, &r->err);
    aux_digest_finish(d, r->digest);
    aux_digest_destroy(d);
    return NULL;
}

/* The partitions' entries are in order. */
static void wanted_digest(uint32_t partition, char out[128])
{
    const char *at = witness;

    for (uint32_t i = 0; i <= partition; i++) {
        at = strstr(at, "\"aux_sha256\"");
        ck_assert_ptr_nonnull(at);
        vector_json_value(at++, "aux_sha256", out);
    }
}

/* A digest has no parallelism in it, so two are made at once. */
static void check_two(uint32_t first, uint32_t second)
{
    struct run runs[2] = {{.partition = first}, {.partition = second}};
    pthread_t thread[2];
    char want[128];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run, &runs[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) {
        wanted_digest(runs[i].partition, want);
        ck_assert_msg(runs[i].ret == 0, "%s", runs[i].err.text);
        ck_assert_str_eq(runs[i].digest, want);
    }
}

START_TEST(porep_synthesize__first_and_last_partition_of_32GiB)
{
    check_two(0, PARTITIONS - 1);
}
END_TEST

START_TEST(porep_synthesize__other_partitions_of_32GiB)
{
    check_two(1 + 2 * (uint32_t)_i, 2 + 2 * (uint32_t)_i);
}
END_TEST

/* For 64 GiB there are no digests, but the inputs are known: they come out of the paths and the labels. */
struct inputs {
    fr_t value[512];
    uint32_t len;
};

static void keep_input(void *ctx, uint32_t index, const fr_t *value)
{
    struct inputs *in = ctx;

    if (index < ARRAY_LEN(in->value))
        in->value[index] = *value;
    in->len = index + 1;
}

START_TEST(porep_synthesize__inputs_of_64GiB)
{
    struct errmsg err = {{0}};
    struct c1_extra extra;
    struct c1 *other = NULL;
    struct inputs in = {.len = 0};
    const struct cs_sink sink = {.input = keep_input, .ctx = &in};
    char path[VECTOR_PATH_MAX];
    size_t len;

    ck_assert(vector_find(path, "c1/64GiB-sparse/bare.json.zst"));
    int ret = c1_read_file(path, C1_CHECK_FORM, NULL, &other, &extra, &err);
    if (ret == 0)
        ret = porep_synthesize(other, 9, &sink, &err);
    ck_assert_msg(ret == 0, "%s", err.text);
    fr_t *want = vector_inputs("64GiB-sparse", 9, &len);
    ck_assert_uint_eq(in.len, len + 1);
    ck_assert_mem_eq(&in.value[1], want, len * sizeof(fr_t));
    free(want);
    c1_destroy(other);
}
END_TEST

static void read_vector(const char *c1_path, const char *witness_path)
{
    struct errmsg err = {{0}};
    struct c1_extra extra;

    if (c1_read_file(c1_path, C1_CHECK_FORM, NULL, &c1, &extra, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    witness = vector_read(witness_path, NULL);
}

int main(void)
{
    char c1_path[VECTOR_PATH_MAX], witness_path[VECTOR_PATH_MAX];

    if (getenv("PROOFD_QUICK")) {
        suite_skip("assignments of 32GiB", "time (PROOFD_QUICK is set)");
        return 77;
    }
    if (!vector_find(c1_path, "c1/" VECTOR "/bare.json.zst") ||
        !vector_find(witness_path, "c1/" VECTOR "/witness.json")) {
        suite_skip("assignments of 32GiB", "the 32 GiB vector ($PROOFD_SHARED)");
        return 77;
    }

    Suite *s = suite_create("witness_large");
    TCase *tc = tcase_create("witness_large");
    read_vector(c1_path, witness_path);
    tcase_set_timeout(tc, 1800);
    tcase_add_test(tc, porep_synthesize__first_and_last_partition_of_32GiB);
    if (getenv("PROOFD_ALL")) {
        tcase_add_loop_test(tc, porep_synthesize__other_partitions_of_32GiB, 0, PARTITIONS / 2 - 1);
        tcase_add_test(tc, porep_synthesize__inputs_of_64GiB);
    }
    suite_add_tcase(s, tc);
    int status = suite_run(s);
    c1_destroy(c1);
    free(witness);
    return status;
}
