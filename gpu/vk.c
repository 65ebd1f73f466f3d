/* A cursor that knows its end walks the points in file order; the first fault names the point it stood on. */
#include "gpu/vk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/point.h"

struct cursor {
    const uint8_t *at, *end;
};

/* Returns the place of the next `len` bytes, or NULL when there are fewer. */
static const uint8_t *take(struct cursor *c, size_t len)
{
    const uint8_t *at = c->at;

    if ((size_t)(c->end - at) < len)
        return NULL;
    c->at += len;
    return at;
}

static int report(enum point_fault fault, const char *name, struct errmsg *err)
{
    if (fault == POINT_OK)
        return 0;
    return errmsg_set(err, -EBADMSG, "verifying key: %s %s", name, point_fault_text(fault));
}

static int short_key(const char *name, struct errmsg *err)
{
    return errmsg_set(err, -EBADMSG, "verifying key: ends before %s", name);
}

static int read_g1(struct cursor *c, g1_affine_t *out, const char *name, struct errmsg *err)
{
    const uint8_t *bytes = take(c, G1_BYTES);

    return bytes ? report(g1_decode_checked(out, bytes), name, err) : short_key(name, err);
}

static int read_g2(struct cursor *c, g2_affine_t *out, const char *name, struct errmsg *err)
{
    const uint8_t *bytes = take(c, G2_BYTES);

    return bytes ? report(g2_decode_checked(out, bytes), name, err) : short_key(name, err);
}

static int read_fixed(struct cursor *c, struct vk *vk, struct errmsg *err)
{
    int ret;

    if ((ret = read_g1(c, &vk->alpha_g1, "alpha_g1", err)) < 0 ||
        (ret = read_g1(c, &vk->beta_g1, "beta_g1", err)) < 0 ||
        (ret = read_g2(c, &vk->beta_g2, "beta_g2", err)) < 0 ||
        (ret = read_g2(c, &vk->gamma_g2, "gamma_g2", err)) < 0 ||
        (ret = read_g1(c, &vk->delta_g1, "delta_g1", err)) < 0 ||
        (ret = read_g2(c, &vk->delta_g2, "delta_g2", err)) < 0)
        return ret;
    return 0;
}

static int read_ic(struct cursor *c, struct vk *vk, struct errmsg *err)
{
    const uint8_t *count = take(c, 4);

    if (!count)
        return short_key("the count of ic", err);
    vk->ic_len = load_be32(count);
    if (vk->ic_len == 0)
        return errmsg_set(err, -EBADMSG, "verifying key: ic is empty");
    size_t room = (size_t)(c->end - c->at) / G1_BYTES;
    if (vk->ic_len > room)
        return errmsg_set(err, -EBADMSG, "verifying key: ic has %u points, there is room for %zu",
                          vk->ic_len, room);
    vk->ic = malloc(vk->ic_len * sizeof(*vk->ic));
    if (!vk->ic)
        return errmsg_set(err, -ENOMEM, "verifying key: no memory for %u points", vk->ic_len);
    for (uint32_t i = 0; i < vk->ic_len; i++) {
        char name[24];
        snprintf(name, sizeof(name), "ic[%u]", i);
        int ret = read_g1(c, &vk->ic[i], name, err);
        if (ret < 0)
            return ret;
    }
    return 0;
}

static void pair_alpha_beta(struct vk *vk)
{
    blst_fp12 loop;

    blst_miller_loop(&loop, &vk->beta_g2, &vk->alpha_g1);
    blst_final_exp(&vk->alpha_beta, &loop);
}

int vk_read(const uint8_t *bytes, size_t len, struct vk *out, struct errmsg *err)
{
    struct cursor c = {bytes, bytes + len};
    struct vk vk = {.ic = NULL};
    int ret;

    ret = read_fixed(&c, &vk, err);
    if (ret == 0)
        ret = read_ic(&c, &vk, err);
    if (ret < 0) {
        vk_fini(&vk);
        return ret;
    }
    pair_alpha_beta(&vk);
    *out = vk;
    return 0;
}

void vk_write(uint8_t *out, const struct vk *vk)
{
    g1_encode(out, &vk->alpha_g1);
    g1_encode(out + 96, &vk->beta_g1);
    g2_encode(out + 192, &vk->beta_g2);
    g2_encode(out + 384, &vk->gamma_g2);
    g1_encode(out + 576, &vk->delta_g1);
    g2_encode(out + 672, &vk->delta_g2);
    store_be32(out + 864, vk->ic_len);
    for (uint32_t i = 0; i < vk->ic_len; i++)
        g1_encode(out + VK_HEAD_BYTES + (size_t)i * G1_BYTES, &vk->ic[i]);
}

void vk_fini(struct vk *vk)
{
    if (!vk)
        return;
    free(vk->ic);
    vk->ic = NULL;
    vk->ic_len = 0;
}
