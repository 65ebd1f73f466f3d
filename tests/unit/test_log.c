#include "daemon/log.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_MODULE LOG_JOBS

/* Standard error in a file while a test runs. */
static int saved_stderr = -1;
static FILE *captured;

static void capture_begin(void)
{
    captured = tmpfile();
    ck_assert_ptr_nonnull(captured);
    saved_stderr = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(fileno(captured), STDERR_FILENO), 0);
}

static char *capture_end(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    long len = (long)lseek(fileno(captured), 0, SEEK_END);
    char *text = calloc(1, (size_t)len + 1);
    ck_assert_int_eq(pread_full(fileno(captured), text, (size_t)len, 0), 0);
    fclose(captured);
    return text;
}

START_TEST(log_format__quotes_what_a_reader_could_mistake)
{
    char line[256];
    struct log_field f[] = {log_u64("job", 17), log_str("stage", "synthesize"),
                            log_i64("code", -5), log_str("msg", "a \"b\"\n\\"), log_str("none", ""),
                            log_str("name", "\xffx")};

    size_t n = log_format(line, sizeof(line), LOG_LEVEL_INFO, f, ARRAY_LEN(f));
    line[n] = '\0';
    ck_assert_str_eq(line,
                     "<6>job=17 stage=synthesize code=-5 msg=\"a \\\"b\\\"\\n\\\\\" none=\"\" "
                     "name=\"\\xffx\"\n");
}
END_TEST

START_TEST(log_format__cuts_a_long_line_and_keeps_the_newline)
{
    char line[32];
    struct log_field f[] = {log_str("msg", "0123456789012345678901234567890123456789")};

    size_t n = log_format(line, sizeof(line), LOG_LEVEL_ERR, f, 1);
    ck_assert_uint_eq(n, sizeof(line));
    ck_assert_int_eq(line[n - 1], '\n');
    ck_assert_int_eq(memcmp(line, "<3>msg=0123", 11), 0);
}
END_TEST

START_TEST(log_put__writes_at_once_without_a_writer)
{
    capture_begin();
    log_info(log_str("msg", "early"));
    log_debug(log_str("msg", "unwanted"));
    char *text = capture_end();
    ck_assert_str_eq(text, "<6>msg=early\n");
    free(text);
}
END_TEST

/* `2026-11-30T12:00:00.123Z <6>msg=timed`, but not in the journal, which is known by device and inode. */
START_TEST(log_put__has_the_time_where_there_is_no_journal)
{
    int year, month, day, hour, minute, second, ms, end = 0;
    char stream[64];
    struct stat st;

    capture_begin();
    setenv("JOURNAL_STREAM", "0:1", 1); /* that of a parent, who has standard error elsewhere */
    log_choose_times();
    log_info(log_str("msg", "timed"));
    ck_assert_int_eq(log_start(NULL), 0);
    log_info(log_str("msg", "later"));
    log_stop();
    ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
    snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_choose_times();
    log_info(log_str("msg", "journal"));
    char *text = capture_end();
    ck_assert_msg(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ <6>msg=timed\n%n", &year, &month, &day,
                         &hour, &minute, &second, &ms, &end) == 7 &&
                      end > 0,
                  "%s", text);
    ck_assert_int_ge(year, 2025);
    ck_assert_ptr_nonnull(strstr(text, "Z <6>msg=later\n<6>msg=journal\n"));
    free(text);
}
END_TEST

static int evaluations;

static uint64_t evaluate(void)
{
    return (uint64_t)++evaluations;
}

START_TEST(log_level__changes_while_running_and_spares_the_arguments)
{
    capture_begin();
    ck_assert_int_eq(log_start(NULL), 0);
    log_debug(log_u64("n", evaluate()));
    ck_assert_int_eq(evaluations, 0);
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug(log_u64("n", evaluate()));
    ck_assert_int_eq(evaluations, 1);
    log_set_level(LOG_LEVEL_ERR);
    log_warn(log_u64("n", evaluate()));
    log_stop();
    char *text = capture_end();
    ck_assert_str_eq(text, "<7>n=1\n");
    free(text);
}
END_TEST

START_TEST(log_level__names)
{
    static const struct {
        const char *name;
        enum log_level level;
    } names[] = {{"off", LOG_LEVEL_OFF},   {"err", LOG_LEVEL_ERR},     {"warn", LOG_LEVEL_WARN},
                 {"info", LOG_LEVEL_INFO}, {"debug", LOG_LEVEL_DEBUG}};
    enum log_level level;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        ck_assert_int_eq(log_level_parse(names[i].name, &level), 0);
        ck_assert_int_eq(level, names[i].level);
    }
    ck_assert_int_lt(log_level_parse("loud", &level), 0);
    ck_assert_int_lt(log_level_parse("", &level), 0);
}
END_TEST

START_TEST(log_levels__of_a_module_are_its_own)
{
    evaluations = 0;
    capture_begin();
    ck_assert_int_eq(log_change_levels("err jobs=debug", NULL), 0);
    log_debug(log_u64("n", evaluate()));
    LOG_AT(LOG_SCHED, LOG_LEVEL_WARN, log_u64("n", evaluate()));
    LOG_AT(LOG_SCHED, LOG_LEVEL_ERR, log_u64("n", evaluate()));
    ck_assert_int_eq(log_change_levels("jobs=off", NULL), 0);
    log_err(log_u64("n", evaluate()));
    LOG_AT(LOG_FUSE, LOG_LEVEL_ERR, log_u64("n", evaluate()));
    char *text = capture_end();
    ck_assert_str_eq(text, "<7>n=1\n<3>n=2\n<3>n=3\n");
    ck_assert_int_eq(evaluations, 3);
    free(text);
}
END_TEST

START_TEST(log_levels_parse__words)
{
    static const struct {
        const char *text, *gives; /* from "warn engine=err" on */
    } rows[] = {
        {"info", "info"},
        {"\toff\n", "off"},
        {"info sched=debug fuse=off", "info sched=debug fuse=off"},
        {"info\nfuse=off\nsched=debug\n", "info sched=debug fuse=off"},
        {"engine=warn", "warn"},
        {"params=debug", "warn engine=err params=debug"},
        {"debug front=err jobs=err sched=err engine=err params=err fuse=err", "err"},
        {"info front=info", "info"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t levels = LOG_LEVELS(LOG_LEVEL_WARN), again = 0;
        char text[LOG_LEVELS_TEXT];
        ck_assert_int_eq(log_levels_parse("engine=err", &levels, NULL), 0);
        ck_assert_int_eq(log_levels_parse(rows[i].text, &levels, NULL), 0);
        log_levels_text(levels, text);
        ck_assert_str_eq(text, rows[i].gives);
        ck_assert_int_eq(log_levels_parse(text, &again, NULL), 0);
        ck_assert_uint_eq(again, levels);
    }
}
END_TEST

START_TEST(log_levels_parse__all_or_nothing)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "'' is none of off, err, warn, info, debug"},
        {" \n", "'' is none of"},
        {"loud", "'loud' is none of off, err, warn, info, debug"},
        {"INFO", "'INFO' is none of"},
        {"err sched=loud", "'loud' is none of"},
        {"err sched=", "'' is none of"},
        {"err shed=debug", "'shed' is none of front, jobs, sched, engine, params, fuse"},
        {"err =debug", "'' is none of front"},
        {"sched=debug err", "'err' comes first"},
        {"debug err", "'err' comes first"},
        {"err sched=info sched=debug", "'sched' is named twice"},
        {"err sched=info=debug", "'info=debug' is none of"},
    };
    char longest[LOG_LEVELS_TEXT + 1];
    uint32_t levels = LOG_LEVELS(LOG_LEVEL_WARN);
    struct errmsg err;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ck_assert_int_eq(log_levels_parse(rows[i].text, &levels, &err), -EINVAL);
        ck_assert_msg(strncmp(err.text, rows[i].why, strlen(rows[i].why)) == 0, "%s", err.text);
        ck_assert_uint_eq(levels, LOG_LEVELS(LOG_LEVEL_WARN));
        ck_assert_int_eq(log_change_levels(rows[i].text, NULL), -EINVAL);
        ck_assert_uint_eq(log_get_levels(), LOG_LEVELS(LOG_LEVEL_INFO));
    }
    memset(longest, ' ', sizeof(longest));
    memcpy(longest, "debug", 5);
    longest[LOG_LEVELS_TEXT] = '\0';
    ck_assert_int_eq(log_levels_parse(longest, &levels, &err), -EINVAL);
    longest[LOG_LEVELS_TEXT - 1] = '\0';
    ck_assert_int_eq(log_levels_parse(longest, &levels, &err), 0);
    ck_assert_uint_eq(levels, LOG_LEVELS(LOG_LEVEL_DEBUG));
}
END_TEST

START_TEST(log_levels__what_may_be_sent)
{
    ck_assert(log_levels_are_valid(LOG_LEVELS(LOG_LEVEL_OFF)));
    ck_assert(log_levels_are_valid(LOG_LEVELS(LOG_LEVEL_DEBUG)));
    for (unsigned m = 0; m < LOG_MODULES; m++)
        ck_assert(!log_levels_are_valid(UINT32_C(5) << LOG_LEVEL_BITS * m));
    ck_assert(!log_levels_are_valid(UINT32_C(6) << LOG_LEVEL_BITS * LOG_MODULES));
}
END_TEST

/* Each looks at what it set itself: nobody else may have put back what it read before. */
static void *change_own(void *arg)
{
    static const char *const names[] = {"front", "fuse"};
    const enum log_module own = arg ? LOG_FUSE : LOG_FRONT;
    char text[32];

    for (unsigned i = 0; i < 20000; i++) {
        enum log_level level = i % 2 ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERR;
        snprintf(text, sizeof(text), "%s=%s", names[arg ? 1 : 0], i % 2 ? "debug" : "err");
        ck_assert_int_eq(log_change_levels(text, NULL), 0);
        ck_assert_int_eq(log_level_of(log_get_levels(), own), level);
    }
    return NULL;
}

START_TEST(log_levels__of_several_writers)
{
    pthread_t other;

    ck_assert_int_eq(pthread_create(&other, NULL, change_own, &evaluations), 0);
    change_own(NULL);
    pthread_join(other, NULL);
}
END_TEST

#define PRODUCERS 4
#define EVENTS 3000

static void *produce(void *arg)
{
    uint64_t who = (uint64_t)(uintptr_t)arg;
    char text[64];

    for (uint64_t i = 0; i < EVENTS; i++) {
        snprintf(text, sizeof(text), "from-%llu", (unsigned long long)who);
        log_info(log_u64("who", who), log_u64("i", i), log_str("msg", text));
        memset(text, 'x', sizeof(text) - 1); /* the log must have copied it */
    }
    return NULL;
}

START_TEST(log_put__from_many_threads_loses_nothing_silently)
{
    pthread_t threads[PRODUCERS];
    uint64_t seen = 0, lost = 0;
    long last[PRODUCERS] = {-1, -1, -1, -1};

    capture_begin();
    ck_assert_int_eq(log_start(NULL), 0);
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, produce, (void *)i), 0);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    log_stop();
    char *text = capture_end(), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned long long who, i, from, n;
        if (sscanf(line, "<6>who=%llu i=%llu msg=from-%llu", &who, &i, &from) == 3) {
            ck_assert_uint_eq(who, from);
            ck_assert_uint_lt(who, PRODUCERS);
            ck_assert_int_gt((long)i, last[who]); /* in order for each thread */
            last[who] = (long)i;
            seen++;
        } else {
            ck_assert_msg(sscanf(line, "<4>msg=\"log events lost: the ring was full\" lost=%llu",
                                 &n) == 1, "%s", line);
            lost += n;
        }
    }
    free(text);
    ck_assert_uint_eq(seen + lost, (uint64_t)PRODUCERS * EVENTS);
    ck_assert_uint_gt(seen, 500);
}
END_TEST

START_TEST(log_put__bounds_fields_and_text)
{
    char big[3000];
    struct log_field f[LOG_FIELDS_MAX + 3];

    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(f); i++)
        f[i] = log_str("k", big);
    capture_begin();
    ck_assert_int_eq(log_start(NULL), 0);
    log_put(LOG_LEVEL_INFO, f, ARRAY_LEN(f));
    log_stop();
    char *text = capture_end();
    ck_assert_uint_le(strlen(text), LOG_TEXT_BYTES + 16 * LOG_FIELDS_MAX);
    ck_assert_uint_gt(strlen(text), LOG_TEXT_BYTES);
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("log");
    TCase *tc = tcase_create("log");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, log_format__quotes_what_a_reader_could_mistake);
    tcase_add_test(tc, log_format__cuts_a_long_line_and_keeps_the_newline);
    tcase_add_test(tc, log_put__writes_at_once_without_a_writer);
    tcase_add_test(tc, log_put__has_the_time_where_there_is_no_journal);
    tcase_add_test(tc, log_level__changes_while_running_and_spares_the_arguments);
    tcase_add_test(tc, log_level__names);
    tcase_add_test(tc, log_levels__of_a_module_are_its_own);
    tcase_add_test(tc, log_levels_parse__words);
    tcase_add_test(tc, log_levels_parse__all_or_nothing);
    tcase_add_test(tc, log_levels__what_may_be_sent);
    tcase_add_test(tc, log_levels__of_several_writers);
    tcase_add_test(tc, log_put__from_many_threads_loses_nothing_silently);
    tcase_add_test(tc, log_put__bounds_fields_and_text);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
