/*
 * Events as fixed-size records (struct proof_event), for readers of /dev/proof. What fuse/events.h is for people this is
 * for programs.
 *
 * A reader starts at the present, gets whole records, waits for more without holding a thread, and can be interrupted.
 * Any thread may call anything here.
 */
#ifndef FUSE_RECORDS_H
#define FUSE_RECORDS_H

#include <fuse_lowlevel.h>

#include "daemon/job.h"

#define RECORDS_KEPT 1024 /* that a slow reader may lag behind */

struct records;
struct records_reader;

int records_create(struct records **out); /* -ENOMEM */
/* No reader is open any more. */
void records_destroy(struct records *rs);

void records_add_job(struct records *rs, const struct job_info *info, bool gone);
void records_add_text(struct records *rs, const char *text);

/* NULL without memory. */
struct records_reader *records_open(struct records *rs);
void records_close(struct records *rs, struct records_reader *r);

/* Answers `req` now or later: -EINVAL when no record fits into `max`, -EAGAIN when there is none and `nonblock`. */
void records_read(struct records *rs, struct records_reader *r, fuse_req_t req, size_t max,
                  bool nonblock);
/* The events that are true now; takes ph (may be NULL) and tells it of the next record. */
unsigned records_poll(struct records *rs, struct records_reader *r, struct fuse_pollhandle *ph);

/* Everybody who reads is at the end, now and later. */
void records_stop(struct records *rs);

/* The number that clients know a state by. */
uint32_t records_state(enum job_state state);

#endif
