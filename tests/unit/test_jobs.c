#include "daemon/jobs.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

START_TEST(jobs__a_copy_becomes_a_job_and_ends_with_its_proof)
{
    struct job_store *js = job_store_create();
    uint64_t id = js_submit(js, "a.json", "2KiB-sealed");
    struct job_info info = js_find(js, "a.json");
    size_t len, proof_len;
    const uint8_t *bytes = document("2KiB-sealed", &len);
    uint8_t *proof, *back = malloc(len + 1);
    char *report;

    ck_assert_int_eq(info.state, JOB_QUEUED);
    ck_assert_uint_eq(info.file_bytes, len);
    ck_assert_uint_eq(info.partitions, 1);
    ck_assert_str_eq(info.proof->name, "StackedDrg2KiBV1_1");
    ck_assert_int_gt(info.accepted_ns, 0);
    ck_assert_int_eq(jobs_read_file(js->jobs, id, back, len + 1, 0), (ssize_t)len);
    ck_assert_mem_eq(back, bytes, len);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &proof_len), -ENOENT);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js_state(js, "a.json"), JOB_DONE);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &proof_len), 0);
    ck_assert_uint_eq(proof_len, 192);
    ck_assert_int_eq(proof[1], 7);
    ck_assert_int_eq(jobs_report(js->jobs, id, &report), 0);
    ck_assert_ptr_nonnull(strstr(report, "\"synthesis_ms\": 1.500"));
    free(report);
    free(proof);
    free(back);
    job_store_destroy(js);
}
END_TEST

START_TEST(jobs__a_restart_queues_what_was_accepted)
{
    struct job_store *js = job_store_create();
    uint64_t id = js_submit(js, "a.json", "2KiB-sealed");

    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "a.json").id, id);
    ck_assert_int_eq(js_state(js, "a.json"), JOB_QUEUED);
    ck_assert_uint_eq(js_prove_all(js), 1);
    job_store_reopen(js);
    ck_assert_int_eq(js_state(js, "a.json"), JOB_DONE);
    ck_assert_uint_eq(js_prove_all(js), 0);
    job_store_destroy(js);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("jobs");
    TCase *tc = tcase_create("jobs");

    tcase_add_test(tc, jobs__a_copy_becomes_a_job_and_ends_with_its_proof);
    tcase_add_test(tc, jobs__a_restart_queues_what_was_accepted);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
