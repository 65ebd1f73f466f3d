/*
 * The names of the mount: which exist, their inode numbers, attributes and contents. Knows jobs,
 * knows no libfuse.
 *
 *   /                  0555
 *   /jobs              1777: anybody may drop a file, only its owner may remove it
 *   /jobs/NAME         and NAME.status .priority .error .report .proof.bin .proof
 *   /events            contents by fuse/events.h
 *   all others         tree_files, `status` and `metrics` among them
 *
 * Inode numbers: 1 is the root; fixed ones for the service's own files; a job's files are job id *
 * 16 + kind, so they live as long as the job and across a restart. Any thread may call anything
 * here.
 *
 * A result (error, report, proof.bin, proof) of a job that ends while the service runs is no name
 * of the mount until tree_publish makes it one; the results of jobs that had ended before are
 * simply there.
 */
#ifndef FUSE_TREE_H
#define FUSE_TREE_H

#include <sys/stat.h>

#include "daemon/jobs.h"

/* A file of the service's own: "status", "metrics", "nodes/0/topology". Made by main from its
 * parts. */
struct tree_file {
    const char *path; /* relative to the root, at most two directories down */
    mode_t mode;      /* 0444 or 0644; 0664: for tree_options.operators too, if there are any */
    int (*render)(void *ctx, char **text, size_t *len);            /* malloc'ed */
    int (*write)(void *ctx, const char *text, struct errmsg *err); /* NULL: read only */
    void *ctx;
    bool (*present)(void *ctx); /* whether there is such a name now; NULL: always. Quick. */
};

enum tree_kind {
    TREE_C1,
    TREE_STATUS,
    TREE_PRIORITY,
    TREE_ERROR,
    TREE_REPORT,
    TREE_PROOF_BIN,
    TREE_PROOF,
    TREE_JOB_KINDS
};

#define TREE_INO_ROOT ((uint64_t)1)
#define TREE_INO_JOBS ((uint64_t)2)
#define TREE_INO_EVENTS ((uint64_t)3)

/* The longest name that leaves room for the longest suffix. */
#define TREE_NAME_MAX (JOB_NAME_MAX - sizeof(".proof.bin") + 1)

struct tree;

struct tree_options {
    struct jobs *jobs;
    const struct tree_file *files; /* paths and contexts are borrowed, the array is copied */
    size_t files_len;
    uid_t uid; /* owner of the service's own files */
    gid_t gid;
    gid_t operators; /* a group; (gid_t)-1: none */
    bool shared; /* the mount itself decides who may remove a job; else the kernel: its owner */
};

/* -EINVAL for a path that is too deep, empty, or there twice. */
int tree_create(const struct tree_options *opt, struct tree **out, struct errmsg *err);
void tree_destroy(struct tree *tree);

/* ---- numbers and names ---- */
uint64_t tree_job_ino(uint64_t job, enum tree_kind kind);
/* False for a directory and for files of the service's own. */
bool tree_ino_is_job(uint64_t ino, uint64_t *job, enum tree_kind *kind);
/* "", ".status", ... */
const char *tree_suffix(enum tree_kind kind);
/* Results are written by the service alone and appear by tree_publish. */
bool tree_kind_is_result(enum tree_kind kind);

/* ---- looking: 0 or a negative errno ---- */
int tree_lookup(struct tree *tree, uint64_t parent, const char *name, struct stat *out);
int tree_getattr(struct tree *tree, uint64_t ino, struct stat *out);

struct tree_dirent {
    const char *name;
    uint64_t ino;
    mode_t type;     /* S_IFDIR or S_IFREG */
    uint64_t offset; /* where to go on after this one */
    const struct job_info *job; /* whose it is; NULL: the service's own */
};

/* Entries of directory `ino` behind `offset` (0: from the start), until `emit` says false. What is
 * there all the time is met exactly once, whatever else comes and goes. */
int tree_list(struct tree *tree, uint64_t ino, uint64_t offset,
              bool (*emit)(void *ctx, const struct tree_dirent *entry), void *ctx);

/* The attributes of an entry that has come to an end: they stay until tree_job_changed is told of the job. False: any
 * other. */
bool tree_stat_ended(const struct tree_dirent *entry, struct stat *out);

/* Contents of a generated file, malloc'ed: everything but NAME itself and `events`. */
int tree_render(struct tree *tree, uint64_t ino, char **text, size_t *len);

/* A user's text for `ino` (NAME.priority, a writable file of the service): without the newline at
 * its end. -EACCES for what takes none, -EINVAL with err for a wrong word; -EPERM when somebody who is not `trusted` makes a job
 * critical. */
int tree_write(struct tree *tree, uint64_t ino, const char *text, bool trusted, struct errmsg *err);

/* ---- results ---- */
/* The kinds (bits 1 << kind) that job `id` has and nobody can see yet, and a copy of the job. */
unsigned tree_due(struct tree *tree, uint64_t id, struct job_info *info);
/* From now on the name exists. -ENOENT: the job has no such result (any more). */
int tree_publish(struct tree *tree, uint64_t id, enum tree_kind kind);
/* A user's rm of a result: it is gone until a restart. */
int tree_hide(struct tree *tree, uint64_t id, enum tree_kind kind);
/* Follows the table: what jobs_options.changed tells. */
void tree_job_changed(struct tree *tree, const struct job_info *info, bool gone);

#endif
