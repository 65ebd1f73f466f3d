/*
 * What has been, for who measures: of each engine, samples of its memory, permits and stages while partitions are in flight, and the
 * course of the partitions that it proved last. Both are rings in memory of a fixed size; each line has a number, so that a reader who
 * comes back knows what is new and what was missed. Times are CLOCK_MONOTONIC.
 *
 * A thread of its own looks at the engines every HISTORY_EVERY_MS while one of them has something to do, and sleeps otherwise.
 *
 * Any thread may call anything but history_create and history_destroy.
 */
#ifndef DAEMON_HISTORY_H
#define DAEMON_HISTORY_H

#include <stdio.h>

#include "daemon/sched.h"

#define HISTORY_EVERY_MS 100
#define HISTORY_SAMPLES 1024    /* kept of each engine */
#define HISTORY_PARTITIONS 2048 /* likewise */

struct history;

/* Of the engines of `sched`, which is borrowed and outlives it. 0 or a negative errno. */
int history_create(struct sched *sched, size_t engines, struct history **out);
void history_destroy(struct history *h);

/* There may be something to do for an engine. NULL is no history, and nothing happens. */
void history_wake(struct history *h);
/* An engine, by its place, has proved a partition. */
void history_proved(struct history *h, size_t engine, const struct link_done *done);

/* A line with the names of the columns, then a line each, the oldest first. 0 or -ENOMEM. */
int history_put_samples(struct history *h, size_t engine, FILE *out);
int history_put_partitions(struct history *h, size_t engine, FILE *out);

#endif
