/*
 * Starts engine processes and tells of their deaths, by a small process of its own, the spawner, that is
 * forked before the front has threads.
 *
 * An engine is started by fork and exec with one end of a SOCK_SEQPACKET pair as descriptor 3; the
 * other end comes here. No engine outlives the front: the spawner kills them all when its socket to
 * the front closes, and each engine dies with the spawner.
 *
 * A supervisor belongs to one thread after supervisor_create.
 */
#ifndef DAEMON_SUPERVISE_H
#define DAEMON_SUPERVISE_H

#include <sys/types.h>

#include "numa/base.h"

#define SUPERVISOR_SLOTS 64   /* engines at a time; a slot is the front's number for one */
#define SUPERVISOR_ENGINE_FD 3 /* the engine's end of the pair, in the engine */

/* Exit status of an engine that ends because a GPU is broken: this and the GPU's number. */
#define ENGINE_EXIT_GPU 64
#define ENGINE_GPUS_MAX 16 /* whose numbers can be told */

struct supervisor;

/* Forks the spawner: before any thread is started. Returns 0 with *out set or a negative errno. */
int supervisor_create(struct supervisor **out, struct errmsg *err);
/* Kills the engines that are left and waits for the spawner's end; a stopped spawner is killed after three seconds. */
void supervisor_destroy(struct supervisor *s);

/* Readable when supervisor_next has something. */
int supervisor_fd(const struct supervisor *s);

/* Asks for a process argv[0] with these arguments (NULL-terminated, a path without search) in a
 * free slot. The answer is an event. -E2BIG for too long arguments, -ENOTCONN: the spawner is dead. */
int supervisor_start(struct supervisor *s, uint32_t slot, const char *const *argv);

/* Sends a signal to the process of the slot, if there is one. */
int supervisor_kill(struct supervisor *s, uint32_t slot, int signal);

enum supervisor_event_type {
    SUPERVISOR_STARTED, /* socket is the caller's */
    SUPERVISOR_REFUSED, /* could not be started: error says why; the slot is free */
    SUPERVISOR_ENDED    /* status is that of wait(2); the slot is free */
};

struct supervisor_event {
    enum supervisor_event_type type;
    uint32_t slot;
    pid_t pid;
    int socket;
    int error; /* negative errno */
    int status;
};

/* 0 with *out filled; -EAGAIN: nothing; -ENOTCONN: the spawner is dead, and all engines with it. */
int supervisor_next(struct supervisor *s, struct supervisor_event *out);

/* "killed by signal 9 (Killed)", "exit status 1": for logs. */
void supervisor_describe_status(int status, char *out, size_t size);

/* How long to wait before the start that follows `failures` ends in a row: 100 ms, doubled each time, at
 * most 30 s. */
uint32_t supervisor_backoff_ms(uint32_t failures);

#endif
