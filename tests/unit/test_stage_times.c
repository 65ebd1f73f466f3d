#include "daemon/stage_times.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

static char *text;

static void print(const struct stage_times *t)
{
    size_t len;
    FILE *f = open_memstream(&text, &len);

    stage_times_print(t, "x_seconds", 3, f);
    fclose(f);
}

static void expect(const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "no '%s' in:\n%s", line, text);
}

/* Stages of 1 ms (its bound), 1.001 ms, nothing, 2 s and 20 minutes; then the same again with a proving stage of 5 s. */
START_TEST(stage_times__each_stage_in_its_bucket)
{
    struct stage_times t = {0};
    const struct flight_course slow = {.us = {7, 1007, 2008, 2008, 2002008, 1202002008}};
    struct flight_course other = slow;

    other.us[4] += 3000000;
    other.us[5] += 3000000;
    stage_times_add(&t, &slow);
    stage_times_add(&t, &other);
    print(&t);
    expect("x_seconds_bucket{node=\"3\",stage=\"waiting\",le=\"0.001\"} 2\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"synthesizing\",le=\"0.001\"} 0\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"synthesizing\",le=\"0.003\"} 2\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"ready\",le=\"0.001\"} 2\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"proving\",le=\"1\"} 0\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"proving\",le=\"3\"} 1\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"proving\",le=\"10\"} 2\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"finishing\",le=\"1000\"} 0\n");
    expect("x_seconds_bucket{node=\"3\",stage=\"finishing\",le=\"+Inf\"} 2\n");
    expect("x_seconds_sum{node=\"3\",stage=\"proving\"} 7.000000\n");
    expect("x_seconds_sum{node=\"3\",stage=\"waiting\"} 0.002000\n");
    expect("x_seconds_count{node=\"3\",stage=\"finishing\"} 2\n");
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stage_times");
    TCase *tc = tcase_create("stage_times");

    tcase_add_test(tc, stage_times__each_stage_in_its_bucket);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
