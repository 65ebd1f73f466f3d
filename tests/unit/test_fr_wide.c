#include "numa/circuit/fr_wide.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/suite.h"

#define SEED 20240302u

/* Often an edge: 0, 1, r - 1, or words of ones as far as r allows. */
static fr_t random_fr(void)
{
    static const fr_t edges[] = {
        {{0, 0, 0, 0}},
        FR_ONE,
        {{UINT64_C(0xffffffff00000000), UINT64_C(0x53bda402fffe5bfe), UINT64_C(0x3339d80809a1d805),
          UINT64_C(0x73eda753299d7d48)}},
        {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_C(0x73eda753299d7d47)}},
    };
    fr_t out;

    if (random() % 2)
        return edges[random() % 4];
    for (int i = 0; i < 4; i++)
        out.l[i] = (uint64_t)random() << 33 ^ (uint64_t)random();
    out.l[3] >>= 2; /* below r */
    return out;
}

START_TEST(fr_wide__equals_products_one_by_one)
{
    fr_t a[FR_WIDE_TERMS], b[FR_WIDE_TERMS][2], t, want, got;

    srandom(SEED);
    for (int round = 0; round < 20000; round++) {
        struct fr_wide sum = {{0}};
        const size_t terms = (size_t)random() % FR_WIDE_TERMS;
        want = random_fr();
        fr_wide_add(&sum, &want);
        for (size_t i = 0; i < terms; i++) {
            a[i] = random_fr();
            b[i][0] = random_fr();
            fr_mul(&t, &a[i], &b[i][0]);
            fr_add(&want, &want, &t);
        }
        fr_wide_add_dot(&sum, a, b[0], terms, sizeof(b[0]));
        fr_wide_reduce(&got, &sum);
        if (!fr_equal(&got, &want))
            ck_abort_msg("round %d, %zu terms", round, terms);
    }
}
END_TEST

/* The largest sum there may be. */
START_TEST(fr_wide__fifteen_largest_products)
{
    const fr_t one = FR_ONE;
    fr_t top = {{0}}, t, want = {{0}}, got;
    struct fr_wide sum = {{0}};

    /* As an integer r - 1, whatever it stands for. */
    top = (fr_t){{UINT64_C(0xffffffff00000000), UINT64_C(0x53bda402fffe5bfe),
                  UINT64_C(0x3339d80809a1d805), UINT64_C(0x73eda753299d7d48)}};
    for (int i = 0; i < FR_WIDE_TERMS; i++) {
        fr_mul(&t, &top, &top);
        fr_add(&want, &want, &t);
        fr_wide_add_dot(&sum, &top, &top, 1, 0);
    }
    fr_wide_reduce(&got, &sum);
    ck_assert(fr_equal(&got, &want));
    memset(&sum, 0, sizeof(sum));
    fr_wide_add(&sum, &one);
    fr_wide_reduce(&got, &sum);
    ck_assert(fr_equal(&got, &one));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fr_wide");
    TCase *tc = tcase_create("fr_wide");

    if (!fr_wide_available()) {
        suite_skip("fr_wide", "an x86-64 CPU with BMI2 and ADX");
        return 77;
    }
    printf("seed %u\n", SEED);
    tcase_add_test(tc, fr_wide__equals_products_one_by_one);
    tcase_add_test(tc, fr_wide__fifteen_largest_products);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
