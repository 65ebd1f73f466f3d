/*
 * What users are answered from memory, and the disk is told of behind: removals and renames. The kernel holds a directory
 * as long as a name in it changes, so an answer that waited for the disk would hold up whoever lists it.
 *
 * The table changes at once, under `lock`; what the disk has to do waits in a queue, and is done in its order under
 * `disk`, by threads that may wait. So a disk after a crash has what the table was some time before: a job may be there
 * again, or have its old name again, and none is lost, for a name is not given on disk before whoever had it has
 * another one there (behind_settle_name).
 *
 * So that no job keeps the disk busy alone, one that is renamed again and again, with nothing in between, is renamed there once, to
 * what it is called in the end; and with RENAMES_MAX of a job waiting its next one waits for the disk.
 *
 * What the disk refuses is taken back in the table too: the job is there again, made from its record as at a start. Where
 * its name has been given away meanwhile, a removal is tried again later and a rename stays `late`: the table
 * has it, the disk is asked at each tick, and until then nobody else gets the old name there: of two that have one name on
 * disk a start drops one. So each job that is behind knows what its record is called (name_on_disk). Where not even that
 * can be read, both names are kept from others (`unsure`).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/jobs_internal.h"
#include "daemon/log.h"

#define LOG_MODULE LOG_JOBS

#define BEHIND_MAX 65536 /* at more, users wait for the disk again */
#define RENAMES_MAX 4    /* of one job; likewise */

/* One change. Guarded by jobs->lock while it waits; then it is the worker's, who has `disk`. */
struct behind {
    struct behind *next;
    struct job *job;   /* a reference */
    char *from, *to;   /* of a rename, in the table; NULL: a removal */
    uint64_t named;    /* of a rename */
    struct job *loser; /* that had `to`: a reference, or NULL */
    bool late;         /* the disk has refused it before */
    bool unsure;       /* nor could it be read whether it was done */
    bool undone;       /* but for `loser`, which is to be there again */
    int *outcome;      /* for whom waits for it, with lock; or NULL */
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
    job->renames_behind += b->to != NULL;
}

static struct behind *behind_take(struct jobs *jobs)
{
    struct behind *b = jobs->behind;

    if (!b)
        return NULL;
    jobs->behind = b->next;
    if (!jobs->behind)
        jobs->behind_last = NULL;
    return b;
}

/* What was put and taken: nothing more is to be done. */
static void behind_end(struct jobs *jobs, struct behind *b)
{
    jobs->behind_len--;
    b->job->renames_behind -= b->to != NULL;
    job_put(b->job);
    if (b->loser)
        job_put(b->loser);
    behind_free(b);
}

static bool behind_is_full(const struct jobs *jobs)
{
    return jobs->behind_len >= BEHIND_MAX;
}

/* Another rename of the job has no place. */
static bool is_crowded(const struct jobs *jobs, const struct job *job)
{
    return behind_is_full(jobs) || job->renames_behind >= RENAMES_MAX;
}

/* The job's rename that waits last of all: the disk need not see the name on the way when it is renamed once more. It must where somebody loses
 * that name, for who does goes then. */
static struct behind *open_rename(const struct jobs *jobs, const struct job *job)
{
    struct behind *b = jobs->behind_last;

    return b && b->job == job && b->to && !b->loser && !b->late && !b->outcome ? b : NULL;
}

/* An earlier rename of the job, refused, for which another one lost its name; or NULL. */
static struct behind *earlier_with_loser(const struct jobs *jobs, const struct behind *than)
{
    struct behind *b = jobs->late;

    while (b && (b->job != than->job || !b->loser || b->undone || b->named >= than->named))
        b = b->next;
    return b;
}

static bool is_taken_away(const struct jobs *jobs, const char *name)
{
    for (const struct behind *b = jobs->behind; b; b = b->next)
        if (b->to && strcmp(b->from, name) == 0)
            return true;
    return false;
}

static const char *disk_name(const struct job *job)
{
    return job->name_on_disk ? job->name_on_disk : job->name;
}

/* Another job has it, or may, or will when it is there again. */
static bool is_among(const struct behind *b, const struct job *job, const char *name)
{
    for (; b; b = b->next) {
        if (b->undone && b->loser && strcmp(disk_name(b->loser), name) == 0)
            return true;
        if (b->job == job || b->job->gone)
            continue;
        if ((b->job->name_on_disk && strcmp(b->job->name_on_disk, name) == 0) ||
            (b->unsure && strcmp(b->to, name) == 0))
            return true;
    }
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

/* To be removed, or whoever lost its name to a later rename. */
static bool is_gone_among(const struct behind *in, const struct behind *b)
{
    for (; in; in = in->next) {
        if (in->to && (!in->loser || in->named < b->named))
            continue;
        if (strcmp(disk_name(in->to ? in->loser : in->job), b->to) == 0)
            return true;
    }
    return false;
}

/* Somebody who has gone may have the name of a late rename there yet, and by a later right: a start would drop the one who is there. */
static bool is_gone_ones(const struct jobs *jobs, const struct behind *b)
{
    return jobs->debris_len > 0 || is_gone_among(jobs->late, b) || is_gone_among(jobs->behind, b);
}

/* ---- telling of what the disk refused ---- */

/* Whoever waits for it need not wait for the rest, and may be gone then. */
static void say_refused(struct jobs *jobs, struct behind *b, int error, const char *outcome)
{
    char name[JOB_NAME_MAX + 1], *text = NULL;

    pthread_mutex_lock(&jobs->lock);
    jobs->behind_error = error;
    if (b->outcome)
        *b->outcome = error;
    b->outcome = NULL;
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
static int do_removal(struct jobs *jobs, struct behind *b)
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
static bool undo_removal(struct jobs *jobs, struct behind *b, int error)
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

/* With lock: what the disk did with it. `name`: a copy of b->to, used up or not. */
static void note_name_on_disk(struct behind *b, enum record_is is, char **name)
{
    struct job *job = b->job;

    b->unsure = is == RECORD_UNKNOWN;
    if (is != RECORD_NEW)
        return;
    free(job->name_on_disk);
    job->name_on_disk = NULL;
    if (strcmp(b->to, job->name) != 0) {
        job->name_on_disk = *name;
        *name = NULL;
    }
}

/* *changed: the record has the name, or a later one. */
static int rename_on_disk(struct jobs *jobs, struct behind *b, bool *changed)
{
    struct job_record old, r;
    enum record_is is;
    char *name;

    *changed = false;
    int ret = store_record_get(jobs->store, b->job->id, &old);
    if (ret == -ENOENT ||
        (ret == 0 && old.named > b->named)) { /* removed meanwhile, or accepted anew */
        *changed = true;
        return 0;
    }
    if (ret < 0 || !(name = strdup(b->to)))
        return ret < 0 ? ret : -ENOMEM;
    r = old;
    copy_name(r.name, b->to);
    r.named = b->named;
    ret = replace_record(jobs, &old, &r, &is);
    if (is == RECORD_OLD && old.named == b->named) /* of an unsure one */
        is = RECORD_NEW;
    pthread_mutex_lock(&jobs->lock);
    note_name_on_disk(b, is, &name);
    pthread_mutex_unlock(&jobs->lock);
    free(name);
    *changed = is == RECORD_NEW;
    return ret;
}

/* It is on disk, and so nobody who lost a name to the job on its way has it there any more. */
static void forget_losers(struct jobs *jobs, struct behind *b)
{
    struct behind *with = b;

    while (with) {
        struct job *loser = with->loser;
        with->loser = NULL;
        if (loser)
            forget_on_disk(jobs, loser->id);
        pthread_mutex_lock(&jobs->lock);
        if (loser)
            job_put(loser);
        with = earlier_with_loser(jobs, b);
        pthread_mutex_unlock(&jobs->lock);
    }
}

static int do_rename(struct jobs *jobs, struct behind *b)
{
    bool changed = false;
    int ret = 0;

    if (b->undone && b->loser)
        return -EIO;
    pthread_mutex_lock(&jobs->lock);
    bool needless = is_needless(b);
    if (!needless && (is_anothers(jobs, b->job, b->to) || (b->late && is_gone_ones(jobs, b))))
        ret = -EIO;
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0 && !needless)
        ret = rename_on_disk(jobs, b, &changed);
    if (ret < 0 && !changed)
        return ret;
    forget_losers(jobs, b);
    if (ret < 0)
        say_refused(jobs, b, ret, "it may have its old name after a crash");
    return 0;
}

static bool is_unsure(const struct behind *b, const struct job *job)
{
    while (b && (b->job != job || !b->unsure))
        b = b->next;
    return b;
}

/* With lock: the name that it has on disk. False: that is another's by now, or nobody knows. */
static bool give_old_name(struct jobs *jobs, struct job *job)
{
    struct job *other = job->name_on_disk ? table_find(jobs, job->name_on_disk) : job;
    struct new_names names = {0};

    if ((other && other != job) || (job->name_on_disk && is_being_given(jobs, job->name_on_disk)))
        return false;
    if (is_unsure(jobs->late, job) || is_unsure(jobs->behind, job))
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

/* With lock: the job is called as before those as well. */
static void undo_earlier(struct jobs *jobs, const struct behind *b)
{
    struct behind *earlier;

    while ((earlier = earlier_with_loser(jobs, b)) != NULL)
        earlier->undone = true;
}

/* False: not yet. */
static bool bring_loser_back(struct jobs *jobs, const struct behind *b)
{
    int ret = bring_back(jobs, b->loser->id);

    if (ret == -EEXIST)
        note_debris(jobs, b->loser->id);
    return ret == 0 || ret == -EEXIST || ret == -ENOENT;
}

/* Names on the way are asked for again like others: jobs that change names need one. */
static bool undo_rename(struct jobs *jobs, struct behind *b, int error)
{
    pthread_mutex_lock(&jobs->lock);
    bool moved_on = !b->undone && has_moved_on(b), done = b->undone;
    if (!done && !b->unsure)
        done = moved_on ? b->job->gone || !b->job->name_on_disk : give_old_name(jobs, b->job);
    if (done && !moved_on)
        undo_earlier(jobs, b);
    pthread_mutex_unlock(&jobs->lock);
    if (!done)
        return false;
    b->undone = !moved_on;
    if (b->loser && moved_on)
        note_debris(jobs, b->loser->id);
    else if (b->loser && !bring_loser_back(jobs, b))
        return false;
    say_refused(jobs, b, error,
                moved_on ? "it has another name by now" : "it has its old name again");
    return true;
}

/* ---- doing it ---- */

/* With lock: what came of it has been told, or is not known yet. */
static void behind_settle(struct jobs *jobs, struct behind *b, bool done)
{
    struct behind **last = &jobs->late;

    if (b->outcome)
        *b->outcome = 0;
    b->outcome = NULL;
    if (done) {
        behind_end(jobs, b);
        return;
    }
    while (*last)
        last = &(*last)->next;
    b->late = true;
    b->next = NULL;
    *last = b;
}

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
    behind_settle(jobs, b, done);
    pthread_mutex_unlock(&jobs->lock);
    return true;
}

/* Without disk. Others get it then: not by chance, for a mutex is not fair, but because they are given the time to wake up. */
static bool do_next_and_let_go(struct jobs *jobs)
{
    const struct timespec moment = {.tv_nsec = 100000};

    pthread_mutex_lock(&jobs->disk);
    bool done = do_next(jobs);
    pthread_mutex_unlock(&jobs->disk);
    if (done)
        nanosleep(&moment, NULL);
    return done;
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
    for (; *last; last = &(*last)->next)
        if (!(*last)->next && !jobs->behind)
            jobs->behind_last = *last;
    *last = jobs->behind;
    jobs->behind = jobs->late;
    jobs->late = NULL;
}

void jobs_catch_up(struct jobs *jobs)
{
    while (do_next_and_let_go(jobs))
        tell_all(jobs);
    forget_debris(jobs);
}

void behind_retry(struct jobs *jobs)
{
    forget_debris(jobs);
    pthread_mutex_lock(&jobs->lock);
    ask_again(jobs);
    pthread_mutex_unlock(&jobs->lock);
    jobs_catch_up(jobs);
}

/* The kernel holds the directory meanwhile: so not longer than for the names, what else is to be removed has time. */
int jobs_sync(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    ask_again(jobs);
    pthread_mutex_unlock(&jobs->lock);
    while (do_next_and_let_go(jobs))
        ;
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
    while ((b = behind_take(jobs)) != NULL)
        behind_end(jobs, b);
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
    if (job->renames_behind >= RENAMES_MAX && !open_rename(jobs, job))
        return true;
    if (given && (given == job || given == job->overwriter || given == target))
        return true;
    if (job->accepted)
        return false;
    return job->stray_record ||
           (job->spool &&
            job->spool->closing); /* what becomes of it is being settled, by its name */
}

/* A rename, with what it needs of memory. */
struct renaming {
    struct new_names names;
    struct behind *b; /* NULL: it waits for the disk */
    uint64_t loser;   /* of which something is left on disk that nothing in the queue removes */
};

static int renaming_make(struct renaming *m, const char *name)
{
    int ret = check_new_name(name);

    if (ret == 0)
        ret = new_names_make(&m->names, name);
    if (ret == 0 && !(m->b = behind_new(name)))
        ret = -ENOMEM;
    return ret;
}

static void renaming_end(struct jobs *jobs, struct renaming *m)
{
    behind_free(m->b);
    new_names_fini(&m->names);
    if (m->loser)
        note_debris(jobs, m->loser);
}

/* With lock: the last that waits is of this job, and is to do this instead. */
static void change_open(struct behind *open, struct behind *b)
{
    char *on_the_way = open->to;

    open->to = b->to;
    b->to = on_the_way;
    open->named = b->named;
    open->loser = b->loser;
    open->outcome = b->outcome;
    behind_free(b);
}

/* With lock: of an accepted job; its number is in m->b. `loser`: who had the name and has a record, or NULL. */
static int put_rename(struct jobs *jobs, struct job *job, struct renaming *m, struct job *loser)
{
    struct behind *b = m->b, *open = open_rename(jobs, job);

    b->from = strdup(job->name); /* NOLINT(clang-analyzer-core.NullDereference): renaming_make has made it */
    char *disk = strdup(disk_name(job));
    if (!b->from || !disk) {
        free(disk);
        return -ENOMEM;
    }
    free(job->name_on_disk);
    job->name_on_disk = disk;
    job->named = b->named;
    b->loser = loser;
    if (loser)
        job_get(loser);
    if (open)
        change_open(open, b);
    else
        behind_put(jobs, b, job);
    m->b = NULL;
    return 0;
}

/* With lock: in the table, and the disk hears of it behind. */
static int rename_behind(struct jobs *jobs, struct job *job, struct renaming *m)
{
    struct job *target = table_find(jobs, m->names.job);
    bool overwrites = target && target != job && has_business_on_disk(jobs, target);

    if (job->accepted) {
        int ret = put_rename(jobs, job, m, overwrites ? target : NULL);
        if (ret < 0)
            return ret;
    } else if (overwrites) {
        free(m->b->to); /* NOLINT(clang-analyzer-core.NullDereference): likewise */
        m->b->to = NULL;
        behind_put(jobs, m->b, target);
        m->b = NULL;
    }
    m->loser = rename_entry(jobs, job, &m->names);
    if (overwrites)
        m->loser = 0; /* goes when the disk has the new name */
    return 0;
}

int jobs_rename_at_once(struct jobs *jobs, uint64_t id, const char *name)
{
    struct renaming m = {0};
    int ret = renaming_make(&m, name);

    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    int kind = ret < 0 ? ret : move_kind(jobs, job, name);
    if (kind != MOVE_PLAIN)
        ret = kind == MOVE_SUBMITS ? submission_refused(jobs, job, name) : kind;
    else if (must_wait(jobs, job, table_find(jobs, name), name) ||
             (job->accepted && store_quick_id(jobs->store, &m.b->named) < 0))
        ret = -EINPROGRESS;
    else
        ret = rename_behind(jobs, job, &m);
    pthread_mutex_unlock(&jobs->lock);
    renaming_end(jobs, &m);
    tell_all(jobs);
    return ret == 0 && kind == MOVE_SUBMITS ? -EINPROGRESS : ret;
}

/* ---- by who waits for the disk ---- */

void behind_make_way(struct jobs *jobs, const char *name, const char *new_name)
{
    bool more = true;

    while (more) {
        pthread_mutex_lock(&jobs->lock);
        const struct job *job = table_find(jobs, name);
        more = is_taken_away(jobs, new_name) || (job && is_crowded(jobs, job));
        pthread_mutex_unlock(&jobs->lock);
        more = more && do_next_and_let_go(jobs);
    }
}

void jobs_make_way(struct jobs *jobs, const char *name, const char *new_name)
{
    behind_make_way(jobs, name, new_name);
    tell_all(jobs);
}

static int wait_for_outcome(struct jobs *jobs, const int *outcome)
{
    for (;;) {
        pthread_mutex_lock(&jobs->lock);
        int ret = *outcome;
        pthread_mutex_unlock(&jobs->lock);
        if (ret != -EINPROGRESS)
            return ret;
        do_next_and_let_go(jobs);
    }
}

/* With disk and lock. Still crowded: the disk refuses them. */
static int rename_and_wait(struct jobs *jobs, struct job *job, struct renaming *m, int *outcome)
{
    if (is_crowded(jobs, job))
        return -EIO;
    m->b->outcome = outcome; /* NOLINT(clang-analyzer-core.NullDereference): likewise */
    *outcome = -EINPROGRESS;
    int ret = rename_behind(jobs, job, m);
    if (m->b) /* nothing on disk has to do with it */
        *outcome = ret;
    return ret;
}

/* With disk. */
static int submit_renamed(struct jobs *jobs, struct job *job, const char *name)
{
    int ret = accept_renamed(jobs, job, name);

    give_end(jobs);
    pthread_mutex_lock(&jobs->lock);
    job_put(job);
    pthread_mutex_unlock(&jobs->lock);
    return ret;
}

int jobs_rename(struct jobs *jobs, uint64_t id, const char *name)
{
    struct renaming m = {0};
    int ret = renaming_make(&m, name), outcome = 0;

    pthread_mutex_lock(&jobs->disk);
    int numbered = ret < 0 ? ret : store_next_id(jobs->store, &m.b->named);
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    int kind = ret < 0 ? ret : move_kind(jobs, job, name);
    if (kind == MOVE_PLAIN)
        ret = job->accepted && numbered < 0 ? numbered : rename_and_wait(jobs, job, &m, &outcome);
    else if (kind != MOVE_SUBMITS)
        ret = kind;
    else {
        job_get(job);
        give_begin(jobs, job, name);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (kind == MOVE_SUBMITS)
        ret = submit_renamed(jobs, job, name);
    pthread_mutex_unlock(&jobs->disk);
    if (kind == MOVE_PLAIN && ret == 0)
        ret = wait_for_outcome(jobs, &outcome);
    renaming_end(jobs, &m);
    tell_all(jobs);
    return ret;
}
