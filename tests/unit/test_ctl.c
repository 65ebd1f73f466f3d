#include "daemon/ctl.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[128];

static void setup(void)
{
    strcpy(dir, "/tmp/proofd-ctl-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/file", dir);
}

static void teardown(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
}

static const struct {
    const char *in;
    size_t in_len;
    const char *out;
    size_t out_len, digits;
} texts[] = {
    {"00ff", 4, "\x00\xff", 2, 4},
    {"00FF\n", 5, "\x00\xff", 2, 4},
    {" 0 0\tf\nf \r\n", 11, "\x00\xff", 2, 4},
    {"00f", 3, "00f", 3, 3},
    {"", 0, "", 0, 0},
    {"\n", 1, "\n", 1, 0},
    {"\x80\x00zz", 4, "\x80\x00zz", 4, 0},
    {"00gg", 4, "00gg", 4, 0},
};

START_TEST(ctl_proof_from_text__hex_is_decoded_and_raw_is_left)
{
    uint8_t bytes[32];
    size_t len = texts[_i].in_len;

    memcpy(bytes, texts[_i].in, len);
    ck_assert_uint_eq(ctl_proof_from_text(bytes, &len), texts[_i].digits);
    ck_assert_uint_eq(len, texts[_i].out_len);
    ck_assert_int_eq(memcmp(bytes, texts[_i].out, len), 0);
}
END_TEST

static size_t files_in_dir(void)
{
    char command[128];
    size_t n = 0;

    snprintf(command, sizeof(command), "ls -A '%s' | wc -l", dir);
    FILE *f = popen(command, "r");
    ck_assert_int_eq(fscanf(f, "%zu", &n), 1);
    pclose(f);
    return n;
}

START_TEST(ctl_write_file__replaces_whole_and_leaves_nothing_else)
{
    uint8_t *bytes = NULL;
    size_t len;
    struct stat st;

    umask(027);
    ck_assert_int_eq(ctl_write_file(path, "first", 5), 0);
    ck_assert_int_eq(ctl_write_file(path, "2nd", 3), 0);
    ck_assert_int_eq(ctl_read_file(path, 100, &bytes, &len), 0);
    ck_assert_uint_eq(len, 3);
    ck_assert_str_eq((char *)bytes, "2nd");
    free(bytes);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    ck_assert_uint_eq(files_in_dir(), 1);
}
END_TEST

START_TEST(ctl_write_file__leaves_devices_in_place_and_names_errors)
{
    struct stat st;

    ck_assert_int_eq(ctl_write_file("/dev/null", "x", 1), 0);
    ck_assert_int_eq(stat("/dev/null", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
    ck_assert_int_eq(ctl_write_file("/nonexistent/x", "x", 1), -ENOENT);
    ck_assert_int_eq(ctl_write_file(dir, "x", 1), -EISDIR);
}
END_TEST

START_TEST(ctl_read_file__bounds)
{
    static char big[20000];
    uint8_t *bytes = NULL;
    size_t len;

    ck_assert_int_eq(ctl_write_file(path, big, sizeof(big)), 0);
    ck_assert_int_eq(ctl_read_file(path, sizeof(big) - 1, &bytes, &len), -EFBIG);
    ck_assert_ptr_null(bytes);
    ck_assert_int_eq(ctl_read_file(path, sizeof(big), &bytes, &len), 0);
    ck_assert_uint_eq(len, sizeof(big));
    free(bytes);
    ck_assert_int_eq(ctl_read_file("/nonexistent", 1, &bytes, &len), -ENOENT);
}
END_TEST

START_TEST(ctl_json_string__escapes)
{
    char *text = NULL;
    size_t len;

    FILE *f = open_memstream(&text, &len);
    ctl_json_string(f, "a\"b\\c\n\x01\xc3\xa4");
    fclose(f);
    ck_assert_str_eq(text, "\"a\\\"b\\\\c\\u000a\\u0001\xc3\xa4\"");
    free(text);
}
END_TEST

/* Names of others must neither write to a terminal nor break JSON. */
START_TEST(ctl_put__and_json_let_no_control_through)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    ctl_put(f, "e\x1b]0;x\a \x7f \xc2\x9b \xff \\n \xc3\xa4|");
    ctl_json_string(f, "e\x1b\x7f\xc2\x9b\xff\xc3\xa4");
    fclose(f);
    ck_assert_str_eq(text, "e\\x1b]0;x\\x07 \\x7f \\xc2\\x9b \\xff \\n \xc3\xa4|"
                           "\"e\\u001b\\u007f\\u009b\\u00ff\xc3\xa4\"");
    free(text);
}
END_TEST

/* What `print` says on a standard stream that goes to a file. */
static char *said(FILE *stream, int fd, void (*print)(void))
{
    uint8_t *text = NULL;
    size_t len;

    fflush(stream);
    int old = dup(fd);
    ck_assert_ptr_nonnull(freopen(path, "w", stream));
    print();
    fflush(stream);
    dup2(old, fd);
    close(old);
    ck_assert_int_eq(ctl_read_file(path, 10000, &text, &len), 0);
    return (char *)text;
}

/* The linker sends the program's calls of clock_gettime here. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

static struct timespec now = {.tv_sec = 1000};

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    (void)clock;
    *out = now;
    return 0;
}

static void go_through_stages(void)
{
    ctl_progress_lines();
    for (uint64_t i = 0; i <= 1000; i++)
        ctl_progress(NULL, "one", i, 1000);
    ctl_progress(NULL, "two", 0, 1000);
    now.tv_sec += 2;
    ctl_progress(NULL, "two", 90, 1000);
    ctl_progress(NULL, "two", 250, 1000);
    ctl_progress(NULL, "two", 300, 1000);
    ctl_progress_end();
}

START_TEST(ctl_progress__off_a_terminal_says_a_line_now_and_then)
{
    char *text = said(stderr, STDERR_FILENO, go_through_stages);

    ck_assert_str_eq(
        text, "proofctl: one 0 %\nproofctl: one 100 %\nproofctl: two 0 %\nproofctl: two 25 %\n");
    free(text);
}
END_TEST

static void go_silently(void)
{
    ctl_progress(NULL, "one", 0, 1000);
    ctl_progress(NULL, "two", 1000, 1000);
    ctl_progress_end();
}

START_TEST(ctl_progress__off_a_terminal_is_silent_unless_lines_are_wanted)
{
    char *text = said(stderr, STDERR_FILENO, go_silently);

    ck_assert_str_eq(text, "");
    free(text);
}
END_TEST

static void fail_twice(void)
{
    ck_assert_int_eq(ctl_fail(CTL_NO, "no \"%s\"", "x"), CTL_NO);
    ctl_say_in_json();
    ck_assert_int_eq(ctl_fail(CTL_CANNOT, "no \"%s\"", "y"), CTL_CANNOT);
}

START_TEST(ctl_fail__in_json_is_an_answer)
{
    char *text = said(stdout, STDOUT_FILENO, fail_twice);

    ck_assert_str_eq(text, "{\"error\":\"no \\\"y\\\"\"}\n");
    free(text);
}
END_TEST

START_TEST(ctl_may_write__as_writing_would)
{
    char below[160];

    snprintf(below, sizeof(below), "%s/absent/x", dir);
    ck_assert_int_eq(ctl_may_write(path), 0);
    ck_assert_int_eq(ctl_may_write("/dev/null"), 0);
    ck_assert_int_eq(ctl_may_write("relative"), access(".", W_OK) == 0 ? 0 : -errno);
    ck_assert_int_eq(ctl_may_write(dir), -EISDIR);
    ck_assert_int_eq(ctl_may_write(below), -ENOENT);
    ck_assert_uint_eq(files_in_dir(), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ctl");
    TCase *tc = tcase_create("ctl");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, ctl_proof_from_text__hex_is_decoded_and_raw_is_left, 0,
                        ARRAY_LEN(texts));
    tcase_add_test(tc, ctl_write_file__replaces_whole_and_leaves_nothing_else);
    tcase_add_test(tc, ctl_write_file__leaves_devices_in_place_and_names_errors);
    tcase_add_test(tc, ctl_read_file__bounds);
    tcase_add_test(tc, ctl_json_string__escapes);
    tcase_add_test(tc, ctl_put__and_json_let_no_control_through);
    tcase_add_test(tc, ctl_progress__off_a_terminal_says_a_line_now_and_then);
    tcase_add_test(tc, ctl_progress__off_a_terminal_is_silent_unless_lines_are_wanted);
    tcase_add_test(tc, ctl_fail__in_json_is_an_answer);
    tcase_add_test(tc, ctl_may_write__as_writing_would);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
