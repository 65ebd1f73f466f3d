/*
 * The laws of the transform, and every short length against the sum that defines it.
 */
#include "gpu/cpu/ntt.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/features.h"
#include "gpu/domain.h"
#include "tests/lib/naive_backend.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640003

static fr_t *random_vector(size_t len)
{
    struct random rng = {SEED};
    fr_t *v = malloc(len * sizeof(*v));

    for (size_t i = 0; i < len; i++)
        v[i] = random_fr(&rng);
    return v;
}

static fr_t *copy_vector(const fr_t *v, size_t len)
{
    fr_t *copy = malloc(len * sizeof(*copy));

    memcpy(copy, v, len * sizeof(*copy));
    return copy;
}

struct setting {
    struct workers *workers;
    struct backend *cpu, *naive;
};

static void setting_init(struct setting *s, unsigned threads)
{
    ck_assert_int_eq(workers_create(threads, &s->workers, NULL), 0);
    ck_assert_int_eq(backend_cpu_create(s->workers, &s->cpu, NULL), 0);
    ck_assert_int_eq(backend_naive_create(&s->naive), 0);
}

static void setting_fini(struct setting *s)
{
    backend_destroy(s->cpu);
    backend_destroy(s->naive);
    workers_destroy(s->workers);
}

/* Lengths 1 to 1024, with every kind of code that the CPU has. */
START_TEST(ntt__equals_the_definition)
{
    struct setting s;
    uint32_t log2_len = (uint32_t)_i % 11;
    size_t len = (size_t)1 << log2_len;

    cpu_use_at_most((enum cpu_code)(_i / 11));
    setting_init(&s, 1 + (unsigned)_i % 4);
    fr_t *v = random_vector(len);
    for (int kind = NTT_FORWARD; kind <= NTT_COSET_INVERSE; kind++) {
        fr_t *mine = copy_vector(v, len), *want = copy_vector(v, len);
        ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, mine, log2_len, kind, NULL), 0);
        ck_assert_int_eq(s.naive->ops->ntt(s.naive, want, log2_len, kind, NULL), 0);
        ck_assert_mem_eq(mine, want, len * sizeof(*v));
        free(mine);
        free(want);
    }
    free(v);
    setting_fini(&s);
}
END_TEST

/* Lengths of the two phases that differ, and threads that share them. */
START_TEST(ntt__there_and_back_is_the_same)
{
    struct setting s;
    uint32_t log2_len = 13 + (uint32_t)_i % 4;
    size_t len = (size_t)1 << log2_len;

    setting_init(&s, 1 + (unsigned)_i / 4);
    fr_t *v = random_vector(len), *w = copy_vector(v, len);
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, w, log2_len, NTT_FORWARD, NULL), 0);
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, w, log2_len, NTT_INVERSE, NULL), 0);
    ck_assert_mem_eq(v, w, len * sizeof(*v));
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, w, log2_len, NTT_COSET, NULL), 0);
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, w, log2_len, NTT_COSET_INVERSE, NULL), 0);
    ck_assert_mem_eq(v, w, len * sizeof(*v));
    free(v);
    free(w);
    setting_fini(&s);
}
END_TEST

/* The extremes that a lane can hold travel through all levels: all zero, all r - 1, and the two mixed. */
START_TEST(ntt__vectorized_equals_plain)
{
    enum { LOG2_LEN = 13, LEN = 1 << LOG2_LEN };
    fr_t one = fr_from_u64(1), minus_one, *v = random_vector(LEN);

    fr_neg(&minus_one, &one);
    for (size_t i = 0; _i > 0 && i < LEN; i++)
        v[i] = _i == 1 ? minus_one : fr_from_u64(0);
    for (size_t i = 0; _i == 3 && i < LEN; i += 3)
        v[i] = minus_one;
    for (int kind = NTT_FORWARD; kind <= NTT_COSET_INVERSE; kind++) {
        fr_t *results[CPU_CODES];
        for (int code = 0; code < CPU_CODES; code++) {
            struct setting s;
            cpu_use_at_most((enum cpu_code)code);
            setting_init(&s, 1);
            results[code] = copy_vector(v, LEN);
            ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, results[code], LOG2_LEN, kind, NULL), 0);
            setting_fini(&s);
            ck_assert_mem_eq(results[0], results[code], LEN * sizeof(*v));
        }
        for (int code = 0; code < CPU_CODES; code++)
            free(results[code]);
    }
    free(v);
}
END_TEST

/* Single values of a long transform, by Horner's rule. */
START_TEST(ntt__values_of_a_long_one)
{
    enum { LOG2_LEN = 17 };
    struct setting s;
    size_t len = (size_t)1 << LOG2_LEN;
    struct random rng = {SEED};
    fr_t shift = domain_coset_shift(), root = domain_root(LOG2_LEN);

    setting_init(&s, 2);
    fr_t *v = random_vector(len), *values = copy_vector(v, len), *coset = copy_vector(v, len);
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, values, LOG2_LEN, NTT_FORWARD, NULL), 0);
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, coset, LOG2_LEN, NTT_COSET, NULL), 0);
    for (int k = 0; k < 12; k++) {
        size_t at = random_u64(&rng) % len;
        fr_t x = fr_power(&root, at), y, sum = {0}, coset_sum = {0};
        fr_mul(&y, &x, &shift);
        for (size_t i = len; i-- > 0;) {
            fr_mul(&sum, &sum, &x);
            fr_add(&sum, &sum, &v[i]);
            fr_mul(&coset_sum, &coset_sum, &y);
            fr_add(&coset_sum, &coset_sum, &v[i]);
        }
        ck_assert(fr_equal(&values[at], &sum));
        ck_assert(fr_equal(&coset[at], &coset_sum));
    }
    free(v);
    free(values);
    free(coset);
    setting_fini(&s);
}
END_TEST

/* The product of values is the value of the product: x^(len-1) times x^2 wraps around to x. */
START_TEST(ntt__turns_products_into_cyclic_convolution)
{
    enum { LOG2_LEN = 10, LEN = 1 << LOG2_LEN };
    struct setting s;
    fr_t *a = calloc(LEN, sizeof(*a)), *b = calloc(LEN, sizeof(*b)), one = fr_from_u64(1);

    setting_init(&s, 1);
    a[LEN - 1] = fr_from_u64(3);
    b[2] = one;
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, a, LOG2_LEN, NTT_FORWARD, NULL), 0);
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, b, LOG2_LEN, NTT_FORWARD, NULL), 0);
    for (size_t i = 0; i < LEN; i++)
        fr_mul(&a[i], &a[i], &b[i]);
    ck_assert_int_eq(s.cpu->ops->ntt(s.cpu, a, LOG2_LEN, NTT_INVERSE, NULL), 0);
    for (size_t i = 0; i < LEN; i++) {
        fr_t want = fr_from_u64(i == 1 ? 3 : 0);
        ck_assert(fr_equal(&a[i], &want));
    }
    free(a);
    free(b);
    setting_fini(&s);
}
END_TEST

START_TEST(domain_root__has_its_order)
{
    for (uint32_t bits = 0; bits <= DOMAIN_LOG2_LEN_MAX; bits++) {
        fr_t root = domain_root(bits), one = fr_from_u64(1), power = root;
        for (uint32_t i = 0; i < bits; i++) {
            ck_assert(!fr_equal(&power, &one));
            fr_sqr(&power, &power);
        }
        ck_assert(fr_equal(&power, &one));
    }
}
END_TEST

START_TEST(ntt_plan_create__refuses_what_has_no_roots)
{
    struct ntt_plan *plan = NULL;
    struct errmsg err;

    ck_assert_int_eq(ntt_plan_create(33, NULL, &plan, &err), -EINVAL);
    ck_assert_ptr_null(plan);
    ntt_plan_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ntt");
    TCase *tc = tcase_create("ntt");

    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, ntt__equals_the_definition, 0, 11 * CPU_CODES);
    tcase_add_loop_test(tc, ntt__there_and_back_is_the_same, 0, 16);
    tcase_add_loop_test(tc, ntt__vectorized_equals_plain, 0, 4);
    tcase_add_test(tc, ntt__values_of_a_long_one);
    tcase_add_test(tc, ntt__turns_products_into_cyclic_convolution);
    tcase_add_test(tc, domain_root__has_its_order);
    tcase_add_test(tc, ntt_plan_create__refuses_what_has_no_roots);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
