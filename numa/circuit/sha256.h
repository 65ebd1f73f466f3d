/*
 * SHA-256 over bits (porep-circuit 4.3 to 4.6).
 */
#ifndef CIRCUIT_SHA256_H
#define CIRCUIT_SHA256_H

#include "numa/circuit/boolean.h"

#define SHA256_BLOCK_BITS 512
#define SHA256_DIGEST_BITS 256

/* A word of 32 bits, least significant first. */
struct sha256_word {
    struct boolean bit[32];
};

/* FIPS 180-4 4.2.2 and 5.3.3. */
extern const uint32_t sha256_round_constants[64], sha256_initial[8];

/* The initial value, in constant bits. */
void sha256_iv(struct sha256_word state[8]);

/* One block of 512 bits in message order: each byte from its most significant bit. */
void sha256_compress(struct cs *cs, const struct boolean block[SHA256_BLOCK_BITS],
                     struct sha256_word state[8]);

/* The end of a message of `len` bits: its last `n_rest` < 512 bits, which make no block, and the padding. */
void sha256_finish(struct cs *cs, const struct boolean *rest, size_t n_rest, uint64_t len,
                   struct sha256_word state[8], struct boolean digest[SHA256_DIGEST_BITS]);

/* The digest of `len` bits, a multiple of 8, in message order; `digest` likewise. */
void sha256_bits(struct cs *cs, const struct boolean *bits, size_t len,
                 struct boolean digest[SHA256_DIGEST_BITS]);

#endif
