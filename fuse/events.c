/*
 * A ring of lines, counted from the start of the service: line n is in slot n % EVENTS_KEPT. A
 * reader keeps the number of its next line and a copy of the line it is in, so that a line which
 * has been begun is given whole, whatever happens in the ring.
 */
#include "fuse/events.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuse/parked.h"

#define LINE_MAX_BYTES (64 + 4 * JOB_NAME_MAX) /* every byte of a name may need four */
#define READ_MAX ((size_t)64 << 10)

struct cursor {
    uint64_t seq;   /* the next line to take from the ring */
    size_t at, len; /* of the line begun */
    char line[LINE_MAX_BYTES];
};

struct events_reader {
    struct events_reader *next;
    struct cursor cursor;
    struct fuse_pollhandle *ph;
};

/* A request that waits for a line. */
struct waiter {
    struct parked parked;
    struct events_reader *reader;
    size_t max;
};

struct events {
    pthread_mutex_t lock;
    uint64_t head; /* lines ever added; all guarded by lock */
    bool stopped;
    struct events_reader *readers;
    struct parked_list waiting; /* struct waiter; its lock is taken before ours */
    char lines[EVENTS_KEPT][LINE_MAX_BYTES];
};

static void interrupted(struct parked *p)
{
    fuse_reply_err(p->req, EINTR);
    free(p);
}

int events_create(struct events **out)
{
    struct events *ev = calloc(1, sizeof(*ev));

    if (!ev)
        return -ENOMEM;
    pthread_mutex_init(&ev->lock, NULL);
    parked_init(&ev->waiting, interrupted);
    *out = ev;
    return 0;
}

void events_destroy(struct events *ev)
{
    if (!ev)
        return;
    parked_fini(&ev->waiting);
    pthread_mutex_destroy(&ev->lock);
    free(ev);
}

/* ---- reading ---- */

/* Under the lock: makes the next line the reader's own. False: there is none. */
static bool next_line(const struct events *ev, struct cursor *c)
{
    uint64_t tail = ev->head > EVENTS_KEPT ? ev->head - EVENTS_KEPT : 0;

    if (c->seq < tail) {
        c->len =
            (size_t)snprintf(c->line, sizeof(c->line), "lost %" PRIu64 " events\n", tail - c->seq);
        c->seq = tail;
    } else if (c->seq < ev->head) {
        const char *line = ev->lines[c->seq++ % EVENTS_KEPT];
        c->len = strlen(line);
        memcpy(c->line, line, c->len);
    } else {
        return false;
    }
    c->at = 0;
    return true;
}

static bool has_lines(const struct events *ev, const struct cursor *c)
{
    return c->at < c->len || c->seq < ev->head;
}

/* Under the lock: whole lines as long as they fit; a part only of a first line that is too long. */
static size_t fill(const struct events *ev, struct cursor *c, char *buf, size_t max)
{
    size_t used = 0;

    while (used < max && (c->at < c->len || next_line(ev, c))) {
        size_t n = c->len - c->at;
        if (n > max - used && used > 0)
            break;
        n = min_size(n, max - used);
        memcpy(buf + used, c->line + c->at, n);
        c->at += n;
        used += n;
    }
    return used;
}

/* Answers if there is something to say. What the kernel did not take (the reader was interrupted)
 * is given again at the next read. */
static bool answer(struct events *ev, struct events_reader *r, fuse_req_t req, size_t max)
{
    char buf[READ_MAX];
    struct cursor before;

    pthread_mutex_lock(&ev->lock);
    before = r->cursor;
    size_t n = fill(ev, &r->cursor, buf, min_size(max, sizeof(buf)));
    bool end = n == 0 && ev->stopped;
    pthread_mutex_unlock(&ev->lock);
    if (n == 0 && !end)
        return false;
    if (fuse_reply_buf(req, buf, n) < 0 && n > 0) {
        pthread_mutex_lock(&ev->lock);
        r->cursor = before;
        pthread_mutex_unlock(&ev->lock);
    }
    return true;
}

/* A kernel that waits for `read` keeps the file open, so its reader lives. */
static bool can_be_answered(void *ctx, const struct parked *p)
{
    struct events *ev = ctx;

    pthread_mutex_lock(&ev->lock);
    bool yes = ev->stopped || has_lines(ev, &((const struct waiter *)p)->reader->cursor);
    pthread_mutex_unlock(&ev->lock);
    return yes;
}

static void answer_waiting(struct events *ev)
{
    struct parked *p;

    while ((p = parked_take(&ev->waiting, can_be_answered, ev)) != NULL) {
        struct waiter *w = (struct waiter *)p;
        if (answer(ev, w->reader, p->req, w->max))
            free(w);
        else /* another read of the same descriptor was faster */
            parked_return(&ev->waiting, p);
    }
}

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void events_read(struct events *ev, struct events_reader *r, fuse_req_t req, size_t max,
                 bool nonblock)
{
    if (answer(ev, r, req, max))
        return;
    struct waiter *w = nonblock ? NULL : calloc(1, sizeof(*w));
    if (!w) {
        fuse_reply_err(req, nonblock ? EAGAIN : ENOMEM);
        return;
    }
    w->parked = (struct parked){.req = req, .since_ms = now_ms()};
    w->reader = r;
    w->max = max;
    parked_add(&ev->waiting, &w->parked);
    answer_waiting(ev); /* a line may have come in between */
}

unsigned events_poll(struct events *ev, struct events_reader *r, struct fuse_pollhandle *ph)
{
    pthread_mutex_lock(&ev->lock);
    struct fuse_pollhandle *old = ph ? r->ph : NULL;
    if (ph)
        r->ph = ph;
    bool ready = ev->stopped || has_lines(ev, &r->cursor);
    pthread_mutex_unlock(&ev->lock);
    if (old)
        fuse_pollhandle_destroy(old);
    return ready ? POLLIN | POLLRDNORM : 0;
}

struct events_reader *events_open(struct events *ev)
{
    struct events_reader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    pthread_mutex_lock(&ev->lock);
    r->cursor.seq = ev->head;
    r->next = ev->readers;
    ev->readers = r;
    pthread_mutex_unlock(&ev->lock);
    return r;
}

void events_close(struct events *ev, struct events_reader *r)
{
    pthread_mutex_lock(&ev->lock);
    struct events_reader **place = &ev->readers;
    while (*place != r)
        place = &(*place)->next;
    *place = r->next;
    pthread_mutex_unlock(&ev->lock);
    if (r->ph)
        fuse_pollhandle_destroy(r->ph);
    free(r);
}

/* ---- telling ---- */

static struct fuse_pollhandle *take_pollhandle(struct events *ev)
{
    struct fuse_pollhandle *ph = NULL;

    pthread_mutex_lock(&ev->lock);
    for (struct events_reader *r = ev->readers; r && !ph; r = r->next) {
        ph = r->ph;
        r->ph = NULL;
    }
    pthread_mutex_unlock(&ev->lock);
    return ph;
}

static void tell(struct events *ev)
{
    struct fuse_pollhandle *ph;

    answer_waiting(ev);
    while ((ph = take_pollhandle(ev)) != NULL) {
        fuse_lowlevel_notify_poll(ph);
        fuse_pollhandle_destroy(ph);
    }
}

/* "2026-01-31T12:00:00.123Z " */
static size_t put_time(char *out, size_t max)
{
    struct timespec ts;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(out, max, "%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, max - n, ".%03ldZ ", ts.tv_nsec / 1000000);
}

static void add(struct events *ev, const char *subject, const char *text)
{
    pthread_mutex_lock(&ev->lock);
    char *line = ev->lines[ev->head % EVENTS_KEPT];
    size_t n = put_time(line, LINE_MAX_BYTES);
    n += (size_t)snprintf(line + n, LINE_MAX_BYTES - n, "%s ", subject);
    n += escape_name(line + n, LINE_MAX_BYTES - n - 1, text);
    memcpy(line + n, "\n", 2);
    ev->head++;
    pthread_mutex_unlock(&ev->lock);
    tell(ev);
}

void events_add_job(struct events *ev, const struct job_info *info, bool gone)
{
    char subject[40];

    snprintf(subject, sizeof(subject), "%" PRIu64 " %s", info->id,
             gone ? "removed" : job_state_name(info->state));
    add(ev, subject, info->name);
}

void events_add_text(struct events *ev, const char *text)
{
    add(ev, "-", text);
}

struct older_than {
    int64_t ms;
};

static bool is_older(void *ctx, const struct parked *p)
{
    return p->since_ms <= ((struct older_than *)ctx)->ms;
}

void events_heartbeat(struct events *ev, int64_t now, int64_t limit_ms)
{
    struct older_than limit = {now - limit_ms};
    char line[64];
    struct parked *p;

    size_t n = put_time(line, sizeof(line));
    n += (size_t)snprintf(line + n, sizeof(line) - n, "- heartbeat\n");
    while ((p = parked_take(&ev->waiting, is_older, &limit)) != NULL) {
        fuse_reply_buf(p->req, line, min_size(n, ((struct waiter *)p)->max));
        free(p);
    }
}

void events_stop(struct events *ev)
{
    pthread_mutex_lock(&ev->lock);
    ev->stopped = true;
    pthread_mutex_unlock(&ev->lock);
    tell(ev);
}
