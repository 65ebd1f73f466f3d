/*
 * A file that is written and digested beside what makes its bytes: pieces go through a ring, whose every piece one thread digests
 * and another writes, each at its own pace.
 *
 * An outflow belongs to one thread, apart from the two of its own. The file appears whole or not at all (newfile.h).
 */
#ifndef GPU_OUTFLOW_H
#define GPU_OUTFLOW_H

#include "numa/base.h"

#define OUTFLOW_DIGEST_BYTES 64 /* a BLAKE2b-512 */

struct outflow;

/* Opens `path` for `bytes` in pieces of up to `piece_bytes`, of which a few are in memory. Returns 0 with *out set (end it with
 * outflow_close), what newfile_open says, -ENOMEM, or -EAGAIN where no thread can be started. */
int outflow_open(const char *path, uint64_t bytes, size_t piece_bytes, struct outflow **out,
                 struct errmsg *err);

/* *room = where the next piece goes. Waits for one that is done with; returns what stopped the writing, if anything has. */
int outflow_room(struct outflow *o, uint8_t **room, struct errmsg *err);

/* Hands over the first `len` bytes of the room. */
void outflow_put(struct outflow *o, size_t len);

/* When everything is written, syncs the file and gives it its name; its digest goes to `digest`. Returns
 * what stopped the writing, or what newfile_commit says. */
int outflow_commit(struct outflow *o, uint8_t digest[OUTFLOW_DIGEST_BYTES], struct errmsg *err);

/* Ends the threads; the file is gone if it was not committed. NULL is closed already. */
void outflow_close(struct outflow *o);

#endif
