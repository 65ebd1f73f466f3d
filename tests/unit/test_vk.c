#include "gpu/vk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/point.h"
#include "tests/lib/odd_points.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

static const char *const sizes[] = {"2KiB", "8MiB", "512MiB", "32GiB", "64GiB"};

/* The bytes of a development key; free() them. */
static uint8_t *key_bytes(const char *size, size_t *len)
{
    char path[VECTOR_PATH_MAX], relative[256], id[SECTOR_CACHE_ID_MAX];

    sector_cache_id(sector_size_by_name(size), id);
    snprintf(relative, sizeof(relative), "vk/%s.vk", id);
    ck_assert(vector_find(path, relative));
    return (uint8_t *)vector_read(path, len);
}

static void expect_bad(const uint8_t *bytes, size_t len, const char *says)
{
    struct errmsg err = {""};
    struct vk vk;

    ck_assert_int_eq(vk_read(bytes, len, &vk, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, says), "'%s' does not say '%s'", err.text, says);
}

START_TEST(vk_read__development_keys_of_all_sizes_come_back)
{
    size_t len;
    uint8_t *bytes = key_bytes(sizes[_i], &len), *written = malloc(len);
    struct vk vk;

    ck_assert_int_eq(vk_read(bytes, len, &vk, NULL), 0);
    ck_assert_uint_eq(vk.ic_len, 4 + 18 * sector_size_by_name(sizes[_i])->challenges);
    ck_assert_uint_eq(vk_bytes(vk.ic_len), len);
    vk_write(written, &vk);
    ck_assert_mem_eq(written, bytes, len);
    vk_fini(&vk);
    free(written);
    free(bytes);
}
END_TEST

/* A .params goes on after the key. */
START_TEST(vk_read__more_bytes_may_follow)
{
    size_t len;
    uint8_t *bytes = key_bytes("2KiB", &len);
    struct vk vk;

    bytes = realloc(bytes, len + 100);
    memset(bytes + len, 0xff, 100);
    ck_assert_int_eq(vk_read(bytes, len + 100, &vk, NULL), 0);
    vk_fini(&vk);
    vk_fini(&vk);
    free(bytes);
}
END_TEST

START_TEST(vk_read__truncated_anywhere)
{
    size_t len;
    uint8_t *bytes = key_bytes("2KiB", &len);
    struct vk vk;

    for (size_t n = 0; n < len; n += n < VK_HEAD_BYTES ? 1 : 61)
        ck_assert_int_eq(vk_read(bytes, n, &vk, NULL), -EBADMSG);
    expect_bad(bytes, 10, "ends before alpha_g1");
    expect_bad(bytes, 866, "ends before the count of ic");
    expect_bad(bytes, len - 1, "ic has 40 points, there is room for 39");
    free(bytes);
}
END_TEST

START_TEST(vk_read__count_of_ic_is_bounded_before_memory_is_taken)
{
    size_t len;
    uint8_t *bytes = key_bytes("2KiB", &len);

    store_be32(bytes + 864, 0xffffffff);
    expect_bad(bytes, len, "4294967295");
    store_be32(bytes + 864, 0);
    expect_bad(bytes, len, "empty");
    free(bytes);
}
END_TEST

/* Offset of each point in the file, its name, and whether it is of G2. */
static const struct {
    size_t at;
    const char *name;
    bool g2;
} points[] = {
    {0, "alpha_g1", false},  {96, "beta_g1", false},   {192, "beta_g2", true},
    {384, "gamma_g2", true}, {576, "delta_g1", false}, {672, "delta_g2", true},
    {868, "ic[0]", false},   {868 + 39 * 96, "ic[39]", false},
};

START_TEST(vk_read__each_point_is_checked)
{
    size_t at = points[_i].at, bytes_of = points[_i].g2 ? G2_BYTES : G1_BYTES, len;
    uint8_t *bytes = key_bytes("2KiB", &len), honest[G2_BYTES];

    memcpy(honest, bytes + at, bytes_of);
    bytes[at + bytes_of - 1] ^= 1;
    expect_bad(bytes, len, "is not on the curve");
    expect_bad(bytes, len, points[_i].name);

    if (points[_i].g2) {
        g2_affine_t odd = odd_g2(1);
        g2_encode(bytes + at, &odd);
    } else {
        g1_affine_t odd = odd_g1(1);
        g1_encode(bytes + at, &odd);
    }
    expect_bad(bytes, len, "is outside the subgroup");
    expect_bad(bytes, len, points[_i].name);

    memset(bytes + at, 0, bytes_of);
    bytes[at] = 0x40;
    expect_bad(bytes, len, "is infinity");
    memcpy(bytes + at, honest, bytes_of);
    bytes[at] |= 0x80;
    expect_bad(bytes, len, "is not in uncompressed form");
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vk");
    TCase *tc = tcase_create("vk");

    tcase_add_loop_test(tc, vk_read__development_keys_of_all_sizes_come_back, 0, ARRAY_LEN(sizes));
    tcase_add_test(tc, vk_read__more_bytes_may_follow);
    tcase_add_test(tc, vk_read__truncated_anywhere);
    tcase_add_test(tc, vk_read__count_of_ic_is_bounded_before_memory_is_taken);
    tcase_add_loop_test(tc, vk_read__each_point_is_checked, 0, ARRAY_LEN(points));
    suite_add_tcase(s, tc);
    return suite_run(s);
}
