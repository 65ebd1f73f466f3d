#include "gpu/point.h"

#include <stdlib.h>

#include "tests/lib/odd_points.h"
#include "tests/lib/suite.h"

#define P_HEX                                                                                      \
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab"

/* k times the generator. */
static g1_affine_t g1_multiple(uint64_t k)
{
    uint8_t scalar[8];
    g1_t p;
    g1_affine_t out;

    store_le64(scalar, k);
    blst_p1_mult(&p, blst_p1_generator(), scalar, 64);
    blst_p1_to_affine(&out, &p);
    return out;
}

static g2_affine_t g2_multiple(uint64_t k)
{
    uint8_t scalar[8];
    g2_t p;
    g2_affine_t out;

    store_le64(scalar, k);
    blst_p2_mult(&p, blst_p2_generator(), scalar, 64);
    blst_p2_to_affine(&out, &p);
    return out;
}

START_TEST(g1_encode__equals_blst_and_decodes_back)
{
    for (uint64_t k = 1; k < 100; k++) {
        g1_affine_t p = g1_multiple(k * 0x9e3779b97f4a7c15), back;
        uint8_t ours[G1_BYTES], theirs[G1_BYTES];
        g1_encode(ours, &p);
        blst_p1_affine_serialize(theirs, &p);
        ck_assert_mem_eq(ours, theirs, sizeof(ours));
        ck_assert_int_eq(g1_decode_checked(&back, ours), POINT_OK);
        ck_assert_mem_eq(&back, &p, sizeof(p));
    }
}
END_TEST

START_TEST(g2_encode__equals_blst_and_decodes_back)
{
    for (uint64_t k = 1; k < 100; k++) {
        g2_affine_t p = g2_multiple(k * 0x9e3779b97f4a7c15), back;
        uint8_t ours[G2_BYTES], theirs[G2_BYTES];
        g2_encode(ours, &p);
        blst_p2_affine_serialize(theirs, &p);
        ck_assert_mem_eq(ours, theirs, sizeof(ours));
        ck_assert_int_eq(g2_decode_checked(&back, ours), POINT_OK);
        ck_assert_mem_eq(&back, &p, sizeof(p));
    }
}
END_TEST

/* Each of the two (four) coordinates in turn: p itself, and p - 1 which is canonical. */
START_TEST(decode__coordinate_not_below_the_modulus)
{
    uint8_t modulus[48], bytes[G2_BYTES];
    g1_affine_t p1;
    g2_affine_t p2;

    ck_assert_int_eq(hex_decode(modulus, P_HEX, 48), 0);
    for (int at = 0; at < 4; at++) {
        memset(bytes, 0, sizeof(bytes));
        memcpy(bytes + 48 * at, modulus, 48);
        ck_assert_int_eq(g2_decode(&p2, bytes), POINT_NOT_CANONICAL);
        if (at < 2)
            ck_assert_int_eq(g1_decode(&p1, bytes), POINT_NOT_CANONICAL);
        bytes[48 * at + 47]--;
        ck_assert_int_eq(g2_decode(&p2, bytes), POINT_OK);
        ck_assert_int_eq(g2_decode_checked(&p2, bytes), POINT_OFF_CURVE);
    }
}
END_TEST

START_TEST(decode__flags_and_infinity)
{
    uint8_t bytes[G2_BYTES] = {0x40};
    g1_affine_t p1;
    g2_affine_t p2;

    ck_assert_int_eq(g1_decode(&p1, bytes), POINT_INFINITY);
    ck_assert_int_eq(g2_decode(&p2, bytes), POINT_INFINITY);
    bytes[G1_BYTES - 1] = 1;
    ck_assert_int_eq(g1_decode(&p1, bytes), POINT_FLAGS);
    ck_assert_int_eq(g2_decode(&p2, bytes), POINT_FLAGS);
    for (unsigned flags = 1; flags < 8; flags++) {
        g1_affine_t one = g1_multiple(1);
        g2_affine_t two = g2_multiple(1);
        g1_encode(bytes, &one);
        bytes[0] |= (uint8_t)(flags << 5);
        ck_assert_int_eq(g1_decode(&p1, bytes), POINT_FLAGS);
        g2_encode(bytes, &two);
        bytes[0] |= (uint8_t)(flags << 5);
        ck_assert_int_eq(g2_decode(&p2, bytes), POINT_FLAGS);
    }
}
END_TEST

START_TEST(decode_checked__off_the_curve)
{
    uint8_t bytes[G2_BYTES];
    g1_affine_t p1 = g1_multiple(5);
    g2_affine_t p2 = g2_multiple(5);

    g1_encode(bytes, &p1);
    bytes[G1_BYTES - 1] ^= 1;
    ck_assert_int_eq(g1_decode(&p1, bytes), POINT_OK);
    ck_assert_int_eq(g1_decode_checked(&p1, bytes), POINT_OFF_CURVE);
    g2_encode(bytes, &p2);
    bytes[G2_BYTES - 1] ^= 1;
    ck_assert_int_eq(g2_decode(&p2, bytes), POINT_OK);
    ck_assert_int_eq(g2_decode_checked(&p2, bytes), POINT_OFF_CURVE);
}
END_TEST

/* All zero is infinity in memory, but in a file it is just a point off the curve. */
START_TEST(decode__zeros)
{
    static const uint8_t zeros[G2_BYTES];
    g1_affine_t p1;
    g2_affine_t p2;

    ck_assert_int_eq(g1_decode(&p1, zeros), POINT_OFF_CURVE);
    ck_assert_int_eq(g2_decode(&p2, zeros), POINT_OFF_CURVE);
}
END_TEST

static const uint32_t g1_orders[] = {3, 11, 10177, 859267, 52437899};
static const uint32_t g2_orders[] = {13, 23, 2713, 11953, 262069};

START_TEST(g1_decode_checked__outside_the_subgroup)
{
    g1_affine_t small = odd_g1_of_order(g1_orders[_i]), honest = g1_multiple(7);
    g1_affine_t shifted = odd_g1_shifted(&honest, &small), out;
    uint8_t bytes[G1_BYTES];

    g1_encode(bytes, &small);
    ck_assert_int_eq(g1_decode_checked(&out, bytes), POINT_OUTSIDE_SUBGROUP);
    g1_encode(bytes, &shifted);
    ck_assert_int_eq(g1_decode_checked(&out, bytes), POINT_OUTSIDE_SUBGROUP);
}
END_TEST

START_TEST(g2_decode_checked__outside_the_subgroup)
{
    g2_affine_t small = odd_g2_of_order(g2_orders[_i]), honest = g2_multiple(7);
    g2_affine_t shifted = odd_g2_shifted(&honest, &small), out;
    uint8_t bytes[G2_BYTES];

    g2_encode(bytes, &small);
    ck_assert_int_eq(g2_decode_checked(&out, bytes), POINT_OUTSIDE_SUBGROUP);
    g2_encode(bytes, &shifted);
    ck_assert_int_eq(g2_decode_checked(&out, bytes), POINT_OUTSIDE_SUBGROUP);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("point");
    TCase *tc = tcase_create("point");

    tcase_add_test(tc, g1_encode__equals_blst_and_decodes_back);
    tcase_add_test(tc, g2_encode__equals_blst_and_decodes_back);
    tcase_add_test(tc, decode__coordinate_not_below_the_modulus);
    tcase_add_test(tc, decode__flags_and_infinity);
    tcase_add_test(tc, decode_checked__off_the_curve);
    tcase_add_test(tc, decode__zeros);
    tcase_add_loop_test(tc, g1_decode_checked__outside_the_subgroup, 0, ARRAY_LEN(g1_orders));
    tcase_add_loop_test(tc, g2_decode_checked__outside_the_subgroup, 0, ARRAY_LEN(g2_orders));
    suite_add_tcase(s, tc);
    return suite_run(s);
}
