/*
 * Which engine gets the next partition, and who takes from whom: arithmetic alone, without clock, lock or socket.
 *
 * An engine's pace is how long it takes for a partition when it always has one, as learnt from those that it has ended: the time since
 * the one before, or since it was given something to do. Times are milliseconds of any clock that does not go back.
 */
#ifndef DAEMON_BALANCE_H
#define DAEMON_BALANCE_H

#include "numa/base.h"

struct pace {
    double ms;     /* for a partition; 0: not known yet */
    int64_t since; /* when it ended the last one, or was given the first */
};

/* The engine was given a partition while it had `in_flight` others. */
void pace_given(struct pace *p, size_t in_flight, int64_t now_ms);
/* It has proved one. */
void pace_proved(struct pace *p, int64_t now_ms);

/* What an engine has. */
struct load {
    bool open;                 /* it takes partitions */
    size_t room;               /* and so many more */
    size_t in_flight, waiting; /* waiting: of these, not begun yet */
    double ms;                 /* its pace */
};

/* Of those that are open and have room, where a partition would be done first; `len`: nowhere. */
size_t balance_choose(const struct load *loads, size_t len);
/* From whom a partition that waits should go to `thief`, which has nothing to do: from the longest queue, if it would be done sooner there.
 * `len`: from nobody. */
size_t balance_steal(const struct load *loads, size_t len, size_t thief);

#endif
