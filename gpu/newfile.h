/*
 * A file that appears whole or not at all: written under a temporary name, synced, renamed into place.
 *
 * A newfile belongs to one thread.
 */
#ifndef GPU_NEWFILE_H
#define GPU_NEWFILE_H

#include "numa/base.h"

struct newfile {
    int fd; /* -1: none */
    uint64_t at; /* bytes written */
    char path[4096], temporary[4128];
};

/* Opens `path`.tmp, empty; what a writer that died left under that name is used up. `bytes` is how long the file
 * will be, 0 for unknown: room is taken at once where the filesystem can do that. Returns 0, -EBUSY while another
 * process writes the same file, or what open and fallocate say, -ENOSPC among it. */
int newfile_open(struct newfile *f, const char *path, uint64_t bytes, struct errmsg *err);

/* Bytes on the disk that newfile_open would use up. */
uint64_t newfile_left(const char *path);

/* Appends, and asks the kernel to begin writing to disk. */
int newfile_write(struct newfile *f, const void *data, size_t len, struct errmsg *err);

/* Syncs the file, gives it its name in place of any file of that name, syncs the directory. */
int newfile_commit(struct newfile *f, struct errmsg *err);

/* Closes; removes the temporary file when it was not committed. May be called twice. */
void newfile_close(struct newfile *f);

/* All of the above for a short file. */
int newfile_put(const char *path, const void *data, size_t len, struct errmsg *err);

#endif
