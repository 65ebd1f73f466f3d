/*
 * What the files that make up a struct jobs share: jobs_table.c (entries, names, who is told), jobs.c (looking, making, removing), jobs_recover.c (what
 * the disk has), jobs_change.c (owner, mode, priority), jobs_age.c (what goes by itself), jobs_behind.c (renames, and what the disk is told of behind),
 * upload.c and judge.c (files as they arrive), partitions.c (what engines do), results.c (what ended jobs left). Nobody else includes this.
 *
 * Locks, in the order in which they may be taken (doc/design.md, "Locks"):
 *   spool->lock  orders the writers of one file; held over a piece of the reading and judging of it
 *   jobs->disk   orders everything that the store must remember and everything that gives a name to a
 *                job there; held over a few fsyncs, never over the reading of a document
 *   jobs->lock   guards the table; memory only, never held over a call of the store or a callback
 */
#ifndef DAEMON_JOBS_INTERNAL_H
#define DAEMON_JOBS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "daemon/jobs.h"
#include "daemon/order.h"
#include "daemon/record.h"
#include "daemon/store.h"
#include "daemon/users.h"
#include "numa/workers.h"

#define NAME_BUCKETS 16384
#define READERS_MAX 8     /* uploads that are decoded as they arrive; others when they are judged */
#define READERS_USER_MAX 6
#define READINGS_MAX 8   /* files that are read back in pieces; more are read in one go */
#define REJECTED_MAX 1000 /* refused uploads that are remembered */
#define SIZES_MAX ORDER_SIZES
#define PARTITIONS_MAX 128 /* of a job; no registered proof has more than 126 */

/* A file that was made so that it can be opened to write goes again when that does not come or fails. */
enum opening {
    OPENING_DONE, /* or never asked for */
    OPENING_DUE,  /* within a minute */
    OPENING_COMES /* it may have to wait */
};

/* One entry of the table: a file being received, a job, or what is left of one while an engine still
 * works on it. Small, for there are many that have ended: the rest is on disk. All fields are guarded
 * by jobs->lock unless it says otherwise. */
struct job {
    uint64_t id;    /* constant */
    uint64_t named; /* see struct job_record */
    uint64_t same_as;
    uint64_t file_bytes;
    uint64_t disk_bytes; /* this job's part of jobs->store_bytes */
    int64_t created_ns, written_ns, accepted_ns, started_ns, ended_ns;
    const struct seal_proof *proof;
    char *name;
    char *name_on_disk; /* of an accepted job whose renames are behind (jobs_behind.c), else NULL: as it is. Changes under disk as well,
                         * but for the first of them */
    char *error;              /* of a rejected upload; of the last one over an ended job; or NULL */
    struct job_record *ready; /* what was found in a file that is right but has no final name yet.
                               * Changes under disk as well: who holds that may accept it */
    char *refusal;            /* why a file of a temporary name is not right, if that was found */
    struct spool *spool;      /* while it is open for writing */
    struct run *run;          /* while it is unfinished */
    struct job *next_member;  /* of the run */
    struct job *over;         /* the ended job that this upload replaces when it is accepted */
    struct job *overwriter;   /* the other way round */
    struct job *next_by_name, *next_told;
    uint32_t uid, gid, mode;
    uint32_t partitions, partitions_done;
    uint32_t report_bytes, error_bytes; /* as in struct job_info; error_bytes of the file, if there is no `error` */
    uint64_t in_engines
        [2];       /* a bit for each partition that an engine took under this id and still has */
    uint32_t refs; /* the table, the spool, the list of those to tell, and calls in progress */
    int32_t node;
    int refused; /* with refusal: the errno */
    /* Apart from the flags that `disk` alone is enough to read: a compiler may fetch neighbours with them. */
    uint8_t state, told, priority; /* told: the state that opt.changed last heard of */
    uint8_t opening;               /* enum opening */
    int8_t params_percent;         /* as in struct job_info */
    uint8_t renames_behind;        /* that the disk has not done (jobs_behind.c) */
    bool waits_for_params, waits_for_memory;
    bool in_table, to_tell;
    bool counted; /* as a file that is no job (quota.c) */
    bool cut_short; /* on disk its file is shorter than it was, which the log has been told of */
    uint8_t content_id[DIGEST_BYTES];
    bool accepted;       /* its record is on disk */
    bool stray_record;   /* D: it is not, but a record may be there that the disk did not remove */
    bool named_in_table; /* jobs_find and jobs_list show it */
    bool gone;           /* has left the table, or is about to: nothing may change it any more */
    bool removed_behind; /* and the disk is told behind: where that refuses, another entry has this id, and all that is on disk */
    bool insecure;
    bool test; /* proves nothing */
    bool proof_lost; /* done, but the disk has damaged the proof and the journal */
    bool has_file;   /* guarded by spool->lock: the directory and c1 have been made */
};

enum slot_state {
    SLOT_WAITING,
    SLOT_TAKEN,        /* given to an engine, which has not said what it does */
    SLOT_LOADING,      /* in an engine, waiting for parameters */
    SLOT_SYNTHESIZING, /* in an engine */
    SLOT_PROVING,      /* in an engine, at its prover */
    SLOT_HELD,         /* proved, not yet in the journal */
    SLOT_DONE
};

struct slot {
    enum slot_state state;
    uint8_t percent;   /* of SLOT_LOADING */
    uint64_t taken_as; /* the job id that the engine knows it by; 0: no engine has it */
    struct partition_entry *entry; /* of SLOT_HELD and SLOT_DONE: what waits takes no memory for its proofs */
};

/* One computation, for one or more jobs of the same content. Fields are guarded by jobs->lock; those
 * marked D change under jobs->disk as well, so either lock is enough to read them. */
struct run {
    struct run *next;
    struct job
        *members; /* D; the first is its home: decoded form and journal are in that directory */
    uint32_t partitions, done;
    int32_t node;
    enum job_state
        ending;    /* D; JOB_DONE or JOB_FAILED: only the disk has to be told; else JOB_QUEUED */
    char *failure; /* D */
    uint64_t journal_bytes; /* D; good entries of the home's journal */
    bool journal_stale;     /* D; the journal lacks entries: write it anew as a whole */
    bool checked;           /* the decoded form is what was accepted */
    bool preparing;         /* not to be taken from yet */
    struct order_entry order; /* in jobs->order while a partition waits that may be given out */
    struct slot slots[];
};

/* What of max_unfinished an open file takes. Temporary names have as many places of their own: an editor
 * that keeps one open must not keep itself waiting. */
enum place { PLACE_NONE, PLACE_TEMPORARY, PLACE_QUEUE };

/* A file that is open for writing, by one or more uploads. Guarded by its lock unless it says
 * otherwise. */
struct spool {
    pthread_mutex_t lock;
    struct job *job;  /* constant; a reference */
    unsigned opens;   /* guarded by jobs->lock */
    bool closing;     /* guarded by jobs->lock: the last upload is going */
    enum place place; /* guarded by jobs->lock */
    bool settled;     /* guarded by jobs->disk: the last close has decided what becomes of the file */
    bool aborted;     /* a writer died, and nobody has written since */
    int broken;       /* the disk did not take the write at broken_at: the file is not whole */
    uint64_t broken_at; /* UINT64_MAX: it cannot be mended, only be written anew */
    int fd; /* -1 until something is written */
    uint64_t bytes;
    struct c1_reader *reader; /* of bytes [0, fed), or NULL: the file is read when it is judged */
    uid_t reader_user;        /* whose share it is of */
    uint64_t fed;
    int fault; /* of the reader, which has gone; `why` says it: no bytes behind `fed` can help */
    uint64_t fault_at;         /* where the write began that it found the fault in */
    struct c1_reader *reading; /* of a file that is being judged, read back from disk up to read_to */
    uint64_t read_to;
    bool read_in_one_go; /* a writer came in between: no more pieces */
    bool judged; /* verdict is about these bytes */
    int verdict;
    struct errmsg why;
};

struct upload {
    struct jobs *jobs;
    struct spool *spool;
};

/* Who holds `disk` and has let `lock` go is about to give this name to this job: until that is through nobody else can have the name, and
 * the job is not to be changed without `disk`. NULL: nobody. */
struct giving {
    const char *name;
    const struct job *job;
};

/* A text for opt.said. */
struct saying {
    struct saying *next;
    char *text;
};

struct jobs {
    struct jobs_options opt;
    atomic_bool closing; /* jobs_refuse_new */
    struct store *store;
    struct users *users;
    pthread_mutex_t disk;
    pthread_mutex_t lock;
    pthread_cond_t closed; /* with lock: a spool has gone */
    struct workers *syncers; /* D; threads that wait for the disk, NULL: not wanted yet */

    /* All below: guarded by lock. */
    struct job **by_id; /* sorted */
    size_t len, room;
    struct job *by_name[NAME_BUCKETS];
    struct run *runs;
    struct order *order;
    enum job_lack held[SIZES_MAX]; /* of sector_sizes, for what they lack */
    struct job *tell_first, *tell_last;
    bool telling;
    int64_t clock_offset_ns; /* of CLOCK_REALTIME to CLOCK_BOOTTIME, when it was looked at last */
    uint64_t *debris; /* ids of directories that are still to be removed */
    size_t debris_len, debris_room;
    uint32_t readers, readings, spools, temporary_spools;
    bool unstarted; /* an accepted job could not enter the queue: jobs_tick tries again */
    struct giving giving;
    struct jobs_totals totals;
    struct behind *behind, *behind_last; /* jobs_behind.c: what the disk is still to be told of, in order */
    struct behind *late;                 /* and what it refused */
    uint32_t behind_len;                 /* of both */
    int behind_error; /* for the next jobs_sync */
    struct saying *sayings;
};

/* check_name saw to the length. */
static inline void copy_name(char out[JOB_NAME_MAX + 1], const char *name)
{
    snprintf(out, JOB_NAME_MAX + 1, "%s", name);
}

static inline bool is_rejected(const struct job *job)
{
    return job->state == JOB_REJECTED;
}

/* ---- jobs_table.c; `lock` is held by the caller unless it says otherwise ---- */
int64_t now_ns(void); /* by the calendar: what records hold */
int64_t monotonic_ms(void);
/* Where `id` is or would be in by_id. */
size_t table_position(const struct jobs *jobs, uint64_t id);
struct job *table_get(struct jobs *jobs, uint64_t id);
struct job *table_find(struct jobs *jobs, const char *name);
/* A new entry in state JOB_RECEIVING, without a name in the table yet. NULL: no memory. */
struct job *table_add(struct jobs *jobs, uint64_t id, const char *name);
/* Makes `name` (malloc'ed, taken over; NULL: the one it has) mean this job, and its old name nothing. */
void table_name(struct jobs *jobs, struct job *job, char *name);
/* The job leaves: its name means nothing, nothing may change it. It is told as gone as soon as no engine
 * has it. Its directory is the caller's business. */
void table_drop(struct jobs *jobs, struct job *job);
/* The entry of a job that a user may still change, or NULL. */
struct job *live_job(struct jobs *jobs, uint64_t id);
void job_get(struct job *job);
void job_put(struct job *job);
void job_set_state(struct jobs *jobs, struct job *job, enum job_state state);
void job_set_error(struct job *job, const char *text); /* NULL: none */
void job_info_fill(const struct job *job, struct job_info *out);

/* -EINVAL, -ENAMETOOLONG for what cannot be the name of a job. */
int check_name(const char *name);
/* check_name, as rename(2) says it. */
int check_new_name(const char *name);
/* Is `name` free for `job`: unused, or of something that has ended or never became a job? */
bool name_may_be_taken(struct jobs *jobs, const struct job *job, const char *name);
bool is_being_given(const struct jobs *jobs, const char *name);
/* With disk and lock; give_end takes the lock. */
void give_begin(struct jobs *jobs, const struct job *job, const char *name);
void give_end(struct jobs *jobs);
enum move { MOVE_NOTHING, MOVE_PLAIN, MOVE_SUBMITS };
/* What kind of move it is, or a negative errno. */
int move_kind(struct jobs *jobs, struct job *job, const char *name);
/* New names, made before anything is changed for good: of a job, and of the upload over it. */
struct new_names {
    char *job, *writer;
};
int new_names_make(struct new_names *names, const char *name);
void new_names_fini(struct new_names *names);
/* Returns the id of the job that lost this name, or 0. An upload over `job` follows it. */
uint64_t rename_entry(struct jobs *jobs, struct job *job, struct new_names *names);

/* To be told by tell_all. */
void tell(struct jobs *jobs, struct job *job);
/* To be told by tell_all; `text` is taken over. Without lock. */
void say(struct jobs *jobs, char *text);
/* Tells opt.changed and opt.said what there is to tell. Without any lock. */
void tell_all(struct jobs *jobs);

/* ---- jobs.c: without locks unless it says otherwise ---- */
/* Removes a job, as jobs_remove; `wanted` (with lock) may say no to what has changed since. */
int remove_by_id(struct jobs *jobs, uint64_t id, bool (*wanted)(const struct job *job));
/* With disk: is the job's record still there? */
bool has_record(struct jobs *jobs, uint64_t id);

/* ---- jobs_recover.c ---- */
/* At the start: all that the store has. What was accepted is queued. */
int recover_jobs(struct jobs *jobs, struct errmsg *err);
/* With disk: a job that has left the table is there again, as its record has it. -EEXIST: its name is another's, here or there; -EBUSY: an engine
 * has a partition of it yet; -ENOENT: it has no record. */
int bring_back(struct jobs *jobs, uint64_t id);

/* ---- jobs_age.c: without lock ---- */
/* Removes what is on disk of a job that has left the table, or of a refused upload; what the disk does not
 * let go is tried again by jobs_tick. */
void forget_on_disk(struct jobs *jobs, uint64_t id);
/* Of job `id` something is left on disk; and what was noted so is removed. */
void note_debris(struct jobs *jobs, uint64_t id);
void forget_debris(struct jobs *jobs);
/* A clock that was set makes nothing older or younger: times that ages are counted from go along with it. */
void follow_clock(struct jobs *jobs);

/* ---- jobs_change.c ---- */
enum record_is { RECORD_OLD, RECORD_NEW, RECORD_UNKNOWN };
/* With disk, without lock: puts `r` in place of `old`, durably where 0 is returned. When the disk refuses the old one stays; when only the sync
 * failed the old one is put back, or else *is says what the disk has. RECORD_UNKNOWN: it can be neither written nor read. */
int replace_record(struct jobs *jobs, const struct job_record *old, const struct job_record *r,
                   enum record_is *is);

/* ---- jobs_behind.c: with disk, without lock ---- */
/* Before a record gets this name, while it is being given: no other job has it there any more. -EIO: one has, and the disk does not let
 * it go. */
int behind_settle_name(struct jobs *jobs, const struct job *job, const char *name);
/* With lock: on disk another job that is there for users has this name yet, though not in the table. */
bool behind_has_name(const struct jobs *jobs, const struct job *job, const char *name);
/* Without disk and lock: jobs_make_way, but for what there is to tell. */
void behind_make_way(struct jobs *jobs, const char *name, const char *new_name);
/* Without locks: all of it, and what the disk has refused. */
void behind_retry(struct jobs *jobs);
/* At the end. */
void behind_free_all(struct jobs *jobs);

/* ---- quota.c: with lock ---- */
/* Counts bytes on disk; -ENOSPC, -EDQUOT when there may not be so many. Less is always granted. */
int job_account(struct jobs *jobs, struct job *job, uint64_t disk_bytes);
/* Without lock: what the store answered of a write, which `status` tells of where it is a refusal. Returns `code`. */
int disk_said(struct jobs *jobs, int code);
/* Is it what a disk says that is full, read-only or broken? */
bool is_of_disk(int code);
/* May this user have one more file that is no job? 0, -EDQUOT, -ENOSPC. */
int quota_may_begin(struct jobs *jobs, uid_t user);
/* The file is none, in any case; it has become one, or is one no more, or changes hands. */
void quota_begin(struct jobs *jobs, struct job *job);
void quota_end(struct jobs *jobs, struct job *job);
/* What opt leaves open, once the store is. */
void quota_defaults(struct jobs_options *opt, const struct store *store);
/* Without locks: those that are too old. */
void forget_unsubmitted(struct jobs *jobs);

/* ---- upload.c ---- */
/* With lock: another file may be received. */
void spool_give_place_back(struct jobs *jobs, struct spool *s);
/* With lock: of max_unfinished. */
uint32_t places_taken(const struct jobs *jobs);
/* With the spool's lock, all of them. */
int spool_file(struct jobs *jobs, struct spool *s); /* makes s->fd be there */
bool spool_gone(struct jobs *jobs, struct spool *s);
bool spool_is_temporary(struct jobs *jobs, struct spool *s);
/* Forgets what was read; `wanted`: a new reader, if there is one to be had. */
void spool_reset_reader(struct jobs *jobs, struct spool *s, bool wanted);

/* ---- judge.c ---- */
/* With the spool's lock. upload_judge_piece. */
int judge_locked(struct jobs *jobs, struct spool *s);
/* With the spool's lock: the file is not right, by s->why or the code itself. Under a final name NAME.error
 * says so, a temporary one remembers it. Not of one that is accepted: a writer takes that back first. Returns what
 * the writer is told: the code, or 0. */
int refuse(struct jobs *jobs, struct spool *s, int code);
/* With the spool's lock: nothing is read back any more; the next time, after an interruption, in one
 * go, so that a writer that never ends cannot keep a judgement from ending. */
void reading_end(struct jobs *jobs, struct spool *s, bool interrupted);
/* Another attempt may go better: nothing is wrong with the file. */
bool is_passing(int code);
/* With disk, without lock: a file of a temporary name, of which upload_judge has found that it is
 * right, becomes a job of this final name; it enters the queue unless its last close is still to come.
 * Otherwise what was found, or -EBUSY when it is being written and -EAGAIN when nobody has looked at
 * what was written last. */
int accept_renamed(struct jobs *jobs, struct job *job, const char *name);
/* With disk, without lock: an accepted job enters the queue, now or, without memory, when jobs_tick has
 * start_accepted look for it. */
void enqueue(struct jobs *jobs, struct job *job);
/* The same for one of which nobody has looked at the decoded form. */
void enqueue_found(struct jobs *jobs, struct job *job);
/* With lock: why a file of a temporary name may not have this final one, or 0. The errors of both names say so. */
int submission_refused(struct jobs *jobs, struct job *job, const char *name);
void start_accepted(struct jobs *jobs);

/* ---- partitions.c: with disk, without lock ---- */
/* An accepted job enters the queue: alone, or with others of the same content, or ends at once when
 * that content has been proved. */
int run_start(struct jobs *jobs, struct job *job, bool checked);
/* Before a job is removed: another one of its run becomes home. */
void run_prepare_leave(struct jobs *jobs, struct job *job);
/* With lock: priority or owner of a member has changed. */
void run_reorder(struct jobs *jobs, struct run *run);
/* With lock as well. */
void run_leave(struct jobs *jobs, struct job *job);
/* Tries again what the disk refused: proofs not journalled, jobs not ended. Without locks. */
void runs_retry(struct jobs *jobs);
void runs_free(struct jobs *jobs);

/* What is in the journal of a job: any thread. */
struct journal {
    struct partition_entry *entries; /* malloc'ed */
    size_t len;
    uint64_t good_bytes; /* up to the first that is no entry */
    size_t holes;        /* entries that are none with good ones behind: no crash leaves such */
};
int journal_read(struct jobs *jobs, uint64_t id, const uint8_t content_id[DIGEST_BYTES],
                 uint32_t partitions, struct journal *out);

/* ---- results.c: without locks ---- */
/* The disk had damaged something, and it is whole again. */
void count_repaired(struct jobs *jobs);
/* Makes the decoded form of a job that waits again, from its file. */
int decoded_again(struct jobs *jobs, uint64_t id, const uint8_t content_id[DIGEST_BYTES]);
/* Puts jobs whose proofs are lost back into the queue, or ends them. */
void results_retry(struct jobs *jobs);
/* At start: looks at the results of all jobs that have ended, and repairs. */
void results_check(struct jobs *jobs);

#endif
