/*
 * Files opened for writing: who may open one now and who waits, what is done with the bytes, and what a
 * close means.
 *
 * While the queue is full an open() waits its turn, first come first served, without a thread and
 * without the directory's lock; so it does while its user has half of the places already. An interrupt
 * ends the wait, O_NONBLOCK gets EAGAIN. Bytes and judgements run on intake threads. A judgement that
 * rejects is answered when NAME.error can be read. A writer that is killed (the kernel says so of a
 * process that flushes because it dies of a signal) leaves no job.
 */
#ifndef FUSE_WRITERS_H
#define FUSE_WRITERS_H

#include "daemon/users.h"
#include "fuse/handle.h"
#include "fuse/publish.h"

#define WRITERS_BLOCK_MAX ((size_t)128 << 10) /* bytes of one WRITE, which is copied once */

struct writers;
struct writer; /* begins with a struct handle */

struct writers_options {
    struct jobs *jobs;
    struct publisher *publisher;
    struct users *users;
    uint64_t places_user; /* files that one user may have open: under final names, and under others */
    unsigned threads;     /* intake threads */
};

int writers_create(const struct writers_options *opt, struct writers **out, struct errmsg *err);
int writers_start(struct writers *ws, struct errmsg *err);
void writers_set_places(struct writers *ws, uint64_t places_user);
/* Answers ECANCELED to every open that waits; writers_drain does so to who comes later. */
void writers_stop(struct writers *ws);
/* After the last request: finishes and answers what has been taken in, then closes the files left
 * open as if their writers had been killed. Only fs_job_changed's calls may follow, and
 * writers_destroy. */
void writers_drain(struct writers *ws);
void writers_destroy(struct writers *ws);

/* The requests of one file. Each answers `req`, now or later. A file that was made for an open goes when that
 * fails. */
void writers_open(struct writers *ws, fuse_req_t req, uint64_t job,
                  const struct fuse_file_info *fi);
void writer_write(struct writer *w, fuse_req_t req, const void *buf, size_t len, uint64_t offset);
/* `answer` replies to a SETATTR that has been done. */
void writer_truncate(struct writer *w, fuse_req_t req, uint64_t bytes,
                     void (*answer)(fuse_req_t req, uint64_t job));
void writer_flush(struct writer *w, fuse_req_t req);
void writer_release(struct writer *w, fuse_req_t req);
/* truncate(2), without an open file: as an open, a truncation and a close. */
void writers_truncate(struct writers *ws, fuse_req_t req, uint64_t job, uint64_t bytes,
                      void (*answer)(fuse_req_t req, uint64_t job));
/* Has a file of a temporary name judged that nobody has judged yet, so that its rename can be tried again;
 * `user` asked for it. */
void writers_judge(struct writers *ws, uint64_t job, uid_t user);
/* The job that this writer's bytes belong to. */
uint64_t writer_job(const struct writer *w);

/* Something changed, so there may be room for an open that waits. Does not block. */
void writers_room(struct writers *ws);
/* A job has gone: an open of it that waits need wait no longer. */
void writers_gone(struct writers *ws, uint64_t job);
/* Once a second. limit_ms > 0: answers EAGAIN to an open that has waited so long (see os request
 * timeouts). */
void writers_tick(struct writers *ws, int64_t now_ms, int64_t limit_ms);

#endif
