/*
 * Whether this machine can do what the options ask for.
 *
 * Belongs to main(), before any thread.
 */
#ifndef DAEMON_CONFIG_CHECK_H
#define DAEMON_CONFIG_CHECK_H

#include "daemon/config.h"

/* What can never work: a store or parameters inside the mount, a node that is not there. 0 or -EINVAL with err. */
int config_check(const struct config *cfg, struct errmsg *err);

/* Also what would keep a service from starting now, or from proving: directories, the engine program, the simulated device. Changes
 * nothing. 0 or a negative errno with err. What is only missing (parameters) goes to `warnings`, a line each, where that is not NULL. */
int config_check_machine(const struct config *cfg, FILE *warnings, struct errmsg *err);

/* The directory of the mount, likewise. Only where nothing is mounted: what is there may be dead, or answer nobody. */
int config_check_mount(const struct config *cfg, struct errmsg *err);

#endif
