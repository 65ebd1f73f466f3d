/*
 * The JSON forms of a C1 (c2-formats 1.1, 1.2): bare, in the wrapper, in the task form; keys in any order.
 *
 * Takes the text as it arrives and puts what it finds into a c1_build. A c1_document belongs to one
 * thread.
 */
#ifndef CIRCUIT_C1_DOCUMENT_H
#define CIRCUIT_C1_DOCUMENT_H

#include "numa/circuit/c1_build.h"

struct c1_document;

/* `text` says in errors what offsets count in ("file"); they begin at `offset`. `build` and `text` are
 * borrowed until the end. Returns 0 or -ENOMEM. */
int c1_document_create(struct c1_build *build, const char *text, uint64_t offset,
                       struct c1_document **out);
void c1_document_destroy(struct c1_document *d);

/* Returns 0, or -EBADMSG, -EINVAL, -ENOMEM with err saying where. */
int c1_document_feed(struct c1_document *d, const uint8_t *bytes, size_t len, struct errmsg *err);

/* After the last byte. Returns 0 when the document is complete and has a C1 in it: what is left to do
 * is c1_build_finish. */
int c1_document_finish(struct c1_document *d, struct errmsg *err);

#endif
