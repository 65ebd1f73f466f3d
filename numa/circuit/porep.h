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
#include "numa/circuit/label.h"
#include "numa/circuit/merkle.h"

/* Exact counts of a size's circuit (porep-circuit 7.2). rows = constraints + inputs. */
struct porep_counts {
    uint32_t inputs, aux; /* inputs with ONE */
    uint32_t values;      /* inputs, and the aux variables that are no bits */
    uint64_t constraints, rows;
    uint32_t log2_domain;
};

/* From the closed form of porep-circuit 5.4. */
void porep_counts(const struct sector_size *size, struct porep_counts *out);

/* Synthesizes one partition into `sink`: every variable with its value, every row in order, the closing
 * rows x_i * 0 = 0 last (porep-circuit 1.3). Returns 0; -EBADMSG when the roots of the
 * partition differ; -ENOMEM. */
int porep_synthesize(const struct c1 *c1, uint32_t partition, const struct cs_sink *sink,
                     struct errmsg *err);

/* The same circuit with all values zero: for the R1CS alone (setup, digests). */
int porep_synthesize_blank(const struct sector_size *size, const struct cs_sink *sink,
                           struct errmsg *err);

/*
 * The pieces, for whoever synthesizes the challenges of a partition side by side. No row connects two
 * challenges: each needs only the header, and the counters that it starts at.
 */

#define POREP_MAX_LEVELS 11   /* of tree C and R */
#define POREP_MAX_D_LEVELS 31 /* of tree D */

/* What a partition has in common. */
struct porep_roots {
    fr_t replica_id, comm_d, comm_r, comm_r_last, comm_c;
};

/* What the circuit takes of one challenge, decoded. */
struct porep_challenge {
    uint64_t node;
    fr_t data_leaf;
    struct merkle_level d_path[POREP_MAX_D_LEVELS];
    struct {
        fr_t labels[MAX_LAYERS]; /* layer 1 first */
        struct merkle_level path[POREP_MAX_LEVELS];
    } parents[PARENTS];
    struct merkle_level r_path[POREP_MAX_LEVELS], c_path[POREP_MAX_LEVELS];
};

/* The header's variables that the challenges use. */
struct porep_header {
    struct num comm_d, comm_r_last, comm_c;
    struct label_bits replica_id;
};

/* From the public inputs and the first challenge. */
void porep_read_roots(const struct c1 *c1, uint32_t partition, struct porep_roots *out);

/* Returns 0, or -EBADMSG when a path of the challenge does not end in `roots`. */
int porep_read_challenge(const struct c1 *c1, uint32_t partition, uint32_t i,
                         const struct porep_roots *roots, struct porep_challenge *out,
                         struct errmsg *err);

/* On an empty system. */
void porep_synthesize_header(struct cs *cs, const struct porep_roots *roots,
                             struct porep_header *out);

void porep_synthesize_challenge(struct cs *cs, const struct sector_size *size,
                                const struct porep_header *header,
                                const struct porep_challenge *challenge);

/* Sets the counters at which challenge `i` starts; i = challenges: at which the last one ends. */
void porep_challenge_start(const struct sector_size *size, uint32_t i, struct cs *at);

#endif
