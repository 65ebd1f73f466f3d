/*
 * The place of the mount: is it free, is there a dead mount of ours in the way, may others be let
 * in.
 */
#ifndef FUSE_MOUNT_H
#define FUSE_MOUNT_H

#include <stdbool.h>

#include "numa/base.h"

#define MOUNT_SUBTYPE "proofd" /* the type in /proc/mounts is fuse.proofd */

/* Makes `path` ready to be mounted on: makes the directory and those above it if absent, detaches what a killed
 * service left there. Returns 0 with *absolute set (malloc'ed); -EBUSY where a mount is alive or
 * not ours, -ENOTEMPTY, -ENOTDIR. */
int mount_prepare(const char *path, char **absolute, struct errmsg *err);

/* Whether mount_prepare would find a place there, one that is absent or where a service of this program is: changes nothing. 0, or as
 * mount_prepare. */
int mount_check(const char *path, struct errmsg *err);

/* Takes the mount away from `path`, even while files are open in it. Does not fork: threads may run. */
int mount_remove(const char *path);

/* Whether this process may use allow_other: root always, others where fuse.conf says
 * user_allow_other. */
bool mount_may_allow_other(const char *fuse_conf);

#endif
