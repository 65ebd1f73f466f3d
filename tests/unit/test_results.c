/*
 * Results of ended jobs on a disk that damages files: one, two, or all that a proof could be made from. Documents are made
 * up (tests/lib/fake_c1.h).
 */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/jobs.h"
#include "daemon/log.h"
#include "tests/lib/fake_c1.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

#define ENTRY_BYTES 400 /* of the journal */

static struct job_store *js;
static uint64_t id; /* of the job "a", which is done */

static void submit(const char *name, int number)
{
    char text[FAKE_DOCUMENT_BYTES];
    struct upload *u = js_open(js, name);

    fake_document(text, number);
    js_write(u, text, strlen(text), 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
}

static void setup(void)
{
    log_set_level(0); /* disasters are told at length */
    js = job_store_create();
    submit("a", 1);
    id = js_find(js, "a").id;
    js_prove_all(js);
}

static void teardown(void)
{
    job_store_destroy(js);
}

static const char *file_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%016" PRIx64 "/%s", js->dir, id, name);
    return path;
}

enum damage { FLIPPED, SHORT, LONG, GONE, FIFO, DIRECTORY, DAMAGES };

static void damage(const char *name, enum damage how)
{
    const char *path = file_of(name);
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    if (how == SHORT)
        ck_assert_int_eq(truncate(path, st.st_size > 1000 ? st.st_size - 192 : st.st_size / 2), 0);
    if (how == LONG)
        ck_assert_int_eq(truncate(path, st.st_size + 192), 0);
    if (how >= GONE)
        ck_assert_int_eq(unlink(path), 0);
    if (how == FIFO)
        ck_assert_int_eq(mkfifo(path, 0600), 0);
    if (how == DIRECTORY)
        ck_assert_int_eq(mkdir(path, 0700), 0);
    if (how != FLIPPED)
        return;
    FILE *f = fopen(path, "r+");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 20, SEEK_SET), 0);
    int c = fgetc(f);
    ck_assert_int_eq(fseek(f, 20, SEEK_SET), 0);
    fputc(c ^ 4, f);
    fclose(f);
}

static uint64_t repaired(void)
{
    struct jobs_totals t;

    jobs_totals(js->jobs, &t);
    return t.repaired;
}

static void check_proof(void)
{
    uint8_t *proof, expected[192];
    size_t len;

    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &len), 0);
    ck_assert_uint_eq(len, 192 * FAKE_PARTITIONS);
    for (uint32_t i = 0; i < FAKE_PARTITIONS; i++) {
        js_fill_proof(expected, 7, i);
        ck_assert_mem_eq(proof + (size_t)192 * i, expected, 192);
    }
    free(proof);
}

START_TEST(jobs_proof__a_damaged_one_is_put_together_from_the_journal)
{
    uint64_t count = _i == DIRECTORY ? 0 : 1; /* that cannot be replaced, but read past */

    damage("proof", (enum damage)_i);
    check_proof();
    ck_assert_uint_eq(repaired(), count);
    check_proof();
    ck_assert_uint_eq(repaired(), count);
    if (_i == DIRECTORY)
        return;
    damage("proof", (enum damage)_i);
    job_store_reopen(js); /* found at the start, before anybody asks */
    ck_assert_uint_eq(repaired(), 1);
    check_proof();
    ck_assert_uint_eq(repaired(), 1);
}
END_TEST

START_TEST(jobs_proof__the_proof_of_another_job_is_none)
{
    char other[256];
    uint8_t proof[192];
    struct partition_work work;
    struct partition_report report = js_report();

    submit("b", 2);
    while (jobs_take_partition(js->jobs, 1, &work) == 0) {
        close(work.c1_fd);
        js_fill_proof(proof, 9, work.partition);
        ck_assert_int_eq(jobs_partition_done(js->jobs, work.job, work.partition, proof, &report),
                         0);
    }
    snprintf(other, sizeof(other), "%s/%016" PRIx64 "/proof", js->dir, js_find(js, "b").id);
    ck_assert_int_eq(unlink(file_of("proof")), 0);
    ck_assert_int_eq(link(other, file_of("proof")), 0);
    check_proof();
}
END_TEST

START_TEST(jobs_proof__without_proof_and_journal_it_is_proved_again)
{
    static const enum damage kinds[] = {FLIPPED, SHORT, GONE};
    enum damage kind = kinds[_i];
    uint8_t *proof;
    size_t len;
    char *text;

    damage("proof", SHORT);
    damage("partitions", kind);
    if (kind == FLIPPED) /* an entry in the middle: only that partition is missing */
        ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &len), -EIO);
    else
        job_store_reopen(js);
    jobs_tick(js->jobs);
    struct job_info info = js_find(js, "a");
    ck_assert_int_eq(info.state, JOB_QUEUED);
    ck_assert_uint_eq(info.id, id);
    ck_assert_int_eq(info.ended_ns, 0);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &len), -ENOENT);
    unsigned missing = kind == GONE ? FAKE_PARTITIONS : 1;
    ck_assert_uint_eq(info.partitions_done, FAKE_PARTITIONS - missing);
    ck_assert_uint_eq(js_prove_all(js), missing);
    check_proof();
    ck_assert_int_eq(jobs_report(js->jobs, id, &text), 0);
    ck_assert_ptr_nonnull(strstr(text, "\"partitions_done\": 13"));
    free(text);
    ck_assert_uint_ge(repaired(), 1);
    job_store_reopen(js);
    ck_assert_uint_eq(repaired(), 0);
    check_proof();
}
END_TEST

START_TEST(jobs_proof__without_anything_left_the_job_fails_and_says_so)
{
    char *text;

    damage("proof", FLIPPED);
    damage("partitions", GONE);
    damage("c1", (enum damage)_i);
    job_store_reopen(js);
    for (int start = 0; start < 2; start++) {
        ck_assert_int_eq(js_state(js, "a"), JOB_FAILED);
        ck_assert_int_eq(jobs_error(js->jobs, id, &text), 0);
        ck_assert_msg(strstr(text, "the proof was damaged on disk"), "%s", text);
        free(text);
        ck_assert_int_eq(jobs_report(js->jobs, id, &text), 0);
        ck_assert_ptr_nonnull(strstr(text, "\"state\": \"failed\""));
        free(text);
        job_store_reopen(js);
    }
    ck_assert_int_eq(jobs_remove(js->jobs, id), 0);
}
END_TEST

/* A writer that was there first goes on; nobody comes in between. */
START_TEST(jobs_proof__what_is_proved_again_is_not_written_over)
{
    struct upload *u;
    uint8_t *proof;
    size_t len;

    damage("proof", GONE);
    damage("partitions", GONE);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &len), -EIO);
    ck_assert_int_eq(upload_open(js->jobs, id, &u), -EBUSY);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    js_prove_all(js);

    u = js_open(js, "a");
    damage("proof", GONE);
    damage("partitions", GONE);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &len), -EIO);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    upload_close(u, false); /* nothing was written */
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(jobs_report__a_damaged_one_is_made_again)
{
    char *before, *after;

    ck_assert_int_eq(jobs_report(js->jobs, id, &before), 0);
    damage("report", (enum damage)_i);
    ck_assert_int_eq(jobs_report(js->jobs, id, &after), 0);
    ck_assert_str_eq(after, before);
    free(after);
    if (_i == DIRECTORY)
        goto out;
    ck_assert_uint_eq(repaired(), 1);
    damage("report", (enum damage)_i);
    job_store_reopen(js);
    ck_assert_uint_eq(repaired(), 1);
    ck_assert_int_eq(jobs_report(js->jobs, id, &after), 0);
    ck_assert_str_eq(after, before);
    free(after);
out:
    free(before);
}
END_TEST

START_TEST(jobs_error__a_damaged_one_is_told)
{
    struct partition_work work;
    char *text;

    submit("f", 3);
    ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), 0);
    close(work.c1_fd);
    jobs_partition_failed(js->jobs, work.job, work.partition, -EIO, "no luck");
    id = work.job;
    damage("error", GONE);
    for (int start = 0; start < 2; start++) {
        ck_assert_int_eq(jobs_error(js->jobs, id, &text), 0);
        ck_assert_str_eq(text, "the job failed; the reason was damaged on disk\n");
        free(text);
        job_store_reopen(js);
    }
}
END_TEST

START_TEST(journal__a_hole_costs_one_partition)
{
    struct partition_report report = js_report();
    struct partition_work work;
    uint8_t proof[192];

    submit("b", 2);
    id = js_find(js, "b").id;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), 0);
        close(work.c1_fd);
        js_fill_proof(proof, 7, work.partition);
        ck_assert_int_eq(jobs_partition_done(js->jobs, work.job, work.partition, proof, &report),
                         0);
    }
    damage("partitions", FLIPPED);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "b").partitions_done, 4);
    ck_assert_uint_eq(repaired(), 1);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "b").partitions_done, 4);
    ck_assert_uint_eq(repaired(), 0);
    ck_assert_uint_eq(js_prove_all(js), FAKE_PARTITIONS - 4);
    struct stat st;
    ck_assert_int_eq(stat(file_of("partitions"), &st), 0);
    ck_assert_int_eq(st.st_size, FAKE_PARTITIONS * ENTRY_BYTES);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("results");
    TCase *tc = tcase_create("results");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, jobs_proof__a_damaged_one_is_put_together_from_the_journal, 0, DAMAGES);
    tcase_add_test(tc, jobs_proof__the_proof_of_another_job_is_none);
    tcase_add_loop_test(tc, jobs_proof__without_proof_and_journal_it_is_proved_again, 0, 3);
    tcase_add_loop_test(tc, jobs_proof__without_anything_left_the_job_fails_and_says_so, 0,
                        DAMAGES);
    tcase_add_test(tc, jobs_proof__what_is_proved_again_is_not_written_over);
    tcase_add_loop_test(tc, jobs_report__a_damaged_one_is_made_again, 0, DAMAGES);
    tcase_add_test(tc, jobs_error__a_damaged_one_is_told);
    tcase_add_test(tc, journal__a_hole_costs_one_partition);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
