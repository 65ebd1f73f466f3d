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
#include "daemon/sched.h"

struct status_source {
    const struct config *config;
    struct jobs *jobs;
    struct sched *sched;
    int64_t started_ms; /* CLOCK_MONOTONIC */
};

/* malloc'ed text in *text for the caller to free. 0 or -ENOMEM. */
int status_render(const struct status_source *src, char **text, size_t *len);
int metrics_render(const struct status_source *src, char **text, size_t *len);

/* The parameters of a size: 0 with its file and whether they are development parameters, -ENOENT. For
 * status, admission and the log; a look into the directories, no more. */
int status_find_params(const struct sector_size *size, const char *dir, char path[4096],
                       bool *insecure, struct errmsg *err);

#endif
