/*
 * Field elements side by side (fp8.h, fp2x8.h, fr8.h) against blst, at the extremes that their limbs can take.
 */
#include "gpu/cpu/features.h"

#include <stdio.h>

#if defined(__x86_64__)

#include <check.h>

#include "gpu/cpu/fp2x8.h"
#include "gpu/cpu/fr8.h"
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

static fr_t draw_fr(struct random *rng)
{
    fr_t one = fr_from_u64(1), x = random_fr(rng);

    switch (random_u64(rng) % 6) {
    case 0:
        return fr_from_u64(0);
    case 1:
        fr_neg(&x, &one);
        return x;
    case 2: /* r - 1 as it stands in memory */
        return (fr_t){
            {0xffffffff00000000, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}};
    case 3:
        return (fr_t){{UINT64_MAX, UINT64_MAX, UINT64_MAX, 0x73eda753299d7d47}};
    default:
        return x;
    }
}

static struct fr8 fr8_load(const fr_t x[8])
{
    struct fr8_words words = fr8_words_load(x);

    return fr8_of_words(&words);
}

/* Any loose value. */
static void fr8_check(struct fr8 x, const fr_t want[8])
{
    fr_t got[8];

    fr8_canonical(&x);
    struct fr8_words words = fr8_to_words(&x);
    __m512i rows[4];
    fr8_words_to_rows(rows, &words);
    memcpy(got, rows, sizeof(got));
    ck_assert_mem_eq(got, want, sizeof(got));
}

/* Sums and differences through as many levels as a transform can have, never carried, then a product. */
START_TEST(fr8__sixteen_levels_without_reducing)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        fr_t x[8], y[8], sum[8], k = draw_fr(&rng);
        struct fr_factor52 factor = fr_factor52_make(&k);
        struct fr8 w = fr8_broadcast(&factor), product;

        for (int i = 0; i < 8; i++) {
            x[i] = draw_fr(&rng);
            sum[i] = draw_fr(&rng);
            fr_mul(&y[i], &x[i], &k);
        }
        struct fr8 vx = fr8_load(x), vsum = fr8_load(sum);
        fr8_mul(&product, &vx, &w);
        fr8_check(product, y);
        for (int level = 0; level < 16; level++) {
            bool minus = round % 4 == 0 || (round % 4 == 1 && level % 2);
            (minus ? fr8_sub : fr8_add)(&vsum, &vsum, &product);
            for (int i = 0; i < 8; i++)
                (minus ? fr_sub : fr_add)(&sum[i], &sum[i], &y[i]);
        }
        fr8_check(vsum, sum);
        fr8_carry(&vsum);
        fr8_mul(&vsum, &vsum, &w);
        for (int i = 0; i < 8; i++)
            fr_mul(&sum[i], &sum[i], &k);
        fr8_check(vsum, sum);
    }
}
END_TEST

/* x of all bits, times a factor for each lane. */
START_TEST(fr8_mul__of_the_largest_values)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        fr_t k[8], form[8], want[8], five_limbs[8], other[8];
        int64_t limbs[FR8_LIMBS][8];
        struct fr8 x, y, z;

        for (int l = 0; l < 8; l++) {
            fr_t two_52 = fr_from_u64(UINT64_C(1) << FR8_BITS), term;
            k[l] = draw_fr(&rng);
            form[l] = fr_factor_form(&k[l]);
            five_limbs[l] = fr_from_u64(0);
            for (int i = FR8_LIMBS - 1; i >= 0; i--) {
                limbs[i][l] = round % 3 ? (int64_t)(random_u64(&rng) >> 12) : LIMB_MAX;
                term = fr_from_u64((uint64_t)limbs[i][l]);
                fr_mul(&five_limbs[l], &five_limbs[l], &two_52);
                fr_add(&five_limbs[l], &five_limbs[l], &term);
            }
        }
        /* What stands in the limbs is the value times 2^256. */
        fr_t in_memory = {{1, 0, 0, 0}};
        for (int i = 0; i < FR8_LIMBS; i++)
            x.l[i] = _mm512_loadu_si512(limbs[i]);
        struct fr8 w = fr8_load(form), x_in_order = x;
        for (int l = 0; l < 8; l++) {
            /* lane l of x meets the factor of element fr8_order[l] */
            int e = fr8_order[l];
            fr_mul(&want[e], &five_limbs[l], &in_memory);
            fr_mul(&other[e], &want[e], &k[e]);
        }
        fr8_mul_two(&y, &x, &w, &z, &x_in_order, &w);
        fr8_check(y, other);
        fr8_check(z, other);
        fr8_check(x, want);
    }
}
END_TEST

START_TEST(fr8_canonical__of_all_multiples_of_r)
{
    for (int64_t n = 0; n < 35; n++)
        for (int64_t more = n ? -2 : 0; more < 3; more++) {
            struct fr8 x;
            fr_t want[8];
            for (int i = 0; i < FR8_LIMBS; i++)
                x.l[i] = _mm512_set1_epi64(n * (int64_t)fr8_r[i] + (i ? 0 : more));
            for (int l = 0; l < 8; l++)
                want[l] = more >= 0
                              ? (fr_t){{(uint64_t)more}}
                              : (fr_t){{0xffffffff00000001 + (uint64_t)more, 0x53bda402fffe5bfe,
                                        0x3339d80809a1d805, 0x73eda753299d7d48}};
            fr8_check(x, want);
        }
}
END_TEST

START_TEST(fr8_transpose__swaps_lanes_and_vectors)
{
    uint64_t in[8][8], out[8][8];
    __m512i r[8];

    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 8; l++)
            in[i][l] = (uint64_t)(8 * i + l);
    memcpy(r, in, sizeof(in));
    fr8_transpose(r);
    memcpy(out, r, sizeof(out));
    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 8; l++)
            ck_assert_uint_eq(out[l][i], in[i][l]);
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
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, fp8_mul__of_the_largest_factors);
    tcase_add_test(tc, fp8_sqr__of_the_largest_factors);
    tcase_add_test(tc, fp8_carry__of_loose_limbs);
    tcase_add_test(tc, fp8__loads_at_any_shift_and_stores);
    tcase_add_test(tc, fp8_is_zero__tells_multiples_of_p);
    tcase_add_test(tc, fp8_canonical__of_values_below_2p);
    tcase_add_test(tc, fp2x8__products_and_squares);
    tcase_add_test(tc, fr8__sixteen_levels_without_reducing);
    tcase_add_test(tc, fr8_mul__of_the_largest_values);
    tcase_add_test(tc, fr8_canonical__of_all_multiples_of_r);
    tcase_add_test(tc, fr8_transpose__swaps_lanes_and_vectors);
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
