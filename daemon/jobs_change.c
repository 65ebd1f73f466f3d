/*
 * What a user changes of a job: its priority, its owner, its mode. In memory and in its record.
 */
#include "daemon/jobs_internal.h"

#include <errno.h>
#include <string.h>

struct change {
    uint32_t uid, gid, mode, priority; /* UINT32_MAX: as it is */
};

#define CHANGE_NOTHING                                 \
    {                                                  \
        UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX \
    }

static uint32_t changed_value(uint32_t change, uint32_t old)
{
    return change == UINT32_MAX ? old : change;
}

static bool same_record(const struct job_record *a, const struct job_record *b)
{
    uint8_t x[JOB_RECORD_MAX], y[JOB_RECORD_MAX];
    size_t len = job_record_encode(x, a);

    return len == job_record_encode(y, b) && memcmp(x, y, len) == 0;
}

int replace_record(struct jobs *jobs, const struct job_record *old, const struct job_record *r,
                   enum record_is *is)
{
    struct job_record now;
    int ret = store_record_put(jobs->store, r);

    *is = RECORD_NEW;
    if (ret == 0)
        return 0;
    if (store_record_put(jobs->store, old) == 0)
        *is = RECORD_OLD;
    else if (store_record_get(jobs->store, old->id, &now) < 0)
        *is = RECORD_UNKNOWN;
    else
        *is = same_record(&now, r) ? RECORD_NEW : RECORD_OLD;
    return ret;
}

static int change_record(struct jobs *jobs, uint64_t id, const struct change *c, bool *changed)
{
    struct job_record old, r;
    enum record_is is;
    int ret = store_record_get(jobs->store, id, &old);

    *changed = false;
    if (ret < 0)
        return ret;
    r = old;
    r.uid = changed_value(c->uid, r.uid);
    r.gid = changed_value(c->gid, r.gid);
    r.mode = changed_value(c->mode, r.mode);
    r.priority = (enum job_priority)changed_value(c->priority, r.priority);
    ret = replace_record(jobs, &old, &r, &is);
    *changed = is != RECORD_OLD;
    return ret;
}

static void change_owner_and_mode(struct jobs *jobs, struct job *job, const struct change *c)
{
    bool counted = job->counted;

    quota_end(jobs, job);
    job->uid = changed_value(c->uid, job->uid);
    job->gid = changed_value(c->gid, job->gid);
    job->mode = changed_value(c->mode, job->mode);
    if (counted)
        quota_begin(jobs, job);
}

/* What is being written over the job will have its name, so it is meant as well. */
static void change_entry(struct jobs *jobs, struct job *job, const struct change *c)
{
    change_owner_and_mode(jobs, job, c);
    job->priority = (uint8_t)changed_value(c->priority, job->priority);
    if (job->run)
        run_reorder(jobs, job->run);
    tell(jobs, job);
    if (job->overwriter)
        change_owner_and_mode(jobs, job->overwriter, c);
}

static int change(struct jobs *jobs, uint64_t id, const struct change *c)
{
    int ret = -ENOENT;

    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    bool accepted = job && job->accepted, changed = job;
    pthread_mutex_unlock(&jobs->lock);
    if (job)
        ret = accepted ? change_record(jobs, id, c, &changed) : 0;
    pthread_mutex_lock(&jobs->lock);
    job = live_job(jobs, id); /* a file without a record may have gone meanwhile */
    if (job && changed)
        change_entry(jobs, job, c);
    pthread_mutex_unlock(&jobs->lock);
    pthread_mutex_unlock(&jobs->disk);
    tell_all(jobs);
    return ret;
}

int jobs_set_priority(struct jobs *jobs, uint64_t id, enum job_priority priority)
{
    struct change c = CHANGE_NOTHING;

    if (priority >= JOB_PRIORITIES)
        return -EINVAL;
    c.priority = priority;
    return change(jobs, id, &c);
}

int jobs_set_owner(struct jobs *jobs, uint64_t id, uid_t uid, gid_t gid)
{
    struct change c = CHANGE_NOTHING;

    c.uid = uid;
    c.gid = gid;
    return change(jobs, id, &c);
}

int jobs_set_mode(struct jobs *jobs, uint64_t id, mode_t mode)
{
    struct change c = CHANGE_NOTHING;

    c.mode = mode & 07777;
    return change(jobs, id, &c);
}
