/*
 * Field elements and points from a seeded generator (xorshift64*), for tests of the arithmetic. A test fixes its seed
 * and prints it.
 */
#ifndef TESTS_LIB_RANDOM_GROUP_H
#define TESTS_LIB_RANDOM_GROUP_H

#include "gpu/curve.h"

struct random {
    uint64_t state; /* not 0 */
};

uint64_t random_u64(struct random *rng);
/* Uniform enough for tests: 254 bits. */
fr_t random_fr(struct random *rng);
/* scalar * generator */
g1_affine_t g1_of(const fr_t *scalar);
g2_affine_t g2_of(const fr_t *scalar);

#endif
