#include "daemon/notify.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_at(const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(addr.sun_path, name, strlen(name));
    if (name[0] == '@')
        addr.sun_path[0] = '\0';
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    return fd;
}

START_TEST(notify_send__reaches_a_path_and_an_abstract_name)
{
    static const char *const patterns[] = {"/tmp/proofd-notify-%d", "@proofd-notify-%d"};
    char name[64], text[64] = "";

    snprintf(name, sizeof(name), patterns[_i], (int)getpid());
    int fd = listen_at(name);
    setenv("NOTIFY_SOCKET", name, 1);
    ck_assert_int_eq(notify_send("READY=1"), 0);
    ck_assert_int_eq(recv(fd, text, sizeof(text), MSG_DONTWAIT), 7);
    ck_assert_str_eq(text, "READY=1");
    close(fd);
    unlink(name);
}
END_TEST

START_TEST(notify_send__nobody_asks_is_no_error)
{
    unsetenv("NOTIFY_SOCKET");
    ck_assert_int_eq(notify_send("READY=1"), 0);
    setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
    ck_assert_int_eq(notify_send("READY=1"), -ENOENT);
}
END_TEST

START_TEST(notify_watchdog_ms__is_half_of_what_is_allowed_and_ours_alone)
{
    char pid[16];

    unsetenv("WATCHDOG_USEC");
    ck_assert_uint_eq(notify_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    unsetenv("WATCHDOG_PID");
    ck_assert_uint_eq(notify_watchdog_ms(), 15000);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    ck_assert_uint_eq(notify_watchdog_ms(), 15000);
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_uint_eq(notify_watchdog_ms(), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("notify");
    TCase *tc = tcase_create("notify");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, notify_send__reaches_a_path_and_an_abstract_name, 0, 2);
    tcase_add_test(tc, notify_send__nobody_asks_is_no_error);
    tcase_add_test(tc, notify_watchdog_ms__is_half_of_what_is_allowed_and_ours_alone);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
