/*
 * Poseidon in the circuit: neptune's "legacy" form, which allocates the input of every S-box
 * (porep-circuit 3.7).
 */
#ifndef CIRCUIT_POSEIDON_GADGET_H
#define CIRCUIT_POSEIDON_GADGET_H

#include "numa/circuit/num.h"
#include "numa/circuit/poseidon.h"

/* The digest of `arity` numbers; arity must be 2, 4, 8 or 11. */
struct num poseidon_num(struct cs *cs, const struct num *preimage, uint32_t arity);

#endif
