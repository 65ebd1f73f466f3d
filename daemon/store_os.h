/*
 * The calls by which the store changes its disk, in one table, so that a test can record them, lose
 * what was not synced, or make the disk full.
 *
 * A test replaces the table before it opens a store and puts it back after it closed it; nothing else
 * touches it.
 */
#ifndef DAEMON_STORE_OS_H
#define DAEMON_STORE_OS_H

#include <sys/types.h>

/* Each as the system call of its name: -1 and errno where it fails. */
struct store_os {
    int (*mkdirat)(int dir, const char *name, mode_t mode);
    int (*openat)(int dir, const char *name, int flags, mode_t mode);
    ssize_t (*pwrite)(int fd, const void *buf, size_t len, off_t offset);
    int (*ftruncate)(int fd, off_t bytes);
    int (*fsync)(int fd); /* of a file or a directory */
    int (*renameat)(int from_dir, const char *from, int to_dir, const char *to);
    int (*unlinkat)(int dir, const char *name, int flags);
    int (*close)(int fd);
};

extern const struct store_os store_os_real;
extern const struct store_os *store_os;

#endif
