/*
 * Who gets the next partition: first as arithmetic, then in a simulation with a clock of its own.
 */
#include "daemon/balance.h"

#include <check.h>
#include <string.h>

#include "tests/lib/suite.h"

#define ENGINES 3

static struct load loads[ENGINES];

static void setup(void)
{
    for (size_t i = 0; i < ENGINES; i++)
        loads[i] = (struct load){.open = true, .room = 2, .ms = 10};
}

START_TEST(balance_choose__the_shortest_wait)
{
    loads[0].in_flight = 3;
    loads[1].in_flight = 1;
    loads[2].in_flight = 2;
    ck_assert_uint_eq(balance_choose(loads, ENGINES), 1);
    loads[1].ms = 25; /* slow */
    ck_assert_uint_eq(balance_choose(loads, ENGINES), 2);
    loads[2].room = 0;
    ck_assert_uint_eq(balance_choose(loads, ENGINES), 0);
    loads[0].open = false;
    ck_assert_uint_eq(balance_choose(loads, ENGINES), 1);
    loads[1].room = 0;
    ck_assert_uint_eq(balance_choose(loads, ENGINES), ENGINES);
}
END_TEST

/* Before anything is known whoever has least gets the next; then an unknown one is as good as the best. */
START_TEST(balance_choose__where_nothing_is_known)
{
    for (size_t i = 0; i < ENGINES; i++) {
        loads[i].ms = 0;
        loads[i].in_flight = i == 1 ? 0 : 1;
    }
    ck_assert_uint_eq(balance_choose(loads, ENGINES), 1);
    loads[0].ms = 10;
    loads[1].in_flight = loads[2].in_flight = 2;
    ck_assert_uint_eq(balance_choose(loads, ENGINES), 0);
    loads[0].in_flight = 3;
    ck_assert_uint_eq(balance_choose(loads, ENGINES), 1);
}
END_TEST

START_TEST(balance_steal__from_the_longest_queue)
{
    loads[0].in_flight = loads[0].waiting = 0;
    loads[1].in_flight = 3, loads[1].waiting = 1;
    loads[2].in_flight = 4, loads[2].waiting = 2;
    ck_assert_uint_eq(balance_steal(loads, ENGINES, 0), 2);
    ck_assert_uint_eq(balance_steal(loads, ENGINES, 1), ENGINES); /* it has something to do */
    loads[0].room = 0;
    ck_assert_uint_eq(balance_steal(loads, ENGINES, 0), ENGINES);
    loads[0].room = 1;
    loads[1].waiting = loads[2].waiting = 0;
    ck_assert_uint_eq(balance_steal(loads, ENGINES, 0), ENGINES); /* all begun */
}
END_TEST

START_TEST(balance_steal__a_slow_engine_leaves_it_where_it_is)
{
    loads[1].in_flight = 4, loads[1].waiting = 3;
    loads[0].ms = 45; /* the last one there is through in 40 */
    ck_assert_uint_eq(balance_steal(loads, ENGINES, 0), ENGINES);
    loads[0].ms = 35;
    ck_assert_uint_eq(balance_steal(loads, ENGINES, 0), 1);
}
END_TEST

/* Idle times are nobody's pace. */
START_TEST(pace__of_busy_times_alone)
{
    struct pace p = {0};

    pace_given(&p, 0, 1000);
    pace_given(&p, 1, 1001);
    pace_proved(&p, 1020);
    ck_assert_double_eq(p.ms, 20);
    pace_proved(&p, 1040);
    ck_assert_double_eq(p.ms, 20);
    pace_given(&p, 0, 9000); /* after a long pause */
    pace_proved(&p, 9020);
    ck_assert_double_eq(p.ms, 20);
    for (int i = 0; i < 40; i++) { /* it becomes faster */
        pace_given(&p, 0, 10000 + 10 * i);
        pace_proved(&p, 10005 + 10 * i);
    }
    ck_assert_double_lt(p.ms, 5.1);
    pace_given(&p, 0, 20000);
    pace_proved(&p, 20000); /* within a tick of the clock */
    ck_assert_double_gt(p.ms, 0);
}
END_TEST

/* ---- a simulation: engines that do one partition after another ---- */

static const unsigned takes_ms[ENGINES] = {10, 20, 40};

struct engine {
    struct pace pace;
    size_t in_flight;
    int64_t ends; /* the one that it works on */
    unsigned done;
};

static void look(const struct engine *engines, struct load *out)
{
    for (size_t i = 0; i < ENGINES; i++)
        out[i] = (struct load){.open = true,
                               .room = 4 - engines[i].in_flight,
                               .in_flight = engines[i].in_flight,
                               .waiting = engines[i].in_flight > 1 ? engines[i].in_flight - 1 : 0,
                               .ms = engines[i].pace.ms};
}

static void give(struct engine *e, size_t i, int64_t now)
{
    pace_given(&e->pace, e->in_flight, now);
    if (e->in_flight++ == 0)
        e->ends = now + takes_ms[i];
}

/* Returns when the last of `partitions` is done. */
static int64_t simulate(struct engine engines[ENGINES], unsigned partitions)
{
    unsigned done = 0, queue = partitions;

    for (int64_t now = 0;; now++) {
        for (size_t i = 0; i < ENGINES; i++) {
            struct engine *e = &engines[i];
            if (e->in_flight == 0 || e->ends > now)
                continue;
            e->in_flight--;
            e->done++;
            e->ends = now + takes_ms[i];
            pace_proved(&e->pace, now);
            if (++done == partitions)
                return now;
        }
        for (;;) {
            look(engines, loads);
            size_t i = balance_choose(loads, ENGINES);
            if (queue == 0 || i == ENGINES)
                break;
            give(&engines[i], i, now);
            queue--;
        }
        for (size_t i = 0; i < ENGINES && queue == 0; i++) {
            look(engines, loads);
            size_t from = balance_steal(loads, ENGINES, i);
            if (from == ENGINES)
                continue;
            engines[from].in_flight--;
            give(&engines[i], i, now);
        }
    }
}

/* 700 partitions at 10, 20 and 40 ms: 4 s when nobody is ever idle and the end is even. */
START_TEST(balance__engines_of_different_speed_end_together)
{
    struct engine engines[ENGINES];

    memset(engines, 0, sizeof(engines));
    int64_t ms = simulate(engines, 700);
    ck_assert_int_ge(ms, 4000);
    ck_assert_int_le(ms, 4060);
    ck_assert_uint_ge(engines[0].done, 395);
    ck_assert_uint_ge(engines[2].done, 97);
    memset(engines, 0, sizeof(engines));
    ms = simulate(engines, 7); /* few: nobody waits long for the slow one */
    ck_assert_int_le(ms, 80);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("balance");
    TCase *tc = tcase_create("balance");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, balance_choose__the_shortest_wait);
    tcase_add_test(tc, balance_choose__where_nothing_is_known);
    tcase_add_test(tc, balance_steal__from_the_longest_queue);
    tcase_add_test(tc, balance_steal__a_slow_engine_leaves_it_where_it_is);
    tcase_add_test(tc, pace__of_busy_times_alone);
    tcase_add_test(tc, balance__engines_of_different_speed_end_together);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
