/*
 * Events as fixed-size records (struct proof_event), for readers of /dev/proof (fuse/readers.h). What fuse/events.h is for
 * people this is for programs. Any thread may call anything here.
 */
#ifndef FUSE_RECORDS_H
#define FUSE_RECORDS_H

#include "daemon/job.h"
#include "fuse/readers.h"

#define RECORDS_KEPT 1024 /* that a slow reader may lag behind */

struct records;

int records_create(struct records **out); /* -ENOMEM */
/* No reader is open any more. */
void records_destroy(struct records *rs);

void records_add_job(struct records *rs, const struct job_info *info, bool gone);
void records_add_text(struct records *rs, const char *text);

/* To be opened, read, polled and closed by; a read takes whole records. */
struct readers *records_readers(struct records *rs);

/* Everybody who reads is at the end, now and later. */
void records_stop(struct records *rs);

/* The number that clients know a state by. */
uint32_t records_state(enum job_state state);

#endif
