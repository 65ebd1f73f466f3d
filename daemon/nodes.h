/*
 * The nodes of the service: which engines there are, on which CPUs, with which memory and GPUs. The front makes the list to start
 * engines, an engine makes it again to find itself.
 *
 * The configuration's text is
 *     ""                      an engine for each NUMA node that has CPUs for this process
 *     "0 2"                   for these NUMA nodes
 *     "cpus:0-3 cpus:4-7"     logical nodes 0, 1, ... of these CPUs
 *     "all"                   one engine on everything, bound to nothing
 *
 * Any thread may call anything here.
 */
#ifndef DAEMON_NODES_H
#define DAEMON_NODES_H

#include "numa/placement.h"

#define NODES_MAX 64
#define NODES_GPUS_MAX 16

struct node {
    int id;                 /* how it is called: the NUMA node's number, or 0, 1, ... */
    bool bound;             /* false: to nothing */
    struct placement where; /* if bound */
    size_t gpus_len;
    uint32_t gpus[NODES_GPUS_MAX]; /* as CUDA counts them in the order of their addresses */
};

struct nodes {
    size_t len;
    struct node list[NODES_MAX];
};

/* Returns 0 with *out set (end it with nodes_destroy); -EINVAL for a text that is none of these, or a node that is not there or
 * has no CPU for this process; -ENOMEM. A GPU belongs to the first node whose memory is on the GPU's NUMA node, else to the first. */
int nodes_create(const char *text, const struct topology *t,
                 const struct placement_allowed *allowed, struct nodes **out, struct errmsg *err);
void nodes_destroy(struct nodes *nodes);

/* The same on this machine. */
int nodes_read(const char *text, struct nodes **out, struct errmsg *err);

/* NULL when there is no such node. */
const struct node *nodes_find(const struct nodes *nodes, int id);

#endif
