/*
 * What a power cut may leave of a directory. The file system calls of the job store are done and recorded; then, for any
 * point in time, the states that a disk may be in are made one after another.
 *
 * The model: bytes of a file are on disk when the file has been synced since; until then they may be there, missing, torn, or
 * zeros. A name that was made, moved or removed is so on disk when its directory has been synced since; until then each such
 * change may be lost by itself, whatever happened to the others. A rename happens or does not.
 */
#ifndef TESTS_LIB_DISK_MODEL_H
#define TESTS_LIB_DISK_MODEL_H

#include "numa/base.h"

/* ---- recording: one recorder at a time ---- */

/* Replaces the calls of the store from now on; `dir` is the store's directory, empty as yet. */
void recorder_start(const char *dir);
/* How many calls that change something there have been. */
size_t recorder_calls(void);
/* Puts the real calls back. The recording stays until recorder_free. */
void recorder_stop(void);
void recorder_free(void);
/* What call number `n` was, for messages. */
const char *recorder_describe(size_t n);

/* The `nth` call from now on (0: the next), and `count` - 1 after it, fail with `code` (an errno). A call that fails
 * changes nothing. */
void recorder_fail(size_t nth, size_t count, int code);
/* Did a call fail because of that? */
bool recorder_failed(void);

/* ---- replaying ---- */

/* Goes through the disks that a power cut after `n` calls may leave: each is made in `dir`, which is emptied before,
 * then `check` is called. Disks that are alike come once. Call with growing `n`. Returns how many there were. */
size_t replay_cut(size_t n, const char *dir, void (*check)(void *ctx), void *ctx);

#endif
