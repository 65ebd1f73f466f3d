/*
 * Jobs while the machine's clock jumps. The clocks are the test's (clock_gettime is wrapped at the link).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

#define YEARS ((time_t)10 * 365 * 86400)
#define HOUR 3600

static struct job_store *js;
static time_t set, passed; /* what somebody set the clock by; what went by while nobody looked */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    int ret = __real_clock_gettime(clock, t);

    t->tv_sec += passed + (clock == CLOCK_REALTIME ? set : 0);
    return ret;
}

static void setup(void)
{
    set = passed = 0;
    js = job_store_create();
    js->opt.keep_finished_s = js->opt.unsubmitted_s = HOUR;
    job_store_reopen(js);
}

static void teardown(void)
{
    job_store_destroy(js);
    set = passed = 0; /* Check looks at the clock too */
}

static const time_t jumps[] = {YEARS, -YEARS};

/* A proof that nobody has fetched yet, a job in an engine, one in the queue and a file that is being written. */
START_TEST(clock__a_jump_makes_nothing_old)
{
    struct partition_report report = js_report();
    struct partition_work work;
    uint8_t proof[192];
    size_t len;
    const uint8_t *text = document("2KiB-v1", &len);

    js_submit(js, "ended", "2KiB-sealed");
    js_prove_all(js);
    js_submit(js, "runs", "2KiB-sparse");
    ck_assert_int_eq(jobs_take_partition(js->jobs, 1, &work), 0);
    close(work.c1_fd);
    struct upload *u = js_open(js, "arrives");
    js_write(u, text, len / 2, 0);

    set = jumps[_i];
    for (int i = 0; i < 3; i++) {
        jobs_tick(js->jobs);
        passed += 60;
    }
    ck_assert_int_eq(js_state(js, "ended"), JOB_DONE);
    js_write(u, text + len / 2, len - len / 2, len / 2);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    js_fill_proof(proof, 1, work.partition);
    ck_assert_int_eq(jobs_partition_done(js->jobs, work.job, work.partition, proof, &report), 0);
    ck_assert_int_eq(js_state(js, "runs"), JOB_DONE);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js_state(js, "arrives"), JOB_DONE);
    char *json;
    ck_assert_int_eq(jobs_report(js->jobs, js_find(js, "runs").id, &json), 0);
    ck_assert_ptr_null(strstr(json, ": -")); /* no time is negative */
    free(json);
}
END_TEST

/* Ages count all the same, by the time that has gone by. */
START_TEST(clock__what_is_old_goes_after_a_jump_too)
{
    js_submit(js, "ended", "2KiB-sealed");
    js_prove_all(js);
    set = jumps[_i];
    jobs_tick(js->jobs);
    passed = HOUR - 60;
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, "ended"), JOB_DONE);
    passed = HOUR + 60;
    jobs_tick(js->jobs);
    passed = 0;
    ck_assert_int_eq(js_state(js, "ended"), JOB_STATES);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("clock");
    TCase *tc = tcase_create("clock");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, clock__a_jump_makes_nothing_old, 0, 2);
    tcase_add_loop_test(tc, clock__what_is_old_goes_after_a_jump_too, 0, 2);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
