/*
 * The power cut. Jobs live through everything that can happen to them while the store's calls are recorded;
 * then every point in time is replayed with what was not synced dropped, in all the ways that tests/lib/disk_model.h knows, and
 * the service is started on each of these disks.
 *
 * Documents are made up (tests/lib/fake_c1.h), so that a job has thirteen partitions and a document a hundred bytes.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/jobs.h"
#include "tests/lib/disk_model.h"
#include "tests/lib/fake_c1.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

#define NAMES_MAX 32

/* ---- what must be there ---- */

/* What a user was told of one job, so far as it must outlive a power cut. */
struct told {
    uint64_t id;
    char name[64];
    bool ended, failed;
    uint32_t partitions_done, priority, mode;
    uint64_t file_bytes;
};

/* The table after one of the steps of the story; `calls` had been made by then. `behind`: the disk may not know of all yet. */
struct moment {
    struct told jobs[NAMES_MAX];
    size_t len, calls;
    bool behind;
    uint64_t last_id;
    const char *step;
};

static struct moment moments[256];
static size_t moments_len;

static void take_down(struct job_store *js, struct moment *m)
{
    struct job_info info[NAMES_MAX];
    size_t n = jobs_list(js->jobs, 0, info, NAMES_MAX);

    m->len = 0;
    for (size_t i = 0; i < n; i++) {
        if (info[i].id > m->last_id)
            m->last_id = info[i].id;
        if (info[i].state == JOB_REJECTED ||
            (info[i].state == JOB_RECEIVING && !info[i].accepted_ns))
            continue;
        struct told *t = &m->jobs[m->len++];
        *t = (struct told){.id = info[i].id,
                           .ended = job_state_is_final(info[i].state),
                           .failed = info[i].state == JOB_FAILED,
                           .partitions_done = info[i].partitions_done,
                           .priority = info[i].priority,
                           .mode = info[i].mode,
                           .file_bytes = info[i].file_bytes};
        snprintf(t->name, sizeof(t->name), "%s", info[i].name);
    }
}

static bool is_behind; /* something was removed or renamed in memory, and the disk may not have heard of it */

/* A step of the story has returned. */
static void told(struct job_store *js, const char *step)
{
    struct moment *m = &moments[moments_len];

    ck_assert_uint_lt(moments_len, ARRAY_LEN(moments));
    m->behind = is_behind;
    m->last_id = moments_len ? m[-1].last_id : 0;
    m->step = step;
    m->calls = recorder_calls();
    take_down(js, m);
    moments_len++;
}

/* ---- the story ---- */

/* A patient user tries until the disk has room. */
static struct upload *open_name(struct job_store *js, const char *name)
{
    struct upload_owner owner = {.uid = 1000, .gid = 1000, .mode = 0644};
    struct job_info info;
    struct upload *u = NULL;

    for (int tries = 0; tries < 100; tries++) {
        if ((jobs_find(js->jobs, name, &info) == 0 && info.state != JOB_REJECTED) ||
            jobs_create_file(js->jobs, name, &owner, &info) == 0) {
            if (upload_open(js->jobs, info.id, &u) == 0)
                return u;
        }
        jobs_tick(js->jobs); /* what waits for the disk may end, and its name be written over */
    }
    ck_abort_msg("%s: cannot open", name);
}

static int copy(struct job_store *js, const char *name, int number)
{
    char text[FAKE_DOCUMENT_BYTES];
    struct upload *u = open_name(js, name);

    fake_document(text, number);
    size_t half = strlen(text) / 2;
    upload_truncate(u, 0);
    ssize_t n = upload_write(u, text, half, 0);
    if (n > 0)
        n = upload_write(u, text + half, strlen(text) - half, half);
    told(js, "written");
    int ret = upload_judge(u);
    told(js, "judged");
    upload_close(u, false);
    told(js, "closed");
    return n < 0 ? (int)n : ret;
}

static void prove(struct job_store *js, unsigned count)
{
    struct partition_report report = js_report();
    struct partition_work work;
    uint8_t proof[192];

    while (count-- > 0 && jobs_take_partition(js->jobs, 1, &work) == 0) {
        close(work.c1_fd);
        jobs_partition_stage(js->jobs, work.job, work.partition, PARTITION_PROVING, 0);
        js_fill_proof(proof, 7, work.partition);
        int ret = jobs_partition_done(js->jobs, work.job, work.partition, proof, &report);
        told(js, "partition done");
        for (int tries = 0; ret < 0 && tries < 3; tries++) {
            ret = jobs_partition_done(js->jobs, work.job, work.partition, proof, &report);
            told(js, "partition done again");
        }
    }
}

static void fail_one(struct job_store *js)
{
    struct partition_work work;

    if (jobs_take_partition(js->jobs, 0, &work) < 0)
        return;
    close(work.c1_fd);
    jobs_partition_failed(js->jobs, work.job, work.partition, -EIO, "the engine found a snag");
    told(js, "failed");
}

static uint64_t id_of(struct job_store *js, const char *name)
{
    struct job_info info;

    return jobs_find(js->jobs, name, &info) == 0 ? info.id : 0;
}

static void take_back_and_judge_again(struct job_store *js)
{
    char text[FAKE_DOCUMENT_BYTES];
    struct upload *u = open_name(js, "a");

    told(js, "created");
    fake_document(text, 1);
    upload_truncate(u, 0);
    upload_write(u, text, strlen(text), 0);
    upload_judge(u);
    told(js, "accepted");
    upload_write(u, "c", 1, 0);
    told(js, "taken back");
    upload_judge(u);
    told(js, "refused");
    upload_write(u, "C", 1, 0);
    told(js, "written again");
    upload_judge(u);
    told(js, "accepted again");
    upload_close(u, false);
    told(js, "queued");
}

static void drop_and_refuse(struct job_store *js)
{
    struct upload *u = open_name(js, "half");

    upload_write(u, "C1 half", 7, 0);
    told(js, "half");
    upload_close(u, true);
    told(js, "killed");
    u = open_name(js, "bad");
    upload_write(u, "C1 bad", 6, 0);
    upload_judge(u);
    upload_close(u, false);
    told(js, "bad");
}

static void remove_name(struct job_store *js, const char *name)
{
    jobs_remove(js->jobs, id_of(js, name));
    told(js, "removed");
}

static void rename_name(struct job_store *js, const char *from, const char *to)
{
    jobs_rename(js->jobs, id_of(js, from), to);
    told(js, "renamed");
}

/* Any call may fail, and the story goes on. */
static void live(struct job_store *js)
{
    take_back_and_judge_again(js);
    copy(js, "b", 1); /* shares the computation of a */
    drop_and_refuse(js);
    prove(js, 3);
    remove_name(js, "a"); /* b is home now */
    prove(js, 2);
    jobs_set_priority(js->jobs, id_of(js, "b"), JOB_HIGH);
    told(js, "priority");
    jobs_set_mode(js->jobs, id_of(js, "b"), 0600);
    told(js, "mode");
    prove(js, FAKE_PARTITIONS);
    copy(js, "c", 1);           /* proved before */
    prove(js, FAKE_PARTITIONS); /* or not, where it could not be copied */
    copy(js, "c", 2);           /* over it */
    prove(js, 1);
    copy(js, ".t", 3);
    rename_name(js, ".t", "e"); /* submits */
    rename_name(js, "e", "f");
    remove_name(js, "c"); /* cancels */
    prove(js, 2 * FAKE_PARTITIONS);
    rename_name(js, "b", "f"); /* over an ended one */
    copy(js, "g", 4);
    fail_one(js);
    remove_name(js, "f");
    copy(js, "g", 5); /* over a failed one */
    prove(js, 2);
    told(js, "end");
}

static void removed_at_once(struct job_store *js, const char *name)
{
    is_behind = true;
    jobs_remove_at_once(js->jobs, id_of(js, name));
    told(js, "removed at once");
}

static void renamed_at_once(struct job_store *js, const char *from, const char *to)
{
    is_behind = true;
    jobs_rename_at_once(js->jobs, id_of(js, from), to);
    told(js, "renamed at once");
}

static void synced(struct job_store *js)
{
    jobs_sync(js->jobs);
    is_behind = false;
    told(js, "synced");
}

/* Names change hands before the disk hears of it. */
static void live_behind(struct job_store *js)
{
    copy(js, "a", 1);
    copy(js, "b", 2);
    copy(js, "c", 1);
    prove(js, FAKE_PARTITIONS + 1); /* a and c are done, b has one */
    renamed_at_once(js, "a", "old");
    renamed_at_once(js, "b", "a");
    renamed_at_once(js, "old", "b");
    synced(js);
    renamed_at_once(js, "c", "d");
    copy(js, "c", 3); /* what has the name now must not cost the other its own */
    removed_at_once(js, "c");
    copy(js, "c", 4);
    renamed_at_once(js, "d", "b"); /* over an ended one */
    synced(js);
    removed_at_once(js, "b");
    removed_at_once(js, "a");
    renamed_at_once(js, "c", "a");
    copy(js, "b", 1);
    jobs_catch_up(js->jobs);
    prove(js, 2);
    synced(js);
    told(js, "end");
}

/* ---- the replay ---- */

static struct {
    const struct moment *before, *after; /* the power went between these; what is between may be on disk or not */
    const struct moment *last; /* the last step that had returned */
    size_t call, states, proved;
    char dir[128];
} now;

static const struct told *find_told(const struct moment *m, uint64_t id)
{
    for (size_t i = 0; m && i < m->len; i++) {
        if (m->jobs[i].id == id)
            return &m->jobs[i];
    }
    return NULL;
}

#define CHECK_CUT(condition, what, job)                                                            \
    ck_assert_msg(condition, "power cut after call %zu (%s), during '%s': job %llu: %s", now.call, \
                  recorder_describe(now.call - 1), now.after->step, (unsigned long long)(job),     \
                  what)

/* Is the recovered job one that a user may expect, as it was told him at `t`? */
static bool is_as_told(const struct told *t, const struct job_info *info)
{
    bool ended = job_state_is_final(info->state);

    if (!t || strcmp(t->name, info->name) != 0 || t->mode != info->mode ||
        t->priority != info->priority || t->file_bytes != info->file_bytes)
        return false;
    if (t->ended)
        return ended && t->failed == (info->state == JOB_FAILED);
    return ended || info->partitions_done >= t->partitions_done;
}

static void check_results(struct jobs *jobs, const struct job_info *info)
{
    uint8_t *proof = NULL, expected[192], back[512];
    char *text = NULL;
    size_t len = 0;

    ssize_t n = jobs_read_file(jobs, info->id, back, sizeof(back), 0);
    CHECK_CUT(n == (ssize_t)info->file_bytes && memcmp(back, "C1 ", 3) == 0 &&
                  memcmp(back + n - 3, "END", 3) == 0,
              "its file is not whole", info->id);
    if (info->state == JOB_FAILED) {
        CHECK_CUT(jobs_error(jobs, info->id, &text) == 0, "no error", info->id);
        free(text);
        return;
    }
    if (info->state != JOB_DONE)
        return;
    CHECK_CUT(jobs_proof(jobs, info->id, &proof, &len) == 0 && len == (size_t)192 * FAKE_PARTITIONS,
              "no proof", info->id);
    for (uint32_t i = 0; i < FAKE_PARTITIONS; i++) {
        js_fill_proof(expected, 7, i);
        CHECK_CUT(memcmp(proof + (size_t)192 * i, expected, 192) == 0, "a wrong proof", info->id);
    }
    free(proof);
    CHECK_CUT(jobs_report(jobs, info->id, &text) == 0, "no report", info->id);
    free(text);
}

static void check_job(struct jobs *jobs, const struct job_info *info)
{
    CHECK_CUT(info->state == JOB_QUEUED || info->state == JOB_DONE || info->state == JOB_FAILED,
              "a job in no state to recover to", info->id);
    bool known = find_told(now.before, info->id), as_told = is_as_told(find_told(now.before, info->id), info);

    for (const struct moment *m = now.before ? now.before + 1 : moments; m <= now.after; m++) {
        known |= find_told(m, info->id) != NULL;
        as_told |= is_as_told(find_told(m, info->id), info);
    }
    CHECK_CUT(known, "nobody was told of it, or it had been removed", info->id);
    CHECK_CUT(as_told, "is not as it was told", info->id);
    check_results(jobs, info);
}

static bool has_id(const struct job_info *info, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (info[i].id == id)
            return true;
    return false;
}

static bool has_name(const struct job_info *info, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(info[i].name, name) == 0)
            return true;
    return false;
}

static bool name_was_told(const struct moment *m, const char *name)
{
    for (size_t i = 0; i < m->len; i++)
        if (strcmp(m->jobs[i].name, name) == 0)
            return true;
    return false;
}

/* What was there after a step and in all that came then must be there, whatever its name; and what has taken a name of what was on disk by
 * that name, or the other one. */
static void check_none_is_missing(const struct job_info *info, size_t n)
{
    for (size_t i = 0; now.last && i < now.last->len; i++) {
        const struct told *t = &now.last->jobs[i];
        bool stays = find_told(now.after, t->id);
        CHECK_CUT(has_id(info, n, t->id) || !stays, "is lost", t->id);
    }
    for (size_t i = 0; now.before && i < now.before->len; i++) {
        const struct told *t = &now.before->jobs[i];
        bool stays = true;
        for (const struct moment *m = now.before + 1; m <= now.after; m++)
            stays &= name_was_told(m, t->name);
        CHECK_CUT(has_name(info, n, t->name) || !stays, "its name is lost", t->id);
    }
}

/* Every queued job can go on: its decoded form is there. Now and then it goes on to the end. */
static void check_work(struct jobs *jobs)
{
    struct partition_report report = js_report();
    struct partition_work work;
    struct jobs_totals totals;
    uint8_t proof[192];
    bool to_the_end = now.states % 8 == 0;

    while (jobs_take_partition(jobs, 0, &work) == 0) {
        close(work.c1_fd);
        if (!to_the_end)
            continue;
        js_fill_proof(proof, 7, work.partition);
        ck_assert_int_eq(jobs_partition_done(jobs, work.job, work.partition, proof, &report), 0);
    }
    jobs_totals(jobs, &totals);
    ck_assert_uint_eq(totals.failed_ever, 0);
    ck_assert_uint_eq(totals.repaired, 0); /* a power cut damages nothing */
    ck_assert_uint_eq(totals.set_aside, 0);
    now.proved += to_the_end;
}

static struct jobs *start(void)
{
    struct jobs_options opt = {.store_dir = now.dir};
    struct jobs *jobs = NULL;
    struct errmsg err = {{0}};

    CHECK_CUT(jobs_open(&opt, &jobs, &err) == 0, err.text, (uint64_t)0);
    return jobs;
}

static void check_disk(void *ctx)
{
    struct upload_owner owner = {.mode = 0600};
    struct job_info info[NAMES_MAX], again[NAMES_MAX];
    struct jobs *jobs = start();
    size_t n = jobs_list(jobs, 0, info, NAMES_MAX);

    (void)ctx;
    for (size_t i = 0; i < n; i++)
        check_job(jobs, &info[i]);
    check_none_is_missing(info, n);
    jobs_close(jobs);

    /* Recovery has nothing left to do. */
    jobs = start();
    ck_assert_uint_eq(jobs_list(jobs, 0, again, NAMES_MAX), n);
    for (size_t i = 0; i < n; i++) {
        CHECK_CUT(again[i].id == info[i].id && again[i].state == info[i].state &&
                      again[i].partitions_done == info[i].partitions_done &&
                      strcmp(again[i].name, info[i].name) == 0,
                  "another after a second start", info[i].id);
        check_results(jobs, &again[i]);
    }
    struct job_info fresh;
    ck_assert_int_eq(jobs_create_file(jobs, "fresh", &owner, &fresh), 0);
    CHECK_CUT(!now.before || fresh.id > now.before->last_id, "an id is given twice", fresh.id);
    jobs_remove(jobs, fresh.id);
    check_work(jobs);
    jobs_close(jobs);
    now.states++;
}

static void (*const stories[])(struct job_store *js) = {live, live_behind};

START_TEST(power_cut__whatever_was_acknowledged_is_there)
{
    struct job_store *js = job_store_create_recorded();
    size_t m = 0, sure = 0; /* moments that are over, and those of which all is on disk */

    moments_len = 0;
    stories[_i](js);
    size_t calls = recorder_calls();
    recorder_stop();
    snprintf(now.dir, sizeof(now.dir), "%.100s.cut", js->dir);
    for (now.call = 1; now.call <= calls; now.call++) {
        while (m < moments_len && moments[m].calls <= now.call)
            sure = moments[m++].behind ? sure : m; /* this step has returned, and the user was told */
        now.last = m > 0 ? &moments[m - 1] : NULL;
        now.before = sure > 0 ? &moments[sure - 1] : NULL;
        now.after = &moments[m < moments_len ? m : moments_len - 1];
        replay_cut(now.call, now.dir, check_disk, NULL);
    }
    printf("%zu calls, %zu steps, %zu disks checked, %zu of them to the end of all jobs\n", calls,
           moments_len, now.states, now.proved);
    remove_tree(now.dir);
    job_store_destroy(js);
    recorder_free();
}
END_TEST

/* ---- calls that fail ---- */

static bool same_told(const struct told *a, const struct told *b)
{
    return a->id == b->id && strcmp(a->name, b->name) == 0 && a->ended == b->ended &&
           a->failed == b->failed && a->partitions_done == b->partitions_done &&
           a->priority == b->priority && a->mode == b->mode && a->file_bytes == b->file_bytes;
}

/* The disk says what the service said, and everything that was accepted can be proved. */
static void check_after_failure(struct job_store *js, size_t nth, size_t count, int code)
{
    static struct moment said, found;
    struct job_info info[NAMES_MAX];

    take_down(js, &said);
    job_store_reopen(js);
    take_down(js, &found);
    ck_assert_msg(said.len == found.len, "%zu calls from the %zuth failed (%s): %zu jobs, then %zu",
                  count, nth, strerror(code), said.len, found.len);
    for (size_t i = 0; i < said.len; i++)
        ck_assert_msg(same_told(&said.jobs[i], &found.jobs[i]),
                      "%zu calls from the %zuth failed (%s): job %llu is not what was said", count,
                      nth, strerror(code), (unsigned long long)said.jobs[i].id);
    js_prove_all(js);
    size_t n = jobs_list(js->jobs, 0, info, NAMES_MAX);
    for (size_t i = 0; i < n; i++)
        ck_assert(job_state_is_final(info[i].state));
}

static void live_with_failures(void (*story)(struct job_store *js), size_t nth, size_t count, int code, bool *failed)
{
    struct job_store *js = job_store_create_recorded();

    moments_len = 0;
    recorder_fail(nth, count, code);
    story(js);
    *failed = recorder_failed();
    recorder_fail(0, 0, 0);
    jobs_tick(js->jobs);
    check_after_failure(js, nth, count, code);
    recorder_stop();
    job_store_destroy(js);
    recorder_free();
}

START_TEST(live__any_call_may_fail)
{
    static const struct {
        size_t count, stride;
        int code;
    } kinds[] = {{1, 1, ENOSPC}, {1, 2, EIO}, {40, 3, ENOSPC}};
    const int kind = _i % 3;
    size_t runs = 0, stride = kinds[kind].stride;
    bool failed = true;

    if (getenv("PROOFD_QUICK"))
        stride *= 5; /* slow builds take one in five */
    for (size_t nth = 0; failed; nth += stride, runs++)
        live_with_failures(stories[_i / 3], nth, kinds[kind].count, kinds[kind].code, &failed);
    printf("%zu runs with %zu calls failing, one in %zu\n", runs, kinds[kind].count, stride);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("power cut");
    TCase *tc = tcase_create("power cut");

    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, power_cut__whatever_was_acknowledged_is_there, 0, 2);
    tcase_add_loop_test(tc, live__any_call_may_fail, 0, 6);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
