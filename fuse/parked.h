/*
 * Requests that wait for their answer without a thread: an open() while the queue is full, a reader
 * of `events`. An interrupt (Ctrl-C, a kill) ends the wait.
 *
 * An element belongs to whoever has taken it off the list: it alone answers, outside the list's
 * lock. Registering first, linking afterwards and then asking whether the interrupt came in between
 * is the order in which libfuse cannot call back on a request that has been answered and freed.
 */
#ifndef FUSE_PARKED_H
#define FUSE_PARKED_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct parked {
    struct parked *next;
    fuse_req_t req;
    uint64_t key; /* the owner's, as since_ms */
    int64_t since_ms;
};

struct parked_list {
    pthread_mutex_t lock;
    struct parked *first, **last; /* guarded by lock */
    /* An element that an interrupt has taken off: answers EINTR, frees it. Without the lock. */
    void (*interrupted)(struct parked *p);
};

void parked_init(struct parked_list *list, void (*interrupted)(struct parked *p));
void parked_fini(struct parked_list *list);

/* Hands p over to the list, at its end or its head; `interrupted` may run before it returns. */
void parked_add(struct parked_list *list, struct parked *p);
void parked_return(struct parked_list *list, struct parked *p);

/* Takes off the first element that `wanted` (NULL: any) agrees to; NULL when there is none.
 * `wanted` runs under the lock. */
struct parked *parked_take(struct parked_list *list,
                           bool (*wanted)(void *ctx, const struct parked *p), void *ctx);
/* Whether there is such an element. */
bool parked_has(struct parked_list *list, bool (*wanted)(void *ctx, const struct parked *p),
                void *ctx);

#endif
