/*
 * What fs.c (the mount's life) and ops.c (its operations) share of a struct fs. Nobody else includes this.
 */
#ifndef FUSE_FS_INTERNAL_H
#define FUSE_FS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>

#include "daemon/users.h"
#include "fuse/events.h"
#include "fuse/fs.h"
#include "fuse/handle.h"
#include "fuse/intake.h"
#include "fuse/publish.h"
#include "fuse/texts.h"
#include "fuse/writers.h"

struct fs {
    struct jobs *jobs;
    struct tree *tree;
    char *mountpoint, *store_dir;
    uint32_t max_unfinished;
    gid_t critical_gid, shared_gid;
    struct users *users;
    void (*warn)(void *ctx, const char *text);
    void *ctx;
    struct fuse_session *session;
    bool mounted;
    int64_t request_limit_ms; /* 0: the kernel lets requests wait for ever */
    atomic_int_least64_t listed_until_ms; /* the kernel may keep what listings said of ended jobs */
    struct publisher *publisher;
    struct writers *writers;
    struct events *events;
    struct texts *texts;
    struct intake *slow; /* its threads may wait for the disk */
    int stop_fd, ended_fd;
    unsigned threads_max, threads_len;
    pthread_t *threads;

    pthread_mutex_t lock;
    struct handle *handles; /* all but writers and texts; guarded by lock, as all below */
    struct statvfs space;   /* of the store's disk, as it was a second ago */
    int space_error;        /* why it is not known, or 0 */
    bool space_asked;
    bool catching_up; /* a task for that waits */
    bool ticking;     /* or runs */
    bool silent; /* nobody is to be told of anything any more */
    unsigned telling;
    pthread_cond_t told;
};

extern const struct fuse_lowlevel_ops fs_operations;

/* Sizes and modes of an ended job are asked for anew, and so its names too, once it has gone. Any thread, while the session is there. */
void fs_forget_listed(struct fs *fs, uint64_t job);
/* At the space of the store's disk, for df: now, or by a thread that may wait for it. */
void fs_look_at_space(struct fs *fs);
void fs_look_at_space_soon(struct fs *fs);
/* The table's housekeeping (jobs_tick), by a thread that may wait for the disk. */
void fs_tick_soon(struct fs *fs);
/* When no request is being served any more. */
void fs_close_handles(struct fs *fs);

#endif
