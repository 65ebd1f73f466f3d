#include "numa/circuit/chacha.h"

#include <string.h>

static inline uint32_t rotate_left(uint32_t v, unsigned bits)
{
    return v << bits | v >> (32 - bits);
}

static inline void quarter_round(uint32_t x[16], unsigned a, unsigned b, unsigned c, unsigned d)
{
    x[a] += x[b], x[d] = rotate_left(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = rotate_left(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = rotate_left(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = rotate_left(x[b] ^ x[c], 7);
}

void chacha_block(const struct chacha *c, uint32_t number, uint32_t out[CHACHA_BLOCK_WORDS])
{
    /* "expand 32-byte k" */
    static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    uint32_t start[16], x[16];

    memcpy(start, constants, sizeof(constants));
    memcpy(start + 4, c->key, sizeof(c->key));
    memcpy(start + 12, c->counter_nonce, sizeof(c->counter_nonce));
    start[12] += number;
    memcpy(x, start, sizeof(x));
    for (unsigned round = 0; round < c->rounds; round += 2) {
        for (unsigned i = 0; i < 4; i++)
            quarter_round(x, i, i + 4, i + 8, i + 12);
        for (unsigned i = 0; i < 4; i++)
            quarter_round(x, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12);
    }
    for (unsigned i = 0; i < 16; i++)
        out[i] = x[i] + start[i];
}
