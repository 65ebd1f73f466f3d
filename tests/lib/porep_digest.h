/*
 * The structure of a PoRep circuit in one pass: digest, counts, densities and where its steps begin.
 */
#ifndef TESTS_LIB_POREP_DIGEST_H
#define TESTS_LIB_POREP_DIGEST_H

#include "numa/circuit/porep.h"
#include "tests/lib/r1cs.h"

struct porep_structure {
    char digest[R1CS_DIGEST_HEX]; /* porep-circuit 7.3 */
    uint32_t inputs, aux;
    uint64_t constraints;
    uint32_t a_aux_density, b_input_density, b_aux_density;
};

/* Of the circuit with all values zero. `step` (may be NULL) is told where steps begin. */
void porep_structure(const struct sector_size *size,
                     void (*step)(void *ctx, const char *name, const struct cs *cs), void *ctx,
                     struct porep_structure *out);

#endif
