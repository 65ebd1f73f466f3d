/*
 * What each user holds of the things that a user may hold only so much of.
 *
 * Limits are the callers' business, this counts. A user who holds nothing takes no memory. Any thread;
 * its lock is taken last.
 */
#ifndef DAEMON_USERS_H
#define DAEMON_USERS_H

#include <sys/types.h>

#include "numa/base.h"

enum user_share {
    USER_FILES,        /* files that are no jobs */
    USER_BYTES,        /* on disk, of these */
    USER_READERS,      /* uploads that are decoded as they arrive */
    USER_WRITERS,      /* files open for writing, under a final name */
    USER_TEMPORARY,    /* and under a temporary one */
    USER_WAITING,      /* opens that wait for a place */
    USER_QUEUED_BYTES, /* of writes that wait for a thread */
    USER_HANDLES,      /* files open to be read */
    USER_EVENTS,       /* of which `events` */
    USER_SHARES
};

struct users;

int users_create(struct users **out); /* -ENOMEM */
void users_destroy(struct users *users);

uint64_t users_has(struct users *users, uid_t user, enum user_share share);
/* `n` more, if that makes at most `limit`: 0; -EDQUOT, -ENOMEM. */
int users_take(struct users *users, uid_t user, enum user_share share, uint64_t n, uint64_t limit);
void users_give(struct users *users, uid_t user, enum user_share share, uint64_t n);

#endif
