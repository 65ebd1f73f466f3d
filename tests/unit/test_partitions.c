#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "daemon/jobs.h"
#include "daemon/store_os.h"
#include "tests/lib/disk_model.h"
#include "tests/lib/fake_c1.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

static struct job_store *js;

static void open_store(void)
{
    js = job_store_create();
}

static void close_store(void)
{
    job_store_destroy(js);
}

static uint64_t submit(const char *name, int number)
{
    char text[FAKE_DOCUMENT_BYTES];
    struct upload *u = js_open(js, name);

    fake_document(text, number);
    js_write(u, text, strlen(text), 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    return js_find(js, name).id;
}

static struct partition_work take(void)
{
    struct partition_work work;

    ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), 0);
    close(work.c1_fd);
    return work;
}

static int finish(struct partition_work work, unsigned char seed)
{
    struct partition_report report = js_report();
    uint8_t proof[192];

    js_fill_proof(proof, seed, work.partition);
    return jobs_partition_done(js->jobs, work.job, work.partition, proof, &report);
}

static unsigned partitions_done(const char *name)
{
    return js_find(js, name).partitions_done;
}

static void check_proof(const char *name, unsigned char seed)
{
    uint8_t *proof, expected[192];
    size_t len;

    ck_assert_int_eq(jobs_proof(js->jobs, js_find(js, name).id, &proof, &len), 0);
    ck_assert_uint_eq(len, 192 * FAKE_PARTITIONS);
    for (uint32_t i = 0; i < FAKE_PARTITIONS; i++) {
        js_fill_proof(expected, seed, i);
        ck_assert_mem_eq(proof + (size_t)192 * i, expected, 192);
    }
    free(proof);
}

/* ---- taking ---- */

START_TEST(jobs_take_partition__gives_the_decoded_form)
{
    char text[FAKE_DOCUMENT_BYTES], back[FAKE_DOCUMENT_BYTES];
    struct partition_work work;

    submit("a", 1);
    fake_document(text, 1);
    ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), 0);
    ck_assert_int_eq(pread(work.c1_fd, back, sizeof(back), 0), (ssize_t)strlen(text));
    ck_assert_mem_eq(back, text, strlen(text));
    ck_assert_int_eq(write(work.c1_fd, "x", 1), -1); /* read only */
    ck_assert_int_eq(fcntl(work.c1_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(work.c1_fd);
    ck_assert_int_eq(js_find(js, "a").node, 1);
}
END_TEST

START_TEST(jobs_take_partition__class_then_age_then_index)
{
    struct partition_work work;
    uint64_t a = submit("a", 1), b = submit("b", 2), c = submit("c", 3);

    ck_assert_int_eq(jobs_set_priority(js->jobs, c, JOB_HIGH), 0);
    ck_assert_int_eq(jobs_set_priority(js->jobs, a, JOB_LOW), 0);
    for (uint32_t i = 0; i < FAKE_PARTITIONS; i++) {
        work = take();
        ck_assert_uint_eq(work.job, c);
        ck_assert_uint_eq(work.partition, i);
        ck_assert_int_eq(work.priority, JOB_HIGH);
    }
    ck_assert_uint_eq(take().job, b);
    ck_assert_int_eq(jobs_set_priority(js->jobs, a, JOB_NORMAL), 0);
    ck_assert_uint_eq(take().job, a);
    jobs_partition_returned(js->jobs, c, 5);
    work = take();
    ck_assert_uint_eq(work.job, c);
    ck_assert_uint_eq(work.partition, 5);
}
END_TEST

static const char *file_of(uint64_t id, const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%016" PRIx64 "/%s", js->dir, id, name);
    return path;
}

static void overwrite(const char *path, const char *text)
{
    FILE *f = fopen(path, "r+");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(jobs_take_partition__a_damaged_decoded_form_is_made_again)
{
    struct jobs_totals totals;
    uint64_t id = submit("a", 1);

    for (int i = 0; i < 2; i++) {
        if (i == 0)
            overwrite(file_of(id, "decoded"), "x");
        else
            unlink(file_of(id, "decoded"));
        job_store_reopen(js);
        take();
        jobs_totals(js->jobs, &totals);
        ck_assert_uint_eq(totals.repaired, 1);
    }
    job_store_reopen(js);
    take();
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_eq(totals.repaired, 0);
}
END_TEST

START_TEST(jobs_take_partition__a_job_without_any_good_file_fails)
{
    struct partition_work work;
    uint64_t id = submit("a", 1);
    char *text;

    overwrite(file_of(id, "decoded"), "x");
    overwrite(file_of(id, "c1"), "C1 document 2");
    job_store_reopen(js);
    ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), -EAGAIN);
    ck_assert_int_eq(js_state(js, "a"), JOB_FAILED);
    ck_assert_int_eq(jobs_error(js->jobs, id, &text), 0);
    ck_assert_msg(strstr(text, "checksum"), "%s", text);
    free(text);
}
END_TEST

START_TEST(jobs_take_partition__without_descriptors_it_waits)
{
    struct partition_work work;
    struct rlimit all, few;

    submit("a", 1);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    few = all;
    few.rlim_cur = (rlim_t)dup(0);
    close((int)few.rlim_cur);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), -EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    take();
}
END_TEST

/* ---- states ---- */

START_TEST(jobs__state_follows_the_partitions)
{
    struct partition_work first, second;

    submit("a", 1);
    first = take();
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    jobs_partition_stage(js->jobs, first.job, first.partition, PARTITION_LOADING, 50);
    ck_assert_int_eq(js_find(js, "a").started_ns, 0); /* it waits for parameters */
    jobs_partition_stage(js->jobs, first.job, first.partition, PARTITION_SYNTHESIZING, 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_SYNTHESIZING);
    ck_assert_int_gt(js_find(js, "a").started_ns, 0);
    second = take();
    jobs_partition_stage(js->jobs, second.job, second.partition, PARTITION_SYNTHESIZING, 0);
    jobs_partition_stage(js->jobs, first.job, first.partition, PARTITION_PROVING, 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_PROVING);
    ck_assert_int_eq(finish(first, 7), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_SYNTHESIZING);
    ck_assert_uint_eq(partitions_done("a"), 1);
    jobs_partition_returned(js->jobs, second.job, second.partition);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    ck_assert_int_eq(js_find(js, "a").node, -1);
    ck_assert_uint_eq(js_prove_all(js), FAKE_PARTITIONS - 1);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    check_proof("a", 7);
    /* What comes late or from nowhere changes nothing. */
    ck_assert_int_eq(finish(first, 9), 0);
    first.job += 1000;
    ck_assert_int_eq(finish(first, 9), 0);
    jobs_partition_returned(js->jobs, second.job, second.partition);
    jobs_partition_failed(js->jobs, second.job, second.partition, -EIO, "late");
    jobs_partition_stage(js->jobs, second.job, 99, PARTITION_PROVING, 0);
    jobs_partition_failed(js->jobs, first.job, 99, -EIO, "nowhere");
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    check_proof("a", 7);
}
END_TEST

START_TEST(jobs_partition_failed__fails_the_job_with_its_text)
{
    uint64_t id = submit("a", 1);
    struct partition_work first = take(), second = take();
    char *text;

    ck_assert_int_eq(finish(first, 7), 0);
    jobs_partition_failed(js->jobs, second.job, second.partition, -EILSEQ,
                          "the proof does not verify");
    ck_assert_int_eq(js_state(js, "a"), JOB_FAILED);
    ck_assert(jobs_cancelled(js->jobs, id));
    ck_assert(js_find(js, "a").has_error);
    for (int start = 0; start < 2; start++) {
        ck_assert_int_eq(jobs_error(js->jobs, id, &text), 0);
        ck_assert_mem_eq(text, "the proof does not verify\n", 26);
        ck_assert_ptr_nonnull(strstr(text, "partition 1"));
        ck_assert_uint_eq(js_find(js, "a").error_bytes, strlen(text)); /* known without a look at the disk */
        free(text);
        ck_assert_uint_gt(js_find(js, "a").report_bytes, 0);
        ck_assert_int_eq(jobs_report(js->jobs, id, &text), 0);
        ck_assert_uint_eq(js_find(js, "a").report_bytes, strlen(text));
        ck_assert_ptr_nonnull(strstr(text, "\"error\": \"the proof does not verify\\u000a"));
        free(text);
        ck_assert_uint_eq(js_prove_all(js), 0);
        job_store_reopen(js);
        ck_assert_int_eq(js_state(js, "a"), JOB_FAILED);
    }
}
END_TEST

START_TEST(jobs__journalled_partitions_outlive_a_restart)
{
    struct partition_work works[5];
    char path[256];
    uint64_t id = submit("a", 1);

    for (size_t i = 0; i < ARRAY_LEN(works); i++)
        works[i] = take();
    ck_assert_int_eq(finish(works[4], 7), 0); /* in another order */
    ck_assert_int_eq(finish(works[0], 7), 0);
    ck_assert_int_eq(finish(works[2], 7), 0);
    snprintf(path, sizeof(path), "%s/%016" PRIx64 "/partitions", js->dir, id);
    FILE *f = fopen(path, "a"); /* a torn tail */
    ck_assert_ptr_nonnull(f);
    fputs("proofdP1 and half an entry", f);
    fclose(f);
    job_store_reopen(js);
    ck_assert_uint_eq(partitions_done("a"), 3);
    struct partition_work work = take();
    ck_assert_uint_eq(work.partition, 1);
    ck_assert_int_eq(finish(work, 7), 0);
    job_store_reopen(js); /* the new entry is where the tail was */
    ck_assert_uint_eq(partitions_done("a"), 4);
    ck_assert_uint_eq(js_prove_all(js), FAKE_PARTITIONS - 4);
    check_proof("a", 7);
    ck_assert_uint_eq(js_count_files(js, id), 6); /* c1, job, spare, partitions, proof, report */
}
END_TEST

START_TEST(jobs__partitions_of_other_parameters_are_proved_again)
{
    struct partition_report report = js_report();
    uint8_t proof[192];
    struct partition_work work;

    submit("a", 1);
    report.params = SRS_INSECURE;
    report.vk_digest[0] = 2;
    js_fill_proof(proof, 1, 0);
    for (int i = 0; i < 3; i++) {
        work = take();
        ck_assert_int_eq(jobs_partition_done(js->jobs, work.job, work.partition, proof, &report),
                         0);
    }
    job_store_reopen(js); /* with official parameters now */
    ck_assert_uint_eq(partitions_done("a"), 3);
    ck_assert_uint_eq(js_prove_all(js), FAKE_PARTITIONS);
    check_proof("a", 7);
    ck_assert(!js_find(js, "a").insecure);
}
END_TEST

/* ---- one content, many jobs ---- */

START_TEST(jobs__one_content_is_one_computation)
{
    uint64_t a = submit("a", 1), b = submit("b", 1);

    ck_assert_uint_eq(js_find(js, "b").same_as, a);
    ck_assert_uint_eq(js_find(js, "a").same_as, 0);
    ck_assert_int_eq(finish(take(), 7), 0);
    ck_assert_uint_eq(partitions_done("b"), 1);
    ck_assert_uint_eq(js_prove_all(js), FAKE_PARTITIONS - 1);
    check_proof("a", 7);
    check_proof("b", 7);
    submit("c", 1); /* proved before: done at once */
    ck_assert_int_eq(js_state(js, "c"), JOB_DONE);
    check_proof("c", 7);
    ck_assert_uint_eq(js_find(js, "c").same_as, b);
    jobs_remove(js->jobs, a);
    jobs_remove(js->jobs, js_find(js, "c").id);
    job_store_reopen(js);
    submit("d", 1); /* from a follower, after a restart */
    check_proof("d", 7);
    ck_assert_uint_eq(js_find(js, "d").same_as, b);
    char *text;
    ck_assert_int_eq(jobs_report(js->jobs, js_find(js, "d").id, &text), 0);
    ck_assert_ptr_nonnull(strstr(text, "\"synthesis_ms\": 1.500"));
    ck_assert_ptr_nonnull(strstr(text, "\"same_as\": "));
    free(text);
}
END_TEST

/* ---- parameters ---- */

START_TEST(jobs__a_job_says_that_it_waits_for_parameters)
{
    uint64_t a = submit("a", 1);
    struct partition_work first = take(), second = take();
    struct job_info info = js_find(js, "a");

    ck_assert_int_eq(info.state, JOB_QUEUED); /* as long as the engine has not said what it does */
    ck_assert_int_eq(info.node, 1);
    jobs_partition_stage(js->jobs, a, second.partition, PARTITION_SYNTHESIZING, 0);
    jobs_partition_stage(js->jobs, a, first.partition, PARTITION_LOADING, 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_SYNTHESIZING); /* the second one is */
    jobs_partition_stage(js->jobs, a, second.partition, PARTITION_LOADING, 34);
    info = js_find(js, "a");
    ck_assert_int_eq(info.state, JOB_QUEUED);
    ck_assert(info.waits_for_params);
    ck_assert_int_eq(info.params_percent, 34);
    ck_assert_int_eq(info.node, 1);
    size_t told = js->diary_len;
    jobs_partition_stage(js->jobs, a, second.partition, PARTITION_LOADING, 35);
    ck_assert_uint_eq(js->diary_len, told + 1); /* for who polls the status */
    jobs_partition_stage(js->jobs, a, second.partition, PARTITION_SYNTHESIZING, 0);
    info = js_find(js, "a");
    ck_assert_int_eq(info.state, JOB_SYNTHESIZING);
    ck_assert(!info.waits_for_params);
    ck_assert_int_eq(info.params_percent, -1);
    jobs_partition_returned(js->jobs, a, second.partition);
    ck_assert_int_eq(js_find(js, "a").params_percent, 0); /* the first one's */
    jobs_partition_returned(js->jobs, a, first.partition);
    info = js_find(js, "a");
    ck_assert_int_eq(info.state, JOB_QUEUED);
    ck_assert(!info.waits_for_params);
    ck_assert_int_eq(info.node, -1);
}
END_TEST

START_TEST(jobs_hold_size__gives_out_nothing_of_that_size)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    struct partition_work work;

    submit("a", 1);
    work = take();
    ck_assert_ptr_eq(work.size, size);
    jobs_hold_size(js->jobs, size, JOB_LACKS_PARAMS);
    ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), -EAGAIN);
    ck_assert(!js_find(js, "a").waits_for_params); /* one is being proved */
    jobs_partition_returned(js->jobs, work.job, 0);
    ck_assert(js_find(js, "a").waits_for_params);
    ck_assert_int_eq(js_find(js, "a").params_percent, -1);
    submit("b", 2);
    ck_assert(js_find(js, "b").waits_for_params);
    jobs_hold_size(js->jobs, size, JOB_LACKS_MEMORY);
    ck_assert(js_find(js, "b").waits_for_memory && !js_find(js, "b").waits_for_params);
    jobs_hold_size(js->jobs, sector_size_by_name("8MiB"), JOB_LACKS_PARAMS);
    jobs_hold_size(js->jobs, size, JOB_LACKS_NOTHING);
    ck_assert(!js_find(js, "b").waits_for_memory);
    ck_assert(!js_find(js, "a").waits_for_params && !js_find(js, "b").waits_for_params);
    js_prove_all(js);
    check_proof("a", 7);
    check_proof("b", 7);
}
END_TEST

static uint8_t current; /* what the parameters of now begin with; 0: nobody knows */

static int say_current(void *ctx, const struct sector_size *size,
                       uint8_t vk_digest[SRS_VK_DIGEST_BYTES])
{
    (void)ctx;
    ck_assert_str_eq(size->name, "2KiB");
    if (!current)
        return -ENOENT;
    memset(vk_digest, 0, SRS_VK_DIGEST_BYTES);
    vk_digest[0] = current;
    return 0;
}

/* As js_prove_all, with the parameters of now. */
static unsigned prove_some(unsigned count, unsigned char seed)
{
    struct partition_report report = js_report();
    struct partition_work work;
    uint8_t proof[192];
    unsigned n = 0;

    report.vk_digest[0] = current;
    for (; n < count && jobs_take_partition(js->jobs, 1, &work) == 0; n++) {
        close(work.c1_fd);
        js_fill_proof(proof, seed, work.partition);
        ck_assert_int_eq(jobs_partition_done(js->jobs, work.job, work.partition, proof, &report),
                         0);
    }
    return n;
}

START_TEST(jobs__what_other_parameters_proved_is_forgotten_at_the_start)
{
    js->opt.params = say_current;
    job_store_reopen(js);
    submit("a", 1);
    current = 1;
    prove_some(4, 7);
    job_store_reopen(js);
    ck_assert_uint_eq(partitions_done("a"), 4);
    current = 0; /* gone: what is there is good as long as nothing else is known */
    job_store_reopen(js);
    ck_assert_uint_eq(partitions_done("a"), 4);
    current = 2;
    job_store_reopen(js);
    ck_assert_uint_eq(partitions_done("a"), 0);
    prove_some(2, 8);
    job_store_reopen(js);
    ck_assert_uint_eq(partitions_done("a"), 2);
    ck_assert_uint_eq(prove_some(100, 8), FAKE_PARTITIONS - 2);
    check_proof("a", 8);
    char *text;
    ck_assert_int_eq(jobs_report(js->jobs, js_find(js, "a").id, &text), 0);
    ck_assert_ptr_nonnull(strstr(text, "\"parameters\": \"official\""));
    ck_assert_ptr_nonnull(strstr(text, "\"verifying_key_sha256\": \"0200"));
    free(text);
}
END_TEST

START_TEST(jobs__a_proof_is_taken_over_only_with_the_same_parameters)
{
    js->opt.params = say_current;
    job_store_reopen(js);
    current = 1;
    submit("a", 1);
    prove_some(100, 7);
    submit("b", 1);
    ck_assert_int_eq(js_state(js, "b"), JOB_DONE);
    current = 0;
    submit("c", 1);
    ck_assert_int_eq(js_state(js, "c"), JOB_QUEUED);
    current = 2;
    ck_assert_uint_eq(prove_some(100, 8), FAKE_PARTITIONS);
    check_proof("c", 8);
    submit("d", 1); /* the newest of the three */
    ck_assert_int_eq(js_state(js, "d"), JOB_DONE);
    check_proof("d", 8);
    current = 1;
    submit("e", 1);
    ck_assert_int_eq(js_state(js, "e"), JOB_QUEUED);
    job_store_reopen(js);
    check_proof("a", 7); /* what has ended stays as it is */
    check_proof("c", 8);
    ck_assert_int_eq(js_state(js, "e"), JOB_QUEUED);
}
END_TEST

START_TEST(jobs__a_follower_takes_over)
{
    uint64_t a = submit("a", 1), b = submit("b", 1), c = submit("c", 1);
    struct partition_work first = take(), second = take(), third = take();
    struct job_info info;

    ck_assert_int_eq(finish(first, 7), 0);
    ck_assert_int_eq(jobs_remove(js->jobs, a), 0);
    ck_assert_uint_eq(js_find(js, "b").same_as, 0);
    ck_assert_uint_eq(js_find(js, "c").same_as, b);
    ck_assert_uint_eq(partitions_done("b"), 1);
    ck_assert(!jobs_cancelled(js->jobs, a)); /* its engines work on for the others */
    ck_assert_int_eq(jobs_get(js->jobs, a, &info), 0);
    ck_assert_int_eq(info.state, JOB_CANCELLED);
    jobs_partition_stage(js->jobs, second.job, second.partition, PARTITION_PROVING, 0);
    ck_assert_int_eq(js_state(js, "b"), JOB_PROVING);
    ck_assert_int_eq(finish(second, 7), 0); /* under the old id */
    ck_assert_uint_eq(partitions_done("b"), 2);
    struct job_store *other = job_store_copy(js);
    struct job_info found = js_find(other, "b");
    ck_assert_uint_eq(found.partitions_done, 2); /* in b's own journal */
    job_store_destroy(other);
    jobs_partition_returned(js->jobs, third.job, third.partition);
    ck_assert_int_eq(jobs_get(js->jobs, a, &info), -ENOENT); /* no engine has anything of it now */
    ck_assert_uint_eq(take().job, b);
    ck_assert_int_eq(jobs_remove(js->jobs, c), 0); /* a follower that goes changes nothing */
    ck_assert_uint_eq(js_prove_all(js), FAKE_PARTITIONS - 3);
    ck_assert_int_eq(finish((struct partition_work){.job = b, .partition = 2}, 7), 0);
    check_proof("b", 7);
}
END_TEST

START_TEST(jobs__the_last_one_cancelled_ends_the_computation)
{
    uint64_t a = submit("a", 1), b = submit("b", 1);
    struct partition_work work = take();

    jobs_remove(js->jobs, b);
    ck_assert(!jobs_cancelled(js->jobs, a));
    jobs_remove(js->jobs, a);
    ck_assert(jobs_cancelled(js->jobs, a));
    struct job_info info;
    ck_assert_int_eq(jobs_get(js->jobs, a, &info), 0);
    ck_assert_int_eq(info.state, JOB_CANCELLED);
    ck_assert_uint_eq(jobs_list(js->jobs, 0, &info, 1), 0);
    js->diary_len = 0;
    ck_assert_int_eq(finish(work, 7), 0);
    ck_assert_int_eq(jobs_get(js->jobs, a, &info), -ENOENT);
    ck_assert(js->diary[js->diary_len - 1].gone);
    ck_assert_uint_eq(js_prove_all(js), 0);
}
END_TEST

START_TEST(jobs__followers_fail_with_the_first)
{
    submit("a", 1);
    submit("b", 1);
    struct partition_work work = take();
    jobs_partition_failed(js->jobs, work.job, work.partition, -EIO, "no luck");
    ck_assert_int_eq(js_state(js, "a"), JOB_FAILED);
    ck_assert_int_eq(js_state(js, "b"), JOB_FAILED);
    submit("c", 1); /* a new attempt is one */
    ck_assert_int_eq(js_state(js, "c"), JOB_QUEUED);
}
END_TEST

START_TEST(jobs__sharing_survives_a_restart)
{
    uint64_t a = submit("a", 1);

    submit("b", 1);
    submit("c", 2);
    ck_assert_int_eq(finish(take(), 7), 0);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "b").same_as, a);
    ck_assert_uint_eq(partitions_done("b"), 1);
    ck_assert_uint_eq(js_prove_all(js), 2 * FAKE_PARTITIONS - 1);
    check_proof("b", 7);
    check_proof("c", 7);
}
END_TEST

/* ---- a disk that is full ---- */

static void start_recording(void)
{
    job_store_destroy(js);
    js = job_store_create_recorded();
}

static void stop_recording(void)
{
    recorder_stop();
    jobs_close(js->jobs);
    js->jobs = NULL;
    ck_assert_int_eq(jobs_open(&js->opt, &js->jobs, NULL), 0);
    recorder_free();
}

static struct proof_result result_of(struct partition_work work, unsigned char seed)
{
    struct proof_result r = {.job = work.job, .partition = work.partition, .report = js_report()};

    js_fill_proof(r.proof, seed, work.partition);
    return r;
}

/* All of eight jobs and half of a ninth in one go, with one of a job that is gone and one given twice: each job has what is its own, on disk. */
START_TEST(jobs_partitions_done__of_many_jobs_at_once)
{
    enum { JOBS = 9, LEN = 8 * FAKE_PARTITIONS + 5 };
    static struct proof_result results[LEN + 3];
    char name[16];

    for (int i = 0; i < JOBS; i++) {
        snprintf(name, sizeof(name), "j%d", i);
        submit(name, i);
    }
    uint64_t gone = submit("gone", 100);
    ck_assert_int_eq(jobs_set_priority(js->jobs, gone, JOB_HIGH), 0);
    struct partition_work removed = take();
    ck_assert_uint_eq(removed.job, gone);
    jobs_remove(js->jobs, gone);
    for (size_t i = 0; i < LEN; i++)
        results[i] = result_of(take(), (unsigned char)(i / FAKE_PARTITIONS));
    results[LEN] = result_of(removed, 0);
    results[LEN + 1] = results[3];
    results[LEN + 2] = results[LEN - 1];
    jobs_partitions_done(js->jobs, results, LEN + 3);
    for (size_t i = 0; i < LEN + 3; i++)
        ck_assert_int_eq(results[i].ret, 0);
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 8; i++) {
            snprintf(name, sizeof(name), "j%d", i);
            ck_assert_int_eq(js_state(js, name), JOB_DONE);
            check_proof(name, (unsigned char)i);
        }
        ck_assert_uint_eq(partitions_done("j8"), 5);
        ck_assert_int_eq(js_state(js, "gone"), JOB_STATES);
        job_store_reopen(js);
    }
    for (uint32_t i = 5; i < FAKE_PARTITIONS; i++)
        ck_assert_uint_eq(take().partition, i);
}
END_TEST

static struct {
    pthread_t thread;
    bool wanted, joined;
    int ret;
} taker;

static void *take_one(void *arg)
{
    struct partition_work work;

    (void)arg;
    taker.ret = jobs_take_partition(js->jobs, 1, &work);
    return NULL;
}

static int fsync_while_one_takes(int fd)
{
    struct timespec until;

    if (taker.wanted) {
        taker.wanted = false;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 2; /* a tick that is just due would wait for this sync */
        ck_assert_int_eq(pthread_create(&taker.thread, NULL, take_one, NULL), 0);
        taker.joined = pthread_timedjoin_np(taker.thread, NULL, &until) == 0;
    }
    return store_os_real.fsync(fd);
}

/* An engine still has a partition of a job that was removed. Its result is of use for a new job of the same content, where this was
 * the last partition that waited: while it is written down there is nothing to be given out. */
START_TEST(jobs_partition_done__nobody_takes_what_is_being_written_down)
{
    struct partition_work all[FAKE_PARTITIONS], old = {0};
    struct store_os os = store_os_real;

    submit("a", 1);
    for (uint32_t i = 0; i < FAKE_PARTITIONS; i++)
        old = take();
    jobs_remove(js->jobs, old.job);
    submit("b", 1);
    for (uint32_t i = 0; i < FAKE_PARTITIONS - 1; i++)
        all[i] = take();
    os.fsync = fsync_while_one_takes;
    store_os = &os;
    taker.wanted = true;
    ck_assert_int_eq(finish(old, 7), 0);
    ck_assert(!taker.wanted);
    if (!taker.joined)
        pthread_join(taker.thread, NULL);
    store_os = &store_os_real;
    ck_assert_int_eq(taker.ret, -EAGAIN);
    ck_assert_uint_eq(partitions_done("b"), 1);
    for (uint32_t i = 0; i < FAKE_PARTITIONS - 1; i++)
        ck_assert_int_eq(finish(all[i], 7), 0);
    check_proof("b", 7);
}
END_TEST

START_TEST(jobs_partition_done__waits_in_memory_for_a_full_disk)
{
    start_recording();
    submit("a", 1);
    struct partition_work work = take();
    recorder_fail(0, SIZE_MAX, ENOSPC);
    ck_assert_int_eq(finish(work, 7), -ENOSPC);
    ck_assert_uint_eq(partitions_done("a"), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_PROVING); /* it waits for the disk alone */
    ck_assert_int_eq(finish(work, 7), -ENOSPC);
    ck_assert_uint_ne(take().partition, work.partition); /* nobody proves it again */
    recorder_fail(0, 0, 0);
    ck_assert_int_eq(finish(work, 7), 0);
    ck_assert_uint_eq(partitions_done("a"), 1);
    stop_recording();
    ck_assert_uint_eq(partitions_done("a"), 1);
}
END_TEST

START_TEST(jobs_tick__does_what_the_disk_refused)
{
    start_recording();
    submit("a", 1);
    submit("b", 1);
    for (unsigned i = 1; i < FAKE_PARTITIONS; i++)
        ck_assert_int_eq(finish(take(), 7), 0);
    struct partition_work work = take();
    recorder_fail(4, SIZE_MAX, ENOSPC); /* the journal has room, the proof has not */
    ck_assert_int_eq(finish(work, 7), -ENOSPC);
    ck_assert_int_eq(js_state(js, "a"), JOB_PROVING);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_PROVING);
    recorder_fail(0, 0, 0);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    ck_assert_int_eq(js_state(js, "b"), JOB_DONE);
    ck_assert_int_eq(finish(work, 7), 0); /* the caller's own next attempt */
    stop_recording();
    check_proof("a", 7);
    check_proof("b", 7);
}
END_TEST

START_TEST(jobs_open__ends_what_had_all_its_partitions)
{
    start_recording();
    submit("a", 1);
    for (unsigned i = 1; i < FAKE_PARTITIONS; i++)
        ck_assert_int_eq(finish(take(), 7), 0);
    struct partition_work work = take();
    recorder_fail(3, SIZE_MAX, ENOSPC);
    ck_assert_int_lt(finish(work, 7), 0);
    stop_recording();
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    check_proof("a", 7);
}
END_TEST

/* ---- threads ---- */

#define THREADS 4
#define STEPS 400

struct user {
    pthread_t thread;
    uint64_t state; /* xorshift */
    struct partition_work held[4];
    size_t held_len;
};

static unsigned pick(struct user *u, unsigned below)
{
    u->state ^= u->state << 13;
    u->state ^= u->state >> 7;
    u->state ^= u->state << 17;
    return (unsigned)(u->state >> 20) % below;
}

static const char *pick_name(struct user *u)
{
    static const char *const names[] = {"a", "b", "c", "d", ".t", "e~"};

    return names[pick(u, ARRAY_LEN(names))];
}

/* Writes a file, whole or not, as far as others let it. */
static void user_copies(struct user *u)
{
    struct upload_owner owner = {.mode = 0600};
    char text[FAKE_DOCUMENT_BYTES];
    struct job_info info;
    struct upload *up;
    const char *name = pick_name(u);

    if (jobs_find(js->jobs, name, &info) < 0 && jobs_create_file(js->jobs, name, &owner, &info) < 0)
        return;
    if (upload_open(js->jobs, info.id, &up) < 0)
        return;
    fake_document(text, (int)pick(u, 3));
    size_t len = strlen(text), part = pick(u, 4) ? len : len / 2;
    upload_truncate(up, 0);
    upload_write(up, text, part / 2, 0);
    upload_write(up, text + part / 2, part - part / 2, part / 2);
    if (pick(u, 4))
        upload_judge(up);
    if (!pick(u, 6))
        upload_write(up, "c", 1, 0);
    upload_close(up, !pick(u, 8));
}

static void user_changes(struct user *u)
{
    struct job_info info;

    if (jobs_find(js->jobs, pick_name(u), &info) < 0)
        return;
    switch (pick(u, 4)) {
    case 0:
        jobs_remove(js->jobs, info.id);
        break;
    case 1:
        jobs_set_priority(js->jobs, info.id, (enum job_priority)pick(u, JOB_PRIORITIES));
        break;
    default:
        jobs_rename(js->jobs, info.id, pick_name(u));
    }
}

static void user_looks(struct user *u)
{
    struct job_info info[8];
    struct jobs_totals totals;
    uint8_t byte, *proof;
    char *text;
    size_t len;

    jobs_totals(js->jobs, &totals);
    size_t n = jobs_list(js->jobs, pick(u, 50), info, ARRAY_LEN(info));
    for (size_t i = 0; i < n; i++) {
        jobs_read_file(js->jobs, info[i].id, &byte, 1, 0);
        if (jobs_proof(js->jobs, info[i].id, &proof, &len) == 0)
            free(proof);
        if (jobs_error(js->jobs, info[i].id, &text) == 0)
            free(text);
        if (jobs_report(js->jobs, info[i].id, &text) == 0)
            free(text);
    }
}

static void user_let_go(struct user *u)
{
    struct partition_report report = js_report();
    struct partition_work w = u->held[--u->held_len];
    uint8_t proof[192];

    jobs_partition_stage(js->jobs, w.job, w.partition, PARTITION_PROVING, 0);
    if (!pick(u, 60))
        jobs_partition_failed(js->jobs, w.job, w.partition, -EIO, "bad luck");
    else if (jobs_cancelled(js->jobs, w.job) || !pick(u, 8))
        jobs_partition_returned(js->jobs, w.job, w.partition);
    else {
        js_fill_proof(proof, 7, w.partition);
        ck_assert_int_eq(jobs_partition_done(js->jobs, w.job, w.partition, proof, &report), 0);
    }
}

static void user_proves(struct user *u)
{
    while (u->held_len < ARRAY_LEN(u->held) &&
           jobs_take_partition(js->jobs, 0, &u->held[u->held_len]) == 0)
        close(u->held[u->held_len++].c1_fd);
    while (u->held_len > 0 && pick(u, 8))
        user_let_go(u);
}

static void *user_lives(void *arg)
{
    struct user *u = arg;

    for (int i = 0; i < STEPS; i++) {
        unsigned what = pick(u, 10);
        if (what < 3)
            user_copies(u);
        else if (what < 5)
            user_changes(u);
        else if (what < 6)
            user_looks(u);
        else
            user_proves(u);
    }
    while (u->held_len > 0)
        user_let_go(u);
    return NULL;
}

/* As on a disk, so that much goes on while one waits for it. */
static int fsync_takes_time(int fd)
{
    usleep((useconds_t)random() % 400);
    return store_os_real.fsync(fd);
}

/* Nothing is left in the queue or in an engine, and the disk says the same as the table. */
START_TEST(jobs__many_threads_do_everything_at_once)
{
    struct store_os os = store_os_real;
    static struct user users[THREADS];
    struct job_info before[32], after[32];
    struct jobs_totals totals;
    size_t kept = 0;

    js->opt.changed = NULL;
    job_store_reopen(js);
    os.fsync = fsync_takes_time;
    store_os = &os;
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.state = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1)};
        pthread_create(&users[i].thread, NULL, user_lives, &users[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(users[i].thread, NULL);
    store_os = &store_os_real;
    js_prove_all(js);
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_gt(totals.done_ever, 0);
    ck_assert_uint_gt(totals.failed_ever, 0);
    for (int i = JOB_QUEUED; i < JOB_STATES; i++) {
        if (i != JOB_DONE && i != JOB_FAILED)
            ck_assert_msg(totals.by_state[i] == 0, "%u are left in state %s", totals.by_state[i],
                          job_state_name((enum job_state)i));
    }
    size_t n = jobs_list(js->jobs, 0, before, ARRAY_LEN(before));
    for (size_t i = 0; i < n; i++) {
        if (before[i].state == JOB_DONE || before[i].state == JOB_FAILED)
            before[kept++] = before[i];
    }
    job_store_reopen(js);
    ck_assert_uint_eq(jobs_list(js->jobs, 0, after, ARRAY_LEN(after)), kept);
    for (size_t i = 0; i < kept; i++) {
        ck_assert_uint_eq(after[i].id, before[i].id);
        ck_assert_str_eq(after[i].name, before[i].name);
        ck_assert_int_eq(after[i].state, before[i].state);
        ck_assert_int_eq(after[i].priority, before[i].priority);
        if (after[i].state == JOB_DONE)
            check_proof(after[i].name, 7);
    }
    printf("%llu jobs done, %llu failed, %zu kept\n", (unsigned long long)totals.done_ever,
           (unsigned long long)totals.failed_ever, kept);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("partitions");
    TCase *tc = tcase_create("partitions");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, open_store, close_store);
    tcase_add_test(tc, jobs_take_partition__gives_the_decoded_form);
    tcase_add_test(tc, jobs_take_partition__class_then_age_then_index);
    tcase_add_test(tc, jobs_take_partition__a_damaged_decoded_form_is_made_again);
    tcase_add_test(tc, jobs_take_partition__a_job_without_any_good_file_fails);
    tcase_add_test(tc, jobs_take_partition__without_descriptors_it_waits);
    tcase_add_test(tc, jobs__state_follows_the_partitions);
    tcase_add_test(tc, jobs_partition_failed__fails_the_job_with_its_text);
    tcase_add_test(tc, jobs__journalled_partitions_outlive_a_restart);
    tcase_add_test(tc, jobs__partitions_of_other_parameters_are_proved_again);
    tcase_add_test(tc, jobs__one_content_is_one_computation);
    tcase_add_test(tc, jobs__a_job_says_that_it_waits_for_parameters);
    tcase_add_test(tc, jobs_hold_size__gives_out_nothing_of_that_size);
    tcase_add_test(tc, jobs__what_other_parameters_proved_is_forgotten_at_the_start);
    tcase_add_test(tc, jobs__a_proof_is_taken_over_only_with_the_same_parameters);
    tcase_add_test(tc, jobs__a_follower_takes_over);
    tcase_add_test(tc, jobs__the_last_one_cancelled_ends_the_computation);
    tcase_add_test(tc, jobs__followers_fail_with_the_first);
    tcase_add_test(tc, jobs__sharing_survives_a_restart);
    tcase_add_test(tc, jobs_partitions_done__of_many_jobs_at_once);
    tcase_add_test(tc, jobs_partition_done__nobody_takes_what_is_being_written_down);
    tcase_add_test(tc, jobs_partition_done__waits_in_memory_for_a_full_disk);
    tcase_add_test(tc, jobs_tick__does_what_the_disk_refused);
    tcase_add_test(tc, jobs_open__ends_what_had_all_its_partitions);
    tcase_add_test(tc, jobs__many_threads_do_everything_at_once);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
