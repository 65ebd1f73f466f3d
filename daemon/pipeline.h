/*
 * An engine's pipeline: partitions wait, get a slot, are synthesized in it, wait for a prover, are proved and verified.
 *
 *     waiting ─► synthesizing ─► ready ─► proving ─► finishing ─► done
 *                └──────── a slot ─────────────────────────┘
 *                └── its evaluation part ───────┘
 *
 * One thread takes the best of the waiting partitions and a slot for it, in one step, so that memory goes to whom it should; then it
 * synthesizes on all workers. Each backend has as many threads as tickets; each takes the best ready partition when the backend can
 * begin one, starts, gives the evaluation part back, finishes and verifies. Best: higher priority, earlier turn, older job, lower partition.
 * Handing over is a change of state of an entry that is there already, so it never waits and needs no queue.
 *
 * A partition whose proof does not verify is told as wrong, and left to the caller: the next try should be elsewhere.
 * Parameters and slots for another circuit are brought when nothing is in flight.
 *
 * Any thread may call anything but pipeline_create and pipeline_destroy.
 */
#ifndef DAEMON_PIPELINE_H
#define DAEMON_PIPELINE_H

#include "daemon/document.h"
#include "daemon/link.h"
#include "gpu/backend.h"

#define PIPELINE_CAPACITY_MAX 256

struct pipeline;
struct srs;

/* What partitions of one size work with. */
struct pipeline_ground {
    const struct srs *srs; /* NULL for the test kind */
    struct slots *slots;
    const struct circuit *circuit; /* witnesses are compact; NULL: they are expanded */
};

struct pipeline_options {
    int node;                        /* for log and reports */
    uint32_t capacity;               /* partitions in all stages together */
    struct workers *workers;         /* borrowed, may be NULL */
    struct backend *const *backends; /* borrowed */
    size_t backends_len;
    struct sim *sim;       /* borrowed; NULL: no jobs of the test kind */
    struct flight *flight; /* borrowed */

    /* The ground for `size` (NULL: the test kind) if it is there: false if something has to be brought first. Quick. */
    bool (*ground)(void *ctx, const struct sector_size *size, struct pipeline_ground *out);
    /* Brings it, for a partition that waits; nothing is in flight. *ms is what loading parameters took. `waiting`: bits of sector_sizes
     * that partitions here wait with, as far as it is known. -ENOKEY, -ENOMEM. */
    int (*prepare)(void *ctx, const struct link_work *work, const struct sector_size *size,
                   uint32_t waiting, double *ms, struct errmsg *err);
    /* What pipeline_ask asked for; nothing is in flight. `waiting` of all that are here. May be NULL. */
    void (*chore)(void *ctx, const struct sector_size *size, bool evict, uint32_t waiting);
    /* A partition begins to be synthesized, or proved. */
    void (*stage)(void *ctx, const struct link_work *work, enum partition_stage stage);
    /* Its end, one of the three for every partition that pipeline_give took. code: as in link_failed. All it held has been given
     * back. The course's prover is the place of the backend. */
    void (*done)(void *ctx, const struct link_work *work, const uint8_t proof[PROOF_BYTES],
                 const struct partition_report *report, const struct flight_course *course);
    void (*failed)(void *ctx, const struct link_work *work, int code, const char *text);
    /* The other end: the proof that backend `backend` made does not verify. */
    void (*wrong)(void *ctx, const struct link_work *work, size_t backend, const char *text);
    /* A backend is broken (gpu/backend.h): the process should end, and partitions that are here be given to others. If this
     * returns, the partition fails with -EAGAIN. May be NULL. */
    void (*broken)(void *ctx, const struct backend *be, const char *text);
    void *
        ctx; /* of all these, which are called without a lock, by the pipeline's threads and by who cancels */
};

/* Starts the threads. 0 or a negative errno. */
int pipeline_create(const struct pipeline_options *opt, struct pipeline **out, struct errmsg *err);
/* Lets each thread end the step that it is in and drops everything: nothing is said any more of what is still there. */
void pipeline_destroy(struct pipeline *p);

/* Takes a partition; `fd` (of the document) is the pipeline's in any case. Backend `avoid` does not get it as long as there is another;
 * SIZE_MAX: none. -EAGAIN when there is no room, or no backend. */
int pipeline_give(struct pipeline *p, const struct link_work *work, size_t avoid, int fd);
/* Gives a partition that has not been begun back, as failed with -EAGAIN; else nothing happens. One that is read, or whose ground is
 * brought, has not been. */
void pipeline_recall(struct pipeline *p, uint64_t job, uint32_t partition);
/* A backend gets nothing any more. False when it was the last one: then what is here should be cancelled. */
bool pipeline_set_aside(struct pipeline *p, size_t backend);
/* Partitions of `job` end as failed with this code and text: at once, though one that is in a step holds its slot until that ends. */
void pipeline_cancel(struct pipeline *p, uint64_t job, int code, const char *text);
void pipeline_cancel_all(struct pipeline *p, int code, const char *text);
/* From here on `job` has this priority. */
void pipeline_set_priority(struct pipeline *p, uint64_t job, uint32_t priority);

/* Has a size's parameters loaded, or given up, by the pipeline's thread, as soon as what is in flight has ended. Asked again
 * meanwhile it is done once. */
void pipeline_ask(struct pipeline *p, const struct sector_size *size, bool evict);

/* Nothing is here, and nothing that was asked for is done. */
bool pipeline_is_idle(struct pipeline *p);
/* What the backends are doing: fills `out` and returns how many there are. */
uint32_t pipeline_provers(struct pipeline *p, struct node_prover out[NODE_PROVERS_MAX]);

#endif
