/*
 * The structure of the circuits of 32 and 64 GiB: 130 million rows each, digested as they stream. A minute of two
 * cores; PROOFD_QUICK=1 leaves it out.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/lib/porep_digest.h"
#include "tests/lib/porep_totals.h"
#include "tests/lib/suite.h"

#define LARGE (POREP_TOTALS - POREP_TOTALS_SMALL)

static struct porep_structure got[LARGE];

static void *run(void *arg)
{
    const struct porep_totals *l = arg;

    porep_structure(sector_size_by_name(l->name), NULL, NULL,
                    &got[l - &porep_totals[POREP_TOTALS_SMALL]]);
    return NULL;
}

/* A digest has no parallelism in it, so both are made at once. */
START_TEST(porep_synthesize_blank__equals_the_recorded_structure_of_large_sizes)
{
    pthread_t thread[LARGE];

    for (size_t i = 0; i < LARGE; i++)
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, run, (void *)&porep_totals[POREP_TOTALS_SMALL + i]),
            0);
    for (size_t i = 0; i < LARGE; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < LARGE; i++) {
        const struct porep_totals *l = &porep_totals[POREP_TOTALS_SMALL + i];
        ck_assert_uint_eq(got[i].inputs, l->inputs);
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
