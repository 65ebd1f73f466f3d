/*
 * Removals and renames that users are answered before the disk hears of them: what the table says at once, what the disk has
 * when, and what becomes of it where the disk refuses. Power cuts in between are tests/unit/test_power_cut.c's.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/jobs.h"
#include "daemon/store_os.h"
#include "tests/lib/disk_model.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

static struct job_store *js;
static char said[1024];

static void on_said(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(said, sizeof(said), "%s", text);
}

static void open_store(void)
{
    js = job_store_create_recorded();
    js->opt.said = on_said;
    job_store_reopen(js);
    said[0] = '\0';
}

static void close_store(void)
{
    recorder_stop();
    job_store_destroy(js);
    recorder_free();
}

static uint64_t id_of(const char *name)
{
    return js_find(js, name).id;
}

/* What a start would find now. */
static void on_disk(const char *name, enum job_state state)
{
    const struct store_os *recorder = store_os;

    store_os = &store_os_real;
    struct job_store *copy = job_store_copy(js);
    ck_assert_msg(js_state(copy, name) == state, "on disk %s is %s", name,
                  job_state_name(js_state(copy, name)));
    job_store_destroy(copy);
    store_os = recorder;
}

static void disk_refuses(int code)
{
    recorder_fail(0, 10000, code);
}

static void disk_is_good(void)
{
    recorder_fail(0, 0, 0);
}

/* ---- removals ---- */

START_TEST(remove_at_once__the_disk_follows)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");

    size_t calls = recorder_calls();
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    ck_assert_uint_eq(recorder_calls(), calls);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), -ENOENT);
    on_disk("a", JOB_QUEUED);
    jobs_catch_up(js->jobs);
    on_disk("a", JOB_STATES);
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(remove_at_once__engines_stop_and_nothing_more_is_given_out)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");
    struct partition_report report = js_report();
    struct partition_work work;
    struct job_info info;
    uint8_t proof[192];

    ck_assert_int_eq(jobs_take_partition(js->jobs, 0, &work), 0);
    close(work.c1_fd);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    ck_assert(jobs_cancelled(js->jobs, id));
    js_fill_proof(proof, 1, 0);
    ck_assert_int_eq(jobs_partition_done(js->jobs, id, 0, proof, &report),
                     0); /* before the disk heard of it */
    jobs_catch_up(js->jobs);
    ck_assert_int_eq(jobs_get(js->jobs, id, &info), -ENOENT);
    id = js_submit(js, "b", "2KiB-sealed");
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    ck_assert_int_eq(jobs_take_partition(js->jobs, 0, &work), -EAGAIN);
    on_disk("a", JOB_STATES);
}
END_TEST

/* The first of those that share a computation goes; the other one's partition is given out under its own number. */
START_TEST(remove_at_once__the_other_of_its_content_goes_on)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed"), b = js_submit(js, "b", "2KiB-sealed");
    struct partition_work work;

    ck_assert_int_eq(jobs_remove_at_once(js->jobs, a), 0);
    ck_assert_int_eq(jobs_take_partition(js->jobs, 0, &work), 0);
    close(work.c1_fd);
    ck_assert_uint_eq(work.job, b);
    ck_assert(!jobs_cancelled(js->jobs, b));
    jobs_partition_returned(js->jobs, b, work.partition);
    jobs_catch_up(js->jobs);
    js_prove_all(js);
    ck_assert_int_eq(js_state(js, "b"), JOB_DONE);
}
END_TEST

START_TEST(remove_at_once__what_the_disk_refuses_is_there_again)
{
    uint64_t done = js_submit(js, "done", "2KiB-sealed"), queued;
    uint8_t *proof = NULL;
    size_t len;

    js_prove_all(js);
    queued = js_submit(js, "queued", "2KiB-sparse");
    disk_refuses(EIO);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, done), 0);
    jobs_catch_up(js->jobs);
    ck_assert_ptr_nonnull(strstr(said, "Input/output error: the job is there again"));
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, queued), 0);
    ck_assert_int_eq(jobs_sync(js->jobs), -EIO);
    ck_assert_int_eq(jobs_sync(js->jobs), 0); /* said once */
    disk_is_good();
    ck_assert_uint_eq(id_of("done"), done);
    ck_assert_int_eq(js_state(js, "done"), JOB_DONE);
    ck_assert_int_eq(jobs_proof(js->jobs, done, &proof, &len), 0);
    free(proof);
    ck_assert_int_gt(js_find(js, "done").report_bytes, 0);
    ck_assert_int_eq(js_state(js, "queued"), JOB_QUEUED);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js_state(js, "queued"), JOB_DONE);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, done), 0); /* and can go again */
    ck_assert_int_eq(jobs_sync(js->jobs), 0);
    on_disk("done", JOB_STATES);
}
END_TEST

/* A file that is accepted, for it is whole, and still open. */
static struct upload *open_and_whole(const char *name, size_t *len)
{
    const uint8_t *bytes = document("2KiB-sealed", len);
    struct upload *u = js_open(js, name);

    js_write(u, bytes, *len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    return u;
}

/* The writer who still has it open has nothing more to do with it. */
START_TEST(remove_at_once__refused_while_a_writer_has_it_open)
{
    size_t len;
    struct upload *u = open_and_whole("a", &len);
    uint64_t id = upload_job_id(u);

    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    disk_refuses(EIO);
    jobs_catch_up(js->jobs);
    disk_is_good();
    ck_assert_uint_eq(id_of("a"), id); /* there again */
    ck_assert_int_eq(upload_write(u, " ", 1, 0), -ECANCELED);
    upload_close(u, false);
    jobs_tick(js->jobs);
    on_disk("a", JOB_QUEUED);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    on_disk("a", JOB_DONE);
}
END_TEST

static struct {
    const struct store_os *under;
    uint64_t id;
} accepted;

static int remove_while_accepted(int from_dir, const char *from, int to_dir, const char *to)
{
    int ret = accepted.under->renameat(from_dir, from, to_dir, to);

    if (ret == 0 && strcmp(to, "job") == 0)
        jobs_remove_at_once(js->jobs, accepted.id);
    return ret;
}

static int refuse_unlinkat(int dir, const char *name, int flags)
{
    (void)dir, (void)name, (void)flags;
    errno = EIO;
    return -1;
}

/* It is there again, and nothing that was left to be done then takes it away. */
START_TEST(remove_at_once__refused_while_it_is_accepted)
{
    size_t len;
    const uint8_t *bytes = document("2KiB-sealed", &len);
    struct upload *u = js_open(js, "a");
    accepted.under = store_os;
    struct store_os os = *store_os;

    accepted.id = upload_job_id(u);
    os.renameat = remove_while_accepted;
    os.unlinkat = refuse_unlinkat;
    js_write(u, bytes, len, 0);
    store_os = &os;
    ck_assert_int_eq(upload_judge(u), -ECANCELED);
    jobs_catch_up(js->jobs);
    store_os = accepted.under;
    ck_assert_uint_eq(id_of("a"), accepted.id);
    upload_close(u, false);
    jobs_tick(js->jobs);
    on_disk("a", JOB_QUEUED);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
}
END_TEST

/* Where somebody else has the name by now it stays away, and goes from the disk when that lets it. */
START_TEST(remove_at_once__refused_and_the_name_is_another_file_s)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");
    struct upload *u;

    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    u = js_open(js, "a");
    disk_refuses(EIO);
    jobs_catch_up(js->jobs);
    disk_is_good();
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
    upload_close(u, true);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    on_disk("a", JOB_STATES);
}
END_TEST

/* Not before the engine has let go of the old one. */
START_TEST(remove_at_once__refused_while_an_engine_has_a_partition)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");
    struct partition_work work;

    ck_assert_int_eq(jobs_take_partition(js->jobs, 0, &work), 0);
    close(work.c1_fd);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    disk_refuses(EIO);
    jobs_catch_up(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    jobs_partition_returned(js->jobs, id, work.partition);
    jobs_tick(js->jobs);
    disk_is_good();
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    js_prove_all(js);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
}
END_TEST

/* ---- renames ---- */

START_TEST(rename_at_once__the_disk_follows)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed");

    size_t calls = recorder_calls();
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, "b"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, "c"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, "c"), 0);
    ck_assert_uint_eq(recorder_calls(), calls);
    ck_assert_uint_eq(id_of("c"), id);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    on_disk("a", JOB_QUEUED);
    ck_assert_int_eq(jobs_sync(js->jobs), 0);
    on_disk("c", JOB_QUEUED);
    on_disk("a", JOB_STATES);
}
END_TEST

/* Both are there after a kill at any moment: the new one is not accepted under the name before the old one has another. */
START_TEST(rename_at_once__who_gets_the_name_next_waits_for_the_disk)
{
    js_submit(js, "a", "2KiB-sealed");
    js_prove_all(js);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id_of("a"), "b"), 0);
    js_submit(js, "a", "2KiB-sparse");
    on_disk("a", JOB_QUEUED);
    on_disk("b", JOB_DONE);
}
END_TEST

START_TEST(rename_at_once__what_the_disk_refuses_has_its_old_name)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed"), b;

    js_prove_all(js);
    b = js_submit(js, "b", "2KiB-sparse");
    js_prove_all(js);
    disk_refuses(ENOSPC);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "a"), 0); /* over an ended one */
    ck_assert_uint_eq(id_of("a"), b);
    ck_assert_int_eq(jobs_sync(js->jobs), -ENOSPC);
    disk_is_good();
    ck_assert_uint_eq(id_of("a"), a);
    ck_assert_uint_eq(id_of("b"), b);
    ck_assert_ptr_nonnull(strstr(said, "No space left on device: it has its old name again"));
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "a"), 0);
    ck_assert_int_eq(jobs_sync(js->jobs), 0);
    ck_assert_uint_eq(id_of("a"), b);
    job_store_reopen(js);
    ck_assert_uint_eq(id_of("a"), b);
    ck_assert_int_eq(js_state(js, "b"), JOB_STATES);
}
END_TEST

/* Nobody is accepted under the old name as long as the disk has it for the other one. */
START_TEST(rename_at_once__refused_and_the_old_name_is_another_s)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed"), c;

    js_prove_all(js);
    c = js_submit(js, "c", "2KiB-v1");
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, a, "b"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, c, "a"), 0);
    disk_refuses(EIO);
    jobs_catch_up(js->jobs);
    disk_is_good();
    ck_assert_uint_eq(id_of("b"), a); /* late */
    ck_assert_uint_eq(id_of("c"), c); /* its old name was free */
    ck_assert_int_eq(js_copy(js, "a", "2KiB-sparse", SIZE_MAX), -EIO);
    on_disk("a", JOB_DONE);
    jobs_tick(js->jobs);
    on_disk("b", JOB_DONE);
    ck_assert_int_eq(js_copy(js, "a", "2KiB-sparse", SIZE_MAX), 0);
    on_disk("a", JOB_QUEUED);
    on_disk("b", JOB_DONE);
}
END_TEST

/* a and b change names over c, and the first step is refused: neither can take its turn before it. */
START_TEST(rename_at_once__refused_in_a_ring)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed"), b = js_submit(js, "b", "2KiB-sparse");

    ck_assert_int_eq(jobs_rename_at_once(js->jobs, a, "c"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "a"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, a, "b"), 0);
    recorder_fail(0, 1, EIO);
    jobs_catch_up(js->jobs);
    ck_assert(recorder_failed());
    jobs_tick(js->jobs);
    ck_assert_uint_eq(id_of("a"), b);
    ck_assert_uint_eq(id_of("b"), a);
    job_store_reopen(js);
    ck_assert_uint_eq(id_of("a"), b);
    ck_assert_uint_eq(id_of("b"), a);
}
END_TEST

static struct {
    const struct store_os *under;
    uint64_t id;
    int ret;
} meanwhile;

static int rename_meanwhile(int from_dir, const char *from, int to_dir, const char *to)
{
    meanwhile.ret = jobs_rename_at_once(js->jobs, meanwhile.id, "elsewhere");
    return meanwhile.under->renameat(from_dir, from, to_dir, to);
}

/* Whoever has a name that another one gets on disk at this moment waits until that is through. */
START_TEST(rename_at_once__from_a_name_that_is_being_given)
{
    meanwhile.under = store_os;
    struct store_os os = *store_os;
    meanwhile.id = js_submit(js, "old", "2KiB-sealed");
    js_prove_all(js);
    ck_assert_int_eq(js_copy(js, ".new", "2KiB-sparse", SIZE_MAX), 0);
    uint64_t id = id_of(".new");

    os.renameat = rename_meanwhile;
    store_os = &os;
    ck_assert_int_eq(jobs_rename(js->jobs, id, "old"), 0);
    store_os = meanwhile.under;
    ck_assert_int_eq(meanwhile.ret, -EINPROGRESS);
    ck_assert_uint_eq(id_of("old"), id);
}
END_TEST

/* However often: the disk is asked for what it is called in the end. */
START_TEST(rename_at_once__to_and_fro_is_one_on_disk)
{
    uint64_t id = js_submit(js, "a", "2KiB-sealed"), other = js_submit(js, "c", "2KiB-sparse");

    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, i % 2 ? "a" : "b"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, other, "d"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, "e"), 0);
    size_t calls = recorder_calls();
    ck_assert_int_eq(jobs_sync(js->jobs), 0);
    ck_assert_uint_le(recorder_calls() - calls, 60);
    ck_assert_uint_eq(id_of("e"), id);
    job_store_reopen(js);
    ck_assert_uint_eq(id_of("e"), id);
    ck_assert_uint_eq(id_of("d"), other);
}
END_TEST

/* The disk must see who loses a name on the way. */
START_TEST(rename_at_once__over_another_and_on)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed");

    js_prove_all(js);
    uint64_t b = js_submit(js, "b", "2KiB-sparse");
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "c"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "a"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "d"), 0);
    disk_refuses(EIO);
    jobs_catch_up(js->jobs);
    disk_is_good();
    jobs_tick(js->jobs);
    ck_assert_uint_eq(id_of("a"), a); /* all of it is undone */
    ck_assert_uint_eq(id_of("b"), b);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "a"), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "d"), 0);
    job_store_reopen(js);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_uint_eq(id_of("d"), b);
}
END_TEST

/* One after another, in which each gets a name that the next one had: the disk must see them all, so few of a job may wait. */
START_TEST(rename_at_once__rings_wait_for_the_disk)
{
    uint64_t id[3] = {js_submit(js, "a", "2KiB-sealed"), js_submit(js, "b", "2KiB-sparse"),
                      js_submit(js, "c", "2KiB-v1")};
    static const char *const ring[] = {"a", "b", "c", "d"};
    unsigned empty = 3, done = 0;
    int ret = 0;

    for (; ret == 0 && done < 100; done++) { /* whoever is next to the empty place goes there */
        unsigned next = (empty + 1) % 4;
        ret = jobs_rename_at_once(js->jobs, id_of(ring[next]), ring[empty]);
        empty = next;
    }
    ck_assert_int_eq(ret, -EINPROGRESS);
    ck_assert_uint_le(done, 3 * 8);
    empty = (empty + 3) % 4; /* that one did not move */
    uint64_t last = id_of(ring[(empty + 1) % 4]);
    jobs_make_way(js->jobs, ring[(empty + 1) % 4], ring[empty]);
    ck_assert_int_eq(jobs_rename(js->jobs, last, ring[empty]), 0);
    ck_assert_uint_eq(id_of(ring[empty]), last);
    job_store_reopen(js);
    ck_assert_uint_eq(id_of(ring[empty]), last);
    for (int i = 0; i < 3; i++) {
        struct job_info info;
        ck_assert_int_eq(jobs_get(js->jobs, id[i], &info), 0);
    }
}
END_TEST

/* Nor may more of them wait when the disk refuses: whoever renames on hears of that. */
START_TEST(rename_at_once__refused_again_and_again)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed");
    int ret = 0;

    ck_assert_int_eq(jobs_rename_at_once(js->jobs, a, "b"), 0);
    struct upload *u = js_open(js, "a");
    disk_refuses(EIO);
    jobs_catch_up(js->jobs);
    for (int i = 0; i < 20 && ret == 0; i++) {
        ret = jobs_rename_at_once(js->jobs, a, i % 2 ? "b" : "d");
        jobs_catch_up(js->jobs);
    }
    ck_assert_int_eq(ret, -EINPROGRESS);
    jobs_make_way(js->jobs, "d", "e");
    ck_assert_int_eq(jobs_rename(js->jobs, a, "e"), -EIO);
    disk_is_good();
    jobs_tick(js->jobs);
    ck_assert_int_eq(jobs_rename(js->jobs, a, "e"), 0);
    upload_close(u, true);
    job_store_reopen(js);
    ck_assert_uint_eq(id_of("e"), a);
}
END_TEST

/* Whoever has it once more is there before anybody else's right to the name is looked at. */
START_TEST(make_way__the_disk_refuses_to_give_the_name_away)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed");

    js_prove_all(js);
    ck_assert_int_eq(js_copy(js, ".t", "2KiB-sparse", SIZE_MAX), 0);
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, a, "b"), 0);
    disk_refuses(EIO);
    jobs_make_way(js->jobs, ".t", "a");
    disk_is_good();
    ck_assert_uint_eq(id_of("a"), a);
}
END_TEST

START_TEST(rename_at_once__of_what_a_writer_takes_back)
{
    size_t len;
    struct upload *u = open_and_whole("a", &len);

    ck_assert_int_eq(jobs_rename_at_once(js->jobs, upload_job_id(u), "b"), 0);
    js_write(u, " ", 1, len);
    ck_assert_int_eq(jobs_sync(js->jobs), 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "b"), JOB_QUEUED);
    on_disk("b", JOB_QUEUED);
}
END_TEST

/* ---- others who want the disk ---- */

#define MANY 100

static struct {
    struct store_os os;
    const struct store_os *under;
    atomic_uint removed;
} slow;

static int slow_unlink(int dir, const char *name, int flags)
{
    if (strcmp(name, "job") == 0)
        atomic_fetch_add(&slow.removed, 1);
    usleep(2000);
    return slow.under->unlinkat(dir, name, flags);
}

static void *want_the_disk(void *at)
{
    while (atomic_load(&slow.removed) < 5)
        usleep(100);
    jobs_set_mode(js->jobs, id_of("kept"), 0600);
    *(unsigned *)at = atomic_load(&slow.removed);
    return NULL;
}

/* _i: by a sync of the directory, or as it comes. */
START_TEST(catch_up__others_get_the_disk_in_between)
{
    pthread_t other;
    unsigned at = 0;

    js_submit(js, "kept", "2KiB-sealed");
    for (int i = 0; i < MANY; i++) {
        uint64_t id = js_submit(js, "a", "2KiB-sealed");
        ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    }
    slow.under = store_os;
    slow.os = *store_os;
    slow.os.unlinkat = slow_unlink;
    store_os = &slow.os;
    ck_assert_int_eq(pthread_create(&other, NULL, want_the_disk, &at), 0);
    if (_i)
        jobs_sync(js->jobs);
    else
        jobs_catch_up(js->jobs);
    pthread_join(other, NULL);
    store_os = slow.under;
    ck_assert_msg(at < MANY * 2 / 3, "after %u of %d", at, MANY);
}
END_TEST

/* ---- several errors at once ---- */

static struct {
    struct store_os os;
    const struct store_os *under;
    int syncs_until, opens_until; /* so many of them work; < 0: all */
} broken;

static int broken_sync(int fd)
{
    if (broken.syncs_until > 0)
        broken.syncs_until--;
    else if (broken.syncs_until == 0) {
        broken.opens_until = 0;
        errno = EIO;
        return -1;
    }
    return broken.under->fsync(fd);
}

static int broken_open(int dir, const char *name, int flags, mode_t mode)
{
    if (broken.opens_until != 0)
        return broken.under->openat(dir, name, flags, mode);
    errno = EIO;
    return -1;
}

/* Nothing can be written, synced or opened any more after so many syncs. */
static void disk_breaks(int syncs)
{
    broken.under = store_os;
    broken.os = *store_os;
    broken.os.fsync = broken_sync;
    broken.os.openat = broken_open;
    broken.syncs_until = syncs;
    broken.opens_until = -1;
    store_os = &broken.os;
}

static void disk_is_mended(void)
{
    store_os = broken.under;
}

/* Whoever lost its name is there again as soon as it can be read. */
START_TEST(rename_at_once__refused_and_the_loser_cannot_be_read)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed");

    js_prove_all(js);
    uint64_t b = js_submit(js, "b", "2KiB-sparse");
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, b, "a"), 0);
    disk_breaks(0);
    broken.opens_until = 2; /* the record of b, but not that of a */
    jobs_catch_up(js->jobs);
    disk_is_mended();
    jobs_tick(js->jobs);
    if (id_of("a") != b) {
        ck_assert_uint_eq(id_of("a"), a);
        ck_assert_uint_eq(id_of("b"), b);
    }
    job_store_reopen(js);
    ck_assert_int_eq(js_state(js, "a") == JOB_STATES, 0);
}
END_TEST

/* Nobody knows which of both names the disk has, so neither is another's until somebody does. */
START_TEST(rename__the_disk_does_not_say_whether)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed");

    js_prove_all(js);
    for (int syncs = 0; syncs < 6; syncs++) {
        const char *from = syncs % 2 ? "b" : "a", *to = syncs % 2 ? "a" : "b";
        disk_breaks(syncs);
        int ret = jobs_rename(js->jobs, a, to);
        disk_is_mended();
        ck_assert_int_eq(js_state(js, from) == JOB_STATES, js_state(js, to) != JOB_STATES);
        int copied =
            js_copy(js, js_state(js, from) == JOB_STATES ? from : to, "2KiB-sparse", SIZE_MAX);
        ck_assert_msg(ret == 0 || ret == -EIO, "%d", ret);
        ck_assert_msg(copied == 0 || copied == -EIO, "%d", copied);
        const struct store_os *recorder = store_os;
        store_os = &store_os_real;
        struct job_store *copy = job_store_copy(js);
        struct job_info info;
        ck_assert_msg(jobs_get(copy->jobs, a, &info) == 0, "lost where %d syncs work", syncs);
        job_store_destroy(copy);
        store_os = recorder;
        jobs_tick(js->jobs);
        const char *other = id_of("a") == a ? "b" : "a";
        if (js_state(js, other) != JOB_STATES)
            ck_assert_int_eq(jobs_remove(js->jobs, id_of(other)), 0);
        if (id_of(other[0] == 'a' ? "b" : "a") == a && strcmp(other, to) == 0)
            ck_assert_int_eq(jobs_rename(js->jobs, a, to), 0);
    }
}
END_TEST

/* ---- at random ---- */

#define NAMES 4
#define STEPS 80

/* The accepted ones. */
static size_t list(struct job_store *of, struct job_info info[NAMES])
{
    size_t all = jobs_list(of->jobs, 0, info, NAMES), n = 0;

    ck_assert_uint_le(all, NAMES);
    for (size_t i = 0; i < all; i++)
        if (info[i].accepted_ns)
            info[n++] = info[i];
    return n;
}

enum likeness { WHATEVER_NAMES, NO_OTHERS, SAME_NAMES };

/* Every job of the table is on disk: whatever is there besides, no other, no other and by its name. */
static void disk_has_all(unsigned seed, unsigned step, enum likeness like)
{
    const struct store_os *recorder = store_os;
    struct job_info here[NAMES], there[NAMES];
    size_t n = list(js, here), found = 0;

    store_os = &store_os_real;
    struct job_store *copy = job_store_copy(js);
    size_t m = list(copy, there);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++)
            found += here[i].id == there[k].id &&
                     (like < SAME_NAMES || strcmp(here[i].name, there[k].name) == 0);
    job_store_destroy(copy);
    store_os = recorder;
    ck_assert_msg(found == n && (like == WHATEVER_NAMES || n == m),
                  "seed %u step %u: %zu jobs, %zu of them among %zu on disk", seed, step, n, found,
                  m);
}

/* ---- a disk that refuses now and then, and a kill at each moment of it ---- */

static struct {
    const struct store_os *under;
    struct store_os os;
    unsigned dice, first, step;
    bool unreadable;
} watch;

/* One in so many. */
static bool refused_now(int in)
{
    errno = EIO;
    return rand_r(&watch.dice) % in == 0;
}

static int watched_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    int ret = refused_now(3) ? -1 : watch.under->renameat(from_dir, from, to_dir, to);

    if (ret == 0)
        disk_has_all(watch.first, watch.step, WHATEVER_NAMES);
    return ret;
}

static int watched_unlink(int dir, const char *name, int flags)
{
    int ret = refused_now(3) ? -1 : watch.under->unlinkat(dir, name, flags);
    int error = errno;

    if (ret == 0)
        disk_has_all(watch.first, watch.step, WHATEVER_NAMES);
    errno = error;
    return ret;
}

static int watched_sync(int fd)
{
    return refused_now(6) ? -1 : watch.under->fsync(fd);
}

/* A record can be read, or neither it nor its spare copy. */
static int watched_open(int dir, const char *name, int flags, mode_t mode)
{
    bool read = (flags & O_ACCMODE) == O_RDONLY;

    if (read && strcmp(name, "job") == 0)
        watch.unreadable = refused_now(6);
    if (read && watch.unreadable && (strcmp(name, "job") == 0 || strcmp(name, "spare") == 0)) {
        errno = EIO;
        return -1;
    }
    return watch.under->openat(dir, name, flags, mode);
}

static void watch_begin(unsigned first, unsigned step)
{
    watch.under = store_os;
    watch.os = *store_os;
    watch.os.renameat = watched_rename;
    watch.os.unlinkat = watched_unlink;
    watch.os.fsync = watched_sync;
    watch.os.openat = watched_open;
    watch.first = first;
    watch.step = step;
    watch.dice = first + step;
    store_os = &watch.os;
}

static void watch_end(void)
{
    store_os = watch.under;
}

static const char *const names[NAMES] = {"a", "b", "c", "d"};

static bool any_job(unsigned *seed, struct job_info *info)
{
    return jobs_find(js->jobs, names[(unsigned)rand_r(seed) % NAMES], info) == 0;
}

static void any_rename(unsigned *seed)
{
    struct job_info info;

    if (any_job(seed, &info))
        jobs_rename_at_once(js->jobs, info.id, names[(unsigned)rand_r(seed) % NAMES]);
}

static void any_step(unsigned *seed)
{
    static const char *const vectors[] = {"2KiB-sealed", "2KiB-sparse", "2KiB-v1"};
    const char *name = names[(unsigned)rand_r(seed) % NAMES];
    struct job_info info;
    bool there = jobs_find(js->jobs, name, &info) == 0;

    switch ((unsigned)rand_r(seed) % 10) {
    case 0:
    case 1: /* some calls, or all */
        recorder_fail((unsigned)rand_r(seed) % 12,
                      rand_r(seed) % 2 ? 10000 : 1 + (unsigned)rand_r(seed) % 8, EIO);
        if (rand_r(seed) % 2)
            jobs_tick(js->jobs);
        else
            jobs_catch_up(js->jobs);
        disk_is_good();
        break;
    case 2:
    case 3: /* now and then */
        if (rand_r(seed) % 2)
            jobs_tick(js->jobs);
        else
            jobs_catch_up(js->jobs);
        break;
    case 4:
        js_prove_all(js);
        break;
    case 5:
    case 6: /* cp to what is free; the name may be another's on disk yet */
        if (!there)
            js_copy(js, name, vectors[(unsigned)rand_r(seed) % 3], SIZE_MAX);
        if (jobs_find(js->jobs, name, &info) == 0 && info.state == JOB_REJECTED)
            jobs_remove_at_once(js->jobs, info.id);
        break;
    case 7:
        if (there)
            jobs_remove_at_once(js->jobs, info.id);
        break;
    default:
        any_rename(seed);
    }
}

START_TEST(at_random__none_is_lost_and_none_is_there_twice)
{
    unsigned seed = (unsigned)_i * 7919 + 1, first = seed;

    for (unsigned step = 0; step < STEPS; step++) {
        any_step(&seed);
        disk_has_all(first, step, WHATEVER_NAMES);
    }
    disk_is_good();
    jobs_tick(js->jobs);
    jobs_tick(js->jobs);
    jobs_sync(js->jobs);
    disk_has_all(first, STEPS, SAME_NAMES);
}
END_TEST

/* Names go round among some jobs, a removal now and then, and of all that waits the disk refuses some calls. */
START_TEST(at_random__a_kill_at_any_moment)
{
    unsigned seed = (unsigned)_i * 7919 + 3, first = seed;
    struct job_info info;

    for (unsigned step = 0; step < STEPS / 4; step++) {
        for (int i = 0; i < NAMES - 1; i++) {
            if (js_state(js, names[i]) == JOB_STATES)
                js_copy(js, names[i], "2KiB-sealed", SIZE_MAX);
            if (js_state(js, names[i]) == JOB_REJECTED) /* the disk has not given the name away */
                jobs_remove(js->jobs, id_of(names[i]));
            disk_has_all(first, step, WHATEVER_NAMES);
        }
        js_prove_all(js);
        for (unsigned i = 2 + (unsigned)rand_r(&seed) % 6; i > 0; i--)
            if (rand_r(&seed) % 8 || !any_job(&seed, &info))
                any_rename(&seed);
            else
                jobs_remove_at_once(js->jobs, info.id);
        watch_begin(first, step);
        jobs_catch_up(js->jobs);
        if (rand_r(&seed) % 2)
            jobs_tick(js->jobs);
        watch_end();
        if (rand_r(&seed) % 2)
            continue;
        jobs_tick(js->jobs);
        jobs_tick(js->jobs);
        disk_has_all(first, step,
                     NO_OTHERS); /* jobs that refused steps left in a ring keep names on the way */
    }
}
END_TEST

/* What waits for the disk when the service ends is done then. */
START_TEST(jobs_close__catches_up)
{
    uint64_t a = js_submit(js, "a", "2KiB-sealed");

    js_submit(js, "c", "2KiB-sparse");
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, a, "b"), 0);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id_of("c")), 0);
    job_store_reopen(js);
    ck_assert_uint_eq(id_of("b"), a);
    ck_assert_int_eq(js_state(js, "c"), JOB_STATES);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("jobs behind");
    TCase *tc = tcase_create("jobs behind");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, open_store, close_store);
    tcase_add_test(tc, remove_at_once__the_disk_follows);
    tcase_add_test(tc, remove_at_once__engines_stop_and_nothing_more_is_given_out);
    tcase_add_test(tc, remove_at_once__the_other_of_its_content_goes_on);
    tcase_add_test(tc, remove_at_once__what_the_disk_refuses_is_there_again);
    tcase_add_test(tc, remove_at_once__refused_while_a_writer_has_it_open);
    tcase_add_test(tc, remove_at_once__refused_while_it_is_accepted);
    tcase_add_test(tc, remove_at_once__refused_and_the_name_is_another_file_s);
    tcase_add_test(tc, remove_at_once__refused_while_an_engine_has_a_partition);
    tcase_add_test(tc, rename_at_once__the_disk_follows);
    tcase_add_test(tc, rename_at_once__who_gets_the_name_next_waits_for_the_disk);
    tcase_add_test(tc, rename_at_once__what_the_disk_refuses_has_its_old_name);
    tcase_add_test(tc, rename_at_once__refused_and_the_old_name_is_another_s);
    tcase_add_test(tc, rename_at_once__refused_in_a_ring);
    tcase_add_test(tc, rename_at_once__from_a_name_that_is_being_given);
    tcase_add_test(tc, rename_at_once__of_what_a_writer_takes_back);
    tcase_add_test(tc, rename_at_once__to_and_fro_is_one_on_disk);
    tcase_add_test(tc, rename_at_once__over_another_and_on);
    tcase_add_test(tc, rename_at_once__rings_wait_for_the_disk);
    tcase_add_test(tc, rename_at_once__refused_again_and_again);
    tcase_add_test(tc, make_way__the_disk_refuses_to_give_the_name_away);
    tcase_add_loop_test(tc, catch_up__others_get_the_disk_in_between, 0, 2);
    tcase_add_test(tc, rename_at_once__refused_and_the_loser_cannot_be_read);
    tcase_add_test(tc, rename__the_disk_does_not_say_whether);
    tcase_add_loop_test(tc, at_random__none_is_lost_and_none_is_there_twice, 0,
                        getenv("PROOFD_QUICK") ? 5 : 60);
    tcase_add_loop_test(tc, at_random__a_kill_at_any_moment, 0, getenv("PROOFD_QUICK") ? 4 : 16);
    tcase_add_test(tc, jobs_close__catches_up);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
