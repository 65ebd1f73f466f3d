#include "gpu/newfile.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/files.h"
#include "tests/lib/suite.h"

static char dir[64], path[128], temporary[160];

static void setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/proofd-newfile-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/file", dir);
    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
}

static void teardown(void)
{
    unlink(path);
    unlink(temporary);
    ck_assert_int_eq(rmdir(dir), 0);
}

static void expect_content(const char *text)
{
    size_t len;
    uint8_t *bytes = file_read(path, &len);

    ck_assert_uint_eq(len, strlen(text));
    ck_assert_mem_eq(bytes, text, len);
    free(bytes);
}

START_TEST(newfile__appears_whole_when_committed)
{
    struct newfile f;

    ck_assert_int_eq(newfile_open(&f, path, 1000, NULL), 0);
    ck_assert_int_eq(newfile_write(&f, "one ", 4, NULL), 0);
    ck_assert_int_eq(newfile_write(&f, "two", 3, NULL), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(newfile_commit(&f, NULL), 0);
    newfile_close(&f);
    expect_content("one two"); /* and not the thousand bytes that were reserved */
    ck_assert_int_ne(access(temporary, F_OK), 0);
}
END_TEST

START_TEST(newfile_close__without_commit_leaves_nothing)
{
    struct newfile f;

    ck_assert_int_eq(newfile_put(path, "old", 3, NULL), 0);
    ck_assert_int_eq(newfile_open(&f, path, 0, NULL), 0);
    ck_assert_int_eq(newfile_write(&f, "new", 3, NULL), 0);
    newfile_close(&f);
    newfile_close(&f);
    expect_content("old");
    ck_assert_int_ne(access(temporary, F_OK), 0);
}
END_TEST

START_TEST(newfile_open__one_writer_at_a_time)
{
    struct newfile first, second;
    struct errmsg err;

    ck_assert_int_eq(newfile_open(&first, path, 0, NULL), 0);
    ck_assert_int_eq(newfile_open(&second, path, 0, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    newfile_close(&second);
    ck_assert_int_eq(newfile_write(&first, "first", 5, NULL), 0);
    ck_assert_int_eq(newfile_commit(&first, NULL), 0);
    expect_content("first");
    ck_assert_int_eq(newfile_put(path, "second", 6, NULL), 0);
    expect_content("second");
}
END_TEST

/* A writer that is killed leaves its temporary file; the next one makes use of it. */
START_TEST(newfile_open__after_a_writer_that_died)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct newfile f;
        if (newfile_open(&f, path, 5000, NULL) == 0 && newfile_write(&f, "half of a", 9, NULL) == 0)
            raise(SIGKILL);
        _exit(1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(access(temporary, F_OK), 0);
    ck_assert_uint_ge(newfile_left(path), 9);
    ck_assert_int_eq(newfile_put(path, "whole", 5, NULL), 0);
    ck_assert_uint_eq(newfile_left(path), 0);
    expect_content("whole");
    ck_assert_int_ne(access(temporary, F_OK), 0);
}
END_TEST

START_TEST(newfile_open__says_at_once_that_there_is_no_room)
{
    struct rlimit small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    struct newfile f;
    struct errmsg err;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &small);
    small.rlim_cur = 4096;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_eq(newfile_open(&f, path, 1 << 20, &err), -EFBIG);
    ck_assert_ptr_nonnull(strstr(err.text, "no room for 1048576 bytes"));
    ck_assert_int_ne(access(temporary, F_OK), 0);
    newfile_close(&f);
}
END_TEST

START_TEST(newfile_open__no_such_directory)
{
    struct newfile f;
    struct errmsg err;

    ck_assert_int_eq(newfile_open(&f, "/nowhere/at/all", 0, &err), -ENOENT);
    newfile_close(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("newfile");
    TCase *tc = tcase_create("newfile");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, newfile__appears_whole_when_committed);
    tcase_add_test(tc, newfile_close__without_commit_leaves_nothing);
    tcase_add_test(tc, newfile_open__one_writer_at_a_time);
    tcase_add_test(tc, newfile_open__after_a_writer_that_died);
    tcase_add_test(tc, newfile_open__says_at_once_that_there_is_no_room);
    tcase_add_test(tc, newfile_open__no_such_directory);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
