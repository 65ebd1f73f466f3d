/*
 * Small random systems of constraints with parameters whose secrets are known: everything that a prover needs, and the
 * exact proof by the formula of c2-formats 7.2, with nothing in common with the prover but the field.
 *
 * What goes wrong here ends the test program.
 */
#ifndef TESTS_LIB_TOY_SYSTEM_H
#define TESTS_LIB_TOY_SYSTEM_H

#include "gpu/groth16.h"
#include "tests/lib/random_group.h"

struct toy {
    struct srs srs;
    struct assignment w; /* the prover overwrites a and b; toy_fill_rows writes them again */
    struct toy_rows *rows;
    fr_t alpha, beta, gamma, delta, tau;
};

/* A satisfied system of `rows` rows (closing rows not counted) with `inputs` inputs, ONE among them. */
struct toy *toy_create(size_t rows, uint32_t inputs, struct random *rng);
void toy_destroy(struct toy *t);

/* The rows' values in w.a and w.b. */
void toy_fill_rows(struct toy *t);

/* Makes the parameters transformed ones (gpu/transform.h), from the secrets. */
void toy_transform(struct toy *t);

/* The proof that a right prover makes. */
void toy_expected(const struct toy *t, const fr_t *r, const fr_t *s, struct proof *out);

#endif
