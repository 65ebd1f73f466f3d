/*
 * Which parameters go when others need their room: those that nothing needs before those that partitions wait with, and of each the longest
 * unused first; never what partitions run on, and none that would not help.
 *
 * A pure function: any thread.
 */
#ifndef DAEMON_EVICT_H
#define DAEMON_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVICT_SETS_MAX 32

enum evict_need {
    EVICT_FREE,    /* nothing needs them */
    EVICT_WAITING, /* partitions wait with them */
    EVICT_RUNNING  /* partitions are in flight on them */
};

struct evict_set {
    uint64_t bytes; /* that giving them up brings; 0: they are not held */
    uint64_t used;  /* when they were used last: later, greater */
    enum evict_need need;
};

/* Room for `want` bytes where `room` are free: bit i of *go for set i that should go. `urgent`: what others wait with may go too, for who is
 * before them. False when all that may go is not enough; *go is all that then. */
bool evict_choose(const struct evict_set *sets, size_t len, uint64_t want, uint64_t room,
                  bool urgent, uint32_t *go);

#endif
