/*
 * Sinks for tests of the circuit: the structural digest of porep-circuit 7.3, and a whole system kept in
 * memory, to be checked and tampered with.
 */
#ifndef TESTS_LIB_R1CS_H
#define TESTS_LIB_R1CS_H

#include <openssl/evp.h>

#include "numa/circuit/cs.h"

#define R1CS_DIGEST_HEX 65

/* SHA-256 over rows as they come. */
struct r1cs_digest;
struct r1cs_digest *r1cs_digest_create(void);
void r1cs_digest_destroy(struct r1cs_digest *d);
/* The sink of its rows. A sink that does more calls r1cs_digest_row itself. */
struct cs_sink r1cs_digest_sink(struct r1cs_digest *d);
void r1cs_digest_row(void *digest, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                     const struct cs_lc *c);
/* The digest with the counts of `cs`, as of a whole system. */
void r1cs_digest_finish(struct r1cs_digest *d, const struct cs *cs, char hex[R1CS_DIGEST_HEX]);

/* SHA-256 of the values of all aux, buffered. */
struct aux_digest;
struct aux_digest *aux_digest_create(void);
void aux_digest_destroy(struct aux_digest *d);
void aux_digest_value(void *digest, uint32_t index, const fr_t *value);
void aux_digest_finish(struct aux_digest *d, char hex[R1CS_DIGEST_HEX]);

/* A system in memory. */
struct r1cs;
struct r1cs *r1cs_create(void);
void r1cs_destroy(struct r1cs *r);
struct cs_sink r1cs_sink(struct r1cs *r);

/* The first row that its values do not satisfy, or -1. */
int64_t r1cs_first_unsatisfied(const struct r1cs *r);

/* Changes each variable but ONE in turn, to 1 - v and to a random value, and calls `survivor` for each that no
 * row notices in one case or the other. Only for a satisfied system. */
void r1cs_tamper(const struct r1cs *r, void (*survivor)(void *ctx, cs_var var), void *ctx);

#endif
