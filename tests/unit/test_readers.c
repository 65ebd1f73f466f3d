/*
 * Readers of `events` against a libfuse of our own: what is answered, when, and to whom.
 */
#include "fuse/events.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

/* ---- libfuse, as far as it is asked ---- */

struct fuse_req {
    atomic_bool answered;
    bool refused; /* the kernel does not take the answer */
    int error;
    size_t len;
    char bytes[READERS_READ_MAX];
    fuse_interrupt_func_t interrupt;
    void *data;
    atomic_bool interrupted;
};

struct fuse_pollhandle {
    bool told, destroyed;
};

static struct events *ev;

int fuse_reply_err(fuse_req_t req, int err)
{
    ck_assert(!req->answered);
    req->error = err;
    atomic_store(&req->answered, true);
    return 0;
}

int fuse_reply_buf(fuse_req_t req, const char *buf, size_t size)
{
    ck_assert(!req->answered);
    memcpy(req->bytes, buf, size);
    req->bytes[size] = '\0';
    req->len = size;
    int ret = req->refused ? -ENOENT : 0;
    atomic_store(&req->answered, true);
    return ret;
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
    req->interrupt = func;
    req->data = data;
}

int fuse_req_interrupted(fuse_req_t req)
{
    return atomic_load(&req->interrupted);
}

int fuse_lowlevel_notify_poll(struct fuse_pollhandle *ph)
{
    ck_assert(!ph->destroyed);
    ph->told = true;
    return 0;
}

void fuse_pollhandle_destroy(struct fuse_pollhandle *ph)
{
    ck_assert(!ph->destroyed);
    ph->destroyed = true;
}

/* ---- helpers ---- */

static void set_up(void)
{
    ck_assert_int_eq(events_create(&ev), 0);
}

static void tear_down(void)
{
    events_destroy(ev);
}

static struct readers *readers(void)
{
    return events_readers(ev);
}

static void say(unsigned n)
{
    char text[32];

    snprintf(text, sizeof(text), "line %u", n);
    events_add_text(ev, text);
}

static bool ends_in(const struct fuse_req *req, const char *end)
{
    return req->len >= strlen(end) && strcmp(req->bytes + req->len - strlen(end), end) == 0;
}

static unsigned lines_of(const struct fuse_req *req)
{
    unsigned n = 0;

    for (size_t i = 0; i < req->len; i++)
        n += req->bytes[i] == '\n';
    return n;
}

static struct fuse_req one, two;

START_TEST(readers_read__starts_at_the_present_and_gives_whole_lines)
{
    one = two = (struct fuse_req){0};
    say(1);
    struct reader *r = readers_open(readers());
    readers_read(readers(), r, &one, 4096, true);
    ck_assert_int_eq(one.error, EAGAIN);
    say(2);
    say(3);
    readers_read(readers(), r, &two, 70, true); /* one and a half */
    ck_assert_uint_eq(lines_of(&two), 1);
    ck_assert(ends_in(&two, "- line 2\n"));
    one = (struct fuse_req){0};
    readers_read(readers(), r, &one, 4096, true);
    ck_assert(ends_in(&one, "- line 3\n"));
    readers_close(readers(), r);
}
END_TEST

START_TEST(readers_read__waits_for_what_comes)
{
    one = two = (struct fuse_req){0};
    struct reader *a = readers_open(readers()), *b = readers_open(readers());
    readers_read(readers(), a, &one, 4096, false);
    readers_read(readers(), b, &two, 4096, false);
    ck_assert(!one.answered && !two.answered);
    say(1);
    ck_assert(ends_in(&one, "- line 1\n") && ends_in(&two, "- line 1\n"));
    readers_close(readers(), a);
    readers_close(readers(), b);
}
END_TEST

START_TEST(readers_read__can_be_interrupted_and_loses_nothing)
{
    one = two = (struct fuse_req){0};
    struct reader *r = readers_open(readers());
    readers_read(readers(), r, &one, 4096, false);
    one.interrupt(&one, one.data);
    ck_assert_int_eq(one.error, EINTR);
    atomic_store(&two.interrupted, true); /* before it is parked */
    readers_read(readers(), r, &two, 4096, false);
    ck_assert_int_eq(two.error, EINTR);
    one = two = (struct fuse_req){.refused = true};
    say(1);
    readers_read(readers(), r, &one, 4096, false);
    two.refused = false;
    readers_read(readers(), r, &two, 4096, false);
    ck_assert(ends_in(&two, "- line 1\n"));
    readers_close(readers(), r);
}
END_TEST

START_TEST(readers_read__tells_what_was_lost)
{
    one = (struct fuse_req){0};
    struct reader *r = readers_open(readers());
    for (unsigned i = 1; i <= EVENTS_KEPT + 7; i++)
        say(i);
    readers_read(readers(), r, &one, 80, false);
    ck_assert_int_eq(strncmp(one.bytes, "lost 7 events\n", 14), 0);
    ck_assert(ends_in(&one, "- line 8\n"));
    readers_close(readers(), r);
}
END_TEST

static int64_t clock_us(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* A line's times: by the clocks, and never back. */
START_TEST(events__have_wall_and_monotonic_time)
{
    struct reader *r = readers_open(readers());
    int64_t last = clock_us(CLOCK_MONOTONIC), wall = clock_us(CLOCK_REALTIME);

    for (unsigned i = 0; i < 50; i++) {
        struct tm tm = {0};
        int ms, at = 0;
        long long s, us;
        char number[32];
        one = (struct fuse_req){0};
        say(i);
        int64_t now = clock_us(CLOCK_MONOTONIC), wall_now = clock_us(CLOCK_REALTIME);
        readers_read(readers(), r, &one, 4096, true);
        ck_assert_int_eq(sscanf(one.bytes, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ,%lld.%6lld - line %31[0-9]%n", &tm.tm_year,
                                &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &s, &us, number,
                                &at), 10);
        ck_assert_str_eq(one.bytes + at, "\n");
        tm.tm_year -= 1900;
        tm.tm_mon--;
        int64_t told_wall = ((int64_t)timegm(&tm) * 1000 + ms) * 1000, told = s * 1000000 + us;
        ck_assert_int_le(last, told);
        ck_assert_int_le(told, now);
        ck_assert_int_le(wall / 1000 * 1000, told_wall);
        ck_assert_int_le(told_wall, wall_now);
        last = told;
    }
    readers_close(readers(), r);
}
END_TEST

/* Where the kernel ends requests that take too long. */
START_TEST(events_heartbeat__answers_those_alone_who_wait_too_long)
{
    one = two = (struct fuse_req){0};
    struct reader *r = readers_open(readers());
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    int64_t now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
    readers_read(readers(), r, &one, 4096, false);
    events_heartbeat(ev, now + 900, 1000);
    ck_assert(!one.answered);
    events_heartbeat(ev, now + 60000, 1000);
    ck_assert(one.answered);
    ck_assert(ends_in(&one, " - heartbeat\n"));
    readers_read(readers(), r, &two, 4096, false);
    say(1);
    ck_assert(ends_in(&two, "- line 1\n"));
    readers_close(readers(), r);
}
END_TEST

START_TEST(readers_stop__is_the_end_of_the_file)
{
    one = two = (struct fuse_req){0};
    struct reader *r = readers_open(readers());
    readers_read(readers(), r, &one, 4096, false);
    events_stop(ev);
    ck_assert(one.answered && one.error == 0 && one.len == 0);
    readers_read(readers(), r, &two, 4096, false);
    ck_assert(two.answered && two.error == 0 && two.len == 0);
    ck_assert_uint_eq(readers_poll(readers(), r, NULL), POLLIN | POLLRDNORM);
    readers_close(readers(), r);
}
END_TEST

START_TEST(readers_poll__tells_the_newest_handle_once)
{
    struct fuse_pollhandle first = {0}, second = {0}, third = {0};
    struct reader *r = readers_open(readers());
    ck_assert_uint_eq(readers_poll(readers(), r, &first), 0);
    ck_assert_uint_eq(readers_poll(readers(), r, &second), 0);
    ck_assert(first.destroyed && !first.told);
    say(1);
    ck_assert(second.told && second.destroyed);
    ck_assert_uint_eq(readers_poll(readers(), r, &third), POLLIN | POLLRDNORM);
    readers_close(readers(), r);
    ck_assert(third.destroyed && !third.told);
}
END_TEST

/* ---- threads ---- */

#define THREADS 4
#define LINES 1500

static atomic_bool said_all;

struct reading {
    struct reader *reader;
    atomic_uint seen; /* lines */
};

static void *read_all(void *arg)
{
    struct reading *mine = arg;

    while (mine->seen < LINES) {
        struct fuse_req *req = calloc(1, sizeof(*req));
        readers_read(readers(), mine->reader, req, 300, false);
        if (mine->seen % 3 == 0 && !atomic_load(&req->answered)) { /* a signal, at some moment */
            atomic_store(&req->interrupted, true);
            req->interrupt(req, req->data);
        }
        while (!atomic_load(&req->answered))
            sched_yield();
        atomic_fetch_add(&mine->seen, req->error ? 0 : lines_of(req));
        free(req);
    }
    return NULL;
}

static void *poll_all(void *arg)
{
    struct reading *mine = arg;

    while (!atomic_load(&said_all)) {
        readers_poll(readers(), mine->reader, NULL);
        sched_yield();
    }
    return NULL;
}

/* Each by itself, since one may not run at all for as long as a busy machine likes. */
static unsigned seen_by_slowest(struct reading *all)
{
    unsigned least = UINT_MAX;

    for (unsigned i = 0; i < THREADS; i++)
        least = all[i].seen < least ? all[i].seen : least;
    return least;
}

START_TEST(readers__serve_threads)
{
    static struct reading all[THREADS + 1];
    pthread_t threads[THREADS + 1];

    atomic_store(&said_all, false);
    for (unsigned i = 0; i <= THREADS; i++) {
        all[i].reader = readers_open(readers());
        pthread_create(&threads[i], NULL, i < THREADS ? read_all : poll_all, &all[i]);
    }
    for (unsigned i = 0; i < LINES; i++) {
        say(i);
        while (seen_by_slowest(all) + EVENTS_KEPT / 2 < i) /* none is lost */
            sched_yield();
    }
    atomic_store(&said_all, true);
    for (unsigned i = 0; i <= THREADS; i++) {
        pthread_join(threads[i], NULL);
        readers_close(readers(), all[i].reader);
    }
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_uint_eq(all[i].seen, LINES);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("readers");
    TCase *t = tcase_create("readers");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 300);
    tcase_add_test(t, readers_read__starts_at_the_present_and_gives_whole_lines);
    tcase_add_test(t, readers_read__waits_for_what_comes);
    tcase_add_test(t, readers_read__can_be_interrupted_and_loses_nothing);
    tcase_add_test(t, readers_read__tells_what_was_lost);
    tcase_add_test(t, events__have_wall_and_monotonic_time);
    tcase_add_test(t, events_heartbeat__answers_those_alone_who_wait_too_long);
    tcase_add_test(t, readers_stop__is_the_end_of_the_file);
    tcase_add_test(t, readers_poll__tells_the_newest_handle_once);
    tcase_add_test(t, readers__serve_threads);
    suite_add_tcase(s, t);
    return suite_run(s);
}
