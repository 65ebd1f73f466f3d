/*
 * Columns against blst's complete formulas, with every way of keeping them that this CPU has.
 */
#include "gpu/cpu/columns.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/features.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640010
#define POOL 48

/* Points that meet themselves, their opposites and infinity often, and what the columns should hold. */
struct bench {
    const struct group *group;
    struct random rng;
    char *pool; /* POOL points; the first is infinity */
    struct columns *columns;
    union point *want;
    size_t len;
};

/* Loops run over the ways and, within each, over both groups. */
#define CASES (2 * CPU_CODES)

static bool bench_setup(struct bench *b, int at, size_t len)
{
    bool second = at % 2;

    cpu_use_at_most((enum cpu_code)(at / 2));
    if (!cpu_has((enum cpu_code)(at / 2)))
        return false;
    *b = (struct bench){.group = second ? &group_g2 : &group_g1, .rng = {SEED}, .len = len};
    b->pool = calloc(POOL, b->group->affine_bytes);
    for (size_t i = 1; i < POOL; i++) {
        fr_t k = fr_from_u64(i);
        if (second)
            *(g2_affine_t *)group_at(b->group, b->pool, i) = g2_of(&k);
        else
            *(g1_affine_t *)group_at(b->group, b->pool, i) = g1_of(&k);
    }
    b->columns = columns_create(b->group, len);
    ck_assert_ptr_nonnull(b->columns);
    b->want = calloc(len, sizeof(*b->want));
    columns_clear(b->columns, 0, len);
    return true;
}

static void bench_teardown(struct bench *b)
{
    columns_destroy(b->columns);
    free(b->pool);
    free(b->want);
}

static void add_signed(const struct group *g, union point *sum, const void *point, bool negate)
{
    union point p;

    g->from_affine(&p, point);
    if (negate && g == &group_g1)
        blst_p1_cneg(&p.g1, true);
    else if (negate)
        blst_p2_cneg(&p.g2, true);
    g->add(sum, &p);
}

/* Compares columns [at, at + len). */
static void check(const struct bench *b, size_t at, size_t len)
{
    const struct group *g = b->group;
    char *got = malloc(len * g->affine_bytes);

    columns_store(b->columns, at, len, got);
    for (size_t i = 0; i < len; i++) {
        g2_affine_t want;
        g->to_affine(&want, &b->want[at + i]);
        ck_assert_mem_eq(group_at(g, got, i), &want, g->affine_bytes);
    }
    free(got);
}

/* Adds points from a part of the pool to columns [at, at + len). */
static void add_some(struct bench *b, size_t at, size_t len, size_t pool)
{
    base_ref *refs = malloc(len * sizeof(*refs));
    struct addends add = {b->pool, refs, len};

    for (size_t i = 0; i < len; i++) {
        refs[i] = base_ref_make(random_u64(&b->rng) % pool, random_u64(&b->rng) & 1);
        add_signed(b->group, &b->want[at + i], group_at(b->group, b->pool, refs[i] >> 1),
                   refs[i] & 1);
    }
    columns_add(b->columns, at, &add, random_u64(&b->rng) & 1 ? &add : NULL);
    free(refs);
}

/* Every length about a vector's and a batch's; the smaller the pool, the more often points meet themselves. */
START_TEST(columns_add__equals_blst_at_every_length)
{
    static const size_t pools[] = {POOL, 1, 2, 3, 5};
    struct bench b;

    if (!bench_setup(&b, _i, 2100))
        return;
    for (size_t len = 1; len <= 35; len++)
        for (size_t k = 0; k < ARRAY_LEN(pools); k++)
            add_some(&b, 8 * (len % 4), len, pools[k]);
    check(&b, 0, 64);
    for (size_t len = 2047; len <= 2049; len++)
        add_some(&b, 0, len, POOL);
    add_some(&b, 0, 511, POOL);
    add_some(&b, 0, 513, POOL);
    check(&b, 0, b.len);
    check(&b, 8, 1);
    check(&b, 16, 13);
    bench_teardown(&b);
}
END_TEST

START_TEST(columns_add__reaches_infinity_and_comes_back)
{
    struct bench b;

    if (!bench_setup(&b, _i, 16))
        return;
    for (int round = 0; round < 200; round++)
        add_some(&b, 0, 11, 3); /* 0, P, 2P and opposites */
    check(&b, 0, 11);
    columns_clear(b.columns, 0, 16);
    memset(b.want, 0, 16 * sizeof(*b.want));
    check(&b, 0, 16);
    add_some(&b, 0, 16, POOL);
    check(&b, 0, 16);
    bench_teardown(&b);
}
END_TEST

/* Into other columns, and into themselves often enough for their coordinates to grow as far as they may. */
START_TEST(columns_add_columns__sums_and_doubles)
{
    struct bench b;

    if (!bench_setup(&b, _i, 96))
        return;
    for (int round = 0; round < 40; round++) {
        add_some(&b, 0, 83, round % 2 ? 4 : POOL);
        columns_add_columns(b.columns, 48, 0, 37);
        for (size_t i = 0; i < 37; i++)
            b.group->add(&b.want[48 + i], &b.want[i]);
        columns_add_columns(b.columns, 8, 8, 17);
        for (size_t i = 8; i < 25; i++)
            b.group->twice(&b.want[i]);
    }
    check(&b, 0, 96);
    bench_teardown(&b);
}
END_TEST

START_TEST(columns_total__adds_all_up)
{
    static const size_t lens[] = {0, 1, 7, 8, 9, 15, 16, 17, 100, 1030};
    struct bench b;

    if (!bench_setup(&b, _i, 1040))
        return;
    for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
        union point want = {0}, got;
        g2_affine_t p, q;
        columns_clear(b.columns, 0, b.len);
        memset(b.want, 0, b.len * sizeof(*b.want));
        if (lens[k])
            add_some(&b, 8, lens[k], k % 2 ? POOL : 2);
        for (size_t i = 0; i < lens[k]; i++)
            b.group->add(&want, &b.want[8 + i]);
        columns_total(b.columns, 8, lens[k], &got);
        b.group->to_affine(&p, &got);
        b.group->to_affine(&q, &want);
        ck_assert_mem_eq(&p, &q, b.group->affine_bytes);
    }
    bench_teardown(&b);
}
END_TEST

/* Points of order 3 have x = 0 and are not infinity; a subgroup check must be able to add them. */
START_TEST(columns_add__points_outside_the_subgroup_with_x_zero)
{
    struct bench b;
    g1_affine_t three = {0};
    uint64_t two[6] = {2};

    if (!bench_setup(&b, 2 * _i, 24))
        return;
    blst_fp_from_uint64(&three.y, two);
    ck_assert(blst_p1_affine_on_curve(&three));
    ((g1_affine_t *)b.pool)[1] = three;
    for (int round = 0; round < 50; round++)
        add_some(&b, 0, 24, 3);
    check(&b, 0, 24);
    bench_teardown(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("columns");
    TCase *tc = tcase_create("columns");

    printf("seed %llx\n", (unsigned long long)SEED);
    for (int code = 0; code < CPU_CODES; code++)
        if (!cpu_has((enum cpu_code)code))
            suite_skip(cpu_code_name((enum cpu_code)code), "a CPU that has it");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, columns_add__equals_blst_at_every_length, 0, CASES);
    tcase_add_loop_test(tc, columns_add__reaches_infinity_and_comes_back, 0, CASES);
    tcase_add_loop_test(tc, columns_add_columns__sums_and_doubles, 0, CASES);
    tcase_add_loop_test(tc, columns_total__adds_all_up, 0, CASES);
    tcase_add_loop_test(tc, columns_add__points_outside_the_subgroup_with_x_zero, 0, CPU_CODES);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
