/*
 * Decompression of gzip and zstd as it arrives, to a sink, in bounded pieces.
 *
 * Members (gzip) and frames (zstd) may follow each other. Memory is bounded whatever the input says: a
 * zstd frame that wants a larger window than INFLATE_WINDOW_LOG_MAX is refused; how much comes out in
 * all is for the sink to bound.
 *
 * A struct inflate belongs to one thread.
 */
#ifndef CIRCUIT_INFLATE_H
#define CIRCUIT_INFLATE_H

#include "numa/base.h"

/* 8 MiB: what zstd uses up to level 19 without --long. */
#define INFLATE_WINDOW_LOG_MAX 23

enum inflate_format { INFLATE_GZIP, INFLATE_ZSTD };

struct inflate_sink {
    int (*take)(void *ctx, const uint8_t *bytes, size_t len, struct errmsg *err);
    void *ctx;
};

struct inflate;

/* Returns 0 with *out set (end it with inflate_destroy) or -ENOMEM. */
int inflate_create(enum inflate_format format, struct inflate **out);
void inflate_destroy(struct inflate *z);

/* Returns 0, -EBADMSG for damaged data, -EINVAL for a window that is too large, -ENOMEM, or what the sink
 * returned (then *sunk is set and err is the sink's). */
int inflate_feed(struct inflate *z, const uint8_t *bytes, size_t len, const struct inflate_sink *sink,
                 bool *sunk, struct errmsg *err);

/* After the last byte: -EBADMSG unless the last member or frame is complete. */
int inflate_finish(const struct inflate *z, struct errmsg *err);

#endif
