/*
 * The mount: low-level FUSE operations, thin, over tree and jobs.
 *
 * Files are made by MKNOD and OPEN, never by CREATE: so a writer can be made to wait in open()
 * while the queue is full, without the directory's lock. Bytes and judgement of an upload run on a
 * small pool of intake threads, so that `ls`, `stat` and `df` answer at once whatever is being read
 * in; content is judged at a non-empty FLUSH, the job starts at RELEASE, or at RENAME to a final
 * name. Results are published by one thread that is an ordinary client of the mount
 * (fuse/publish.h), `events` is in fuse/events.h. Nothing here waits for a proof.
 *
 * Life: fs_create before any thread, for mounting forks; jobs_open, tree_create, fs_attach, fs_start,
 * ..., fs_stop, fs_destroy, tree_destroy, jobs_close.
 */
#ifndef FUSE_FS_H
#define FUSE_FS_H

#include "fuse/tree.h"

struct fs;

struct fs_options {
    const char *mountpoint;   /* an empty directory; made if absent */
    const char *store_dir;    /* its free space is what `df` tells */
    uint32_t
        max_unfinished; /* as in jobs_options: a user's open files take at most half of that. 0: no limit */
    bool shared;              /* there is a shared group: who is in it may read and remove the jobs of others in it */
    gid_t shared_gid;
    gid_t critical_gid;       /* who is in it may make a job critical; so may root and the service's user */
    unsigned threads;         /* that serve requests; 0: a sane number */
    /* Something is lost but the service goes on: one line, with what gets it back. May be NULL. */
    void (*warn)(void *ctx, const char *text);
    void *ctx;
};

/* Mounts; whoever comes waits until fs_start. A dead mount of this program at that place is detached
 * first; a live one is -EBUSY, a mount point with something in it -ENOTEMPTY. Other users are let in
 * when the service is root or fuse.conf allows it, else warn says so. Forks, where the service is not
 * root (fusermount3), and so must come before any thread. */
int fs_create(const struct fs_options *opt, struct fs **out, struct errmsg *err);

/* What the mount shows. Starts nothing yet. */
int fs_attach(struct fs *fs, struct jobs *jobs, struct tree *tree, struct errmsg *err);

/* max_unfinished may change. After fs_attach. */
void fs_set_max_unfinished(struct fs *fs, uint32_t max);

/* Starts the threads and returns when the mount answers: users may come. */
int fs_start(struct fs *fs, struct errmsg *err);

/* No file can be opened for writing any more; who waits for that gets ECANCELED. Where jobs_refuse_new has been called. */
void fs_refuse_writers(struct fs *fs);

/* Readable (poll for POLLIN) once the mount has been taken away from outside: time to stop. */
int fs_ended_fd(const struct fs *fs);

/* Answers everybody who waits (-ECANCELED), ends the threads and the mount. After fs_attach; safe after a
 * failed start. */
void fs_stop(struct fs *fs);

/* After fs_stop, or instead of it where fs_attach was not called or failed. NULL is fine. */
void fs_destroy(struct fs *fs);

/* For jobs_options.changed: any thread, does not block. With fs == NULL it does nothing. */
void fs_job_changed(struct fs *fs, const struct job_info *info, enum job_state was, bool gone);

/* What the mount's users hold, to be shared with the device; there after fs_attach. */
struct users *fs_users(struct fs *fs);
/* A place in the queue has become free elsewhere. Any thread; NULL is fine. */
void fs_room(struct fs *fs);

/* A line for readers of `events` that is about no job: "engine node=0 started". No newline. */
void fs_event(struct fs *fs, const char *text);

#endif
