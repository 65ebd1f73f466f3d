/*
 * Groth16 proofs and verifying keys: encoding, and the pairing check on blst.
 *
 * A vk is immutable once read and may be used by any thread.
 */
#ifndef GPU_VERIFY_H
#define GPU_VERIFY_H

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

struct vk {
    g1_affine_t alpha_g1, beta_g1, delta_g1;
    g2_affine_t beta_g2, gamma_g2, delta_g2;
    uint32_t ic_len; /* inputs with ONE */
    g1_affine_t *ic;
    blst_fp12 alpha_beta; /* e(alpha_1, beta_2) */
};

/* Reads a .vk (868 + 96 * ic_len bytes; more may follow where it is the head of a .params). Every point is
 * checked: curve, subgroup, not infinity. Returns 0 (end it with vk_fini), -EBADMSG, -ENOMEM. */
int vk_read(const uint8_t *bytes, size_t len, struct vk *out, struct errmsg *err);
void vk_fini(struct vk *vk);

/* `inputs` without ONE, `inputs_len` = ic_len - 1 else -EINVAL. Returns 0 with *valid set. */
int groth16_verify(const struct vk *vk, const fr_t *inputs, size_t inputs_len,
                   const struct proof *proof, bool *valid, struct errmsg *err);

/* `count` proofs under one key, inputs one after another; random 128-bit weights from the kernel's generator. */
int groth16_verify_batch(const struct vk *vk, const fr_t *inputs, size_t inputs_len,
                         const struct proof *proofs, size_t count, bool *valid,
                         struct errmsg *err);

#endif
