/*
 * How much memory a process has, and how much this one may have: what the machine has, and what its control groups (v1 or v2) leave of it. CPUs and nodes are
 * the affinity mask's and the cpuset's business: numa/topology.h.
 *
 * Any thread may call anything here.
 */
#ifndef NUMA_LIMITS_H
#define NUMA_LIMITS_H

#include <sys/types.h>

#include "numa/base.h"

struct limits {
    uint64_t total_bytes; /* the smallest limit that there is; UINT64_MAX: nothing could be read */
    uint64_t available_bytes; /* what can be had now without swapping; as above */
    bool grouped;             /* a control group sets the total, and not the machine */
    char from[256];           /* who sets the total: "this machine", "control group /a/b" */
};

/* `root` is "" for the machine's own /proc and /sys, or a tree of a test. What cannot be read limits nothing. */
void limits_read(const char *root, struct limits *out);

/* Resident now; 0 where there is no such process. */
uint64_t resident_bytes(pid_t pid);

#endif
