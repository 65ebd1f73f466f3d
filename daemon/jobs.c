/*
 * Opening and closing of all of it, looking at jobs, making files and removing jobs. The rest of what jobs.h declares is in the files that
 * jobs_internal.h names.
 */
#include "daemon/jobs.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/jobs_internal.h"
#include "daemon/log.h"

#define LOG_MODULE LOG_JOBS

/* ---- opening ---- */

int jobs_open(const struct jobs_options *opt, struct jobs **out, struct errmsg *err)
{
    struct jobs *jobs = calloc(1, sizeof(*jobs));
    int ret;

    if (!jobs)
        return errmsg_set(err, -ENOMEM, "no memory for the job table");
    pthread_mutex_init(&jobs->disk, NULL);
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->closed, NULL);
    jobs->opt = *opt;
    jobs->opt.changed = NULL; /* nobody is told of what is found: jobs_list shows it */
    jobs->opt.said = NULL;
    ret = users_create(&jobs->users);
    if (ret == 0)
        ret = order_create(opt->aging_ms, &jobs->order);
    if (ret == 0)
        ret = store_open(opt->store_dir, &jobs->store, err);
    if (ret < 0)
        goto out;
    quota_defaults(&jobs->opt, jobs->store);
    follow_clock(jobs); /* from here on */
    ret = recover_jobs(jobs, err);
    if (ret < 0) {
        errmsg_prefix(err, ret, "%s: cannot recover", opt->store_dir);
        goto out;
    }
    store_reserve_ids(jobs->store); /* where the disk refuses, who wants one hears of it */
    jobs->opt.changed = opt->changed;
    jobs->opt.said = opt->said;
    jobs->totals.done_ever = jobs->totals.failed_ever = 0; /* what was found, not what happened */
    *out = jobs;
    jobs = NULL; /* now the caller's */
out:
    jobs_close(jobs);
    return ret;
}

void jobs_close(struct jobs *jobs)
{
    if (!jobs)
        return;
    jobs->opt.changed = NULL;
    jobs->opt.said = NULL;
    if (jobs->behind || jobs->late)
        behind_retry(jobs);
    behind_free_all(jobs);
    runs_free(jobs);
    order_destroy(jobs->order);
    workers_destroy(jobs->syncers);
    for (size_t i = 0; i < jobs->len; i++)
        job_put(jobs->by_id[i]);
    free(jobs->by_id);
    free(jobs->debris);
    store_close(jobs->store);
    users_destroy(jobs->users);
    pthread_cond_destroy(&jobs->closed);
    pthread_mutex_destroy(&jobs->lock);
    pthread_mutex_destroy(&jobs->disk);
    free(jobs);
}

/* ---- looking ---- */

int jobs_find(struct jobs *jobs, const char *name, struct job_info *out)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = table_find(jobs, name);
    if (job)
        job_info_fill(job, out);
    pthread_mutex_unlock(&jobs->lock);
    return job ? 0 : -ENOENT;
}

int jobs_get(struct jobs *jobs, uint64_t id, struct job_info *out)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = table_get(jobs, id);
    if (job)
        job_info_fill(job, out);
    pthread_mutex_unlock(&jobs->lock);
    return job ? 0 : -ENOENT;
}

size_t jobs_list(struct jobs *jobs, uint64_t after, struct job_info *out, size_t max)
{
    size_t n = 0;

    pthread_mutex_lock(&jobs->lock);
    for (size_t i = after < UINT64_MAX ? table_position(jobs, after + 1) : jobs->len;
         i < jobs->len && n < max; i++) {
        if (jobs->by_id[i]->named_in_table)
            job_info_fill(jobs->by_id[i], &out[n++]);
    }
    pthread_mutex_unlock(&jobs->lock);
    return n;
}

void jobs_set_limits(struct jobs *jobs, const struct jobs_options *opt)
{
    struct jobs_options limits = *opt;

    quota_defaults(&limits, jobs->store);
    pthread_mutex_lock(&jobs->lock);
    jobs->opt.max_unfinished = limits.max_unfinished;
    jobs->opt.max_store_bytes = limits.max_store_bytes;
    jobs->opt.max_unsubmitted = limits.max_unsubmitted;
    jobs->opt.max_unsubmitted_user = limits.max_unsubmitted_user;
    jobs->opt.max_unsubmitted_bytes = limits.max_unsubmitted_bytes;
    jobs->opt.max_unsubmitted_bytes_user = limits.max_unsubmitted_bytes_user;
    jobs->opt.unsubmitted_s = limits.unsubmitted_s;
    jobs->opt.keep_finished = limits.keep_finished;
    jobs->opt.keep_finished_s = limits.keep_finished_s;
    jobs->opt.keep_finished_bytes = limits.keep_finished_bytes;
    pthread_mutex_unlock(&jobs->lock);
}

void jobs_totals(struct jobs *jobs, struct jobs_totals *out)
{
    pthread_mutex_lock(&jobs->lock);
    *out = jobs->totals;
    out->places = jobs->opt.max_unfinished;
    out->places_taken = places_taken(jobs);
    out->max_store_bytes = jobs->opt.max_store_bytes;
    out->keep_finished = jobs->opt.keep_finished;
    out->keep_finished_s = jobs->opt.keep_finished_s;
    out->keep_finished_bytes = jobs->opt.keep_finished_bytes;
    pthread_mutex_unlock(&jobs->lock);
    out->closing = atomic_load(&jobs->closing);
    struct store_health health = store_health(jobs->store);
    out->set_aside = health.set_aside;
    out->repaired += health.repaired;
}

/* A read of a job's file found its end where there should be more. Unless somebody is about to write another file there, the disk has lost it;
 * whether the other bytes are right only reading all of them would tell. */
static ssize_t found_short(struct jobs *jobs, const struct job_info *info, ssize_t got)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, info->id);
    bool same = job && job->accepted_ns == info->accepted_ns && job->file_bytes == info->file_bytes;
    bool tell = same && !job->cut_short;
    if (tell)
        job->cut_short = true;
    pthread_mutex_unlock(&jobs->lock);
    if (tell)
        log_err(log_u64("job", info->id), log_str("name", info->name),
                log_str("msg", "its C1 file was damaged on disk: the end is missing; what it was "
                               "proved from, and its results, are files of their own"),
                log_u64("bytes", info->file_bytes));
    return same ? -EIO : got;
}

ssize_t jobs_read_file(struct jobs *jobs, uint64_t id, void *buf, size_t len, uint64_t offset)
{
    struct job_info info;
    int ret = jobs_get(jobs, id, &info);

    if (ret < 0)
        return ret;
    if (info.file_bytes == 0)
        return 0;
    ssize_t got = store_read(jobs->store, id, STORE_C1, buf, len, offset);
    bool short_of = got == -ENOENT ||
                    (got >= 0 && offset + (uint64_t)got < info.file_bytes && (size_t)got < len);
    return info.accepted_ns && short_of ? found_short(jobs, &info, got) : got;
}

/* ---- making files ---- */

void jobs_refuse_new(struct jobs *jobs)
{
    atomic_store(&jobs->closing, true);
}

int jobs_create_file(struct jobs *jobs, const char *name, const struct upload_owner *owner,
                     struct job_info *out)
{
    struct job *job = NULL;
    uint64_t id = 0;
    int ret = atomic_load(&jobs->closing) ? -ECANCELED : check_name(name);

    if (ret == 0)
        ret = store_quick_id(jobs->store, &id);
    if (ret == -EAGAIN)
        ret = store_next_id(jobs->store, &id);
    if (ret < 0)
        return ret;
    pthread_mutex_lock(&jobs->lock);
    struct job *old = table_find(jobs, name);
    if ((old && !is_rejected(old)) || is_being_given(jobs, name)) {
        ret = -EEXIST;
        goto out;
    }
    ret = quota_may_begin(jobs, owner->uid);
    if (ret < 0)
        goto out;
    job = table_add(jobs, id, name);
    if (!job) {
        ret = -ENOMEM;
        goto out;
    }
    if (old)
        table_drop(jobs, old); /* though its RELEASE may not have come yet */
    job->uid = owner->uid;
    job->gid = owner->gid;
    job->mode = owner->mode & 07777;
    job->created_ns = now_ns();
    quota_begin(jobs, job);
    table_name(jobs, job, NULL);
    tell(jobs, job);
    job_info_fill(job, out);
out:
    pthread_mutex_unlock(&jobs->lock);
    tell_all(jobs);
    return ret;
}

void jobs_open_due(struct jobs *jobs, uint64_t id)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    if (job && !job->accepted && !job->spool)
        job->opening = OPENING_DUE;
    pthread_mutex_unlock(&jobs->lock);
}

void jobs_open_comes(struct jobs *jobs, uint64_t id)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    if (job && job->opening == OPENING_DUE)
        job->opening = OPENING_COMES;
    pthread_mutex_unlock(&jobs->lock);
}

/* ---- removal ---- */

bool has_record(struct jobs *jobs, uint64_t id)
{
    struct job_record r;

    return store_record_get(jobs->store, id, &r) != -ENOENT;
}

/* With lock. */
static void drop_removed(struct jobs *jobs, struct job *job)
{
    if (job->run)
        run_leave(jobs, job);
    if (!job_state_is_final((enum job_state)job->state))
        job_set_state(jobs, job, JOB_CANCELLED);
    job->ended_ns = job->ended_ns ? job->ended_ns : now_ns();
    table_drop(jobs, job);
}

/* With disk, without lock. *gone says whether the job has left: it stays when its record could not be
 * removed; when only the sync failed it is gone, the error is told all the same, and the removal is
 * tried again with the rest of its files. */
static int remove_job(struct jobs *jobs, struct job *job, bool *gone)
{
    if (job->run)
        run_prepare_leave(jobs, job);
    int ret = job->accepted ? store_record_remove(jobs->store, job->id) : 0;
    *gone = ret == 0 || !has_record(jobs, job->id);
    pthread_mutex_lock(&jobs->lock);
    if (*gone)
        drop_removed(jobs, job);
    pthread_mutex_unlock(&jobs->lock);
    if (!*gone && job->run)
        job->run->journal_stale = true; /* the next home's was written last */
    return ret;
}

int remove_by_id(struct jobs *jobs, uint64_t id, bool (*wanted)(const struct job *job))
{
    int ret = -ENOENT;
    bool gone = false;

    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    if (job && wanted && !wanted(job))
        job = NULL;
    if (job)
        job_get(job);
    pthread_mutex_unlock(&jobs->lock);
    if (job)
        ret = remove_job(jobs, job, &gone);
    pthread_mutex_unlock(&jobs->disk);
    if (!job)
        return ret;
    if (gone)
        forget_on_disk(jobs, id);
    pthread_mutex_lock(&jobs->lock);
    job_put(job);
    pthread_mutex_unlock(&jobs->lock);
    tell_all(jobs);
    return ret;
}

int jobs_remove(struct jobs *jobs, uint64_t id)
{
    return remove_by_id(jobs, id, NULL);
}

void jobs_drop_unopened(struct jobs *jobs, uint64_t id)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    if (job && job->opening != OPENING_DONE)
        table_drop(jobs, job); /* nothing of it is on disk */
    pthread_mutex_unlock(&jobs->lock);
    tell_all(jobs);
}
