#include "numa/slots.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "tests/lib/suite.h"

#define PAGE 4096

static struct arena *arena;
static struct slots *slots;
static struct errmsg err;

static void setup(void)
{
    const struct arena_options opt = {
        .bytes = 64 * PAGE, .node = ARENA_ANY_NODE, .largest = ARENA_4KIB};

    ck_assert_int_eq(arena_create(&opt, &arena, &err), 0);
}

static void teardown(void)
{
    arena_destroy(arena);
}

static int make(size_t witness, uint32_t witnesses, size_t evaluation, uint32_t evaluations)
{
    const struct slots_shape shape = {witness, evaluation, witnesses, evaluations};

    return slots_create(arena, &shape, &slots, &err);
}

static struct slots_counts counts(void)
{
    struct slots_counts c;

    slots_counts(slots, &c);
    return c;
}

START_TEST(slots_take__no_two_slots_share_a_byte)
{
    struct slot taken[3];

    ck_assert_int_eq(make(PAGE + 1, 3, 3 * PAGE, 3), 0);
    ck_assert_uint_eq(arena_mark(arena), 3 * 2 * PAGE + 3 * 3 * PAGE);
    for (int i = 0; i < 3; i++) {
        ck_assert(slots_take(slots, &taken[i]));
        memset(taken[i].witness, i + 1, PAGE + 1);
        memset(taken[i].evaluation, 16 * (i + 1), 3 * PAGE);
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < PAGE + 1; k++)
            ck_assert_int_eq(((char *)taken[i].witness)[k], i + 1);
        for (int k = 0; k < 3 * PAGE; k++)
            ck_assert_int_eq(((char *)taken[i].evaluation)[k], 16 * (i + 1));
        slots_return(slots, &taken[i]);
    }
    slots_destroy(slots);
}
END_TEST

/* Two evaluation parts for three witnesses: the third partition begins when one has given its part back. */
START_TEST(slots_return__in_two_steps)
{
    struct slot a, b, c;

    ck_assert_int_eq(make(PAGE, 3, 4 * PAGE, 2), 0);
    ck_assert(slots_take(slots, &a) && slots_take(slots, &b));
    ck_assert(!slots_free(slots) && !slots_take(slots, &c));
    ck_assert_uint_eq(counts().bytes, 2 * 5 * PAGE);
    slots_return_evaluation(slots, &a);
    ck_assert_ptr_null(a.evaluation);
    ck_assert_ptr_nonnull(a.witness);
    ck_assert_uint_eq(counts().bytes, 6 * PAGE);
    ck_assert_uint_eq(counts().returned_bytes, 4 * PAGE);
    slots_return_evaluation(slots, &a); /* has been done */
    ck_assert_uint_eq(counts().returned_bytes, 4 * PAGE);
    ck_assert(slots_free(slots) && slots_take(slots, &c));
    slots_return_evaluation(slots, &b);
    ck_assert(!slots_free(slots)); /* no witness is left */
    slots_return(slots, &a);
    ck_assert(slots_free(slots));
    slots_return(slots, &b);
    slots_return(slots, &c);
    const struct slots_counts end = counts();
    ck_assert_uint_eq(end.bytes, 0);
    ck_assert_uint_eq(end.witnesses, 0);
    ck_assert_uint_eq(end.evaluations, 0);
    ck_assert_uint_eq(end.witnesses_peak, 3);
    ck_assert_uint_eq(end.bytes_peak, 11 * PAGE);
    ck_assert_uint_eq(end.returned_bytes, 3 * 5 * PAGE);
    slots_destroy(slots);
}
END_TEST

START_TEST(slots_take__where_the_prover_evaluates)
{
    struct slot a, b;

    ck_assert_int_eq(make(PAGE, 1, 0, 0), 0);
    ck_assert(slots_take(slots, &a));
    ck_assert_ptr_null(a.evaluation);
    ck_assert(!slots_take(slots, &b));
    slots_return_evaluation(slots, &a);
    ck_assert(!slots_free(slots));
    slots_return(slots, &a);
    slots_destroy(slots);
}
END_TEST

START_TEST(slots_create__refuses_what_cannot_be)
{
    ck_assert_int_eq(make(0, 1, 0, 0), -EINVAL);
    ck_assert_int_eq(make(PAGE, 0, 0, 0), -EINVAL);
    ck_assert_int_eq(make(PAGE, SLOTS_MAX + 1, 0, 0), -EINVAL);
    ck_assert_int_eq(make(PAGE, 1, PAGE, 0), -EINVAL);
    ck_assert_int_eq(make(PAGE, 1, PAGE, 2), -EINVAL);
    ck_assert_int_eq(make(SIZE_MAX / 4, 8, PAGE, 1), -EINVAL);
    ck_assert_int_eq(make(PAGE, 32, PAGE, 32 + 1), -EINVAL);
    ck_assert_int_eq(make(PAGE, 33, PAGE, 32), -ENOMEM);
    ck_assert_uint_eq(arena_mark(arena), 0);
    ck_assert_int_eq(make(PAGE, SLOTS_MAX, 0, 0), 0);
    slots_destroy(slots);
}
END_TEST

/* Each writes its own name into what it has and finds it there again. */
static void *take_and_return(void *arg)
{
    uintptr_t me = (uintptr_t)arg;
    struct slot slot;

    for (int i = 0; i < 20000; i++) {
        if (!slots_take(slots, &slot))
            continue;
        *(volatile uintptr_t *)slot.witness = me;
        *(volatile uintptr_t *)slot.evaluation = me;
        if (*(volatile uintptr_t *)slot.evaluation != me)
            return arg;
        slots_return_evaluation(slots, &slot);
        if (*(volatile uintptr_t *)slot.witness != me)
            return arg;
        slots_return(slots, &slot);
    }
    return NULL;
}

START_TEST(slots_take__from_several_threads)
{
    pthread_t threads[4];
    void *bad;

    ck_assert_int_eq(make(PAGE, 3, PAGE, 2), 0);
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_return, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &bad);
        ck_assert_ptr_null(bad);
    }
    ck_assert_uint_eq(counts().bytes, 0);
    slots_destroy(slots);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("slots");
    TCase *tc = tcase_create("slots");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, slots_take__no_two_slots_share_a_byte);
    tcase_add_test(tc, slots_return__in_two_steps);
    tcase_add_test(tc, slots_take__where_the_prover_evaluates);
    tcase_add_test(tc, slots_create__refuses_what_cannot_be);
    tcase_add_test(tc, slots_take__from_several_threads);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
