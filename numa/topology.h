/*
 * The NUMA nodes of the machine: their CPUs, memory and hugepages, read from sysfs, and binding to one
 * of them.
 *
 * Own parsing and raw system calls: libnuma's numa_available() says yes where /sys is empty or the
 * policy calls are forbidden, and prints to standard error. There is always at least one node: where
 * sysfs tells nothing, node 0 has every CPU of the calling thread.
 *
 * Which GPU hangs off which node belongs here too, once there are GPUs.
 *
 * A struct topology is immutable once read and may be used by any thread.
 */
#ifndef NUMA_TOPOLOGY_H
#define NUMA_TOPOLOGY_H

#include <sched.h>

#include "numa/base.h"

#define TOPOLOGY_SYSFS "/sys" /* the usual sysfs root */
#define TOPOLOGY_CPUS_MAX 4096

struct topology_node {
    int id; /* the kernel's number; they may have gaps */
    uint32_t cpus_len;
    cpu_set_t *cpus;                 /* CPU_ALLOC'ed for TOPOLOGY_CPUS_MAX */
    uint64_t total_bytes, free_bytes; /* 0: unknown */
    uint64_t huge_2m_total, huge_2m_free, huge_1g_total, huge_1g_free; /* pages */
};

struct topology {
    size_t nodes_len; /* at least 1 */
    struct topology_node *nodes;
    bool from_sysfs; /* false: one made-up node */
};

/* Reads the nodes under sysfs_root (TOPOLOGY_SYSFS, or a tree of a test). Returns 0 with *out set (end
 * it with topology_destroy) or -ENOMEM; a sysfs that is missing or unreadable is no error. */
int topology_read(const char *sysfs_root, struct topology **out, struct errmsg *err);
void topology_destroy(struct topology *t);

/* NULL when there is no such node. */
const struct topology_node *topology_find(const struct topology *t, int id);

/* Parses a kernel CPU or node list ("0-3,8,10-11", possibly empty) into `set`, of
 * TOPOLOGY_CPUS_MAX bits. Returns how many bits it set, or -EINVAL. */
int topology_parse_list(const char *text, cpu_set_t *set);

/* Binds the calling thread and those it will start: to the CPUs of the node that it may use, and its
 * memory to the node. Returns 0, -EINVAL (no CPU of the node is allowed to this process), or 1 when
 * the CPUs are bound and the kernel refused the memory policy (err says why; work goes on). */
int topology_bind(const struct topology_node *node, struct errmsg *err);

#endif
