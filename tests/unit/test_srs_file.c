#include "gpu/srs_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/point.h"
#include "tests/lib/odd_points.h"
#include "tests/lib/params_image.h"
#include "tests/lib/suite.h"

static const struct srs_counts small = {.ic = 3, .h = 15, .l = 11, .a = 13, .b = 5};

/* Reads the first `len` bytes of an image as a file. */
static int read_image(const struct params_image *image, size_t len, struct workers *workers,
                      uint8_t *digest, struct srs *srs, struct errmsg *err)
{
    char path[256];
    struct srs_reading how = {.workers = workers, .digest = digest};
    int fd = params_image_write(image, len, path);

    unlink(path);
    int ret = srs_read(fd, "toy.params", &image->counts, &how, srs, err);
    close(fd);
    return ret;
}

static void expect_unreadable(const struct params_image *image, size_t len, const char *says)
{
    struct srs srs;
    struct errmsg err = {""};

    ck_assert_int_eq(read_image(image, len, NULL, NULL, &srs, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, says), "'%s' does not say '%s'", err.text, says);
}

/* What an image can be read as, but not believed. */
static void expect_unbelievable(const struct params_image *image, const char *says)
{
    struct srs_reading how = {.workers = NULL};
    struct srs srs;
    struct errmsg err = {""};

    ck_assert_int_eq(read_image(image, image->len, NULL, NULL, &srs, &err), 0);
    ck_assert_int_eq(srs_check_points(&srs, "toy.params", &how, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, says), "'%s' does not say '%s'", err.text, says);
    srs_fini(&srs);
}

static void expect_points(const struct params_image *image, const struct srs *srs)
{
    const g1_affine_t *g1[] = {srs->h, srs->l, srs->a, srs->b_g1};
    uint8_t bytes[G2_BYTES];

    for (int s = 0; s < IMAGE_SECTIONS; s++)
        for (size_t i = 0; i < image->section[s].points; i++) {
            if (s == IMAGE_B_G2)
                g2_encode(bytes, &srs->b_g2[i]);
            else
                g1_encode(bytes, &g1[s][i]);
            ck_assert_mem_eq(bytes, params_image_point(image, s, i), image->section[s].point_bytes);
        }
}

START_TEST(srs_read__gives_points_and_digest)
{
    struct params_image image;
    struct workers *workers = NULL;
    struct srs_reading how = {.workers = NULL};
    struct srs srs;
    struct errmsg err;
    uint8_t digest[SRS_DIGEST_BYTES], whole[64];

    ck_assert_int_eq(workers_create((unsigned)_i, &workers, NULL), 0);
    params_image_init(&image, &small);
    ck_assert_int_eq(read_image(&image, image.len, workers, digest, &srs, &err), 0);
    ck_assert_uint_eq(srs.vk.ic_len, small.ic);
    ck_assert_uint_eq(srs.h_len, small.h);
    ck_assert_uint_eq(srs.l_len, small.l);
    ck_assert_uint_eq(srs.a_len, small.a);
    ck_assert_uint_eq(srs.b_len, small.b);
    expect_points(&image, &srs);
    EVP_Digest(image.bytes, image.len, whole, NULL, EVP_blake2b512(), NULL);
    ck_assert_mem_eq(digest, whole, sizeof(digest));
    how.workers = workers;
    ck_assert_int_eq(srs_check_points(&srs, "toy.params", &how, &err), 0);
    srs_fini(&srs);
    params_image_fini(&image);
    workers_destroy(workers);
}
END_TEST

/* More than two rounds of pieces, none of the sections a whole number of pieces. */
static const struct srs_counts large = {.ic = 2, .h = 400000, .l = 260001, .a = 4097, .b = 12289};

START_TEST(srs_read__many_rounds)
{
    struct params_image image;
    struct workers *workers = NULL;
    struct srs srs;
    uint8_t digest[SRS_DIGEST_BYTES], whole[64];

    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    params_image_init(&image, &large);
    ck_assert_int_eq(read_image(&image, image.len, workers, digest, &srs, NULL), 0);
    expect_points(&image, &srs);
    EVP_Digest(image.bytes, image.len, whole, NULL, EVP_blake2b512(), NULL);
    ck_assert_mem_eq(digest, whole, sizeof(digest));
    srs_fini(&srs);
    params_image_fini(&image);
    workers_destroy(workers);
}
END_TEST

START_TEST(srs_read__short_at_any_length)
{
    struct params_image image;

    params_image_init(&image, &small);
    for (size_t len = 0; len < image.len; len += len % 97 ? 1 : 13)
        expect_unreadable(&image, len, "toy.params: ");
    expect_unreadable(&image, 100, "ends inside the count of ic");
    expect_unreadable(&image, image.section[IMAGE_L].at + 2, "ends inside the count of l");
    expect_unreadable(&image, image.len - 1, "bytes, the circuit wants");
    params_image_fini(&image);
}
END_TEST

START_TEST(srs_read__long)
{
    struct params_image image;

    params_image_init(&image, &small);
    image.bytes = realloc(image.bytes, image.len + 1);
    image.bytes[image.len] = 0;
    expect_unreadable(&image, image.len + 1, "bytes, the circuit wants");
    params_image_fini(&image);
}
END_TEST

/* Also what the file of another size, or of swapped sections, looks like. */
START_TEST(srs_read__counts_of_another_circuit)
{
    static const uint32_t wrong[] = {0, 1, 0x7fffffff, 0xffffffff};
    struct params_image image;
    char says[64];

    params_image_init(&image, &small);
    for (int s = 0; s < IMAGE_SECTIONS; s++)
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
            uint8_t *count = image.bytes + image.section[s].at;
            store_be32(count, wrong[i]);
            snprintf(says, sizeof(says), "%s has %u points, the circuit wants %zu",
                     image.section[s].name, wrong[i], image.section[s].points);
            expect_unreadable(&image, image.len, says);
            store_be32(count, (uint32_t)image.section[s].points);
        }
    store_be32(image.bytes + 864, 4);
    expect_unreadable(&image, image.len, "ic has 4 points, the circuit wants 3");
    params_image_fini(&image);
}
END_TEST

START_TEST(srs_read__swapped_sections)
{
    struct params_image image, swapped;

    params_image_init(&image, &small);
    params_image_init(&swapped, &small);
    /* h l a -> h a l */
    size_t l = image.section[IMAGE_L].at, a = image.section[IMAGE_A].at, b = image.section[IMAGE_B_G1].at;
    memcpy(swapped.bytes + l, image.bytes + a, b - a);
    memcpy(swapped.bytes + l + (b - a), image.bytes + l, a - l);
    expect_unreadable(&swapped, swapped.len, "l has 13 points, the circuit wants 11");
    params_image_fini(&swapped);
    params_image_fini(&image);
}
END_TEST

START_TEST(srs_read__bad_verifying_key)
{
    struct params_image image;

    params_image_init(&image, &small);
    image.bytes[95] ^= 1;
    expect_unreadable(&image, image.len, "toy.params: verifying key: alpha_g1 is not on the curve");
    params_image_fini(&image);
}
END_TEST

/* In each section, its first, its last and a middle point. */
START_TEST(srs_read__encodings_that_cannot_be)
{
    struct params_image image;
    size_t points[3];
    char says[64];

    params_image_init(&image, &small);
    points[0] = 0;
    points[1] = image.section[_i].points / 2;
    points[2] = image.section[_i].points - 1;
    for (size_t k = 0; k < 3; k++) {
        uint8_t *point = params_image_point(&image, _i, points[k]), honest[G2_BYTES];
        size_t bytes = image.section[_i].point_bytes;
        memcpy(honest, point, bytes);
        memset(point, 0, bytes);
        point[0] = 0x40;
        snprintf(says, sizeof(says), "%s[%zu] is infinity", image.section[_i].name, points[k]);
        expect_unreadable(&image, image.len, says);
        memcpy(point, honest, bytes);
        memset(point, 0x1f, 48);
        snprintf(says, sizeof(says), "%s[%zu] has a coordinate that is not below the modulus",
                 image.section[_i].name, points[k]);
        expect_unreadable(&image, image.len, says);
        memcpy(point, honest, bytes);
        point[0] |= 0x80;
        snprintf(says, sizeof(says), "%s[%zu] is not in uncompressed form", image.section[_i].name,
                 points[k]);
        expect_unreadable(&image, image.len, says);
        memcpy(point, honest, bytes);
    }
    params_image_fini(&image);
}
END_TEST

START_TEST(srs_check_points__off_the_curve)
{
    struct params_image image;
    char says[64];

    params_image_init(&image, &small);
    for (size_t i = 0; i < image.section[_i].points; i++) {
        uint8_t *point = params_image_point(&image, _i, i);
        point[image.section[_i].point_bytes - 1] ^= 1;
        snprintf(says, sizeof(says), "%s[%zu] is not on the curve", image.section[_i].name, i);
        expect_unbelievable(&image, says);
        point[image.section[_i].point_bytes - 1] ^= 1;
    }
    params_image_fini(&image);
}
END_TEST

/* By a component of the smallest order there is, which one random combination misses once in three times. */
START_TEST(srs_check_points__outside_the_subgroup)
{
    g1_affine_t odd_1 = odd_g1_of_order(3), point_1;
    g2_affine_t odd_2 = odd_g2_of_order(13), point_2;
    struct params_image image;
    char says[64];

    params_image_init(&image, &small);
    size_t at = image.section[_i].points - 1;
    uint8_t *point = params_image_point(&image, _i, at);
    if (_i == IMAGE_B_G2) {
        ck_assert_int_eq(g2_decode(&point_2, point), POINT_OK);
        point_2 = odd_g2_shifted(&point_2, &odd_2);
        g2_encode(point, &point_2);
    } else {
        ck_assert_int_eq(g1_decode(&point_1, point), POINT_OK);
        point_1 = odd_g1_shifted(&point_1, &odd_1);
        g1_encode(point, &point_1);
    }
    snprintf(says, sizeof(says), "%s[%zu] is outside the subgroup", image.section[_i].name, at);
    expect_unbelievable(&image, says);
    params_image_fini(&image);
}
END_TEST

/* What happens to a file while it is read: `meddle` is called once, after the first round. */
struct meddling {
    int fd;
    void (*meddle)(int fd);
};

static void meddle_once(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    struct meddling *m = ctx;

    (void)stage;
    (void)done;
    (void)total;
    if (m->meddle)
        m->meddle(m->fd);
    m->meddle = NULL;
}

static void cut_in_half(int fd)
{
    ck_assert_int_eq(ftruncate(fd, 30000000), 0);
}

static void cut_and_mend(int fd)
{
    off_t len = lseek(fd, 0, SEEK_END);

    ck_assert_int_eq(ftruncate(fd, 30000000), 0);
    ck_assert_int_eq(ftruncate(fd, len), 0);
}

static void overwrite(int fd)
{
    uint8_t byte;

    ck_assert_int_eq(pread_full(fd, &byte, 1, 5000), 0);
    ck_assert_int_eq(pwrite_full(fd, &byte, 1, 5000), 0);
}

static void append(int fd)
{
    ck_assert_int_eq(pwrite_full(fd, "x", 1, (uint64_t)lseek(fd, 0, SEEK_END)), 0);
}

static void (*const meddlers[])(int fd) = {cut_in_half, cut_and_mend, overwrite, append};

START_TEST(srs_read__changed_while_it_is_read)
{
    struct params_image image;
    struct workers *workers = NULL;
    struct srs srs;
    struct errmsg err = {""};
    char path[256];

    ck_assert_int_eq(workers_create(2, &workers, NULL), 0);
    params_image_init(&image, &large);
    struct meddling meddling = {.fd = params_image_write(&image, image.len, path), .meddle = meddlers[_i]};
    struct srs_reading how = {
        .workers = workers, .progress = meddle_once, .progress_ctx = &meddling};
    /* Older than the clock's resolution, or the change could go unseen by its time. */
    struct timespec past[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
    ck_assert_int_eq(futimens(meddling.fd, past), 0);
    ck_assert_int_eq(srs_read(meddling.fd, "toy.params", &large, &how, &srs, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, "changed while it was read"), "%s", err.text);
    ck_assert_ptr_null(srs.h);
    close(meddling.fd);
    unlink(path);
    params_image_fini(&image);
    workers_destroy(workers);
}
END_TEST

START_TEST(srs_read__what_is_no_regular_file)
{
    struct srs_reading how = {.workers = NULL};
    struct srs srs;
    struct errmsg err;

    int fd = open("/dev/null", O_RDONLY);
    ck_assert_int_eq(srs_read(fd, "/dev/null", &small, &how, &srs, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "is not a regular file"));
    close(fd);
    fd = open("/tmp", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(srs_read(fd, "/tmp", &small, &how, &srs, &err), -EBADMSG);
    close(fd);
    ck_assert_int_lt(srs_read(-1, "nothing", &small, &how, &srs, &err), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("srs_file");
    TCase *tc = tcase_create("srs_file");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, srs_read__gives_points_and_digest, 1, 4);
    tcase_add_test(tc, srs_read__many_rounds);
    tcase_add_test(tc, srs_read__short_at_any_length);
    tcase_add_test(tc, srs_read__long);
    tcase_add_test(tc, srs_read__counts_of_another_circuit);
    tcase_add_test(tc, srs_read__swapped_sections);
    tcase_add_test(tc, srs_read__bad_verifying_key);
    tcase_add_loop_test(tc, srs_read__encodings_that_cannot_be, 0, IMAGE_SECTIONS);
    tcase_add_loop_test(tc, srs_check_points__off_the_curve, 0, IMAGE_SECTIONS);
    tcase_add_loop_test(tc, srs_check_points__outside_the_subgroup, 0, IMAGE_SECTIONS);
    tcase_add_loop_test(tc, srs_read__changed_while_it_is_read, 0, ARRAY_LEN(meddlers));
    tcase_add_test(tc, srs_read__what_is_no_regular_file);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
