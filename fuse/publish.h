/*
 * The thread that makes results appear. It is an ordinary client of the mount: it creates and
 * closes each result file, `.proof` or `.error` last, which is the only thing that raises inotify
 * events (CREATE, OPEN, CLOSE_WRITE) for every watcher of the directory. Its own MKNOD request,
 * recognised by the kernel's word for its thread and by what it has announced, is what binds the
 * finished content to the name. A change of state touches NAME.status in the same way (ATTRIB).
 *
 * It holds no lock while it is inside the mount, so it may be called from any handler.
 */
#ifndef FUSE_PUBLISH_H
#define FUSE_PUBLISH_H

#include "fuse/tree.h"

struct publisher;

struct publisher_options {
    const char *mountpoint; /* absolute; copied */
    struct tree *tree;
    void (*warn)(void *ctx, const char *text); /* may be NULL */
    void (*tick)(void *ctx);                   /* about once a second; never waits for the mount */
    void *ctx;
};

/* Made before the mount serves; its threads start with publisher_start. */
int publisher_create(const struct publisher_options *opt, struct publisher **out,
                     struct errmsg *err);
/* Starts its threads and returns when the mount has answered. */
int publisher_start(struct publisher *p, struct errmsg *err);
/* Ends the threads; the mount must still serve. What was queued becomes visible without an event. */
void publisher_stop(struct publisher *p);
void publisher_destroy(struct publisher *p);

/* Job `id` has changed: publish what is due, touch its status file. Does not block. */
void publisher_job_changed(struct publisher *p, uint64_t id);
/* The same, and calls done(arg) when all that was due for `id` can be seen; always, and exactly
 * once. At once when the publisher has stopped. Not on the thread that goes into the mount, which has no descriptors
 * but its own. */
void publisher_after(struct publisher *p, uint64_t id, void (*done)(void *arg), void *arg);

/* For the handler of MKNOD: is this the publisher's own request, for a name that it announced? */
bool publisher_expects(struct publisher *p, pid_t caller, const char *name, uint64_t *job,
                       enum tree_kind *kind);
bool publisher_is(const struct publisher *p, pid_t caller);

#endif
