/*
 * A ring of records, numbered from 1 since the start of the service: number n is in slot n % RECORDS_KEPT. A reader is
 * the number of its next record.
 */
#include "fuse/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/abi.h"

struct records {
    struct readers *readers;
    /* Guarded by their lock: */
    uint64_t last; /* number of the newest record */
    struct proof_event ring[RECORDS_KEPT];
};

/* ---- reading: under the readers' lock ---- */

static void begin(const void *stream, void *cursor)
{
    *(uint64_t *)cursor = ((const struct records *)stream)->last + 1;
}

static bool has(const void *stream, const void *cursor)
{
    return *(const uint64_t *)cursor <= ((const struct records *)stream)->last;
}

/* Whole records, the first of them with what was lost before it. */
static size_t fill(const void *stream, void *cursor, char *buf, size_t max)
{
    const struct records *rs = stream;
    uint64_t oldest = rs->last > RECORDS_KEPT ? rs->last - RECORDS_KEPT + 1 : 1, lost = 0;
    uint64_t *seq = cursor;
    size_t used = 0;

    if (*seq < oldest) {
        lost = oldest - *seq;
        *seq = oldest;
    }
    for (; max - used >= sizeof(struct proof_event) && *seq <= rs->last; ++*seq) {
        struct proof_event e = rs->ring[*seq % RECORDS_KEPT];
        e.lost = used ? 0 : lost;
        memcpy(buf + used, &e, sizeof(e));
        used += sizeof(e);
    }
    return used;
}

static const struct readers_ops ops = {.cursor_bytes = sizeof(uint64_t),
                                       .least = sizeof(struct proof_event),
                                       .begin = begin,
                                       .has = has,
                                       .fill = fill};

/* ---- life ---- */

int records_create(struct records **out)
{
    struct records *rs = calloc(1, sizeof(*rs));

    if (!rs || readers_create(&ops, rs, &rs->readers) < 0) {
        free(rs);
        return -ENOMEM;
    }
    *out = rs;
    return 0;
}

void records_destroy(struct records *rs)
{
    if (!rs)
        return;
    readers_destroy(rs->readers);
    free(rs);
}

struct readers *records_readers(struct records *rs)
{
    return rs->readers;
}

/* ---- telling ---- */

static void add(struct records *rs, uint64_t job, uint32_t state, uint32_t partitions_done,
                const char *text)
{
    readers_lock(rs->readers);
    const struct told_at now = told_now();
    uint64_t seq = ++rs->last;
    struct proof_event *e = &rs->ring[seq % RECORDS_KEPT];
    *e = (struct proof_event){.seq = seq,
                              .job = job,
                              .realtime_ns = now.realtime_ns,
                              .monotonic_ns = now.monotonic_ns,
                              .state = state,
                              .partitions_done = partitions_done};
    memcpy(e->name, text, strnlen(text, sizeof(e->name) - 1));
    readers_unlock_and_tell(rs->readers);
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
    readers_stop(rs->readers);
}
