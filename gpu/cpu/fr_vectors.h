/*
 * Vectors of field elements, element by element, with the fastest code that the CPU has.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_CPU_FR_VECTORS_H
#define GPU_CPU_FR_VECTORS_H

#include <stddef.h>

#include "numa/circuit/fr.h"

/* out[i] = x[i] * y[i], i < len; out may be x or y. */
void fr_vectors_multiply(fr_t *out, const fr_t *x, const fr_t *y, size_t len);

/* out[i] = (x[i] - y[i]) * factor, i < len; out may be x or y. */
void fr_vectors_subtract_scale(fr_t *out, const fr_t *x, const fr_t *y, size_t len,
                               const fr_t *factor);

/* The same for the first elements of a vector, as many as make whole groups; for those two alone. Return how many that is. */
size_t fr_vectors_multiply_ifma(fr_t *out, const fr_t *x, const fr_t *y, size_t len);
size_t fr_vectors_subtract_scale_ifma(fr_t *out, const fr_t *x, const fr_t *y, size_t len,
                                      const fr_t *factor);

#endif
