/*
 * Poseidon over F_r as Filecoin uses it: width = arity + 1, x^5, the Merkle tree tag in state
 * position 0, the digest in position 1 (porep-circuit 3).
 *
 * The constants are computed, not stored: the round constants by the Grain LFSR, the rest from the
 * Cauchy matrix. Any thread may call anything here; the first to call makes the constants.
 */
#ifndef CIRCUIT_POSEIDON_H
#define CIRCUIT_POSEIDON_H

#include "numa/circuit/fr.h"

#define POSEIDON_MAX_ARITY 11
#define POSEIDON_MAX_WIDTH (POSEIDON_MAX_ARITY + 1)
#define POSEIDON_FULL_ROUNDS 8
#define POSEIDON_HALF_FULL (POSEIDON_FULL_ROUNDS / 2)
#define POSEIDON_MAX_PARTIAL 57

#define POSEIDON_ARITIES 4
extern const uint32_t poseidon_arities[POSEIDON_ARITIES]; /* 2, 4, 8, 11 */

/* A sparse matrix of the optimised form (porep-circuit 3.5):
 * s'[0] = sum of s[i] * w[i]; s'[j] = s[j] + v[j - 1] * s[0]. */
struct poseidon_sparse {
    fr_t w[POSEIDON_MAX_WIDTH]; /* `width` of them */
    fr_t v[POSEIDON_MAX_ARITY]; /* `width` - 1 of them */
};

/* The constants of one arity. */
struct poseidon {
    uint32_t arity, width, partial_rounds;
    uint32_t index; /* in poseidon_arities */
    fr_t tag;       /* 2^arity - 1 */
    /* Textbook form: round constants K(round)[i] at round * width + i. */
    fr_t round_constants[(POSEIDON_FULL_ROUNDS + POSEIDON_MAX_PARTIAL) * POSEIDON_MAX_WIDTH];
    fr_t mds[POSEIDON_MAX_WIDTH][POSEIDON_MAX_WIDTH];
    /* Optimised form: `compressed` holds width * POSEIDON_FULL_ROUNDS + partial_rounds values. */
    fr_t compressed[POSEIDON_FULL_ROUNDS * POSEIDON_MAX_WIDTH + POSEIDON_MAX_PARTIAL];
    fr_t pre_sparse[POSEIDON_MAX_WIDTH][POSEIDON_MAX_WIDTH];
    struct poseidon_sparse sparse[POSEIDON_MAX_PARTIAL];
};

/* Arity 2, 4, 8 or 11; NULL for any other. */
const struct poseidon *poseidon_constants(uint32_t arity);

/* Number of rounds, full and partial. */
static inline uint32_t poseidon_rounds(const struct poseidon *p)
{
    return POSEIDON_FULL_ROUNDS + p->partial_rounds;
}

static inline bool poseidon_round_is_full(const struct poseidon *p, uint32_t round)
{
    return round < POSEIDON_HALF_FULL || round >= POSEIDON_HALF_FULL + p->partial_rounds;
}

/* The linear layer that ends round `round` in the optimised form, on a state of `width` elements. */
void poseidon_linear_layer(const struct poseidon *p, uint32_t round, fr_t *state);

/* Digest of `arity` field elements; arity must be 2, 4, 8 or 11. The plain form: whoever has thousands to
 * compute takes poseidon_fast.h. */
void poseidon_hash(uint32_t arity, const fr_t *preimage, fr_t *out);

#endif
