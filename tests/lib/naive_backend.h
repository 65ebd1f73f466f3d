/*
 * A backend that does everything by definition: sums of powers for a transform, double and add for a product. The oracle
 * of all others, for short vectors.
 */
#ifndef TESTS_LIB_NAIVE_BACKEND_H
#define TESTS_LIB_NAIVE_BACKEND_H

#include "gpu/backend.h"

int backend_naive_create(struct backend **out);

#endif
