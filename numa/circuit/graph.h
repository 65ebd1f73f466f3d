/*
 * What a verifier knows without the circuit: parents in the graph, challenges, replica id, public
 * inputs (porep-circuit 6).
 *
 * Independent of the circuit code on purpose: no proof leaves that these inputs do not accept.
 * Any thread may call anything here.
 */
#ifndef CIRCUIT_GRAPH_H
#define CIRCUIT_GRAPH_H

#include "numa/base.h"
#include "numa/circuit/fr.h"
#include "numa/circuit/sector.h"

/* Seeds and keys of the graph of one porep id. */
struct graph {
    uint64_t nodes;
    enum api_version api;
    uint8_t drg_seed[28];
    uint64_t feistel_keys[4];
};

void graph_init(struct graph *g, uint64_t nodes, const uint8_t porep_id[32], enum api_version api);

/* 6 DRG parents, then 8 expander parents, of `node`. */
void graph_parents(const struct graph *g, uint64_t node, uint64_t parents[PARENTS]);

/* SHA-256(prover_id || BE64(sector) || ticket || comm_d || porep_id), top two bits cleared. */
void replica_id_compute(uint8_t out[32], const uint8_t prover_id[32], uint64_t sector_number,
                        const uint8_t ticket[32], const uint8_t comm_d[32],
                        const uint8_t porep_id[32]);

/* Prover id of a miner's actor id: unsigned LEB128, zero filled. */
void prover_id_from_miner(uint8_t out[32], uint64_t miner);

struct challenge_params {
    enum challenge_kind kind;
    uint64_t nodes;
    const uint8_t *replica_id, *comm_r, *seed; /* 32 bytes each */
};

/* Size of the set that synthetic challenges are picked from, or all nodes if there are fewer. */
#define SYNTHETIC_CHALLENGES (UINT64_C(1) << 18)

/* Number `q` of the synthetic set; needs no seed. */
uint64_t synthetic_challenge(const struct challenge_params *p, uint32_t q);
/* Which of a set of `challenges` the seed selects as challenge `j` of the proof; needs no comm_r. */
uint32_t synthetic_selection(const struct challenge_params *p, uint32_t challenges, uint32_t j);

/* The `n` challenges of partition `k`, in order (porep-circuit 6.5). */
void challenges_derive(const struct challenge_params *p, uint32_t n, uint32_t k, uint64_t *out);

struct public_params {
    const struct seal_proof *proof;
    const uint8_t *porep_id; /* 32 bytes; NULL: the registered one */
    const uint8_t *comm_r, *comm_d, *replica_id, *seed;
};

/* Those of a C1, which is borrowed; the porep id is the registered one. */
struct c1;
struct public_params public_params_of(const struct c1 *c1);

/* Public inputs of partition `k` without ONE: 3 + 18 * challenges values. Returns 0, or -EINVAL when
 * comm_r, comm_d or replica_id is not below the modulus. */
int public_inputs(const struct public_params *p, uint32_t k, fr_t *out, struct errmsg *err);

static inline uint32_t public_inputs_len(const struct sector_size *size)
{
    return 3 + CHALLENGE_INPUTS * size->challenges;
}

#endif
