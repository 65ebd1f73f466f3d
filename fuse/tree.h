/*
 * The names of the mount: which exist, their inode numbers, attributes and contents. Knows jobs, knows
 * no libfuse.
 *
 * Inode numbers: 1 is the root; fixed ones for the service's own files; a job's files are job id * 16 +
 * kind, so they live as long as the job and across a restart. Any thread may call anything here.
 */
#ifndef FUSE_TREE_H
#define FUSE_TREE_H

#include <sys/stat.h>

#include "daemon/jobs.h"

/* A file of the service's own: "status", "metrics", "nodes/0/topology". Made by main from its parts. */
struct tree_file {
    const char *path; /* relative to the root, at most two directories down */
    mode_t mode;      /* 0444 or 0644 */
    int (*render)(void *ctx, char **text, size_t *len);            /* malloc'ed */
    int (*write)(void *ctx, const char *text, struct errmsg *err); /* NULL: read only */
    void *ctx;
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

struct tree;

struct tree_options {
    struct jobs *jobs;
    const struct tree_file *files;
    size_t files_len;
    uid_t uid; /* owner of the service's own files */
    gid_t gid;
};

int tree_create(const struct tree_options *opt, struct tree **out, struct errmsg *err);
void tree_destroy(struct tree *tree);

#endif
