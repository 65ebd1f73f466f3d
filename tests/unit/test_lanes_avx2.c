/*
 * Field elements side by side (fp4.h, fp2x4.h, fr4.h) against blst, at the extremes that their limbs can take.
 */
#include <stdio.h>

#if defined(__x86_64__)

#include <check.h>

#include "gpu/cpu/features.h"
#include "gpu/cpu/fp2x4.h"
#include "gpu/cpu/fr4.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640006
#define ROUNDS 3000

/* 0, 1, p - 1, limbs of all ones or of the highest bit alone, and what the generator gives. */
static fp_t draw_fp(struct random *rng)
{
    static const uint64_t p[6] = {0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624,
                                  0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a};
    fp_t x = {{0}};
    uint64_t dice = random_u64(rng) % 8;

    for (int i = 0; i < 6; i++)
        x.l[i] = dice == 0 ? 0 : dice == 1 ? p[i] : dice == 2 ? UINT64_MAX : random_u64(rng);
    if (dice == 1)
        x.l[0] -= 1 + random_u64(rng) % 2;
    if (dice == 3)
        for (int i = 0; i < 6; i++)
            x.l[i] &= UINT64_C(0x8000800080008000);
    if (dice != 1)
        x.l[5] %= p[5];
    return x;
}

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
        x.l[0] = 0xffffffff00000000, x.l[1] = 0x53bda402fffe5bfe;
        x.l[2] = 0x3339d80809a1d805, x.l[3] = 0x73eda753299d7d48;
        return x;
    case 3:
        return (fr_t){{UINT64_MAX, UINT64_MAX, UINT64_MAX, 0x73eda753299d7d47}};
    default:
        return x;
    }
}

struct fp_lanes {
    fp_t x[4];
    struct fp4 v;
};

static void fp_lanes_load(struct fp_lanes *a)
{
    const fp_t *in[4] = {&a->x[0], &a->x[1], &a->x[2], &a->x[3]};

    fp4_load(&a->v, in);
}

static void fp_lanes_draw(struct fp_lanes *a, struct random *rng)
{
    for (int i = 0; i < 4; i++)
        a->x[i] = draw_fp(rng);
    fp_lanes_load(a);
}

static void check_fp(const struct fp4 *got, const fp_t want[4])
{
    fp_t x[4];
    fp_t *const out[4] = {&x[0], &x[1], &x[2], &x[3]};

    fp4_store(out, got);
    ck_assert_mem_eq(x, want, sizeof(x));
}

START_TEST(fp4__products_of_coordinates_and_differences)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        struct fp_lanes a, b, c;
        struct fp4 product, difference;
        fp_t want[4], square[4], mixed[4];

        fp_lanes_draw(&a, &rng);
        fp_lanes_draw(&b, &rng);
        fp_lanes_draw(&c, &rng);
        for (int i = 0; i < 4; i++) {
            blst_fp_mul(&want[i], &a.x[i], &b.x[i]);
            blst_fp_sqr(&square[i], &want[i]);
            blst_fp_sub(&mixed[i], &a.x[i], &c.x[i]);
            blst_fp_mul(&mixed[i], &mixed[i], &want[i]);
        }
        check_fp(&a.v, a.x);
        fp4_mul(&product, &a.v, &b.v); /* loose by loose */
        check_fp(&product, want);
        fp4_sub(&difference, &a.v, &c.v);
        fp4_mul(&difference, &difference, &product);
        check_fp(&difference, mixed);
        fp4_sqr(&product, &product);
        check_fp(&product, square);
    }
}
END_TEST

/* The ranges that batch additions reach: down to -2.7p, up to p. */
START_TEST(fp4_store__brings_sums_into_range)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        struct fp_lanes a, b, c;
        struct fp4 sum;
        fp_t want[4] = {0};

        fp_lanes_draw(&a, &rng);
        fp_lanes_draw(&b, &rng);
        fp_lanes_draw(&c, &rng);
        for (int i = 0; i < 4; i++) {
            blst_fp_sub(&want[i], &a.x[i], &b.x[i]);
            blst_fp_sub(&want[i], &want[i], &b.x[i]);
            blst_fp_sub(&want[i], &want[i], &c.x[i]);
        }
        fp4_sub(&sum, &a.v, &b.v);
        fp4_sub(&sum, &sum, &b.v);
        fp4_sub(&sum, &sum, &c.v);
        check_fp(&sum, want);
        fp4_carry(&sum);
        check_fp(&sum, want);
    }
}
END_TEST

START_TEST(fp2x4__products_and_squares)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        fp2_t a[4], b[4], got[4], want[4];
        fp2_t *const out[4] = {&got[0], &got[1], &got[2], &got[3]};
        const fp2_t *const in_a[4] = {&a[0], &a[1], &a[2], &a[3]};
        const fp2_t *const in_b[4] = {&b[0], &b[1], &b[2], &b[3]};
        struct fp2x4 x, y, z;

        for (int i = 0; i < 4; i++) {
            a[i] = (fp2_t){{draw_fp(&rng), draw_fp(&rng)}};
            b[i] = (fp2_t){{draw_fp(&rng), draw_fp(&rng)}};
            blst_fp2_mul(&want[i], &a[i], &b[i]);
        }
        fp2x4_load(&x, in_a);
        fp2x4_load(&y, in_b);
        fp2x4_carry(&x);
        fp2x4_carry(&y);
        fp2x4_mul(&z, &x, &y);
        fp2x4_store(out, &z);
        ck_assert_mem_eq(got, want, sizeof(got));
        for (int i = 0; i < 4; i++)
            blst_fp2_sqr(&want[i], &want[i]);
        fp2x4_sqr(&z, &z);
        fp2x4_store(out, &z);
        ck_assert_mem_eq(got, want, sizeof(got));
    }
}
END_TEST

/* Sums and differences through as many levels as a transform can have, never carried, then a product. */
START_TEST(fr4__sixteen_levels_without_a_carry)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        fr_t x[4], y[4], sum[4], got[4], k = draw_fr(&rng);
        struct fr_factor factor = fr_factor_make(&k);

        for (int i = 0; i < 4; i++) {
            x[i] = draw_fr(&rng);
            sum[i] = draw_fr(&rng);
            fr_mul(&y[i], &x[i], &k);
        }
        struct fr4 vx = fr4_load(x), vsum = fr4_load(sum), vy = fr4_mul_factor(&vx, &factor);
        fr4_store(got, &vy);
        ck_assert_mem_eq(got, y, sizeof(got));
        for (int level = 0; level < 16; level++) {
            bool minus = round % 4 == 0 || (round % 4 == 1 && level % 2);
            vsum = minus ? fr4_sub(&vsum, &vy) : fr4_add(&vsum, &vy);
            for (int i = 0; i < 4; i++)
                (minus ? fr_sub : fr_add)(&sum[i], &sum[i], &y[i]);
        }
        fr4_store(got, &vsum);
        ck_assert_mem_eq(got, sum, sizeof(got));
        vsum = fr4_mul_factor(&vsum, &factor);
        fr4_store(got, &vsum);
        for (int i = 0; i < 4; i++)
            fr_mul(&sum[i], &sum[i], &k);
        ck_assert_mem_eq(got, sum, sizeof(got));
    }
}
END_TEST

START_TEST(fr4_mul__a_factor_for_each_lane)
{
    struct random rng = {SEED};

    for (int round = 0; round < ROUNDS; round++) {
        fr_t x[4], k[4], form[4], got[4], want[4];

        for (int i = 0; i < 4; i++) {
            x[i] = draw_fr(&rng);
            k[i] = draw_fr(&rng);
            form[i] = fr_factor_form(&k[i]);
            fr_mul(&want[i], &x[i], &k[i]);
        }
        struct fr4 v = fr4_load(x), factor = fr4_load(form);
        v = fr4_mul(&v, &factor);
        fr4_store(got, &v);
        ck_assert_mem_eq(got, want, sizeof(got));
    }
}
END_TEST

int main(void)
{
    if (!cpu_has(CPU_AVX2)) {
        printf("test_lanes_avx2 needs a CPU with AVX2 and FMA\n");
        return 77;
    }

    Suite *s = suite_create("lanes");
    TCase *tc = tcase_create("lanes");

    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, fp4__products_of_coordinates_and_differences);
    tcase_add_test(tc, fp4_store__brings_sums_into_range);
    tcase_add_test(tc, fp2x4__products_and_squares);
    tcase_add_test(tc, fr4__sixteen_levels_without_a_carry);
    tcase_add_test(tc, fr4_mul__a_factor_for_each_lane);
    suite_add_tcase(s, tc);
    return suite_run(s);
}

#else

int main(void)
{
    printf("test_lanes_avx2 needs an x86-64 CPU\n");
    return 77;
}

#endif
