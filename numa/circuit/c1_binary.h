/*
 * The bincode forms of a C1 (c2-formats 1.3): API form, inner form, and the API form between a tag and the
 * prover's identity. Which one it is follows from the first bytes.
 *
 * Takes the bytes as they arrive and puts them into a c1_build. Belongs to one thread.
 */
#ifndef CIRCUIT_C1_BINARY_H
#define CIRCUIT_C1_BINARY_H

#include "numa/circuit/c1_build.h"

/* Enough to tell the forms and the sector sizes apart: up to the length of the first path. */
#define C1_BINARY_PREFIX_BYTES 96
/* What follows the API form in the third form: prover id, sector number. */
#define C1_BINARY_TRAILER_BYTES 40

/* All zero at the beginning but for `build`, which is borrowed. */
struct c1_binary {
    struct c1_build *build;
    uint8_t prefix[C1_BINARY_PREFIX_BYTES];
    size_t prefix_len;
    bool has_trailer;
    size_t at; /* bytes of the decoded form that are there */
    uint8_t trailer[C1_BINARY_TRAILER_BYTES];
    size_t trailer_len;
};

int c1_binary_feed(struct c1_binary *b, const uint8_t *bytes, size_t len, struct errmsg *err);

/* After the last byte: what is left to do is c1_build_finish. */
int c1_binary_finish(struct c1_binary *b, struct errmsg *err);

#endif
