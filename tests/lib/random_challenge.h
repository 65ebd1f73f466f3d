/*
 * What the circuit takes of a partition, made up: every value at random, so nothing hangs together as in a real sector, but for
 * a witness that does not matter.
 */
#ifndef TESTS_LIB_RANDOM_CHALLENGE_H
#define TESTS_LIB_RANDOM_CHALLENGE_H

#include "numa/circuit/porep.h"

/* Of different seeds all is different. Some values are extreme: 0, 1, r - 1. */
void random_roots(struct porep_roots *out, uint64_t seed);
/* As many challenges as the size has; free() them. */
struct porep_challenge *random_challenges(const struct sector_size *size, uint64_t seed);

/* A C1 with all its partitions, whose paths end in the same roots and whose every digest is random otherwise. For sizes
 * with a registered proof. End it with c1_destroy. */
struct c1 *random_c1(const struct sector_size *size, uint64_t seed);

#endif
