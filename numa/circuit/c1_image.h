/*
 * The inside of a struct c1, for the reader, which fills one field by field, and for the checks, which
 * look at vanilla proofs of one that is not complete yet.
 *
 * Everybody else uses c1.h.
 */
#ifndef CIRCUIT_C1_IMAGE_H
#define CIRCUIT_C1_IMAGE_H

#include "numa/circuit/c1.h"
#include "numa/circuit/c1_layout.h"

struct c1 {
    uint8_t *bytes; /* the API form */
    size_t len;
    const struct seal_proof *proof;
    struct c1_layout layout;
    struct test_text *test; /* NULL: a C1 */
};

/* A c1 of `size` whose counts and tags are written, everything else zero and no proof type set.
 * Returns 0 with *out set (end it with c1_destroy) or -ENOMEM. */
int c1_image_create(const struct sector_size *size, struct c1 **out, struct errmsg *err);

/* Sets the proof type. Its size must be the image's. */
void c1_image_set_proof(struct c1 *c1, const struct seal_proof *proof);

/* The proof type with this id. -EBADMSG when there is none, -EINVAL for one that this version does
 * not handle. */
int c1_proof_supported(uint32_t id, const struct seal_proof **out, struct errmsg *err);

/* Check 3 for the fields outside the vanilla proofs, and what the reference's C2 refuses: comm_r, comm_d
 * or seed all zero. Returns 0 or -EBADMSG. */
int c1_image_check_globals(const struct c1 *c1, struct errmsg *err);

#endif
