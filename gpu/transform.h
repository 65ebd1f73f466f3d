/*
 * Parameters for a prover that takes no C: transformed ones.
 *
 * With m = 2^log2_domain, w the root of unity of the domain, g = 7 and z = g^m - 1, a prover has h_k = (D_k - C_k) / z (groth16.c), where
 * D are coefficients of e_j = A(g w^j) B(g w^j), and C those of the rows' c_j:
 *
 *     D_k = g^-k / m * sum_j w^-jk e_j        C_k = 1 / m * sum_j w^-jk c_j
 *
 * Both transforms can be done to the points in place of the scalars, once for all proofs (H_(m-1) counts as infinity, for h_(m-1) is 0):
 *
 *     H'_j  = sum_k g^-k / (m z) w^-jk H_k
 *     H''_j = sum_k    1 / (m z) w^-jk H_k        sum_k h_k H_k = sum_j e_j H'_j - sum_j c_j H''_j
 *
 * and as c_j is linear in the variables, H'' goes into the variables' points, C_(j,i) being the coefficients of row j:
 *
 *     L'_i  = L_i - sum_j C_(j,i) H''_j       of an aux variable
 *     IL_i  =     - sum_j C_(j,i) H''_j       of an input, ONE among them
 *
 * The element C of a proof takes sum e_j H'_j + sum w_i L'_i + sum w_i IL_i: the same point as without, so the same bytes, for two transforms
 * fewer and no rows of C. Nothing here needs a secret: all of it follows from h, l and the circuit.
 */
#ifndef GPU_TRANSFORM_H
#define GPU_TRANSFORM_H

#include "gpu/backend.h"
#include "gpu/srs.h"
#include "numa/circuit/circuit.h"

/* Makes parameters of `circuit`, whose h and l are in memory, transformed ones, by be->ops->transform_points and be->workers. Takes 2^log2_domain
 * points of memory beside, and what transform_check.h asks for. Stages of progress, in multiplications and terms: "transform" twice, "fold" (of rows)
 * between them, a "check" first and last. Returns 0, -EINVAL (the backend cannot, they are not of this circuit or are transformed already),
 * -EBADMSG (they came out wrong), -ENOMEM, or what the backend says; then neither h nor l is of any use. */
int transform_srs(struct srs *srs, const struct circuit *circuit, struct backend *be,
                  backend_progress progress, void *progress_ctx, struct errmsg *err);

/* The fold: takes the terms of all rows of C from l (n_aux points) and input_l (n_inputs), which hold points already; row j's point is
 * rows[j]. Returns 0 or -ENOMEM. */
int transform_fold(const struct circuit *circuit, const g1_affine_t *rows, g1_affine_t *l,
                   g1_affine_t *input_l, struct workers *workers, backend_progress progress,
                   void *progress_ctx, struct errmsg *err);

#endif
