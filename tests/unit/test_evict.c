/* Which parameters go, over sets that are made up. Bytes are GiB here: nothing depends on it. */
#include "daemon/evict.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "numa/base.h"
#include "tests/lib/suite.h"

#define BIT(i) (UINT32_C(1) << (i))

static uint32_t go;

START_TEST(evict_choose__nothing_where_there_is_room)
{
    const struct evict_set sets[] = {{47, 1, EVICT_FREE}, {50, 2, EVICT_FREE}};

    ck_assert(evict_choose(sets, 2, 40, 40, true, &go));
    ck_assert_uint_eq(go, 0);
    ck_assert(evict_choose(NULL, 0, 0, 0, true, &go));
    ck_assert(!evict_choose(NULL, 0, 1, 0, true, &go));
}
END_TEST

START_TEST(evict_choose__the_longest_unused_first)
{
    const struct evict_set sets[] = {
        {10, 5, EVICT_FREE}, {10, 2, EVICT_FREE}, {0, 1, EVICT_FREE}, {10, 3, EVICT_FREE}};

    ck_assert(evict_choose(sets, 4, 10, 0, false, &go));
    ck_assert_uint_eq(go, BIT(1));
    ck_assert(evict_choose(sets, 4, 11, 0, false, &go));
    ck_assert_uint_eq(go, BIT(1) | BIT(3));
    ck_assert(evict_choose(sets, 4, 30, 0, false, &go));
    ck_assert_uint_eq(go, BIT(0) | BIT(1) | BIT(3));
    ck_assert(!evict_choose(sets, 4, 31, 0, false, &go));
}
END_TEST

START_TEST(evict_choose__none_that_would_not_help)
{
    const struct evict_set sets[] = {{1, 1, EVICT_FREE}, {50, 2, EVICT_FREE}};

    ck_assert(evict_choose(sets, 2, 47, 3, false, &go));
    ck_assert_uint_eq(go, BIT(1));
    ck_assert(evict_choose(sets, 2, 4, 3, false, &go));
    ck_assert_uint_eq(go, BIT(0));
}
END_TEST

/* 32 and 64 GiB on a device with room for one, or for both. */
START_TEST(evict_choose__what_partitions_wait_with_goes_last_and_only_if_urgent)
{
    const struct evict_set sets[] = {{47, 1, EVICT_WAITING}, {47, 9, EVICT_FREE}};

    ck_assert(evict_choose(sets, 2, 47, 0, false, &go));
    ck_assert_uint_eq(go, BIT(1)); /* though it was used later */
    ck_assert(!evict_choose(sets, 2, 60, 0, false, &go));
    ck_assert(evict_choose(sets, 2, 60, 0, true, &go));
    ck_assert_uint_eq(go, BIT(0) | BIT(1));
}
END_TEST

START_TEST(evict_choose__never_what_runs)
{
    const struct evict_set sets[] = {{47, 1, EVICT_RUNNING}, {5, 9, EVICT_WAITING}};

    ck_assert(!evict_choose(sets, 2, 47, 10, true, &go));
    ck_assert_uint_eq(go, BIT(1));
    ck_assert(evict_choose(sets, 2, 47, 42, true, &go));
    ck_assert_uint_eq(go, BIT(1));
    ck_assert(!evict_choose(sets, 2, 47, 10, false, &go));
    ck_assert_uint_eq(go, 0);
}
END_TEST

/* Whatever is chosen suffices, has nothing in it that could stay, and nothing that must not go. */
START_TEST(evict_choose__random_sets)
{
    struct evict_set sets[6];

    srand(7);
    printf("seed 7\n");
    for (int round = 0; round < 20000; round++) {
        const bool urgent = rand() % 2;
        const uint64_t want = (uint64_t)rand() % 60, room = (uint64_t)rand() % 30;
        uint64_t all = room, freed = room;
        for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
            sets[i] = (struct evict_set){(uint64_t)rand() % 20, (uint64_t)rand() % 50,
                                         (enum evict_need)(rand() % 3)};
            all += sets[i].need <= (urgent ? EVICT_WAITING : EVICT_FREE) ? sets[i].bytes : 0;
        }
        ck_assert(evict_choose(sets, ARRAY_LEN(sets), want, room, urgent, &go) == (all >= want));
        for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
            ck_assert(!(go >> i & 1) || sets[i].need <= (urgent ? EVICT_WAITING : EVICT_FREE));
            freed += go >> i & 1 ? sets[i].bytes : 0;
        }
        ck_assert_uint_eq(freed >= want, all >= want);
        for (size_t i = 0; i < ARRAY_LEN(sets) && freed >= want; i++)
            ck_assert(!(go >> i & 1) || freed - sets[i].bytes < want);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("evict");
    TCase *tc = tcase_create("evict");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, evict_choose__nothing_where_there_is_room);
    tcase_add_test(tc, evict_choose__the_longest_unused_first);
    tcase_add_test(tc, evict_choose__none_that_would_not_help);
    tcase_add_test(tc, evict_choose__what_partitions_wait_with_goes_last_and_only_if_urgent);
    tcase_add_test(tc, evict_choose__never_what_runs);
    tcase_add_test(tc, evict_choose__random_sets);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
