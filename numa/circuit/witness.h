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

/* Synthesizes partition `partition` of `c1`, on all of `workers` (may be NULL). Returns 0 with *out
 * set (end it with assignment_destroy), or as porep_synthesize, or -ENOMEM. */
int witness_assign(const struct c1 *c1, uint32_t partition, struct workers *workers,
                   struct assignment **out, struct errmsg *err);

void assignment_destroy(struct assignment *w);

/* Bytes that witness_assign takes for a size: what a permit must cover. */
size_t assignment_bytes(const struct sector_size *size);

#endif
