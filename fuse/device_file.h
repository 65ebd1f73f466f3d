/*
 * What one opener of the device writes: a name, bytes, and their end.
 *
 * Requests of one opener run on a lane of an intake pool (fuse/intake.h), so they keep their order and the disk holds up
 * nobody else. A first write takes a place in the queue and waits for one, first come first served. Each call answers
 * `req`, now or later. Any thread may call anything here.
 */
#ifndef FUSE_DEVICE_FILE_H
#define FUSE_DEVICE_FILE_H

#include "fuse/device.h"
#include "fuse/records.h"

#define DEVICE_WRITE_MAX ((size_t)128 << 10) /* bytes of one write */

struct device_files;
struct device_file;

int device_files_create(const struct device_options *opt, struct device_files **out,
                        struct errmsg *err);
int device_files_start(struct device_files *all, struct errmsg *err);
/* Answers ECANCELED to every write that waits, now and later. */
void device_files_stop(struct device_files *all);
/* After the last request: finishes what was taken in and closes the files left open, as if their writers had died.
 * `close_reader` gets the reader of each. */
void device_files_drain(struct device_files *all, struct records *records);
void device_files_destroy(struct device_files *all);

/* -EMFILE: the user has too many open files. Borrows the reader. */
int device_file_open(struct device_files *all, uid_t user, struct reader *reader,
                     struct device_file **out);
struct reader *device_file_reader(const struct device_file *f);
/* The last job of this opener, 0: none. */
uint64_t device_file_job(const struct device_file *f);

void device_file_name(struct device_file *f, fuse_req_t req, const char *name);
void device_file_write(struct device_file *f, fuse_req_t req, const void *buf, size_t len,
                       bool nonblock);
/* `answer` replies once the document is accepted or refused with `error`; 0: accepted. */
void device_file_submit(struct device_file *f, fuse_req_t req,
                        void (*answer)(struct device_files *all, fuse_req_t req, uint64_t job,
                                       int error));
/* Submits what has been written and frees f. */
void device_file_release(struct device_file *f);

/* max_unfinished, of which a user's open documents take at most half. */
void device_files_set_max_unfinished(struct device_files *all, uint32_t max);
/* There may be room for a write that waits. Does not block. */
void device_files_room(struct device_files *all);
struct jobs *device_files_jobs(struct device_files *all);

#endif
