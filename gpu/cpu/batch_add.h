/*
 * Many independent additions of affine points at the price of one inversion.
 *
 * An affine addition needs the inverse of x2 - x1; Montgomery's trick shares one inversion among a batch, which
 * leaves six multiplications an addition against eleven to sixteen in projective coordinates. All sums of the CPU
 * prover and of the parameter setup go through here.
 *
 * The additions are complete: infinity on either side, equal and opposite points are right, for any points on the
 * curve (in the subgroup or not). Nothing here is constant in time.
 *
 * Any thread may call anything here, each with a scratch of its own.
 */
#ifndef GPU_CPU_BATCH_ADD_H
#define GPU_CPU_BATCH_ADD_H

#include "gpu/curve.h"

/* Additions that share one inversion. More at a time are cut into pieces of this length. */
#define BATCH_ADD_LEN_G1 512
#define BATCH_ADD_LEN_G2 256

/* *out = (negate_a ? -*a : *a) + (negate_b ? -*b : *b), over points of the group whose function takes it.
 * out may be a or b. No other pair of the same call may have the same out, or read it as a or b. */
struct add_pair {
    const void *a, *b;
    void *out;
    bool negate_a, negate_b;
};

/* What additions in flight need; the contents mean nothing between calls. About 90 KiB: keep it on the heap, one
 * for each thread. */
#define BATCH_SCRATCH_BYTES (BATCH_ADD_LEN_G1 * 128 + 64)
struct batch_scratch {
    union {
        struct {
            fp_t divisor[BATCH_ADD_LEN_G1], before[BATCH_ADD_LEN_G1];
        } g1;
        struct {
            fp2_t divisor[BATCH_ADD_LEN_G2], before[BATCH_ADD_LEN_G2];
        } g2;
        uint8_t bytes[BATCH_SCRATCH_BYTES]; /* where additions go side by side */
    };
    uint8_t step[BATCH_ADD_LEN_G1];
    const struct add_pair *chords[BATCH_ADD_LEN_G1];
    struct add_pair others[BATCH_ADD_LEN_G1];
};

/* Does `len` additions; a, b and out point to g1_affine_t or g2_affine_t. */
void g1_add_pairs(const struct add_pair *pairs, size_t len, struct batch_scratch *scratch);
void g2_add_pairs(const struct add_pair *pairs, size_t len, struct batch_scratch *scratch);

/* The same; meanwhile it asks the memory for the points of the `next` pairs, which the caller adds after these. That
 * hides the way to memory where points are taken from all over a long array. */
void g1_add_pairs_ahead(const struct add_pair *pairs, size_t len, const struct add_pair *next,
                        size_t next_len, struct batch_scratch *scratch);
void g2_add_pairs_ahead(const struct add_pair *pairs, size_t len, const struct add_pair *next,
                        size_t next_len, struct batch_scratch *scratch);

/* acc[i] += add[i] for i < len. The arrays may be the same one (doubling) but not otherwise overlap. */
void g1_batch_add(g1_affine_t *acc, const g1_affine_t *add, size_t len,
                  struct batch_scratch *scratch);
void g2_batch_add(g2_affine_t *acc, const g2_affine_t *add, size_t len,
                  struct batch_scratch *scratch);

#endif
