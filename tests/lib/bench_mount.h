/*
 * A service in a process of its own, for measurements: the mount, the table and the store, without the programs.
 */
#ifndef TESTS_LIB_BENCH_MOUNT_H
#define TESTS_LIB_BENCH_MOUNT_H

#include <sys/types.h>

#include "daemon/jobs.h"

struct bench_mount {
    const char *mount, *store;
    /* In place of the engines: called again and again by one thread; false when there was nothing to do. May be NULL. */
    bool (*work)(struct jobs *jobs, void *ctx);
    void *ctx;
};

/* Forks it and waits until the mount answers; before any thread. -1: it does not start, and has said why. */
pid_t bench_mount_start(const struct bench_mount *m);
/* Whether it ended well. */
bool bench_mount_stop(pid_t pid);

#endif
