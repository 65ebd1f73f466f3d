/*
 * Open files whose contents are made when they are read: status, report, metrics, ...
 *
 * An open file is a snapshot, made anew by each read from the beginning, so `cat` is consistent and
 * a program that polls may seek back and read again, as in sysfs. Any thread may call anything
 * here.
 */
#ifndef FUSE_TEXTS_H
#define FUSE_TEXTS_H

#include "fuse/handle.h"
#include "fuse/tree.h"

struct texts;
struct text; /* begins with a struct handle */

int texts_create(struct tree *tree, struct texts **out); /* borrows the tree */
/* Closes the files that are left open: from now on nobody is told of changes. */
void texts_close_all(struct texts *all);
void texts_destroy(struct texts *all);

/* NULL without memory. */
struct text *texts_open(struct texts *all, uint64_t ino);
void text_close(struct text *t);

void text_read(struct text *t, fuse_req_t req, size_t size, uint64_t offset);
/* One write is one text for tree_write. */
void text_write(struct text *t, fuse_req_t req, const char *buf, size_t len, bool trusted);

/* POLLIN and POLLPRI when the file has changed since it was last read from the beginning; takes ph
 * (may be NULL) and tells it of the next change. */
unsigned text_poll(struct text *t, struct fuse_pollhandle *ph);
/* The contents of `ino` are new: tells whoever polls. */
void texts_changed(struct texts *all, uint64_t ino);

#endif
