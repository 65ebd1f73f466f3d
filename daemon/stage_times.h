/*
 * How long proved partitions were in each stage, sorted into buckets, as Prometheus wants histograms.
 *
 * Belongs to one thread at a time.
 */
#ifndef DAEMON_STAGE_TIMES_H
#define DAEMON_STAGE_TIMES_H

#include <stdio.h>

#include "daemon/flight.h"

#define STAGE_TIMES_BUCKETS 14

struct stage_times {
    uint64_t counts[FLIGHT_STAGES]
                   [STAGE_TIMES_BUCKETS]; /* in the bucket, the last without a bound */
    uint64_t us[FLIGHT_STAGES];
};

/* A partition that was proved, whose times do not go back. */
void stage_times_add(struct stage_times *t, const struct flight_course *course);
/* The lines of node `node` in a histogram of this name, all stages. */
void stage_times_print(const struct stage_times *t, const char *name, int node, FILE *out);

#endif
