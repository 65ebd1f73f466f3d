/*
 * What the parts of the scheduler share: sched.c (the loop), sched_engines.c, sched_results.c and sched_deal.c. Nobody else includes this.
 * Everything belongs to the scheduler's thread, but what is shared at the end of struct sched.
 */
#ifndef DAEMON_SCHED_INTERNAL_H
#define DAEMON_SCHED_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/balance.h"
#include "daemon/committer.h"
#include "daemon/sched.h"

#define NEVER INT64_MAX
#define LACK_MS 1000 /* until what lacked memory or descriptors of the kernel is tried again */

struct in_flight {
    uint64_t job;
    const struct sector_size *size;
    int64_t since;
    int64_t has_params_at; /* when the engine had its parameters at the latest; 0: not yet */
    struct link_work given;
    uint32_t partition;
    enum partition_stage stage;
    unsigned percent;
    enum job_priority priority; /* its job's, that the engine knows or has something better for */
    bool cancel_sent;
    bool reading;  /* the engine has said that it reads its document, which may be what kills it */
    bool begun;    /* the engine has said that it works on it */
    bool recalled; /* it should give it back, if it has not begun it */
};

/* A size whose parameters an engine could not use, or had no memory for. */
struct hold {
    bool on;   /* nothing of this size is given to it */
    bool told; /* everybody knows, and wants to know its end */
    enum job_lack lacks;
    uint64_t stamp;
    int64_t until, look_at;
    uint32_t failures; /* of this stamp, in a row */
    char why[768];
};

/* A prover whose proofs did not verify. */
struct liar {
    int32_t gpu; /* its number, -1: it is none */
    uint32_t wrong;
};

struct engine {
    int node;
    enum engine_state state;
    pid_t pid;
    int sock;
    int64_t started, heard;    /* when */
    int64_t killed;            /* likewise, while it is stopping */
    int64_t retry_at, look_at; /* look_at: for its resident memory */
    uint32_t failures;         /* in a row */
    uint32_t starts, deaths;
    uint32_t gpu_faults[ENGINE_GPUS_MAX]; /* ends for a broken GPU, by its number */
    struct liar liars[NODE_PROVERS_MAX];
    size_t liars_len;
    uint64_t wrong; /* of all of them */
    struct pace pace;
    struct hold holds[SCHED_SIZES];
    int64_t deaf_until; /* its socket takes nothing before; NEVER: it is closed, and the process has `silence` to end */
    uint32_t replaced; /* times in a row that it proved with replaced parameters */
    struct stage_times times;
    struct link_hello hello;
    struct link_status status;
    struct in_flight flights[SCHED_IN_FLIGHT_MAX];
    size_t flights_len;
    char last_end[256];
    struct sched_wish_status wishes[SCHED_SIZES]; /* guarded by the scheduler's lock */
};

/* How often a partition failed for a reason that may pass. */
struct strike {
    uint64_t job;
    uint32_t partition, count;
    uint32_t wrong;             /* proofs that did not verify */
    const struct engine *avoid; /* which made the last of these, by that prover */
    int32_t avoid_gpu;
};

/* A partition that should go elsewhere, and where there is no room at the moment. */
struct parked {
    struct partition_work work;
    struct parked *next;
};

struct sched {
    struct sched_options opt;
    pthread_t thread;
    bool running;
    int wake_fd;
    atomic_bool stop;
    atomic_bool draining;

    struct engine *engines;
    size_t engines_len;
    enum job_lack lacks[SCHED_SIZES]; /* of all engines, as the job table knows it */
    struct strike *strikes;
    size_t strikes_len, strikes_room;
    struct parked *parked;
    struct committer *committer;
    struct commit *unwritten; /* the disk did not take them yet */
    int64_t write_again_at;
    int64_t take_at; /* no partition is taken before; 0: now */
    uint32_t unwritten_len;
    size_t writing; /* results that the committer has */
    uint64_t done, failed, returned, stolen;
    bool no_prover;
    uint32_t sent_log_levels;

    pthread_mutex_t lock;
    struct sched_status shared; /* guarded by lock: the copy that others see */
    bool drained;               /* guarded by lock */
};

int64_t sched_now_ms(void);

/* ---- sched_engines.c ---- */
/* A line of `events`. */
void engine_tell(const struct sched *s, const struct engine *e, const char *what);
/* False when the engine does not hear it. */
bool engine_say(struct sched *s, struct engine *e, const struct link_message *m, int fd);
void engine_start(struct sched *s, struct engine *e);
void engine_kill(struct sched *s, struct engine *e, const char *why);
/* The same where what it had in flight is not to blame. */
void engine_replace(struct sched *s, struct engine *e, const char *why);
/* What others wish of it. */
void engine_tell_wishes(struct sched *s, struct engine *e);
/* It does not end. What it holds goes back: nothing is heard of it any more, and a process that waits in the kernel is no partition's
 * fault. */
void engine_take_back(struct sched *s, struct engine *e);
/* Takes in what it has said, or some of it: it may be saying more all the time. */
void engine_listen(struct sched *s, struct engine *e);
void engine_hang_up(struct engine *e);
/* False when the spawner is dead. */
bool sched_take_supervisor_events(struct sched *s);

/* ---- sched_results.c ---- */
struct strike *sched_find_strike(struct sched *s, uint64_t job, uint32_t partition);
/* Back to the queue: nobody is to blame. */
void sched_give_back(struct sched *s, uint64_t job, uint32_t partition);
/* The engine is to blame, or the partition is: back to the queue, but not for ever. */
void sched_strike_out(struct sched *s, uint64_t job, uint32_t partition, const char *what);
void sched_on_done(struct sched *s, struct engine *e, const struct in_flight *flight,
                   const struct link_done *d);
void sched_on_failed(struct sched *s, struct engine *e, const struct in_flight *flight,
                     const struct link_failed *f);
void sched_on_wrong(struct sched *s, struct engine *e, const struct link_wrong *w);
/* The committer's callback, by its thread; and what it has written, or the disk has refused. */
void sched_on_written(void *ctx);
void sched_take_written(struct sched *s);
void sched_retry_unwritten(struct sched *s);
/* Sizes that may be tried again; and one whose parameters an engine has. */
void sched_check_holds(struct sched *s);
void engine_end_hold(struct engine *e, const struct sector_size *size);
bool engine_is_set_aside(struct engine *e, int32_t gpu);
/* As far as it is known what provers it has. */
bool engine_all_set_aside(struct engine *e);
void engine_say_set_aside(struct sched *s, struct engine *e, int32_t gpu);
/* Tells once when there is none any more. */
void sched_look_for_provers(struct sched *s);

/* ---- sched_deal.c ---- */
/* It can never prove this size, or not at present. */
bool engine_refuses(const struct engine *e, const struct sector_size *size);
void sched_give_out(struct sched *s);
void sched_steal(struct sched *s);
/* What it has not begun, it should give back. */
void engine_recall_waiting(struct sched *s, struct engine *e);
void sched_give_back_parked(struct sched *s, struct parked **at);
void engine_tell_of_cancelled(struct sched *s, struct engine *e);
void engine_tell_of_priorities(struct sched *s, struct engine *e);

#endif
