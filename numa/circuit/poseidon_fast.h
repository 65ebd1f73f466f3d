/*
 * The hash of poseidon.h, tuned: for those who have tens of thousands to compute at once.
 *
 * Same constants, same results (the tests compare the two), two thirds of the time. Any thread may call
 * it; the first to need an arity makes its tables.
 */
#ifndef CIRCUIT_POSEIDON_FAST_H
#define CIRCUIT_POSEIDON_FAST_H

#include "numa/circuit/poseidon.h"

/* As poseidon_hash. */
void poseidon_fast_hash(uint32_t arity, const fr_t *preimage, fr_t *out);

/* Every variable that the gadget (poseidon_gadget.h) allocates for this hash, in its order: poseidon_variables(arity) of
 * them, the digest last. */
void poseidon_fast_trace(uint32_t arity, const fr_t *preimage, fr_t *variables);

/* porep-circuit 3.7: each S-box but the folded one takes three, and its input one where it is no preimage; the digest is one. */
static inline uint32_t poseidon_variables(uint32_t arity)
{
    const struct poseidon *p = poseidon_constants(arity);
    const uint32_t sboxes = p->width * POSEIDON_FULL_ROUNDS + p->partial_rounds;

    return 3 * (sboxes - 1) + (sboxes - arity);
}

#endif
