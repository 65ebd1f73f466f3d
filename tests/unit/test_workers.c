#include "numa/workers.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>

struct tally {
    atomic_int hits[1000];
    atomic_uint threads;
};

static void hit(void *ctx, size_t item, unsigned thread)
{
    struct tally *t = ctx;
    atomic_fetch_add(&t->hits[item], 1);
    atomic_fetch_or(&t->threads, 1u << thread);
}

START_TEST(workers_run__each_item_once)
{
    struct workers *w = NULL;
    static struct tally t;

    ck_assert_int_eq(workers_create((unsigned)_i + 1, &w, NULL), 0);
    ck_assert_uint_eq(workers_count(w), (unsigned)_i + 1);
    for (int round = 1; round <= 50; round++) {
        workers_run(w, ARRAY_LEN(t.hits), hit, &t);
        for (size_t k = 0; k < ARRAY_LEN(t.hits); k++)
            ck_assert_int_eq(atomic_load(&t.hits[k]), round);
    }
    ck_assert_uint_lt(atomic_load(&t.threads), 2u << _i);
    workers_run(w, 0, hit, &t);
    workers_destroy(w);
}
END_TEST

START_TEST(workers_run__without_workers_works_alone)
{
    static struct tally t;

    workers_run(NULL, 3, hit, &t);
    ck_assert_int_eq(atomic_load(&t.hits[2]), 1);
    ck_assert_uint_eq(atomic_load(&t.threads), 1);
    workers_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("workers");
    TCase *tc = tcase_create("workers");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, workers_run__each_item_once, 0, 4);
    tcase_add_test(tc, workers_run__without_workers_works_alone);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
