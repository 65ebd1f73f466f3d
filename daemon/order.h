/*
 * The order in which computations get their partitions proved: the scheduling of the queue alone, without clock, lock or disk.
 *
 * What waits is ordered by class, then by the turn of its user, then by age. Users of a class take turns: each partition that is given
 * out while others of the class wait costs its user one, and who has had the fewest is next. Who comes anew begins where the
 * others are, so waiting saves nothing up. A user who is alone in his class stays at one turn, and age alone counts.
 *
 * No class starves: one that has waited for `aging_ms` since it got a partition last gets the next one, whatever waits above it, and
 * that partition counts as of the highest class that waits. Only the longest waiting class does so at a time, so the
 * classes above it are delayed by one partition now and then, however long the queue is.
 *
 * Times are of any clock that does not go back. The caller sees to it that only one thread is here at a time.
 */
#ifndef DAEMON_ORDER_H
#define DAEMON_ORDER_H

#include <sys/types.h>

#include "daemon/job.h"

#define ORDER_SIZES 10 /* of sector_sizes */

struct order;

struct order_key {
    uint64_t age; /* the smaller the older; no two entries have the same */
    enum job_priority priority;
    uid_t user;
    unsigned size; /* its place among sector_sizes */
};

/* A part of what waits. Zeroed before its first use; key is constant while it is in. */
struct order_entry {
    struct order_key key;
    bool in;
};

/* Whose turn it is. Partitions are proved in the order of priority, turn, age, index from here on. */
struct order_turn {
    struct order_entry *entry;
    enum job_priority priority; /* that it counts as */
    uint64_t turn;
};

/* aging_ms 0: classes may starve. */
int order_create(int64_t aging_ms, struct order **out); /* -ENOMEM */
void order_destroy(struct order *o);

/* -ENOMEM: it is not in. */
int order_put(struct order *o, struct order_entry *e, const struct order_key *key, int64_t now_ms);
void order_remove(struct order *o, struct order_entry *e); /* no harm when it is not in */

/* What is next of sizes whose bit in `refused` is 0. False: nothing is. */
bool order_next(const struct order *o, uint32_t refused, int64_t now_ms, struct order_turn *out);
/* A partition of it has been given out; it is still in. */
void order_taken(struct order *o, const struct order_turn *t, int64_t now_ms);

#endif
