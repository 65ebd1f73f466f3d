/*
 * A fixed set of threads that share out loops.
 *
 * One loop runs at a time on a set; a second caller waits for the first. The calling thread works
 * too, so a set of one thread starts none. A loop body must not start a loop on its own set.
 */
#ifndef NUMA_WORKERS_H
#define NUMA_WORKERS_H

#include <stddef.h>

#include "numa/base.h"

struct workers;

/* Starts `threads` - 1 threads (0: as many as the CPUs this thread may run on). All signals are
 * blocked in them. Returns 0 with *out set (end it with workers_destroy), or a negative errno. */
int workers_create(unsigned threads, struct workers **out, struct errmsg *err);

void workers_destroy(struct workers *w);

/* Number of threads that take part in a loop, the caller included. NULL counts as 1. */
unsigned workers_count(const struct workers *w);

/* Calls body(ctx, item, thread) once for each item in [0, len), in any order and on any thread;
 * `thread` in [0, workers_count) tells scratch memory apart. Returns when all calls have returned.
 * With w == NULL the caller does it all, in order. */
void workers_run(struct workers *w, size_t len, void (*body)(void *ctx, size_t item, unsigned thread),
                 void *ctx);

#endif
