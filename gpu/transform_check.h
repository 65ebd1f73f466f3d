/*
 * Whether transformed points are right, by one random combination: for any e of the domain and any values w of the variables, with their c,
 *
 *     sum_k h_k H_k + sum_i w_i L_i  =  sum_j e_j H'_j + sum_i w_i L'_i + sum_i w_i IL_i        (transform.h)
 *
 * where no two sides come from the same code: transforms of scalars and sums by the CPU here, transforms of points and a fold there. Wrong points
 * pass once in 2^64. They would harm no proof that is handed out, for that is verified, but stop every prover: a device whose memory has erred
 * once in minutes of work should not come to that.
 */
#ifndef GPU_TRANSFORM_CHECK_H
#define GPU_TRANSFORM_CHECK_H

#include "gpu/srs.h"
#include "numa/circuit/circuit.h"

struct transform_check {
    uint64_t seed; /* of e and w */
    g1_t sum;      /* the left side */
};

/* Chooses e and w, and sums over h and l as they are before they are transformed. Takes memory beside for two scalars an element of the
 * domain, and for the CPU's sums. 0, -ENOMEM, or what getrandom says. */
int transform_check_begin(struct transform_check *k, const struct srs *srs,
                          const struct circuit *circuit, struct workers *workers,
                          struct errmsg *err);
/* The other side, over a transformed srs. -EBADMSG when it differs. */
int transform_check_end(const struct transform_check *k, const struct srs *srs,
                        const struct circuit *circuit, struct workers *workers, struct errmsg *err);

#endif
