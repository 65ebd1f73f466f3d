/*
 * What an engine's pipeline stands on: the arena of its node, slots cut out of it for one circuit at a time, parameters and what the
 * provers need. Devices keep the parameters of several circuits, as many as they have room for; which go is evict.h's choice. The arena is mapped when the engine starts, for the largest circuit that there are parameters for, so that an
 * engine that works maps nothing; only a circuit that needs more makes it map anew, when nothing is in flight.
 *
 * ground_get, ground_prepare, ground_load and ground_evict belong to the pipeline's thread, the others to any.
 */
#ifndef DAEMON_GROUND_H
#define DAEMON_GROUND_H

#include "daemon/params.h"
#include "daemon/pipeline.h"

#define GROUND_SIZES 10 /* of sector_sizes */

struct ground;

struct ground_options {
    int node;              /* as the service calls it */
    int memory_node;       /* or ARENA_ANY_NODE */
    uint64_t node_bytes;   /* memory of that node; 0: unknown */
    uint32_t sharers;      /* engines that use this node's memory */
    uint32_t engines;      /* all that there are */
    uint64_t memory_bytes; /* how much may be used; 0: all there is */
    uint32_t permits;      /* 0: as suits the provers */
    struct workers *workers;
    struct backend *const *backends;
    size_t backends_len;
    struct params *params;
    const char *params_dir; /* as params has it */
    struct sim *sim;        /* NULL, or parameters are no more than a key */
    /* A device does something that may take long; again while it gets on; NULL: it is through. By the thread that called. May be NULL. */
    void (*at_device)(void *ctx, const struct backend *be);
    void *ctx;
};

/* All of the options is borrowed. Says in the log what memory there is and what is lost. That there is not enough for some size is no
 * error here, nor that there is none now. 0 or -ENOMEM. */
int ground_create(const struct ground_options *opt, struct ground **out, struct errmsg *err);
/* After the pipeline. */
void ground_destroy(struct ground *g);

/* For the pipeline. `waiting`: bits of sector_sizes that partitions wait with, whose parameters go last. ground_prepare: -ENOMEM: there is
 * never enough memory for this size; -EBUSY: there is not at present, here or on a device; -ENOKEY: its parameters cannot be used. */
bool ground_get(struct ground *g, const struct sector_size *size, struct pipeline_ground *out);
int ground_prepare(struct ground *g, const struct sector_size *size, uint32_t waiting, double *ms,
                   struct errmsg *err);

/* Parameters where provers want them, before a partition needs them; nothing is in flight. What partitions wait with stays: -EBUSY (err
 * names one) when it would have to go; or as ground_prepare. */
int ground_load(struct ground *g, const struct sector_size *size, uint32_t waiting,
                struct errmsg *err);
/* Gives up what there is of them on host and devices. -EBUSY when partitions wait with them. */
int ground_evict(struct ground *g, const struct sector_size *size, uint32_t waiting,
                 struct errmsg *err);
/* What there is of them. Any thread. */
void ground_params(struct ground *g, const struct sector_size *size, struct node_params *out);

/* How many partitions may be here at a time. */
uint32_t ground_permits(const struct ground *g);

/* What proving a size takes at least, and what there is at most, of which who says so. */
struct ground_needs {
    uint64_t bytes[GROUND_SIZES]; /* as sector_sizes */
    uint64_t limit_bytes;
    char limit_from[64];
};
void ground_needs(const struct ground *g, struct ground_needs *out);

void ground_look(struct ground *g, struct node_memory *out);
#endif
