/*
 * A commit-phase-1 output in decoded form.
 *
 * The decoded form of every wrapping (c2-formats 1.1 to 1.3) is one byte string: the API form in
 * bincode. All its counts are fixed by the sector size, so every field has a fixed offset and the
 * accessors below are arithmetic, not parsing. It is what front and engine hand to each other and
 * what decides whether two files are the same content.
 *
 * A struct c1 is immutable once made and may be read by any thread.
 */
#ifndef CIRCUIT_C1_H
#define CIRCUIT_C1_H

#include "numa/base.h"
#include "numa/circuit/sector.h"
#include "numa/circuit/test_document.h"

#define DIGEST_BYTES 32
#define C1_DECODED_MAX \
    ((size_t)128 << 20) /* bytes of a decoded form: far above any that is supported */

struct c1;

/* Takes over `bytes` (malloc'ed, `len` long): an API form in bincode. Checks 1 to 3 of c2-formats 1.5
 * (known proof type, matching size variant, every count, every index below its arity, digests that
 * are field elements, exact length) and that the proof type is one this version handles. Returns 0
 * with *out set (end it with c1_destroy), -EBADMSG when it is no such thing, -EINVAL when it is one
 * that is not supported (non-interactive), -ENOMEM. `bytes` is freed on failure. */
int c1_from_bincode(uint8_t *bytes, size_t len, struct c1 **out, struct errmsg *err);

/* The same from a descriptor that holds nothing else (a memfd or a file), read from offset 0. Also
 * -EFBIG above C1_DECODED_MAX and what fstat and pread give. */
int c1_from_fd(int fd, struct c1 **out, struct errmsg *err);

/* A document of the test kind in the shape of a C1: its decoded form is its text, its partitions are those it asks for, its digests are
 * zero and it has no challenges. It passes for 2 KiB. 0 with *out set, or -ENOMEM. */
int c1_from_test(const struct test_document *doc, struct c1 **out, struct errmsg *err);
/* NULL for a C1. */
const struct test_document *c1_test_document(const struct c1 *c1);

void c1_destroy(struct c1 *c1);

/* Exact length in bytes of the API form of a proof type. */
size_t c1_bincode_bytes(const struct seal_proof *proof);

const uint8_t *c1_bincode(const struct c1 *c1, size_t *len);

/* SHA-256 of the API form: equal for all wrappings of one content. */
void c1_content_id(const struct c1 *c1, uint8_t id[DIGEST_BYTES]);

const struct seal_proof *c1_seal_proof(const struct c1 *c1);
const struct sector_size *c1_size(const struct c1 *c1);
uint32_t c1_partitions(const struct c1 *c1);

/* Each points to 32 bytes. */
const uint8_t *c1_comm_r(const struct c1 *c1);
const uint8_t *c1_comm_d(const struct c1 *c1);
const uint8_t *c1_replica_id(const struct c1 *c1);
const uint8_t *c1_seed(const struct c1 *c1);
const uint8_t *c1_ticket(const struct c1 *c1);

/* One element of a Merkle path. */
struct path_element {
    const uint8_t *hashes; /* (arity - 1) * 32 bytes: siblings by position, own position skipped */
    uint32_t arity;
    uint32_t index; /* of the node among its siblings, < arity */
};

/* A Merkle proof. Elements are numbered leaf side first: base, sub, top. */
struct merkle_proof {
    const uint8_t *root, *leaf; /* 32 bytes each */
    const uint8_t *first;       /* where the elements begin: for c1_path_element alone */
    const struct sector_size *size;
    uint32_t levels;
    bool tree_d;
};

struct path_element c1_path_element(const struct merkle_proof *proof, uint32_t level);
/* Position of the leaf in its tree. */
uint64_t c1_path_position(const struct merkle_proof *proof);

struct column_proof {
    uint32_t index;      /* node */
    const uint8_t *rows; /* layers * 32 bytes, layer 1 first */
    struct merkle_proof inclusion;
};

struct label_proof {
    const uint8_t *parents; /* 37 * 32 bytes */
    uint32_t layer_index;   /* 1 = first */
    uint64_t node;
};

/* The vanilla proof of one challenge, all pointers into the c1. */
struct challenge_proof {
    struct merkle_proof comm_d, comm_r_last;
    struct column_proof c_x;
    struct column_proof parents[PARENTS];  /* 6 DRG, then 8 expander */
    struct label_proof labels[MAX_LAYERS]; /* `layers` of them */
    struct label_proof encoding;
};

/* Challenge `i` of partition `partition`; both must be in range. */
void c1_challenge(const struct c1 *c1, uint32_t partition, uint32_t i, struct challenge_proof *out);

#endif
