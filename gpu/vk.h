/*
 * Verifying keys (c2-formats 4.2): the head of a parameter file, and all that a verifier needs.
 *
 * A vk is immutable once read and may be used by any thread.
 */
#ifndef GPU_VK_H
#define GPU_VK_H

#include "gpu/curve.h"

#define VK_HEAD_BYTES 868 /* the six points and the count of ic */

struct vk {
    g1_affine_t alpha_g1, beta_g1, delta_g1;
    g2_affine_t beta_g2, gamma_g2, delta_g2;
    uint32_t ic_len; /* inputs with ONE */
    g1_affine_t *ic;
    blst_fp12 alpha_beta; /* e(alpha_1, beta_2) */
};

static inline size_t vk_bytes(uint32_t ic_len)
{
    return VK_HEAD_BYTES + (size_t)G1_BYTES * ic_len;
}

/* Reads a .vk (vk_bytes(ic_len) bytes; more may follow where it is the head of a .params). Every point is
 * checked: curve, subgroup, not infinity. Returns 0 (end it with vk_fini), -EBADMSG (err: which point, or how
 * many bytes are missing), -ENOMEM. */
int vk_read(const uint8_t *bytes, size_t len, struct vk *out, struct errmsg *err);

/* Writes vk_bytes(vk->ic_len) bytes. */
void vk_write(uint8_t *out, const struct vk *vk);

void vk_fini(struct vk *vk);

#endif
