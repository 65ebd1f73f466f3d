#include "gpu/secrets.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/setup.h"

static fr_t label_scalar(const char *name)
{
    char label[64];
    uint8_t hash[SHA256_DIGEST_LENGTH];
    fr_t out = fr_from_u64(0);

    int len = snprintf(label, sizeof(label), "proof development parameters: %s", name);
    SHA256((const uint8_t *)label, (size_t)len, hash);
    hash[31] &= 0x3f; /* 254 bits: always below the modulus */
    fr_from_bytes(&out, hash);
    return out;
}

struct secrets secrets_from_labels(void)
{
    return (struct secrets){
        .alpha = label_scalar("alpha"),
        .beta = label_scalar("beta"),
        .gamma = label_scalar("gamma"),
        .delta = label_scalar("delta"),
        .tau = label_scalar("tau"),
    };
}

static g1_affine_t g1_times(const fr_t *scalar)
{
    scalar_t s;
    g1_t p;
    g1_affine_t out;

    blst_scalar_from_fr(&s, scalar);
    blst_p1_mult(&p, blst_p1_generator(), s.b, FR_BITS);
    blst_p1_to_affine(&out, &p);
    return out;
}

static g2_affine_t g2_times(const fr_t *scalar)
{
    scalar_t s;
    g2_t p;
    g2_affine_t out;

    blst_scalar_from_fr(&s, scalar);
    blst_p2_mult(&p, blst_p2_generator(), s.b, FR_BITS);
    blst_p2_to_affine(&out, &p);
    return out;
}

int secrets_key(const struct secrets *t, const fr_t *ic, uint32_t ic_len, struct vk *out,
                struct errmsg *err)
{
    g1_affine_t *points = malloc(ic_len * sizeof(*points));

    if (!points)
        return errmsg_set(err, -ENOMEM, "no memory for %u points", ic_len);
    for (uint32_t i = 0; i < ic_len; i++)
        points[i] = g1_times(&ic[i]);
    *out = (struct vk){
        .alpha_g1 = g1_times(&t->alpha),
        .beta_g1 = g1_times(&t->beta),
        .delta_g1 = g1_times(&t->delta),
        .beta_g2 = g2_times(&t->beta),
        .gamma_g2 = g2_times(&t->gamma),
        .delta_g2 = g2_times(&t->delta),
        .ic_len = ic_len,
        .ic = points,
    };
    return 0;
}

bool setup_made(const struct vk *vk)
{
    fr_t alpha = label_scalar("alpha");
    g1_affine_t ours = g1_times(&alpha);

    return blst_p1_affine_is_equal(&vk->alpha_g1, &ours);
}
