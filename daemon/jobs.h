/*
 * The table of all jobs: what the mount shows, what the scheduler serves, what the store keeps.
 *
 * Files arrive here as uploads, are judged, become jobs, get their partition proofs and end. Every
 * change that a user was told of is on disk before the call returns (design 6). Disk work happens
 * outside the table's lock. Every function may be called from any thread; none waits for a proof. What
 * begins with upload_ may read a whole document, and so take seconds; the rest is quick.
 */
#ifndef DAEMON_JOBS_H
#define DAEMON_JOBS_H

#include "daemon/job.h"
#include "gpu/trust.h"
#include "numa/circuit/c1_reader.h"

struct jobs;

struct jobs_options {
    const char *store_dir;         /* made if absent, locked against a second service */
    struct workers *check_workers; /* for the strict checks; borrowed, may be NULL */
    uint32_t max_unfinished;       /* jobs queued, running and being received; more: -EAGAIN at
                                    * upload_open. 0: no limit */
    uint64_t max_store_bytes;      /* 0: as much as the disk has */
    /* Files that are no jobs: of a temporary name, or being received (quota.c). What would be more than
     * these: -ENOSPC, or -EDQUOT where it is one user's. */
    uint32_t max_unsubmitted, max_unsubmitted_user;             /* 0: no limit */
    uint64_t max_unsubmitted_bytes, max_unsubmitted_bytes_user; /* 0: a quarter of the store's disk;
                                                                 * half of that */
    int64_t unsubmitted_s;         /* those that nobody has written for so long go. 0: never */
    uint32_t keep_finished;        /* ended jobs kept; at more, the oldest of the user who has most goes.
                                    * 0: all */
    int64_t keep_finished_s;       /* 0: for ever */
    int64_t aging_ms;              /* of classes that wait (order.h); 0: they may wait for ever */
    uint64_t keep_finished_bytes;  /* of ended jobs; at more, likewise. 0: no limit */
    /* Refuses what can never be proved (no parameters, ...): 0, or -EOPNOTSUPP with err. Called while a file
     * is judged, whose writers wait for it; must not call back into this table. May be NULL. */
    int (*admit)(void *ctx, const struct c1 *c1, struct errmsg *err);
    /* What proofs of this size would be made with now: 0 with the digest of the verifying key, negative: nobody
     * knows. Partitions that other parameters proved are proved again; what another job has is taken over
     * only where it is known to be of these. Called when a job enters the queue, with locks held; must not call
     * back. NULL: all parameters are alike. */
    int (*params)(void *ctx, const struct sector_size *size, uint8_t vk_digest[SRS_VK_DIGEST_BYTES]);
    /* Something changed: `info` is the new copy, `was` the state before, `gone`: the job has left the
     * table. Called without a lock, by a thread that changed something, one call at a time and those of
     * one job in order; must not block. Moves that follow at once may be told as one. May be NULL. */
    void (*changed)(void *ctx, const struct job_info *info, enum job_state was, bool gone);
    /* What users were answered and the disk then refused, in words. Likewise. May be NULL. */
    void (*said)(void *ctx, const char *text);
    void *ctx;
};

/* Opens the store and recovers it: accepted jobs are queued again with the partitions they have,
 * everything half is removed. -EBUSY when another service holds the store. */
int jobs_open(const struct jobs_options *opt, struct jobs **out, struct errmsg *err);
/* After the last upload has been closed. Unfinished jobs stay on disk. */
void jobs_close(struct jobs *jobs);

/* The limits of jobs_options (what is a number there, but nothing else) may change. What is too much by new ones
 * goes at the next tick. */
void jobs_set_limits(struct jobs *jobs, const struct jobs_options *opt);

/* The service will end: from now on no file can be made or opened for writing (-ECANCELED). What is being written may be finished, and
 * is accepted as ever. */
void jobs_refuse_new(struct jobs *jobs);

/* To be called now and then (once a second is plenty), by who may wait for the disk: forgets
 * jobs that are too old or too many, tries again what the disk refused. */
void jobs_tick(struct jobs *jobs);

/* ---- looking ---- */
int jobs_find(struct jobs *jobs, const char *name, struct job_info *out); /* -ENOENT */
int jobs_get(struct jobs *jobs, uint64_t id, struct job_info *out);       /* -ENOENT */
/* Up to `max` jobs with id > after, by id; those that have a name: neither an upload over an ended job
 * that is not accepted yet nor a cancelled one. Returns how many. */
size_t jobs_list(struct jobs *jobs, uint64_t after, struct job_info *out, size_t max);

struct jobs_totals {
    uint32_t by_state[JOB_STATES];
    uint64_t store_bytes;
    /* max_unfinished, and how much of it is in use; the other limits in effect. */
    uint32_t places, places_taken, keep_finished;
    uint64_t max_store_bytes, keep_finished_bytes;
    int64_t keep_finished_s;
    /* Since the start; cancelled: removed after they were accepted. */
    uint64_t done_ever, failed_ever, refused_ever, cancelled_ever;
    uint32_t unsubmitted;            /* files that are no jobs */
    uint64_t unsubmitted_bytes;
    int64_t refused_ms; /* when a limit of these was met last (CLOCK_MONOTONIC), 0: never; and which */
    char refusal[128];
    /* When the disk refused a file or its acceptance last, 0: it has taken one since; with the errno. */
    int64_t disk_refused_ms;
    int disk_error;
    uint32_t set_aside;              /* entries of the store that cannot be read as a job */
    uint64_t repaired; /* since start: what the disk had damaged and could be made again */
    bool closing;      /* jobs_refuse_new() was called */
};
void jobs_totals(struct jobs *jobs, struct jobs_totals *out);

/* Reads of NAME as it was written. Returns bytes or a negative errno; -EIO: the disk has lost the end of a job's file, which is
 * logged once. */
ssize_t jobs_read_file(struct jobs *jobs, uint64_t id, void *buf, size_t len, uint64_t offset);
/* malloc'ed copies for the caller to free; -ENOENT when there is none (yet). Text ends with a
 * newline; proof is 192 bytes for each partition. The error of a job that is done is why the last
 * upload over it was refused. What the disk has damaged is made again from what else is there; a proof that
 * cannot be is -EIO, and its job is soon back in the queue. */
int jobs_proof(struct jobs *jobs, uint64_t id, uint8_t **bytes, size_t *len);
int jobs_error(struct jobs *jobs, uint64_t id, char **text);
int jobs_report(struct jobs *jobs, uint64_t id, char **json); /* done and failed jobs */

/* ---- a user's changes ---- */
/* Cancels an unfinished job, forgets an ended one, drops a file. */
int jobs_remove(struct jobs *jobs, uint64_t id);
/* These two never wait for the disk: the table follows at once, and the disk when jobs_catch_up, jobs_tick or jobs_sync is called. What it refuses
 * then is taken back: the job is there again, under its old name (opt.said). A crash before that may have the same effect. -EINPROGRESS:
 * left to jobs_remove and jobs_rename: a rename that submits, one of a file that is being accepted, and more than tens of thousands, or a few
 * renames of one job, that the disk has not seen. */
int jobs_remove_at_once(struct jobs *jobs, uint64_t id);
int jobs_rename_at_once(struct jobs *jobs, uint64_t id, const char *name);
/* Does on disk what is behind, and removes what is left there of what has gone. */
void jobs_catch_up(struct jobs *jobs);
/* fsync(2) of the directory: what was removed and renamed before is so on disk. What the disk refused since the last call: -EIO, ... */
int jobs_sync(struct jobs *jobs);
/* Identity stays. From a temporary to a final name: submits, by what upload_judge has found: this call
 * reads no document. -EBADMSG, -EFBIG, ... as upload_judge would have said under a final name, and
 * -EOPNOTSUPP for its -EINVAL, which rename(2) has another meaning for; the file keeps its old name
 * then, and its error and that of the new name say why. -EBUSY: it is being written and was not judged since; -EAGAIN: it was
 * closed without being judged (its writer was killed, or memory was short), which upload_open_to_judge
 * and upload_judge make up for. A target that has ended is replaced; one that has not: -EBUSY. -EPERM
 * for a reserved name. -EIO: the disk refuses the job's earlier renames. */
int jobs_rename(struct jobs *jobs, uint64_t id, const char *name);
/* Before jobs_rename: has the disk do what that would have to wait for, so that it is short. What the disk refuses may be there again then: so
 * whether the caller may take a name is to be asked afterwards. */
void jobs_make_way(struct jobs *jobs, const char *name, const char *new_name);
int jobs_set_priority(struct jobs *jobs, uint64_t id, enum job_priority priority);
int jobs_set_owner(struct jobs *jobs, uint64_t id, uid_t uid, gid_t gid); /* (uid_t)-1: as it is */
int jobs_set_mode(struct jobs *jobs, uint64_t id, mode_t mode);

/* ---- uploads: one open for writing ---- */
struct upload;
struct upload_owner {
    uid_t uid;
    gid_t gid;
    mode_t mode;
};

/* A file that does not exist yet (MKNOD): an empty one in state JOB_RECEIVING. -EEXIST, -EINVAL
 * (reserved name), -ENAMETOOLONG, -ENOSPC, -EDQUOT. A rejected job of that name is forgotten. Does not wait for the
 * disk, but for one call in hundreds where nothing has been opened for writing meanwhile. */
int jobs_create_file(struct jobs *jobs, const char *name, const struct upload_owner *owner,
                     struct job_info *out);
/* It has been made so that it can be opened, by upload_open, and goes if that has not happened in a minute. None of these three waits for the
 * disk. */
void jobs_open_due(struct jobs *jobs, uint64_t id);
/* Somebody is about to, however long it takes; the same one calls jobs_drop_unopened if it fails. */
void jobs_open_comes(struct jobs *jobs, uint64_t id);
/* A file whose open was due and has failed goes: whoever made it gets an error. Any other one stays. */
void jobs_drop_unopened(struct jobs *jobs, uint64_t id);
/* Opens a file of a temporary name that nobody is writing, for upload_judge and nothing else. -ENOENT,
 * -EBUSY. */
int upload_open_to_judge(struct jobs *jobs, uint64_t id, struct upload **out);
/* Opens it for writing, and waits while its last writer's close is under way. An ended job may be opened:
 * its results stay until the new content is accepted, as a new job; an unfinished accepted one is -EBUSY;
 * a second writer of one being received shares it; a rejected one that nobody has open is -ENOENT (make
 * it anew). -EAGAIN: queue full. -EDQUOT, -ENOSPC: too many files that are no jobs. */
int upload_open(struct jobs *jobs, uint64_t id, struct upload **out);
/* As a write; to the size that it has: 0, nothing happens. */
int upload_truncate(struct upload *u, uint64_t bytes);
/* Any offset. Returns `len` or a negative errno. A write after acceptance takes the acceptance back, on
 * disk, before it returns. -EBADMSG, -EINVAL as soon as the bytes cannot become a C1 (sequential writes
 * under a final name), -EFBIG, -ENOSPC, -EDQUOT, -ECANCELED: the file has been removed. */
ssize_t upload_write(struct upload *u, const void *buf, size_t len, uint64_t offset);
/* A non-empty FLUSH: whole and right? Under a final name: 0: accepted and synced; -EBADMSG, -EINVAL,
 * -EOPNOTSUPP, -EFBIG, -ENOSPC, ...: rejected, NAME.error says why. Under a temporary name what is found is
 * remembered for the rename, but whatever it is, the file may stay (an editor's swap file is no C1):
 * 0. Empty file: 0, nothing happens. Idempotent. */
int upload_judge(struct upload *u);
/* The same a piece at a time, some tens of milliseconds: -EINPROGRESS: call again. */
int upload_judge_piece(struct upload *u);
/* RELEASE. `aborted`: the writer was killed; what it wrote last is not taken. An accepted upload
 * becomes a queued job, anything else of a final name is dropped or rejected. Frees u. */
void upload_close(struct upload *u, bool aborted);
/* Of the job that the file is or will be; an upload over an ended job has an id of its own. */
uint64_t upload_job_id(const struct upload *u);

/* ---- the scheduler's side ---- */
struct partition_work {
    uint64_t job;
    uint32_t partition;
    enum job_priority priority; /* that it counts as: its class, or a higher one when that has waited for long */
    enum job_priority own;      /* its class when it was taken */
    uint64_t turn;              /* within the class (order.h), before the job's age */
    const struct sector_size *size;
    int c1_fd; /* the decoded form, read-only, the caller's to close */
};

/* Takes the next partition: highest class, the user whose turn it is, oldest job, lowest index (order.h), of sizes not held; it belongs to
 * `node` until one of the calls below. -EAGAIN when there is none; -ENOMEM, -EMFILE, -ENFILE: there is one, but no descriptor for it at present. */
int jobs_take_partition(struct jobs *jobs, int node, struct partition_work *out);
/* The same for an engine that cannot prove some sizes: bit i of `refused`: sector_sizes[i]. */
int jobs_take_partition_but(struct jobs *jobs, int node, uint32_t refused,
                            struct partition_work *out);
/* The class that partitions of `job` have now, or -ENOENT. */
int jobs_partition_priority(struct jobs *jobs, uint64_t job, enum job_priority *out);

enum partition_stage {
    PARTITION_LOADING, /* waits for parameters */
    PARTITION_SYNTHESIZING,
    PARTITION_PROVING,
    PARTITION_READING, /* its document is read. This and the next between engine and scheduler alone */
    PARTITION_READ     /* and has been; it may wait again */
};
/* `percent`: of PARTITION_LOADING, how much of the parameters is there; else 0. */
void jobs_partition_stage(struct jobs *jobs, uint64_t job, uint32_t partition,
                          enum partition_stage stage, unsigned percent);

/* Partitions of this size are not given out while something is lacking: its parameters cannot be used, or there is no memory for it. Jobs
 * that have nothing else to do say so. */
void jobs_hold_size(struct jobs *jobs, const struct sector_size *size, enum job_lack lacks);

/* What an engine measured, for the report. */
struct partition_report {
    int node;
    char device[64];       /* "cpu" or the GPU's name */
    enum srs_trust params; /* whose they are */
    uint8_t vk_digest[SRS_VK_DIGEST_BYTES]; /* and which */
    double synthesis_ms, transform_ms, msm_ms, verify_ms, total_ms, params_ms;
    uint64_t peak_bytes; /* of its slot */
};

/* A verified proof: journalled and synced before the call returns; the last one ends the job (and
 * those that share its computation). Disk full: kept in memory, -ENOSPC, the caller calls again
 * later. Unknown job (cancelled): 0. */
int jobs_partition_done(struct jobs *jobs, uint64_t job, uint32_t partition,
                        const uint8_t proof[192], const struct partition_report *report);
/* The same for several at once, which share their syncs: those of one job one, those of different jobs at the same time, which file
 * systems make one of. Each has its `ret`. */
struct proof_result {
    uint64_t job;
    uint32_t partition;
    uint8_t proof[192];
    struct partition_report report;
    int ret;
};
void jobs_partitions_done(struct jobs *jobs, struct proof_result *results, size_t len);
/* Back to the queue: the engine died or is stopping. */
void jobs_partition_returned(struct jobs *jobs, uint64_t job, uint32_t partition);
/* The job fails with this text. */
void jobs_partition_failed(struct jobs *jobs, uint64_t job, uint32_t partition, int code,
                           const char *text);
/* True when the job is gone or cancelled: an engine need not go on. */
bool jobs_cancelled(struct jobs *jobs, uint64_t job);

#endif
