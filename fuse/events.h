/*
 * The file `events`: one line for each change of state, to any number of readers (fuse/readers.h).
 *
 *   2026-01-31T12:00:00.123Z,86400.123456 17 queued c1.json        times, job, state, name
 *   2026-01-31T12:00:00.123Z,86400.123456 - engine node=0 started  about no job
 *   lost 12 events                                                 the reader was too slow
 *
 * The first word has both times: UTC, and seconds of CLOCK_MONOTONIC, which no setting of the clock moves; it never goes back
 * from line to line.
 *
 * A state may also be "removed": the job has left the table. Control characters and backslashes of
 * a name are written as \xNN. Any thread may call anything here.
 */
#ifndef FUSE_EVENTS_H
#define FUSE_EVENTS_H

#include "daemon/job.h"
#include "fuse/readers.h"

#define EVENTS_KEPT 1024 /* lines that a slow reader may lag behind */

struct events;

int events_create(struct events **out); /* -ENOMEM */
/* No reader is open any more. */
void events_destroy(struct events *ev);

void events_add_job(struct events *ev, const struct job_info *info, bool gone);
void events_add_text(struct events *ev, const char *text);

/* To be opened, read, polled and closed by. */
struct readers *events_readers(struct events *ev);

/* Answers with a heartbeat line whoever has waited for `limit_ms`: where the kernel ends requests
 * that take too long, it ends the mount with them. */
void events_heartbeat(struct events *ev, int64_t now_ms, int64_t limit_ms);
/* Everybody who reads is at the end of the file, now and later. */
void events_stop(struct events *ev);

#endif
