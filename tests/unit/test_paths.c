#include "daemon/paths.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void setup(void)
{
    strcpy(dir, "/tmp/proofd-paths-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(mkdir("real", 0755), 0);
    ck_assert_int_eq(symlink("real", "link"), 0);
}

static void teardown(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(path_resolve__of_what_exists_and_what_does_not)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"real", "/real"},         {"link", "/real"},         {"link/a/b", "/real/a/b"},
        {"./link//a/", "/real/a"}, {"absent", "/absent"},     {"absent/x", "/absent/x"},
        {"real/../link", "/real"}, {"real/absent/", "/real/absent"},
    };
    char out[PATH_MAX], wanted[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(path_resolve(cases[i].in, out), 0);
        snprintf(wanted, sizeof(wanted), "%s%s", dir, cases[i].out);
        ck_assert_str_eq(out, wanted);
    }
    ck_assert_int_eq(path_resolve("/", out), 0);
    ck_assert_str_eq(out, "/");
    ck_assert_int_eq(path_resolve("/absent-xyz/a", out), 0);
    ck_assert_str_eq(out, "/absent-xyz/a");
}
END_TEST

START_TEST(path_resolve__bounds_and_loops)
{
    char big[2 * PATH_MAX], out[PATH_MAX];

    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    ck_assert_int_eq(path_resolve(big, out), -ENAMETOOLONG);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    ck_assert_int_eq(path_resolve("loop", out), -ELOOP);
}
END_TEST

START_TEST(path_is_inside__through_links_and_absent_parts)
{
    ck_assert(path_is_inside("link/store", "real"));
    ck_assert(path_is_inside("real", "link"));
    ck_assert(path_is_inside("real/a/b", "real/a"));
    ck_assert(!path_is_inside("real2/store", "real"));
    ck_assert(!path_is_inside("real", "real/a"));
    ck_assert(path_is_inside("/anything", "/"));
    ck_assert(!path_is_inside("/var/lib/proofd", "/proof"));
}
END_TEST

START_TEST(path_make_parents__makes_what_is_missing_above)
{
    struct errmsg err = {""};
    struct stat st;

    umask(027);
    ck_assert_msg(path_make_parents("a/b//c/", &err) == 0, "%s", err.text);
    ck_assert_int_eq(stat("a/b", &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0750);
    ck_assert_int_ne(access("a/b/c", F_OK), 0);
    ck_assert_int_eq(path_make_parents("a/b/c", &err), 0);
    ck_assert_int_eq(path_make_parents("link/d/e", &err), 0);
    ck_assert_int_eq(access("real/d", F_OK), 0);
    ck_assert_int_eq(path_make_parents("bare", &err), 0);
    ck_assert_int_eq(path_make_parents("/", &err), 0);
    ck_assert_int_ne(access("bare", F_OK), 0);
    /* Nothing is made behind a link that leads nowhere. */
    ck_assert_int_eq(symlink("nowhere", "dangling"), 0);
    ck_assert_int_eq(path_make_parents("dangling/x/y", &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "dangling/x"));
    ck_assert_int_ne(access("nowhere", F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("paths");
    TCase *tc = tcase_create("paths");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, path_resolve__of_what_exists_and_what_does_not);
    tcase_add_test(tc, path_resolve__bounds_and_loops);
    tcase_add_test(tc, path_is_inside__through_links_and_absent_parts);
    tcase_add_test(tc, path_make_parents__makes_what_is_missing_above);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
