/* Each test is a process of its own, so what it gives up is gone with it. */
#include "daemon/confine.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/suite.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_FILTER 1
#endif

#define refused(call) (errno = 0, (call) < 0 && errno == EPERM)

static void *nothing(void *arg)
{
    return arg;
}

/* Check needs the process to be able to end; what it writes it has open. */
START_TEST(confine_apply__leaves_what_an_engine_does)
{
    pthread_t thread;
    int fds[2];

    ck_assert_int_eq(confine_apply(NULL), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    ck_assert_int_ge(open("/proc/self/status", O_RDONLY), 0);
    ck_assert_ptr_ne(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     MAP_FAILED);
}
END_TEST

START_TEST(confine_apply__takes_new_privileges)
{
    ck_assert_int_eq(confine_apply(NULL), 0);
    ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    if (geteuid() == 0) { /* who has none has none to lose */
        ck_assert_int_eq(prctl(PR_CAPBSET_READ, 21 /* CAP_SYS_ADMIN */, 0, 0, 0), 0);
        ck_assert(refused(chroot("/")));
        ck_assert(refused(sethostname("x", 1)));
    }
}
END_TEST

#ifdef HAS_FILTER
START_TEST(confine_apply__refuses_programs_networks_and_others)
{
    char *const argv[] = {"/bin/true", NULL};

    ck_assert_int_ge(socket(AF_INET, SOCK_DGRAM, 0), 0); /* here it could */
    ck_assert_int_eq(confine_apply(NULL), 0);
    ck_assert(refused(socket(AF_INET, SOCK_DGRAM, 0)));
    ck_assert(refused(socket(AF_INET6, SOCK_DGRAM, 0)));
    ck_assert(refused(socket(AF_PACKET, SOCK_RAW, 0)));
    ck_assert(refused(socket(AF_VSOCK, SOCK_STREAM, 0)));
    ck_assert(refused(execve("/bin/true", argv, NULL)));
    ck_assert(refused(fork()));
    ck_assert(refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
    ck_assert(refused(unshare(CLONE_NEWUSER)));
    ck_assert(refused(unshare(CLONE_FS)));
}
END_TEST
#endif

#ifdef HAS_FILTER
static void *wait_long(void *arg)
{
    pause();
    return arg;
}

static volatile sig_atomic_t caught;

static void note_signal(int signal)
{
    caught += signal == SIGUSR1;
}

/* The front is of the same user. Its own process an engine may do with what it likes. */
START_TEST(confine_apply__keeps_signals_and_limits_to_itself)
{
    const pid_t front = getppid();
    union sigval nothing_more = {0};
    siginfo_t info = {.si_code = SI_QUEUE};
    struct rlimit limit;
    pthread_t thread;

    ck_assert_int_eq(kill(front, 0), 0); /* here it could */
    ck_assert_int_eq(confine_apply(NULL), 0);
    ck_assert(refused(kill(front, 0)));
    ck_assert(refused(kill(0, 0)));
    ck_assert(refused(kill(-1, 0)));
    ck_assert(refused(syscall(SYS_tgkill, front, front, 0)));
    ck_assert(refused(syscall(SYS_rt_sigqueueinfo, front, SIGUSR1, &info)));
    ck_assert(refused(syscall(SYS_rt_tgsigqueueinfo, front, front, SIGUSR1, &info)));
    ck_assert(refused(syscall(SYS_pidfd_send_signal, -1, 0, NULL, 0)));
    ck_assert(refused(prlimit(front, RLIMIT_NOFILE, NULL, &limit)));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    signal(SIGUSR1, note_signal);
    ck_assert_int_eq(raise(SIGUSR1), 0);
    ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
    ck_assert_int_eq(sigqueue(getpid(), SIGUSR1, nothing_more), 0);
    ck_assert_int_eq(pthread_kill(pthread_self(), SIGUSR1), 0);
    ck_assert_int_eq(caught, 4);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_long, NULL), 0);
    ck_assert_int_eq(pthread_kill(thread, 0), 0);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(confine_apply__leaves_abort)
{
    ck_assert_int_eq(confine_apply(NULL), 0);
    abort();
}
END_TEST
#endif

START_TEST(confine_wanted__leaves_drivers_without_devices_alone)
{
    bool driver = access("/proc/driver/nvidia", F_OK) == 0;
    enum confine how;

    ck_assert_int_eq(confine_parse("auto", &how), 0);
    ck_assert(confine_wanted(how, false));
    ck_assert(driver || confine_wanted(how, true));
    if (driver && access("/dev/nvidia-uvm", F_OK) != 0)
        ck_assert(!confine_wanted(how, true));
    ck_assert_int_eq(confine_parse("on", &how), 0);
    ck_assert(confine_wanted(how, true));
    ck_assert_int_eq(confine_parse("off", &how), 0);
    ck_assert(!confine_wanted(how, false));
    ck_assert_int_eq(confine_parse("yes", &how), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("confine");
    TCase *t = tcase_create("confine");

    tcase_add_test(t, confine_apply__leaves_what_an_engine_does);
    tcase_add_test(t, confine_apply__takes_new_privileges);
#ifdef HAS_FILTER
    tcase_add_test(t, confine_apply__refuses_programs_networks_and_others);
    tcase_add_test(t, confine_apply__keeps_signals_and_limits_to_itself);
    tcase_add_test_raise_signal(t, confine_apply__leaves_abort, SIGABRT);
#endif
    tcase_add_test(t, confine_wanted__leaves_drivers_without_devices_alone);
    suite_add_tcase(s, t);
    return suite_run(s);
}
