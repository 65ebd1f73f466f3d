/*
 * What whoever makes parameters knows, and of development parameters everybody (c2-formats 7.1).
 *
 * Any thread may call anything here.
 */
#ifndef GPU_SECRETS_H
#define GPU_SECRETS_H

#include "gpu/vk.h"

struct secrets {
    fr_t alpha, beta, gamma, delta, tau;
};

/* The development parameters', from published labels. */
struct secrets secrets_from_labels(void);

/* The verifying key, without alpha_beta; `ic` are the scalars of its ic_len points. End it with vk_fini. -ENOMEM. */
int secrets_key(const struct secrets *t, const fr_t *ic, uint32_t ic_len, struct vk *out,
                struct errmsg *err);

#endif
