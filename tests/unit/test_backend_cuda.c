/*
 * Opening the CUDA object: what is said when it is not there, is broken, or finds no GPU. What it computes is tested in
 * tests/gpu.
 */
#include "gpu/backend_cuda.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/suite.h"

#define OBJECT "libproofd-cuda.so"

static char beside[PATH_MAX]; /* where this program looks first */

static bool find_beside(void)
{
    ssize_t len = readlink("/proc/self/exe", beside, sizeof(beside) - sizeof(OBJECT) - 1);

    if (len <= 0)
        return false;
    beside[len] = '\0';
    memcpy(strrchr(beside, '/') + 1, OBJECT, sizeof(OBJECT));
    unlink(beside); /* of a run that was cut off */
    return true;
}

static void expect_failure(int code, const char *word)
{
    struct backend *be = NULL;
    struct errmsg err = {""};

    ck_assert_int_eq(backend_cuda_create(0, NULL, &be, &err), code);
    ck_assert_msg(strstr(err.text, word) != NULL, "'%s' is not in '%s'", word, err.text);
    ck_assert_ptr_null(be);
}

START_TEST(backend_cuda_create__says_where_it_looked)
{
    if (access(PROOFD_LIBDIR "/" OBJECT, F_OK) == 0)
        return; /* proofd is installed here: it would be found */
    expect_failure(-ENOENT, PROOFD_LIBDIR);
    expect_failure(-ENOENT, OBJECT);
}
END_TEST

START_TEST(backend_cuda_create__broken_object_in_the_loaders_words)
{
    FILE *f = fopen(beside, "w");

    ck_assert_ptr_nonnull(f);
    fputs("not an object", f);
    fclose(f);
    expect_failure(-ENOENT, OBJECT);
    unlink(beside);
}
END_TEST

/* With an object that was built: a backend where there is a GPU, and elsewhere a reason. */
START_TEST(backend_cuda_create__without_a_gpu_says_so)
{
    const char *build = getenv("BUILD");
    char path[PATH_MAX], real[PATH_MAX];
    struct backend *be = NULL;
    struct errmsg err = {""};

    snprintf(path, sizeof(path), "%s/" OBJECT, build ? build : "build");
    if (!realpath(path, real)) {
        suite_skip("backend_cuda_create__without_a_gpu_says_so", "nvcc, for a GPU's code");
        return;
    }
    ck_assert_int_eq(symlink(real, beside), 0);
    int ret = backend_cuda_create(0, NULL, &be, &err);
    unlink(beside);
    if (ret == 0)
        backend_destroy(be);
    else
        ck_assert_msg(ret == -ENODEV && strstr(err.text, "GPU 0: ") == err.text, "%d: %s", ret,
                      err.text);
}
END_TEST

int main(void)
{
    if (!find_beside()) {
        printf("/proc is not mounted\n");
        return 77;
    }

    Suite *s = suite_create("backend_cuda");
    TCase *tc = tcase_create("open");
    tcase_add_test(tc, backend_cuda_create__says_where_it_looked);
    tcase_add_test(tc, backend_cuda_create__broken_object_in_the_loaders_words);
    tcase_add_test(tc, backend_cuda_create__without_a_gpu_says_so);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
