/*
 * Readers of a stream that goes on: any number of them, each at a place of its own, as through a pipe. What `events`
 * (lines, events.h) and the device (records, records.h) have in common; the stream itself, a ring of what is kept, is theirs.
 *
 * A reader starts at the present, waits for more without holding a thread, and can be interrupted. What the kernel did not take,
 * because the reader was interrupted, is given again at the next read. Any thread may call anything here.
 */
#ifndef FUSE_READERS_H
#define FUSE_READERS_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define READERS_CURSOR_MAX 2048
#define READERS_READ_MAX ((size_t)64 << 10) /* bytes that one read gives at most */

struct readers;
struct reader;

/* When a change was told, by both clocks. */
struct told_at {
    int64_t realtime_ns, monotonic_ns;
};
struct told_at told_now(void);

/* What the stream knows of a reader's place, a cursor. Called under the readers' lock. */
struct readers_ops {
    size_t cursor_bytes; /* at most READERS_CURSOR_MAX; it starts as zeros */
    size_t least;        /* a read of fewer bytes is -EINVAL */
    void (*begin)(const void *stream, void *cursor); /* at the present */
    bool (*has)(const void *stream, const void *cursor);
    /* Puts what comes next into `buf` and moves the cursor behind it. 0: there is nothing. */
    size_t (*fill)(const void *stream, void *cursor, char *buf, size_t max);
};

/* Both are borrowed. -ENOMEM. */
int readers_create(const struct readers_ops *ops, const void *stream, struct readers **out);
/* No reader is open any more. NULL is fine. */
void readers_destroy(struct readers *rs);

/* Around a change of the stream; the second tells everybody who waits. */
void readers_lock(struct readers *rs);
void readers_unlock_and_tell(struct readers *rs);

/* NULL without memory. */
struct reader *readers_open(struct readers *rs);
void readers_close(struct readers *rs, struct reader *r);

/* Answers `req` now or later, with as much as fits; -EAGAIN when there is nothing and `nonblock`. */
void readers_read(struct readers *rs, struct reader *r, fuse_req_t req, size_t max, bool nonblock);
/* The events that are true now; takes ph (may be NULL) and tells it when there is more. */
unsigned readers_poll(struct readers *rs, struct reader *r, struct fuse_pollhandle *ph);

/* Answers with these bytes everybody who began to wait at `before_ms` (CLOCK_MONOTONIC) or earlier. */
void readers_answer_old(struct readers *rs, int64_t before_ms, const char *bytes, size_t len);
/* Everybody who reads is at the end, now and later. */
void readers_stop(struct readers *rs);

#endif
