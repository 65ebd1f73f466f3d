#include "daemon/link.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/log.h"

#define SEED 20240611

static int pair[2];

static void setup(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void teardown(void)
{
    close(pair[0]);
    close(pair[1]);
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A message of each type that says something. */
static struct link_message sensible(uint32_t type)
{
    struct link_message m;

    memset(&m, 0, sizeof(m)); /* padding too */
    m.type = type;
    if (type == LINK_HELLO)
        m.hello = (struct link_hello){.node = 1, .threads = 2, .capacity = 3, .device = "cpu"};
    if (type == LINK_WORK)
        m.work = (struct link_work){7, 3, JOB_HIGH, 11, LINK_NO_PROVER};
    if (type == LINK_CANCEL)
        m.cancel.job = 7;
    if (type == LINK_STAGE)
        m.stage = (struct link_stage){7, 3, PARTITION_LOADING, 100};
    if (type == LINK_FAILED) {
        m.failed.job = 7;
        m.failed.code = -EIO;
        strcpy(m.failed.text, "gr\xc3\xbc\xc3\x9f\x65: no luck");
    }
    if (type == LINK_STATUS)
        m.status.resident_bytes = 5;
    if (type == LINK_LOG_LEVELS)
        m.log_levels.levels = LOG_LEVELS(LOG_LEVEL_INFO);
    if (type == LINK_DONE) {
        m.done.job = 7;
        m.done.partition = 3;
        m.done.report.params = SRS_CHECKED;
        m.done.report.msm_ms = 1.5;
        strcpy(m.done.report.device, "cpu");
    }
    return m;
}

START_TEST(link__carries_every_type)
{
    struct link_message in, out;
    int fd, memfd = memfd_create("c1", MFD_CLOEXEC);

    for (uint32_t type = LINK_HELLO; type <= LINK_STOP; type++) {
        in = sensible(type);
        ck_assert_int_eq(link_send(pair[0], &in, type == LINK_WORK ? memfd : -1), 0);
        ck_assert_int_eq(link_receive(pair[1], &out, &fd), 0);
        ck_assert_uint_eq(out.type, type);
        ck_assert_mem_eq(&out, &in, sizeof(out));
        ck_assert_int_eq(fd >= 0, type == LINK_WORK);
        if (fd >= 0)
            close(fd);
    }
    close(memfd);
}
END_TEST

START_TEST(link__descriptor_has_the_content_and_closes_on_exec)
{
    struct link_message m = {.type = LINK_WORK, .work = {.job = 7, .partition = 3}}, out;
    char text[6] = "";
    int fd, memfd = memfd_create("c1", MFD_CLOEXEC);

    ck_assert_int_eq(pwrite_full(memfd, "hello", 5, 0), 0);
    ck_assert_int_eq(link_send(pair[0], &m, memfd), 0);
    close(memfd);
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), 0);
    ck_assert_uint_eq(out.work.job, 7);
    ck_assert_uint_eq(out.work.partition, 3);
    ck_assert_int_eq(pread_full(fd, text, 5, 0), 0);
    ck_assert_str_eq(text, "hello");
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}
END_TEST

/* As an engine's that dies: the kernel tells first that the other end was closed with something unread, then gives what was sent. */
START_TEST(link_receive__gives_what_was_sent_before_an_end_with_messages_unread)
{
    struct link_message work = sensible(LINK_CANCEL), done = sensible(LINK_DONE), out;
    int fd;

    ck_assert_int_eq(link_send(pair[1], &work, -1), 0);
    ck_assert_int_eq(link_send(pair[0], &done, -1), 0);
    ck_assert_int_eq(link_send(pair[0], &done, -1), 0);
    close(pair[0]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(link_receive(pair[1], &out, &fd), 0);
        ck_assert_mem_eq(&out, &done, sizeof(out));
    }
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), -ENOTCONN);
    pair[0] = socket(AF_UNIX, SOCK_SEQPACKET, 0); /* for the teardown */
}
END_TEST

START_TEST(link_receive__end_is_ENOTCONN_and_send_is_EPIPE)
{
    struct link_message m = {.type = LINK_STOP};
    int fd;

    close(pair[0]);
    ck_assert_int_eq(link_receive(pair[1], &m, &fd), -ENOTCONN);
    m.type = LINK_STOP;
    ck_assert_int_eq(link_send(pair[1], &m, -1), -EPIPE);
    pair[0] = dup(pair[1]);
}
END_TEST

START_TEST(link_receive__refuses_rubbish_and_leaks_nothing)
{
    struct link_message m, out;
    uint8_t packet[2 * sizeof(struct link_message)];
    int fd, before = open_descriptors();
    unsigned accepted = 0;

    srand(SEED);
    for (int round = 0; round < 5000; round++) {
        size_t len = 1 + (size_t)rand() % sizeof(packet);
        for (size_t i = 0; i < len; i++)
            packet[i] = (uint8_t)rand();
        m.type = (uint32_t)(rand() % 16);
        memcpy(packet, &m.type, len < 4 ? len : 4);
        ck_assert_int_eq(send(pair[0], packet, len, 0), (ssize_t)len);
        int ret = link_receive(pair[1], &out, &fd);
        ck_assert_int_eq(fd, -1);
        ck_assert(ret == 0 || ret == -EBADMSG);
        accepted += ret == 0;
    }
    ck_assert_uint_lt(accepted, 100); /* a right length by chance */
    ck_assert_int_eq(open_descriptors(), before);
}
END_TEST

static void send_fds(const struct link_message *m, size_t bytes, size_t fds)
{
    char control[CMSG_SPACE(32 * sizeof(int))] = {0};
    int list[32];
    struct iovec iov = {(void *)(uintptr_t)m, bytes};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
                         .msg_controllen = CMSG_SPACE(fds * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

    for (size_t i = 0; i < fds; i++)
        list[i] = pair[0];
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds * sizeof(int));
    memcpy(CMSG_DATA(c), list, fds * sizeof(int));
    ck_assert_int_gt(sendmsg(pair[0], &msg, 0), 0);
}

START_TEST(link_receive__refuses_wrong_descriptors_and_closes_them)
{
    struct link_message stop = {.type = LINK_STOP}, work = {.type = LINK_WORK}, out;
    size_t stop_bytes = offsetof(struct link_message, hello);
    size_t work_bytes = stop_bytes + sizeof(struct link_work);
    int fd, before = open_descriptors();

    send_fds(&stop, stop_bytes, 1); /* one where none belongs */
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), -EBADMSG);
    send_fds(&work, work_bytes, 2); /* two where one belongs */
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), -EBADMSG);
    send_fds(&work, work_bytes, 32); /* more than there is room for */
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), -EBADMSG);
    ck_assert_int_eq(send(pair[0], &work, work_bytes, 0), (ssize_t)work_bytes); /* none */
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), -EBADMSG);
    ck_assert_int_eq(fd, -1);
    ck_assert_int_eq(open_descriptors(), before);
}
END_TEST

START_TEST(link_receive__strings_end)
{
    struct link_message m = {.type = LINK_FAILED, .failed.code = -EIO}, out;
    int fd;

    memset(m.failed.text, 'x', sizeof(m.failed.text));
    ck_assert_int_eq(link_send(pair[0], &m, -1), 0);
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), 0);
    ck_assert_uint_eq(strlen(out.failed.text), sizeof(m.failed.text) - 1);
}
END_TEST

START_TEST(link_receive__strings_are_one_line_of_text)
{
    struct link_message m = sensible(LINK_FAILED), out;
    int fd;

    strcpy(m.failed.text, "a\nb\x1b[2J\xff\xc3\xa4\xc2\x9b\x7f" "c");
    ck_assert_int_eq(link_send(pair[0], &m, -1), 0);
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), 0);
    ck_assert_str_eq(out.failed.text, "a?b?[2J?\xc3\xa4???c");
}
END_TEST

static void refused(const struct link_message *m)
{
    struct link_message out;
    int fd = -1;

    ck_assert_int_eq(link_send(pair[0], m, -1), 0);
    ck_assert_int_eq(link_receive(pair[1], &out, &fd), -EBADMSG);
    ck_assert_int_eq(fd, -1);
}

START_TEST(link_receive__refuses_values_that_cannot_be)
{
    const double bad[] = {nan(""), INFINITY, -INFINITY, -1, 1e300};
    struct link_message m;

#define REFUSED(type, change)  \
    do {                       \
        m = sensible(type);    \
        change;                \
        refused(&m);           \
    } while (0)
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        REFUSED(LINK_DONE, m.done.report.synthesis_ms = bad[i]);
        REFUSED(LINK_DONE, m.done.report.transform_ms = bad[i]);
        REFUSED(LINK_DONE, m.done.report.msm_ms = bad[i]);
        REFUSED(LINK_DONE, m.done.report.verify_ms = bad[i]);
        REFUSED(LINK_DONE, m.done.report.total_ms = bad[i]);
        REFUSED(LINK_DONE, m.done.report.params_ms = bad[i]);
    }
    REFUSED(LINK_DONE, m.done.report.peak_bytes = UINT64_MAX);
    REFUSED(LINK_DONE, m.done.report.params = SRS_UNCHECKED);
    REFUSED(LINK_DONE, m.done.report.params = SRS_TRUSTS);
    REFUSED(LINK_STAGE, m.stage.stage = PARTITION_READ + 1);
    REFUSED(LINK_STAGE, m.stage.percent = 101);
    REFUSED(LINK_FAILED, m.failed.code = 0);
    REFUSED(LINK_FAILED, m.failed.code = 5);
    REFUSED(LINK_FAILED, m.failed.code = INT32_MIN);
    REFUSED(LINK_HELLO, m.hello.node = -1);
    REFUSED(LINK_HELLO, m.hello.threads = 0);
    REFUSED(LINK_HELLO, m.hello.capacity = 0);
    REFUSED(LINK_STATUS, m.status.resident_bytes = UINT64_MAX);
    REFUSED(LINK_STATUS, m.status.node.params[9].trust = SRS_TRUSTS);
    REFUSED(LINK_STATUS, m.status.node.params[0].percent = 101);
    REFUSED(LINK_STATUS, m.status.node.params[0].device_bytes = UINT64_MAX);
    REFUSED(LINK_STATUS, memset(&m.status.node.params[0].held, 2, 1));
    REFUSED(LINK_LOG_LEVELS, m.log_levels.levels = 8);
    REFUSED(LINK_PARAMS, m.params.size = LINK_SIZES);
    REFUSED(LINK_PARAMS, m.params.evict = 2);
    REFUSED(LINK_PARAMS_DONE, m.params_done.asked.size = LINK_SIZES);
    REFUSED(LINK_PARAMS_DONE, m.params_done.code = 1);
#undef REFUSED
}
END_TEST

START_TEST(link_send__refuses_an_unknown_type)
{
    struct link_message m = {.type = 99};

    ck_assert_int_eq(link_send(pair[0], &m, -1), -EINVAL);
    m.type = 0;
    ck_assert_int_eq(link_send(pair[0], &m, -1), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("link");
    TCase *tc = tcase_create("link");

    tcase_set_timeout(tc, 300);
    printf("seed %d\n", SEED);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, link__carries_every_type);
    tcase_add_test(tc, link__descriptor_has_the_content_and_closes_on_exec);
    tcase_add_test(tc, link_receive__gives_what_was_sent_before_an_end_with_messages_unread);
    tcase_add_test(tc, link_receive__end_is_ENOTCONN_and_send_is_EPIPE);
    tcase_add_test(tc, link_receive__refuses_rubbish_and_leaks_nothing);
    tcase_add_test(tc, link_receive__refuses_wrong_descriptors_and_closes_them);
    tcase_add_test(tc, link_receive__strings_end);
    tcase_add_test(tc, link_receive__strings_are_one_line_of_text);
    tcase_add_test(tc, link_receive__refuses_values_that_cannot_be);
    tcase_add_test(tc, link_send__refuses_an_unknown_type);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
