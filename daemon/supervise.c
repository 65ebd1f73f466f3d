/*
 * The spawner is a single-threaded loop over two descriptors: requests from the front, and a signalfd
 * for dead children. It knows nothing of what the processes do.
 */
#include "daemon/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_BYTES 8192
#define ARGS_MAX 64
#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS 30000
#define END_MS 3000 /* until a spawner is killed */
#define END_STEP_MS 5

struct request {
    uint32_t slot;
    int32_t signal;     /* 0: start */
    uint32_t args_bytes; /* strings one after another, each with its NUL */
    char args[ARGS_BYTES];
};

struct report {
    uint32_t type;
    uint32_t slot;
    int32_t pid, error, status;
};

struct supervisor {
    int sock;
    pid_t spawner;
};

/* ---- the spawner's side ---- */

struct spawner {
    int sock;  /* to the front */
    int signals;
    pid_t pids[SUPERVISOR_SLOTS]; /* 0: free */
};

/* False when the front is gone. */
static bool send_report(int sock, const struct report *r, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec iov = {(void *)r, sizeof(*r)};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (fd >= 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(*r);
}

/* In the new process. Returns only when exec failed, with the errno. */
static int become_engine(char *const *argv, int sock, pid_t parent)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* the spawner died before the line above */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    if (sock == SUPERVISOR_ENGINE_FD)
        fcntl(sock, F_SETFD, 0);
    else if (dup2(sock, SUPERVISOR_ENGINE_FD) < 0)
        return errno;
    execv(argv[0], argv);
    return errno;
}

/* Forks and waits until the exec has worked or failed. The pipe carries the errno of a failed exec; its end
 * without a word means success. */
static int fork_engine(char *const *argv, int sock, pid_t *pid)
{
    int fds[2], code = 0;
    pid_t parent = getpid();

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    int writer = fcntl(fds[1], F_DUPFD_CLOEXEC, SUPERVISOR_ENGINE_FD + 1); /* out of dup2's way */
    close(fds[1]);
    if (writer < 0) {
        close(fds[0]);
        return -EMFILE;
    }
    *pid = fork();
    if (*pid == 0) {
        code = become_engine(argv, sock, parent);
        ssize_t n = write(writer, &code, sizeof(code));
        _exit(n == (ssize_t)sizeof(code) ? 127 : 126);
    }
    int fork_error = *pid < 0 ? -errno : 0;
    close(writer);
    ssize_t n;
    do
        n = read(fds[0], &code, sizeof(code));
    while (n < 0 && errno == EINTR);
    close(fds[0]);
    if (fork_error)
        return fork_error;
    if (n != (ssize_t)sizeof(code))
        return 0;
    waitpid(*pid, NULL, 0);
    return -code;
}

static size_t split_args(struct request *r, char **argv)
{
    size_t argc = 0;

    r->args[ARGS_BYTES - 1] = '\0';
    for (size_t at = 0; at < r->args_bytes && argc < ARGS_MAX; at += strlen(r->args + at) + 1)
        argv[argc++] = r->args + at;
    argv[argc] = NULL;
    return argc;
}

static bool start_engine(struct spawner *sp, struct request *r)
{
    struct report report = {.type = SUPERVISOR_REFUSED, .slot = r->slot};
    char *argv[ARGS_MAX + 1];
    int pair[2] = {-1, -1};
    pid_t pid = 0;

    if (sp->pids[r->slot] || split_args(r, argv) == 0)
        report.error = -EBUSY;
    else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        report.error = -errno;
    else
        report.error = fork_engine(argv, pair[1], &pid);
    if (report.error == 0) {
        sp->pids[r->slot] = pid;
        report.type = SUPERVISOR_STARTED;
        report.pid = pid;
    }
    bool sent = send_report(sp->sock, &report, report.error == 0 ? pair[0] : -1);
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
    return sent;
}

/* False at the front's end. */
static bool serve_request(struct spawner *sp)
{
    struct request r;
    ssize_t n = recv(sp->sock, &r, sizeof(r), 0);

    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    if ((size_t)n < offsetof(struct request, args) || r.slot >= SUPERVISOR_SLOTS ||
        r.args_bytes > ARGS_BYTES)
        return true;
    if (r.signal == 0)
        return start_engine(sp, &r);
    if (sp->pids[r.slot] > 0)
        kill(sp->pids[r.slot], r.signal);
    return true;
}

static bool reap(struct spawner *sp)
{
    struct signalfd_siginfo info;
    pid_t pid;
    int status;

    while (read(sp->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t slot = 0; slot < SUPERVISOR_SLOTS; slot++)
            if (sp->pids[slot] == pid) {
                struct report r = {SUPERVISOR_ENDED, slot, pid, 0, status};
                sp->pids[slot] = 0;
                if (!send_report(sp->sock, &r, -1))
                    return false;
            }
    return true;
}

static void kill_all(struct spawner *sp)
{
    for (uint32_t slot = 0; slot < SUPERVISOR_SLOTS; slot++)
        if (sp->pids[slot] > 0)
            kill(sp->pids[slot], SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
}

/* SIGTERM and SIGINT of a terminal or a service manager are the front's business: it ends us by closing
 * the socket when its engines have stopped. */
static void ignore_stop_signals(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    setsid();
}

static void __attribute__((noreturn)) spawner_main(int sock, pid_t front)
{
    struct spawner sp = {.sock = sock, .signals = -1};
    bool go_on = true;
    sigset_t chld;

    prctl(PR_SET_NAME, "proofd-spawner");
    ignore_stop_signals();
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_SETMASK, &chld, NULL);
    sp.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (sp.signals < 0 || getppid() != front)
        _exit(1);
    while (go_on) {
        struct pollfd fds[] = {{sp.sock, POLLIN, 0}, {sp.signals, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            go_on = reap(&sp);
        if (go_on && fds[0].revents)
            go_on = serve_request(&sp);
    }
    kill_all(&sp);
    _exit(0);
}

/* ---- the front's side ---- */

int supervisor_create(struct supervisor **out, struct errmsg *err)
{
    int pair[2];
    pid_t front = getpid();

    struct supervisor *s = calloc(1, sizeof(*s));
    if (!s)
        return errmsg_set(err, -ENOMEM, "spawner: no memory");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        free(s);
        return errmsg_set(err, -errno, "spawner: cannot make a socket pair: %s", strerror(errno));
    }
    s->sock = pair[0];
    s->spawner = fork();
    if (s->spawner == 0) {
        close(pair[0]);
        spawner_main(pair[1], front);
    }
    int ret = s->spawner < 0 ? -errno : 0;
    close(pair[1]);
    if (ret < 0) {
        close(s->sock);
        free(s);
        return errmsg_set(err, ret, "spawner: cannot fork: %s", strerror(-ret));
    }
    *out = s;
    return 0;
}

/* Or is no longer there to be waited for. */
static bool has_ended(pid_t pid)
{
    pid_t got = waitpid(pid, NULL, WNOHANG);

    return got == pid || (got < 0 && errno == ECHILD);
}

void supervisor_destroy(struct supervisor *s)
{
    if (!s)
        return;
    close(s->sock);
    bool ended = has_ended(s->spawner);
    for (int ms = 0; ms < END_MS && !ended; ms += END_STEP_MS) {
        nanosleep(&(struct timespec){.tv_nsec = END_STEP_MS * 1000000L}, NULL);
        ended = has_ended(s->spawner);
    }
    if (!ended) { /* it is stopped; its engines die with it */
        kill(s->spawner, SIGKILL);
        while (waitpid(s->spawner, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    free(s);
}

int supervisor_fd(const struct supervisor *s)
{
    return s->sock;
}

static int send_request(const struct supervisor *s, const struct request *r)
{
    size_t bytes = offsetof(struct request, args) + r->args_bytes;
    ssize_t n;

    do
        n = send(s->sock, r, bytes, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EPIPE || errno == ECONNRESET ? -ENOTCONN : -errno;
    return 0;
}

int supervisor_start(struct supervisor *s, uint32_t slot, const char *const *argv)
{
    struct request r = {.slot = slot};

    if (slot >= SUPERVISOR_SLOTS)
        return -EINVAL;
    for (; *argv; argv++) {
        size_t n = strlen(*argv) + 1;
        if (n > ARGS_BYTES - r.args_bytes)
            return -E2BIG;
        memcpy(r.args + r.args_bytes, *argv, n);
        r.args_bytes += (uint32_t)n;
    }
    return send_request(s, &r);
}

int supervisor_kill(struct supervisor *s, uint32_t slot, int signal)
{
    struct request r = {.slot = slot, .signal = signal};

    return slot < SUPERVISOR_SLOTS && signal > 0 ? send_request(s, &r) : -EINVAL;
}

int supervisor_next(struct supervisor *s, struct supervisor_event *out)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct report r;
    struct iovec iov = {&r, sizeof(r)};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    ssize_t n;

    do
        n = recvmsg(s->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return -EAGAIN;
    if (n != (ssize_t)sizeof(r))
        return -ENOTCONN;
    *out = (struct supervisor_event){(enum supervisor_event_type)r.type, r.slot, r.pid, -1, r.error,
                                     r.status};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(&out->socket, CMSG_DATA(c), sizeof(int));
    return 0;
}

void supervisor_describe_status(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "exit status %d", WEXITSTATUS(status));
}

uint32_t supervisor_backoff_ms(uint32_t failures)
{
    uint32_t ms = BACKOFF_FIRST_MS;

    for (; failures > 0 && ms < BACKOFF_LAST_MS; failures--)
        ms *= 2;
    return ms < BACKOFF_LAST_MS ? ms : BACKOFF_LAST_MS;
}
