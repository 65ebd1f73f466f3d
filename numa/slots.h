/*
 * Slots: a node's memory for partitions in flight, cut out of its arena once. A permit to work on a partition is a slot: whoever has
 * none has no memory, so what is in flight is bounded by construction.
 *
 * A slot has two parts. The witness stays until the proof is verified; the evaluation (the rows' values, much larger) is given back as
 * soon as the prover has used it. There may be fewer evaluation parts than witnesses, and none at all where the prover evaluates by
 * itself; a slot is taken with both or not at all.
 *
 * Any thread may call anything but slots_create and slots_destroy. Nothing waits: who gets the next slot is for the caller to say.
 */
#ifndef NUMA_SLOTS_H
#define NUMA_SLOTS_H

#include "numa/arena.h"

#define SLOTS_MAX 64

struct slots_shape {
    size_t witness_bytes, evaluation_bytes; /* of a part; evaluation_bytes 0: there are none */
    uint32_t witnesses,
        evaluations; /* how many parts; 1 to SLOTS_MAX, evaluations at most witnesses */
};

struct slot {
    void *witness, *evaluation; /* evaluation: NULL once it is given back */
};

/* What is in use at a moment, and what came back ever. */
struct slots_counts {
    uint32_t witnesses, evaluations;
    uint32_t witnesses_peak;
    uint64_t bytes, bytes_peak;
    uint64_t returned_bytes; /* ever; counted when they are returned */
};

struct slots;

/* Bytes that the parts take of an arena. SIZE_MAX when that is beyond all bounds. */
size_t slots_bytes(const struct slots_shape *shape);

/* Cuts the slots out of `arena`, which must outlive them. 0; -EINVAL for an impossible shape; -ENOMEM when the arena is too small. */
int slots_create(struct arena *arena, const struct slots_shape *shape, struct slots **out,
                 struct errmsg *err);
/* All slots must have been returned. The memory is the arena's. */
void slots_destroy(struct slots *s);

const struct slots_shape *slots_shape(const struct slots *s);

/* False when there is no free slot. */
bool slots_take(struct slots *s, struct slot *out);
/* True when slots_take would give one. */
bool slots_free(struct slots *s);
/* The first step back; nothing when it has been done. */
void slots_return_evaluation(struct slots *s, struct slot *slot);
/* The second step: all that is left. *slot is cleared. */
void slots_return(struct slots *s, struct slot *slot);

void slots_counts(struct slots *s, struct slots_counts *out);

#endif
