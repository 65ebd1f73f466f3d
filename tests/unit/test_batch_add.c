/*
 * Batches of affine additions against blst's complete formulas, one by one, over every mixture of the odd cases.
 */
#include "gpu/cpu/batch_add.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/features.h"
#include "gpu/cpu/group.h"
#include "tests/lib/random_group.h"

#define SEED 0x70726f6f66640001
#define POOL 40

/* What a test of either group needs: points that meet themselves, their opposites and infinity often. */
struct bench {
    const struct group *group;
    struct random rng;
    struct batch_scratch *scratch;
    char *pool; /* POOL points; the first is infinity */
};

static void bench_setup(struct bench *b, bool second)
{
    *b = (struct bench){.group = second ? &group_g2 : &group_g1, .rng = {SEED}};
    printf("seed %llx\n", (unsigned long long)SEED);
    b->scratch = malloc(sizeof(*b->scratch));
    b->pool = calloc(POOL, b->group->affine_bytes);
    for (size_t i = 1; i < POOL; i++) {
        fr_t k = fr_from_u64(i);
        if (second)
            *(g2_affine_t *)group_at(b->group, b->pool, i) = g2_of(&k);
        else
            *(g1_affine_t *)group_at(b->group, b->pool, i) = g1_of(&k);
    }
}

static void bench_teardown(struct bench *b)
{
    free(b->pool);
    free(b->scratch);
}

static void negate(const struct group *g, void *point)
{
    if (g == &group_g1)
        blst_fp_cneg(&((g1_affine_t *)point)->y, &((g1_affine_t *)point)->y, true);
    else
        blst_fp2_cneg(&((g2_affine_t *)point)->y, &((g2_affine_t *)point)->y, true);
}

/* The sum that blst says. */
static void expected_sum(const struct group *g, const struct add_pair *pair, void *out)
{
    g2_affine_t a, b;
    union point sum;

    memcpy(&a, pair->a, g->affine_bytes);
    memcpy(&b, pair->b, g->affine_bytes);
    if (pair->negate_a)
        negate(g, &a);
    if (pair->negate_b)
        negate(g, &b);
    memset(&sum, 0, sizeof(sum));
    g->add_affine(&sum, &a);
    g->add_affine(&sum, &b);
    g->to_affine(out, &sum);
}

static void check_batch(struct bench *b, size_t len)
{
    const struct group *g = b->group;
    struct add_pair *pairs = calloc(len + 1, sizeof(*pairs));
    char *out = calloc(len + 1, g->affine_bytes), *want = calloc(len + 1, g->affine_bytes);

    for (size_t i = 0; i < len; i++) {
        pairs[i] = (struct add_pair){.a = group_at(g, b->pool, random_u64(&b->rng) % POOL),
                                     .b = group_at(g, b->pool, random_u64(&b->rng) % POOL),
                                     .out = group_at(g, out, i),
                                     .negate_a = random_u64(&b->rng) & 1,
                                     .negate_b = random_u64(&b->rng) & 1};
        expected_sum(g, &pairs[i], group_at(g, want, i));
    }
    g->add_pairs(pairs, len, b->scratch);
    for (size_t i = 0; i < len; i++)
        ck_assert_mem_eq(group_at(g, out, i), group_at(g, want, i), g->affine_bytes);
    free(pairs);
    free(out);
    free(want);
}

/* G1 and G2, with vectorized code where the CPU has it and with the plain code. */
START_TEST(add_pairs__equals_blst_at_every_length)
{
    static const size_t lens[] = {0, 1, 2, 3, 7, 8, 9, 31, 511, 512, 513, 1023, 1024, 1025, 2500};
    struct bench b;

    cpu_use_at_most(_i & 2 ? CPU_PLAIN : CPU_AVX2);
    bench_setup(&b, _i & 1);
    for (size_t i = 0; i < ARRAY_LEN(lens); i++)
        check_batch(&b, lens[i]);
    bench_teardown(&b);
}
END_TEST

/* Every pair of a small pool with both signs: 0 + 0, P + 0, P + P, P - P and all others. */
START_TEST(add_pairs__all_pairs_in_place)
{
    struct bench b;

    bench_setup(&b, _i);
    const struct group *g = b.group;
    for (size_t k = 0; k < 4 * 8 * 8; k++) {
        g2_affine_t left, right, want;
        memcpy(&left, group_at(g, b.pool, k % 8), g->affine_bytes);
        memcpy(&right, group_at(g, b.pool, k / 8 % 8), g->affine_bytes);
        struct add_pair pair = {.a = &left,
                                .b = &right,
                                .out = k & 64 ? &left : &right,
                                .negate_a = k & 64,
                                .negate_b = k & 128};
        expected_sum(g, &pair, &want);
        g->add_pairs(&pair, 1, b.scratch);
        ck_assert_mem_eq(pair.out, &want, g->affine_bytes);
    }
    bench_teardown(&b);
}
END_TEST

/* The doubling of a whole array by itself, the one overlap that is allowed. */
START_TEST(batch_add__array_with_itself_doubles)
{
    struct bench b;

    bench_setup(&b, false);
    g1_affine_t *acc = calloc(POOL, sizeof(*acc)), want;
    memcpy(acc, b.pool, POOL * sizeof(*acc));
    g1_batch_add(acc, acc, POOL, b.scratch);
    for (size_t i = 0; i < POOL; i++) {
        fr_t k = fr_from_u64(2 * i);
        want = g1_of(&k);
        ck_assert_mem_eq(&acc[i], &want, sizeof(want));
    }
    free(acc);
    bench_teardown(&b);
}
END_TEST

START_TEST(batch_add__adds_arrays)
{
    struct bench one, two;

    bench_setup(&one, false);
    bench_setup(&two, true);
    g1_affine_t *p = calloc(POOL, sizeof(*p)), p_want;
    g2_affine_t *q = calloc(POOL, sizeof(*q)), q_want;
    for (size_t i = 0; i < POOL; i++) {
        memcpy(&p[i], group_at(&group_g1, one.pool, POOL - 1 - i), sizeof(*p));
        memcpy(&q[i], group_at(&group_g2, two.pool, POOL - 1 - i), sizeof(*q));
    }
    g1_batch_add(p, (const g1_affine_t *)one.pool, POOL, one.scratch);
    g2_batch_add(q, (const g2_affine_t *)two.pool, POOL, two.scratch);
    fr_t k = fr_from_u64(POOL - 1);
    p_want = g1_of(&k);
    q_want = g2_of(&k);
    for (size_t i = 0; i < POOL; i++) {
        ck_assert_mem_eq(&p[i], &p_want, sizeof(p_want));
        ck_assert_mem_eq(&q[i], &q_want, sizeof(q_want));
    }
    free(p);
    free(q);
    bench_teardown(&one);
    bench_teardown(&two);
}
END_TEST

/* Points of order 3 have x = 0 and are not infinity; a subgroup check must be able to add them. */
START_TEST(add_pairs__points_outside_the_subgroup_with_x_zero)
{
    struct bench b;
    g1_affine_t three = {0}, other, sum, want;
    fr_t k = fr_from_u64(5);
    uint64_t two[6] = {2};

    bench_setup(&b, false);
    blst_fp_from_uint64(&three.y, two);
    ck_assert(blst_p1_affine_on_curve(&three));
    other = g1_of(&k);
    struct add_pair pairs[] = {{.a = &three, .b = &other, .out = &sum},
                               {.a = &other, .b = &three, .out = &sum, .negate_b = true},
                               {.a = &three, .b = &three, .out = &sum},
                               {.a = &three, .b = &three, .out = &sum, .negate_a = true}};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        expected_sum(&group_g1, &pairs[i], &want);
        g1_add_pairs(&pairs[i], 1, b.scratch);
        ck_assert_mem_eq(&sum, &want, sizeof(want));
    }
    bench_teardown(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("batch_add");
    TCase *tc = tcase_create("batch_add");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, add_pairs__equals_blst_at_every_length, 0, 4);
    tcase_add_loop_test(tc, add_pairs__all_pairs_in_place, 0, 2);
    tcase_add_test(tc, batch_add__array_with_itself_doubles);
    tcase_add_test(tc, batch_add__adds_arrays);
    tcase_add_test(tc, add_pairs__points_outside_the_subgroup_with_x_zero);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
