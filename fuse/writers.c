/*
 * Each open file is a lane of the intake pool, so its writes, judgements and close keep their
 * order. The opens that wait are retried on a lane of their own: one at a time, oldest first,
 * whenever a job ends or a handle closes.
 */
#include "fuse/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuse/intake.h"
#include "fuse/parked.h"

#define QUEUED_BYTES_MAX ((size_t)256 << 20) /* of all writes that wait for an intake thread */
#define QUEUED_BYTES_USER_MAX ((size_t)64 << 20)
#define WAITING_USER_MAX 1000 /* opens of one user that wait */
#define PF_SIGNALED 0x400     /* field 9 of /proc/TID/stat: dies of a signal */

struct writer {
    struct handle handle; /* in all->open, guarded by its lock */
    struct writers *all;
    struct intake_lane lane;
    struct upload *upload;
    enum user_share place; /* USER_WRITERS or USER_TEMPORARY, of lane.user */
    atomic_bool killed;    /* as the last flush saw it */
    struct intake_task release;
    fuse_req_t release_req;
};

struct writers {
    struct jobs *jobs;
    struct publisher *publisher;
    struct intake *intake;
    struct users *users;
    atomic_uint_least64_t places_user; /* that one user's open files may take of either kind */
    atomic_size_t queued_bytes;

    /* Key: the job. Temporary names have places of their own (jobs.h), so they wait apart. */
    struct parked_list waiting[2]; /* index: temporary */
    struct intake_lane retry_lane;
    struct intake_task retry;
    atomic_bool retry_queued;

    pthread_mutex_t lock;
    bool stopping;       /* guarded by lock: nobody may wait, nothing is retried */
    struct handle *open; /* guarded by lock */
};

/* An open on its way: to an intake thread, for it may have to wait until the file's last writer is
 * through; and then perhaps to the list of those that wait for a place. */
struct pending_open {
    struct parked parked;
    struct writers *all;
    struct fuse_file_info fi;
    struct intake_lane lane;
    struct intake_task task;
    bool temporary; /* the name, when it came */
    bool waiting;   /* counted as such */
};

struct upload_task {
    struct intake_task task;
    struct writer *w;
    fuse_req_t req;
    uint64_t offset; /* or the size to truncate to */
    void (*answer)(fuse_req_t req, uint64_t job);
    size_t len;
    uint8_t bytes[];
};

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- opening ---- */

static void close_writer(struct writer *w, bool aborted)
{
    struct writers *ws = w->all;

    handle_unlink(&ws->open, &ws->lock, &w->handle);
    upload_close(w->upload, aborted);
    users_give(ws->users, w->lane.user, w->place, 1);
    free(w);
    writers_room(ws);
}

static enum user_share place_of(const struct pending_open *o)
{
    return o->temporary ? USER_TEMPORARY : USER_WRITERS;
}

/* Half of the places are for others. */
static bool may_have_a_place(void *ctx, const struct parked *p)
{
    const struct pending_open *o = (const struct pending_open *)p;
    struct writers *ws = ctx;

    return users_has(ws->users, o->lane.user, place_of(o)) < ws->places_user;
}

/* -EAGAIN: the queue is full, or this user has enough of it. */
static int make_writer(const struct pending_open *o, struct writer **out)
{
    struct writers *ws = o->all;
    struct writer *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->handle.kind = HANDLE_WRITER;
    w->all = ws;
    w->lane.user = o->lane.user;
    w->place = place_of(o);
    int ret = users_take(ws->users, w->lane.user, w->place, 1, ws->places_user);
    if (ret < 0) {
        free(w);
        return ret == -EDQUOT ? -EAGAIN : ret;
    }
    ret = upload_open(ws->jobs, o->parked.key, &w->upload);
    if (ret < 0) {
        users_give(ws->users, w->lane.user, w->place, 1);
        free(w);
        return ret;
    }
    handle_link(&ws->open, &ws->lock, &w->handle);
    ret = o->fi.flags & O_TRUNC ? upload_truncate(w->upload, 0) : 0;
    if (ret < 0)
        close_writer(w, true);
    else
        *out = w;
    return ret;
}

static void end_open(struct pending_open *o)
{
    if (o->waiting)
        users_give(o->all->users, o->lane.user, USER_WAITING, 1);
    free(o);
}

/* A file that was made for it goes, so that a refused `cp` leaves nothing. */
static void refuse(struct pending_open *o, int error)
{
    jobs_drop_unopened(o->all->jobs, o->parked.key);
    fuse_reply_err(o->parked.req, error);
    end_open(o);
}

static void refuse_parked(struct parked *p, int error)
{
    refuse((struct pending_open *)p, error);
}

/* Takes those that `wanted` agrees to off both lists and refuses them. */
static void refuse_waiting(struct writers *ws, bool (*wanted)(void *ctx, const struct parked *p),
                           void *ctx, int error)
{
    struct parked *p;

    for (size_t i = 0; i < ARRAY_LEN(ws->waiting); i++)
        while ((p = parked_take(&ws->waiting[i], wanted, ctx)) != NULL)
            refuse_parked(p, error);
}

static void open_interrupted(struct parked *p)
{
    refuse_parked(p, EINTR);
}

/* Opens, answers and frees o. -EAGAIN, and nothing of that: there is no room. */
static int try_open(struct pending_open *o)
{
    struct writer *w = NULL;
    int ret = make_writer(o, &w);

    if (ret == -EAGAIN)
        return ret;
    if (ret < 0) {
        /* Gone between look-up and open, with its last close perhaps: to be looked up again. */
        refuse(o, ret == -ENOENT ? ESTALE : -ret);
        return 0;
    }
    o->fi.fh = (uintptr_t)w;
    o->fi.direct_io = 1;
    if (fuse_reply_open(o->parked.req, &o->fi) < 0)
        close_writer(w, true); /* whoever opened it has gone */
    end_open(o);
    return 0;
}

static void retry(struct writers *ws, struct parked_list *waiting)
{
    struct parked *p;

    while ((p = parked_take(waiting, may_have_a_place, ws)) != NULL) {
        if (try_open((struct pending_open *)p) == -EAGAIN) {
            parked_return(waiting, p);
            break;
        }
    }
}

static enum intake_result run_retry(struct intake_task *task)
{
    struct writers *ws = (struct writers *)((char *)task - offsetof(struct writers, retry));

    atomic_store(&ws->retry_queued, false);
    for (size_t i = 0; i < ARRAY_LEN(ws->waiting); i++)
        retry(ws, &ws->waiting[i]);
    return INTAKE_DONE;
}

void writers_room(struct writers *ws)
{
    bool wanted =
        parked_has(&ws->waiting[0], NULL, NULL) || parked_has(&ws->waiting[1], NULL, NULL);

    if (!wanted)
        return;
    pthread_mutex_lock(&ws->lock); /* held over the push: behind `stopping` the pool may be gone */
    if (!ws->stopping && !atomic_exchange(&ws->retry_queued, true))
        intake_push(ws->intake, &ws->retry_lane, &ws->retry);
    pthread_mutex_unlock(&ws->lock);
}

/* Who comes later waits behind those who wait, even if there is room just now: it is theirs, unless they
 * wait for a place of their own. An open that will be refused in any case need not wait for that. */
static bool must_queue(struct pending_open *o)
{
    struct writers *ws = o->all;
    struct job_info info;
    bool known = jobs_get(ws->jobs, o->parked.key, &info) == 0;

    o->temporary = known && info.temporary;
    if (!known || (info.state >= JOB_QUEUED && !job_state_is_final(info.state)))
        return false;
    return parked_has(&ws->waiting[o->temporary], may_have_a_place, ws);
}

static bool may_wait(struct pending_open *o)
{
    if (o->fi.flags & O_NONBLOCK)
        return false;
    o->waiting = users_take(o->all->users, o->lane.user, USER_WAITING, 1, WAITING_USER_MAX) == 0;
    return o->waiting;
}

static bool is_stopping(struct writers *ws)
{
    pthread_mutex_lock(&ws->lock);
    bool is = ws->stopping;
    pthread_mutex_unlock(&ws->lock);
    return is;
}

static enum intake_result run_open(struct intake_task *task)
{
    struct pending_open *o =
        (struct pending_open *)((char *)task - offsetof(struct pending_open, task));
    struct writers *ws = o->all;

    if (!must_queue(o) && try_open(o) == 0)
        return INTAKE_GONE;
    if (!may_wait(o)) {
        refuse(o, EAGAIN);
        return INTAKE_GONE;
    }
    parked_add(&ws->waiting[o->temporary], &o->parked);
    if (is_stopping(ws)) /* since then nobody looks after those who wait */
        refuse_waiting(ws, NULL, NULL, ECANCELED);
    writers_room(ws); /* it may have come meanwhile */
    return INTAKE_GONE;
}

void writers_open(struct writers *ws, fuse_req_t req, uint64_t job, const struct fuse_file_info *fi)
{
    struct pending_open *o = calloc(1, sizeof(*o));

    if (!o) {
        jobs_drop_unopened(ws->jobs, job);
        fuse_reply_err(req, ENOMEM);
        return;
    }
    jobs_open_comes(ws->jobs, job);
    o->parked = (struct parked){.req = req, .key = job, .since_ms = now_ms()};
    o->all = ws;
    o->fi = *fi;
    o->lane.user = fuse_req_ctx(req)->uid;
    o->task.run = run_open;
    intake_push(ws->intake, &o->lane, &o->task);
}

static bool is_for_job(void *ctx, const struct parked *p)
{
    return p->key == *(const uint64_t *)ctx;
}

void writers_gone(struct writers *ws, uint64_t job)
{
    refuse_waiting(ws, is_for_job, &job, ENOENT);
}

static bool is_older(void *ctx, const struct parked *p)
{
    return p->since_ms <= *(const int64_t *)ctx;
}

void writers_tick(struct writers *ws, int64_t now, int64_t limit_ms)
{
    int64_t before = now - limit_ms;

    if (limit_ms > 0)
        refuse_waiting(ws, is_older, &before, EAGAIN);
}

/* ---- writing ---- */

uint64_t writer_job(const struct writer *w)
{
    return upload_job_id(w->upload);
}

static void give_room(struct writer *w, size_t len)
{
    atomic_fetch_sub(&w->all->queued_bytes, len);
    users_give(w->all->users, w->lane.user, USER_QUEUED_BYTES, len);
}

static bool take_room(struct writer *w, size_t len)
{
    struct writers *ws = w->all;

    if (len == 0)
        return true;
    if (users_take(ws->users, w->lane.user, USER_QUEUED_BYTES, len, QUEUED_BYTES_USER_MAX) < 0)
        return false;
    if (atomic_fetch_add(&ws->queued_bytes, len) + len <= QUEUED_BYTES_MAX)
        return true;
    give_room(w, len);
    return false;
}

/* Without memory for a task of `len` bytes it answers and gives NULL. */
static struct upload_task *new_task(struct writer *w, fuse_req_t req, size_t len,
                                    enum intake_result (*run)(struct intake_task *task))
{
    bool room = take_room(w, len);
    struct upload_task *t = room ? malloc(sizeof(*t) + len) : NULL;

    if (!t) {
        if (room)
            give_room(w, len);
        fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    *t = (struct upload_task){.task.run = run, .w = w, .req = req, .len = len};
    return t;
}

static void push(struct upload_task *t)
{
    intake_push(t->w->all->intake, &t->w->lane, &t->task);
}

static enum intake_result run_write(struct intake_task *task)
{
    struct upload_task *t = (struct upload_task *)task;
    ssize_t n = upload_write(t->w->upload, t->bytes, t->len, t->offset);

    give_room(t->w, t->len);
    if (n < 0)
        fuse_reply_err(t->req, (int)-n);
    else
        fuse_reply_write(t->req, (size_t)n);
    free(t);
    return INTAKE_DONE;
}

void writer_write(struct writer *w, fuse_req_t req, const void *buf, size_t len, uint64_t offset)
{
    struct upload_task *t = new_task(w, req, len, run_write);

    if (!t)
        return;
    memcpy(t->bytes, buf, len);
    t->offset = offset;
    push(t);
}

static enum intake_result run_truncate(struct intake_task *task)
{
    struct upload_task *t = (struct upload_task *)task;
    int ret = upload_truncate(t->w->upload, t->offset);

    if (ret < 0)
        fuse_reply_err(t->req, -ret);
    else
        t->answer(t->req, writer_job(t->w));
    free(t);
    return INTAKE_DONE;
}

void writer_truncate(struct writer *w, fuse_req_t req, uint64_t bytes,
                     void (*answer)(fuse_req_t req, uint64_t job))
{
    struct upload_task *t = new_task(w, req, 0, run_truncate);

    if (!t)
        return;
    t->offset = bytes;
    t->answer = answer;
    push(t);
}

/* ---- closing ---- */

/* Reads the flags of a thread that waits for us and so cannot change. Not to know counts as alive:
 * the content is judged in any case. */
static bool dies_of_signal(pid_t tid)
{
    char path[32], text[512];
    unsigned long flags = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
    f = tid > 0 ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *end_of_name = strrchr(text, ')'); /* the name may hold anything */
    if (!end_of_name || sscanf(end_of_name, ") %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
        return false;
    return flags & PF_SIGNALED;
}

struct late_error {
    fuse_req_t req;
    int error;
};

static void answer_late(void *arg)
{
    struct late_error *late = arg;

    fuse_reply_err(late->req, late->error);
    free(late);
}

/* Answers when NAME.error can be read, so that `cp ... || cat NAME.error` finds it. */
static void answer_rejection(struct writer *w, fuse_req_t req, int error)
{
    struct late_error *late = malloc(sizeof(*late));

    if (!late) {
        fuse_reply_err(req, error);
        return;
    }
    *late = (struct late_error){req, error};
    publisher_after(w->all->publisher, writer_job(w), answer_late, late);
}

static enum intake_result run_flush(struct intake_task *task)
{
    struct upload_task *t = (struct upload_task *)task;
    int ret = upload_judge_piece(t->w->upload);

    if (ret == -EINPROGRESS)
        return INTAKE_AGAIN;
    if (ret < 0)
        answer_rejection(t->w, t->req, -ret);
    else
        fuse_reply_err(t->req, 0);
    free(t);
    return INTAKE_DONE;
}

void writer_flush(struct writer *w, fuse_req_t req)
{
    bool killed = dies_of_signal(fuse_req_ctx(req)->pid);

    atomic_store(&w->killed, killed);
    if (killed) {
        fuse_reply_err(req, 0);
        return;
    }
    struct upload_task *t = new_task(w, req, 0, run_flush);
    if (t)
        push(t);
}

static enum intake_result run_release(struct intake_task *task)
{
    struct writer *w = (struct writer *)((char *)task - offsetof(struct writer, release));
    fuse_req_t req = w->release_req;

    close_writer(w, atomic_load(&w->killed));
    fuse_reply_err(req, 0);
    return INTAKE_GONE;
}

void writer_release(struct writer *w, fuse_req_t req)
{
    w->release_req = req;
    w->release.run = run_release;
    intake_push(w->all->intake, &w->lane, &w->release);
}

/* ---- without an open file ---- */

/* On a lane of its own, which goes with it. */
struct errand {
    struct intake_lane lane;
    struct intake_task task;
    struct writers *all;
    uint64_t job;
    struct upload *upload; /* once it has been opened */
    fuse_req_t req;
    uint64_t bytes;
    void (*answer)(fuse_req_t req, uint64_t job);
};

static struct errand *errand_of(struct intake_task *task)
{
    return (struct errand *)((char *)task - offsetof(struct errand, task));
}

static bool push_errand(struct writers *ws, const struct errand *errand)
{
    struct errand *e = malloc(sizeof(*e));

    if (!e)
        return false;
    *e = *errand;
    e->all = ws;
    intake_push(ws->intake, &e->lane, &e->task);
    return true;
}

/* Judges by pieces, closes and goes. */
static enum intake_result finish_errand(struct errand *e)
{
    if (e->upload && upload_judge_piece(e->upload) == -EINPROGRESS)
        return INTAKE_AGAIN;
    if (e->upload)
        upload_close(e->upload, false);
    writers_room(e->all);
    free(e);
    return INTAKE_GONE;
}

static enum intake_result run_judge(struct intake_task *task)
{
    struct errand *e = errand_of(task);

    if (!e->upload && upload_open_to_judge(e->all->jobs, e->job, &e->upload) < 0)
        e->upload = NULL; /* somebody writes it, or it is judged */
    return finish_errand(e);
}

void writers_judge(struct writers *ws, uint64_t job, uid_t user)
{
    push_errand(ws, &(struct errand){.lane.user = user, .task.run = run_judge, .job = job});
}

static int truncate_file(struct errand *e)
{
    int ret = upload_open(e->all->jobs, e->job, &e->upload);

    if (ret < 0) {
        e->upload = NULL;
        return ret;
    }
    return upload_truncate(e->upload, e->bytes);
}

static enum intake_result run_truncate_file(struct intake_task *task)
{
    struct errand *e = errand_of(task);

    if (e->req) {
        int ret = truncate_file(e);
        if (ret < 0)
            fuse_reply_err(e->req, ret == -ENOENT ? ESTALE : -ret);
        else
            e->answer(e->req, e->job);
        e->req = NULL;
    }
    return finish_errand(e);
}

void writers_truncate(struct writers *ws, fuse_req_t req, uint64_t job, uint64_t bytes,
                      void (*answer)(fuse_req_t req, uint64_t job))
{
    const struct errand e = {.lane.user = fuse_req_ctx(req)->uid,
                             .task.run = run_truncate_file,
                             .job = job,
                             .req = req,
                             .bytes = bytes,
                             .answer = answer};

    if (!push_errand(ws, &e))
        fuse_reply_err(req, ENOMEM);
}

/* ---- making it ---- */

int writers_create(const struct writers_options *opt, struct writers **out, struct errmsg *err)
{
    struct writers *ws = calloc(1, sizeof(*ws));

    if (!ws)
        return errmsg_set(err, -ENOMEM, "writers: no memory");
    int ret = intake_create(opt->threads, &ws->intake, err);
    if (ret < 0) {
        free(ws);
        return ret;
    }
    ws->jobs = opt->jobs;
    ws->users = opt->users;
    ws->places_user = opt->places_user;
    ws->publisher = opt->publisher;
    ws->retry.run = run_retry;
    ws->retry_lane.user = (uid_t)-1; /* nobody's */
    for (size_t i = 0; i < ARRAY_LEN(ws->waiting); i++)
        parked_init(&ws->waiting[i], open_interrupted);
    pthread_mutex_init(&ws->lock, NULL);
    *out = ws;
    return 0;
}

int writers_start(struct writers *ws, struct errmsg *err)
{
    return intake_start(ws->intake, err);
}

void writers_set_places(struct writers *ws, uint64_t places_user)
{
    atomic_store(&ws->places_user, places_user);
    writers_room(ws);
}

void writers_stop(struct writers *ws)
{
    pthread_mutex_lock(&ws->lock);
    ws->stopping = true;
    pthread_mutex_unlock(&ws->lock);
    refuse_waiting(ws, NULL, NULL, ECANCELED);
}

void writers_drain(struct writers *ws)
{
    writers_stop(ws);
    intake_destroy(ws->intake);
    ws->intake = NULL;
    refuse_waiting(ws, NULL, NULL, ECANCELED); /* who came to wait after the first time */
    while (ws->open)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): takes itself off the list */
        close_writer((struct writer *)ws->open, true);
}

void writers_destroy(struct writers *ws)
{
    if (!ws)
        return;
    if (ws->intake)
        writers_drain(ws);
    pthread_mutex_destroy(&ws->lock);
    for (size_t i = 0; i < ARRAY_LEN(ws->waiting); i++)
        parked_fini(&ws->waiting[i]);
    free(ws);
}
