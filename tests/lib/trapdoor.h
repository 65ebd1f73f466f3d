/*
 * What a proof under the development parameters must be, to the byte, without parameters, transform or
 * multi-scalar multiplication: from the five published scalars and one pass over the circuit (c2-formats 7.2).
 *
 * Shares nothing with the prover, the setup or the verifier but blst's arithmetic.
 */
#ifndef TESTS_LIB_TRAPDOOR_H
#define TESTS_LIB_TRAPDOOR_H

#include "gpu/proof.h"
#include "numa/circuit/porep.h"

struct trapdoor;

/* One of the five scalars: "alpha", "beta", "gamma", "delta", "tau". */
fr_t trapdoor_secret(const char *name);

/* One partition of a C1; c1 NULL: the circuit of `size` with all values zero, which is enough for the key. Takes
 * 32 bytes for each variable. Returns 0 with *out set (end it with trapdoor_destroy), or as porep_synthesize. */
int trapdoor_create(const struct sector_size *size, const struct c1 *c1, uint32_t partition,
                    struct trapdoor **out, struct errmsg *err);
void trapdoor_destroy(struct trapdoor *t);

/* The proof for r and s. */
void trapdoor_proof(const struct trapdoor *t, const fr_t *r, const fr_t *s, uint8_t out[PROOF_BYTES]);

/* The .vk file, 868 + 96 * inputs bytes. */
void trapdoor_vk(const struct trapdoor *t, uint8_t *out);

/* Public inputs without ONE, as the circuit has them. */
const fr_t *trapdoor_inputs(const struct trapdoor *t);

#endif
