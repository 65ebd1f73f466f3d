#include "daemon/plan.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/lib/suite.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* 32 GiB on a CPU, about. */
static struct plan_wish wish = {.name = "32GiB",
                                .witness_bytes = 70 * MIB,
                                .evaluation_bytes = 8 * GIB,
                                .scratch_bytes = 6 * GIB,
                                .params_bytes = 44 * GIB,
                                .permits = 4};
static struct plan plan;
static struct errmsg err;

START_TEST(plan_make__what_is_wished_where_there_is_room)
{
    ck_assert_int_eq(plan_make(&wish, 100 * GIB, "node 0", &plan, &err), 0);
    ck_assert_uint_eq(plan.slots.witnesses, 4);
    ck_assert_uint_eq(plan.slots.evaluations, 3);
    ck_assert_uint_eq(plan.arena_bytes, 4 * 70 * MIB + 3 * 8 * GIB + 6 * GIB);
    ck_assert_uint_eq(plan.total_bytes, plan.arena_bytes + 44 * GIB);
}
END_TEST

/* 50 GiB and so many parts. */
START_TEST(plan_make__fewer_slots_in_less_memory)
{
    static const struct {
        unsigned gib;
        uint32_t witnesses, evaluations;
    } cases[] = {{75, 4, 3}, {74, 3, 2}, {67, 3, 2}, {66, 2, 1}, {59, 2, 1}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(plan_make(&wish, cases[i].gib * GIB, "node 0", &plan, &err), 0);
        ck_assert_uint_eq(plan.slots.witnesses, cases[i].witnesses);
        ck_assert_uint_eq(plan.slots.evaluations, cases[i].evaluations);
        ck_assert_uint_le(plan.total_bytes, cases[i].gib * GIB);
    }
    ck_assert_int_eq(plan_make(&wish, 58 * GIB + 70 * MIB, "node 0", &plan, &err), 0);
    ck_assert_uint_eq(plan.slots.witnesses, 1);
    ck_assert_uint_eq(plan.slots.evaluations, 1);
}
END_TEST

START_TEST(plan_make__refuses_with_both_numbers)
{
    ck_assert_int_eq(plan_make(&wish, 58 * GIB, "control group /a", &plan, &err), -ENOMEM);
    ck_assert_str_eq(err.text,
                     "32GiB: 58.1 GiB of memory are needed (parameters 44.0, a slot 8.1, scratch "
                     "6.0), control group /a has 58.0 GiB");
}
END_TEST

/* On a device: witnesses alone, and nothing of parameters here. */
START_TEST(plan_make__where_the_device_evaluates)
{
    const struct plan_wish device = {.name = "32GiB", .witness_bytes = 70 * MIB, .permits = 4};

    ck_assert_int_eq(plan_make(&device, GIB, "node 0", &plan, &err), 0);
    ck_assert_uint_eq(plan.slots.witnesses, 4);
    ck_assert_uint_eq(plan.slots.evaluations, 0);
    ck_assert_uint_eq(plan.total_bytes, 280 * MIB);
}
END_TEST

START_TEST(plan_make__absurd_sizes_do_not_wrap)
{
    struct plan_wish absurd = wish;

    absurd.evaluation_bytes = SIZE_MAX / 2;
    ck_assert_int_eq(plan_make(&absurd, UINT64_MAX / 4, "node 0", &plan, &err), -ENOMEM);
    absurd = wish;
    absurd.params_bytes = UINT64_MAX;
    ck_assert_int_eq(plan_make(&absurd, UINT64_MAX / 4, "node 0", &plan, &err), -ENOMEM);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *tc = tcase_create("plan");

    tcase_add_test(tc, plan_make__what_is_wished_where_there_is_room);
    tcase_add_test(tc, plan_make__fewer_slots_in_less_memory);
    tcase_add_test(tc, plan_make__refuses_with_both_numbers);
    tcase_add_test(tc, plan_make__where_the_device_evaluates);
    tcase_add_test(tc, plan_make__absurd_sizes_do_not_wrap);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
