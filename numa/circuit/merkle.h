/*
 * Merkle paths in the circuit (porep-circuit 4.7 to 4.10).
 */
#ifndef CIRCUIT_MERKLE_H
#define CIRCUIT_MERKLE_H

#include "numa/circuit/num.h"

#define MERKLE_MAX_ARITY 8

enum merkle_hash { MERKLE_SHA256, MERKLE_POSEIDON };

/* One level of a path, decoded. */
struct merkle_level {
    uint32_t arity; /* 2, 4 or 8 */
    uint32_t index; /* of the node among its siblings */
    fr_t siblings[MERKLE_MAX_ARITY - 1];
};

/* cond ? a : b */
struct num merkle_pick(struct cs *cs, struct boolean cond, const struct num *a,
                       const struct num *b);

/* Puts `el` at the position that `bits` spell among `others`, `arity` - 1 numbers that keep their order. */
void merkle_insert(struct cs *cs, const struct num *el, const struct boolean *bits,
                   const struct num *others, uint32_t arity, struct num *out);

/* Parent of two nodes of tree D. */
struct num merkle_sha256_node(struct cs *cs, const struct num nodes[2]);

/* The parent of `node`, and the index bits of the level: log2 of its arity. */
struct num merkle_climb(struct cs *cs, enum merkle_hash hash, const struct num *node,
                        const struct merkle_level *level, struct boolean *bits);

/* The root that a path leads to; the position of the leaf becomes an input. Levels are leaf side first. */
struct num merkle_path(struct cs *cs, enum merkle_hash hash, const struct num *leaf,
                       const struct merkle_level *levels, uint32_t n_levels);

/* Shows that the path of `leaf` leads to `root`. */
void merkle_inclusion(struct cs *cs, enum merkle_hash hash, const struct num *leaf,
                      const struct merkle_level *levels, uint32_t n_levels, const struct num *root);

#endif
