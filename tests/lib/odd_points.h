/*
 * Points that no honest file holds: on the curve but outside the subgroup, of small order where wanted.
 */
#ifndef TESTS_LIB_ODD_POINTS_H
#define TESTS_LIB_ODD_POINTS_H

#include "gpu/curve.h"

/* A point of G1's curve with an x of `x` or somewhat more, outside the subgroup. */
g1_affine_t odd_g1(uint64_t x);
/* The same for G2's curve. */
g2_affine_t odd_g2(uint64_t x);

/* A point of order exactly `order`, a prime that divides the cofactor of G1: 3, 11, 10177, 859267, 52437899. */
g1_affine_t odd_g1_of_order(uint32_t order);
/* The same for G2's curve, whose cofactor is 13^2 * 23^2 * 2713 * 11953 * 262069 * ...: a prime among these. */
g2_affine_t odd_g2_of_order(uint32_t order);

/* Their sum: outside the subgroup, by the component `odd` alone. */
g1_affine_t odd_g1_shifted(const g1_affine_t *honest, const g1_affine_t *odd);
g2_affine_t odd_g2_shifted(const g2_affine_t *honest, const g2_affine_t *odd);

#endif
