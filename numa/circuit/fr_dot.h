/*
 * Sums of products in F_r with one reduction for the whole sum.
 *
 * Any thread may call it.
 */
#ifndef CIRCUIT_FR_DOT_H
#define CIRCUIT_FR_DOT_H

#include <stddef.h>

#include "numa/circuit/fr.h"

/* What the reduction of the sum has room for. */
#define FR_DOT_MAX 19

/* *out = sum of a[i] * b[i], i < len <= FR_DOT_MAX. *out may be one of the operands. */
void fr_dot(fr_t *out, const fr_t *a, const fr_t *b, size_t len);

#endif
