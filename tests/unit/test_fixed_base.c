/*
 * Fixed-base products against double-and-add, and the digits that they are made of.
 */
#include "gpu/cpu/fixed_base.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/digits.h"
#include "gpu/cpu/features.h"
#include "tests/lib/random_group.h"

#define SEED 0x70726f6f66640002

/* 0, 1, r - 1, (r - 1) / 2 and its neighbours, powers of two, then random ones. */
static size_t edge_scalars(fr_t *out, size_t len, struct random *rng)
{
    fr_t one = fr_from_u64(1), two = fr_from_u64(2), half;
    size_t n = 0;

    out[n++] = fr_from_u64(0);
    out[n++] = one;
    fr_neg(&out[n++], &one);
    fr_inverse(&half, &two); /* (r + 1) / 2 */
    out[n++] = half;
    fr_sub(&out[n++], &half, &one);
    fr_add(&out[n++], &half, &one);
    for (out[n++] = two; n < 6 + 254; n++)
        fr_add(&out[n], &out[n - 1], &out[n - 1]);
    while (n < len)
        out[n++] = random_fr(rng);
    return n;
}

static void check_digits(const struct digits *d, const fr_t *scalar)
{
    struct recoded rec;
    uint64_t magnitude[4];
    bool negative;
    fr_t sum = {0};
    unsigned end = 255;

    digits_magnitude(magnitude, &negative, scalar);
    digits_recode(d, &rec, magnitude, negative);
    for (unsigned w = d->windows; w-- > 0; end = digits_at(d, w)) {
        int32_t digit = digits_get(d, &rec, w);
        fr_t value = fr_from_u64((uint64_t)abs(digit));
        ck_assert_int_le(abs(digit), 1 << digits_log2_max(d, w));
        if (digit < 0)
            fr_neg(&value, &value);
        for (unsigned i = digits_at(d, w); w + 1 < d->windows && i < end; i++)
            fr_add(&sum, &sum, &sum);
        fr_add(&sum, &sum, &value);
    }
    if (digits_negative(&rec))
        fr_neg(&sum, &sum);
    ck_assert(fr_equal(&sum, scalar));
}

START_TEST(digits__add_up_to_the_scalar)
{
    struct random rng = {SEED};
    fr_t scalars[400];
    struct digits d, even;

    printf("seed %llx\n", (unsigned long long)SEED);
    edge_scalars(scalars, ARRAY_LEN(scalars), &rng);
    digits_init(&d, (unsigned)_i);
    digits_init_even(&even, d.windows);
    ck_assert_uint_le(even.bits, d.bits);
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
        check_digits(&d, &scalars[i]);
        check_digits(&even, &scalars[i]);
    }
}
END_TEST

static const unsigned widths[] = {2, 3, 5, 8, 11, 13};

START_TEST(fixed_base_mul__equals_double_and_add)
{
    enum { LEN = 2100 };
    struct random rng = {SEED};
    struct workers *workers = NULL;
    struct fixed_base *t1 = NULL, *t2 = NULL;
    fr_t *scalars = calloc(LEN, sizeof(*scalars)), seven = fr_from_u64(7), k;
    g1_affine_t *p = calloc(LEN, sizeof(*p)), base1 = g1_of(&seven), want1;
    g2_affine_t *q = calloc(LEN, sizeof(*q)), base2 = g2_of(&seven), want2;

    unsigned width = widths[(size_t)_i / CPU_CODES];
    cpu_use_at_most((enum cpu_code)(_i % CPU_CODES));
    edge_scalars(scalars, LEN, &rng);
    ck_assert_int_eq(workers_create(1 + width % 3, &workers, NULL), 0);
    ck_assert_int_eq(fixed_base_g1_create(&base1, width, workers, &t1, NULL), 0);
    ck_assert_int_eq(fixed_base_g2_create(&base2, width, workers, &t2, NULL), 0);
    ck_assert_int_eq(fixed_base_g1_mul(t1, workers, scalars, LEN, p, NULL), 0);
    ck_assert_int_eq(fixed_base_g2_mul(t2, workers, scalars, LEN, q, NULL), 0);
    for (size_t i = 0; i < LEN; i++) {
        fr_mul(&k, &scalars[i], &seven);
        want1 = g1_of(&k);
        ck_assert_mem_eq(&p[i], &want1, sizeof(want1));
        if (i % 8)
            continue;
        want2 = g2_of(&k);
        ck_assert_mem_eq(&q[i], &want2, sizeof(want2));
    }
    fixed_base_destroy(t1);
    fixed_base_destroy(t2);
    workers_destroy(workers);
    free(scalars);
    free(p);
    free(q);
}
END_TEST

START_TEST(fixed_base_create__refuses_impossible_windows)
{
    struct fixed_base *t = NULL;
    struct errmsg err;

    ck_assert_int_eq(fixed_base_g1_create(blst_p1_affine_generator(), 1, NULL, &t, &err), -EINVAL);
    ck_assert_int_eq(fixed_base_g1_create(blst_p1_affine_generator(), 21, NULL, &t, &err), -EINVAL);
    ck_assert_ptr_null(t);
    fixed_base_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fixed_base");
    TCase *tc = tcase_create("fixed_base");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, digits__add_up_to_the_scalar, DIGITS_BITS_MIN, DIGITS_BITS_MAX + 1);
    tcase_add_loop_test(tc, fixed_base_mul__equals_double_and_add, 0,
                        (int)ARRAY_LEN(widths) * CPU_CODES);
    tcase_add_test(tc, fixed_base_create__refuses_impossible_windows);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
