/*
 * Transforms of points against the sum that defines them: by points for short lengths, by their logarithms for longer ones.
 */
#include "gpu/cpu/point_transform.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "gpu/domain.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640031

static fr_t inverse_root(uint32_t log2_len)
{
    fr_t root = domain_root(log2_len);

    fr_inverse(&root, &root);
    return root;
}

/* Sum over k of factor (shift w^-j)^k points[k], term by term. */
static g1_affine_t by_definition(const g1_affine_t *points, uint32_t log2_len, size_t j,
                                 const fr_t *shift, const fr_t *factor)
{
    fr_t root = inverse_root(log2_len), x = fr_power(&root, j), scalar = *factor;
    g1_t sum, point;
    g1_affine_t out;

    memset(&sum, 0, sizeof(sum));
    fr_mul(&x, &x, shift);
    for (size_t k = 0; k < (size_t)1 << log2_len; k++) {
        blst_p1_from_affine(&point, &points[k]);
        g1_mul_add(&sum, &point, &scalar);
        fr_mul(&scalar, &scalar, &x);
    }
    blst_p1_to_affine(&out, &sum);
    return out;
}

/* Lengths 1 to 16, infinity among the points, any factors. */
START_TEST(point_transform__equals_the_definition)
{
    const uint32_t log2_len = (uint32_t)_i;
    const size_t m = (size_t)1 << log2_len;
    struct random rng = {SEED + (uint64_t)_i};
    struct workers *workers = NULL;
    fr_t shift = random_fr(&rng), factor = random_fr(&rng), k;
    g1_affine_t points[16], before[16];

    for (size_t i = 0; i < m; i++) {
        k = random_fr(&rng);
        points[i] = g1_of(&k);
    }
    if (m > 2)
        memset(&points[m - 2], 0, sizeof(points[0]));
    memcpy(before, points, sizeof(points));
    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    ck_assert_int_eq(point_transform(points, log2_len, &shift, &factor, workers, NULL, NULL, NULL),
                     0);
    for (size_t j = 0; j < m; j++) {
        g1_affine_t want = by_definition(before, log2_len, j, &shift, &factor);
        ck_assert_mem_eq(&points[j], &want, sizeof(want));
    }
    workers_destroy(workers);
}
END_TEST

/* What progress said last. */
struct heard {
    uint64_t done, total;
    int calls;
};

static void hear(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    struct heard *h = ctx;

    ck_assert_str_eq(stage, "transform");
    ck_assert(done > h->done && done <= total);
    *h = (struct heard){done, total, h->calls + 1};
}

#define LOG2_LONG 10

/* By the operation of the backend: of points whose logarithms are known, the logarithms of the sums. */
START_TEST(transform_points__of_a_thousand_by_logarithms)
{
    const size_t m = (size_t)1 << LOG2_LONG;
    struct random rng = {SEED};
    struct workers *workers = NULL;
    struct backend *cpu = NULL;
    struct heard heard = {0};
    fr_t shift = _i ? random_fr(&rng) : fr_from_u64(1), factor = random_fr(&rng);
    fr_t root = inverse_root(LOG2_LONG), x = shift;
    fr_t *logs = malloc(m * sizeof(*logs));
    g1_affine_t *points = malloc(m * sizeof(*points));

    for (size_t i = 0; i < m; i++) {
        logs[i] = random_fr(&rng);
        points[i] = g1_of(&logs[i]);
    }
    ck_assert_int_eq(workers_create(2, &workers, NULL), 0);
    ck_assert_int_eq(backend_cpu_create(workers, &cpu, NULL), 0);
    ck_assert_int_eq(
        cpu->ops->transform_points(cpu, points, LOG2_LONG, &shift, &factor, hear, &heard, NULL), 0);
    ck_assert_uint_eq(heard.done, m + m / 2 * LOG2_LONG);
    ck_assert_uint_eq(heard.done, heard.total);
    for (size_t j = 0; j < m; j++) {
        fr_t sum = {0};
        for (size_t k = m; k-- > 0;) { /* by Horner */
            fr_mul(&sum, &sum, &x);
            fr_add(&sum, &sum, &logs[k]);
        }
        fr_mul(&sum, &sum, &factor);
        g1_affine_t want = g1_of(&sum);
        ck_assert_mem_eq(&points[j], &want, sizeof(want));
        fr_mul(&x, &x, &root);
    }
    backend_destroy(cpu);
    workers_destroy(workers);
    free(logs);
    free(points);
}
END_TEST

START_TEST(point_transform__refuses_what_has_no_roots)
{
    fr_t one = fr_from_u64(1);
    struct errmsg err;

    ck_assert_int_eq(point_transform(NULL, 32, &one, &one, NULL, NULL, NULL, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "2^32"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("point_transform");
    TCase *tc = tcase_create("point_transform");

    tcase_add_loop_test(tc, point_transform__equals_the_definition, 0, 5);
    tcase_add_loop_test(tc, transform_points__of_a_thousand_by_logarithms, 0, 2);
    tcase_add_test(tc, point_transform__refuses_what_has_no_roots);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
