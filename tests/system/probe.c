/*
 * What shell scripts cannot ask a file.
 *
 *   probe poll FILE MS         reads the file, then waits until poll() tells of something or MS have
 *                              passed; prints "ready FLAGS" or "timeout", then what can be read now
 *   probe poll-events FILE MS  the same without reading first: for `events`
 *   probe nonblock FILE        reads once with O_NONBLOCK; prints what it got, or the errno's name
 *   probe open FILE            open(O_WRONLY | O_CREAT); prints "opened" or the errno's name, then
 *                              waits for the end of its input
 *   probe late C1 FILE         writes C1 to FILE with a bad byte first, sees the error, corrects it, closes
 *   probe long C1 FILE         writes C1 to FILE, has it accepted, then writes a byte behind the longest length; prints
 *                              the names of that write's errno and of the close's
 *   probe chunks C1 FILE N     writes C1 to FILE, N bytes at a time, from the end to the beginning
 *   probe kill C1 FILE         writes all of C1 to FILE and dies of SIGKILL before the close
 *   probe truncate FILE BYTES  truncate(2), without an open file
 *   probe hold DIR PREFIX N    opens up to N new files DIR/PREFIX0... for writing, writes a byte to each, prints
 *                              how many there are and why there are not more, waits for the end of its input
 *   probe make FILE N          makes FILE with mknod(2) and removes it, N times, without ever opening it
 *   probe polls FILE N         polls FILE N times while an epoll waits on it as well, so that each poll asks to be told
 *   probe read FILE N          opens FILE up to N times to read, says and waits likewise
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "numa/base.h"

static int say_errno(void)
{
    puts(strerrorname_np(errno));
    return 1;
}

static int show(int fd)
{
    char buf[65536];
    ssize_t n = pread(fd, buf, sizeof(buf), 0);

    if (n < 0 && errno == ESPIPE)
        n = read(fd, buf, sizeof(buf));
    if (n < 0)
        return say_errno();
    fwrite(buf, 1, (size_t)n, stdout);
    return 0;
}

static int poll_file(const char *path, int timeout_ms, bool read_first)
{
    int fd = open(path, O_RDONLY);
    char buf[4096];
    struct pollfd p = {fd, POLLIN | POLLPRI, 0};

    if (fd < 0 || (read_first && pread(fd, buf, sizeof(buf), 0) < 0))
        return say_errno();
    puts("watching");
    fflush(stdout);
    int n = poll(&p, 1, timeout_ms);
    if (n < 0)
        return say_errno();
    if (n == 0)
        return puts("timeout"), 1;
    printf("ready%s%s%s\n", p.revents & POLLIN ? " in" : "", p.revents & POLLPRI ? " pri" : "",
           p.revents & POLLERR ? " err" : "");
    return show(fd);
}

static int read_nonblock(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK);

    return fd < 0 ? say_errno() : show(fd);
}

static int open_and_wait(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);

    if (fd < 0)
        return say_errno();
    puts("opened");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return close(fd) < 0 ? say_errno() : 0;
}

static char *load(const char *path, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY);

    if (fd < 0 || fstat(fd, &st) < 0) {
        perror(path);
        exit(2);
    }
    *len = (size_t)st.st_size;
    char *bytes = malloc(*len + 1);
    if (!bytes || pread_full(fd, bytes, *len, 0) < 0)
        exit(2);
    close(fd);
    return bytes;
}

static int create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0644);

    if (fd < 0)
        exit(say_errno());
    return fd;
}

/* A judgement can be taken back by writing on: each close of a duplicate is a FLUSH. */
static int write_late(const char *c1, const char *path)
{
    size_t len;
    char *bytes = load(c1, &len);
    int fd = create(path);

    if (pwrite(fd, bytes, len - 2, 0) != (ssize_t)len - 2)
        return say_errno();
    if (close(dup(fd)) == 0 || errno != EBADMSG)
        return puts("half a document was taken"), 1;
    if (pwrite_full(fd, bytes + len - 2, 2, len - 2) < 0 || close(dup(fd)) < 0)
        return say_errno();
    free(bytes);
    return close(fd) < 0 ? say_errno() : 0;
}

static const char *name_of(bool good)
{
    return good ? "0" : strerrorname_np(errno);
}

static int write_long(const char *c1, const char *path)
{
    size_t len;
    char *bytes = load(c1, &len);
    int fd = create(path);

    if (pwrite_full(fd, bytes, len, 0) < 0 || close(dup(fd)) < 0)
        return say_errno();
    free(bytes);
    printf("%s", name_of(pwrite(fd, "x", 1, (off_t)1 << 30) == 1));
    printf(" %s\n", name_of(close(fd) == 0));
    return 0;
}

static int write_chunks(const char *c1, const char *path, size_t chunk)
{
    size_t len;
    char *bytes = load(c1, &len);
    int fd = create(path);

    for (size_t left = len; left > 0;) {
        size_t n = left % chunk ? left % chunk : chunk;
        left -= n;
        if (pwrite_full(fd, bytes + left, n, left) < 0)
            return say_errno();
    }
    free(bytes);
    return close(fd) < 0 ? say_errno() : 0;
}

static int write_and_die(const char *c1, const char *path)
{
    size_t len;
    char *bytes = load(c1, &len);
    int fd = create(path);

    if (pwrite_full(fd, bytes, len, 0) < 0)
        return say_errno();
    return raise(SIGKILL);
}

static int truncate_by_name(const char *path, off_t bytes)
{
    return truncate(path, bytes) < 0 ? say_errno() : 0;
}

static int say_how_many(int opened, int wanted)
{
    printf("%d %s\n", opened, opened < wanted ? strerrorname_np(errno) : "all");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}

static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int hold(const char *dir, const char *prefix, int wanted)
{
    char path[4096];
    int n = 0;

    raise_limit();
    for (; n < wanted; n++) {
        snprintf(path, sizeof(path), "%s/%s%d", dir, prefix, n);
        int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK, 0644);
        if (fd < 0 || write(fd, "{", 1) != 1)
            break;
    }
    return say_how_many(n, wanted);
}

static int read_many(const char *path, int wanted)
{
    int n = 0;

    raise_limit();
    while (n < wanted && open(path, O_RDONLY) >= 0)
        n++;
    return say_how_many(n, wanted);
}

static int make_often(const char *path, long times)
{
    for (long i = 0; i < times; i++)
        if (mknod(path, S_IFREG | 0644, 0) < 0 || unlink(path) < 0)
            return say_errno();
    return 0;
}

static int poll_often(const char *path, long times)
{
    struct epoll_event want = {.events = EPOLLIN | EPOLLET};
    int fd = open(path, O_RDONLY), epoll = epoll_create1(0);

    if (fd < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &want) < 0)
        return say_errno();
    for (long i = 0; i < times; i++) {
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, 0) < 0)
            return say_errno();
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";

    if (argc == 4 && strcmp(what, "poll") == 0)
        return poll_file(argv[2], atoi(argv[3]), true);
    if (argc == 4 && strcmp(what, "poll-events") == 0)
        return poll_file(argv[2], atoi(argv[3]), false);
    if (argc == 3 && strcmp(what, "nonblock") == 0)
        return read_nonblock(argv[2]);
    if (argc == 3 && strcmp(what, "open") == 0)
        return open_and_wait(argv[2]);
    if (argc == 4 && strcmp(what, "late") == 0)
        return write_late(argv[2], argv[3]);
    if (argc == 4 && strcmp(what, "long") == 0)
        return write_long(argv[2], argv[3]);
    if (argc == 5 && strcmp(what, "chunks") == 0)
        return write_chunks(argv[2], argv[3], (size_t)atoi(argv[4]));
    if (argc == 4 && strcmp(what, "kill") == 0)
        return write_and_die(argv[2], argv[3]);
    if (argc == 4 && strcmp(what, "truncate") == 0)
        return truncate_by_name(argv[2], atoi(argv[3]));
    if (argc == 5 && strcmp(what, "hold") == 0)
        return hold(argv[2], argv[3], atoi(argv[4]));
    if (argc == 4 && strcmp(what, "make") == 0)
        return make_often(argv[2], atol(argv[3]));
    if (argc == 4 && strcmp(what, "polls") == 0)
        return poll_often(argv[2], atol(argv[3]));
    if (argc == 4 && strcmp(what, "read") == 0)
        return read_many(argv[2], atoi(argv[3]));
    fprintf(stderr, "probe: see its source\n");
    return 2;
}
