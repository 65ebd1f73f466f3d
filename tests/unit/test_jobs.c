#include "daemon/jobs.h"

#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/record.h"
#include "daemon/store.h"
#include "tests/lib/files.h"
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

static unsigned jobs_on_disk(void)
{
    unsigned jobs, others;

    js_count_dirs(js, &jobs, &others);
    ck_assert_uint_eq(others, 0);
    return jobs;
}

/* ---- at once ---- */

static struct job_info make_file(const char *name)
{
    const struct upload_owner owner = {.uid = 1000, .mode = 0644};
    struct job_info info;

    ck_assert_int_eq(jobs_create_file(js->jobs, name, &owner, &info), 0);
    return info;
}

/* Names of what is no job come and go without the disk; what makes a job of it is left to those who wait for it. */
START_TEST(jobs_at_once__files_that_are_no_jobs)
{
    size_t len;
    const uint8_t *bytes = document("2KiB-sealed", &len);
    struct upload *u = js_open(js, ".a");
    uint64_t id = upload_job_id(u);

    js_write(u, bytes, 100, 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, ".b"), 0);
    ck_assert_uint_eq(js_find(js, ".b").id, id);
    ck_assert_int_eq(js_state(js, ".a"), JOB_STATES);
    js_write(u, bytes + 100, len - 100, 100);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, "b"), -EINPROGRESS); /* that submits it */
    ck_assert_uint_eq(js_find(js, ".b").id, id);
    struct job_info other = make_file(".c");
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, ".c"), 0); /* over another one */
    struct job_info info;
    ck_assert_int_eq(jobs_get(js->jobs, other.id, &info), -ENOENT);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, "x.proof"), -EPERM);
    ck_assert_int_eq(jobs_rename(js->jobs, id, "c"), 0);
    ck_assert_int_eq(js_state(js, "c"), JOB_QUEUED);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, make_file(".e").id, "c"), -EBUSY);
    ck_assert_int_eq(js_state(js, "c"), JOB_QUEUED);
}
END_TEST

START_TEST(jobs_remove_at_once__its_bytes_follow)
{
    struct upload *u = js_open(js, ".a");
    uint64_t id = upload_job_id(u);

    js_write(u, "{", 1, 0);
    upload_close(u, false);
    ck_assert_uint_eq(jobs_on_disk(), 1);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    ck_assert_int_eq(js_state(js, ".a"), JOB_STATES);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), -ENOENT);
    ck_assert_uint_gt(make_file(".a").id, id); /* the name is free */
    jobs_catch_up(js->jobs);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

/* ---- looking ---- */

START_TEST(jobs__a_copy_becomes_a_job_and_ends_with_its_proof)
{
    uint64_t id = js_submit(js, "a.json", "2KiB-sealed");
    struct job_info info = js_find(js, "a.json");
    size_t len, proof_len;
    const uint8_t *bytes = document("2KiB-sealed", &len);
    uint8_t *proof, *back = malloc(len + 1);
    char *text;

    ck_assert_int_eq(info.state, JOB_QUEUED);
    ck_assert_uint_eq(info.file_bytes, len);
    ck_assert_uint_eq(info.partitions, 1);
    ck_assert_str_eq(info.proof->name, "StackedDrg2KiBV1_1");
    ck_assert_int_gt(info.accepted_ns, 0);
    ck_assert_uint_eq(info.uid, 1000);
    ck_assert_uint_eq(info.mode, 0644);
    ck_assert_int_eq(jobs_read_file(js->jobs, id, back, len + 1, 0), (ssize_t)len);
    ck_assert_mem_eq(back, bytes, len);
    ck_assert_int_eq(jobs_read_file(js->jobs, id, back, 10, len), 0);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &proof_len), -ENOENT);
    ck_assert_int_eq(jobs_report(js->jobs, id, &text), -ENOENT);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js_state(js, "a.json"), JOB_DONE);
    ck_assert_int_eq(jobs_proof(js->jobs, id, &proof, &proof_len), 0);
    ck_assert_uint_eq(proof_len, 192);
    ck_assert_int_eq(proof[1], 7);
    ck_assert_int_eq(jobs_error(js->jobs, id, &text), -ENOENT);
    ck_assert_int_eq(jobs_read_file(js->jobs, id, back, len, 0), (ssize_t)len);
    free(proof);
    free(back);
}
END_TEST

START_TEST(jobs_report__says_what_was_proved_and_what_it_cost)
{
    static const char *const words[] = {
        "\"name\": \"odd \\\"name\\\" \\\\ \\u0001 \\u00ff \xc3\xa4\"",
        "\"proof_type\": \"StackedDrg2KiBV1_1\"",
        "\"sector_number\": ",
        "\"replica_id\": \"",
        "\"comm_r\": \"",
        "\"comm_d\": \"",
        "\"public_inputs_sha256\": \"",
        "\"parameters\": \"insecure development parameters\"",
        "\"synthesis_ms\": 1.500",
        "\"sum_synthesis_ms\": 1.500",
        "\"sum_prove_ms\": 5.000",
        "\"sum_verify_ms\": 4.000",
        "\"device\": \"cpu\"",
        "\"peak_bytes\": 12345",
        "\"partitions_done\": 1",
        "\"state\": \"done\"",
        "\"insecure\": true"};
    struct partition_report report = js_report();
    const char *name = "odd \"name\" \\ \x01 \xff \xc3\xa4";
    struct partition_work work;
    uint8_t proof[192] = {0};
    size_t len;
    uint8_t *wrapped = file_read(c1_path("2KiB-sealed", "c1.json"), &len);
    struct upload *u = js_open(js, name);
    char *json;

    js_write(u, wrapped, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    report.params = SRS_INSECURE;
    report.vk_digest[0] = 2;
    ck_assert_int_eq(jobs_take_partition(js->jobs, 0, &work), 0);
    close(work.c1_fd);
    ck_assert_int_eq(jobs_partition_done(js->jobs, work.job, 0, proof, &report), 0);
    ck_assert(js_find(js, name).insecure);
    ck_assert_int_eq(jobs_report(js->jobs, work.job, &json), 0);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        ck_assert_msg(strstr(json, words[i]), "%s is not in\n%s", words[i], json);
    ck_assert_int_eq(json[strlen(json) - 1], '\n');
    free(json);
    free(wrapped);
}
END_TEST

START_TEST(jobs_list__by_id_in_pieces)
{
    struct job_info info[3];
    uint64_t a = js_submit(js, "a", "2KiB-sealed"), b = js_submit(js, "b", "2KiB-v1");
    struct upload *u = js_open(js, "c");
    uint64_t c = upload_job_id(u);

    ck_assert_uint_eq(jobs_list(js->jobs, 0, info, 2), 2);
    ck_assert_uint_eq(info[0].id, a);
    ck_assert_uint_eq(info[1].id, b);
    ck_assert_uint_eq(jobs_list(js->jobs, b, info, 2), 1);
    ck_assert_uint_eq(info[0].id, c);
    ck_assert_uint_eq(jobs_list(js->jobs, c, info, 2), 0);
    ck_assert_uint_eq(jobs_list(js->jobs, UINT64_MAX, info, 2), 0);
    jobs_remove(js->jobs, b);
    ck_assert_uint_eq(jobs_list(js->jobs, a, info, 3), 1);
    upload_close(u, false);
}
END_TEST

START_TEST(jobs_totals__count_states_and_return_to_nothing)
{
    struct jobs_totals t;

    js_submit(js, "a", "2KiB-sealed");
    js_submit(js, "b", "2KiB-v1");
    jobs_totals(js->jobs, &t);
    ck_assert_uint_eq(t.by_state[JOB_QUEUED], 2);
    ck_assert_uint_gt(t.store_bytes, 200000);
    js_prove_all(js);
    jobs_totals(js->jobs, &t);
    ck_assert_uint_eq(t.by_state[JOB_DONE], 2);
    ck_assert_uint_eq(t.done_ever, 2);
    ck_assert_int_eq(js_copy(js, "half", "2KiB-sealed", 20000), -EBADMSG);
    js_submit(js, "c", "2KiB-sparse");
    jobs_remove(js->jobs, js_find(js, "c").id);
    upload_close(js_open(js, "never"), false);
    jobs_totals(js->jobs, &t);
    ck_assert_uint_eq(t.by_state[JOB_REJECTED], 1);
    ck_assert_uint_eq(t.refused_ever, 1);
    ck_assert_uint_eq(t.cancelled_ever, 1);
    ck_assert_uint_eq(t.done_ever, 2);
    ck_assert_uint_eq(t.failed_ever, 0);
    jobs_remove(js->jobs, js_find(js, "half").id);
    job_store_reopen(js);
    jobs_totals(js->jobs, &t);
    ck_assert_uint_eq(t.by_state[JOB_DONE], 2);
    ck_assert_uint_eq(t.done_ever, 0);
    ck_assert_uint_eq(t.refused_ever + t.cancelled_ever, 0);
    ck_assert_uint_gt(t.store_bytes, 200000);
    jobs_remove(js->jobs, js_find(js, "a").id);
    jobs_remove(js->jobs, js_find(js, "b").id);
    jobs_totals(js->jobs, &t);
    for (int i = 0; i < JOB_STATES; i++)
        ck_assert_uint_eq(t.by_state[i], 0);
    ck_assert_uint_eq(t.store_bytes, 0);
}
END_TEST

START_TEST(jobs__changes_are_told_in_order)
{
    static const enum job_state moves[][2] = {
        {JOB_RECEIVING, JOB_RECEIVING}, {JOB_RECEIVING, JOB_QUEUED},
        {JOB_QUEUED, JOB_SYNTHESIZING}, {JOB_SYNTHESIZING, JOB_PROVING},
        {JOB_PROVING, JOB_DONE},        {JOB_DONE, JOB_DONE}};
    size_t k = 0;

    js_submit(js, "a", "2KiB-sealed");
    js_prove_all(js);
    jobs_remove(js->jobs, js_find(js, "a").id);
    for (size_t i = 0; i < js->diary_len; i++) {
        const struct diary_line *d = &js->diary[i];
        if (i > 0)
            ck_assert_int_eq(d->was, js->diary[i - 1].is);
        if (k < ARRAY_LEN(moves) && d->was == moves[k][0] && d->is == moves[k][1])
            k++;
    }
    ck_assert_uint_eq(k, ARRAY_LEN(moves));
    ck_assert(js->diary[js->diary_len - 1].gone);
    for (size_t i = 0; i + 1 < js->diary_len; i++)
        ck_assert(!js->diary[i].gone);
}
END_TEST

/* ---- names ---- */

START_TEST(jobs_create_file__refuses_names_that_cannot_be)
{
    struct upload_owner owner = {.mode = 0600};
    struct job_info info;
    char name[300];

    ck_assert_int_eq(jobs_create_file(js->jobs, "a.proof", &owner, &info), -EINVAL);
    ck_assert_int_eq(jobs_create_file(js->jobs, "", &owner, &info), -EINVAL);
    ck_assert_int_eq(jobs_create_file(js->jobs, "a/b", &owner, &info), -EINVAL);
    ck_assert_int_eq(jobs_create_file(js->jobs, "..", &owner, &info), -EINVAL);
    memset(name, 'n', sizeof(name));
    name[246] = '\0'; /* with .proof.bin one too long */
    ck_assert_int_eq(jobs_create_file(js->jobs, name, &owner, &info), -ENAMETOOLONG);
    name[245] = '\0';
    ck_assert_int_eq(jobs_create_file(js->jobs, name, &owner, &info), 0);
    ck_assert_str_eq(info.name, name);
    ck_assert_int_eq(jobs_create_file(js->jobs, name, &owner, &info), -EEXIST);
}
END_TEST

START_TEST(jobs_rename__identity_and_results_stay)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed"), b;
    uint8_t *proof;
    size_t len;

    ck_assert_int_eq(jobs_rename(js->jobs, a, "b"), 0); /* while it is queued */
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    js_prove_all(js);
    ck_assert_int_eq(jobs_rename(js->jobs, a, "c"), 0);
    ck_assert_int_eq(jobs_rename(js->jobs, a, "c"), 0);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "c").id, a);
    ck_assert_int_eq(jobs_proof(js->jobs, a, &proof, &len), 0);
    free(proof);
    b = js_submit(js, "d", "2KiB-v1");
    ck_assert_int_eq(jobs_rename(js->jobs, a, "d"), -EBUSY); /* unfinished */
    ck_assert_int_eq(jobs_rename(js->jobs, b, "c"), 0);      /* ended: replaced */
    ck_assert_uint_eq(js_find(js, "c").id, b);
    ck_assert_uint_eq(jobs_on_disk(), 1);
    ck_assert_int_eq(jobs_rename(js->jobs, a, "e"), -ENOENT);
    ck_assert_int_eq(jobs_rename(js->jobs, b, "e.proof"), -EPERM);
    js_prove_all(js);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "c").id, b);
}
END_TEST

START_TEST(jobs__a_name_goes_to_who_got_it_last)
{
    uint64_t first = js_submit(js, "a", "2KiB-sealed"), second = js_submit(js, "b", "2KiB-v1");

    js_prove_all(js);
    ck_assert_int_eq(jobs_rename(js->jobs, first, "b"), 0); /* an older id over a newer one */
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "b").id, first);
    struct job_info info;
    ck_assert_int_eq(jobs_get(js->jobs, second, &info), -ENOENT);
}
END_TEST

START_TEST(jobs__ids_are_never_used_twice)
{
    uint64_t last = 0;

    for (int i = 0; i < 5; i++) {
        uint64_t id = js_submit(js, "a", "2KiB-sealed");
        ck_assert_uint_gt(id, last);
        last = id;
        jobs_remove(js->jobs, id);
        job_store_reopen(js);
    }
}
END_TEST

/* ---- owner, mode, priority ---- */

START_TEST(jobs__owner_mode_and_priority_outlive_a_restart)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");

    ck_assert_int_eq(jobs_set_owner(js->jobs, id, 5, (gid_t)-1), 0);
    ck_assert_int_eq(jobs_set_owner(js->jobs, id, (uid_t)-1, 6), 0);
    ck_assert_int_eq(jobs_set_mode(js->jobs, id, 0100600), 0);
    ck_assert_int_eq(jobs_set_priority(js->jobs, id, JOB_CRITICAL), 0);
    ck_assert_int_eq(jobs_set_priority(js->jobs, id, JOB_PRIORITIES), -EINVAL);
    ck_assert_int_eq(jobs_set_mode(js->jobs, id + 1, 0600), -ENOENT);
    job_store_reopen(js);
    struct job_info info = js_find(js, "a");
    ck_assert_uint_eq(info.uid, 5);
    ck_assert_uint_eq(info.gid, 6);
    ck_assert_uint_eq(info.mode, 0600);
    ck_assert_int_eq(info.priority, JOB_CRITICAL);
}
END_TEST

START_TEST(jobs__mode_of_a_file_that_is_received)
{
    size_t len;
    const uint8_t *bytes = document("2KiB-sealed", &len);
    struct upload *u = js_open(js, "a");

    ck_assert_int_eq(jobs_set_mode(js->jobs, upload_job_id(u), 0400), 0); /* cp -p */
    ck_assert_int_eq(jobs_set_priority(js->jobs, upload_job_id(u), JOB_LOW), 0);
    js_write(u, bytes, len, 0);
    upload_close(u, false);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "a").mode, 0400);
    ck_assert_int_eq(js_find(js, "a").priority, JOB_LOW);
}
END_TEST

/* ---- removal and age ---- */

START_TEST(jobs_remove__cancels_forgets_and_leaves_nothing)
{
    uint64_t queued = js_submit(js, "a", "2KiB-sealed"), done = js_submit(js, "b", "2KiB-v1");
    struct partition_work work;

    ck_assert_int_eq(jobs_take_partition(js->jobs, 0, &work), 0);
    close(work.c1_fd);
    ck_assert_uint_eq(work.job, queued);
    ck_assert_int_eq(jobs_remove(js->jobs, queued), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_int_eq(jobs_remove(js->jobs, queued), -ENOENT);
    js_prove_all(js);
    ck_assert_int_eq(jobs_remove(js->jobs, done), 0);
    ck_assert_int_eq(jobs_remove(js->jobs, done + 100), -ENOENT);
    struct upload *u = js_open(js, "c");
    js_write(u, "{", 1, 0);
    ck_assert_int_eq(jobs_remove(js->jobs, upload_job_id(u)), 0);
    ck_assert_int_eq(upload_write(u, "}", 1, 1), -ECANCELED);
    upload_close(u, false);
    ck_assert_uint_eq(jobs_on_disk(), 0);
    job_store_reopen(js);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "b"), JOB_STATES);
}
END_TEST

START_TEST(jobs__the_oldest_ended_jobs_go_first)
{
    js->opt.keep_finished = 2;
    job_store_reopen(js);
    js_submit(js, "a", "2KiB-sealed");
    js_submit(js, "b", "2KiB-sealed");
    js_prove_all(js);
    js_submit(js, "c", "2KiB-v1");
    js_prove_all(js);
    js_submit(js, "d", "2KiB-sparse"); /* unfinished: does not count */
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "c"), JOB_DONE);
    ck_assert_int_eq(js_state(js, "d"), JOB_QUEUED);
    ck_assert((js_state(js, "a") == JOB_DONE) != (js_state(js, "b") == JOB_DONE));
    ck_assert_uint_eq(jobs_on_disk(), 3);
}
END_TEST

START_TEST(jobs__who_has_most_loses_first)
{
    js->opt.keep_finished = 4;
    job_store_reopen(js);
    ck_assert_int_eq(jobs_set_owner(js->jobs, js_submit(js, "old", "2KiB-sealed"), 7, 7), 0);
    js_prove_all(js);
    for (char name[] = "a"; name[0] < 'k'; name[0]++) {
        js_submit(js, name, "2KiB-sealed");
        js_prove_all(js);
        jobs_tick(js->jobs);
    }
    ck_assert_int_eq(js_state(js, "old"), JOB_DONE);
    ck_assert_int_eq(js_state(js, "g"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "h"), JOB_DONE);
    ck_assert_int_eq(js_state(js, "j"), JOB_DONE);
}
END_TEST

START_TEST(jobs__ended_jobs_have_so_many_bytes)
{
    struct jobs_totals totals;

    js_submit(js, "a", "2KiB-sealed");
    js_prove_all(js);
    jobs_totals(js->jobs, &totals);
    js->opt.keep_finished_bytes = totals.store_bytes + totals.store_bytes / 2;
    job_store_reopen(js);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    js_submit(js, "b", "2KiB-sealed");
    js_prove_all(js);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "b"), JOB_DONE);
}
END_TEST

START_TEST(jobs_set_limits__count_from_then_on)
{
    struct jobs_options limits = js->opt;
    struct jobs_totals totals;

    js_submit(js, "a", "2KiB-sealed");
    js_prove_all(js);
    js_submit(js, "b", "2KiB-v1");
    js_prove_all(js);
    limits.keep_finished = 1;
    limits.max_unfinished = 3;
    jobs_set_limits(js->jobs, &limits);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "b"), JOB_DONE);
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_eq(totals.places, 3);
    ck_assert_uint_eq(totals.keep_finished, 1);
}
END_TEST

START_TEST(jobs__ended_jobs_age)
{
    js->opt.keep_finished_s = 1;
    job_store_reopen(js);
    js_submit(js, "a", "2KiB-sealed");
    js_prove_all(js);
    ck_assert_int_eq(js_copy(js, "bad", "2KiB-sealed", 100), -EBADMSG);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    ck_assert_int_eq(js_state(js, "bad"), JOB_REJECTED);
    usleep(1100000);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "bad"), JOB_STATES);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

/* ---- opening ---- */

START_TEST(jobs__a_restart_queues_what_was_accepted)
{
    uint64_t id = js_submit(js, "a.json", "2KiB-sealed");

    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "a.json").id, id);
    ck_assert_int_eq(js_state(js, "a.json"), JOB_QUEUED);
    ck_assert_uint_eq(js->diary_len, 0);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js->diary[0].was, JOB_QUEUED);
    job_store_reopen(js);
    ck_assert_int_eq(js_state(js, "a.json"), JOB_DONE);
    ck_assert_uint_eq(js_prove_all(js), 0);
}
END_TEST

START_TEST(jobs_open__two_services_cannot_share_a_store)
{
    struct jobs *second = NULL;
    struct errmsg err = {{0}};

    ck_assert_int_eq(jobs_open(&js->opt, &second, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, "another service"));
}
END_TEST

/* ---- size ---- */

#define MANY 10000

/* Ten thousand jobs like `id` beside it, each of another content: what is looked at of them when the service starts. */
static void store_many(uint64_t id, void (*more)(struct store *store, struct job_record *r))
{
    struct store *store;
    struct job_record r;
    int fd;

    ck_assert_int_eq(store_open(js->dir, &store, NULL), 0);
    ck_assert_int_eq(store_record_get(store, id, &r), 0);
    for (int i = 1; i <= MANY; i++) {
        r.id = r.named = id + (uint64_t)i;
        snprintf(r.name, sizeof(r.name), "sector-%d.json", i);
        memcpy(r.content_id, &r.id, sizeof(r.id));
        ck_assert_int_eq(store_spool_create(store, r.id, &fd), 0);
        store_spool_close(fd);
        more(store, &r);
        ck_assert_int_eq(store_record_put(store, &r), 0);
    }
    store_close(store);
}

/* Bytes of memory for each of them. */
static size_t memory_of_many(void)
{
    size_t before = mallinfo2().uordblks;

    ck_assert_int_eq(jobs_open(&js->opt, &js->jobs, NULL), 0);
    return (mallinfo2().uordblks - before) / MANY;
}

static void put_results(struct store *store, struct job_record *r)
{
    static const uint8_t proof[192];

    ck_assert_int_eq(store_put(store, r->id, STORE_PROOF, proof, sizeof(proof)), 0);
    ck_assert_int_eq(store_put(store, r->id, STORE_REPORT, "{}\n", 3), 0);
}

START_TEST(jobs__ten_thousand_ended_jobs_cost_little)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");

    js_prove_all(js);
    jobs_close(js->jobs);
    store_many(id, put_results);
    size_t each = memory_of_many();
    printf("%zu bytes of memory for an ended job\n", each);
    ck_assert_uint_lt(each, 600);
    ck_assert_int_eq(js_state(js, "sector-9999.json"), JOB_DONE);
}
END_TEST

static void become_32GiB(struct store *store, struct job_record *r)
{
    (void)store;
    r->proof_id = 8;
    r->partitions = 10;
}

/* Their bytes are on disk, and here is hardly more than their names. */
START_TEST(jobs__ten_thousand_queued_jobs_cost_little)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");

    jobs_close(js->jobs);
    store_many(id, become_32GiB);
    size_t each = memory_of_many();
    printf("%zu bytes of memory for a queued job\n", each);
    ck_assert_uint_lt(each, 1200);
    ck_assert_int_eq(js_state(js, "sector-9999.json"), JOB_QUEUED);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("jobs");
    TCase *tc = tcase_create("jobs");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, open_store, close_store);
    tcase_add_test(tc, jobs__a_copy_becomes_a_job_and_ends_with_its_proof);
    tcase_add_test(tc, jobs_report__says_what_was_proved_and_what_it_cost);
    tcase_add_test(tc, jobs_list__by_id_in_pieces);
    tcase_add_test(tc, jobs_totals__count_states_and_return_to_nothing);
    tcase_add_test(tc, jobs__changes_are_told_in_order);
    tcase_add_test(tc, jobs_create_file__refuses_names_that_cannot_be);
    tcase_add_test(tc, jobs_rename__identity_and_results_stay);
    tcase_add_test(tc, jobs__a_name_goes_to_who_got_it_last);
    tcase_add_test(tc, jobs__ids_are_never_used_twice);
    tcase_add_test(tc, jobs__owner_mode_and_priority_outlive_a_restart);
    tcase_add_test(tc, jobs__mode_of_a_file_that_is_received);
    tcase_add_test(tc, jobs_remove__cancels_forgets_and_leaves_nothing);
    tcase_add_test(tc, jobs__the_oldest_ended_jobs_go_first);
    tcase_add_test(tc, jobs__who_has_most_loses_first);
    tcase_add_test(tc, jobs__ended_jobs_age);
    tcase_add_test(tc, jobs__ended_jobs_have_so_many_bytes);
    tcase_add_test(tc, jobs_set_limits__count_from_then_on);
    tcase_add_test(tc, jobs__a_restart_queues_what_was_accepted);
    tcase_add_test(tc, jobs_at_once__files_that_are_no_jobs);
    tcase_add_test(tc, jobs_remove_at_once__its_bytes_follow);
    tcase_add_test(tc, jobs_open__two_services_cannot_share_a_store);
    tcase_add_test(tc, jobs__ten_thousand_ended_jobs_cost_little);
    tcase_add_test(tc, jobs__ten_thousand_queued_jobs_cost_little);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
