#include "daemon/supervise.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 120000

static struct supervisor *sup;

static void setup(void)
{
    ck_assert_int_eq(supervisor_create(&sup, NULL), 0);
}

static void teardown(void)
{
    supervisor_destroy(sup);
    sup = NULL;
}

static struct supervisor_event next(void)
{
    struct supervisor_event ev;
    struct pollfd p = {supervisor_fd(sup), POLLIN, 0};

    ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
    ck_assert_int_eq(supervisor_next(sup, &ev), 0);
    return ev;
}

static struct supervisor_event start(uint32_t slot, const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};

    ck_assert_int_eq(supervisor_start(sup, slot, argv), 0);
    return next();
}

START_TEST(supervisor_start__child_talks_over_descriptor_3)
{
    char text[32] = "";
    struct supervisor_event ev = start(5, "word=$(dd bs=64 count=1 <&3 2>/dev/null); echo \"got $word\" >&3; exit 7");

    ck_assert_int_eq(ev.type, SUPERVISOR_STARTED);
    ck_assert_uint_eq(ev.slot, 5);
    ck_assert_int_eq(send(ev.socket, "it\n", 3, 0), 3);
    ck_assert_int_eq(recv(ev.socket, text, sizeof(text) - 1, 0), 7);
    ck_assert_str_eq(text, "got it\n");
    struct supervisor_event end = next();
    ck_assert_int_eq(end.type, SUPERVISOR_ENDED);
    ck_assert_uint_eq(end.slot, 5);
    ck_assert_int_eq(end.pid, ev.pid);
    ck_assert_int_eq(WEXITSTATUS(end.status), 7);
    close(ev.socket);
}
END_TEST

START_TEST(supervisor_start__missing_program_is_refused_with_errno)
{
    const char *argv[] = {"/nonexistent/engine", NULL};

    for (int round = 0; round < 3; round++) { /* the slot stays free */
        ck_assert_int_eq(supervisor_start(sup, 0, argv), 0);
        struct supervisor_event ev = next();
        ck_assert_int_eq(ev.type, SUPERVISOR_REFUSED);
        ck_assert_int_eq(ev.error, -ENOENT);
        ck_assert_int_eq(ev.socket, -1);
    }
}
END_TEST

START_TEST(supervisor_start__a_taken_slot_is_refused)
{
    struct supervisor_event first = start(1, "exec sleep 100");
    struct supervisor_event second = start(1, "exec sleep 100");

    ck_assert_int_eq(first.type, SUPERVISOR_STARTED);
    ck_assert_int_eq(second.type, SUPERVISOR_REFUSED);
    ck_assert_int_eq(second.error, -EBUSY);
    close(first.socket);
}
END_TEST

START_TEST(supervisor_start__bounds_are_checked)
{
    static char big[9000];
    const char *argv[] = {"/bin/true", big, NULL};

    memset(big, 'a', sizeof(big) - 1);
    ck_assert_int_eq(supervisor_start(sup, 0, argv), -E2BIG);
    ck_assert_int_eq(supervisor_start(sup, SUPERVISOR_SLOTS, argv), -EINVAL);
}
END_TEST

START_TEST(supervisor_kill__ends_a_child_and_frees_the_slot)
{
    char text[64];

    for (int round = 0; round < 3; round++) {
        struct supervisor_event ev = start(2, "exec sleep 100");
        ck_assert_int_eq(ev.type, SUPERVISOR_STARTED);
        ck_assert_int_eq(supervisor_kill(sup, 2, SIGKILL), 0);
        struct supervisor_event end = next();
        ck_assert_int_eq(end.type, SUPERVISOR_ENDED);
        supervisor_describe_status(end.status, text, sizeof(text));
        ck_assert_str_eq(text, "killed by signal 9 (Killed)");
        close(ev.socket);
    }
}
END_TEST

START_TEST(supervisor_destroy__leaves_no_child)
{
    struct supervisor_event ev = start(0, "trap '' TERM; while :; do sleep 100; done");

    supervisor_destroy(sup);
    sup = NULL;
    ck_assert_int_eq(kill(ev.pid, 0), -1);
    ck_assert_int_eq(errno, ESRCH);
    close(ev.socket);
    setup();
}
END_TEST

static pid_t parent_of(pid_t pid)
{
    char path[32];
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%*d (sh) %*c %d", &parent), 1);
    fclose(f);
    return parent;
}

START_TEST(supervisor_destroy__does_not_wait_for_a_stopped_spawner)
{
    int status;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct supervisor_event ev = start(0, "while :; do sleep 100; done");
    kill(parent_of(ev.pid), SIGSTOP);
    supervisor_destroy(sup);
    sup = NULL;
    ck_assert_int_eq(waitpid(ev.pid, &status, 0), ev.pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ev.socket);
    setup();
}
END_TEST

START_TEST(supervisor__dies_when_the_front_is_killed)
{
    int pids[2], channel[2];

    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans come to us, so that their ends can be seen */
    ck_assert_int_eq(pipe(channel), 0);
    pid_t front = fork();
    if (front == 0) {
        supervisor_create(&sup, NULL);
        struct supervisor_event ev = start(0, "exec sleep 100");
        pids[0] = ev.pid;
        ssize_t n = write(channel[1], pids, sizeof(int));
        pause();
        _exit(n > 0);
    }
    ck_assert_int_eq(read(channel[0], pids, sizeof(int)), sizeof(int));
    kill(front, SIGKILL);
    ck_assert_int_eq(waitpid(front, NULL, 0), front);
    alarm(WAIT_MS / 1000);
    while (kill(pids[0], 0) == 0) /* the spawner reaps it, or we do */
        if (waitpid(pids[0], NULL, WNOHANG) != pids[0])
            usleep(1000);
    alarm(0);
}
END_TEST

START_TEST(supervisor_next__a_dead_spawner_is_told)
{
    struct supervisor_event ev = start(0, "exec sleep 100"), last;
    char text[64], comm[64] = "";
    pid_t spawner = 0;

    snprintf(text, sizeof(text), "/proc/%d/stat", (int)ev.pid);
    FILE *f = fopen(text, "r");
    ck_assert_int_eq(fscanf(f, "%*d %63s %*c %d", comm, &spawner), 2);
    fclose(f);
    ck_assert_int_gt(spawner, 1);
    kill(spawner, SIGKILL);
    struct pollfd p = {supervisor_fd(sup), POLLIN, 0};
    ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
    ck_assert_int_eq(supervisor_next(sup, &last), -ENOTCONN);
    p = (struct pollfd){ev.socket, POLLIN, 0}; /* and the engine has died with it */
    ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
    ck_assert_int_eq(recv(ev.socket, text, 1, 0), 0);
    close(ev.socket);
}
END_TEST

START_TEST(supervisor_backoff_ms__doubles_to_a_bound)
{
    ck_assert_uint_eq(supervisor_backoff_ms(0), 100);
    ck_assert_uint_eq(supervisor_backoff_ms(1), 200);
    ck_assert_uint_eq(supervisor_backoff_ms(8), 25600);
    ck_assert_uint_eq(supervisor_backoff_ms(9), 30000);
    ck_assert_uint_eq(supervisor_backoff_ms(4000000000u), 30000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("supervise");
    TCase *tc = tcase_create("supervise");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, supervisor_start__child_talks_over_descriptor_3);
    tcase_add_test(tc, supervisor_start__missing_program_is_refused_with_errno);
    tcase_add_test(tc, supervisor_start__a_taken_slot_is_refused);
    tcase_add_test(tc, supervisor_start__bounds_are_checked);
    tcase_add_test(tc, supervisor_kill__ends_a_child_and_frees_the_slot);
    tcase_add_test(tc, supervisor_destroy__leaves_no_child);
    tcase_add_test(tc, supervisor_destroy__does_not_wait_for_a_stopped_spawner);
    tcase_add_test(tc, supervisor__dies_when_the_front_is_killed);
    tcase_add_test(tc, supervisor_next__a_dead_spawner_is_told);
    tcase_add_test(tc, supervisor_backoff_ms__doubles_to_a_bound);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
