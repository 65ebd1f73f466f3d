/*
 * A Groth16 proof and its encoding (c2-formats 5.3).
 *
 * Any thread may call anything here.
 */
#ifndef GPU_PROOF_H
#define GPU_PROOF_H

#include "gpu/curve.h"

#define PROOF_BYTES 192

struct proof {
    g1_affine_t a;
    g2_affine_t b;
    g1_affine_t c;
};

/* A (48) || B (96) || C (48), compressed. */
void proof_encode(uint8_t out[PROOF_BYTES], const struct proof *proof);

/* -EBADMSG for a bad encoding, a point off the curve or outside the subgroup, or infinity; err says which. */
int proof_decode(struct proof *out, const uint8_t bytes[PROOF_BYTES], struct errmsg *err);

#endif
