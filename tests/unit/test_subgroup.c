#include "gpu/subgroup.h"

#include <stdlib.h>

#include "tests/lib/odd_points.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define POINTS 3000
#define PIECE 1000

/* Honest points, all different: 1 * G, 2 * G, ... */
static void *honest_points(const struct group *group)
{
    char *points = calloc(POINTS, group->affine_bytes);
    union point sum = {0}, one = {0};

    ck_assert_ptr_nonnull(points);
    if (group == &group_g2)
        one.g2 = *blst_p2_generator();
    else
        one.g1 = *blst_p1_generator();
    for (size_t i = 0; i < POINTS; i++) {
        group->add(&sum, &one);
        group->to_affine(points + i * group->affine_bytes, &sum);
    }
    return points;
}

struct adding {
    struct subgroup_check *check;
    const struct group *group;
    const char *points;
};

static void add_piece(void *ctx, size_t item, unsigned thread)
{
    const struct adding *a = ctx;

    subgroup_check_add(a->check, item, a->points + item * PIECE * a->group->affine_bytes, PIECE, thread);
}

/* The index of a point outside the subgroup, found by the check; POINTS when it finds nothing wrong. */
static size_t check(const struct group *group, const void *points, struct workers *workers)
{
    struct subgroup_check *c = NULL;
    struct subgroup_fault fault;
    bool good;
    size_t found = POINTS;

    ck_assert_int_eq(subgroup_check_create(group, workers_count(workers), &c, NULL), 0);
    struct adding a = {c, group, points};
    workers_run(workers, POINTS / PIECE, add_piece, &a);
    ck_assert_int_eq(subgroup_check_finish(c, workers, &good, &fault, NULL), 0);
    for (size_t piece = 0; !good && found == POINTS && piece < POINTS / PIECE; piece++) {
        size_t i = subgroup_check_find(c, &fault, piece,
                                       a.points + piece * PIECE * group->affine_bytes, PIECE);
        if (i < PIECE)
            found = piece * PIECE + i;
    }
    ck_assert(good || found < POINTS);
    subgroup_check_destroy(c);
    return found;
}

START_TEST(subgroup_check__accepts_honest_points)
{
    struct workers *workers = NULL;
    void *g1 = honest_points(&group_g1), *g2 = honest_points(&group_g2);

    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    ck_assert_uint_eq(check(&group_g1, g1, workers), POINTS);
    ck_assert_uint_eq(check(&group_g1, g1, NULL), POINTS);
    ck_assert_uint_eq(check(&group_g2, g2, workers), POINTS);
    workers_destroy(workers);
    free(g1);
    free(g2);
}
END_TEST

/* The same point over and over fills the buckets by doublings and collisions. */
START_TEST(subgroup_check__accepts_equal_points)
{
    g1_affine_t *points = honest_points(&group_g1);

    for (size_t i = 1; i < POINTS; i++)
        points[i] = points[0];
    ck_assert_uint_eq(check(&group_g1, points, NULL), POINTS);
    free(points);
}
END_TEST

static const uint32_t g1_orders[] = {3, 11, 10177, 859267, 52437899};
static const uint32_t g2_orders[] = {13, 23, 2713, 11953, 262069};

/* One point among thousands that differs from an honest one by a component of small order alone. */
START_TEST(subgroup_check__finds_one_g1_point_of_small_order)
{
    g1_affine_t *points = honest_points(&group_g1), odd = odd_g1_of_order(g1_orders[_i]);
    size_t at = 17 + 613 * (size_t)_i;

    points[at] = odd_g1_shifted(&points[at], &odd);
    ck_assert_uint_eq(check(&group_g1, points, NULL), at);
    points[at] = odd;
    ck_assert_uint_eq(check(&group_g1, points, NULL), at);
    free(points);
}
END_TEST

START_TEST(subgroup_check__finds_one_g2_point_of_small_order)
{
    g2_affine_t *points = honest_points(&group_g2), odd = odd_g2_of_order(g2_orders[_i]);
    size_t at = 17 + 613 * (size_t)_i;

    points[at] = odd_g2_shifted(&points[at], &odd);
    ck_assert_uint_eq(check(&group_g2, points, NULL), at);
    free(points);
}
END_TEST

/* Components that cancel in the sum of all, and in every sum of three: what one random combination, or a fixed
 * choice of buckets, may miss. */
START_TEST(subgroup_check__finds_components_that_cancel)
{
    g1_affine_t *points = honest_points(&group_g1), odd = odd_g1_of_order(3), minus;
    g1_t p;

    blst_p1_from_affine(&p, &odd);
    blst_p1_cneg(&p, true);
    blst_p1_to_affine(&minus, &p);
    points[100] = odd_g1_shifted(&points[100], &odd);
    points[2100] = odd_g1_shifted(&points[2100], &minus);
    size_t found = check(&group_g1, points, NULL);
    ck_assert(found == 100 || found == 2100);
    free(points);
}
END_TEST

START_TEST(subgroup_check__finds_that_all_are_outside)
{
    g1_affine_t *points = honest_points(&group_g1), odd = odd_g1_of_order(3);

    for (size_t i = 0; i < POINTS; i++)
        points[i] = odd_g1_shifted(&points[i], &odd);
    ck_assert_uint_lt(check(&group_g1, points, NULL), POINTS);
    free(points);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("subgroup");
    TCase *tc = tcase_create("subgroup");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, subgroup_check__accepts_honest_points);
    tcase_add_test(tc, subgroup_check__accepts_equal_points);
    tcase_add_loop_test(tc, subgroup_check__finds_one_g1_point_of_small_order, 0,
                        ARRAY_LEN(g1_orders));
    tcase_add_loop_test(tc, subgroup_check__finds_one_g2_point_of_small_order, 0,
                        ARRAY_LEN(g2_orders));
    tcase_add_test(tc, subgroup_check__finds_components_that_cancel);
    tcase_add_test(tc, subgroup_check__finds_that_all_are_outside);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
