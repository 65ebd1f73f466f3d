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

/* Whether mount_prepare would find a place there, one that is absent or where a service of this program is: changes nothing. 0; 1: such a
 * service's mount is there, dead or alive; or as mount_prepare. */
int mount_check(const char *path, struct errmsg *err);

/* Takes the mount away from `path`, even while files are open in it. Does not fork: threads may run. */
int mount_remove(const char *path);

/* Where what a mount needs is looked for. */
struct mount_places {
    const char *device;   /* /dev/fuse */
    const char *path;     /* directories of fusermount3, as in $PATH */
    const char *selinux;  /* its enforce file */
    const char *apparmor; /* the file with the profile of this process */
    bool may_mount;       /* it has CAP_SYS_ADMIN, so it does without fusermount3 */
    bool has_name;        /* its user has, without which fusermount3 does nothing */
};
void mount_places_init(struct mount_places *out);

/* What keeps this process from mounting: one line with what helps. 0: nothing is known to, and a failure all the same (`tried`) is a
 * policy's. Else -ENOENT, -EACCES or -EPERM with err. */
int mount_lacks(const struct mount_places *places, bool tried, struct errmsg *err);

/* Whether this process may use allow_other: root always, others where fuse.conf says
 * user_allow_other. */
bool mount_may_allow_other(const char *fuse_conf);

#endif
