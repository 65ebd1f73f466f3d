/*
 * What an engine holds of parameters, over files and a memory that are made up: sizes of a few bytes, and a machine that has
 * as much memory as a test says.
 */
#include "daemon/params.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "numa/circuit/witness.h"
#include "tests/lib/suite.h"

static struct {
    uint64_t total, taken; /* bytes of memory */
    uint64_t file_bytes;
    unsigned opens, closes, out_of_memory; /* out_of_memory: opens that fail for it */
    int fails;
    bool transformed;
    unsigned makes;
} machine;

static uint64_t file_bytes(const struct sector_size *size, const char *dir)
{
    (void)size;
    ck_assert_str_eq(dir, "/somewhere");
    return machine.file_bytes;
}

static void memory(struct limits *out)
{
    uint64_t left = machine.total > machine.taken ? machine.total - machine.taken : 0;

    *out = (struct limits){
        .total_bytes = machine.total, .available_bytes = left, .from = "this test"};
}

static int open_params(const struct sector_size *size, const struct srs_options *opt,
                       struct srs **out, struct errmsg *err)
{
    machine.opens++;
    if (machine.fails)
        return errmsg_set(err, machine.fails, "no luck");
    if (machine.out_of_memory > 0) {
        machine.out_of_memory--;
        return errmsg_set(err, -ENOMEM, "no memory");
    }
    for (uint64_t done = 0; done <= 50; done += 5)
        opt->progress(opt->progress_ctx, "read", done, 50);
    for (uint64_t done = 50; done <= 100; done += 5) /* more to be done than was thought */
        opt->progress(opt->progress_ctx, "check", done, 100);
    *out = calloc(1, sizeof(**out));
    (*out)->size = size;
    (*out)->trust = SRS_CHECKED;
    (*out)->transformed = machine.transformed;
    machine.taken += machine.file_bytes;
    return 0;
}

static void close_params(struct srs *srs)
{
    machine.closes++;
    machine.taken -= machine.file_bytes;
    free(srs);
}

/* In place of a file that is not there. */
static int make_params(void *ctx, const struct sector_size *size, const struct srs_options *opt,
                       struct srs **out, struct errmsg *err)
{
    (void)ctx, (void)err;
    ck_assert_str_eq(opt->dir, "/somewhere");
    opt->progress(opt->progress_ctx, "h", 1, 2);
    machine.makes++;
    *out = calloc(1, sizeof(**out));
    (*out)->size = size;
    (*out)->trust = SRS_INSECURE;
    machine.taken += machine.file_bytes;
    return 0;
}

static const struct params_source source = {open_params, close_params, file_bytes, memory};
static struct params *params;
static unsigned percents[512];
static size_t percents_len;

static void note_loading(void *ctx, unsigned percent)
{
    (void)ctx;
    ck_assert_uint_lt(percents_len, ARRAY_LEN(percents));
    percents[percents_len++] = percent;
}

static void setup(void)
{
    const struct params_options opt = {
        .dir = "/somewhere", .loading = note_loading, .source = &source};

    log_set_level(0);
    memset(&machine, 0, sizeof(machine));
    machine.total = (uint64_t)1 << 40;
    machine.file_bytes = (uint64_t)1 << 30;
    percents_len = 0;
    ck_assert_int_eq(params_create(&opt, &params), 0);
}

static void teardown(void)
{
    params_destroy(params);
    ck_assert_uint_eq(machine.taken, 0);
}

static const struct sector_size *size_of(const char *name)
{
    return sector_size_by_name(name);
}

static int get(const char *name, double *ms, struct errmsg *err)
{
    const struct srs *srs = NULL;
    int ret = params_get(params, size_of(name), &srs, ms, err);

    if (ret == 0)
        ck_assert_ptr_eq(srs->size, size_of(name));
    return ret;
}

static void must_get(const char *name)
{
    struct errmsg err = {""};
    double ms;

    ck_assert_msg(get(name, &ms, &err) == 0, "%s", err.text);
}

static void holds(const char *text)
{
    char found[256];

    params_describe(params, found, sizeof(found));
    ck_assert_str_eq(found, text);
}

/* As much memory as a proof of the smallest size takes, and room for `files` files. */
static void have_room_for(unsigned files)
{
    machine.total =
        2 * assignment_bytes(size_of("2KiB")) + files * machine.file_bytes + machine.file_bytes / 2;
}

START_TEST(params_get__loads_once)
{
    double ms = -1;

    ck_assert_int_eq(get("2KiB", &ms, NULL), 0);
    ck_assert_double_ge(ms, 0);
    ck_assert_int_eq(get("2KiB", &ms, NULL), 0);
    ck_assert_double_eq(ms, 0);
    ck_assert_uint_eq(machine.opens, 1);
    holds("2KiB (checked)");
    must_get("4KiB");
    holds("2KiB (checked), 4KiB (checked)");
    ck_assert_uint_eq(machine.closes, 0);
}
END_TEST

START_TEST(params_get__gives_up_the_longest_unused_when_memory_is_short)
{
    have_room_for(3);
    must_get("2KiB");
    must_get("4KiB");
    must_get("2KiB"); /* now 4KiB is the one that waited longest */
    must_get("16KiB");
    ck_assert_uint_eq(machine.closes, 0);
    must_get("32KiB");
    ck_assert_uint_eq(machine.closes, 1);
    holds("2KiB (checked), 16KiB (checked), 32KiB (checked)");
    must_get("4KiB");
    ck_assert_uint_eq(machine.closes, 2);
    holds("4KiB (checked), 16KiB (checked), 32KiB (checked)");
    have_room_for(1); /* somebody else took the rest */
    must_get("2KiB");
    ck_assert_uint_eq(machine.closes, 5);
    holds("2KiB (checked)");
}
END_TEST

START_TEST(params_get__gives_up_others_when_loading_finds_no_memory)
{
    must_get("2KiB");
    must_get("4KiB");
    machine.out_of_memory = 1;
    must_get("16KiB");
    holds("4KiB (checked), 16KiB (checked)");
    machine.out_of_memory = 10;
    ck_assert_int_eq(get("32KiB", &(double){0}, NULL), -ENOMEM);
    holds("");
    machine.out_of_memory = 0;
    must_get("32KiB");
}
END_TEST

START_TEST(params_get__what_can_never_fit_gives_up_nothing)
{
    struct errmsg err = {""};
    double ms;

    must_get("2KiB");
    machine.file_bytes = (uint64_t)1 << 41;
    ck_assert_int_eq(get("4KiB", &ms, &err), -E2BIG);
    ck_assert_msg(strstr(err.text, "4KiB") && strstr(err.text, "2048.") &&
                      strstr(err.text, "this test has 1024.0 GiB"),
                  "%s", err.text);
    holds("2KiB (checked)");
    machine.file_bytes = (uint64_t)1 << 30;
}
END_TEST

START_TEST(params_get__a_failure_leaves_the_rest_as_it_is)
{
    struct errmsg err = {""};
    double ms;

    must_get("2KiB");
    machine.fails = -EBADMSG;
    ck_assert_int_eq(get("4KiB", &ms, &err), -EBADMSG);
    ck_assert_str_eq(err.text, "no luck");
    holds("2KiB (checked)");
    must_get("2KiB");
}
END_TEST

START_TEST(params_evict__gives_up_one)
{
    struct params_look look;

    must_get("2KiB");
    must_get("4KiB");
    params_look(params, size_of("2KiB"), &look);
    ck_assert(look.held && !look.loading);
    ck_assert_int_eq(look.trust, SRS_CHECKED);
    ck_assert_int_ge(look.used_ms, 0);
    ck_assert(params_evict(params, size_of("2KiB")));
    ck_assert(!params_evict(params, size_of("2KiB")));
    ck_assert_uint_eq(machine.closes, 1);
    holds("4KiB (checked)");
    params_look(params, size_of("2KiB"), &look);
    ck_assert(!look.held);
    ck_assert_int_eq(look.used_ms, -1);
    must_get("2KiB");
    ck_assert_uint_eq(machine.opens, 3);
}
END_TEST

START_TEST(params_look__says_which_are_transformed)
{
    struct params_look look;

    must_get("2KiB");
    machine.transformed = true;
    must_get("4KiB");
    holds("2KiB (checked), 4KiB (checked, transformed)");
    params_look(params, size_of("2KiB"), &look);
    ck_assert(!look.transformed);
    params_look(params, size_of("4KiB"), &look);
    ck_assert(look.transformed);
}
END_TEST

START_TEST(params_get__what_partitions_wait_with_goes_last)
{
    have_room_for(2);
    must_get("2KiB");
    must_get("4KiB");
    params_set_waiting(params, 1, true); /* 2KiB, though it is the longest unused */
    must_get("16KiB");
    holds("2KiB (checked), 16KiB (checked)");
    have_room_for(1);
    params_set_waiting(params, 1, false);
    must_get("4KiB");
    holds("2KiB (checked), 4KiB (checked)");
    params_set_waiting(params, 1, true); /* who is first must be proved all the same */
    must_get("32KiB");
    holds("32KiB (checked)");
}
END_TEST

START_TEST(params_touch__counts_as_use)
{
    have_room_for(2);
    must_get("2KiB");
    must_get("4KiB");
    params_touch(params, size_of("2KiB"));
    must_get("16KiB");
    holds("2KiB (checked), 16KiB (checked)");
}
END_TEST

START_TEST(params_get__progress_begins_at_nothing_and_only_grows)
{
    must_get("2KiB");
    ck_assert_uint_ge(percents_len, 10);
    ck_assert_uint_eq(percents[0], 0);
    for (size_t i = 1; i < percents_len; i++)
        ck_assert_uint_gt(percents[i], percents[i - 1]);
    ck_assert_uint_eq(percents[percents_len - 1], 100);
    percents_len = 0;
    must_get("2KiB");
    ck_assert_uint_eq(percents_len, 0);
    must_get("4KiB");
    ck_assert_uint_eq(percents[0], 0); /* another load, another beginning */
}
END_TEST

/* With a device that makes what no file has. */
START_TEST(params_get__makes_what_is_not_there_and_nothing_else)
{
    const struct params_options opt = {.dir = "/somewhere", .source = &source, .make = make_params};
    struct errmsg err = {""};
    double ms;

    machine.fails = -ENOENT;
    ck_assert_int_eq(get("2KiB", &ms, &err), -ENOENT); /* nobody said that it may */
    params_destroy(params);
    ck_assert_int_eq(params_create(&opt, &params), 0);
    must_get("2KiB");
    must_get("2KiB");
    ck_assert_uint_eq(machine.makes, 1);
    holds("2KiB (insecure development parameters)");
    machine.fails = 0; /* there is a file */
    must_get("4KiB");
    machine.fails = -EBADMSG; /* there is one that is damaged */
    ck_assert_int_eq(get("16KiB", &ms, &err), -EBADMSG);
    ck_assert_uint_eq(machine.makes, 1);
    ck_assert(params_evict(params, size_of("2KiB")));
    machine.fails = -ENOENT;
    must_get("2KiB");
    ck_assert_uint_eq(machine.makes, 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("params");
    TCase *tc = tcase_create("params");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, params_get__loads_once);
    tcase_add_test(tc, params_get__gives_up_the_longest_unused_when_memory_is_short);
    tcase_add_test(tc, params_get__gives_up_others_when_loading_finds_no_memory);
    tcase_add_test(tc, params_get__what_can_never_fit_gives_up_nothing);
    tcase_add_test(tc, params_get__a_failure_leaves_the_rest_as_it_is);
    tcase_add_test(tc, params_evict__gives_up_one);
    tcase_add_test(tc, params_look__says_which_are_transformed);
    tcase_add_test(tc, params_get__what_partitions_wait_with_goes_last);
    tcase_add_test(tc, params_touch__counts_as_use);
    tcase_add_test(tc, params_get__progress_begins_at_nothing_and_only_grows);
    tcase_add_test(tc, params_get__makes_what_is_not_there_and_nothing_else);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
