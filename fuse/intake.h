/*
 * A small pool of threads for what takes a while in a request: taking in bytes, judging a document.
 *
 * Tasks of one lane (one open file) run one at a time and in order. Users take turns, and so do the
 * lanes of a user: a large upload delays a small one by a block and never by its whole length, and
 * a user with a thousand files delays another by a task. One thread is always left for the others.
 * What takes long does a piece and asks to be called again.
 */
#ifndef FUSE_INTAKE_H
#define FUSE_INTAKE_H

#include <stdbool.h>
#include <sys/types.h>

#include "numa/base.h"

struct intake;

enum intake_result {
    INTAKE_DONE,  /* the task has freed itself */
    INTAKE_GONE,  /* and the lane as well */
    INTAKE_AGAIN, /* a piece is done: call it again when others have had their turn */
};

struct intake_task {
    struct intake_task *next;
    enum intake_result (*run)(struct intake_task *task);
};

/* In the caller's storage, zeroed but for `user`; all other fields are the pool's. */
struct intake_lane {
    uid_t user;
    bool busy; /* in the ready list, or a task of it runs */
    struct intake_task *first, **last;
    struct intake_lane *next;      /* ready, of the same user */
    struct intake_lane *next_user; /* of the first of a user: that of the next user */
};

int intake_create(unsigned threads, struct intake **out, struct errmsg *err);
/* Starts its threads. Tasks may have been pushed before. */
int intake_start(struct intake *in, struct errmsg *err);
/* Runs what has been pushed, then ends the threads. */
void intake_destroy(struct intake *in);

/* From any thread. The lane must have no task queued when it is freed, but for the one that frees
 * it. */
void intake_push(struct intake *in, struct intake_lane *lane, struct intake_task *task);

#endif
