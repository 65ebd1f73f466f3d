#include "daemon/users.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>

#include "tests/lib/suite.h"

START_TEST(users_take__up_to_the_limit_of_each)
{
    struct users *u = NULL;

    ck_assert_int_eq(users_create(&u), 0);
    ck_assert_int_eq(users_take(u, 7, USER_FILES, 3, 5), 0);
    ck_assert_int_eq(users_take(u, 7, USER_FILES, 3, 5), -EDQUOT);
    ck_assert_int_eq(users_take(u, 7, USER_FILES, UINT64_MAX, UINT64_MAX),
                     -EDQUOT); /* no overflow */
    ck_assert_int_eq(users_take(u, 7, USER_FILES, 2, 5), 0);
    ck_assert_int_eq(users_take(u, 7, USER_FILES, 1, 5), -EDQUOT);
    ck_assert_int_eq(users_take(u, 7, USER_FILES, 1, 4), -EDQUOT); /* a limit may be lowered */
    ck_assert_int_eq(users_take(u, 7, USER_BYTES, 5, 5), 0);
    ck_assert_int_eq(users_take(u, 7 + 256, USER_FILES, 5, 5), 0); /* of the same bucket */
    ck_assert_uint_eq(users_has(u, 7, USER_FILES), 5);
    users_give(u, 7, USER_FILES, 5);
    users_give(u, 7, USER_BYTES, 5);
    ck_assert_uint_eq(users_has(u, 7, USER_FILES), 0);
    ck_assert_uint_eq(users_has(u, 7 + 256, USER_FILES), 5);
    ck_assert_int_eq(users_take(u, 7, USER_FILES, 5, 5), 0);
    users_destroy(u);
    users_destroy(NULL);
}
END_TEST

static void *hammer(void *arg)
{
    for (unsigned i = 0; i < 20000; i++) {
        uid_t user = i % 5 * 256;
        if (users_take(arg, user, USER_HANDLES, 1 + i % 3, 1000) == 0)
            users_give(arg, user, USER_HANDLES, 1 + i % 3);
    }
    return NULL;
}

START_TEST(users__any_thread)
{
    struct users *u = NULL;
    pthread_t threads[4];

    ck_assert_int_eq(users_create(&u), 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, hammer, u);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(users_has(u, i * 256, USER_HANDLES), 0);
    users_destroy(u);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("users");
    TCase *tc = tcase_create("users");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, users_take__up_to_the_limit_of_each);
    tcase_add_test(tc, users__any_thread);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
