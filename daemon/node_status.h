/*
 * What an engine tells of its node: plain numbers that travel to the front and are shown there.
 */
#ifndef DAEMON_NODE_STATUS_H
#define DAEMON_NODE_STATUS_H

#include "daemon/flight.h"
#include "numa/slots.h"

/* Where proofs are made, and on what. */
struct node_memory {
    uint32_t pages; /* enum arena_pages */
    int32_t node;   /* whose memory; -1: of no one node */
    bool mapped, bound, locked;
    int32_t misplaced_node; /* where misplaced_bytes lie; -1: there are none */
    uint64_t arena_bytes, huge_bytes, misplaced_bytes;
    uint64_t scratch_bytes;   /* of the arena */
    uint64_t params_bytes;    /* beside it, of the parameters in use */
    uint64_t limit_bytes;     /* of all that */
    struct slots_shape shape; /* no witnesses: there are no slots yet */
    struct slots_counts slots;
};

#define NODE_PROVERS_MAX 16

struct node_prover {
    char name[32];                /* "cpu", "cuda", "simulated" */
    int32_t gpu;                  /* its number, -1: it is none */
    uint32_t proving, finishing;  /* partitions */
    uint64_t proofs, invalid;     /* ever; invalid: did not verify */
    uint64_t start_us, finish_us; /* ever, in these steps */
    int64_t step_ms;              /* of the step that has lasted longest; 0: none */
    bool stalled;                 /* it has lasted too long */
    bool set_aside;               /* it has made too many wrong proofs */
};

#define NODE_SIZES 10 /* of sector_sizes */

/* The parameters of one circuit. */
struct node_params {
    bool held;    /* at least their key */
    bool loading; /* so far: percent */
    bool transformed;
    uint32_t percent;
    uint32_t trust;        /* enum srs_trust */
    uint64_t host_bytes;   /* of points in the engine's own memory */
    uint64_t device_bytes; /* that they take in that of each of: */
    uint32_t devices;      /* bit i: prover i has them */
    uint32_t streamed;     /* likewise, where the points come anew for each proof */
    int64_t used_ms;       /* since they were used last; -1: never */
};

struct node_status {
    struct flight_counts flight;
    struct node_memory memory;
    struct node_params params[NODE_SIZES]; /* as sector_sizes */
    uint32_t provers_len;
    struct node_prover provers[NODE_PROVERS_MAX];
};

#endif
