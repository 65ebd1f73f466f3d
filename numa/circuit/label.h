/*
 * The label of a node in the circuit (porep-circuit 4.12).
 */
#ifndef CIRCUIT_LABEL_H
#define CIRCUIT_LABEL_H

#include "numa/circuit/num.h"
#include "numa/circuit/sector.h"

#define LABEL_NODE_BITS 64

/* 256 bits of a parent's label, or of the replica id, in hash order. */
struct label_bits {
    struct boolean bit[NUM_BYTE_BITS];
};

#define LABEL_HEAD_BITS 512 /* the first block: all before the parents */
#define LABEL_BITS (LABEL_HEAD_BITS + LABEL_PARENTS * NUM_BYTE_BITS)

/* The head of a label's message: replica_id || layer || node || 20 zero bytes. `node` has its least significant bit first. */
void label_head(const struct label_bits *replica_id, uint32_t layer,
                const struct boolean node[LABEL_NODE_BITS], struct boolean head[LABEL_HEAD_BITS]);

/* SHA-256(replica_id || layer || node || 20 zero bytes || parents), its two top bits dropped. `parents` holds
 * `n_parents` labels, repeated to LABEL_PARENTS; `node` has its least significant bit first. */
struct num label_create(struct cs *cs, const struct label_bits *replica_id, uint32_t layer,
                        const struct boolean node[LABEL_NODE_BITS],
                        const struct label_bits *parents, uint32_t n_parents);

#endif
