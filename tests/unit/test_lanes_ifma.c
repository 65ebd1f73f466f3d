/*
 * Field elements side by side (fp8.h, fp2x8.h) against blst, at the extremes that their limbs can take.
 */
#include "gpu/cpu/features.h"

#include <stdio.h>

#if defined(__x86_64__)

#include <check.h>

#include "gpu/cpu/fp2x8.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640011
#define ROUNDS 3000
#define LIMB_MAX ((INT64_C(1) << FP8_BITS) - 1)
#define TOP_LARGE ((INT64_C(1) << 47) - 1) /* of the largest factors: below 2^31 p */
#define TOP_SMALL (4 * 0x1a011 - 1)        /* of those that may be multiplied by them: below 4 p */

struct limbs {
    int64_t l[FP8_LIMBS][FP8_LANES];
};

static struct fp8 fp8_of(const struct limbs *x)
{
    struct fp8 out;

    for (int i = 0; i < FP8_LIMBS; i++)
        out.l[i] = _mm512_loadu_si512(x->l[i]);
    return out;
}

static struct limbs limbs_of(const struct fp8 *x)
{
    struct limbs out;

    for (int i = 0; i < FP8_LIMBS; i++)
        _mm512_storeu_si512(out.l[i], x->l[i]);
    return out;
}

static fp_t fp_from_u64(uint64_t x)
{
    uint64_t words[6] = {x};
    fp_t out;

    blst_fp_from_uint64(&out, words);
    return out;
}

static fp_t fp_times_2_to(fp_t x, int n)
{
    for (int i = 0; i < n; i++)
        blst_fp_add(&x, &x, &x);
    return x;
}

/* The value of a lane modulo p, whatever its limbs. */
static fp_t value_of(const struct fp8 *x, int lane)
{
    struct limbs limbs = limbs_of(x);
    fp_t out = {{0}};

    for (int i = FP8_LIMBS - 1; i >= 0; i--) {
        int64_t limb = limbs.l[i][lane];
        fp_t term = fp_from_u64((uint64_t)(limb < 0 ? -limb : limb));
        blst_fp_cneg(&term, &term, limb < 0);
        out = fp_times_2_to(out, FP8_BITS);
        blst_fp_add(&out, &out, &term);
    }
    return out;
}

static fp2_t fp2_value_of(const struct fp2x8 *x, int lane)
{
    return (fp2_t){{value_of(&x->c[0], lane), value_of(&x->c[1], lane)}};
}

/* Limbs of all ones, of nothing, of the highest bit, or random; the value is below top + 1 times 2^364. */
static struct fp8 draw_factor(struct random *rng, int64_t top)
{
    struct limbs x;

    for (int lane = 0; lane < FP8_LANES; lane++) {
        uint64_t dice = random_u64(rng) % 6;
        for (int i = 0; i < FP8_LIMBS; i++) {
            int64_t max = i < FP8_LIMBS - 1 ? LIMB_MAX : top;
            int64_t any = (int64_t)(random_u64(rng) % (uint64_t)(max + 1));
            x.l[i][lane] = dice == 0   ? max
                           : dice == 1 ? 0
                           : dice == 2 ? (max + 1) / 2
                           : dice == 3 ? any % 2 * max
                                       : any;
        }
    }
    return fp8_of(&x);
}

static struct fp2x8 draw_fp2_factor(struct random *rng, int64_t top)
{
    return (struct fp2x8){{draw_factor(rng, top), draw_factor(rng, top)}};
}

/* Tidy, and from 0 to `max_p` tenths of p or hardly more. */
static void check_range(const struct fp8 *x, int64_t max_p)
{
    struct limbs limbs = limbs_of(x);

    for (int lane = 0; lane < FP8_LANES; lane++) {
        for (int i = 0; i < FP8_LIMBS - 1; i++)
            ck_assert(limbs.l[i][lane] >= 0 && limbs.l[i][lane] <= LIMB_MAX);
        ck_assert_int_ge(limbs.l[FP8_LIMBS - 1][lane], 0);
        ck_assert_int_le(limbs.l[FP8_LIMBS - 1][lane], 0x1a012 * max_p / 10);
    }
}

static void check_fp(const fp_t *got, const fp_t *want)
{
    ck_assert_mem_eq(got, want, sizeof(*got));
}

START_TEST(fp8_mul__of_the_largest_factors)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        struct fp8 a = draw_factor(&rng, TOP_LARGE), b = draw_factor(&rng, TOP_SMALL), ab, loose;

        if (round % 2)
            fp8_mul(&ab, &a, &b);
        else
            fp8_mul(&ab, &b, &a);
        fp8_mul_loose(&loose, &a, &b);
        check_range(&ab, 15);
        for (int lane = 0; lane < FP8_LANES; lane++) {
            fp_t x = value_of(&a, lane), y = value_of(&b, lane), want;
            fp_t got = fp_times_2_to(value_of(&ab, lane), 416);
            blst_fp_mul(&want, &x, &y);
            check_fp(&got, &want);
            got = fp_times_2_to(value_of(&loose, lane), 416);
            check_fp(&got, &want);
        }
    }
}
END_TEST

START_TEST(fp8_sqr__of_the_largest_factors)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        struct fp8 a = draw_factor(&rng, TOP_SMALL), square;

        fp8_sqr_loose(&square, &a);
        fp8_carry(&square);
        check_range(&square, 15);
        for (int lane = 0; lane < FP8_LANES; lane++) {
            fp_t x = value_of(&a, lane), got = fp_times_2_to(value_of(&square, lane), 416);
            blst_fp_sqr(&x, &x);
            check_fp(&got, &x);
        }
    }
}
END_TEST

/* Limbs of either sign and up to 61 bits. */
START_TEST(fp8_carry__of_loose_limbs)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        struct limbs x;
        for (int i = 0; i < FP8_LIMBS; i++)
            for (int lane = 0; lane < FP8_LANES; lane++)
                x.l[i][lane] = (int64_t)random_u64(&rng) >> (2 + random_u64(&rng) % 60);
        struct fp8 loose = fp8_of(&x), tidy = loose;
        fp8_carry(&tidy);
        struct limbs carried = limbs_of(&tidy);
        for (int lane = 0; lane < FP8_LANES; lane++) {
            fp_t got = value_of(&tidy, lane), want = value_of(&loose, lane);
            check_fp(&got, &want);
            for (int i = 0; i < FP8_LIMBS - 1; i++)
                ck_assert(carried.l[i][lane] >= 0 && carried.l[i][lane] <= LIMB_MAX);
        }
    }
}
END_TEST

/* 0, 1, p - 1, words of all ones, and what the generator gives. */
static fp_t draw_fp(struct random *rng)
{
    static const uint64_t p[6] = {0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624,
                                  0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a};
    fp_t x = {{0}};
    uint64_t dice = random_u64(rng) % 6;

    for (int i = 0; i < 6; i++)
        x.l[i] = dice == 0 ? 0 : dice == 1 ? p[i] : dice == 2 ? UINT64_MAX : random_u64(rng);
    if (dice == 1)
        x.l[0] -= 1;
    else
        x.l[5] %= p[5];
    x.l[0] += dice == 0 ? random_u64(rng) % 2 : 0;
    return x;
}

/* blst's form is times 2^384, which the limbs show. */
START_TEST(fp8__loads_at_any_shift_and_stores)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS / 10; round++) {
        fp_t x[FP8_LANES], back[FP8_LANES] = {0};
        const fp_t *in[FP8_LANES];
        fp_t *out[FP8_LANES];
        struct fp8 v;
        __mmask8 lanes = (__mmask8)random_u64(&rng);

        for (int lane = 0; lane < FP8_LANES; lane++) {
            x[lane] = draw_fp(&rng);
            in[lane] = &x[lane];
            out[lane] = &back[lane];
        }
        for (int shift = 0; shift < 32; shift++) {
            fp8_load(&v, in, shift);
            for (int lane = 0; lane < FP8_LANES; lane++) {
                fp_t got = value_of(&v, lane), want = fp_times_2_to(x[lane], 384 + shift);
                check_fp(&got, &want);
            }
        }
        fp8_load(&v, in, 0);
        fp8_store(out, &v, lanes);
        for (int lane = 0; lane < FP8_LANES; lane++)
            if (lanes >> lane & 1)
                ck_assert_mem_eq(&back[lane], &x[lane], sizeof(x[0]));
            else
                ck_assert(back[lane].l[0] == 0 && back[lane].l[5] == 0);
    }
}
END_TEST

/* Of 0, p, 2 p and their neighbours, and multiples of p far up. */
START_TEST(fp8_is_zero__tells_multiples_of_p)
{
    static const uint32_t multiples[] = {0, 1, 2, 3, 1000, 1u << 20, (1u << 31) - 1};

    for (size_t i = 0; i < ARRAY_LEN(multiples); i++) {
        struct fp8 x;
        fp8_multiple_of_p(&x, multiples[i]);
        ck_assert_int_eq(fp8_maybe_zero(&x), 0xff);
        ck_assert_int_eq(fp8_is_zero(&x), 0xff);
        struct limbs near = limbs_of(&x);
        near.l[0][3] += 1;
        near.l[FP8_LIMBS - 1][5] += 1;
        x = fp8_of(&near);
        fp8_carry(&x);
        ck_assert_int_eq(fp8_is_zero(&x), 0xff & ~(1 << 3 | 1 << 5));
    }
}
END_TEST

START_TEST(fp8_canonical__of_values_below_2p)
{
    for (uint32_t n = 0; n < 2; n++)
        for (int64_t more = -2; more < 3; more++) {
            struct fp8 x;
            fp8_multiple_of_p(&x, n + (more < 0));
            struct limbs limbs = limbs_of(&x);
            for (int lane = 0; lane < FP8_LANES; lane++)
                limbs.l[0][lane] += more;
            x = fp8_of(&limbs);
            fp8_carry(&x);
            fp8_canonical(&x);
            fp_t got = value_of(&x, 4), want = fp_from_u64((uint64_t)(more < 0 ? -more : more));
            blst_fp_cneg(&want, &want, more < 0);
            check_fp(&got, &want);
            struct limbs canonical = limbs_of(&x);
            ck_assert(more < 0 ? canonical.l[7][4] == 0x1a011 : canonical.l[7][4] == 0);
        }
}
END_TEST

START_TEST(fp2x8__products_and_squares)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        struct fp2x8 a = draw_fp2_factor(&rng, TOP_LARGE), b = draw_fp2_factor(&rng, TOP_SMALL);
        struct fp2x8 ab, square;

        if (round % 2)
            fp2x8_mul(&ab, &a, &b);
        else
            fp2x8_mul(&ab, &b, &a);
        fp2x8_sqr_loose(&square, &b);
        fp2x8_carry(&square);
        for (int i = 0; i < 2; i++) {
            check_range(&ab.c[i], 25);
            check_range(&square.c[i], 25);
        }
        for (int lane = 0; lane < FP8_LANES; lane++) {
            fp2_t x = fp2_value_of(&a, lane), y = fp2_value_of(&b, lane), want;
            fp2_t got = fp2_value_of(&ab, lane), got_square = fp2_value_of(&square, lane);
            blst_fp2_mul(&want, &x, &y);
            blst_fp2_sqr(&y, &y);
            for (int i = 0; i < 2; i++) {
                got.fp[i] = fp_times_2_to(got.fp[i], 416);
                got_square.fp[i] = fp_times_2_to(got_square.fp[i], 416);
            }
            ck_assert_mem_eq(&got, &want, sizeof(got));
            ck_assert_mem_eq(&got_square, &y, sizeof(got));
        }
    }
}
END_TEST

int main(void)
{
    if (!cpu_has(CPU_IFMA)) {
        printf("test_lanes_ifma needs a CPU with AVX-512 IFMA\n");
        return 77;
    }

    Suite *s = suite_create("lanes");
    TCase *tc = tcase_create("lanes");

    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, fp8_mul__of_the_largest_factors);
    tcase_add_test(tc, fp8_sqr__of_the_largest_factors);
    tcase_add_test(tc, fp8_carry__of_loose_limbs);
    tcase_add_test(tc, fp8__loads_at_any_shift_and_stores);
    tcase_add_test(tc, fp8_is_zero__tells_multiples_of_p);
    tcase_add_test(tc, fp8_canonical__of_values_below_2p);
    tcase_add_test(tc, fp2x8__products_and_squares);
    suite_add_tcase(s, tc);
    return suite_run(s);
}

#else

int main(void)
{
    printf("test_lanes_ifma needs an x86-64 CPU\n");
    return 77;
}

#endif
