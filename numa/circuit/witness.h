/*
 * The assignment of one partition in expanded form: 32 bytes a variable, and the rows' values
 * a, b, c. This is what the CPU prover takes and what tests compare with.
 *
 * An assignment belongs to one thread while it is made and may be read by any afterwards.
 */
#ifndef CIRCUIT_WITNESS_H
#define CIRCUIT_WITNESS_H

#include "numa/circuit/assignment.h"
#include "numa/circuit/porep.h"
#include "numa/workers.h"

/* The two parts of its memory: what stays until the proof is verified (variables and densities), and the rows' values, which the
 * prover consumes. */
struct assignment_parts {
    size_t witness_bytes, evaluation_bytes;
};
void assignment_parts(const struct sector_size *size, struct assignment_parts *out);

/* Lays *out out over such memory of the caller's, whose parts begin at multiples of 64. Nothing is written there. */
void assignment_place(const struct sector_size *size, void *witness, void *evaluation,
                      struct assignment *out);

/* Synthesizes partition `partition` of `c1`, which has the size of *w, on all of `workers` (may be NULL) into *w, whatever that
 * held before. As porep_synthesize, or -ENOMEM. */
int witness_fill(const struct c1 *c1, uint32_t partition, struct workers *workers,
                 struct assignment *w, struct errmsg *err);

/* The same in memory of its own: *out is set on success; end it with assignment_destroy. */
int witness_assign(const struct c1 *c1, uint32_t partition, struct workers *workers,
                   struct assignment **out, struct errmsg *err);

void assignment_destroy(struct assignment *w);

/* Bytes that witness_assign takes for a size. */
size_t assignment_bytes(const struct sector_size *size);

#endif
