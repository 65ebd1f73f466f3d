/*
 * What users are answered from memory, and the disk is told of behind: removals and renames. The kernel holds a directory
 * as long as a name in it changes, so an answer that waited for the disk would hold up whoever lists it.
 *
 * The table changes at once, under `lock`; what the disk has to do waits in a queue, and is done in its order under
 * `disk`, by threads that may wait. So a disk after a crash has what the table was some time before: a job may be there
 * again, or have its old name again, and none is lost, for a name is not given on disk before whoever had it has
 * another one there (behind_settle_name).
 *
 * What the disk refuses is taken back in the table too: the job is there again, made from its record as at a start. Where
 * its name has been given away meanwhile, a removal is tried again later and a rename stays `late`: the table
 * has it, the disk is asked at each tick, and until then nobody else gets the old name there: of two that have one name on
 * disk a start drops one. So each job that is behind knows what its record is called (name_on_disk).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs_internal.h"
#include "daemon/log.h"

#define LOG_MODULE LOG_JOBS

#define BEHIND_MAX 65536 /* at more, users wait for the disk again */

/* One change. Guarded by jobs->lock while it waits; then it is the worker's. */
struct behind {
    struct behind *next;
    struct job *job; /* a reference */
    char *from, *to; /* of a rename, in the table; NULL: a removal */
    uint64_t named;  /* of a rename */
    uint64_t loser;  /* the id of the job that had `to`, or 0 */
    bool late;       /* the disk has refused it before */
};

/* ---- the queue (with lock) ---- */

static void behind_free(struct behind *b)
{
    if (!b)
        return;
    free(b->from);
    free(b->to);
    free(b);
}

/* `to` NULL: a removal. NULL without memory. */
static struct behind *behind_new(const char *to)
{
    struct behind *b = calloc(1, sizeof(*b));

    if (b && to && !(b->to = strdup(to))) {
        free(b);
        return NULL;
    }
    return b;
}

static void behind_put(struct jobs *jobs, struct behind *b, struct job *job)
{
    b->job = job;
    job_get(job);
    b->next = NULL;
    if (jobs->behind_last)
        jobs->behind_last->next = b;
    else
        jobs->behind = b;
    jobs->behind_last = b;
    jobs->behind_len++;
}

static struct behind *behind_take(struct jobs *jobs)
{
    struct behind *b = jobs->behind;

    if (!b)
        return NULL;
    jobs->behind = b->next;
    if (!jobs->behind)
        jobs->behind_last = NULL;
    jobs->behind_len--;
    return b;
}

static bool behind_is_full(const struct jobs *jobs)
{
    return jobs->behind_len >= BEHIND_MAX;
}

static struct behind *find_later(struct behind *b, const struct behind *than)
{
    while (b && (b->job != than->job || !b->to || b->named < than->named))
        b = b->next;
    return b;
}

/* The job has been renamed again since. */
static struct behind *later_rename(const struct jobs *jobs, const struct behind *than)
{
    struct behind *b = find_later(jobs->behind, than);

    return b ? b : find_later(jobs->late, than);
}

static bool is_taken_away(const struct jobs *jobs, const char *name)
{
    for (const struct behind *b = jobs->behind; b; b = b->next)
        if (b->to && strcmp(b->from, name) == 0)
            return true;
    return false;
}

static bool is_among(const struct behind *b, const struct job *job, const char *name)
{
    for (; b; b = b->next)
        if (b->job != job && !b->job->gone && b->job->name_on_disk &&
            strcmp(b->job->name_on_disk, name) == 0)
            return true;
    return false;
}

bool behind_has_name(const struct jobs *jobs, const struct job *job, const char *name)
{
    return is_among(jobs->late, job, name) || is_among(jobs->behind, job, name);
}

/* The same of any job, behind or not. */
static bool is_anothers(struct jobs *jobs, const struct job *job, const char *name)
{
    const struct job *other = table_find(jobs, name);

    return behind_has_name(jobs, job, name) ||
           (other && other != job && other->accepted && !other->name_on_disk);
}

/* ---- telling of what the disk refused ---- */

static void say_refused(struct jobs *jobs, const struct behind *b, int error, const char *outcome)
{
    char name[JOB_NAME_MAX + 1], *text = NULL;

    pthread_mutex_lock(&jobs->lock);
    jobs->behind_error = error;
    copy_name(name, b->to ? b->to : b->job->name);
    pthread_mutex_unlock(&jobs->lock);
    log_err(log_u64("job", b->job->id), log_str("name", name),
            log_str("msg", b->to ? "its rename is not on disk" : "its removal is not on disk"),
            log_str("error", strerror(-error)), log_str("outcome", outcome));
    if (asprintf(&text, "job %" PRIu64 ": the disk refused its %s: %s: %s", b->job->id,
                 b->to ? "rename" : "removal", strerror(-error), outcome) >= 0)
        say(jobs, text);
}

/* ---- removals (with disk) ---- */

/* 0 as well where only the sync failed: then the rest is tried again with its other files. */
static int do_removal(struct jobs *jobs, const struct behind *b)
{
    struct job *job = b->job;

    if (job->run)
        run_prepare_leave(jobs, job);
    int ret = store_record_remove(jobs->store, job->id);
    pthread_mutex_lock(&jobs->lock);
    if (job->run)
        run_leave(jobs, job);
    pthread_mutex_unlock(&jobs->lock);
    if (ret < 0 && has_record(jobs, job->id))
        return ret;
    note_debris(jobs, job->id);
    if (ret < 0)
        say_refused(jobs, b, ret, "it is tried again");
    return 0;
}

/* False: not yet. Otherwise the job is there again, or its name is another's, and what is left of it goes later. */
static bool undo_removal(struct jobs *jobs, const struct behind *b, int error)
{
    int ret = bring_back(jobs, b->job->id);

    if (ret == 0)
        say_refused(jobs, b, error, "the job is there again");
    else if (ret == -EEXIST)
        note_debris(jobs, b->job->id);
    return ret == 0 || ret == -EEXIST || ret == -ENOENT;
}

/* ---- renames (with disk) ---- */

/* With lock: it has been renamed again, or has gone. */
static bool has_moved_on(const struct behind *b)
{
    return b->job->gone || b->job->named != b->named;
}

/* Who has gone needs no name, and who has the right one in the end none on the way that the disk refused. */
static bool is_needless(const struct behind *b)
{
    return b->job->gone || !b->job->accepted || (b->late && !b->job->name_on_disk);
}

/* *changed: the record has the name, or a later one. */
static int rename_on_disk(struct jobs *jobs, const struct behind *b, bool *changed)
{
    struct job *job = b->job;
    struct job_record r;
    char *name;

    *changed = false;
    int ret = store_record_get(jobs->store, job->id, &r);
    if (ret == -ENOENT ||
        (ret == 0 && r.named > b->named)) { /* removed meanwhile, or accepted anew */
        *changed = true;
        return 0;
    }
    if (ret < 0 || !(name = strdup(b->to)))
        return ret < 0 ? ret : -ENOMEM;
    ret = rename_record(jobs, job->id, b->named, b->to, changed);
    if (*changed) {
        pthread_mutex_lock(&jobs->lock);
        free(job->name_on_disk);
        job->name_on_disk = strcmp(name, job->name) == 0 ? NULL : name;
        name = job->name_on_disk ? NULL : name;
        pthread_mutex_unlock(&jobs->lock);
    }
    free(name);
    return ret;
}

static int do_rename(struct jobs *jobs, const struct behind *b)
{
    bool changed = false;
    int ret = 0;

    pthread_mutex_lock(&jobs->lock);
    bool needless = is_needless(b);
    if (!needless && is_anothers(jobs, b->job, b->to))
        ret = -EIO;
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0 && !needless)
        ret = rename_on_disk(jobs, b, &changed);
    if (ret < 0 && !changed)
        return ret;
    if (b->loser)
        forget_on_disk(jobs, b->loser);
    if (ret < 0)
        say_refused(jobs, b, ret, "it may have its old name after a crash");
    return 0;
}

/* With lock: the name that it has on disk. False: that is another's by now. */
static bool give_old_name(struct jobs *jobs, struct job *job)
{
    struct job *other = job->name_on_disk ? table_find(jobs, job->name_on_disk) : job;
    struct new_names names = {0};

    if ((other && other != job) || (job->name_on_disk && is_being_given(jobs, job->name_on_disk)))
        return false;
    bool done = !job->name_on_disk || new_names_make(&names, job->name_on_disk) == 0;
    if (done && job->name_on_disk) {
        rename_entry(jobs, job, &names);
        free(job->name_on_disk);
        job->name_on_disk = NULL;
    }
    new_names_fini(&names);
    return done;
}

/* With lock: whoever lost its name to a job that has another one by now comes back only if that one is refused too. */
static void pass_on_loser(struct jobs *jobs, struct behind *b)
{
    struct behind *later = b->job->gone ? NULL : later_rename(jobs, b);

    if (later && !later->loser) {
        later->loser = b->loser;
        b->loser = 0;
    }
}

/* Names on the way are asked for again like others: jobs that change names need one. */
static bool undo_rename(struct jobs *jobs, struct behind *b, int error)
{
    pthread_mutex_lock(&jobs->lock);
    bool moved_on = has_moved_on(b);
    bool done = moved_on ? b->job->gone || !b->job->name_on_disk : give_old_name(jobs, b->job);
    if (moved_on)
        pass_on_loser(jobs, b);
    pthread_mutex_unlock(&jobs->lock);
    if (!done)
        return false;
    if (b->loser && (moved_on || bring_back(jobs, b->loser) == -EEXIST))
        note_debris(jobs, b->loser);
    say_refused(jobs, b, error,
                moved_on ? "it has another name by now" : "it has its old name again");
    return true;
}

/* ---- doing it ---- */

/* With disk. False: nothing is behind. */
static bool do_next(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    struct behind *b = behind_take(jobs);
    pthread_mutex_unlock(&jobs->lock);
    if (!b)
        return false;
    int ret = b->to ? do_rename(jobs, b) : do_removal(jobs, b);
    bool done = ret == 0 || (b->to ? undo_rename(jobs, b, ret) : undo_removal(jobs, b, ret));
    if (!done && !b->late)
        say_refused(jobs, b, ret, "it is tried again");
    pthread_mutex_lock(&jobs->lock);
    if (done) {
        job_put(b->job);
    } else {
        struct behind **last = &jobs->late;
        while (*last)
            last = &(*last)->next;
        b->late = true;
        b->next = NULL;
        *last = b;
        b = NULL;
    }
    pthread_mutex_unlock(&jobs->lock);
    behind_free(b);
    return true;
}

void behind_do_all(struct jobs *jobs)
{
    while (do_next(jobs))
        ;
}

int behind_settle_name(struct jobs *jobs, const struct job *job, const char *name)
{
    bool more = true;
    int ret = 0;

    while (more) {
        pthread_mutex_lock(&jobs->lock);
        more = is_taken_away(jobs, name);
        ret = behind_has_name(jobs, job, name) ? -EIO : 0;
        pthread_mutex_unlock(&jobs->lock);
        if (more)
            do_next(jobs);
    }
    return ret;
}

/* With lock: what the disk has refused before is asked of it again, before all else, for that may want names which this gives away. */
static void ask_again(struct jobs *jobs)
{
    struct behind **last = &jobs->late;

    if (!jobs->late)
        return;
    for (; *last; last = &(*last)->next) {
        jobs->behind_len++;
        if (!(*last)->next && !jobs->behind)
            jobs->behind_last = *last;
    }
    *last = jobs->behind;
    jobs->behind = jobs->late;
    jobs->late = NULL;
}

void jobs_catch_up(struct jobs *jobs)
{
    bool more = true;

    while (more) { /* others get the disk in between */
        pthread_mutex_lock(&jobs->disk);
        more = do_next(jobs);
        pthread_mutex_unlock(&jobs->disk);
        if (more)
            tell_all(jobs);
    }
    forget_debris(jobs);
}

void behind_retry(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    ask_again(jobs);
    pthread_mutex_unlock(&jobs->lock);
    jobs_catch_up(jobs);
}

/* The kernel holds the directory meanwhile: so not longer than for the names, what else is to be removed has time. */
int jobs_sync(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    ask_again(jobs);
    pthread_mutex_unlock(&jobs->lock);
    behind_do_all(jobs);
    pthread_mutex_unlock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    int ret = jobs->behind_error;
    jobs->behind_error = 0;
    pthread_mutex_unlock(&jobs->lock);
    tell_all(jobs);
    return ret;
}

void behind_free_all(struct jobs *jobs)
{
    struct behind *b;

    ask_again(jobs);
    while ((b = behind_take(jobs)) != NULL) {
        job_put(b->job);
        behind_free(b);
    }
}

/* ---- at once ---- */

/* With lock: a record names it, or somebody is about to put or change one. Who is about to accept a job looks whether it
 * is still there (judge.c). */
static bool has_business_on_disk(const struct jobs *jobs, const struct job *job)
{
    return job->accepted || job->stray_record || jobs->giving.job == job;
}

/* With lock. It leaves its run with its record. */
static void drop_at_once(struct jobs *jobs, struct job *job)
{
    if (!job_state_is_final((enum job_state)job->state))
        job_set_state(jobs, job, JOB_CANCELLED);
    job->ended_ns = job->ended_ns ? job->ended_ns : now_ns();
    table_drop(jobs, job);
    if (job->run)
        run_reorder(jobs, job->run);
}

int jobs_remove_at_once(struct jobs *jobs, uint64_t id)
{
    struct behind *b = behind_new(NULL);

    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    bool on_disk = job && has_business_on_disk(jobs, job);
    bool opened = job && job->opening == OPENING_DONE;
    int ret = !job ? -ENOENT : !b ? -ENOMEM : on_disk && behind_is_full(jobs) ? -EINPROGRESS : 0;
    if (ret == 0 && on_disk) {
        behind_put(jobs, b, job);
        job->removed_behind = true;
        b = NULL;
    }
    if (ret == 0)
        drop_at_once(jobs, job);
    pthread_mutex_unlock(&jobs->lock);
    behind_free(b);
    if (ret < 0)
        return ret;
    if (!on_disk && opened)
        note_debris(jobs, id);
    tell_all(jobs);
    return 0;
}

/* With lock: it must wait for the disk, or for somebody who does. */
static bool must_wait(const struct jobs *jobs, const struct job *job, const struct job *target,
                      const char *name)
{
    const struct job *given = jobs->giving.job;

    if (is_being_given(jobs, name) || is_being_given(jobs, job->name) || behind_is_full(jobs))
        return true;
    if (given && (given == job || given == job->overwriter || given == target))
        return true;
    if (job->accepted)
        return false;
    return job->stray_record ||
           (job->spool &&
            job->spool->closing); /* what becomes of it is being settled, by its name */
}

/* With lock: *b and *names are used up or not. What has the name needs to be forgotten where that is left in *loser. */
static int rename_behind(struct jobs *jobs, struct job *job, struct new_names *names,
                         struct behind **b, uint64_t *loser)
{
    struct job *target = table_find(jobs, names->job);
    bool overwrites = target && target != job && has_business_on_disk(jobs, target);

    if (must_wait(jobs, job, target, names->job))
        return -EINPROGRESS;
    if (job->accepted && store_quick_id(jobs->store, &(*b)->named) < 0)
        return -EINPROGRESS;
    if (job->accepted) {
        (*b)->from = strdup(job->name);
        char *disk = job->name_on_disk ? job->name_on_disk : strdup(job->name);
        if (!(*b)->from || !disk) {
            if (disk != job->name_on_disk)
                free(disk);
            return -ENOMEM;
        }
        job->name_on_disk = disk;
        (*b)->loser = overwrites ? target->id : 0;
        job->named = (*b)->named;
        behind_put(jobs, *b, job);
        *b = NULL;
    } else if (overwrites) {
        free((*b)->to);
        (*b)->to = NULL;
        behind_put(jobs, *b, target);
        *b = NULL;
    }
    *loser = rename_entry(jobs, job, names);
    if (overwrites)
        *loser = 0; /* goes when the disk has the new name */
    return 0;
}

int jobs_rename_at_once(struct jobs *jobs, uint64_t id, const char *name)
{
    struct new_names names = {0};
    struct behind *b = NULL;
    uint64_t loser = 0;
    int ret = check_new_name(name);

    if (ret == 0)
        ret = new_names_make(&names, name);
    if (ret == 0 && !(b = behind_new(name)))
        ret = -ENOMEM;
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    int kind = ret < 0 ? ret : move_kind(jobs, job, name);
    if (kind == MOVE_PLAIN)
        ret = rename_behind(jobs, job, &names, &b, &loser);
    else if (kind == MOVE_SUBMITS)
        ret = submission_refused(jobs, job, name);
    else
        ret = kind;
    pthread_mutex_unlock(&jobs->lock);
    behind_free(b);
    new_names_fini(&names);
    if (loser)
        note_debris(jobs, loser);
    tell_all(jobs);
    return ret == 0 && kind == MOVE_SUBMITS ? -EINPROGRESS : ret;
}
