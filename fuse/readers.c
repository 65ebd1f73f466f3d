#include "fuse/readers.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuse/parked.h"
#include "numa/base.h"

struct reader {
    struct reader *next;
    struct fuse_pollhandle *ph; /* the newest, which speaks for all: so polling takes no memory */
    _Alignas(max_align_t) char cursor[];
};

/* A request that waits. */
struct waiter {
    struct parked parked;
    struct reader *reader;
    size_t max;
};

struct readers {
    const struct readers_ops *ops;
    const void *stream;
    struct parked_list waiting; /* struct waiter; its lock is taken before ours */
    pthread_mutex_t lock;       /* over the stream, the cursors and all below */
    bool stopped;
    struct reader *open;
};

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct told_at told_now(void)
{
    struct timespec real, mono;

    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    return (struct told_at){(int64_t)real.tv_sec * 1000000000 + real.tv_nsec,
                            (int64_t)mono.tv_sec * 1000000000 + mono.tv_nsec};
}

static void interrupted(struct parked *p)
{
    fuse_reply_err(p->req, EINTR);
    free(p);
}

int readers_create(const struct readers_ops *ops, const void *stream, struct readers **out)
{
    struct readers *rs = calloc(1, sizeof(*rs));

    if (!rs)
        return -ENOMEM;
    rs->ops = ops;
    rs->stream = stream;
    pthread_mutex_init(&rs->lock, NULL);
    parked_init(&rs->waiting, interrupted);
    *out = rs;
    return 0;
}

void readers_destroy(struct readers *rs)
{
    if (!rs)
        return;
    parked_fini(&rs->waiting);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
}

/* ---- reading ---- */

/* Answers if there is something to say. */
static bool answer(struct readers *rs, struct reader *r, fuse_req_t req, size_t max)
{
    char buf[READERS_READ_MAX], before[READERS_CURSOR_MAX];

    pthread_mutex_lock(&rs->lock);
    memcpy(before, r->cursor, rs->ops->cursor_bytes);
    size_t n = rs->ops->fill(rs->stream, r->cursor, buf, min_size(max, sizeof(buf)));
    bool end = n == 0 && rs->stopped;
    pthread_mutex_unlock(&rs->lock);
    if (n == 0 && !end)
        return false;
    if (fuse_reply_buf(req, buf, n) < 0 && n > 0) {
        pthread_mutex_lock(&rs->lock);
        memcpy(r->cursor, before, rs->ops->cursor_bytes);
        pthread_mutex_unlock(&rs->lock);
    }
    return true;
}

/* Under the lock. */
static bool is_ready(const struct readers *rs, const struct reader *r)
{
    return rs->stopped || rs->ops->has(rs->stream, r->cursor);
}

/* A kernel that waits for `read` keeps the file open, so its reader lives. */
static bool can_be_answered(void *ctx, const struct parked *p)
{
    struct readers *rs = ctx;

    pthread_mutex_lock(&rs->lock);
    bool yes = is_ready(rs, ((const struct waiter *)p)->reader);
    pthread_mutex_unlock(&rs->lock);
    return yes;
}

static void answer_waiting(struct readers *rs)
{
    struct parked *p;

    while ((p = parked_take(&rs->waiting, can_be_answered, rs)) != NULL) {
        struct waiter *w = (struct waiter *)p;
        if (answer(rs, w->reader, p->req, w->max))
            free(w);
        else /* another read of the same descriptor was faster */
            parked_return(&rs->waiting, p);
    }
}

void readers_read(struct readers *rs, struct reader *r, fuse_req_t req, size_t max, bool nonblock)
{
    if (max < rs->ops->least) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    if (answer(rs, r, req, max))
        return;
    struct waiter *w = nonblock ? NULL : calloc(1, sizeof(*w));
    if (!w) {
        fuse_reply_err(req, nonblock ? EAGAIN : ENOMEM);
        return;
    }
    w->parked = (struct parked){.req = req, .since_ms = now_ms()};
    w->reader = r;
    w->max = max;
    parked_add(&rs->waiting, &w->parked);
    answer_waiting(rs); /* something may have come in between */
}

unsigned readers_poll(struct readers *rs, struct reader *r, struct fuse_pollhandle *ph)
{
    pthread_mutex_lock(&rs->lock);
    struct fuse_pollhandle *old = ph ? r->ph : NULL;
    if (ph)
        r->ph = ph;
    bool ready = is_ready(rs, r);
    pthread_mutex_unlock(&rs->lock);
    if (old)
        fuse_pollhandle_destroy(old);
    return ready ? POLLIN | POLLRDNORM : 0;
}

struct reader *readers_open(struct readers *rs)
{
    struct reader *r = calloc(1, sizeof(*r) + rs->ops->cursor_bytes);

    if (!r)
        return NULL;
    pthread_mutex_lock(&rs->lock);
    rs->ops->begin(rs->stream, r->cursor);
    r->next = rs->open;
    rs->open = r;
    pthread_mutex_unlock(&rs->lock);
    return r;
}

void readers_close(struct readers *rs, struct reader *r)
{
    pthread_mutex_lock(&rs->lock);
    struct reader **place = &rs->open;
    while (*place != r)
        place = &(*place)->next;
    *place = r->next;
    pthread_mutex_unlock(&rs->lock);
    if (r->ph)
        fuse_pollhandle_destroy(r->ph);
    free(r);
}

/* ---- telling ---- */

static struct fuse_pollhandle *take_pollhandle(struct readers *rs)
{
    struct fuse_pollhandle *ph = NULL;

    pthread_mutex_lock(&rs->lock);
    for (struct reader *r = rs->open; r && !ph; r = r->next) {
        ph = r->ph;
        r->ph = NULL;
    }
    pthread_mutex_unlock(&rs->lock);
    return ph;
}

static void tell(struct readers *rs)
{
    struct fuse_pollhandle *ph;

    answer_waiting(rs);
    while ((ph = take_pollhandle(rs)) != NULL) {
        fuse_lowlevel_notify_poll(ph);
        fuse_pollhandle_destroy(ph);
    }
}

void readers_lock(struct readers *rs)
{
    pthread_mutex_lock(&rs->lock);
}

void readers_unlock_and_tell(struct readers *rs)
{
    pthread_mutex_unlock(&rs->lock);
    tell(rs);
}

static bool is_old(void *ctx, const struct parked *p)
{
    return p->since_ms <= *(const int64_t *)ctx;
}

void readers_answer_old(struct readers *rs, int64_t before_ms, const char *bytes, size_t len)
{
    struct parked *p;

    while ((p = parked_take(&rs->waiting, is_old, &before_ms)) != NULL) {
        fuse_reply_buf(p->req, bytes, min_size(len, ((struct waiter *)p)->max));
        free(p);
    }
}

void readers_stop(struct readers *rs)
{
    readers_lock(rs);
    rs->stopped = true;
    readers_unlock_and_tell(rs);
}
