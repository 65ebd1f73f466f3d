/*
 * Numbers: variables that hold field elements, and their bits (porep-circuit 4.2).
 */
#ifndef CIRCUIT_NUM_H
#define CIRCUIT_NUM_H

#include "numa/circuit/boolean.h"

struct num {
    cs_var var;
    fr_t value;
};

#define NUM_BITS FR_BITS
#define NUM_PACK_BITS (FR_BITS - 1) /* as many bits as always fit a field element */
#define NUM_BYTE_BITS 256           /* of the bytes of a field element */

/* A new variable; no row. */
struct num num_alloc(struct cs *cs, const fr_t *value);

/* A new input equal to `n`. */
void num_inputize(struct cs *cs, const struct num *n);

void num_enforce_equal(struct cs *cs, const struct num *a, const struct num *b);

struct num num_add(struct cs *cs, const struct num *a, const struct num *b);

/* The bits of the canonical value, least significant first. Not strict: the row does not exclude the value
 * plus r. */
void num_to_bits(struct cs *cs, const struct num *n, struct boolean bits[NUM_BITS]);

/* The same as the 32 bytes little endian that a hash reads, each byte from its most significant bit. */
void num_to_byte_bits(struct cs *cs, const struct num *n, struct boolean bits[NUM_BYTE_BITS]);

/* The number that the first NUM_PACK_BITS of `len` bits spell, least significant first. */
struct num num_from_bits(struct cs *cs, const struct boolean *bits, size_t len);

/* The same of the bits of a digest in hash order, its two top bits dropped. */
struct num num_from_byte_bits(struct cs *cs, const struct boolean bits[NUM_BYTE_BITS]);

/* An input that `len` <= NUM_PACK_BITS bits spell, least significant first. */
void num_inputize_bits(struct cs *cs, const struct boolean *bits, size_t len);

/* `len` bits, a multiple of 8, in place: least significant first in each byte to most significant
 * first, or back. */
void bits_reverse_in_bytes(struct boolean *bits, size_t len);

#endif
