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

/* The initial value, in constant bits. */
void sha256_iv(struct sha256_word state[8]);

/* One block of 512 bits in message order: each byte from its most significant bit. */
void sha256_compress(struct cs *cs, const struct boolean block[SHA256_BLOCK_BITS],
                     struct sha256_word state[8]);

/* The digest of `len` bits, a multiple of 8, in message order; `digest` likewise. */
void sha256_bits(struct cs *cs, const struct boolean *bits, size_t len,
                 struct boolean digest[SHA256_DIGEST_BITS]);

#endif
