/*
 * Development parameters that no file holds: the device makes them where it will use them.
 */
#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"
#include "gpu/secrets.h"
#include "gpu/setup.h"
#include "gpu/srs.h"
#include "gpu/srs_counts.h"
#include "numa/circuit/circuit.h"
#include "numa/memory.h"

#define FETCH ((size_t)1 << 20) /* points that come home at a time */

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

/* ---- several devices, and less memory than the points take ---- */

static int fetch_section(struct backend *be, enum srs_section section, size_t len, size_t bytes,
                         void **out, struct errmsg *err)
{
    char *points = memory_alloc(len, bytes);
    int ret = 0;

    *out = points;
    if (!points)
        return errmsg_set(err, -ENOMEM, "no memory for %zu points", len);
    for (size_t at = 0; at < len && ret == 0; at += FETCH)
        ret = be->ops->fetch(be, section, at, min_size(FETCH, len - at), points + at * bytes, err);
    return ret;
}

/* What the device has made, on the host; it has nothing any more. */
static int take_home(struct backend *be, struct srs *srs, struct errmsg *err)
{
    int ret = fetch_section(be, SRS_H, srs->h_len, sizeof(*srs->h), (void **)&srs->h, err);

    if (ret == 0)
        ret = fetch_section(be, SRS_L, srs->l_len, sizeof(*srs->l), (void **)&srs->l, err);
    if (ret == 0)
        ret = fetch_section(be, SRS_A, srs->a_len, sizeof(*srs->a), (void **)&srs->a, err);
    if (ret == 0)
        ret = fetch_section(be, SRS_B_G1, srs->b_len, sizeof(*srs->b_g1), (void **)&srs->b_g1, err);
    if (ret == 0)
        ret = fetch_section(be, SRS_B_G2, srs->b_len, sizeof(*srs->b_g2), (void **)&srs->b_g2, err);
    be->ops->evict(be, srs);
    return ret;
}

static int make_for_host(const struct circuit *circuit, struct backend *be,
                         backend_progress progress, void *progress_ctx, struct srs **out,
                         struct errmsg *err)
{
    const uint64_t limit = be->memory_limit;

    be->memory_limit = 0; /* they are made where there is room for all of them */
    int ret = setup_on_device(circuit, be, progress, progress_ctx, out, err);
    if (ret == 0 && (ret = take_home(be, *out, err)) < 0) {
        srs_close(*out);
        *out = NULL;
    }
    be->memory_limit = limit;
    return ret;
}

/* Of device `i`, in place of those of the one before it, whose key must be the same. */
static int make_another(const struct circuit *circuit, struct backend *const *devices, size_t i,
                        backend_progress progress, void *progress_ctx, struct srs **srs,
                        struct errmsg *err)
{
    struct srs *before = *srs;

    *srs = NULL;
    int ret = setup_on_device(circuit, devices[i], progress, progress_ctx, srs, err);
    if (ret == 0 && before &&
        memcmp(before->vk_digest, (*srs)->vk_digest, sizeof(before->vk_digest)) != 0) {
        srs_close(*srs);
        *srs = NULL;
        ret = errmsg_set(err, -EBADMSG, "devices %zu and %zu made different parameters", i - 1, i);
    }
    srs_close(before);
    return ret;
}

int setup_on_devices(const struct circuit *circuit, struct backend *const *devices, size_t len,
                     void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total),
                     void *progress_ctx, struct srs **out, struct errmsg *err)
{
    struct srs *srs = NULL;
    int ret = 0;

    for (size_t i = 0; i < len; i++)
        if (devices[i]->memory_limit)
            return make_for_host(circuit, devices[0], progress, progress_ctx, out, err);
    for (size_t i = 0; i < len && ret == 0; i++)
        ret = make_another(circuit, devices, i, progress, progress_ctx, &srs, err);
    if (ret == 0)
        *out = srs;
    return ret;
}
