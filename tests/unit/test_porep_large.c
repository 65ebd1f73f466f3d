/*
 * The structure of the circuits of 32 and 64 GiB: 130 million rows each, digested as they stream. A minute of two
 * cores; PROOFD_QUICK=1 leaves it out.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/lib/porep_digest.h"
#include "tests/lib/suite.h"

/* porep-circuit 7.2 and 7.3 */
static const struct large {
    const char *name;
    uint32_t aux;
    uint64_t constraints;
    uint32_t a_aux, b_aux;
    const char *digest;
} sizes[] = {
    {"32GiB", 130169893, 130278541, 129753292, 33112281,
     "493ffe1d83b3a099bc84562dab19263b2c673be9d44c3205eb77bd1769a0fafa"},
    {"64GiB", 131076643, 131185849, 130637542, 33386943,
     "be7df7685c23d4947dd6d7f210fa9f1dbf187c2a522553616e7bf09a4efbf45c"},
};

static struct porep_structure got[ARRAY_LEN(sizes)];

static void *run(void *arg)
{
    const struct large *l = arg;

    porep_structure(sector_size_by_name(l->name), NULL, NULL, &got[l - sizes]);
    return NULL;
}

/* A digest has no parallelism in it, so both are made at once. */
START_TEST(porep_synthesize_blank__equals_the_recorded_structure_of_large_sizes)
{
    pthread_t thread[ARRAY_LEN(sizes)];

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run, (void *)&sizes[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const struct large *l = &sizes[i];
        ck_assert_uint_eq(got[i].inputs, 328);
        ck_assert_uint_eq(got[i].aux, l->aux);
        ck_assert_uint_eq(got[i].constraints, l->constraints);
        ck_assert_uint_eq(got[i].a_aux_density, l->a_aux);
        ck_assert_uint_eq(got[i].b_aux_density, l->b_aux);
        ck_assert_uint_eq(got[i].b_input_density, 1);
        ck_assert_str_eq(got[i].digest, l->digest);
    }
}
END_TEST

int main(void)
{
    if (getenv("PROOFD_QUICK")) {
        suite_skip("structure of 32GiB and 64GiB", "time (PROOFD_QUICK is set)");
        return 77;
    }

    Suite *s = suite_create("porep_large");
    TCase *tc = tcase_create("porep_large");
    tcase_set_timeout(tc, 1800);
    tcase_add_test(tc, porep_synthesize_blank__equals_the_recorded_structure_of_large_sizes);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
