/*
 * Files as they arrive. Bytes go to the spool, the C1 file in the job's directory, and, as long as
 * they come in order, through a c1_reader at the same time; so when the last byte is there, the file has
 * been read. A file that was written in any other way, or one too many at a time, is read from the
 * spool when it is judged (judge.c). Every write first takes back what was found before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/jobs_internal.h"
#include "daemon/log.h"

#define LOG_MODULE LOG_JOBS

/* ---- spools ---- */

static void reader_end(struct jobs *jobs, struct spool *s)
{
    if (!s->reader)
        return;
    c1_reader_destroy(s->reader);
    s->reader = NULL;
    pthread_mutex_lock(&jobs->lock);
    jobs->readers--;
    pthread_mutex_unlock(&jobs->lock);
    users_give(jobs->users, s->reader_user, USER_READERS, 1);
}

/* With lock. Not all of one user: others want to be read as well. */
static bool take_reader(struct jobs *jobs, struct spool *s)
{
    if (jobs->readers == READERS_MAX ||
        users_take(jobs->users, s->job->uid, USER_READERS, 1, READERS_USER_MAX) < 0)
        return false;
    s->reader_user = s->job->uid;
    jobs->readers++;
    return true;
}

void spool_reset_reader(struct jobs *jobs, struct spool *s, bool wanted)
{
    reader_end(jobs, s);
    s->fed = 0;
    s->fault = 0;
    pthread_mutex_lock(&jobs->lock);
    bool may = wanted && take_reader(jobs, s);
    pthread_mutex_unlock(&jobs->lock);
    if (may && c1_reader_create(C1_CHECK_STRICT, jobs->opt.check_workers, &s->reader) < 0) {
        s->reader = NULL; /* it will be read when it is judged */
        pthread_mutex_lock(&jobs->lock);
        jobs->readers--;
        pthread_mutex_unlock(&jobs->lock);
        users_give(jobs->users, s->reader_user, USER_READERS, 1);
    }
}

/* With lock. */
static struct spool *spool_create(struct job *job)
{
    struct spool *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->fd = -1;
    s->bytes = job->file_bytes;
    s->job = job;
    s->judged = job->ready || (job->refused && !is_passing(job->refused));
    s->verdict = s->judged ? job->refused : 0;
    if (job->refusal)
        errmsg_set(&s->why, 0, "%s", job->refusal);
    job_get(job);
    job->spool = s;
    return s;
}

/* With lock; nobody else has it any more. */
static void spool_free(struct spool *s)
{
    job_put(s->job);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int spool_file(struct jobs *jobs, struct spool *s)
{
    if (s->fd >= 0)
        return 0;
    int ret = s->job->has_file
                  ? store_spool_open(jobs->store, s->job->id, &s->fd)
                  : disk_said(jobs, store_spool_create(jobs->store, s->job->id, &s->fd));
    s->job->has_file = s->fd >= 0 || s->job->has_file;
    return ret;
}

bool spool_gone(struct jobs *jobs, struct spool *s)
{
    pthread_mutex_lock(&jobs->lock);
    bool gone = s->job->gone;
    pthread_mutex_unlock(&jobs->lock);
    return gone;
}

bool spool_is_temporary(struct jobs *jobs, struct spool *s)
{
    pthread_mutex_lock(&jobs->lock);
    bool temporary = job_name_is_temporary(s->job->name);
    pthread_mutex_unlock(&jobs->lock);
    return temporary;
}

/* ---- opening ---- */

void spool_give_place_back(struct jobs *jobs, struct spool *s)
{
    jobs->temporary_spools -= s->place == PLACE_TEMPORARY;
    jobs->spools -= s->place == PLACE_QUEUE;
    s->place = PLACE_NONE;
}

uint32_t places_taken(const struct jobs *jobs)
{
    const uint32_t *n = jobs->totals.by_state;

    return jobs->spools + n[JOB_QUEUED] + n[JOB_SYNTHESIZING] + n[JOB_PROVING];
}

/* With lock: takes a place for one more file that is received. */
static int take_place(struct jobs *jobs, struct spool *s)
{
    bool temporary = job_name_is_temporary(s->job->name);
    uint32_t taken = temporary ? jobs->temporary_spools : places_taken(jobs);

    if (jobs->opt.max_unfinished && taken >= jobs->opt.max_unfinished)
        return -EAGAIN;
    s->place = temporary ? PLACE_TEMPORARY : PLACE_QUEUE;
    jobs->temporary_spools += temporary;
    jobs->spools += !temporary;
    return 0;
}

/* With lock: the entry that a writer of `job` writes to: itself, or for an ended one a new one that
 * waits to replace it. `fresh` is an id for that. */
static int target_of_writer(struct jobs *jobs, struct job *job, uint64_t fresh, struct job **out)
{
    if (job->state == JOB_RECEIVING || (job->state == JOB_REJECTED && job->spool)) {
        *out = job;
        return job->accepted ? -EBUSY : 0;
    }
    if (job->state == JOB_REJECTED)
        return -ENOENT; /* there is no file, only an error */
    if (!job_state_is_final((enum job_state)job->state) || (job->proof_lost && !job->overwriter))
        return -EBUSY;
    if (job->overwriter) {
        *out = job->overwriter;
        return 0;
    }
    int ret = quota_may_begin(jobs, job->uid);
    if (ret < 0)
        return ret;
    struct job *writer = table_add(jobs, fresh, job->name);
    if (!writer)
        return -ENOMEM;
    writer->uid = job->uid;
    writer->gid = job->gid;
    writer->mode = job->mode;
    writer->created_ns = now_ns();
    quota_begin(jobs, writer);
    writer->over = job;
    job->overwriter = writer;
    *out = writer;
    return 0;
}

/* With lock. The spool of `job`, one more upload on it. */
static int spool_of(struct jobs *jobs, struct job *job, bool place, struct spool **out)
{
    if (!job->spool) {
        struct spool *s = spool_create(job);
        int ret = !s ? -ENOMEM : place ? take_place(jobs, s) : 0;
        if (ret < 0) {
            if (s) {
                job->spool = NULL;
                spool_free(s);
            }
            return ret;
        }
    }
    job->spool->opens++;
    *out = job->spool;
    return 0;
}

static int open_to_write(struct jobs *jobs, uint64_t id, uint64_t fresh, struct spool **out)
{
    struct job *job, *target = NULL;
    int ret;

    for (;;) {
        job = table_get(jobs, id);
        if (!job || job->gone)
            return -ENOENT;
        struct job *busy = job->overwriter ? job->overwriter : job;
        if (!busy->spool || !busy->spool->closing)
            break;
        pthread_cond_wait(&jobs->closed, &jobs->lock); /* then look again: it may have ended */
    }
    ret = target_of_writer(jobs, job, fresh, &target);
    if (ret < 0)
        return ret;
    ret = spool_of(jobs, target, true, out);
    if (ret == 0)
        target->opening = OPENING_DONE;
    if (ret < 0 && target != job && !target->spool)
        table_drop(jobs, target);
    return ret;
}

static int open_to_judge(struct jobs *jobs, uint64_t id, struct spool **out)
{
    struct job *job = table_get(jobs, id);

    if (!job || job->gone)
        return -ENOENT;
    if (job->spool || job->state != JOB_RECEIVING || !job_name_is_temporary(job->name))
        return -EBUSY;
    return spool_of(jobs, job, false, out);
}

int upload_open(struct jobs *jobs, uint64_t id, struct upload **out)
{
    struct upload *u = calloc(1, sizeof(*u));
    uint64_t fresh = 0;
    int ret = u ? store_next_id(jobs->store, &fresh) : -ENOMEM;

    if (ret == 0 && atomic_load(&jobs->closing))
        ret = -ECANCELED;
    if (ret == 0) {
        pthread_mutex_lock(&jobs->lock);
        ret = open_to_write(jobs, id, fresh, &u->spool);
        pthread_mutex_unlock(&jobs->lock);
    }
    if (ret < 0) {
        free(u);
        return ret;
    }
    u->jobs = jobs;
    *out = u;
    return 0;
}

int upload_open_to_judge(struct jobs *jobs, uint64_t id, struct upload **out)
{
    struct upload *u = calloc(1, sizeof(*u));

    if (!u)
        return -ENOMEM;
    pthread_mutex_lock(&jobs->lock);
    int ret = open_to_judge(jobs, id, &u->spool);
    pthread_mutex_unlock(&jobs->lock);
    if (ret < 0) {
        free(u);
        return ret;
    }
    u->jobs = jobs;
    *out = u;
    return 0;
}

uint64_t upload_job_id(const struct upload *u)
{
    return u->spool->job->id;
}

/* ---- writing ---- */

/* Nothing that was found in this file holds any longer. Where the disk fails nobody knows whether the
 * acceptance is there, so it must be made again in any case. */
static int take_back(struct jobs *jobs, struct spool *s)
{
    struct job *job = s->job;
    int ret = 0;

    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    bool gone = job->gone, recorded = job->accepted || job->stray_record;
    pthread_mutex_unlock(&jobs->lock);
    if (gone) { /* what is on disk may be another entry's by now */
        pthread_mutex_unlock(&jobs->disk);
        return -ECANCELED;
    }
    if (recorded)
        ret = store_record_remove(jobs->store, job->id);
    pthread_mutex_lock(&jobs->lock);
    job->stray_record = ret < 0;
    if (job->accepted && !job->gone)
        quota_begin(jobs, job);
    job->accepted = false;
    job->accepted_ns = 0;
    free(job->name_on_disk);
    job->name_on_disk = NULL;
    free(job->ready);
    job->ready = NULL;
    free(job->refusal);
    job->refusal = NULL;
    job->refused = 0;
    job_set_error(job, NULL);
    if (job->state == JOB_REJECTED && !job->gone)
        job_set_state(jobs, job, JOB_RECEIVING);
    pthread_mutex_unlock(&jobs->lock);
    pthread_mutex_unlock(&jobs->disk);
    s->judged = false;
    s->verdict = 0;
    return ret;
}

/* Is there something that take_back would take? Most writes find nothing. */
static bool is_judged(struct jobs *jobs, struct spool *s)
{
    pthread_mutex_lock(&jobs->lock);
    const struct job *job = s->job;
    bool judged = job->accepted || job->stray_record || job->ready || job->refused ||
                  job->state == JOB_REJECTED;
    pthread_mutex_unlock(&jobs->lock);
    return judged || s->judged;
}

static int change_size(struct jobs *jobs, struct spool *s, uint64_t bytes)
{
    struct job *job = s->job;

    pthread_mutex_lock(&jobs->lock);
    int ret = job->gone ? -ECANCELED : job_account(jobs, job, bytes);
    if (ret == 0)
        job->file_bytes = bytes;
    else if (ret != -ECANCELED)
        errmsg_set(&s->why, ret, "%s: %s", strerror(-ret), jobs->totals.refusal);
    job->written_ns = now_ns();
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0)
        s->bytes = bytes;
    return ret;
}

static int feed(struct jobs *jobs, struct spool *s, const void *buf, size_t len)
{
    s->fed += len;
    int ret = c1_reader_feed(s->reader, buf, len, &s->why);
    if (ret == 0)
        return 0;
    reader_end(jobs, s); /* no byte behind these can help */
    s->fault = ret;
    s->fault_at = s->fed - len;
    return spool_is_temporary(jobs, s) ? 0 : refuse(jobs, s, ret);
}

static int prepare_change(struct jobs *jobs, struct spool *s)
{
    if (spool_gone(jobs, s))
        return -ECANCELED;
    if (is_judged(jobs, s)) {
        int ret = take_back(jobs, s);
        if (ret < 0)
            return ret;
    }
    reading_end(jobs, s, true);
    if (!s->fault)
        s->why.text[0] = '\0';
    s->verdict = 0;
    s->aborted = false;
    return spool_file(jobs, s);
}

/* A write that goes too far. Under a final name the file is refused, whatever was found before; under a
 * temporary one nothing has happened. */
static int refuse_length(struct jobs *jobs, struct spool *s)
{
    if (spool_is_temporary(jobs, s))
        return -EFBIG;
    int ret = prepare_change(jobs, s); /* what is accepted must not be refused */
    if (ret < 0)
        return ret;
    errmsg_set(&s->why, -EFBIG, "longer than %llu bytes, the limit for a C1 file",
               (unsigned long long)C1_TEXT_MAX);
    refuse(jobs, s, -EFBIG);
    return -EFBIG;
}

/* The disk did not take a write. Whatever else is written, this file is not whole, unless the same
 * write is tried again and works. */
static int write_failed(struct jobs *jobs, struct spool *s, uint64_t old_bytes, uint64_t offset,
                        int code)
{
    s->broken = code;
    s->broken_at = offset;
    if (s->why.text[0] == '\0')
        errmsg_set(&s->why, code, "a write to %s failed: %s", jobs->opt.store_dir, strerror(-code));
    change_size(jobs, s, old_bytes);
    spool_reset_reader(jobs, s, false);
    return code;
}

/* The kernel cuts a long write, and when a later piece is refused the program hears of a short one: then it goes on with that very piece. */
static bool says_the_same(const struct spool *s, const void *buf, size_t len, uint64_t offset)
{
    uint8_t *there = offset >= s->fault_at && offset + len <= s->bytes ? malloc(len) : NULL;
    bool same = there && pread_full(s->fd, there, len, offset) == 0 && memcmp(there, buf, len) == 0;

    free(there);
    return same;
}

static int write_locked(struct jobs *jobs, struct spool *s, const void *buf, size_t len,
                        uint64_t offset)
{
    if (s->fault && !spool_is_temporary(jobs, s) &&
        (offset >= s->fed || says_the_same(s, buf, len, offset)))
        return s->fault;
    if (offset > C1_TEXT_MAX || len > C1_TEXT_MAX - offset)
        return refuse_length(jobs, s);
    int ret = prepare_change(jobs, s);
    if (ret < 0)
        return ret;
    if (offset == 0 && s->bytes == 0 && !s->reader)
        spool_reset_reader(jobs, s, true);
    uint64_t old_bytes = s->bytes;
    if (offset + len > s->bytes)
        ret = change_size(jobs, s, offset + len);
    if (ret == 0)
        ret = disk_said(jobs, store_spool_write(s->fd, buf, len, offset));
    if (ret < 0)
        return write_failed(jobs, s, old_bytes, offset, ret);
    if (s->broken && offset == s->broken_at)
        s->broken = 0;
    if (s->fault ? offset < s->fed : offset != s->fed)
        spool_reset_reader(jobs, s, false);
    return s->reader ? feed(jobs, s, buf, len) : 0;
}

ssize_t upload_write(struct upload *u, const void *buf, size_t len, uint64_t offset)
{
    if (len == 0)
        return 0;
    pthread_mutex_lock(&u->spool->lock);
    int ret = write_locked(u->jobs, u->spool, buf, len, offset);
    pthread_mutex_unlock(&u->spool->lock);
    tell_all(u->jobs);
    return ret < 0 ? ret : (ssize_t)len;
}

static int truncate_locked(struct jobs *jobs, struct spool *s, uint64_t bytes)
{
    if (bytes == s->bytes && !s->fault && !s->broken)
        return 0;
    if (bytes > C1_TEXT_MAX)
        return -EFBIG;
    int ret = prepare_change(jobs, s);
    uint64_t old_bytes = s->bytes;
    if (ret == 0)
        ret = change_size(jobs, s, bytes);
    if (ret < 0)
        return ret;
    spool_reset_reader(jobs, s, false);
    ret = disk_said(jobs, store_spool_truncate(s->fd, bytes));
    if (ret < 0)
        return write_failed(jobs, s, old_bytes, 0, ret);
    if (bytes == 0)
        s->broken = 0;
    return 0;
}

int upload_truncate(struct upload *u, uint64_t bytes)
{
    pthread_mutex_lock(&u->spool->lock);
    int ret = truncate_locked(u->jobs, u->spool, bytes);
    pthread_mutex_unlock(&u->spool->lock);
    tell_all(u->jobs);
    return ret;
}

/* ---- judging ---- */

int upload_judge_piece(struct upload *u)
{
    pthread_mutex_lock(&u->spool->lock);
    int ret = judge_locked(u->jobs, u->spool);
    pthread_mutex_unlock(&u->spool->lock);
    tell_all(u->jobs);
    return ret;
}

int upload_judge(struct upload *u)
{
    int ret;

    do
        ret = upload_judge_piece(u);
    while (ret == -EINPROGRESS);
    return ret;
}

/* ---- closing ---- */

/* With lock: an upload over an ended job came to nothing; the job says why. */
static void give_up_overwriting(struct jobs *jobs, struct job *writer, bool rejected)
{
    struct job *old = writer->over;

    job_set_error(old, rejected ? writer->error : NULL);
    table_drop(jobs, writer); /* tells of the old one */
}

/* As touch leaves it; but it may be somebody's document that was empty, and every call of a copy succeeded. */
static void tell_of_empty(struct jobs *jobs, const char *name)
{
    char *text = NULL;

    log_info(log_str("name", name), log_str("msg", "closed empty, which makes no job"));
    if (asprintf(&text, "closed empty, which makes no job: %s", name) >= 0)
        say(jobs, text);
}

/* What is left of a file of a final name that was not accepted: an error, or nothing. */
static void settle_refused(struct jobs *jobs, struct spool *s)
{
    struct job *job = s->job;
    char name[JOB_NAME_MAX + 1];

    pthread_mutex_lock(&jobs->lock);
    bool rejected = job->state == JOB_REJECTED && !s->aborted;
    bool empty = !job->gone && !job->over && !rejected && !s->aborted && s->bytes == 0;
    copy_name(name, job->name);
    if (job->gone)
        ; /* removed while it was open */
    else if (job->over)
        give_up_overwriting(jobs, job, rejected);
    else if (rejected) {
        job->file_bytes = 0;
        job_account(jobs, job, 0);
        quota_end(jobs, job);
    } else
        table_drop(jobs, job);
    pthread_mutex_unlock(&jobs->lock);
    if (empty)
        tell_of_empty(jobs, name);
}

/* With disk. A file of a temporary name that was written over an ended job takes its place, as files do.
 * Returns true when there is no file: nothing was written. */
static bool settle_temporary(struct jobs *jobs, struct spool *s)
{
    struct job *job = s->job;
    uint64_t loser = 0;

    pthread_mutex_lock(&jobs->lock);
    struct job *old = job->gone ? NULL : job->over;
    bool empty = old && s->bytes == 0;
    if (empty) {
        table_drop(jobs, job);
    } else if (old) {
        loser = old->id;
        old->overwriter = NULL;
        job->over = NULL;
        table_drop(jobs, old);
        table_name(jobs, job, NULL);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (loser)
        forget_on_disk(jobs, loser);
    return empty;
}

/* With disk, which orders this and renames. Returns true when the directory is to be removed. */
static bool settle(struct jobs *jobs, struct spool *s)
{
    s->settled = true;
    if (spool_gone(jobs, s))
        return !s->job->removed_behind;
    if (s->job->accepted) {
        enqueue(jobs, s->job);
        return false;
    }
    if (spool_is_temporary(jobs, s))
        return settle_temporary(jobs, s);
    settle_refused(jobs, s);
    return true;
}

/* Was it written since the last FLUSH? What a FLUSH refused stays refused, and what nobody flushed
 * under a temporary name waits until somebody wants to know. */
static bool needs_judging(struct jobs *jobs, struct spool *s)
{
    return !s->aborted && !s->judged && s->verdict == 0 && !spool_is_temporary(jobs, s);
}

static void spool_close(struct jobs *jobs, struct spool *s)
{
    uint64_t id = s->job->id;

    pthread_mutex_lock(&s->lock);
    while (needs_judging(jobs, s) && judge_locked(jobs, s) == -EINPROGRESS)
        ;
    pthread_mutex_lock(&jobs->disk);
    bool remove = settle(jobs, s);
    pthread_mutex_unlock(&jobs->disk);
    spool_reset_reader(jobs, s, false);
    reading_end(jobs, s, false);
    store_spool_close(s->fd);
    if (remove)
        forget_on_disk(jobs, id);
    pthread_mutex_unlock(&s->lock);

    pthread_mutex_lock(&jobs->lock);
    spool_give_place_back(jobs, s);
    s->job->spool = NULL;
    if (!s->job->gone)
        tell(jobs, s->job); /* a place is free */
    spool_free(s);
    pthread_cond_broadcast(&jobs->closed);
    pthread_mutex_unlock(&jobs->lock);
}

void upload_close(struct upload *u, bool aborted)
{
    struct jobs *jobs = u->jobs;
    struct spool *s = u->spool;

    if (aborted) {
        pthread_mutex_lock(&s->lock);
        s->aborted = true;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&jobs->lock);
    bool last = --s->opens == 0;
    s->closing = last;
    pthread_mutex_unlock(&jobs->lock);
    if (last)
        spool_close(jobs, s);
    free(u);
    tell_all(jobs);
}
