/*
 * What proving a circuit takes of a node's memory, how many slots that leaves room for, and whether it fits at all.
 *
 * Arithmetic alone; any thread may use it.
 */
#ifndef DAEMON_PLAN_H
#define DAEMON_PLAN_H

#include "numa/slots.h"

/* What is asked for. */
struct plan_wish {
    const char *name; /* of the circuit, for people: "32GiB" */
    size_t witness_bytes,
        evaluation_bytes;   /* of a slot's parts; evaluation_bytes 0: no such part */
    uint64_t scratch_bytes; /* of the prover, beside slots */
    uint64_t params_bytes;  /* on the host */
    uint32_t permits;       /* slots, if there is room; 1 to SLOTS_MAX */
};

struct plan {
    struct slots_shape slots;
    uint64_t arena_bytes; /* slots and scratch */
    uint64_t total_bytes; /* and parameters */
};

/* As many of the permits as fit `limit_bytes`, which `limit_from` sets ("node 0", "control group /a"). A slot more has a witness
 * than an evaluation part, where there are two: one partition is always past the step that needs its rows. Returns 0, or -ENOMEM when
 * not even one slot fits: err has both numbers. */
int plan_make(const struct plan_wish *wish, uint64_t limit_bytes, const char *limit_from,
              struct plan *out, struct errmsg *err);

/* What one slot and all else take. */
uint64_t plan_least_bytes(const struct plan_wish *wish);

#endif
