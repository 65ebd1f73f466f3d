/*
 * A C1 in the making: where the readers of JSON and of bincode put what they find, and what is checked
 * of it on the way.
 *
 * Readers put each vanilla proof in its place, in order, and say when it is there; the globals may come
 * before or after. A c1_build belongs to one thread.
 */
#ifndef CIRCUIT_C1_BUILD_H
#define CIRCUIT_C1_BUILD_H

#include "numa/circuit/c1_check.h"
#include "numa/circuit/c1_image.h"
#include "numa/circuit/c1_reader.h"

#define C1_GLOBALS 5 /* comm_r .. ticket */

struct c1_build {
    enum c1_checks checks;
    struct workers *workers;
    struct c1 *c1;                  /* NULL until the sector size is known */
    const struct seal_proof *proof; /* NULL until it is known */
    bool proof_unsaid;              /* an inner form: the proof type is to be found out */
    uint8_t globals[C1_GLOBALS][32];
    struct c1_extra extra;
    uint32_t proofs_there;   /* vanilla proofs in place */
    uint32_t proofs_checked; /* of which the paths were followed */
    struct c1_paths *paths;
    bool described; /* the error says already where it is */
};

void c1_build_init(struct c1_build *b, enum c1_checks checks, struct workers *workers);
void c1_build_fini(struct c1_build *b);

/* The sector size: makes room. -EBADMSG when the proof type says otherwise, -ENOMEM. */
int c1_build_set_size(struct c1_build *b, const struct sector_size *size, struct errmsg *err);
/* The proof type, by its id. -EBADMSG, also when the vanilla proofs are of another size; -EINVAL. */
int c1_build_set_proof(struct c1_build *b, uint32_t id, struct errmsg *err);

/* Where global `field` (C1_COMM_R .. C1_TICKET) goes, 32 bytes. */
uint8_t *c1_build_global(struct c1_build *b, size_t field);

/* The next vanilla proof is in place and its form is checked. */
int c1_build_proof_there(struct c1_build *b, struct errmsg *err);

/* Everything is in place: the checks that are left. Returns 0 with *out set. */
int c1_build_finish(struct c1_build *b, struct c1 **out, struct errmsg *err);

#endif
