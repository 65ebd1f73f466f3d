/*
 * The assignment of one partition in expanded form: 32 bytes a variable, and the rows' values
 * a, b, c. This is what the CPU prover takes and what tests compare with.
 *
 * An assignment belongs to one thread while it is made and may be read by any afterwards.
 */
#ifndef CIRCUIT_WITNESS_H
#define CIRCUIT_WITNESS_H

#include "numa/circuit/porep.h"
#include "numa/workers.h"

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

/* Synthesizes partition `partition` of `c1`, on all of `workers` (may be NULL). Returns 0 with *out
 * set (end it with assignment_destroy), or as porep_synthesize, or -ENOMEM. */
int witness_assign(const struct c1 *c1, uint32_t partition, struct workers *workers,
                   struct assignment **out, struct errmsg *err);

void assignment_destroy(struct assignment *w);

/* Bytes that witness_assign takes for a size: what a permit must cover. */
size_t assignment_bytes(const struct sector_size *size);

#endif
