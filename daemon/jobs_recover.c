/*
 * Jobs as their records have them: all of them at the start, and one that the disk did not let go (jobs_behind.c).
 */
#include "daemon/jobs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct recovery {
    struct jobs *jobs;
    int ret;
};

static void recover_fields(struct job *job, const struct job_record *r)
{
    job->named = r->named;
    job->uid = r->uid;
    job->gid = r->gid;
    job->mode = r->mode;
    job->priority = (uint8_t)r->priority;
    job->proof = seal_proof_by_id(r->proof_id);
    job->test = r->test;
    job->partitions = r->partitions;
    job->partitions_done = r->partitions_done;
    job->node = r->node;
    job->same_as = r->same_as;
    job->insecure = r->insecure;
    job->file_bytes = r->file_bytes;
    job->created_ns = r->created_ns;
    job->accepted_ns = r->accepted_ns;
    job->started_ns = r->started_ns;
    job->ended_ns = r->ended_ns;
    job->accepted = true;
    memcpy(job->content_id, r->content_id, DIGEST_BYTES);
}

static uint64_t bytes_on_disk(struct jobs *jobs, uint64_t id)
{
    uint64_t sum = 0;

    for (int file = 0; file < STORE_FILES; file++) {
        int64_t bytes = store_file_bytes(jobs->store, id, (enum store_file)file);
        sum += bytes > 0 ? (uint64_t)bytes : 0;
    }
    return sum;
}

/* A power cut may leave two jobs of one name, the old one ended: the one that got the name later has
 * it. */
static bool recover_name(struct jobs *jobs, const struct job_record *r)
{
    struct job *other = table_find(jobs, r->name);

    if (!other)
        return true;
    if (other->named > r->named) {
        forget_on_disk(jobs, r->id);
        return false;
    }
    uint64_t loser = other->id;
    table_drop(jobs, other);
    forget_on_disk(jobs, loser);
    return true;
}

/* A job as its record has it. NULL: no memory. With lock, once there is somebody else. */
static struct job *table_recover(struct jobs *jobs, const struct job_record *r, uint64_t disk_bytes)
{
    struct job *job = table_add(jobs, r->id, r->name);

    if (!job)
        return NULL;
    recover_fields(job, r);
    if (r->state != JOB_QUEUED) {
        job_set_state(jobs, job, JOB_QUEUED);
        job_set_state(jobs, job, r->state);
    }
    job->disk_bytes = disk_bytes;
    jobs->totals.store_bytes += disk_bytes;
    table_name(jobs, job, NULL);
    return job;
}

static int recover_job(struct jobs *jobs, const struct job_record *r)
{
    if (!recover_name(jobs, r))
        return 0;
    return table_recover(jobs, r, bytes_on_disk(jobs, r->id)) ? 0 : -ENOMEM;
}

static uint32_t text_bytes(struct jobs *jobs, uint64_t id, enum store_file file)
{
    uint8_t *text = NULL;
    size_t len = 0;

    if (store_get(jobs->store, id, file, &text, &len) < 0)
        return 0;
    free(text);
    return (uint32_t)len;
}

int bring_back(struct jobs *jobs, uint64_t id)
{
    struct job_record r;
    struct job *job = NULL;
    int ret = store_record_get(jobs->store, id, &r);

    if (ret < 0)
        return ret;
    uint64_t bytes = bytes_on_disk(jobs, id);
    uint32_t report = text_bytes(jobs, id, STORE_REPORT), error = text_bytes(jobs, id, STORE_ERROR);
    pthread_mutex_lock(&jobs->lock);
    if (table_get(jobs, id)) /* engines have something of it */
        ret = -EBUSY;
    else if (table_find(jobs, r.name) || is_being_given(jobs, r.name) ||
             behind_has_name(jobs, NULL, r.name))
        ret = -EEXIST;
    else if (!(job = table_recover(jobs, &r, bytes)))
        ret = -ENOMEM;
    if (job) {
        jobs->totals.done_ever -= job->state == JOB_DONE; /* what was found, not what happened */
        jobs->totals.failed_ever -= job->state == JOB_FAILED;
        job->report_bytes = report;
        job->error_bytes = error;
        tell(jobs, job);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (job && r.state == JOB_QUEUED)
        enqueue_found(jobs, job);
    return ret;
}

static void recover_each(void *ctx, const struct job_record *r)
{
    struct recovery *recovery = ctx;

    if (recovery->ret == 0)
        recovery->ret = recover_job(recovery->jobs, r);
}

/* What was accepted is queued again. Nothing else runs yet, so no lock is needed to walk the table. */
static int recover_queue(struct jobs *jobs)
{
    int ret = 0;

    pthread_mutex_lock(&jobs->disk);
    for (size_t i = 0; i < jobs->len && ret == 0; i++) {
        struct job *job = jobs->by_id[i];
        if (job->state == JOB_RECEIVING)
            ret = run_start(jobs, job, false);
        job->told = job->state;
    }
    pthread_mutex_unlock(&jobs->disk);
    return ret;
}

int recover_jobs(struct jobs *jobs, struct errmsg *err)
{
    struct recovery recovery = {.jobs = jobs};
    int ret = store_scan(jobs->store, recover_each, &recovery, err);

    if (ret == 0)
        ret = recovery.ret;
    if (ret < 0)
        return ret;
    results_check(jobs);
    return recover_queue(jobs);
}
