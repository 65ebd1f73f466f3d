/*
 * Writes results of partitions into the job table by a thread of its own. While the disk is busy with some, more come, and these are
 * written together: the slower the disk, the more results share its syncs.
 *
 * A committer belongs to one thread; only its own thread calls the job table.
 */
#ifndef DAEMON_COMMITTER_H
#define DAEMON_COMMITTER_H

#include "daemon/jobs.h"

/* A result on its way; malloc'ed by whoever puts it in, and his again once it comes out. */
struct commit {
    struct proof_result result; /* its ret says how it went */
    bool refused;                   /* the caller's */
    struct commit *next;
};

struct committer;

/* `written`: something can be taken; called by the committer's thread, must not block. Returns 0 or a negative errno. */
int committer_create(struct jobs *jobs, void (*written)(void *ctx), void *ctx,
                     struct committer **out);
void committer_put(struct committer *c, struct commit *one);
/* Those that have been written, or refused, linked in order; NULL: none. */
struct commit *committer_take(struct committer *c);
/* Writes what is there, then ends the thread; committer_take still works. */
void committer_stop(struct committer *c);
void committer_destroy(struct committer *c);

#endif
