/*
 * Blocks of the ChaCha key stream, for any number of rounds: 8 for DRG parents, 20 for synthetic
 * challenges. A block can be asked for by its number alone. Any thread may call it.
 */
#ifndef CIRCUIT_CHACHA_H
#define CIRCUIT_CHACHA_H

#include <stdint.h>

#define CHACHA_BLOCK_WORDS 16
#define CHACHA_BLOCK_BYTES 64

struct chacha {
    uint32_t key[8];
    uint32_t counter_nonce[4]; /* state words 12 to 15; the block number is added to the first */
    unsigned rounds;           /* even */
};

void chacha_block(const struct chacha *c, uint32_t number, uint32_t out[CHACHA_BLOCK_WORDS]);

#endif
