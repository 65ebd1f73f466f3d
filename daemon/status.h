/*
 * What the files `status` and `metrics` of the mount say: the whole service at a glance, for people and
 * as Prometheus text.
 *
 * Rendering takes copies of what the parts tell and waits for nothing. Any thread.
 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include <stdio.h>

#include "daemon/config.h"
#include "daemon/jobs.h"
#include "daemon/params_watch.h"
#include "daemon/sched.h"

struct status_source {
    const struct config *config;
    struct jobs *jobs;
    struct sched *sched;
    struct params_watch *params;
    int64_t started_ms; /* CLOCK_MONOTONIC */
};

/* malloc'ed text in *text for the caller to free. 0 or -ENOMEM. */
int status_render(const struct status_source *src, char **text, size_t *len);
int metrics_render(const struct status_source *src, char **text, size_t *len);

#endif
