/*
 * What goes by itself: ended jobs by age, number and bytes, files that nobody opens, and what the disk did not let go at first.
 */
#include "daemon/jobs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/log.h"

#define LOG_MODULE LOG_JOBS

#define OPENING_DUE_NS ((int64_t)60 * 1000000000)
#define CLOCK_JUMP_NS ((int64_t)60 * 1000000000)

/* ---- what is left on disk ---- */

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

/* ---- ageing ---- */

static bool may_age(const struct job *job)
{
    return job_state_is_final((enum job_state)job->state) && !job->overwriter && !job->spool &&
           job->named_in_table;
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
    const struct job *next = NULL;

    pthread_mutex_lock(&jobs->lock);
    uint64_t keep = rejected ? REJECTED_MAX : opt->keep_finished;
    struct ended all = look_at_ended(jobs, rejected, ANYBODY);
    bool too_many = keep && all.count > keep;
    bool too_much = !rejected && opt->keep_finished_bytes && all.bytes > opt->keep_finished_bytes;
    if (all.oldest && opt->keep_finished_s &&
        (now_ns() - all.oldest->ended_ns) / 1000000000 >= opt->keep_finished_s)
        next = all.oldest;
    else if (too_many || too_much)
        next = look_at_ended(jobs, rejected, who_has_most(jobs, rejected, !too_many)).oldest;
    uint64_t id = next ? next->id : 0;
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

/* Time asleep counts, so it is compared with CLOCK_BOOTTIME. */
void follow_clock(struct jobs *jobs)
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
