/*
 * Which parameter files were found good before: what can be said of a file that nobody reads now, and without notes of its chunks
 * (chunks.h) what spares a look at its points.
 *
 * A file is known again by where and what it is: device, inode, size, times, and a digest of its head. Where only that
 * differs (a hard link changes the ctime, a copy all but the size) the digest over the whole file says whether the bytes are
 * known. The memory is a small text file of the user's; one that others could have written is not believed, one that cannot
 * be written only means that the next start checks again.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_TRUSTED_H
#define GPU_TRUSTED_H

#include <sys/stat.h>

#include "numa/base.h"

#define TRUSTED_DIGEST_BYTES 16

/* What it is called in the store of a service without a home directory. */
#define TRUSTED_STORE_NAME "params-trusted"

struct trusted_file {
    struct stat st;
    uint8_t head_digest[TRUSTED_DIGEST_BYTES];
    uint8_t digest[TRUSTED_DIGEST_BYTES]; /* over the whole file */
};

/* The place of the memory for this user: $XDG_CACHE_HOME, else ~/.cache, /proofd/params-trusted. -ENOENT when
 * there is no such place. */
int trusted_default_path(char out[4096]);

/* Is this file, unchanged, in the memory? Then file->digest is filled. False also when the memory is not there or not to
 * be believed. */
bool trusted_lookup(const char *memory, struct trusted_file *file);

/* Is a file of this size, head and digest in the memory, wherever and whenever it was? */
bool trusted_lookup_bytes(const char *memory, const struct trusted_file *file);

/* Adds a file, forgets the oldest of many. Makes the directory. */
int trusted_remember(const char *memory, const struct trusted_file *file, const char *path,
                     struct errmsg *err);

/* A whole file of our own that nobody else may write, of `most` bytes at most, and a NUL behind it; NULL when there is none. free() it. */
char *trusted_read_own(const char *path, size_t most, size_t *len);

#endif
