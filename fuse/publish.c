/*
 * A queue of jobs to look at. For each, the tree says which results exist that nobody can see; the
 * thread announces one, creates it through the mount, and so on until nothing is due. Where the
 * mount cannot be reached (somebody detached it), results are made visible without an event: late
 * watchers are better served than none.
 *
 * The root is opened anew for each job and checked to be a FUSE mount: after a lazy unmount the
 * path leads to the directory below, and a descriptor that is held for long would keep `umount`
 * from working.
 *
 * A process that is killed inside its own mount would wait for itself, for ever and with it everybody in the mount: the
 * kernel ends the mount when the last descriptor of /dev/fuse is closed, a process closes its descriptors when its last
 * thread has ended, and a thread that waits for the mount ends when the mount does. So the thread that goes there, the hand,
 * has descriptors of its own, and /dev/fuse is not among them. What answers requests is another's, the teller's.
 */
#include "fuse/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPTS 5
#define TICK_NS 1000000000

struct order {
    struct order *next;
    uint64_t job;
    void (*done)(void *arg); /* may be NULL */
    void *arg;
};

struct publisher {
    char *mountpoint;
    struct tree *tree;
    void (*warn)(void *ctx, const char *text);
    void (*tick)(void *ctx);
    void *ctx;
    pthread_t hand, teller;
    bool hand_runs, teller_runs; /* for who starts and stops them */
    atomic_int tid;              /* the hand's; 0: not running */

    pthread_mutex_t lock; /* never held inside the mount */
    pthread_cond_t wake;
    struct order *first, **last;           /* guarded by lock, as all below */
    struct order *through, **through_last; /* published, still to be told of */
    bool stop, stopped, hand_ended;
    int root_error; /* of the first look at the mount; 1: not looked yet */
    bool expecting;
    char expected_name[JOB_NAME_MAX + 16];
    uint64_t expected_job;
    enum tree_kind expected_kind;
};

/* ---- recognising itself ---- */

bool publisher_is(const struct publisher *p, pid_t caller)
{
    int tid = atomic_load(&p->tid);

    return tid != 0 && caller == tid;
}

bool publisher_expects(struct publisher *p, pid_t caller, const char *name, uint64_t *job,
                       enum tree_kind *kind)
{
    bool yes = false;

    if (!publisher_is(p, caller))
        return false;
    pthread_mutex_lock(&p->lock);
    if (p->expecting && strcmp(name, p->expected_name) == 0) {
        p->expecting = false;
        *job = p->expected_job;
        *kind = p->expected_kind;
        yes = true;
    }
    pthread_mutex_unlock(&p->lock);
    return yes;
}

static void expect(struct publisher *p, const struct job_info *info, enum tree_kind kind)
{
    pthread_mutex_lock(&p->lock);
    snprintf(p->expected_name, sizeof(p->expected_name), "%s%s", info->name, tree_suffix(kind));
    p->expected_job = info->id;
    p->expected_kind = kind;
    p->expecting = true;
    pthread_mutex_unlock(&p->lock);
}

/* ---- as a client of the mount: the hand ---- */

/* A number of the hand's is another file elsewhere in this process. Sanitizers, who believe that a process has one table of
 * descriptors, do not hear of these calls. */
static int own_openat(int dir, const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

static void own_close(int fd)
{
    syscall(SYS_close, fd);
}

static void leave_descriptors(struct publisher *p)
{
    if (close_range(3, ~0U, CLOSE_RANGE_UNSHARE) < 0 && p->warn)
        p->warn(p->ctx, "the kernel gives a thread no descriptors of its own: when the service is "
                        "killed its mount may hang "
                        "until somebody writes to /sys/fs/fuse/connections/*/abort");
}

/* The directory of jobs, or a negative errno (-ENXIO: the path is no FUSE mount any more). */
static int open_jobs_dir(const struct publisher *p)
{
    struct statfs fs;
    int dir = -ENXIO;
    int root = own_openat(AT_FDCWD, p->mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);

    if (root < 0)
        return -errno;
    if (fstatfs(root, &fs) == 0 && fs.f_type == FUSE_SUPER_MAGIC) {
        dir = own_openat(root, "jobs", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        dir = dir < 0 ? -errno : dir;
    }
    own_close(root);
    return dir;
}

static int create_result(struct publisher *p, int dir, const struct job_info *info,
                         enum tree_kind kind)
{
    char name[JOB_NAME_MAX + 16];

    expect(p, info, kind);
    snprintf(name, sizeof(name), "%s%s", info->name, tree_suffix(kind));
    int fd = own_openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (fd < 0)
        return -errno;
    own_close(fd);
    return 0;
}

/* What tells of the end, the proof or the error, comes last: who sees it finds the rest there. */
static enum tree_kind next_of(unsigned kinds)
{
    static const enum tree_kind order[] = {TREE_REPORT, TREE_PROOF_BIN, TREE_ERROR, TREE_PROOF};
    size_t i = 0;

    while (i + 1 < ARRAY_LEN(order) && !(kinds & 1u << order[i]))
        i++;
    return order[i];
}

static void reveal(struct publisher *p, uint64_t job)
{
    struct job_info info;
    unsigned due;

    while ((due = tree_due(p->tree, job, &info)) != 0)
        if (tree_publish(p->tree, job, next_of(due)) < 0)
            return;
}

static void warn(struct publisher *p, const struct job_info *info, int error)
{
    char text[512];

    snprintf(text, sizeof(text), "job=%" PRIu64 " results appear without an event: %s", info->id,
             strerror(-error));
    if (p->warn)
        p->warn(p->ctx, text);
}

/* Creates what is due. A failure may be a rename or an rm that came between: what is due is asked
 * anew. */
static void publish(struct publisher *p, uint64_t job)
{
    struct job_info info;
    unsigned due;
    int attempts = 0, ret = 0;

    while ((due = tree_due(p->tree, job, &info)) != 0 && attempts < ATTEMPTS) {
        int dir = open_jobs_dir(p);
        ret = dir < 0 ? dir : create_result(p, dir, &info, next_of(due));
        if (dir >= 0)
            own_close(dir);
        attempts += ret < 0;
    }
    if (due && attempts == ATTEMPTS) {
        if (ret != -ENXIO && ret != -ENOTCONN) /* a mount that was taken away shows nothing, and is told of */
            warn(p, &info, ret);
        reveal(p, job);
    }
}

/* Best effort: a job that has gone has no status, a file of somebody else may not be touched. */
static void touch_status(struct publisher *p, uint64_t job)
{
    char name[JOB_NAME_MAX + 16];
    struct job_info info = {0};

    tree_due(p->tree, job, &info);
    int dir = info.id ? open_jobs_dir(p) : -ENOENT;
    if (dir < 0)
        return;
    snprintf(name, sizeof(name), "%s%s", info.name, tree_suffix(TREE_STATUS));
    utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
    own_close(dir);
}

/* ---- the queue ---- */

static struct order *take_order(struct publisher *p)
{
    struct order *o = p->first;

    if (o) {
        p->first = o->next;
        if (!p->first)
            p->last = &p->first;
    }
    return o;
}

static void finish(struct order *o)
{
    if (o->done)
        o->done(o->arg);
    free(o);
}

/* Under the lock. */
static void pass_on(struct publisher *p, struct order *o)
{
    if (!o->done) {
        free(o);
        return;
    }
    o->next = NULL;
    *p->through_last = o;
    p->through_last = &o->next;
    pthread_cond_broadcast(&p->wake);
}

static void look_at_mount(struct publisher *p)
{
    int dir = open_jobs_dir(p);

    if (dir >= 0)
        own_close(dir);
    pthread_mutex_lock(&p->lock);
    p->root_error = dir < 0 ? dir : 0;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void *hand_thread(void *arg)
{
    struct publisher *p = arg;

    pthread_setname_np(pthread_self(), "publisher");
    leave_descriptors(p);
    atomic_store(&p->tid, gettid());
    look_at_mount(p);
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct order *o = take_order(p);
        if (!o) {
            pthread_cond_wait(&p->wake, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        publish(p, o->job);
        touch_status(p, o->job);
        pthread_mutex_lock(&p->lock);
        pass_on(p, o);
    }
    pthread_mutex_unlock(&p->lock);
    atomic_store(&p->tid, 0);
    return NULL;
}

/* ---- the teller ---- */

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Under the lock. */
static struct order *take_through(struct publisher *p)
{
    struct order *o = p->through;

    if (o) {
        p->through = o->next;
        if (!p->through)
            p->through_last = &p->through;
    }
    return o;
}

/* Under the lock. */
static void wait_until(struct publisher *p, int64_t ns)
{
    const struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    pthread_cond_timedwait(&p->wake, &p->lock, &until);
}

static void *teller_thread(void *arg)
{
    struct publisher *p = arg;
    int64_t tick_at = now_ns() + TICK_NS;

    pthread_setname_np(pthread_self(), "teller");
    pthread_mutex_lock(&p->lock);
    while (p->through || !p->hand_ended) {
        struct order *o = take_through(p);
        bool tick = now_ns() >= tick_at;
        if (!o && !tick) {
            wait_until(p, tick_at);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        if (o)
            finish(o);
        if (tick) {
            if (p->tick)
                p->tick(p->ctx);
            tick_at = now_ns() + TICK_NS;
        }
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the outside ---- */

/* An order without `done` does what an earlier one would do, which is still to begin. Under the
 * lock. */
static bool is_ordered(const struct publisher *p, uint64_t job)
{
    for (const struct order *o = p->first; o; o = o->next)
        if (o->job == job)
            return true;
    return false;
}

void publisher_after(struct publisher *p, uint64_t job, void (*done)(void *arg), void *arg)
{
    struct order *o = NULL;
    bool kept = true;

    pthread_mutex_lock(&p->lock);
    if (p->stopped || (done || !is_ordered(p, job))) {
        o = p->stopped ? NULL : calloc(1, sizeof(*o));
        kept = o != NULL;
    }
    if (o) {
        *o = (struct order){.job = job, .done = done, .arg = arg};
        *p->last = o;
        p->last = &o->next;
        pthread_cond_broadcast(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
    if (kept)
        return;
    reveal(p, job); /* stopped, or no memory for the order */
    if (done)
        done(arg);
}

void publisher_job_changed(struct publisher *p, uint64_t job)
{
    publisher_after(p, job, NULL, NULL);
}

/* ---- making it ---- */

int publisher_create(const struct publisher_options *opt, struct publisher **out,
                     struct errmsg *err)
{
    struct publisher *p = calloc(1, sizeof(*p));
    pthread_condattr_t monotonic;

    if (p)
        p->mountpoint = strdup(opt->mountpoint);
    if (!p || !p->mountpoint) {
        free(p);
        return errmsg_set(err, -ENOMEM, "publisher: no memory");
    }
    p->tree = opt->tree;
    p->warn = opt->warn;
    p->tick = opt->tick;
    p->ctx = opt->ctx;
    p->last = &p->first;
    p->through_last = &p->through;
    p->root_error = 1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = p;
    return 0;
}

int publisher_start(struct publisher *p, struct errmsg *err)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = -pthread_create(&p->teller, NULL, teller_thread, p);
    p->teller_runs = ret == 0;
    if (ret == 0) {
        ret = -pthread_create(&p->hand, NULL, hand_thread, p);
        p->hand_runs = ret == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret < 0)
        return errmsg_set(err, ret, "publisher: cannot start its threads");
    pthread_mutex_lock(&p->lock);
    while (p->root_error > 0)
        pthread_cond_wait(&p->wake, &p->lock);
    ret = p->root_error;
    pthread_mutex_unlock(&p->lock);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: the new mount does not answer: %s", p->mountpoint,
                          strerror(-ret));
    return 0;
}

void publisher_stop(struct publisher *p)
{
    struct order *o;

    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    if (p->hand_runs)
        pthread_join(p->hand, NULL);
    p->hand_runs = false;
    pthread_mutex_lock(&p->lock);
    p->hand_ended = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    if (p->teller_runs)
        pthread_join(p->teller, NULL);
    p->teller_runs = false;
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    struct order *left = p->first;
    p->first = NULL;
    p->last = &p->first;
    pthread_mutex_unlock(&p->lock);
    while ((o = left) != NULL) {
        left = o->next;
        reveal(p, o->job);
        finish(o);
    }
}

void publisher_destroy(struct publisher *p)
{
    if (!p)
        return;
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->mountpoint);
    free(p);
}
