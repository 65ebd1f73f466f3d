/*
 * The pairing check of Groth16 (c2-formats 6.6) on blst: one proof, or many under one key.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_VERIFY_H
#define GPU_VERIFY_H

#include "gpu/proof.h"
#include "gpu/vk.h"

/* `inputs` without ONE, `inputs_len` = ic_len - 1 else -EINVAL. Returns 0 with *valid set, -ENOMEM. */
int groth16_verify(const struct vk *vk, const fr_t *inputs, size_t inputs_len,
                   const struct proof *proof, bool *valid, struct errmsg *err);

/* `count` proofs under one key, inputs one after another; random 128-bit weights from the kernel's generator.
 * *valid says that all are. One proof is as groth16_verify; none is -EINVAL; also -EIO without randomness. */
int groth16_verify_batch(const struct vk *vk, const fr_t *inputs, size_t inputs_len,
                         const struct proof *proofs, size_t count, bool *valid,
                         struct errmsg *err);

#endif
