/*
 * The parameters that an engine holds: loaded when a partition first needs them, kept for each size,
 * thrown out when another size or a proof needs the memory, in the order of evict.h.
 *
 * All but params_describe and params_look belongs to the pipeline's thread; these may be called from any thread, while parameters
 * are being loaded too.
 */
#ifndef DAEMON_PARAMS_H
#define DAEMON_PARAMS_H

#include "gpu/srs.h"
#include "numa/limits.h"

struct params;

/* Where parameters and memory come from: a test has its own. */
struct params_source {
    int (*open)(const struct sector_size *size, const struct srs_options *opt, struct srs **out,
                struct errmsg *err);
    void (*close)(struct srs *srs);
    uint64_t (*file_bytes)(const struct sector_size *size, const char *dir); /* 0: there is none */
    void (*memory)(struct limits *out);
};

/* All of it is borrowed. */
struct params_options {
    const char *dir;     /* NULL: the search order of srs_find */
    const char *trusted; /* the file of srs_options.memory, NULL: the user's own */
    struct workers *workers;
    /* NULL, or makes parameters of which there is no file: as source->open, with `ctx`. */
    int (*make)(void *ctx, const struct sector_size *size, const struct srs_options *opt,
                struct srs **out, struct errmsg *err);
    /* How much is there of what is being loaded, from 0 on and never less than before. Called by the thread of
     * params_get. May be NULL. */
    void (*loading)(void *ctx, unsigned percent);
    void *ctx;
    const struct params_source *source; /* NULL: this machine's */
};

/* 0 or -ENOMEM. */
int params_create(const struct params_options *opt, struct params **out);
void params_destroy(struct params *p);

/* The parameters of `size`, for use until the next call. *load_ms is what loading took, 0 when they were
 * there. -E2BIG: they can never fit (err: what it needs and what there is); -ENOMEM: not at present; or as srs_open. */
int params_get(struct params *p, const struct sector_size *size, const struct srs **out,
               double *load_ms, struct errmsg *err);

/* Whether there is no file of a size, and devices make them in its place. */
bool params_makes(const struct params *p, const struct sector_size *size);

/* What is held of a size; NULL: nothing. */
const struct srs *params_held(const struct params *p, const struct sector_size *size);

/* They are used now: for who was given them earlier. */
void params_touch(struct params *p, const struct sector_size *size);

/* From here on what partitions wait with (bits of sector_sizes) is given up last, and only if `urgent`. */
void params_set_waiting(struct params *p, uint32_t sizes, bool urgent);

/* Gives up what is held of a size. False when that is nothing. Ends what params_get gave. */
bool params_evict(struct params *p, const struct sector_size *size);

/* A device holds the points of these now; the key stays. The next params_get gives what is left, params_get_again all. */
void params_drop_points(struct params *p, const struct sector_size *size);
int params_get_again(struct params *p, const struct sector_size *size, const struct srs **out,
                     double *load_ms, struct errmsg *err);

/* What is held of a size. Any thread. */
struct params_look {
    bool held, loading, transformed;
    unsigned percent; /* that is loaded */
    enum srs_trust trust;
    uint64_t bytes;  /* of points */
    int64_t used_ms; /* since they were used last; -1: they are not held */
};
void params_look(struct params *p, const struct sector_size *size, struct params_look *out);

/* For people, empty when nothing is loaded: "2KiB (insecure development parameters)",
 * "loading 32GiB 43%". */
void params_describe(struct params *p, char *out, size_t size);

#endif
