/*
 * The PoRep circuit: gadgets put together as porep-circuit 5 says, for every sector size and for
 * interactive, synthetic and non-interactive challenges alike.
 *
 * One thread a synthesis; several syntheses may run at once.
 */
#ifndef CIRCUIT_POREP_H
#define CIRCUIT_POREP_H

#include "numa/circuit/c1.h"
#include "numa/circuit/cs.h"

/* Exact counts of a size's circuit (porep-circuit 7.2). rows = constraints + inputs. */
struct porep_counts {
    uint32_t inputs, aux; /* inputs with ONE */
    uint64_t constraints, rows;
    uint32_t log2_domain;
};

/* From the closed form of porep-circuit 5.4. */
void porep_counts(const struct sector_size *size, struct porep_counts *out);

/* Synthesizes one partition into `sink`: every variable with its value, every row in order, the closing
 * rows x_i * 0 = 0 last (porep-circuit 1.3). Returns 0; -EBADMSG when a value that enters the circuit is
 * not below the modulus or the roots of the partition differ. */
int porep_synthesize(const struct c1 *c1, uint32_t partition, const struct cs_sink *sink,
                     struct errmsg *err);

/* The same circuit with all values zero: for the R1CS alone (setup, digests). */
int porep_synthesize_blank(const struct sector_size *size, const struct cs_sink *sink,
                           struct errmsg *err);

#endif
