/*
 * What is in flight on a node: partitions and bytes of each stage, and how many came to which end.
 *
 * Relaxed atomics: counting costs a few instructions and is exact, a reader may see one thread's two counts in either order. When the
 * node is idle everything of flight_counts.now is zero.
 *
 * Any thread may call anything here.
 */
#ifndef DAEMON_FLIGHT_H
#define DAEMON_FLIGHT_H

#include <stdatomic.h>

#include "numa/base.h"

enum flight_stage {
    FLIGHT_WAITING,      /* in the engine, without memory yet */
    FLIGHT_SYNTHESIZING, /* from here on with a permit */
    FLIGHT_READY,        /* waits for the prover */
    FLIGHT_PROVING,      /* until prove_start is done: then the evaluation part goes back */
    FLIGHT_FINISHING,    /* prove_finish and verification */
    FLIGHT_STAGES
};

enum flight_event {
    FLIGHT_VERIFIED,
    FLIGHT_INVALID, /* proofs that did not verify; each is made again */
    FLIGHT_FAILED,
    FLIGHT_CANCELLED,
    FLIGHT_EVENTS
};

/* Plain numbers: what travels to the front. */
struct flight_counts {
    struct flight_now {
        uint32_t partitions;
        uint64_t bytes; /* of their slots */
    } now[FLIGHT_STAGES];
    uint64_t entered[FLIGHT_STAGES];  /* ever */
    uint64_t stage_us[FLIGHT_STAGES]; /* ever, of those that have left it */
    uint64_t events[FLIGHT_EVENTS];   /* ever */
};

/* When a partition came to each stage, and at the end when it was proved: CLOCK_MONOTONIC in microseconds. */
struct flight_course {
    int64_t us[FLIGHT_STAGES + 1];
    int32_t prover; /* that did it */
};

struct flight {
    struct {
        _Atomic uint32_t partitions;
        _Atomic uint64_t bytes, entered, us;
    } stages[FLIGHT_STAGES];
    _Atomic uint64_t events[FLIGHT_EVENTS];
};

/* "waiting", "synthesizing", "ready", "proving", "finishing" */
const char *flight_stage_name(enum flight_stage stage);

/* A partition comes with so many bytes of slot, and goes with as many; `us`: how long it was there. */
void flight_enter(struct flight *f, enum flight_stage stage, uint64_t bytes);
void flight_leave(struct flight *f, enum flight_stage stage, uint64_t bytes, uint64_t us);
void flight_count(struct flight *f, enum flight_event event);

void flight_read(struct flight *f, struct flight_counts *out);
bool flight_is_idle(const struct flight_counts *c);

#endif
