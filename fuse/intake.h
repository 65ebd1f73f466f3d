/*
 * A small pool of threads for what takes a while in a request: taking in bytes, judging a document.
 *
 * Tasks of one lane (one open file) run one at a time and in order; lanes take turns, so a large
 * upload delays a small one by a block and never by its whole length.
 */
#ifndef FUSE_INTAKE_H
#define FUSE_INTAKE_H

#include <stdbool.h>

#include "numa/base.h"

struct intake;

struct intake_task {
    struct intake_task *next;
    /* Does it, and frees the task. False: the lane is gone as well. */
    bool (*run)(struct intake_task *task);
};

/* In the caller's storage, zeroed; all fields are the pool's. */
struct intake_lane {
    struct intake_lane *next;
    struct intake_task *first, **last;
    bool busy; /* in the ready list, or a task of it runs */
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
