/*
 * The NUMA nodes of the machine: their CPUs, memory, hugepages and GPUs, read from sysfs.
 *
 * Own parsing: libnuma's numa_available() says yes where /sys is empty, and prints to standard error. There is always at least one
 * node: where sysfs tells nothing, node 0 has every CPU of the calling thread.
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
    cpu_set_t *cpus;                  /* CPU_ALLOC'ed for TOPOLOGY_CPUS_MAX */
    uint64_t total_bytes, free_bytes; /* 0: unknown, or none */
    uint64_t available_bytes;         /* free, or page cache */
    int memory_node; /* where its memory is: itself, else the nearest that has some; -1: none is known */
    uint64_t huge_2m_total, huge_2m_free, huge_1g_total, huge_1g_free; /* pages */
};

/* An NVIDIA GPU. They are in the order of their addresses, in which CUDA counts them under CUDA_DEVICE_ORDER=PCI_BUS_ID. */
struct topology_gpu {
    char address[32]; /* "0000:3b:00.0" */
    int node;         /* -1: not known */
};

struct topology {
    size_t nodes_len; /* at least 1 */
    struct topology_node *nodes;
    size_t gpus_len;
    struct topology_gpu *gpus;
    bool from_sysfs; /* false: one made-up node */
    cpu_set_t *present; /* CPUs that there are, online or not; NULL: not known */
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

/* The same text of a set, cut with "..." to `size`. */
void topology_format_list(const cpu_set_t *set, char *out, size_t size);

#endif
