/*
 * Where test data is found and how it is read: the files in tests/vectors, and the larger ones in the folder
 * that $PROOFD_SHARED names (default ../shared). Programs run from the root of the repository.
 *
 * What goes wrong here ends the test program with a message.
 */
#ifndef TESTS_LIB_VECTORS_H
#define TESTS_LIB_VECTORS_H

#include "gpu/verify.h"
#include "numa/circuit/sector.h"

#define VECTOR_PATH_MAX 512

/* The path of `name` under tests/vectors, else under $PROOFD_SHARED/vectors; false when neither has it. */
bool vector_find(char path[VECTOR_PATH_MAX], const char *name);

/* The whole file, with a NUL after it; free() it. `len` may be NULL. */
char *vector_read(const char *path, size_t *len);

/* Bytes of the hex string that follows `"key":` in `json`. */
void vector_json_hex(const char *json, const char *key, uint8_t *out, size_t len);
/* The string or number that follows `"key":`, at most 127 characters. */
const char *vector_json_value(const char *json, const char *key, char out[128]);

/* What meta.json says of the vector c1/NAME. */
struct vector_meta {
    const struct seal_proof *proof;
    uint8_t comm_d[32], comm_r[32], prover_id[32], replica_id[32], seed[32], ticket[32];
    uint64_t sector_number;
};
void vector_meta(const char *name, struct vector_meta *out);

/* Public inputs (without ONE) of a partition of c1/NAME, and how many; free() them. */
fr_t *vector_inputs(const char *name, uint32_t partition, size_t *len);

/* The 192 bytes of a partition in c1/NAME/FILE; false when the file is not there or has no such line. */
bool vector_proof(const char *name, const char *file, uint32_t partition,
                  uint8_t out[PROOF_BYTES]);

/* The development verifying key of a size, read and checked. */
void vector_vk(const struct sector_size *size, struct vk *out);

/* A scalar from a label, as c2-formats 7.1 makes them: SHA-256, top two bits cleared. */
fr_t vector_label_scalar(const char *label);

#endif
