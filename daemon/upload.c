/*
 * Files as they arrive. Bytes go to the spool, the C1 file in the job's directory, and, as long as
 * they come in order, through a c1_reader at the same time; so when the last byte is there, the file has
 * been read. A file that was written in any other way, or one too many at a time, is read from the
 * spool when it is judged.
 *
 * What is right is written down decoded; what is right and has a final name is accepted: that is, its
 * record is put. Every write first takes back what was found before.
 */
#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/jobs_internal.h"
#include "numa/circuit/graph.h"

#define READ_BYTES ((size_t)1 << 20)

/* ---- spools ---- */

static void spool_reset_reader(struct jobs *jobs, struct spool *s, bool wanted)
{
    bool had = s->reader;

    c1_reader_destroy(s->reader);
    s->reader = NULL;
    s->fed = 0;
    s->fault = 0;
    pthread_mutex_lock(&jobs->lock);
    if (had)
        jobs->readers--;
    bool may = wanted && jobs->readers < READERS_MAX;
    if (may)
        jobs->readers++;
    pthread_mutex_unlock(&jobs->lock);
    if (may && c1_reader_create(C1_CHECK_STRICT, jobs->opt.check_workers, &s->reader) < 0) {
        s->reader = NULL; /* it will be read when it is judged */
        pthread_mutex_lock(&jobs->lock);
        jobs->readers--;
        pthread_mutex_unlock(&jobs->lock);
    }
}

/* With lock. */
static struct spool *spool_create(struct job *job)
{
    struct spool *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->fd = -1;
    s->bytes = job->file_bytes;
    s->job = job;
    s->judged = job->ready != NULL;
    job_get(job);
    job->spool = s;
    return s;
}

/* With lock; nobody else has it any more. */
static void spool_free(struct spool *s)
{
    job_put(s->job);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int spool_file(struct jobs *jobs, struct spool *s)
{
    if (s->fd >= 0)
        return 0;
    int ret = s->job->has_file ? store_spool_open(jobs->store, s->job->id, &s->fd)
                               : store_spool_create(jobs->store, s->job->id, &s->fd);
    s->job->has_file = s->fd >= 0 || s->job->has_file;
    return ret;
}

static bool spool_gone(struct jobs *jobs, struct spool *s)
{
    pthread_mutex_lock(&jobs->lock);
    bool gone = s->job->gone;
    pthread_mutex_unlock(&jobs->lock);
    return gone;
}

static bool spool_is_temporary(struct jobs *jobs, struct spool *s)
{
    pthread_mutex_lock(&jobs->lock);
    bool temporary = job_name_is_temporary(s->job->name);
    pthread_mutex_unlock(&jobs->lock);
    return temporary;
}

/* ---- opening ---- */

void spool_give_place_back(struct jobs *jobs, struct spool *s)
{
    jobs->temporary_spools -= s->place == PLACE_TEMPORARY;
    jobs->spools -= s->place == PLACE_QUEUE;
    s->place = PLACE_NONE;
}

/* With lock: takes a place for one more file that is received. */
static int take_place(struct jobs *jobs, struct spool *s)
{
    const uint32_t *n = jobs->totals.by_state;
    bool temporary = job_name_is_temporary(s->job->name);
    uint32_t taken = temporary
                         ? jobs->temporary_spools
                         : jobs->spools + n[JOB_QUEUED] + n[JOB_SYNTHESIZING] + n[JOB_PROVING];

    if (jobs->opt.max_unfinished && taken >= jobs->opt.max_unfinished)
        return -EAGAIN;
    s->place = temporary ? PLACE_TEMPORARY : PLACE_QUEUE;
    jobs->temporary_spools += temporary;
    jobs->spools += !temporary;
    return 0;
}

/* With lock: the entry that a writer of `job` writes to: itself, or for an ended one a new one that
 * waits to replace it. `fresh` is an id for that. */
static int target_of_writer(struct jobs *jobs, struct job *job, uint64_t fresh, struct job **out)
{
    if (job->state == JOB_RECEIVING || (job->state == JOB_REJECTED && job->spool)) {
        *out = job;
        return job->accepted ? -EBUSY : 0;
    }
    if (job->state == JOB_REJECTED)
        return -ENOENT; /* there is no file, only an error */
    if (!job_state_is_final((enum job_state)job->state))
        return -EBUSY;
    if (job->overwriter) {
        *out = job->overwriter;
        return 0;
    }
    struct job *writer = table_add(jobs, fresh, job->name);
    if (!writer)
        return -ENOMEM;
    writer->uid = job->uid;
    writer->gid = job->gid;
    writer->mode = job->mode;
    writer->created_ns = now_ns();
    writer->over = job;
    job->overwriter = writer;
    *out = writer;
    return 0;
}

/* With lock. The spool of `job`, one more upload on it. */
static int spool_of(struct jobs *jobs, struct job *job, bool place, struct spool **out)
{
    if (!job->spool) {
        struct spool *s = spool_create(job);
        int ret = !s ? -ENOMEM : place ? take_place(jobs, s) : 0;
        if (ret < 0) {
            if (s) {
                job->spool = NULL;
                spool_free(s);
            }
            return ret;
        }
    }
    job->spool->opens++;
    *out = job->spool;
    return 0;
}

static int open_locked(struct jobs *jobs, uint64_t id, uint64_t fresh, bool place,
                       struct spool **out)
{
    struct job *job, *target = NULL;
    int ret;

    for (;;) {
        job = table_get(jobs, id);
        if (!job || job->gone)
            return -ENOENT;
        if (!place && job->state != JOB_RECEIVING)
            return -EBUSY;
        struct job *busy = job->overwriter ? job->overwriter : job;
        if (!busy->spool || !busy->spool->closing)
            break;
        pthread_cond_wait(&jobs->closed, &jobs->lock); /* then look again: it may have ended */
    }
    ret = target_of_writer(jobs, job, fresh, &target);
    if (ret < 0)
        return ret;
    ret = spool_of(jobs, target, place, out);
    if (ret < 0 && target != job && !target->spool)
        table_drop(jobs, target);
    return ret;
}

static int open_spool(struct jobs *jobs, uint64_t id, bool place, struct upload **out)
{
    struct upload *u = calloc(1, sizeof(*u));
    uint64_t fresh = 0;
    int ret = u ? store_next_id(jobs->store, &fresh) : -ENOMEM;

    if (ret == 0) {
        pthread_mutex_lock(&jobs->lock);
        ret = open_locked(jobs, id, fresh, place, &u->spool);
        pthread_mutex_unlock(&jobs->lock);
    }
    if (ret < 0) {
        free(u);
        return ret;
    }
    u->jobs = jobs;
    *out = u;
    return 0;
}

int upload_open(struct jobs *jobs, uint64_t id, struct upload **out)
{
    return open_spool(jobs, id, true, out);
}

int upload_open_for_rename(struct jobs *jobs, uint64_t id, struct upload **out)
{
    return open_spool(jobs, id, false, out);
}

uint64_t upload_job_id(const struct upload *u)
{
    return u->spool->job->id;
}

/* ---- writing ---- */

/* Nothing that was found in this file holds any longer. Where the disk fails nobody knows whether the
 * acceptance is there, so it must be made again in any case. */
static int take_back(struct jobs *jobs, struct spool *s)
{
    struct job *job = s->job;
    int ret = 0;

    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    bool recorded = job->accepted || job->stray_record;
    pthread_mutex_unlock(&jobs->lock);
    if (recorded)
        ret = store_record_remove(jobs->store, job->id);
    pthread_mutex_lock(&jobs->lock);
    job->stray_record = ret < 0;
    job->accepted = false;
    job->accepted_ns = 0;
    free(job->ready);
    job->ready = NULL;
    job_set_error(job, NULL);
    if (job->state == JOB_REJECTED && !job->gone)
        job_set_state(jobs, job, JOB_RECEIVING);
    pthread_mutex_unlock(&jobs->lock);
    pthread_mutex_unlock(&jobs->disk);
    s->judged = false;
    s->verdict = 0;
    return ret;
}

/* Is there something that take_back would take? Most writes find nothing. */
static bool is_judged(struct jobs *jobs, struct spool *s)
{
    pthread_mutex_lock(&jobs->lock);
    const struct job *job = s->job;
    bool judged = job->accepted || job->stray_record || job->ready || job->state == JOB_REJECTED;
    pthread_mutex_unlock(&jobs->lock);
    return judged || s->judged;
}

static int change_size(struct jobs *jobs, struct spool *s, uint64_t bytes)
{
    struct job *job = s->job;

    pthread_mutex_lock(&jobs->lock);
    int ret = job->gone ? -ECANCELED : job_account(jobs, job, bytes);
    if (ret == 0)
        job->file_bytes = bytes;
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0)
        s->bytes = bytes;
    return ret;
}

/* The file is refused; NAME.error says why. */
static int reject(struct jobs *jobs, struct spool *s, int code)
{
    struct job *job = s->job;

    if (s->why.text[0] == '\0')
        errmsg_set(&s->why, code, "%s", strerror(-code));
    s->judged = true;
    s->verdict = code;
    pthread_mutex_lock(&jobs->lock);
    if (!job->gone) {
        job_set_error(job, s->why.text);
        job->ended_ns = now_ns();
        if (job->state == JOB_RECEIVING)
            job_set_state(jobs, job, JOB_REJECTED);
    }
    pthread_mutex_unlock(&jobs->lock);
    return code;
}

/* The reader has found that no byte behind these can help. */
static int reader_fault(struct jobs *jobs, struct spool *s, int code)
{
    if (spool_is_temporary(jobs, s)) {
        spool_reset_reader(jobs, s, false);
        return 0;
    }
    s->fault = code;
    return reject(jobs, s, code);
}

static int feed(struct jobs *jobs, struct spool *s, const void *buf, size_t len)
{
    int ret = c1_reader_feed(s->reader, buf, len, &s->why);

    s->fed += len;
    return ret < 0 ? reader_fault(jobs, s, ret) : 0;
}

static int prepare_change(struct jobs *jobs, struct spool *s)
{
    if (spool_gone(jobs, s))
        return -ECANCELED;
    if (is_judged(jobs, s)) {
        int ret = take_back(jobs, s);
        if (ret < 0)
            return ret;
    }
    s->why.text[0] = '\0';
    s->verdict = 0;
    s->aborted = false;
    return spool_file(jobs, s);
}

static int check_length(struct jobs *jobs, struct spool *s, size_t len, uint64_t offset)
{
    if (offset <= C1_TEXT_MAX && len <= C1_TEXT_MAX - offset)
        return 0;
    if (spool_is_temporary(jobs, s))
        return -EFBIG;
    errmsg_set(&s->why, -EFBIG, "longer than %llu bytes, the limit for a C1 file",
               (unsigned long long)C1_TEXT_MAX);
    return reject(jobs, s, -EFBIG);
}

/* The disk did not take a write. Whatever else is written, this file is not whole, unless the same
 * write is tried again and works. */
static int write_failed(struct jobs *jobs, struct spool *s, uint64_t old_bytes, uint64_t offset,
                        int code)
{
    s->broken = code;
    s->broken_at = offset;
    change_size(jobs, s, old_bytes);
    spool_reset_reader(jobs, s, false);
    return code;
}

static int write_locked(struct jobs *jobs, struct spool *s, const void *buf, size_t len,
                        uint64_t offset)
{
    if (s->fault && offset >= s->fed)
        return s->fault;
    int ret = check_length(jobs, s, len, offset);
    if (ret == 0)
        ret = prepare_change(jobs, s);
    if (ret < 0)
        return ret;
    if (offset == 0 && s->bytes == 0 && !s->reader)
        spool_reset_reader(jobs, s, true);
    uint64_t old_bytes = s->bytes;
    if (offset + len > s->bytes)
        ret = change_size(jobs, s, offset + len);
    if (ret == 0)
        ret = store_spool_write(s->fd, buf, len, offset);
    if (ret < 0)
        return write_failed(jobs, s, old_bytes, offset, ret);
    if (s->broken && offset == s->broken_at)
        s->broken = 0;
    if (offset != s->fed)
        spool_reset_reader(jobs, s, false);
    return s->reader ? feed(jobs, s, buf, len) : 0;
}

ssize_t upload_write(struct upload *u, const void *buf, size_t len, uint64_t offset)
{
    if (len == 0)
        return 0;
    pthread_mutex_lock(&u->spool->lock);
    int ret = write_locked(u->jobs, u->spool, buf, len, offset);
    pthread_mutex_unlock(&u->spool->lock);
    tell_all(u->jobs);
    return ret < 0 ? ret : (ssize_t)len;
}

static int truncate_locked(struct jobs *jobs, struct spool *s, uint64_t bytes)
{
    if (bytes == s->bytes && !s->fault && !s->broken)
        return 0;
    if (bytes > C1_TEXT_MAX)
        return -EFBIG;
    int ret = prepare_change(jobs, s);
    uint64_t old_bytes = s->bytes;
    if (ret == 0)
        ret = change_size(jobs, s, bytes);
    if (ret < 0)
        return ret;
    spool_reset_reader(jobs, s, false);
    ret = store_spool_truncate(s->fd, bytes);
    if (ret < 0)
        return write_failed(jobs, s, old_bytes, 0, ret);
    if (bytes == 0)
        s->broken = 0;
    return 0;
}

int upload_truncate(struct upload *u, uint64_t bytes)
{
    pthread_mutex_lock(&u->spool->lock);
    int ret = truncate_locked(u->jobs, u->spool, bytes);
    pthread_mutex_unlock(&u->spool->lock);
    tell_all(u->jobs);
    return ret;
}

/* ---- judging ---- */

static int feed_from_spool(struct spool *s, struct c1_reader *reader, uint8_t *buf)
{
    for (uint64_t at = 0; at < s->bytes;) {
        size_t n = min_size(READ_BYTES, (size_t)(s->bytes - at));
        int ret = pread_full(s->fd, buf, n, at);
        if (ret < 0)
            return errmsg_set(&s->why, ret, "cannot read the file back: %s", strerror(-ret));
        ret = c1_reader_feed(reader, buf, n, &s->why);
        if (ret < 0)
            return ret;
        at += n;
    }
    return 0;
}

/* The whole document, from disk. */
static int read_spool(struct jobs *jobs, struct spool *s, struct c1 **c1, struct c1_extra *extra)
{
    struct c1_reader *reader = NULL;
    uint8_t *buf = malloc(READ_BYTES);
    int ret = -ENOMEM;

    pthread_mutex_lock(&jobs->judging); /* bounds memory: one decoded form at a time */
    if (buf)
        ret = c1_reader_create(C1_CHECK_STRICT, jobs->opt.check_workers, &reader);
    if (ret == 0)
        ret = feed_from_spool(s, reader, buf);
    if (ret == 0)
        ret = c1_reader_finish(reader, c1, extra, &s->why);
    c1_reader_destroy(reader);
    pthread_mutex_unlock(&jobs->judging);
    free(buf);
    return ret;
}

static int read_document(struct jobs *jobs, struct spool *s, struct c1 **c1, struct c1_extra *extra)
{
    if (!s->reader || s->fed != s->bytes)
        return read_spool(jobs, s, c1, extra);
    int ret = c1_reader_finish(s->reader, c1, extra, &s->why);
    spool_reset_reader(jobs, s, false);
    return ret;
}

/* SHA-256 over the public inputs of all partitions, canonical little endian. */
static int digest_public_inputs(const struct c1 *c1, uint8_t out[DIGEST_BYTES], struct errmsg *err)
{
    struct public_params p = {.proof = c1_seal_proof(c1),
                              .comm_r = c1_comm_r(c1),
                              .comm_d = c1_comm_d(c1),
                              .replica_id = c1_replica_id(c1),
                              .seed = c1_seed(c1)};
    size_t len = public_inputs_len(c1_size(c1)), total = len * c1_partitions(c1);
    fr_t *inputs = calloc(len, sizeof(*inputs));
    uint8_t *bytes = calloc(total, FR_BYTES), *at = bytes;
    int ret = inputs && bytes ? 0 : -ENOMEM;

    for (uint32_t k = 0; k < c1_partitions(c1) && ret == 0; k++) {
        ret = public_inputs(&p, k, inputs, err);
        for (size_t i = 0; i < len && ret == 0; i++, at += FR_BYTES)
            fr_to_bytes(at, &inputs[i]);
    }
    if (ret == 0)
        SHA256(bytes, total * FR_BYTES, out);
    free(inputs);
    free(bytes);
    return ret;
}

static int describe(const struct c1 *c1, const struct c1_extra *extra, struct job_record *r,
                    struct errmsg *err)
{
    size_t len;

    c1_bincode(c1, &len);
    r->state = JOB_QUEUED;
    r->node = -1;
    r->proof_id = c1_seal_proof(c1)->id;
    r->partitions = c1_partitions(c1);
    r->decoded_bytes = len;
    c1_content_id(c1, r->content_id);
    memcpy(r->comm_r, c1_comm_r(c1), DIGEST_BYTES);
    memcpy(r->comm_d, c1_comm_d(c1), DIGEST_BYTES);
    memcpy(r->replica_id, c1_replica_id(c1), DIGEST_BYTES);
    r->has_sector_number = extra->has_sector_number;
    r->sector_number = extra->sector_number;
    r->has_prover_id = extra->has_prover_id;
    memcpy(r->prover_id, extra->prover_id, DIGEST_BYTES);
    return digest_public_inputs(c1, r->public_inputs, err);
}

/* Writes down the decoded form and syncs both files. */
static int keep(struct jobs *jobs, struct spool *s, const struct c1 *c1)
{
    struct job *job = s->job;
    size_t len;
    const uint8_t *bytes = c1_bincode(c1, &len);

    pthread_mutex_lock(&jobs->lock);
    int ret = job->gone ? -ECANCELED : job_account(jobs, job, s->bytes + len);
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0)
        ret = store_put(jobs->store, job->id, STORE_DECODED, bytes, len);
    if (ret == 0)
        ret = store_spool_sync(s->fd);
    return ret;
}

/* Is the file a C1 that can be proved? Then job->ready says what it is. */
static int examine(struct jobs *jobs, struct spool *s)
{
    struct c1 *c1 = NULL;
    struct c1_extra extra = {0};
    struct job_record *r = calloc(1, sizeof(*r));
    int ret = r ? 0 : -ENOMEM;

    s->why.text[0] = '\0';
    if (ret == 0)
        ret = spool_file(jobs, s);
    if (ret == 0 && s->broken)
        ret = errmsg_set(&s->why, s->broken, "a write failed: %s", strerror(-s->broken));
    if (ret == 0)
        ret = read_document(jobs, s, &c1, &extra);
    if (ret == 0 && jobs->opt.admit)
        ret = jobs->opt.admit(jobs->opt.ctx, c1, &s->why);
    if (ret == 0)
        ret = describe(c1, &extra, r, &s->why);
    if (ret == 0)
        ret = keep(jobs, s, c1);
    c1_destroy(c1);
    if (ret < 0) {
        free(r);
        return ret;
    }
    pthread_mutex_lock(&jobs->lock);
    free(s->job->ready);
    s->job->ready = r;
    pthread_mutex_unlock(&jobs->lock);
    return 0;
}

/* ---- accepting ---- */

/* With lock: fills the record with what the table knows. */
static void complete_record(struct job_record *r, const struct job *job, uint64_t named,
                            const char *name)
{
    r->id = job->id;
    r->named = named;
    copy_name(r->name, name);
    r->uid = job->uid;
    r->gid = job->gid;
    r->mode = job->mode;
    r->priority = (enum job_priority)job->priority;
    r->file_bytes = job->file_bytes;
    r->created_ns = job->created_ns;
    r->accepted_ns = now_ns();
}

/* With lock: the record is on disk; now the table follows. Returns the id of the job that was replaced,
 * or 0. */
static uint64_t commit(struct jobs *jobs, struct job *job, const struct job_record *r, char *name)
{
    struct job *old = table_find(jobs, name);
    uint64_t loser = old && old != job ? old->id : 0;

    if (job->over) {
        job->over->overwriter = NULL;
        job->over = NULL;
    }
    if (loser)
        table_drop(jobs, old);
    job->named = r->named;
    job->accepted = true;
    job->stray_record = false;
    job->accepted_ns = r->accepted_ns;
    job->proof = seal_proof_by_id(r->proof_id);
    job->partitions = r->partitions;
    memcpy(job->content_id, r->content_id, DIGEST_BYTES);
    free(job->ready);
    job->ready = NULL;
    job_set_error(job, NULL);
    if (job->state == JOB_REJECTED) /* by a disk that was full, then */
        job_set_state(jobs, job, JOB_RECEIVING);
    table_name(jobs, job, name);
    tell(jobs, job);
    return loser;
}

/* With disk: the record may be there or not. It must not. */
static void not_accepted(struct jobs *jobs, struct job *job)
{
    bool stray = store_record_remove(jobs->store, job->id) < 0;

    pthread_mutex_lock(&jobs->lock);
    job->stray_record = stray;
    pthread_mutex_unlock(&jobs->lock);
}

/* With disk. A file that was found right becomes a job of this name, for good. */
static int accept_as(struct jobs *jobs, struct spool *s, const char *name)
{
    struct job *job = s->job;
    struct job_record r;
    uint64_t named, loser;
    char *copy = strdup(name);
    int ret = copy ? store_next_id(jobs->store, &named) : -ENOMEM;

    if (ret < 0)
        goto out;
    pthread_mutex_lock(&jobs->lock);
    if (job->gone)
        ret = -ECANCELED;
    else if (!name_may_be_taken(jobs, job, name))
        ret = -EBUSY;
    else {
        r = *job->ready;
        complete_record(&r, job, named, name);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (ret < 0)
        goto out;
    ret = store_record_put(jobs->store, &r);
    if (ret < 0) { /* nothing half registered */
        not_accepted(jobs, job);
        goto out;
    }
    pthread_mutex_lock(&jobs->lock);
    loser = commit(jobs, job, &r, copy);
    pthread_mutex_unlock(&jobs->lock);
    copy = NULL; /* now the table's */
    if (loser)
        forget_on_disk(jobs, loser);
out:
    free(copy);
    return ret;
}

/* The name that the job has now; a rename may change it at any time before. */
static int accept_under_its_name(struct jobs *jobs, struct spool *s)
{
    char name[JOB_NAME_MAX + 1];

    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    copy_name(name, s->job->name);
    pthread_mutex_unlock(&jobs->lock);
    int ret = accept_as(jobs, s, name);
    pthread_mutex_unlock(&jobs->disk);
    return ret;
}

/* Another attempt may go better: nothing is wrong with the file. */
static bool is_passing(int code)
{
    return code != -EBADMSG && code != -EINVAL && code != -EFBIG;
}

static int judge_locked(struct jobs *jobs, struct spool *s)
{
    bool temporary = spool_is_temporary(jobs, s);

    if (spool_gone(jobs, s))
        return -ECANCELED;
    if (s->bytes == 0 && !s->judged)
        return 0;
    if (s->judged)
        return temporary ? 0 : s->verdict;
    int ret = examine(jobs, s);
    if (temporary) {
        s->judged = !is_passing(ret);
        return is_passing(ret) ? ret : 0;
    }
    if (ret == 0)
        ret = accept_under_its_name(jobs, s);
    if (ret < 0) {
        reject(jobs, s, ret);
        s->judged = !is_passing(ret);
        return ret;
    }
    s->judged = true;
    s->verdict = 0;
    return 0;
}

int upload_judge(struct upload *u)
{
    pthread_mutex_lock(&u->spool->lock);
    int ret = judge_locked(u->jobs, u->spool);
    pthread_mutex_unlock(&u->spool->lock);
    tell_all(u->jobs);
    return ret;
}

int upload_rename(struct upload *u, const char *name)
{
    struct jobs *jobs = u->jobs;
    struct spool *s = u->spool;
    int ret = 0;

    pthread_mutex_lock(&s->lock);
    if (s->job->accepted)
        ret = -EBUSY;
    else if (!s->job->ready) /* set and taken away under the spool's lock */
        ret = examine(jobs, s);
    if (ret == 0) {
        pthread_mutex_lock(&jobs->disk);
        ret = accept_as(jobs, s, name);
        pthread_mutex_unlock(&jobs->disk);
    } else {
        pthread_mutex_lock(&jobs->lock);
        job_set_error(s->job, s->why.text[0] ? s->why.text : strerror(-ret));
        tell(jobs, s->job);
        pthread_mutex_unlock(&jobs->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return ret;
}

/* ---- closing ---- */

/* With lock: an upload over an ended job came to nothing; the job says why. */
static void give_up_overwriting(struct jobs *jobs, struct job *writer, bool rejected)
{
    struct job *old = writer->over;

    job_set_error(old, rejected ? writer->error : NULL);
    table_drop(jobs, writer); /* tells of the old one */
}

/* What is left of a file of a final name that was not accepted: an error, or nothing. */
static void settle_refused(struct jobs *jobs, struct spool *s)
{
    struct job *job = s->job;

    pthread_mutex_lock(&jobs->lock);
    bool rejected = job->state == JOB_REJECTED && !s->aborted;
    if (job->gone)
        ; /* removed while it was open */
    else if (job->over)
        give_up_overwriting(jobs, job, rejected);
    else if (rejected) {
        job->file_bytes = 0;
        job_account(jobs, job, 0);
    } else
        table_drop(jobs, job);
    pthread_mutex_unlock(&jobs->lock);
}

/* A file of a temporary name that was written over an ended job takes its place, as files do. Returns
 * true when there is no file: nothing was written. */
static bool settle_temporary(struct jobs *jobs, struct spool *s)
{
    struct job *job = s->job;
    uint64_t loser = 0;

    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    struct job *old = job->gone ? NULL : job->over;
    bool empty = old && s->bytes == 0;
    if (empty) {
        table_drop(jobs, job);
    } else if (old) {
        loser = old->id;
        old->overwriter = NULL;
        job->over = NULL;
        table_drop(jobs, old);
        table_name(jobs, job, NULL);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (loser)
        forget_on_disk(jobs, loser);
    pthread_mutex_unlock(&jobs->disk);
    return empty;
}

/* The last writer has gone. Returns true when the directory is to be removed. */
static bool settle(struct jobs *jobs, struct spool *s)
{
    struct job *job = s->job;

    if (spool_gone(jobs, s))
        return true;
    if (!job->accepted && spool_is_temporary(jobs, s))
        return settle_temporary(jobs, s);
    if (!job->accepted && !s->aborted && !s->judged && s->verdict == 0)
        judge_locked(jobs,
                     s); /* written since the last FLUSH; what a FLUSH refused stays refused */
    if (!job->accepted) {
        settle_refused(jobs, s);
        return true;
    }
    pthread_mutex_lock(&jobs->disk);
    if (!spool_gone(jobs, s))
        run_start(jobs, job, true);
    pthread_mutex_unlock(&jobs->disk);
    return false;
}

static void spool_close(struct jobs *jobs, struct spool *s)
{
    uint64_t id = s->job->id;

    pthread_mutex_lock(&s->lock);
    bool remove = settle(jobs, s);
    spool_reset_reader(jobs, s, false);
    store_spool_close(s->fd);
    if (remove)
        forget_on_disk(jobs, id);
    pthread_mutex_unlock(&s->lock);

    pthread_mutex_lock(&jobs->lock);
    spool_give_place_back(jobs, s);
    s->job->spool = NULL;
    if (!s->job->gone)
        tell(jobs, s->job); /* a place is free */
    spool_free(s);
    pthread_cond_broadcast(&jobs->closed);
    pthread_mutex_unlock(&jobs->lock);
}

void upload_close(struct upload *u, bool aborted)
{
    struct jobs *jobs = u->jobs;
    struct spool *s = u->spool;

    if (aborted) {
        pthread_mutex_lock(&s->lock);
        s->aborted = true;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&jobs->lock);
    bool last = --s->opens == 0;
    s->closing = last;
    pthread_mutex_unlock(&jobs->lock);
    if (last)
        spool_close(jobs, s);
    free(u);
    tell_all(jobs);
}
