/*
 * A file of a job is made when it is named or first written to, and removed when nothing was written. A place in the queue
 * is taken with the first write; a write that finds none is parked, and pushed onto its lane again when there may be one:
 * the oldest first, and only one at a time, so that nobody is overtaken for long.
 */
#include "fuse/device_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/handle.h"
#include "fuse/intake.h"
#include "fuse/parked.h"

#define INTAKE_THREADS 2
#define HANDLES_USER_MAX 4096
#define QUEUED_BYTES_USER_MAX ((size_t)64 << 20)
#define WAITING_USER_MAX 1000
#define MODE 0640 /* of what is written: a device knows no umask */

struct device_files {
    struct jobs *jobs;
    struct users *users;
    atomic_uint_fast64_t places_user;
    void (*room)(void *ctx);
    void *ctx;
    struct intake *intake;
    struct parked_list waiting; /* struct write_task */
    atomic_uint_fast64_t next_number;

    struct intake_lane retry_lane;
    struct intake_task retry;
    atomic_bool retry_queued;
    atomic_bool retrying, retry_again; /* one is being tried; there was news meanwhile */

    pthread_mutex_t lock;
    bool stopping;       /* guarded by lock */
    struct handle *open; /* guarded by lock */
};

/* All but `reader` and `job` belong to the lane's tasks. */
struct device_file {
    struct handle handle;
    struct device_files *all;
    struct reader *reader;
    struct intake_lane lane;
    struct intake_task release;
    bool named;            /* `job` is a file that nothing has been written to yet */
    struct upload *upload; /* being written */
    uint64_t offset;
    atomic_uint_fast64_t job;
};

struct request {
    struct intake_task task;
    struct device_file *f;
    fuse_req_t req;
    uid_t uid;
    gid_t gid;
};

struct name_task {
    struct request r;
    char name[JOB_NAME_MAX + 1];
};

struct submit_task {
    struct request r;
    void (*answer)(struct device_files *all, fuse_req_t req, uint64_t job, int error);
};

struct write_task {
    struct parked parked; /* while it waits for a place */
    struct request r;
    bool nonblock, waiting, retried;
    size_t len;
    uint8_t bytes[];
};

static struct request *request_of(struct intake_task *task)
{
    return (struct request *)((char *)task - offsetof(struct request, task));
}

static void push(struct request *r, struct device_file *f, fuse_req_t req,
                 enum intake_result (*run)(struct intake_task *))
{
    r->f = f;
    r->req = req;
    r->uid = fuse_req_ctx(req)->uid;
    r->gid = fuse_req_ctx(req)->gid;
    r->task.run = run;
    intake_push(f->all->intake, &f->lane, &r->task);
}

/* ---- names ---- */

static int make_file(struct request *r, const char *name)
{
    const struct upload_owner owner = {.uid = r->uid, .gid = r->gid, .mode = MODE};
    struct job_info info;
    int ret = jobs_create_file(r->f->all->jobs, name, &owner, &info);

    if (ret < 0)
        return ret;
    atomic_store(&r->f->job, info.id);
    r->f->named = true;
    return 0;
}

/* A number that is taken, by a job from before a restart or by a file of the mount, is passed over. */
static int make_numbered_file(struct request *r)
{
    char name[48];
    int ret;

    do {
        snprintf(name, sizeof(name), "device-%" PRIuFAST64,
                 atomic_fetch_add(&r->f->all->next_number, 1));
        ret = make_file(r, name);
    } while (ret == -EEXIST);
    return ret;
}

static enum intake_result run_name(struct intake_task *task)
{
    struct name_task *t = (struct name_task *)request_of(task);
    int ret = t->r.f->named || t->r.f->upload ? -EBUSY : make_file(&t->r, t->name);

    if (ret < 0)
        fuse_reply_err(t->r.req, -ret);
    else
        fuse_reply_ioctl(t->r.req, 0, NULL, 0);
    free(t);
    return INTAKE_DONE;
}

void device_file_name(struct device_file *f, fuse_req_t req, const char *name)
{
    size_t len = strnlen(name, JOB_NAME_MAX + 1);
    struct name_task *t = len <= JOB_NAME_MAX ? calloc(1, sizeof(*t)) : NULL;

    if (!t) {
        fuse_reply_err(req, len > JOB_NAME_MAX ? ENAMETOOLONG : ENOMEM);
        return;
    }
    memcpy(t->name, name, len);
    if (job_name_is_temporary(t->name)) { /* which would never be a job */
        fuse_reply_err(req, EINVAL);
        free(t);
        return;
    }
    push(&t->r, f, req, run_name);
}

/* ---- places ---- */

static void told_room(struct device_files *all)
{
    device_files_room(all);
    if (all->room)
        all->room(all->ctx);
}

static void end_upload(struct device_file *f, bool aborted)
{
    upload_close(f->upload, aborted);
    f->upload = NULL;
    users_give(f->all->users, f->lane.user, USER_WRITERS, 1);
    told_room(f->all);
}

/* -EAGAIN: the queue is full, or this user has enough of it. */
static int begin_upload(struct request *r)
{
    struct device_file *f = r->f;
    int ret =
        users_take(f->all->users, f->lane.user, USER_WRITERS, 1, atomic_load(&f->all->places_user));

    if (ret < 0)
        return ret == -EDQUOT ? -EAGAIN : ret;
    if (!f->named)
        ret = make_numbered_file(r);
    if (ret == 0)
        ret = upload_open(f->all->jobs, atomic_load(&f->job), &f->upload);
    if (ret < 0) {
        users_give(f->all->users, f->lane.user, USER_WRITERS, 1);
        f->named &= ret != -ENOENT; /* somebody has removed it */
        return ret;
    }
    f->named = false;
    f->offset = 0;
    return 0;
}

/* ---- writing ---- */

static void end_write(struct write_task *t, ssize_t ret)
{
    struct device_file *f = t->r.f;
    struct users *users = f->all->users;

    users_give(users, f->lane.user, USER_QUEUED_BYTES, t->len);
    if (t->waiting)
        users_give(users, f->lane.user, USER_WAITING, 1);
    if (ret < 0)
        fuse_reply_err(t->r.req, (int)-ret);
    else
        fuse_reply_write(t->r.req, (size_t)ret);
    free(t);
}

static void write_interrupted(struct parked *p)
{
    end_write((struct write_task *)p, -EINTR);
}

static bool may_have_a_place(void *ctx, const struct parked *p)
{
    const struct device_file *f = ((const struct write_task *)p)->r.f;
    struct device_files *all = ctx;

    return users_has(all->users, f->lane.user, USER_WRITERS) < atomic_load(&all->places_user);
}

static bool may_wait(struct write_task *t)
{
    struct device_files *all = t->r.f->all;

    if (t->nonblock)
        return false;
    if (!t->waiting)
        t->waiting =
            users_take(all->users, t->r.f->lane.user, USER_WAITING, 1, WAITING_USER_MAX) == 0;
    return t->waiting;
}

/* Who waits longest is served first: who has been retried goes back to the head. */
static void wait_for_place(struct write_task *t)
{
    struct device_files *all = t->r.f->all;

    if (!may_wait(t)) {
        end_write(t, -EAGAIN);
        return;
    }
    pthread_mutex_lock(&all->lock);
    bool stopping = all->stopping;
    pthread_mutex_unlock(&all->lock);
    if (stopping) {
        end_write(t, -ECANCELED);
        return;
    }
    t->parked.req = t->r.req;
    if (t->retried) {
        parked_return(&all->waiting, &t->parked);
    } else {
        parked_add(&all->waiting, &t->parked);
        device_files_room(all); /* it may have come meanwhile */
    }
}

/* The write that was being tried again has its place, or none. */
static void end_retry(struct device_files *all, bool more)
{
    bool news = atomic_exchange(&all->retry_again, false);

    atomic_store(&all->retrying, false);
    if (more || news)
        device_files_room(all);
}

static enum intake_result run_write(struct intake_task *task)
{
    struct write_task *t =
        (struct write_task *)((char *)request_of(task) - offsetof(struct write_task, r));
    struct device_file *f = t->r.f;
    struct device_files *all = f->all;
    bool retried = t->retried,
         its_turn = retried || !parked_has(&all->waiting, may_have_a_place, all);
    int ret = f->upload ? 0 : its_turn ? begin_upload(&t->r) : -EAGAIN;

    if (ret == -EAGAIN) {
        wait_for_place(t);
    } else {
        ssize_t n = ret < 0 ? ret : upload_write(f->upload, t->bytes, t->len, f->offset);
        if (n > 0)
            f->offset += (uint64_t)n;
        end_write(t, n);
    }
    if (retried)
        end_retry(all, ret != -EAGAIN);
    return INTAKE_DONE;
}

void device_file_write(struct device_file *f, fuse_req_t req, const void *buf, size_t len,
                       bool nonblock)
{
    struct users *users = f->all->users;

    if (len == 0) {
        fuse_reply_write(req, 0);
        return;
    }
    bool room = users_take(users, f->lane.user, USER_QUEUED_BYTES, len, QUEUED_BYTES_USER_MAX) == 0;
    struct write_task *t = room ? malloc(sizeof(*t) + len) : NULL;
    if (!t) {
        if (room)
            users_give(users, f->lane.user, USER_QUEUED_BYTES, len);
        fuse_reply_err(req, ENOMEM);
        return;
    }
    *t = (struct write_task){.nonblock = nonblock, .len = len};
    memcpy(t->bytes, buf, len);
    push(&t->r, f, req, run_write);
}

/* One at a time, so that the order is kept: the next one when this one has found a place. */
static enum intake_result run_retry(struct intake_task *task)
{
    struct device_files *all =
        (struct device_files *)((char *)task - offsetof(struct device_files, retry));

    atomic_store(&all->retry_queued, false);
    atomic_store(&all->retry_again, true);
    if (atomic_exchange(&all->retrying, true)) /* it looks again when it ends */
        return INTAKE_DONE;
    atomic_store(&all->retry_again, false);
    struct parked *p = parked_take(&all->waiting, may_have_a_place, all);
    if (!p) {
        atomic_store(&all->retrying, false);
        return INTAKE_DONE;
    }
    struct write_task *t = (struct write_task *)p;
    t->retried = true;
    intake_push(all->intake, &t->r.f->lane, &t->r.task);
    return INTAKE_DONE;
}

void device_files_room(struct device_files *all)
{
    if (!parked_has(&all->waiting, NULL, NULL))
        return;
    pthread_mutex_lock(&all->lock); /* held over the push: behind `stopping` the pool may be gone */
    if (!all->stopping && !atomic_exchange(&all->retry_queued, true))
        intake_push(all->intake, &all->retry_lane, &all->retry);
    pthread_mutex_unlock(&all->lock);
}

/* ---- the end of a document ---- */

static enum intake_result run_submit(struct intake_task *task)
{
    struct submit_task *t = (struct submit_task *)request_of(task);
    struct device_file *f = t->r.f;
    int ret = f->upload ? upload_judge_piece(f->upload) : -ENODATA;

    if (ret == -EINPROGRESS)
        return INTAKE_AGAIN;
    if (f->upload)
        end_upload(f, false);
    t->answer(f->all, t->r.req, atomic_load(&f->job), -ret);
    free(t);
    return INTAKE_DONE;
}

void device_file_submit(struct device_file *f, fuse_req_t req,
                        void (*answer)(struct device_files *all, fuse_req_t req, uint64_t job,
                                       int error))
{
    struct submit_task *t = calloc(1, sizeof(*t));

    if (!t) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    t->answer = answer;
    push(&t->r, f, req, run_submit);
}

/* ---- open and close ---- */

int device_file_open(struct device_files *all, uid_t user, struct reader *reader,
                     struct device_file **out)
{
    struct device_file *f = calloc(1, sizeof(*f));
    int ret = f ? users_take(all->users, user, USER_HANDLES, 1, HANDLES_USER_MAX) : -ENOMEM;

    if (ret < 0) {
        free(f);
        return ret == -EDQUOT ? -EMFILE : ret;
    }
    f->all = all;
    f->reader = reader;
    f->lane.user = user;
    handle_link(&all->open, &all->lock, &f->handle);
    *out = f;
    return 0;
}

static void free_file(struct device_file *f, bool aborted)
{
    struct device_files *all = f->all;

    handle_unlink(&all->open, &all->lock, &f->handle);
    if (f->upload)
        end_upload(f, aborted);
    else if (f->named)
        jobs_remove(all->jobs, atomic_load(&f->job));
    users_give(all->users, f->lane.user, USER_HANDLES, 1);
    free(f);
}

static enum intake_result run_release(struct intake_task *task)
{
    struct device_file *f =
        (struct device_file *)((char *)task - offsetof(struct device_file, release));

    if (f->upload && upload_judge_piece(f->upload) == -EINPROGRESS)
        return INTAKE_AGAIN;
    free_file(f, false);
    return INTAKE_GONE;
}

void device_file_release(struct device_file *f)
{
    f->release.run = run_release;
    intake_push(f->all->intake, &f->lane, &f->release);
}

struct reader *device_file_reader(const struct device_file *f)
{
    return f->reader;
}

uint64_t device_file_job(const struct device_file *f)
{
    return atomic_load(&f->job);
}

struct jobs *device_files_jobs(struct device_files *all)
{
    return all->jobs;
}

/* ---- all of them ---- */

static uint64_t half_of(uint32_t max_unfinished)
{
    uint32_t places = max_unfinished ? max_unfinished : UINT32_MAX;

    return places / 2 + places % 2;
}

void device_files_set_max_unfinished(struct device_files *all, uint32_t max)
{
    atomic_store(&all->places_user, half_of(max));
    device_files_room(all);
}

int device_files_create(const struct device_options *opt, struct device_files **out,
                        struct errmsg *err)
{
    struct device_files *all = calloc(1, sizeof(*all));

    if (!all)
        return errmsg_set(err, -ENOMEM, "device: no memory");
    int ret = intake_create(INTAKE_THREADS, &all->intake, err);
    if (ret < 0) {
        free(all);
        return ret;
    }
    all->jobs = opt->jobs;
    all->users = opt->users;
    atomic_init(&all->places_user, half_of(opt->max_unfinished));
    all->room = opt->room;
    all->ctx = opt->ctx;
    all->retry.run = run_retry;
    all->retry_lane.user = (uid_t)-1; /* nobody's */
    atomic_init(&all->next_number, 1);
    pthread_mutex_init(&all->lock, NULL);
    parked_init(&all->waiting, write_interrupted);
    *out = all;
    return 0;
}

int device_files_start(struct device_files *all, struct errmsg *err)
{
    return intake_start(all->intake, err);
}

static void refuse_waiting(struct device_files *all)
{
    struct parked *p;

    while ((p = parked_take(&all->waiting, NULL, NULL)) != NULL)
        end_write((struct write_task *)p, -ECANCELED);
}

void device_files_stop(struct device_files *all)
{
    pthread_mutex_lock(&all->lock);
    all->stopping = true;
    pthread_mutex_unlock(&all->lock);
    refuse_waiting(all);
}

void device_files_drain(struct device_files *all, struct records *records)
{
    device_files_stop(all);
    intake_destroy(all->intake);
    all->intake = NULL;
    refuse_waiting(all); /* who came to wait after the first time */
    while (all->open) {
        struct device_file *f = (struct device_file *)all->open;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): free_file takes itself off the list */
        readers_close(records_readers(records), f->reader);
        free_file(f, true);
    }
}

void device_files_destroy(struct device_files *all)
{
    if (!all)
        return;
    if (all->intake)
        intake_destroy(all->intake);
    parked_fini(&all->waiting);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
