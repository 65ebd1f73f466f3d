/*
 * Files that are no jobs (yet): of a temporary name, or being received. They are bounded in number,
 * bytes and age, in all and for each user, so that nobody fills the table or the disk with what nobody
 * will ever prove. A file counts from its creation until it is accepted, refused or removed; a write
 * that takes an acceptance back makes it count again, whatever the limits say.
 */
#include <errno.h>
#include <inttypes.h>

#include "daemon/jobs_internal.h"

#define LEAST_BYTES_MAX ((uint64_t)2 << 30) /* two files of the greatest length, on however small a disk */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void quota_defaults(struct jobs_options *opt, const struct store *store)
{
    uint64_t disk = store_disk_bytes(store);

    if (opt->max_store_bytes && opt->max_store_bytes < disk)
        disk = opt->max_store_bytes;
    if (!opt->max_unsubmitted_bytes)
        opt->max_unsubmitted_bytes = max_u64(disk / 4, LEAST_BYTES_MAX);
    if (!opt->max_unsubmitted_bytes_user)
        opt->max_unsubmitted_bytes_user = max_u64(opt->max_unsubmitted_bytes / 2, LEAST_BYTES_MAX);
    if (!opt->max_unsubmitted)
        opt->max_unsubmitted = UINT32_MAX;
    if (!opt->max_unsubmitted_user)
        opt->max_unsubmitted_user = opt->max_unsubmitted;
}

bool is_of_disk(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EROFS || code == -EIO;
}

int disk_said(struct jobs *jobs, int code)
{
    if (!is_of_disk(code))
        return code;
    pthread_mutex_lock(&jobs->lock);
    jobs->totals.disk_refused_ms = monotonic_ms();
    jobs->totals.disk_error = code;
    pthread_mutex_unlock(&jobs->lock);
    return code;
}

/* Remembers why, for the status of the service and for the error of the file. */
static int refused(struct jobs *jobs, int code, const char *what, uint64_t limit, const char *unit)
{
    jobs->totals.refused_ms = monotonic_ms();
    snprintf(jobs->totals.refusal, sizeof(jobs->totals.refusal), "%s: at most %" PRIu64 " %s", what, limit,
             unit);
    return code;
}

static int refused_of_user(struct jobs *jobs, uid_t user, uint64_t limit, const char *unit)
{
    char what[64];

    snprintf(what, sizeof(what), "files of uid %u that are no jobs", (unsigned)user);
    return refused(jobs, -EDQUOT, what, limit, unit);
}

#define ALL_FILES "files that are no jobs, of all users"

int quota_may_begin(struct jobs *jobs, uid_t user)
{
    const struct jobs_options *opt = &jobs->opt;

    if (users_has(jobs->users, user, USER_FILES) >= opt->max_unsubmitted_user)
        return refused_of_user(jobs, user, opt->max_unsubmitted_user, "files");
    if (jobs->totals.unsubmitted >= opt->max_unsubmitted)
        return refused(jobs, -ENOSPC, ALL_FILES, opt->max_unsubmitted, "files");
    return 0;
}

void quota_begin(struct jobs *jobs, struct job *job)
{
    if (job->counted || users_take(jobs->users, job->uid, USER_FILES, 1, UINT64_MAX) < 0)
        return; /* without memory it goes uncounted */
    users_take(jobs->users, job->uid, USER_BYTES, job->disk_bytes, UINT64_MAX);
    job->counted = true;
    jobs->totals.unsubmitted++;
    jobs->totals.unsubmitted_bytes += job->disk_bytes;
}

void quota_end(struct jobs *jobs, struct job *job)
{
    if (!job->counted)
        return;
    job->counted = false;
    jobs->totals.unsubmitted--;
    jobs->totals.unsubmitted_bytes -= job->disk_bytes;
    users_give(jobs->users, job->uid, USER_BYTES, job->disk_bytes);
    users_give(jobs->users, job->uid, USER_FILES, 1);
}

/* May the file have `more` bytes? */
static int quota_grow(struct jobs *jobs, const struct job *job, uint64_t more)
{
    const struct jobs_options *opt = &jobs->opt;
    uint64_t all = jobs->totals.unsubmitted_bytes, limit = opt->max_unsubmitted_bytes;

    if (all > limit || more > limit - all)
        return refused(jobs, -ENOSPC, ALL_FILES, limit, "bytes");
    uint64_t has = users_has(jobs->users, job->uid, USER_BYTES);
    limit = opt->max_unsubmitted_bytes_user;
    if (has > limit || more > limit - has)
        return refused_of_user(jobs, job->uid, limit, "bytes");
    return 0;
}

int job_account(struct jobs *jobs, struct job *job, uint64_t disk_bytes)
{
    uint64_t others = jobs->totals.store_bytes - job->disk_bytes;
    uint64_t limit = jobs->opt.max_store_bytes;
    bool grows = disk_bytes > job->disk_bytes;

    if (limit && grows && (others > limit || disk_bytes > limit - others))
        return refused(jobs, -ENOSPC, "the store (max_store; rm of ended jobs makes room)", limit,
                       "bytes");
    if (grows && job->counted) {
        int ret = quota_grow(jobs, job, disk_bytes - job->disk_bytes);
        if (ret < 0)
            return ret;
    }
    bool counted = job->counted;
    if (counted)
        quota_end(jobs, job);
    jobs->totals.store_bytes = others + disk_bytes;
    job->disk_bytes = disk_bytes;
    if (counted)
        quota_begin(jobs, job);
    return 0;
}

/* ---- age ---- */

static int64_t last_written_ns(const struct job *job)
{
    return job->written_ns ? job->written_ns : job->created_ns;
}

static bool is_unsubmitted(const struct job *job)
{
    return job->counted && !job->accepted;
}

static uint64_t next_too_old(struct jobs *jobs, int64_t before_ns)
{
    uint64_t id = 0;

    pthread_mutex_lock(&jobs->lock);
    for (size_t i = 0; i < jobs->len && !id; i++) {
        const struct job *job = jobs->by_id[i];
        if (is_unsubmitted(job) && !job->gone && last_written_ns(job) <= before_ns)
            id = job->id;
    }
    pthread_mutex_unlock(&jobs->lock);
    return id;
}

void forget_unsubmitted(struct jobs *jobs)
{
    uint64_t id;

    pthread_mutex_lock(&jobs->lock);
    int64_t age_s = jobs->opt.unsubmitted_s;
    pthread_mutex_unlock(&jobs->lock);
    if (age_s == 0)
        return;
    while ((id = next_too_old(jobs, now_ns() - age_s * 1000000000)) != 0)
        if (remove_by_id(jobs, id, is_unsubmitted) < 0)
            return; /* the disk refuses; later */
}
