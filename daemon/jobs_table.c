/*
 * The table: an array of entries sorted by id, for ids only grow, and a hash of names. What a call
 * changes is noted in a list of entries to tell, and told when the locks are released; one thread tells
 * at a time, so the changes of a job are heard in the order in which they came.
 */
#include "daemon/jobs_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST_SUFFIX ".proof.bin"

int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
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

size_t table_position(const struct jobs *jobs, uint64_t id)
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

struct job *live_job(struct jobs *jobs, uint64_t id)
{
    struct job *job = table_get(jobs, id);

    return job && !job->gone ? job : NULL;
}

/* ---- names ---- */

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

/* ---- telling ---- */

void tell(struct jobs *jobs, struct job *job)
{
    if (job->to_tell || !jobs->opt.changed)
        return;
    job_get(job);
    job->to_tell = true;
    job->next_told = NULL;
    if (jobs->tell_last)
        jobs->tell_last->next_told = job; /* NOLINT(clang-analyzer-unix.Malloc): the list has a reference */
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
    while (jobs->tell_first || jobs->sayings) {
        while (tell_next(jobs, &info, &was, &gone)) {
            pthread_mutex_unlock(&jobs->lock);
            jobs->opt.changed(jobs->opt.ctx, &info, was, gone);
            pthread_mutex_lock(&jobs->lock);
        }
        if (jobs->sayings)
            say_next(jobs);
    }
    jobs->telling = false;
    pthread_mutex_unlock(&jobs->lock);
}
