/*
 * The character device /dev/proof, by CUSE: reading gives event records, a C1 that is written becomes a job, ioctls name,
 * submit, look at, wait for and cancel jobs (fuse/abi.h). The second way to what the mount shows, for programs; a service
 * without it lacks nothing else.
 *
 * Any number of openers, each with a place of its own in the events and a document of its own that it writes. As in the
 * mount nothing holds a thread while it waits: a reader, a WAIT and a write that finds the queue full are answered later,
 * and an interrupt ends them. There is no flush on a character device: what SUBMIT does with an answer, a close does
 * without; a document that is not whole then is refused, so a writer that dies leaves no job.
 *
 * Life: device_create, device_start, ..., device_stop, device_destroy. Does not fork.
 */
#ifndef FUSE_DEVICE_H
#define FUSE_DEVICE_H

#include "daemon/jobs.h"
#include "daemon/users.h"

#define DEVICE_CUSE "/dev/cuse"
#define DEVICE_NAME_MAX 32

struct device;

struct device_options {
    const char *name; /* of the node in /dev */
    int fd;           /* speaks the protocol of /dev/cuse and is taken over; -1: that is opened */
    struct jobs *jobs;
    struct users *users; /* shared with the mount: a user's limits are for both */
    uint32_t
        max_unfinished; /* as in fs_options: a user's open documents take at most half of that */
    void (*room)(void *ctx); /* a place in the queue has become free. May be NULL */
    void (*lost)(void *ctx); /* the device has ended by itself. May be NULL */
    void *ctx;
};

/* -ENOENT, -EACCES, ... where there is no CUSE; err says so. */
int device_create(const struct device_options *opt, struct device **out, struct errmsg *err);
/* Returns when the device is there. -EBUSY: the kernel does not take it, as when there is one of that name. */
int device_start(struct device *dev, struct errmsg *err);
/* Answers everybody who waits, ends the threads and the device. NULL is fine, here and below. */
void device_stop(struct device *dev);
void device_destroy(struct device *dev);

/* max_unfinished may change. After device_create; NULL is fine. */
void device_set_max_unfinished(struct device *dev, uint32_t max);

/* For jobs_options.changed: any thread, does not block. */
void device_job_changed(struct device *dev, const struct job_info *info, enum job_state was,
                        bool gone);
/* An event that is about no job. */
void device_event(struct device *dev, const char *text);

#endif
