/*
 * Arenas: memory of one NUMA node, mapped, bound, faulted in and locked when it is made, so that a proof in flight never waits for a
 * page.
 *
 * The pages are the largest that the machine has: 1 GiB and 2 MiB from the pool, 2 MiB pages for the asking (THP), 4 KiB. Where the
 * pages came to lie is read back from the kernel. Memory is carved off the end and given back in bulk, by rewinding to an earlier
 * mark; there is no free() of a piece.
 *
 * An arena belongs to one thread at a time. Its memory may be used by any thread.
 */
#ifndef NUMA_ARENA_H
#define NUMA_ARENA_H

#include "numa/workers.h"

#define ARENA_ANY_NODE (-1) /* as the calling thread's policy says */

enum arena_pages { ARENA_1GIB, ARENA_2MIB, ARENA_THP, ARENA_4KIB };

struct arena_options {
    size_t bytes;             /* rounded up to whole pages */
    int node;                 /* ARENA_ANY_NODE, or whose memory */
    enum arena_pages largest; /* where to begin */
    struct workers *workers;  /* borrowed for the call, to fault pages in; may be NULL */
    const char *root;         /* for limits_read; NULL: the machine's own */
};

struct arena_info {
    enum arena_pages pages;
    size_t bytes, huge_bytes; /* huge: in pages of 2 MiB or more */
    int node;                 /* as asked for */
    bool bound, locked;
    size_t misplaced_bytes; /* on other nodes than asked for: somebody should know */
    int misplaced_node;     /* one of them; -1: none */
    char lost[640];         /* what could not be had, and why; empty: nothing */
    bool lost_pages_alone;  /* nothing of it but larger pages */
};

struct arena;

/* Returns 0 with *out set (end it with arena_destroy); -ENOMEM when the machine or its control group has not that much
 * available (err has both numbers); -EINVAL for no bytes. That a better kind of page, a binding or a lock is not to be had is no
 * error: arena_info says so. */
int arena_create(const struct arena_options *opt, struct arena **out, struct errmsg *err);
void arena_destroy(struct arena *a);

/* Where it begins. */
void *arena_memory(const struct arena *a);

const struct arena_info *arena_get_info(const struct arena *a);
/* "1 GiB", "2 MiB", "2 MiB (transparent)", "4 KiB" */
const char *arena_pages_name(enum arena_pages pages);

/* How many bytes lie on other nodes than `node`, and one such node or -1. -ENOSYS, -EPERM: the kernel does not tell. */
int arena_find_misplaced(const struct arena *a, int node, size_t *bytes, int *other);

/* `bytes` at an address divisible by 4096, not cleared. NULL when less is left. */
void *arena_carve(struct arena *a, size_t bytes);
/* What arena_carve takes for `bytes`. */
size_t arena_carved_bytes(size_t bytes);
size_t arena_mark(const struct arena *a);
/* Gives back everything carved since the mark was taken. */
void arena_rewind(struct arena *a, size_t mark);

#endif
