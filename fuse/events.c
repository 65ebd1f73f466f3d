/*
 * A ring of lines, counted from the start of the service: line n is in slot n % EVENTS_KEPT. A
 * reader keeps the number of its next line and a copy of the line it is in, so that a line which
 * has been begun is given whole, whatever happens in the ring.
 */
#include "fuse/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE_MAX_BYTES (96 + 4 * JOB_NAME_MAX) /* every byte of a name may need four */

struct cursor {
    uint64_t seq;   /* the next line to take from the ring */
    size_t at, len; /* of the line begun */
    char line[LINE_MAX_BYTES];
};

_Static_assert(sizeof(struct cursor) <= READERS_CURSOR_MAX, "readers copy a cursor");

struct events {
    struct readers *readers;
    /* Guarded by their lock: */
    uint64_t head; /* lines ever added */
    char lines[EVENTS_KEPT][LINE_MAX_BYTES];
};

/* ---- reading: under the readers' lock ---- */

static void begin(const void *stream, void *cursor)
{
    ((struct cursor *)cursor)->seq = ((const struct events *)stream)->head;
}

/* Makes the next line the reader's own. False: there is none. */
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

static bool has(const void *stream, const void *cursor)
{
    const struct cursor *c = cursor;

    return c->at < c->len || c->seq < ((const struct events *)stream)->head;
}

/* Whole lines as long as they fit; a part only of a first line that is too long. */
static size_t fill(const void *stream, void *cursor, char *buf, size_t max)
{
    struct cursor *c = cursor;
    size_t used = 0;

    while (used < max && (c->at < c->len || next_line(stream, c))) {
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

static const struct readers_ops ops = {
    .cursor_bytes = sizeof(struct cursor), .begin = begin, .has = has, .fill = fill};

/* ---- life ---- */

int events_create(struct events **out)
{
    struct events *ev = calloc(1, sizeof(*ev));

    if (!ev || readers_create(&ops, ev, &ev->readers) < 0) {
        free(ev);
        return -ENOMEM;
    }
    *out = ev;
    return 0;
}

void events_destroy(struct events *ev)
{
    if (!ev)
        return;
    readers_destroy(ev->readers);
    free(ev);
}

struct readers *events_readers(struct events *ev)
{
    return ev->readers;
}

/* ---- telling ---- */

/* "2026-01-31T12:00:00.123Z,86400.123456 ": one word, so that the others have the places they always had. */
static size_t put_time(char *out, size_t max)
{
    const struct told_at now = told_now();
    time_t seconds = now.realtime_ns / 1000000000;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    size_t n = strftime(out, max, "%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, max - n, ".%03" PRId64 "Z,%" PRId64 ".%06" PRId64 " ",
                                now.realtime_ns / 1000000 % 1000, now.monotonic_ns / 1000000000,
                                now.monotonic_ns / 1000 % 1000000);
}

static void add(struct events *ev, const char *subject, const char *text)
{
    readers_lock(ev->readers);
    char *line = ev->lines[ev->head % EVENTS_KEPT];
    size_t n = put_time(line, LINE_MAX_BYTES);
    n += (size_t)snprintf(line + n, LINE_MAX_BYTES - n, "%s ", subject);
    n += escape_name(line + n, LINE_MAX_BYTES - n - 1, text);
    memcpy(line + n, "\n", 2);
    ev->head++;
    readers_unlock_and_tell(ev->readers);
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

void events_heartbeat(struct events *ev, int64_t now_ms, int64_t limit_ms)
{
    char line[96];

    size_t n = put_time(line, sizeof(line));
    n += (size_t)snprintf(line + n, sizeof(line) - n, "- heartbeat\n");
    readers_answer_old(ev->readers, now_ms - limit_ms, line, n);
}

void events_stop(struct events *ev)
{
    readers_stop(ev->readers);
}
