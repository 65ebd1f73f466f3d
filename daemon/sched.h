/*
 * The scheduler: which partition runs on which engine, and when.
 *
 * One thread starts the engines, gives partitions, in the order of the job table, to the engine that has room and will be through first
 * (balance.h), lets an engine without work take from the longest queue what has not been begun there, hands results to the job table,
 * and puts an engine that died, or fell silent, back on its feet after a pause that
 * grows. What such an engine held goes back to the queue; a partition that an engine worked on, or whose document it had read, at its
 * death `strikes` times fails its job, so that no job can keep the service crashing for ever. What only waited there is not to blame.
 *
 * An engine that still proves with parameters whose files have been replaced is started again, and what it had is proved again: partitions of
 * one job that were proved with different ones do not go together.
 *
 * A partition whose proof does not verify is proved again by another engine, or another prover, where there is one; PARTITION_ATTEMPTS times
 * in all, then its job fails. A prover that made SCHED_WRONG_MAX such proofs is set aside until the service is started again; without
 * any prover left jobs wait, and status, events and log say so.
 *
 * When an engine cannot use the parameters of a size, or has no memory for it at present, it is given no partition of that size until the
 * files change, or a pause is over that grows from seconds to minutes. Where that is so of every engine jobs of that size wait; all
 * others go on. What no memory of an engine can ever hold is its partition's trouble, and fails the job after `strikes` tries.
 *
 * Except where said, functions belong to the thread that made the scheduler.
 */
#ifndef DAEMON_SCHED_H
#define DAEMON_SCHED_H

#include "daemon/link.h"
#include "daemon/log.h"
#include "daemon/stage_times.h"
#include "daemon/supervise.h"

#define SCHED_STRIKES 3
#define SCHED_WRONG_MAX 3
#define SCHED_SIZES 10 /* of sector_sizes */
#define SCHED_ENGINES_MAX SUPERVISOR_SLOTS
#define SCHED_IN_FLIGHT_MAX SLOTS_MAX /* of one engine, whatever capacity it says */

struct sched;

struct sched_options {
    struct jobs *jobs;
    struct supervisor *supervisor; /* borrowed, the scheduler's alone from sched_start on */
    /* The engine program and its arguments, NULL-terminated; `--node N` is added. Borrowed. */
    const char *const *engine_argv;
    const int *nodes; /* an engine for each; copied */
    size_t nodes_len;
    uint32_t strikes;          /* 0: SCHED_STRIKES */
    uint32_t silence_ms;       /* an engine that says nothing for so long is killed; 0: a minute */
    uint32_t journal_retry_ms; /* pause after a result could not be written; 0: five seconds */
    uint32_t params_retry_ms;  /* first pause after parameters could not be used; 0: five seconds */
    /* A number that is another one whenever the parameter files of this size are (gone, come, changed): then a pause
     * ends. May be NULL. */
    uint64_t (*params_stamp)(void *ctx, const struct sector_size *size);
    /* The key of the parameter files of this size, as somebody saw them who looked later than `since_ms` (of CLOCK_MONOTONIC). Negative:
     * nobody has, or can: then what an engine proved with is taken as it is. Must not wait for a disk. May be NULL. */
    int (*params_key)(void *ctx, const struct sector_size *size, int64_t since_ms,
                      uint8_t vk_digest[SRS_VK_DIGEST_BYTES]);
    /* A line for readers of `events`, e.g. "engine node=0 started". Called by the scheduler's thread;
     * must not block. May be NULL. */
    void (*event)(void *ctx, const char *text);
    /* A partition that the engine of this place (among nodes) was given is proved. Called by the scheduler's thread; must not block.
     * May be NULL. */
    void (*proved)(void *ctx, size_t engine, const struct link_done *done);
    /* The spawner is dead: no engine can be started any more, the service should end. */
    void (*lost)(void *ctx);
    void *ctx;
};

int sched_create(const struct sched_options *opt, struct sched **out, struct errmsg *err);
int sched_start(struct sched *s, struct errmsg *err);
/* From the first call on nothing is given out, what no engine has begun goes back to the queue, and no engine is started. True when nothing
 * is in flight any more: to be called now and then until it is, or until there is no more time. */
bool sched_drain(struct sched *s);
/* Stops the engines; what they held is back in the queue when it returns, within a few seconds. */
void sched_stop(struct sched *s);
void sched_destroy(struct sched *s);

/* Something changed in the job table (a new job, a cancelled one), or the log has other levels, which engines take over. Any thread; does not
 * block. */
void sched_wake(struct sched *s);

enum engine_state { ENGINE_DOWN, ENGINE_STARTING, ENGINE_READY, ENGINE_STOPPING };

struct engine_status {
    int node;
    enum engine_state state;
    pid_t pid;                 /* 0: none */
    struct link_hello hello;   /* when ready */
    struct link_status status; /* the last one that came */
    uint32_t starts, deaths;
    int64_t retry_in_ms;      /* when down */
    char last_end[256];       /* how the last one ended; empty: never */
    bool set_aside;           /* all its provers are */
    double pace_ms;           /* for a partition, with all it has; 0: not known yet */
    uint64_t wrong;           /* proofs of it that did not verify, ever */
    struct stage_times times; /* of all that it proved, ever */
    size_t in_flight_len;
    struct {
        uint64_t job;
        uint32_t partition;
        bool begun; /* else it waits in the engine, and has no stage */
        enum partition_stage stage;
        unsigned percent; /* of PARTITION_LOADING */
        int64_t ms;       /* since it was given to the engine */
        const struct sector_size *size; /* NULL: of the test kind */
    } in_flight[SCHED_IN_FLIGHT_MAX];
};

/* A size whose parameters an engine cannot use, or has no memory for; the first such engine. */
struct sched_hold {
    const struct sector_size *size;
    int node;
    bool all; /* no engine that is there can, and its jobs wait */
    enum job_lack lacks;
    int64_t retry_in_ms;
    char why[768];
};

struct sched_status {
    size_t holds_len;
    struct sched_hold holds[SCHED_SIZES];
    size_t engines_len;
    struct engine_status engines[SCHED_ENGINES_MAX];
    uint32_t unwritten; /* verified proofs that wait for room on the disk */
    uint64_t partitions_done, partitions_failed, partitions_returned, partitions_stolen;
    bool
        no_prover; /* every one has been set aside: nothing is proved until the service is started again */
};

/* A copy of the present state. Any thread. */
void sched_status(struct sched *s, struct sched_status *out);

/* The same of one engine, by its place among sched_options.nodes. */
void sched_engine_status(struct sched *s, size_t engine, struct engine_status *out);
/* What became of the wish that the engine of a place loads the parameters of a size, or gives them up. */
enum sched_wish { WISH_NONE, WISH_ASKED, WISH_SENT, WISH_DONE, WISH_FAILED };
struct sched_wish_status {
    enum sched_wish state; /* WISH_DONE: fulfilled, and not seen in engine_status yet; then WISH_NONE */
    bool evict;
    char why[256]; /* WISH_FAILED */
};

/* Has the engine of `node` (SCHED_ALL_NODES: every one) load these parameters, or give them up, between partitions. -EINVAL: there is no
 * such node; -EBUSY: to be given up, and partitions that need them are in flight there. Any thread; does not wait. */
#define SCHED_ALL_NODES (-1)
int sched_wish(struct sched *s, const struct sector_size *size, int node, bool evict, struct errmsg *err);
void sched_wish_status(struct sched *s, size_t engine, const struct sector_size *size, struct sched_wish_status *out);

/* True when no engine can ever prove this size: err has both numbers. Engines that were never ready may yet. Any thread. */
bool sched_refuses(struct sched *s, const struct sector_size *size, struct errmsg *err);

const char *engine_state_name(enum engine_state state);

#endif
