/*
 * The queue's order on a clock of the test's own: nothing here sleeps.
 */
#include "daemon/order.h"

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/suite.h"

#define AGING 1000

static struct order *order;
static struct order_entry entries[32]; /* by age */
static unsigned left[32];              /* partitions that wait */
static int64_t now;

static void setup(void)
{
    ck_assert_int_eq(order_create(AGING, &order), 0);
}

static void teardown(void)
{
    order_destroy(order);
}

static void put_sized(uint64_t age, enum job_priority priority, uid_t user, unsigned size,
                      unsigned partitions)
{
    const struct order_key key = {age, priority, user, size};

    left[age] = partitions;
    ck_assert_int_eq(order_put(order, &entries[age], &key, now), 0);
}

static void put(uint64_t age, enum job_priority priority, uid_t user, unsigned partitions)
{
    put_sized(age, priority, user, 0, partitions);
}

/* Gives a partition out and says of which job; 0: none. */
static uint64_t take_as(uint32_t refused, struct order_turn *turn)
{
    if (!order_next(order, refused, now, turn))
        return 0;
    uint64_t age = turn->entry->key.age;
    order_taken(order, turn, now);
    if (--left[age] == 0)
        order_remove(order, &entries[age]);
    return age;
}

static uint64_t take(void)
{
    struct order_turn turn;

    return take_as(0, &turn);
}

static void expect(const char *ages)
{
    for (; *ages; ages++)
        ck_assert_msg(take() == (uint64_t)(*ages - '0'), "at %s", ages);
    ck_assert_uint_eq(take(), 0);
}

START_TEST(order_next__class_then_age)
{
    put(3, JOB_NORMAL, 1, 2);
    put(1, JOB_LOW, 1, 1);
    put(2, JOB_NORMAL, 1, 1);
    put(5, JOB_CRITICAL, 1, 1);
    put(4, JOB_HIGH, 1, 2);
    expect("5442331");
}
END_TEST

/* The last partition of a job, in an engine or come back from one, holds nobody up. */
START_TEST(order_next__the_first_of_a_job_does_not_wait_for_the_last_of_another)
{
    put(1, JOB_NORMAL, 1, 2);
    put(2, JOB_NORMAL, 1, 2);
    ck_assert_uint_eq(take(), 1);
    ck_assert_uint_eq(take(), 1); /* both are in engines now */
    ck_assert_uint_eq(take(), 2);
    put(1, JOB_NORMAL, 1, 1); /* one has come back: it is older */
    expect("12");
}
END_TEST

START_TEST(order_next__users_of_a_class_take_turns)
{
    put(1, JOB_NORMAL, 1, 6); /* much, and first */
    put(2, JOB_NORMAL, 1, 2);
    ck_assert_uint_eq(take(), 1);
    ck_assert_uint_eq(take(), 1);
    put(3, JOB_NORMAL, 7, 2);
    put(4, JOB_NORMAL, 8, 1);
    put(5, JOB_HIGH, 9, 1); /* a class of its own */
    expect("5134131122");
}
END_TEST

/* The same key orders what is in an engine: who comes later does not wait for all that another user has there. */
START_TEST(order_next__turns_order_the_prover_too)
{
    struct order_turn first, second, other;

    put(1, JOB_NORMAL, 1, 9);
    ck_assert_uint_eq(take_as(0, &first), 1);
    ck_assert_uint_eq(take_as(0, &second), 1);
    ck_assert_uint_eq(first.turn, second.turn); /* alone: age and index count */
    put(2, JOB_NORMAL, 2, 9);
    ck_assert_uint_eq(take_as(0, &first), 1);
    ck_assert_uint_eq(take_as(0, &other), 2);
    ck_assert_uint_eq(take_as(0, &second), 1);
    ck_assert_uint_eq(first.turn, other.turn);
    ck_assert_uint_gt(second.turn, other.turn);
}
END_TEST

/* Two who share fairly over a thousand partitions, one of whom comes with one small job after another. */
START_TEST(order_next__shares_are_equal_in_the_long_run)
{
    unsigned got[2] = {0, 0};

    put(1, JOB_NORMAL, 1, 100000);
    put(2, JOB_NORMAL, 2, 1);
    for (int i = 0; i < 1000; i++) {
        uint64_t age = take();
        got[age - 1]++;
        if (age == 2)
            put(2, JOB_NORMAL, 2, 1);
    }
    ck_assert_uint_ge(got[0], 499);
    ck_assert_uint_ge(got[1], 499);
}
END_TEST

/* A partition each 100 ms, always something urgent: what is low gets one a second. */
START_TEST(order_next__low_never_starves)
{
    struct order_turn turn;
    unsigned got[4] = {0};

    put(1, JOB_LOW, 1, 1000);
    put(2, JOB_NORMAL, 1, 1000);
    put(3, JOB_CRITICAL, 1, 1000);
    for (int i = 0; i < 300; i++, now += 100) {
        uint64_t age = take_as(0, &turn);
        got[age]++;
        ck_assert_int_eq(turn.priority, JOB_CRITICAL); /* at the prover too */
    }
    ck_assert_uint_ge(got[1], 25);
    ck_assert_uint_ge(got[2], 25);
    ck_assert_uint_le(got[1] + got[2], 60); /* and what is urgent hardly notices */
}
END_TEST

START_TEST(order_next__with_aging_zero_low_waits)
{
    order_destroy(order);
    ck_assert_int_eq(order_create(0, &order), 0);
    put(1, JOB_LOW, 1, 1);
    put(2, JOB_HIGH, 1, 2);
    now = (int64_t)1 << 40;
    expect("221");
}
END_TEST

START_TEST(order_next__refused_sizes_hide_nothing_else)
{
    struct order_turn turn;

    put_sized(1, JOB_HIGH, 1, 3, 1);
    put_sized(2, JOB_LOW, 1, 4, 1);
    put_sized(3, JOB_HIGH, 2, 3, 1);
    ck_assert_uint_eq(take_as(1 << 3, &turn), 2);
    ck_assert_int_eq(turn.priority, JOB_LOW);
    ck_assert_uint_eq(take_as(1 << 3, &turn), 0);
    expect("13");
}
END_TEST

/* What is taken out and put back finds its place; nothing is left when all have gone. */
START_TEST(order_remove__from_anywhere)
{
    for (uint64_t i = 1; i <= 9; i++)
        put(i * 7 % 10, JOB_NORMAL, 1, 1);
    order_remove(order, &entries[5]);
    order_remove(order, &entries[5]);
    order_remove(order, &entries[1]);
    order_remove(order, &entries[9]);
    ck_assert(!entries[5].in);
    put(1, JOB_HIGH, 1, 1);
    expect("1234678");
}
END_TEST

/* Against the rule itself, read off all that waits. */
START_TEST(order_next__random_against_the_rule)
{
    struct order_turn turn;
    unsigned seed = 5;

    order_destroy(order);
    ck_assert_int_eq(order_create(0, &order), 0);
    for (int i = 0; i < 20000; i++) {
        uint64_t age = (uint64_t)rand_r(&seed) % 32;
        if (entries[age].in)
            order_remove(order, &entries[age]);
        else
            put_sized(age, (enum job_priority)(rand_r(&seed) % JOB_PRIORITIES), 1,
                      (unsigned)rand_r(&seed) % ORDER_SIZES, 1);
        uint32_t refused = (uint32_t)rand_r(&seed) & 0x3ff;
        const struct order_entry *best = NULL;
        for (size_t k = 0; k < 32; k++)
            if (entries[k].in && !(refused >> entries[k].key.size & 1) &&
                (!best || entries[k].key.priority > best->key.priority))
                best = &entries[k];
        ck_assert_int_eq(order_next(order, refused, now, &turn), best != NULL);
        if (best)
            ck_assert_ptr_eq(turn.entry, best);
    }
}
END_TEST

/* Ten thousand jobs in the queue: a few bytes for each. */
START_TEST(order_put__costs_little)
{
    enum { JOBS = 10000 };
    struct order_entry *many = calloc(JOBS, sizeof(*many));
    struct mallinfo2 before = mallinfo2();

    for (uint64_t i = 0; i < JOBS; i++) {
        const struct order_key key = {i, JOB_NORMAL, (uid_t)(i % 10), 8};
        ck_assert_int_eq(order_put(order, &many[i], &key, now), 0);
    }
    size_t bytes = mallinfo2().uordblks - before.uordblks;
    printf("%zu bytes for each of %d jobs\n", bytes / JOBS, JOBS);
    ck_assert_uint_le(bytes, 32 * JOBS);
    order_destroy(order);
    order = NULL;
    free(many);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("order");
    TCase *tc = tcase_create("order");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, order_next__class_then_age);
    tcase_add_test(tc, order_next__the_first_of_a_job_does_not_wait_for_the_last_of_another);
    tcase_add_test(tc, order_next__users_of_a_class_take_turns);
    tcase_add_test(tc, order_next__turns_order_the_prover_too);
    tcase_add_test(tc, order_next__shares_are_equal_in_the_long_run);
    tcase_add_test(tc, order_next__low_never_starves);
    tcase_add_test(tc, order_next__with_aging_zero_low_waits);
    tcase_add_test(tc, order_next__refused_sizes_hide_nothing_else);
    tcase_add_test(tc, order_remove__from_anywhere);
    tcase_add_test(tc, order_next__random_against_the_rule);
    tcase_add_test(tc, order_put__costs_little);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
