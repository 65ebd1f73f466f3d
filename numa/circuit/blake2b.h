/*
 * BLAKE2b (RFC 7693) of short messages, with or without key.
 *
 * Own code, although libcrypto has the hash: there it can fail for want of memory, and the graph and
 * the challenges, which are plain functions of their arguments, would have to fail with it. Large
 * inputs (parameter files) are better hashed by libcrypto. Any thread may call it.
 */
#ifndef CIRCUIT_BLAKE2B_H
#define CIRCUIT_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

#define BLAKE2B_BLOCK_BYTES 128

struct blake2b_input {
    const void *key; /* at most 64 bytes; may be NULL when key_len is 0 */
    size_t key_len;
    const void *message; /* at most BLAKE2B_BLOCK_BYTES */
    size_t message_len;
};

/* Writes `out_len` (1 to 64) bytes. */
void blake2b(uint8_t *out, size_t out_len, const struct blake2b_input *in);

#endif
