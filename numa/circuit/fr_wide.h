/*
 * Sums of products in F_r with one reduction for a whole sum, for x86-64 with BMI2 and ADX.
 *
 * A Montgomery product is 16 word multiplications and its reduction as many again; a dot product needs
 * the second part once. In C on 128-bit integers the same took three times as long (gcc 12 keeps no
 * carry in a flag), more than blst's product with its reduction; hence the assembly.
 *
 * For callers that asked fr_wide_available() first. Any thread may call anything here.
 */
#ifndef CIRCUIT_FR_WIDE_H
#define CIRCUIT_FR_WIDE_H

#include "numa/circuit/fr.h"

/* False on other machines; then nothing else here must be called. */
bool fr_wide_available(void);

/* As many products as a sum may have. */
#define FR_WIDE_TERMS 15

/* An integer, least significant word first. */
struct fr_wide {
    uint64_t l[9];
};

/* acc += sum of a[i] * b[i] for i < len; b[i] is `b_stride` bytes after b[i - 1]. */
void fr_wide_add_dot(struct fr_wide *acc, const fr_t *a, const fr_t *b, size_t len,
                     size_t b_stride);

/* acc += a * 1: what a product with 1 would add. Counts as one. */
void fr_wide_add(struct fr_wide *acc, const fr_t *a);

/* The sum as a field element. */
void fr_wide_reduce(fr_t *out, const struct fr_wide *acc);

#endif
