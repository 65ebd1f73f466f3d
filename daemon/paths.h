/*
 * Where paths lie, before the directories they name exist; those directories; and texts that people write.
 */
#ifndef DAEMON_PATHS_H
#define DAEMON_PATHS_H

#include <limits.h>
#include <stdio.h>

#include "numa/base.h"

/* An absolute path without symbolic links and dots in the part of it that exists; the rest, which does not
 * exist yet or cannot be looked into (a dead mount), is kept as written. 0, -ENAMETOOLONG, or what
 * realpath says of the part that exists. */
int path_resolve(const char *path, char out[PATH_MAX]);

/* True when `path` is `dir` or below it. What cannot be resolved lies nowhere. */
bool path_is_inside(const char *path, const char *dir);

/* The directory above, as it is written. False for a bare name and for "/", above which there is nothing to look at. */
bool path_parent(const char *path, char out[PATH_MAX]);

/* Makes the directories above `path` that are missing (0755 less the umask), each synced in its own. `path` itself is left alone. 0 or
 * a negative errno with err; what was made so far stays. */
int path_make_parents(const char *path, struct errmsg *err);

/* Opens a text that people write, for reading: a regular file of at most 1 MiB or /dev/null, so that a pipe or a device makes nobody wait. The
 * caller closes it. 0, or what open says, -EINVAL for another kind of file, -EFBIG. */
int path_open_text(const char *path, FILE **out, struct errmsg *err);

/* Whether `path` can be run as a program: 0, -EISDIR, -EACCES (no right, or no regular file), or what stat says. */
int path_check_program(const char *path);

#endif
