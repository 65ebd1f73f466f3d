/*
 * What an open file is to the mount: the first member of each struct that a file handle (fi->fh)
 * points to.
 */
#ifndef FUSE_HANDLE_H
#define FUSE_HANDLE_H

#include <fuse_lowlevel.h>
#include <pthread.h>

enum handle_kind {
    HANDLE_FILE,   /* NAME, to be read */
    HANDLE_WRITER, /* NAME, to be written: struct writer */
    HANDLE_TEXT,   /* a generated file */
    HANDLE_RESULT, /* the publisher's own open of a new result: neither read nor written */
    HANDLE_EVENTS
};

struct handle {
    enum handle_kind kind;
    uid_t user; /* who opened it; not of a writer, which has a lane */
    struct handle *prev, *next; /* in the list of whoever made it */
};

/* Into and out of a list that `lock` guards. */
static inline void handle_link(struct handle **list, pthread_mutex_t *lock, struct handle *h)
{
    pthread_mutex_lock(lock);
    h->prev = NULL;
    h->next = *list;
    if (h->next)
        h->next->prev = h;
    *list = h;
    pthread_mutex_unlock(lock);
}

static inline void handle_unlink(struct handle **list, pthread_mutex_t *lock, struct handle *h)
{
    pthread_mutex_lock(lock);
    if (h->prev)
        h->prev->next = h->next;
    else
        *list = h->next;
    if (h->next)
        h->next->prev = h->prev;
    pthread_mutex_unlock(lock);
}

static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
    return (struct handle *)(uintptr_t)fi->fh;
}

#endif
