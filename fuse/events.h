/*
 * The file `events`: one line for each change of state, to any number of readers, as through a
 * pipe.
 *
 *   2026-01-31T12:00:00.123Z 17 queued c1.json        time, job, state, name
 *   2026-01-31T12:00:00.123Z - engine node=0 started  about no job
 *   lost 12 events                                    the reader was too slow
 *
 * A state may also be "removed": the job has left the table. Control characters and backslashes of
 * a name are written as \xNN. A reader starts at the present, waits for more without holding a
 * thread, and can be interrupted. Any thread may call anything here.
 */
#ifndef FUSE_EVENTS_H
#define FUSE_EVENTS_H

#include <fuse_lowlevel.h>

#include "daemon/job.h"

#define EVENTS_KEPT 1024 /* lines that a slow reader may lag behind */

struct events;
struct events_reader;

int events_create(struct events **out);
/* No reader is open any more. */
void events_destroy(struct events *ev);

void events_add_job(struct events *ev, const struct job_info *info, bool gone);
void events_add_text(struct events *ev, const char *text);

/* NULL without memory. */
struct events_reader *events_open(struct events *ev);
void events_close(struct events *ev, struct events_reader *r);

/* Answers `req` now or later: with lines, as many as fit; -EAGAIN when there are none and
 * `nonblock`. */
void events_read(struct events *ev, struct events_reader *r, fuse_req_t req, size_t max,
                 bool nonblock);
/* The events that are true now; takes ph (may be NULL) and tells it of the next line. */
unsigned events_poll(struct events *ev, struct events_reader *r, struct fuse_pollhandle *ph);

/* Answers with a heartbeat line whoever has waited for `limit_ms`: where the kernel ends requests
 * that take too long, it ends the mount with them. */
void events_heartbeat(struct events *ev, int64_t now_ms, int64_t limit_ms);
/* Everybody who reads is at the end of the file, now and later. */
void events_stop(struct events *ev);

#endif
