/*
 * A ring of records, numbered from 1 since the start of the service: number n is in slot n % RECORDS_KEPT. A reader is
 * the number of its next record.
 */
#include "fuse/records.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuse/abi.h"
#include "fuse/parked.h"

#define READ_RECORDS 64 /* at once */

struct records_reader {
    struct records_reader *next;
    uint64_t seq;
    struct fuse_pollhandle *ph;
};

/* A request that waits for a record. */
struct waiter {
    struct parked parked;
    struct records_reader *reader;
    size_t max;
};

struct records {
    pthread_mutex_t lock;
    uint64_t last; /* number of the newest record; all guarded by lock */
    bool stopped;
    struct records_reader *readers;
    struct parked_list waiting; /* struct waiter; its lock is taken before ours */
    struct proof_event ring[RECORDS_KEPT];
};

static void interrupted(struct parked *p)
{
    fuse_reply_err(p->req, EINTR);
    free(p);
}

int records_create(struct records **out)
{
    struct records *rs = calloc(1, sizeof(*rs));

    if (!rs)
        return -ENOMEM;
    pthread_mutex_init(&rs->lock, NULL);
    parked_init(&rs->waiting, interrupted);
    *out = rs;
    return 0;
}

void records_destroy(struct records *rs)
{
    if (!rs)
        return;
    parked_fini(&rs->waiting);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
}

/* ---- reading ---- */

/* Under the lock: whole records, the first of them with what was lost before it. Returns how many. */
static size_t fill(const struct records *rs, struct records_reader *r, struct proof_event *out,
                   size_t max)
{
    uint64_t oldest = rs->last > RECORDS_KEPT ? rs->last - RECORDS_KEPT + 1 : 1, lost = 0;
    size_t n = 0;

    if (r->seq < oldest) {
        lost = oldest - r->seq;
        r->seq = oldest;
    }
    while (n < max && r->seq <= rs->last)
        out[n++] = rs->ring[r->seq++ % RECORDS_KEPT];
    if (n > 0)
        out[0].lost = lost;
    return n;
}

/* Answers if there is something to say. What the kernel did not take (the reader was interrupted) is given again at the
 * next read. */
static bool answer(struct records *rs, struct records_reader *r, fuse_req_t req, size_t max)
{
    struct proof_event out[READ_RECORDS];

    pthread_mutex_lock(&rs->lock);
    uint64_t before = r->seq;
    size_t n = fill(rs, r, out, min_size(max / sizeof(*out), READ_RECORDS));
    bool end = n == 0 && rs->stopped;
    pthread_mutex_unlock(&rs->lock);
    if (n == 0 && !end)
        return false;
    if (fuse_reply_buf(req, (const char *)out, n * sizeof(*out)) < 0 && n > 0) {
        pthread_mutex_lock(&rs->lock);
        r->seq = before;
        pthread_mutex_unlock(&rs->lock);
    }
    return true;
}

/* A kernel that waits for `read` keeps the file open, so its reader lives. */
static bool can_be_answered(void *ctx, const struct parked *p)
{
    struct records *rs = ctx;

    pthread_mutex_lock(&rs->lock);
    bool yes = rs->stopped || ((const struct waiter *)p)->reader->seq <= rs->last;
    pthread_mutex_unlock(&rs->lock);
    return yes;
}

static void answer_waiting(struct records *rs)
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

void records_read(struct records *rs, struct records_reader *r, fuse_req_t req, size_t max,
                  bool nonblock)
{
    if (max < sizeof(struct proof_event)) {
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
    w->parked = (struct parked){.req = req};
    w->reader = r;
    w->max = max;
    parked_add(&rs->waiting, &w->parked);
    answer_waiting(rs); /* a record may have come in between */
}

/* Each poll(2) brings a handle of its own; the newest one speaks for all, so that polling takes no memory. */
unsigned records_poll(struct records *rs, struct records_reader *r, struct fuse_pollhandle *ph)
{
    pthread_mutex_lock(&rs->lock);
    struct fuse_pollhandle *old = ph ? r->ph : NULL;
    if (ph)
        r->ph = ph;
    bool ready = rs->stopped || r->seq <= rs->last;
    pthread_mutex_unlock(&rs->lock);
    if (old)
        fuse_pollhandle_destroy(old);
    return ready ? POLLIN | POLLRDNORM : 0;
}

struct records_reader *records_open(struct records *rs)
{
    struct records_reader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    pthread_mutex_lock(&rs->lock);
    r->seq = rs->last + 1;
    r->next = rs->readers;
    rs->readers = r;
    pthread_mutex_unlock(&rs->lock);
    return r;
}

void records_close(struct records *rs, struct records_reader *r)
{
    pthread_mutex_lock(&rs->lock);
    struct records_reader **place = &rs->readers;
    while (*place != r)
        place = &(*place)->next;
    *place = r->next;
    pthread_mutex_unlock(&rs->lock);
    if (r->ph)
        fuse_pollhandle_destroy(r->ph);
    free(r);
}

/* ---- telling ---- */

static struct fuse_pollhandle *take_pollhandle(struct records *rs)
{
    struct fuse_pollhandle *ph = NULL;

    pthread_mutex_lock(&rs->lock);
    for (struct records_reader *r = rs->readers; r && !ph; r = r->next) {
        ph = r->ph;
        r->ph = NULL;
    }
    pthread_mutex_unlock(&rs->lock);
    return ph;
}

static void tell(struct records *rs)
{
    struct fuse_pollhandle *ph;

    answer_waiting(rs);
    while ((ph = take_pollhandle(rs)) != NULL) {
        fuse_lowlevel_notify_poll(ph);
        fuse_pollhandle_destroy(ph);
    }
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void add(struct records *rs, uint64_t job, uint32_t state, uint32_t partitions_done,
                const char *text)
{
    pthread_mutex_lock(&rs->lock);
    uint64_t seq = ++rs->last;
    struct proof_event *e = &rs->ring[seq % RECORDS_KEPT];
    *e = (struct proof_event){.seq = seq,
                              .job = job,
                              .realtime_ns = now_ns(CLOCK_REALTIME),
                              .monotonic_ns = now_ns(CLOCK_MONOTONIC),
                              .state = state,
                              .partitions_done = partitions_done};
    memcpy(e->name, text, strnlen(text, sizeof(e->name) - 1));
    pthread_mutex_unlock(&rs->lock);
    tell(rs);
}

uint32_t records_state(enum job_state state)
{
    static const uint32_t states[JOB_STATES] = {
        [JOB_RECEIVING] = PROOF_RECEIVING, [JOB_REJECTED] = PROOF_REFUSED,
        [JOB_QUEUED] = PROOF_QUEUED,       [JOB_SYNTHESIZING] = PROOF_SYNTHESIZING,
        [JOB_PROVING] = PROOF_PROVING,     [JOB_DONE] = PROOF_DONE,
        [JOB_FAILED] = PROOF_FAILED,       [JOB_CANCELLED] = PROOF_CANCELLED,
    };

    return states[state];
}

void records_add_job(struct records *rs, const struct job_info *info, bool gone)
{
    add(rs, info->id, gone ? PROOF_REMOVED : records_state(info->state), info->partitions_done,
        info->name);
}

void records_add_text(struct records *rs, const char *text)
{
    add(rs, 0, PROOF_SERVICE, 0, text);
}

void records_stop(struct records *rs)
{
    pthread_mutex_lock(&rs->lock);
    rs->stopped = true;
    pthread_mutex_unlock(&rs->lock);
    tell(rs);
}
