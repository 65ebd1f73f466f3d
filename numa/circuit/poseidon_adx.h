/*
 * The tuned poseidon_hash for x86-64 with BMI2 and ADX; poseidon.c chooses.
 */
#ifndef CIRCUIT_POSEIDON_ADX_H
#define CIRCUIT_POSEIDON_ADX_H

#include "numa/circuit/poseidon.h"

/* False on other machines; then the function below must not be called. */
bool poseidon_adx_available(void);

void poseidon_hash_adx(const struct poseidon *p, const fr_t *preimage, fr_t *out);

#endif
