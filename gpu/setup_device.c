/*
 * Development parameters that no file holds: the device makes them where it will use them.
 */
#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/backend.h"
#include "gpu/secrets.h"
#include "gpu/setup.h"
#include "gpu/srs.h"
#include "gpu/srs_counts.h"
#include "numa/circuit/circuit.h"

/* By way of bytes, as a file's key comes: so every point is checked. */
static int read_back(const struct vk *made, struct srs *out, struct errmsg *err)
{
    const size_t len = vk_bytes(made->ic_len);
    uint8_t *bytes = malloc(len);

    if (!bytes)
        return errmsg_set(err, -ENOMEM, "no memory for the verifying key");
    vk_write(bytes, made);
    SHA256(bytes, len, out->vk_digest);
    int ret = vk_read(bytes, len, &out->vk, err);
    free(bytes);
    return ret;
}

static int make_key(const struct secrets *t, const fr_t *ic, uint32_t ic_len, struct srs *out,
                    struct errmsg *err)
{
    struct vk made = {.ic = NULL};
    int ret = secrets_key(t, ic, ic_len, &made, err);

    if (ret == 0)
        ret = read_back(&made, out, err);
    vk_fini(&made);
    return ret;
}

static void describe(struct srs *srs, const struct circuit *c, const struct backend *be)
{
    struct srs_counts counts;

    srs_counts(c->size, &counts);
    srs->size = c->size;
    srs->h_len = counts.h;
    srs->l_len = counts.l;
    srs->a_len = counts.a;
    srs->b_len = counts.b;
    srs->trust = SRS_INSECURE;
    snprintf(srs->path, sizeof(srs->path), "made by %s", be->ops->name);
}

int setup_on_device(const struct circuit *circuit, struct backend *be,
                    void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total),
                    void *progress_ctx, struct srs **out, struct errmsg *err)
{
    const struct secrets t = secrets_from_labels();

    if (!be->ops->develop)
        return errmsg_set(err, -EINVAL, "%s makes no parameters of its own", be->ops->name);
    fr_t *ic = malloc(circuit->n_inputs * sizeof(*ic));
    struct srs *srs = calloc(1, sizeof(*srs));
    int ret = ic && srs ? 0 : errmsg_set(err, -ENOMEM, "no memory for parameters");
    if (ret == 0)
        ret = be->ops->develop(be, circuit, &t, ic, progress, progress_ctx, err);
    if (ret == 0)
        ret = make_key(&t, ic, circuit->n_inputs, srs, err);
    free(ic);
    if (ret < 0) {
        free(srs);
        return ret;
    }
    describe(srs, circuit, be);
    *out = srs;
    return 0;
}
