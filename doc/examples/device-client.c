/*
 * A client of /dev/proof: one of each call that the device knows. See proof(4).
 *
 *   device-client submit FILE NAME    hands a C1 file over, waits, prints the proof as hex
 *   device-client wait NAME           waits for the end of a job
 *   device-client status NAME
 *   device-client cancel NAME
 *   device-client watch               prints events until it is interrupted
 *
 * PROOF_DEVICE names another device. Exit status: 0 done, 1 refused or failed, 2 no answer.
 * Builds with: cc -o device-client device-client.c (the header is installed as proofd/abi.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#if __has_include("fuse/abi.h")
#include "fuse/abi.h"
#else
#include <proofd/abi.h>
#endif

static const char *const states[] = {"service", "receiving", "refused", "queued",    "synthesizing",
                                     "proving", "done",      "failed",  "cancelled", "removed"};

static const char *state_name(uint32_t state)
{
    return state < sizeof(states) / sizeof(*states) ? states[state] : "unknown";
}

static int trouble(const char *what)
{
    fprintf(stderr, "device-client: %s: %s\n", what, strerror(errno));
    return 2;
}

static int open_device(void)
{
    const char *path = getenv("PROOF_DEVICE");
    struct proof_version version;
    int fd = open(path ? path : "/dev/proof", O_RDWR | O_CLOEXEC);

    if (fd < 0 || ioctl(fd, PROOF_IOC_VERSION, &version) < 0) {
        trouble(path ? path : "/dev/proof");
        exit(2);
    }
    if (version.abi != PROOF_ABI_VERSION) {
        fprintf(stderr, "device-client: the service speaks version %u, not %d\n", version.abi,
                PROOF_ABI_VERSION);
        exit(2);
    }
    return fd;
}

static int print_status(const struct proof_status *s)
{
    printf("%s: %s %u/%u%s%s\n", s->name, state_name(s->state), s->partitions_done, s->partitions,
           *s->text ? ": " : "", s->text);
    return s->state == PROOF_REFUSED || s->state == PROOF_FAILED || s->state == PROOF_CANCELLED;
}

/* write(2) may take less than it is given, and waits while the queue is full. */
static int copy_to_device(const char *path, int dev)
{
    char buf[64 << 10];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return trouble(path);
    while ((n = read(fd, buf, sizeof(buf))) > 0)
        for (ssize_t done = 0, m; done < n; done += m) {
            m = write(dev, buf + done, (size_t)(n - done));
            if (m < 0) {
                close(fd);
                return -1;
            }
        }
    close(fd);
    return n < 0 ? trouble(path) : 0;
}

/* A proof comes in pieces; 192 bytes for each partition of the sector. */
static int print_proof(int dev, uint64_t job)
{
    struct proof_data piece = {.job = job};

    do {
        if (ioctl(dev, PROOF_IOC_PROOF, &piece) < 0)
            return trouble("proof");
        for (uint32_t i = 0; i < piece.len; i++)
            printf("%02x", piece.data[i]);
        piece.offset += piece.len;
    } while (piece.len > 0);
    putchar('\n');
    return 0;
}

/* Of this descriptor's last document: why it was refused. */
static int refused(int dev)
{
    struct proof_status s = {0};
    int error = errno;

    if (ioctl(dev, PROOF_IOC_STATUS, &s) < 0 || !*s.text) {
        errno = error;
        return trouble("submit");
    }
    fprintf(stderr, "device-client: %s: %s\n", s.name, s.text);
    return 1;
}

static int submit(int dev, const char *path, const char *name)
{
    struct proof_name n = {""};
    struct proof_status s = {0};

    snprintf(n.name, sizeof(n.name), "%s", name);
    if (ioctl(dev, PROOF_IOC_NAME, &n) < 0)
        return trouble(name);
    int ret = copy_to_device(path, dev);
    if (ret > 0)
        return ret;
    /* Whatever the write said, SUBMIT ends the document. 0: it is on disk now, whatever happens to us. */
    if (ioctl(dev, PROOF_IOC_SUBMIT, &s) < 0 || ret < 0)
        return refused(dev);
    if (ioctl(dev, PROOF_IOC_WAIT, &s) < 0)
        return trouble("wait");
    if (s.state == PROOF_DONE)
        return print_proof(dev, s.job);
    return print_status(&s);
}

static int look(int dev, unsigned long request, const char *name)
{
    struct proof_status s = {0};

    snprintf(s.name, sizeof(s.name), "%s", name);
    if (ioctl(dev, request, &s) < 0)
        return trouble(name);
    return print_status(&s);
}

static int cancel(int dev, const char *name)
{
    struct proof_status s = {0};

    snprintf(s.name, sizeof(s.name), "%s", name);
    if (ioctl(dev, PROOF_IOC_STATUS, &s) < 0)
        return trouble(name);
    struct proof_job job = {s.job};
    return ioctl(dev, PROOF_IOC_CANCEL, &job) < 0 ? trouble(name) : 0;
}

/* poll(2) first, as a program would that waits for other things as well. */
static int watch(int dev)
{
    struct proof_event events[16];
    struct pollfd p = {dev, POLLIN, 0};

    for (;;) {
        if (poll(&p, 1, -1) < 0)
            return trouble("poll");
        ssize_t n = read(dev, events, sizeof(events));
        if (n <= 0)
            return n < 0 ? trouble("read") : 0; /* 0: the service has stopped */
        for (size_t i = 0; i < (size_t)n / sizeof(*events); i++) {
            if (events[i].lost)
                printf("lost %" PRIu64 "\n", events[i].lost);
            printf("%" PRIu64 " %" PRIu64 " %s %s\n", events[i].seq, events[i].job,
                   state_name(events[i].state), events[i].name);
        }
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";

    if (argc == 4 && strcmp(command, "submit") == 0)
        return submit(open_device(), argv[2], argv[3]);
    if (argc == 3 && strcmp(command, "wait") == 0)
        return look(open_device(), PROOF_IOC_WAIT, argv[2]);
    if (argc == 3 && strcmp(command, "status") == 0)
        return look(open_device(), PROOF_IOC_STATUS, argv[2]);
    if (argc == 3 && strcmp(command, "cancel") == 0)
        return cancel(open_device(), argv[2]);
    if (argc == 2 && strcmp(command, "watch") == 0)
        return watch(open_device());
    fprintf(
        stderr,
        "usage: device-client submit FILE NAME | wait NAME | status NAME | cancel NAME | watch\n");
    return 2;
}
