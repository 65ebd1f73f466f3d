/*
 * The insecure development parameters of c2-formats 7.1: made from published labels, the same bytes everywhere.
 * Whoever knows the labels can forge proofs; a marker beside the file says so.
 */
#ifndef GPU_SETUP_H
#define GPU_SETUP_H

#include "gpu/backend.h"
#include "gpu/vk.h"
#include "numa/circuit/sector.h"
#include "numa/workers.h"

struct setup_options {
    const char *dir; /* made if absent */
    struct workers *workers;
    struct backend
        *device; /* makes the points, if it can (develop in gpu/backend.h); NULL: the workers do */
    /* The device has not the memory, says why: the workers make them. Or NULL. */
    void (*without_device)(void *ctx, const struct errmsg *why);
    /* What is there is damaged, says how: it is made anew. Or NULL. */
    void (*damaged)(void *ctx, const struct errmsg *how);
    void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total); /* or NULL */
    void *progress_ctx;                                                            /* of all */
};

/* Writes <cache id>.params, .vk, .meta and the marker <cache id>.insecure into dir, each whole or not at all. Existing
 * complete development files are kept (0, *made = false), as far as kind, length and head tell: damaged points are
 * found by who loads them. A file there without our marker, or with another key, is never overwritten (-EEXIST); -EBADMSG: something is damaged
 * so that nobody can say whose it was, or is no file: err says what to remove. -ENOSPC, -EIO, -ENOMEM. */
int setup_run(const struct sector_size *size, const struct setup_options *opt, bool *made,
              struct errmsg *err);

/* Whether a key is one of these: they have alpha in common, whatever the size. */
bool setup_made(const struct vk *vk);

struct circuit;
struct srs;

/* The same parameters made by a backend in its device's memory and left there (develop in gpu/backend.h); *out (end it with
 * srs_close) has the key and the counts and no points. -EINVAL for a backend without a device, -ENOMEM, -EIO. */
int setup_on_device(const struct circuit *circuit, struct backend *be,
                    void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total),
                    void *progress_ctx, struct srs **out, struct errmsg *err);

/* The same for all of `len` devices, each of which has them then. Where one has a limit of its memory (memory_limit) the first makes them
 * without one and gives its memory back, and the points are in *out, for every device to take what it has room for. -EBADMSG: the keys
 * that the devices made differ. */
int setup_on_devices(const struct circuit *circuit, struct backend *const *devices, size_t len,
                     void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total),
                     void *progress_ctx, struct srs **out, struct errmsg *err);

/* For parameters that no file holds: puts their key (.vk) and the marker into dir, made if absent, or compares the key with the one that
 * is there. -EBADMSG: that is another one; -EEXIST: it has no marker of ours. Several processes may do it at a time. */
int setup_keep_key(const struct sector_size *size, const char *dir, const struct vk *vk,
                   struct errmsg *err);

#endif
