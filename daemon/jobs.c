/*
 * The table: an array of entries sorted by id, for ids only grow, and a hash of names. What a call
 * changes is noted in a list of entries to tell, and told when the locks are released; one thread tells
 * at a time, so the changes of a job are heard in the order in which they came.
 */
#include "daemon/jobs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/jobs_internal.h"
#include "daemon/log.h"

#define LOG_MODULE LOG_JOBS

#define LONGEST_SUFFIX ".proof.bin"

#define OPENING_DUE_NS ((int64_t)60 * 1000000000)
#define CLOCK_JUMP_NS ((int64_t)60 * 1000000000)

int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- entries ---- */

void job_get(struct job *job)
{
    job->refs++;
}

void job_put(struct job *job)
{
    if (--job->refs > 0)
        return;
    free(job->name);
    free(job->name_on_disk);
    free(job->error);
    free(job->ready);
    free(job->refusal);
    free(job);
}

void job_set_error(struct job *job, const char *text)
{
    free(job->error);
    job->error = text ? strdup(text) : NULL;
}

void job_set_state(struct jobs *jobs, struct job *job, enum job_state state)
{
    if (job->state == state)
        return;
    assert(job_state_may_follow((enum job_state)job->state, state));
    jobs->totals.by_state[job->state]--;
    jobs->totals.by_state[state]++;
    jobs->totals.done_ever += state == JOB_DONE;
    jobs->totals.failed_ever += state == JOB_FAILED;
    jobs->totals.refused_ever += state == JOB_REJECTED;
    jobs->totals.cancelled_ever += state == JOB_CANCELLED && job->accepted;
    job->state = (uint8_t)state;
    job->report_bytes = job->error_bytes = 0;
    tell(jobs, job);
}

void job_info_fill(const struct job *job, struct job_info *out)
{
    *out = (struct job_info){
        .id = job->id,
        .uid = job->uid,
        .gid = job->gid,
        .mode = job->mode,
        .state = (enum job_state)job->state,
        .priority = (enum job_priority)job->priority,
        .temporary = job_name_is_temporary(job->name),
        .file_bytes = job->file_bytes,
        .report_bytes = job->report_bytes,
        .error_bytes = job->error ? (uint32_t)strlen(job->error) + 1 : job->error_bytes,
        .proof = job->proof,
        .partitions = job->partitions,
        .partitions_done = job->partitions_done,
        .node = job->node,
        .waits_for_params = job->waits_for_params,
        .waits_for_memory = job->waits_for_memory,
        .params_percent = job->params_percent,
        .same_as = job->same_as,
        .insecure = job->insecure,
        .has_error = job->error || job->state == JOB_FAILED,
        .created_ns = job->created_ns,
        .accepted_ns = job->accepted_ns,
        .started_ns = job->started_ns,
        .ended_ns = job->ended_ns,
    };
    copy_name(out->name, job->name);
}

int check_name(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return -EINVAL;
    if (len > JOB_NAME_MAX - strlen(LONGEST_SUFFIX))
        return -ENAMETOOLONG;
    return job_name_is_reserved(name) ? -EINVAL : 0;
}

/* ---- the table ---- */

/* Where `id` is or would be. */
static size_t table_position(const struct jobs *jobs, uint64_t id)
{
    size_t low = 0, high = jobs->len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (jobs->by_id[mid]->id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct job *table_get(struct jobs *jobs, uint64_t id)
{
    size_t at = table_position(jobs, id);

    return at < jobs->len && jobs->by_id[at]->id == id ? jobs->by_id[at] : NULL;
}

static struct job **name_bucket(struct jobs *jobs, const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    return &jobs->by_name[hash % NAME_BUCKETS];
}

struct job *table_find(struct jobs *jobs, const char *name)
{
    struct job *job = *name_bucket(jobs, name);

    while (job && strcmp(job->name, name) != 0)
        job = job->next_by_name;
    return job;
}

static void table_unname(struct jobs *jobs, struct job *job)
{
    struct job **p = name_bucket(jobs, job->name);

    if (!job->named_in_table)
        return;
    while (*p != job)
        p = &(*p)->next_by_name;
    *p = job->next_by_name;
    job->next_by_name = NULL;
    job->named_in_table = false;
}

void table_name(struct jobs *jobs, struct job *job, char *name)
{
    table_unname(jobs, job);
    if (name) {
        free(job->name);
        job->name = name;
    }
    struct job **bucket = name_bucket(jobs, job->name);
    job->next_by_name = *bucket;
    *bucket = job;
    job->named_in_table = true;
}

static int table_make_room(struct jobs *jobs)
{
    if (jobs->len < jobs->room)
        return 0;
    size_t room = jobs->room ? 2 * jobs->room : 256;
    struct job **more = reallocarray(jobs->by_id, room, sizeof(struct job *));
    if (!more)
        return -ENOMEM;
    jobs->by_id = more;
    jobs->room = room;
    return 0;
}

struct job *table_add(struct jobs *jobs, uint64_t id, const char *name)
{
    struct job *job = calloc(1, sizeof(*job));

    if (!job)
        return NULL;
    job->id = job->named = id;
    job->state = job->told = JOB_RECEIVING;
    job->priority = JOB_NORMAL;
    job->node = -1;
    job->params_percent = -1;
    job->refs = 1;
    job->in_table = true;
    job->name = strdup(name);
    if (!job->name || table_make_room(jobs) < 0) {
        job_put(job);
        return NULL;
    }
    size_t at = table_position(jobs, id);
    memmove(jobs->by_id + at + 1, jobs->by_id + at, (jobs->len - at) * sizeof(struct job *));
    jobs->by_id[at] = job;
    jobs->len++;
    jobs->totals.by_state[JOB_RECEIVING]++;
    return job;
}

static void table_remove(struct jobs *jobs, struct job *job)
{
    size_t at = table_position(jobs, job->id);

    memmove(jobs->by_id + at, jobs->by_id + at + 1, (jobs->len - at - 1) * sizeof(struct job *));
    jobs->len--;
    jobs->totals.by_state[job->state]--;
    job->in_table = false;
    tell(jobs, job);
    job_put(job);
}

void table_drop(struct jobs *jobs, struct job *job)
{
    if (job->gone && job->state != JOB_CANCELLED)
        return;
    table_unname(jobs, job);
    job->gone = true;
    job_account(jobs, job, 0);
    quota_end(jobs, job);
    if (job->spool)
        spool_give_place_back(jobs, job->spool);
    if (job->over) {
        job->over->overwriter = NULL;
        tell(jobs, job->over); /* a place in the queue is free */
    }
    if (job->overwriter) {
        job->overwriter->over = NULL;
        table_drop(jobs, job->overwriter);
        job->overwriter = NULL;
    }
    job->over = NULL;
    if (job->state == JOB_CANCELLED && (job->in_engines[0] | job->in_engines[1]))
        return;
    if (job->in_table)
        table_remove(jobs, job);
}

/* Without memory for a note the next start of the service removes it. */
void note_debris(struct jobs *jobs, uint64_t id)
{
    pthread_mutex_lock(&jobs->lock);
    if (jobs->debris_len == jobs->debris_room) {
        size_t room = jobs->debris_room ? 2 * jobs->debris_room : 16;
        uint64_t *more = reallocarray(jobs->debris, room, sizeof(*more));
        if (more) {
            jobs->debris = more;
            jobs->debris_room = room;
        }
    }
    if (jobs->debris_len < jobs->debris_room)
        jobs->debris[jobs->debris_len++] = id;
    pthread_mutex_unlock(&jobs->lock);
}

void forget_on_disk(struct jobs *jobs, uint64_t id)
{
    /* As long as the record is there, so must be the rest: half a job would come back. */
    if (store_record_remove(jobs->store, id) < 0 || store_remove(jobs->store, id) < 0)
        note_debris(jobs, id);
}

void forget_debris(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    size_t left = jobs->debris_len; /* each once; what fails again is noted again */
    while (left-- > 0 && jobs->debris_len > 0) {
        uint64_t id = jobs->debris[0];
        jobs->debris[0] = jobs->debris[--jobs->debris_len];
        pthread_mutex_unlock(&jobs->lock);
        forget_on_disk(jobs, id);
        pthread_mutex_lock(&jobs->lock);
    }
    pthread_mutex_unlock(&jobs->lock);
}

/* ---- telling ---- */

void tell(struct jobs *jobs, struct job *job)
{
    if (job->to_tell || !jobs->opt.changed)
        return;
    job_get(job);
    job->to_tell = true;
    job->next_told = NULL;
    if (jobs->tell_last)
        jobs->tell_last->next_told = job;
    else
        jobs->tell_first = job;
    jobs->tell_last = job;
}

static bool tell_next(struct jobs *jobs, struct job_info *info, enum job_state *was, bool *gone)
{
    struct job *job = jobs->tell_first;

    if (!job)
        return false;
    jobs->tell_first = job->next_told;
    if (!jobs->tell_first)
        jobs->tell_last = NULL;
    job->to_tell = false;
    job_info_fill(job, info);
    *was = (enum job_state)job->told;
    *gone = !job->in_table;
    job->told = job->state;
    job_put(job);
    return true;
}

void say(struct jobs *jobs, char *text)
{
    struct saying *s = jobs->opt.said ? calloc(1, sizeof(*s)) : NULL;

    if (!s) {
        free(text);
        return;
    }
    s->text = text;
    pthread_mutex_lock(&jobs->lock);
    struct saying **last = &jobs->sayings;
    while (*last)
        last = &(*last)->next;
    *last = s;
    pthread_mutex_unlock(&jobs->lock);
}

/* With lock, which is let go meanwhile. */
static void say_next(struct jobs *jobs)
{
    struct saying *s = jobs->sayings;

    jobs->sayings = s->next;
    pthread_mutex_unlock(&jobs->lock);
    jobs->opt.said(jobs->opt.ctx, s->text);
    free(s->text);
    free(s);
    pthread_mutex_lock(&jobs->lock);
}

void tell_all(struct jobs *jobs)
{
    struct job_info info;
    enum job_state was;
    bool gone;

    pthread_mutex_lock(&jobs->lock);
    if (jobs->telling) { /* the thread that does will come to ours */
        pthread_mutex_unlock(&jobs->lock);
        return;
    }
    jobs->telling = true;
    while (tell_next(jobs, &info, &was, &gone)) {
        pthread_mutex_unlock(&jobs->lock);
        jobs->opt.changed(jobs->opt.ctx, &info, was, gone);
        pthread_mutex_lock(&jobs->lock);
    }
    while (jobs->sayings)
        say_next(jobs);
    jobs->telling = false;
    pthread_mutex_unlock(&jobs->lock);
}

/* ---- opening ---- */

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

static int recover(struct jobs *jobs, struct errmsg *err)
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

static void follow_clock(struct jobs *jobs);

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
    ret = recover(jobs, err);
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

ssize_t jobs_read_file(struct jobs *jobs, uint64_t id, void *buf, size_t len, uint64_t offset)
{
    struct job_info info;
    int ret = jobs_get(jobs, id, &info);

    if (ret < 0)
        return ret;
    if (info.file_bytes == 0)
        return 0;
    return store_read(jobs->store, id, STORE_C1, buf, len, offset);
}

/* ---- removal ---- */

struct job *live_job(struct jobs *jobs, uint64_t id)
{
    struct job *job = table_get(jobs, id);

    return job && !job->gone ? job : NULL;
}

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

/* ---- names that are being given ---- */

void give_begin(struct jobs *jobs, const struct job *job, const char *name)
{
    jobs->giving = (struct giving){name, job};
}

void give_end(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->giving = (struct giving){NULL, NULL};
    pthread_mutex_unlock(&jobs->lock);
}

bool is_being_given(const struct jobs *jobs, const char *name)
{
    return jobs->giving.name && !jobs->giving.job->gone && strcmp(jobs->giving.name, name) == 0;
}

/* ---- ageing ---- */

static bool may_age(const struct job *job)
{
    return job_state_is_final((enum job_state)job->state) && !job->overwriter && !job->spool &&
           job->named_in_table;
}

static bool is_rejected(const struct job *job)
{
    return job->state == JOB_REJECTED;
}

#define ANYBODY UINT32_MAX

struct ended {
    struct job *oldest; /* or NULL */
    uint64_t count, bytes;
};

/* The refused or the ended ones, of one user or of all. */
static struct ended look_at_ended(struct jobs *jobs, bool rejected, uint32_t uid)
{
    struct ended all = {NULL, 0, 0};

    for (size_t i = 0; i < jobs->len; i++) {
        struct job *job = jobs->by_id[i];
        if (!may_age(job) || is_rejected(job) != rejected || (uid != ANYBODY && job->uid != uid))
            continue;
        all.count++;
        all.bytes += job->disk_bytes;
        if (!all.oldest || job->ended_ns < all.oldest->ended_ns)
            all.oldest = job;
    }
    return all;
}

/* Who has most of them: what a user does must not make another's results go. */
static uint32_t who_has_most(struct jobs *jobs, bool rejected, bool by_bytes)
{
    struct users *counts = NULL;
    uint32_t uid = ANYBODY;
    uint64_t most = 0;

    if (users_create(&counts) < 0)
        return ANYBODY;
    for (size_t i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->by_id[i];
        if (!may_age(job) || is_rejected(job) != rejected ||
            users_take(counts, job->uid, USER_FILES, by_bytes ? job->disk_bytes : 1, UINT64_MAX) <
                0)
            continue;
        uint64_t n = users_has(counts, job->uid, USER_FILES);
        uid = n > most ? job->uid : uid;
        most = n > most ? n : most;
    }
    users_destroy(counts);
    return uid;
}

static uint64_t next_to_age(struct jobs *jobs, bool rejected)
{
    const struct jobs_options *opt = &jobs->opt;
    uint64_t id = 0;

    pthread_mutex_lock(&jobs->lock);
    uint64_t keep = rejected ? REJECTED_MAX : opt->keep_finished;
    struct ended all = look_at_ended(jobs, rejected, ANYBODY);
    bool too_many = keep && all.count > keep;
    bool too_much = !rejected && opt->keep_finished_bytes && all.bytes > opt->keep_finished_bytes;
    if (all.oldest && opt->keep_finished_s &&
        (now_ns() - all.oldest->ended_ns) / 1000000000 >= opt->keep_finished_s)
        id = all.oldest->id;
    else if (too_many || too_much)
        id = look_at_ended(jobs, rejected, who_has_most(jobs, rejected, !too_many)).oldest->id;
    pthread_mutex_unlock(&jobs->lock);
    return id;
}

static void forget_old(struct jobs *jobs)
{
    for (int rejected = 0; rejected < 2; rejected++) {
        uint64_t id;
        while ((id = next_to_age(jobs, rejected)) != 0) {
            if (remove_by_id(jobs, id, may_age) < 0)
                break; /* the disk refuses; later */
        }
    }
}

static struct job *next_stray(struct jobs *jobs, uint64_t after)
{
    for (size_t i = table_position(jobs, after + 1); i < jobs->len; i++) {
        if (jobs->by_id[i]->stray_record)
            return jobs->by_id[i];
    }
    return NULL;
}

/* Records of files that could not be accepted in the end, and that could not be removed then. */
static void forget_stray_records(struct jobs *jobs)
{
    uint64_t id = 0;

    pthread_mutex_lock(&jobs->disk);
    for (struct job *job;;) {
        pthread_mutex_lock(&jobs->lock);
        job = next_stray(jobs, id);
        id = job ? job->id : 0;
        pthread_mutex_unlock(&jobs->lock);
        if (!job)
            break;
        if (store_record_remove(jobs->store, id) < 0)
            continue;
        pthread_mutex_lock(&jobs->lock);
        job = table_get(jobs, id);
        if (job)
            job->stray_record = false;
        pthread_mutex_unlock(&jobs->lock);
    }
    pthread_mutex_unlock(&jobs->disk);
}

/* Of the files whose open is due and does not come the next one behind `after` goes. Its id, or 0. */
static uint64_t forget_next_unopened(struct jobs *jobs, uint64_t after, int64_t before_ns)
{
    uint64_t id = 0;

    pthread_mutex_lock(&jobs->lock);
    for (size_t i = table_position(jobs, after + 1); i < jobs->len && !id; i++) {
        struct job *job = jobs->by_id[i];
        if (job->opening == OPENING_DUE && !job->gone && job->created_ns <= before_ns) {
            id = job->id;
            table_drop(jobs, job);
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    return id;
}

static void forget_unopened(struct jobs *jobs)
{
    int64_t before_ns = now_ns() - OPENING_DUE_NS;
    uint64_t id = 0;

    do
        id = forget_next_unopened(jobs, id, before_ns);
    while (id);
}

/* A clock that was set makes nothing older or younger: times that ages are counted from go along with it. Time asleep counts, so it is
 * compared with CLOCK_BOOTTIME. */
static void follow_clock(struct jobs *jobs)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    int64_t offset = now_ns() - ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
    pthread_mutex_lock(&jobs->lock);
    int64_t jump = jobs->clock_offset_ns ? offset - jobs->clock_offset_ns : 0;
    jobs->clock_offset_ns = offset;
    if (jump < CLOCK_JUMP_NS && jump > -CLOCK_JUMP_NS)
        jump = 0; /* a clock that is steered, which ages may follow */
    for (size_t i = 0; i < jobs->len && jump; i++) {
        struct job *job = jobs->by_id[i];
        job->created_ns += jump;
        job->written_ns += job->written_ns ? jump : 0;
        job->ended_ns += job->ended_ns ? jump : 0;
    }
    pthread_mutex_unlock(&jobs->lock);
    if (jump)
        log_warn(log_str("msg", "the clock was set: jobs keep their ages"),
                 log_i64("seconds", jump / 1000000000));
}

void jobs_tick(struct jobs *jobs)
{
    follow_clock(jobs);
    store_look_at_disk(jobs->store);
    store_reserve_ids(jobs->store); /* so that whoever makes files and renames jobs need not wait for numbers */
    forget_stray_records(jobs);
    pthread_mutex_lock(&jobs->disk);
    start_accepted(jobs);
    pthread_mutex_unlock(&jobs->disk);
    runs_retry(jobs);
    results_retry(jobs);
    forget_old(jobs);
    forget_unopened(jobs);
    forget_unsubmitted(jobs);
    behind_retry(jobs);
    tell_all(jobs);
}

/* ---- a user's changes ---- */

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

/* ---- names ---- */

void jobs_refuse_new(struct jobs *jobs)
{
    atomic_store(&jobs->closing, true);
}

int jobs_create_file(struct jobs *jobs, const char *name, const struct upload_owner *owner,
                     struct job_info *out)
{
    struct job *job = NULL;
    uint64_t id;
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
    if (job)
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

bool name_may_be_taken(struct jobs *jobs, const struct job *job, const char *name)
{
    const struct job *target = table_find(jobs, name);

    if (!target || target == job || target == job->over)
        return true;
    if (target->spool || target->overwriter)
        return false;
    if (target->state == JOB_RECEIVING)
        return !target->accepted && job_name_is_temporary(target->name);
    return job_state_is_final((enum job_state)target->state);
}

int new_names_make(struct new_names *names, const char *name)
{
    names->job = strdup(name);
    names->writer = strdup(name);
    return names->job && names->writer ? 0 : -ENOMEM;
}

void new_names_fini(struct new_names *names)
{
    free(names->job);
    free(names->writer);
}

uint64_t rename_entry(struct jobs *jobs, struct job *job, struct new_names *names)
{
    struct job *target = table_find(jobs, names->job), *writer = job->overwriter;
    uint64_t loser = target && target != job ? target->id : 0;

    if (loser)
        table_drop(jobs, target);
    table_name(jobs, job, names->job);
    names->job = NULL;
    if (writer) {
        free(writer->name);
        writer->name = names->writer;
        names->writer = NULL;
    }
    tell(jobs, job);
    return loser;
}

/* From a temporary to a final name? */
static bool move_submits(const struct job *job, const char *name)
{
    return job->state == JOB_RECEIVING && !job->accepted && job_name_is_temporary(job->name) &&
           !job_name_is_temporary(name);
}

int move_kind(struct jobs *jobs, struct job *job, const char *name)
{
    if (!job || is_rejected(job) || !job->named_in_table)
        return -ENOENT;
    if (strcmp(job->name, name) == 0)
        return MOVE_NOTHING;
    if (!name_may_be_taken(jobs, job, name))
        return -EBUSY;
    return move_submits(job, name) ? MOVE_SUBMITS : MOVE_PLAIN;
}

/* rename(2)'s EINVAL is about a directory into itself, and mv says that. */
int check_new_name(const char *name)
{
    int ret = check_name(name);

    return ret == -EINVAL ? -EPERM : ret;
}
