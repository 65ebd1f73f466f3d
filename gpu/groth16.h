/*
 * The Groth16 prover (c2-formats 6), in the order of the paper, over a backend.
 *
 * One prove at a time on a backend.
 */
#ifndef GPU_GROTH16_H
#define GPU_GROTH16_H

#include "gpu/backend.h"
#include "gpu/srs.h"
#include "gpu/verify.h"
#include "numa/circuit/assignment.h"

/* The sums that do not depend on r and s: what takes the time. */
struct groth16_sums {
    g1_t h, l, a, b_g1;
    g2_t b_g2;
};

/* Computes the sums. a and b of the assignment are overwritten (and are free for reuse afterwards). -EINVAL when
 * the parameters do not fit the assignment (err says which count, found and wanted), -ENOMEM, -EBADMSG when h comes out
 * of an impossible degree: the transforms or the machine are faulty. */
int groth16_sums(struct backend *be, const struct srs *srs, struct assignment *w,
                 struct groth16_sums *out, struct errmsg *err);

/* Puts a proof together. The shipped programs reach this through groth16_prove alone; tests give r and s. */
void groth16_assemble(const struct vk *vk, const struct groth16_sums *sums, const fr_t *r,
                      const fr_t *s, struct proof *out);

/* groth16_sums, then r and s from the kernel's generator, wiped after use. */
int groth16_prove(struct backend *be, const struct srs *srs, struct assignment *w,
                  struct proof *out, struct errmsg *err);

#endif
