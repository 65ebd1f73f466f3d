/*
 * Opens that wait, and files that were made for an open, against a libfuse of our own.
 */
#include "fuse/writers.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/jobs.h"
#include "daemon/store_os.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

/* ---- libfuse, as far as it is asked ---- */

struct fuse_req {
    struct fuse_ctx ctx;
    int error; /* what it was answered */
    fuse_interrupt_func_t interrupt;
    void *data;
    atomic_bool answered, waits;
    struct fuse_file_info fi;
};

int fuse_reply_err(fuse_req_t req, int err)
{
    req->error = err;
    atomic_store(&req->answered, true);
    return 0;
}

int fuse_reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
    req->fi = *fi;
    return fuse_reply_err(req, 0);
}

int fuse_reply_write(fuse_req_t req, size_t len)
{
    (void)len;
    return fuse_reply_err(req, 0);
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
    return &req->ctx;
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
    req->interrupt = func;
    req->data = data;
}

/* Asked when it is on the list of those that wait. */
int fuse_req_interrupted(fuse_req_t req)
{
    atomic_store(&req->waits, true);
    return 0;
}

/* ---- a clock that can be set on: all of them, so that nobody takes it for a change of the time ---- */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

static atomic_int later_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    int ret = __real_clock_gettime(clock, out);

    out->tv_sec += atomic_load(&later_s);
    return ret;
}

/* ---- writers on a job table ---- */

static struct job_store *js;
static struct users *users;
static struct writers *ws;

/* As the mount hears of it (fuse/fs.c). */
static void on_changed(void *ctx, const struct job_info *info, enum job_state was, bool gone)
{
    (void)ctx;
    (void)was;
    if (gone && ws)
        writers_gone(ws, info->id);
}

static void open_all(void)
{
    struct errmsg err;

    later_s = 0;
    js = job_store_create();
    js->opt.changed = on_changed;
    js->opt.max_unfinished = 1;
    job_store_reopen(js);
    ck_assert_int_eq(users_create(&users), 0);
    const struct writers_options opt = {
        .jobs = js->jobs, .users = users, .places_user = 10, .threads = 2};
    ck_assert_int_eq(writers_create(&opt, &ws, &err), 0);
    ck_assert_int_eq(writers_start(ws, &err), 0);
}

static void close_all(void)
{
    writers_destroy(ws);
    ws = NULL;
    users_destroy(users);
    job_store_destroy(js);
}

static uint64_t make(const char *name)
{
    const struct upload_owner owner = {.uid = 1000, .mode = 0644};
    struct job_info info;

    ck_assert_int_eq(jobs_create_file(js->jobs, name, &owner, &info), 0);
    jobs_open_due(js->jobs, info.id);
    return info.id;
}

static void open_file(struct fuse_req *req, uint64_t job, int flags)
{
    const struct fuse_file_info fi = {.flags = O_WRONLY | flags};

    *req = (struct fuse_req){.ctx.uid = 1000};
    writers_open(ws, req, job, &fi);
}

static void until(atomic_bool *so)
{
    while (!atomic_load(so))
        usleep(1000);
}

static void release(struct fuse_req *open)
{
    struct fuse_req req = {.ctx.uid = 1000};

    writer_release((struct writer *)(uintptr_t)open->fi.fh, &req);
    until(&req.answered);
}

static void minute_later(void)
{
    atomic_fetch_add(&later_s, 61);
    jobs_tick(js->jobs);
}

/* ---- a disk that hangs, while somebody removes a job ---- */

static struct {
    pthread_t remover;
    struct store_os os;
    uint64_t job;
    atomic_bool hangs, goes_on;
} disk;

static int hanging_unlinkat(int dir, const char *name, int flags)
{
    if (pthread_equal(pthread_self(), disk.remover)) {
        atomic_store(&disk.hangs, true);
        until(&disk.goes_on);
    }
    return store_os_real.unlinkat(dir, name, flags);
}

static void *remove_job(void *arg)
{
    (void)arg;
    jobs_remove(js->jobs, disk.job);
    return NULL;
}

static void disk_hangs(uint64_t job)
{
    disk.os = store_os_real;
    disk.os.unlinkat = hanging_unlinkat;
    disk.job = job;
    atomic_store(&disk.hangs, false);
    atomic_store(&disk.goes_on, false);
    store_os = &disk.os;
    ck_assert_int_eq(pthread_create(&disk.remover, NULL, remove_job, NULL), 0);
    until(&disk.hangs);
}

static void disk_goes_on(void)
{
    atomic_store(&disk.goes_on, true);
    pthread_join(disk.remover, NULL);
    store_os = &store_os_real;
}

/* ---- files that were made for an open ---- */

START_TEST(made__goes_when_no_open_comes)
{
    make("a");
    atomic_fetch_add(&later_s, 50);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
    make("b");
    atomic_fetch_add(&later_s, 11);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "b"), JOB_RECEIVING);
}
END_TEST

START_TEST(made__stays_once_it_has_been_opened)
{
    struct fuse_req req;

    open_file(&req, make(".a"), 0);
    until(&req.answered);
    ck_assert_int_eq(req.error, 0);
    release(&req);
    minute_later();
    ck_assert_int_eq(js_state(js, ".a"), JOB_RECEIVING); /* empty: an editor may want it so */
}
END_TEST

START_TEST(made__a_refused_open_takes_it_away)
{
    struct fuse_req req;

    js_submit(js, "full", "2KiB-sealed");
    open_file(&req, make("a"), O_NONBLOCK);
    until(&req.answered);
    ck_assert_int_eq(req.error, EAGAIN);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
}
END_TEST

/* As long as it takes; and who opens it while it waits is in no danger from an open that ends. */
START_TEST(made__an_open_that_waits_keeps_it)
{
    struct fuse_req req, other;
    uint64_t full = js_submit(js, "full", "2KiB-sealed"), id = make("a");

    open_file(&req, id, 0);
    until(&req.waits);
    minute_later();
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
    ck_assert_int_eq(jobs_remove(js->jobs, full), 0);
    writers_room(ws);
    until(&req.answered);
    ck_assert_int_eq(req.error, 0);
    make(".b"); /* the place is taken again */
    open_file(&other, id, O_NONBLOCK);
    until(&other.answered);
    ck_assert_int_eq(other.error, 0);
    release(&other);
    release(&req);
}
END_TEST

/* One that the device has made belongs to whoever has that open. */
START_TEST(made__for_no_open)
{
    const struct upload_owner owner = {.uid = 1000};
    struct fuse_req req;
    struct job_info info;

    js_submit(js, "full", "2KiB-sealed");
    ck_assert_int_eq(jobs_create_file(js->jobs, "a", &owner, &info), 0);
    minute_later();
    open_file(&req, info.id, O_NONBLOCK);
    until(&req.answered);
    ck_assert_int_eq(req.error, EAGAIN);
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
}
END_TEST

/* Nothing is kept of what has gone: neither memory nor, a minute later, work. */
START_TEST(made__and_removed_again_and_again)
{
    struct jobs_totals totals;
    size_t n = getenv("PROOFD_QUICK") ? 20000 : 400000;

    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(jobs_remove_at_once(js->jobs, make("a")), 0);
    minute_later();
    writers_tick(ws, INT64_MAX, 0);
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_eq(totals.unsubmitted, 0);
}
END_TEST

/* ---- who waits for the disk: not the threads of the mount ---- */

/* The queue is full, `a` waits to be opened, and the disk does not answer. Returns its number. */
static uint64_t wait_and_let_the_disk_hang(struct fuse_req *req)
{
    uint64_t old = js_submit(js, "old", "2KiB-sealed");

    js_prove_all(js);
    js_submit(js, "full", "2KiB-sparse");
    uint64_t id = make("a");
    open_file(req, id, 0);
    until(&req->waits);
    disk_hangs(old);
    return id;
}

START_TEST(disk_hangs__an_open_that_waits_can_be_interrupted)
{
    struct fuse_req req;

    wait_and_let_the_disk_hang(&req);
    req.interrupt(&req, req.data);
    ck_assert(req.answered && req.error == EINTR);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    disk_goes_on();
}
END_TEST

START_TEST(disk_hangs__a_file_whose_open_waits_can_be_removed)
{
    struct fuse_req req;
    uint64_t id = wait_and_let_the_disk_hang(&req);

    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    ck_assert(req.answered && req.error == ENOENT);
    disk_goes_on();
}
END_TEST

START_TEST(disk_hangs__an_open_that_has_waited_too_long_ends)
{
    struct fuse_req req;

    wait_and_let_the_disk_hang(&req);
    writers_tick(ws, INT64_MAX, 1000);
    ck_assert(req.answered && req.error == EAGAIN);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    disk_goes_on();
}
END_TEST

/* Whoever was on the way when all others were sent away. */
START_TEST(stopped__an_open_that_would_wait_ends)
{
    struct fuse_req req;

    js_submit(js, "full", "2KiB-sparse");
    writers_stop(ws);
    open_file(&req, make("a"), 0);
    until(&req.answered);
    ck_assert_int_eq(req.error, ECANCELED);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("writers");
    TCase *tc = tcase_create("writers");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, open_all, close_all);
    tcase_add_test(tc, made__goes_when_no_open_comes);
    tcase_add_test(tc, made__stays_once_it_has_been_opened);
    tcase_add_test(tc, made__a_refused_open_takes_it_away);
    tcase_add_test(tc, made__an_open_that_waits_keeps_it);
    tcase_add_test(tc, made__for_no_open);
    tcase_add_test(tc, made__and_removed_again_and_again);
    tcase_add_test(tc, disk_hangs__an_open_that_waits_can_be_interrupted);
    tcase_add_test(tc, disk_hangs__a_file_whose_open_waits_can_be_removed);
    tcase_add_test(tc, disk_hangs__an_open_that_has_waited_too_long_ends);
    tcase_add_test(tc, stopped__an_open_that_would_wait_ends);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
