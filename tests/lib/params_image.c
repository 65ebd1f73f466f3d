#include "tests/lib/params_image.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/point.h"
#include "gpu/vk.h"

#define MULTIPLES 64 /* points repeat from there on */

struct points {
    uint8_t g1[MULTIPLES][G1_BYTES], g2[MULTIPLES][G2_BYTES];
};

/* first * G, (first + 1) * G, ... */
static void points_init(struct points *p)
{
    g1_t a = {0};
    g2_t b = {0};

    for (size_t i = 0; i < MULTIPLES; i++) {
        g1_affine_t a_affine;
        g2_affine_t b_affine;
        blst_p1_add_or_double(&a, &a, blst_p1_generator());
        blst_p2_add_or_double(&b, &b, blst_p2_generator());
        blst_p1_to_affine(&a_affine, &a);
        blst_p2_to_affine(&b_affine, &b);
        g1_encode(p->g1[i], &a_affine);
        g2_encode(p->g2[i], &b_affine);
    }
}

static uint8_t *put(uint8_t *at, const uint8_t *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

void params_image_init(struct params_image *image, const struct srs_counts *counts)
{
    static const char *const names[] = {"h", "l", "a", "b_g1", "b_g2"};
    const size_t lens[] = {counts->h, counts->l, counts->a, counts->b, counts->b};
    struct points *p = malloc(sizeof(*p));

    image->counts = *counts;
    image->len = srs_file_bytes(counts);
    image->bytes = malloc(image->len);
    assert(p && image->bytes);
    points_init(p);

    uint8_t *at = image->bytes;
    at = put(at, p->g1[1], G1_BYTES);
    at = put(at, p->g1[2], G1_BYTES);
    at = put(at, p->g2[2], G2_BYTES);
    at = put(at, p->g2[3], G2_BYTES);
    at = put(at, p->g1[4], G1_BYTES);
    at = put(at, p->g2[4], G2_BYTES);
    store_be32(at, counts->ic);
    at += 4;
    for (uint32_t i = 0; i < counts->ic; i++)
        at = put(at, p->g1[(i + 5) % MULTIPLES], G1_BYTES);
    for (int s = 0; s < IMAGE_SECTIONS; s++) {
        size_t bytes = s == IMAGE_B_G2 ? G2_BYTES : G1_BYTES;
        image->section[s].name = names[s];
        image->section[s].at = (size_t)(at - image->bytes);
        image->section[s].points = lens[s];
        image->section[s].point_bytes = bytes;
        store_be32(at, (uint32_t)lens[s]);
        at += 4;
        for (size_t i = 0; i < lens[s]; i++) {
            size_t k = (i + 7 * (size_t)s) % MULTIPLES;
            at = put(at, s == IMAGE_B_G2 ? p->g2[k] : p->g1[k], bytes);
        }
    }
    assert((size_t)(at - image->bytes) == image->len);
    free(p);
}

void params_image_fini(struct params_image *image)
{
    free(image->bytes);
}

uint8_t *params_image_point(const struct params_image *image, int section, size_t index)
{
    return image->bytes + image->section[section].at + 4 + index * image->section[section].point_bytes;
}

int params_image_write(const struct params_image *image, size_t len, char *path)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(path, 256, "%s/proofd-params-XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    assert(fd >= 0);
    int ret = pwrite_full(fd, image->bytes, len, 0);
    assert(ret == 0);
    (void)ret;
    return fd;
}
