#include "numa/circuit/blake2b.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "numa/base.h"

/* RFC 7693 2.6: the initial values of SHA-512. */
static const uint64_t initial[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* RFC 7693 2.7; rounds 10 and 11 use rows 0 and 1 again. */
static const uint8_t schedule[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t rotate_right(uint64_t v, unsigned bits)
{
    return v >> bits | v << (64 - bits);
}

static inline void mix(uint64_t v[16], const unsigned at[4], uint64_t x, uint64_t y)
{
    uint64_t a = v[at[0]], b = v[at[1]], c = v[at[2]], d = v[at[3]];

    a += b + x;
    d = rotate_right(d ^ a, 32);
    c += d;
    b = rotate_right(b ^ c, 24);
    a += b + y;
    d = rotate_right(d ^ a, 16);
    c += d;
    b = rotate_right(b ^ c, 63);
    v[at[0]] = a, v[at[1]] = b, v[at[2]] = c, v[at[3]] = d;
}

static void compress(uint64_t h[8], const uint8_t block[BLAKE2B_BLOCK_BYTES], uint64_t total,
                     bool last)
{
    static const unsigned lanes[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14},
                                         {3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12},
                                         {2, 7, 8, 13},  {3, 4, 9, 14}};
    uint64_t v[16], m[16];

    for (int i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = initial[i];
    }
    v[12] ^= total;
    if (last)
        v[14] = ~v[14];
    for (size_t i = 0; i < 16; i++)
        m[i] = load_le64(block + 8 * i);
    for (int round = 0; round < 12; round++)
        for (size_t i = 0; i < 8; i++) {
            const uint8_t *s = schedule[round % 10];
            mix(v, lanes[i], m[s[2 * i]], m[s[2 * i + 1]]);
        }
    for (int i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

void blake2b(uint8_t *out, size_t out_len, const struct blake2b_input *in)
{
    uint8_t block[BLAKE2B_BLOCK_BYTES], digest[64];
    uint64_t h[8], total = 0;

    assert(out_len >= 1 && out_len <= 64 && in->key_len <= 64);
    assert(in->message_len <= BLAKE2B_BLOCK_BYTES);
    memcpy(h, initial, sizeof(h));
    h[0] ^= 0x01010000 ^ (uint64_t)in->key_len << 8 ^ out_len;
    if (in->key_len > 0) {
        memset(block, 0, sizeof(block));
        memcpy(block, in->key, in->key_len);
        total = sizeof(block);
        compress(h, block, total, in->message_len == 0);
    }
    if (in->message_len > 0 || in->key_len == 0) {
        memset(block, 0, sizeof(block));
        if (in->message_len > 0)
            memcpy(block, in->message, in->message_len);
        compress(h, block, total + in->message_len, true);
    }
    for (size_t i = 0; i < 8; i++)
        store_le64(digest + 8 * i, h[i]);
    memcpy(out, digest, out_len);
}
