/*
 * Where an engine runs: which CPUs are its own, and whose memory; what a process may use of them, and what it lacks.
 *
 * A placement is a value; any thread may make one. Binding is for the thread that calls, and those it will start.
 */
#ifndef NUMA_PLACEMENT_H
#define NUMA_PLACEMENT_H

#include "numa/topology.h"

/* What this process may use: affinity, cpuset. */
struct placement_allowed {
    cpu_set_t *cpus, *memory_nodes; /* CPU_ALLOC'ed for TOPOLOGY_CPUS_MAX */
};

/* `root` is "" for this machine, or a tree of a test with proc/self/status. What cannot be read is all allowed. 0 or -ENOMEM. */
int placement_allowed_read(const char *root, struct placement_allowed *out);
void placement_allowed_fini(struct placement_allowed *allowed);

struct placement {
    cpu_set_t *cpus; /* as above; at least one */
    uint32_t cpus_len;
    int memory_node; /* -1: no one node's */
    char lost[512];  /* what was asked for and is not to be had; empty: nothing */
};

/* The CPUs and the memory of NUMA node `node`. Returns 0 with *out set (end it with placement_fini); -EINVAL when there is no such node or
 * none of its CPUs may be used (err says which may); -ENOMEM. */
int placement_of_node(const struct topology *t, const struct placement_allowed *allowed, int node,
                      struct placement *out, struct errmsg *err);
/* These CPUs ("0-3,8"), and the memory of the node that they all belong to. -EINVAL also for what is no list. */
int placement_of_cpus(const struct topology *t, const struct placement_allowed *allowed,
                      const char *list, struct placement *out, struct errmsg *err);
void placement_fini(struct placement *p);

/* Binds the thread to the CPUs, and its memory, by preference, to the node. Returns 0; a negative errno when the kernel
 * refuses the CPUs; 1 when it refuses the memory policy (err says why; work goes on). */
int placement_bind(const struct placement *p, struct errmsg *err);

#endif
