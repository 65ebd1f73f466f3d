/*
 * What a prover takes of a partition: the variables' values and the rows'. Plain data, for C and C++ alike; witness.h makes it.
 */
#ifndef CIRCUIT_ASSIGNMENT_H
#define CIRCUIT_ASSIGNMENT_H

#include "numa/circuit/fr.h"
#include "numa/circuit/sector.h"

struct assignment {
    const struct sector_size *size;
    uint32_t n_inputs; /* with ONE */
    uint32_t n_aux;
    uint64_t n_rows; /* closing rows included */
    uint32_t log2_domain;
    fr_t *inputs; /* n_inputs */
    fr_t *aux;    /* n_aux */
    fr_t *a, *b;  /* 2^log2_domain each, zero from n_rows on; c = a * b, element by element */
    /* Bit i of word i / 64: the variable occurs in some row's A or B (porep-circuit 1.4). */
    uint64_t *a_aux_density, *b_input_density, *b_aux_density;
    uint32_t a_aux_total, b_input_total, b_aux_total; /* bits set */
};

#endif
