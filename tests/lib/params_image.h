/*
 * Parameter files of toy size, made in memory: honest ones, to be spoiled by tests.
 */
#ifndef TESTS_LIB_PARAMS_IMAGE_H
#define TESTS_LIB_PARAMS_IMAGE_H

#include "gpu/srs_counts.h"

enum { IMAGE_H, IMAGE_L, IMAGE_A, IMAGE_B_G1, IMAGE_B_G2, IMAGE_SECTIONS };

struct params_image {
    struct srs_counts counts;
    uint8_t *bytes;
    size_t len;
    /* Of each section: name, offset of its count, points, bytes of a point. */
    struct {
        const char *name;
        size_t at, points, point_bytes;
    } section[IMAGE_SECTIONS];
};

/* Small multiples of the generators in every place; no section is like another. */
void params_image_init(struct params_image *image, const struct srs_counts *counts);
void params_image_fini(struct params_image *image);

/* The encoding of a section's point. */
uint8_t *params_image_point(const struct params_image *image, int section, size_t index);

/* Writes the first `len` bytes to a new file under $TMPDIR and opens it for reading and writing; the name goes into
 * `path`, which has room for 256 characters. Unlink it. */
int params_image_write(const struct params_image *image, size_t len, char *path);

#endif
