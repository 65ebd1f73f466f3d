/*
 * What a file is. It has been read while it arrived, or it is read back from disk, a piece at a time,
 * so that neither one large file nor many keep an intake thread for long. What is found is remembered:
 * with the spool while the file is open, with the job of a temporary name until it is written again; a
 * rename only looks it up.
 *
 * What is right is written down decoded; what is right and has a final name is accepted: that is, its
 * record is put.
 */
#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs_internal.h"
#include "numa/circuit/graph.h"

#define PIECE_BYTES ((size_t)1 << 20) /* of a file that is read back: 10 to 30 ms */

/* ---- reading back ---- */

static int reading_begin(struct jobs *jobs, struct spool *s)
{
    if (s->reading)
        return 0;
    int ret = c1_reader_create(C1_CHECK_STRICT, jobs->opt.check_workers, &s->reading);
    if (ret < 0)
        return ret;
    s->read_to = 0;
    pthread_mutex_lock(&jobs->lock);
    if (jobs->readings == READINGS_MAX) /* bounds memory: a decoded form for each */
        s->read_in_one_go = true;
    jobs->readings += !s->read_in_one_go;
    pthread_mutex_unlock(&jobs->lock);
    return 0;
}

void reading_end(struct jobs *jobs, struct spool *s, bool interrupted)
{
    if (!s->reading)
        return;
    c1_reader_destroy(s->reading);
    s->reading = NULL;
    pthread_mutex_lock(&jobs->lock);
    jobs->readings -= !s->read_in_one_go;
    pthread_mutex_unlock(&jobs->lock);
    s->read_in_one_go = interrupted;
}

/* The next piece of the file, or all of it. -EINPROGRESS: there is more. */
static int read_on(struct spool *s)
{
    uint8_t *buf = malloc(PIECE_BYTES);
    int ret = buf ? 0 : -ENOMEM;

    while (ret == 0 && s->read_to < s->bytes) {
        size_t n = min_size(PIECE_BYTES, (size_t)(s->bytes - s->read_to));
        ret = pread_full(s->fd, buf, n, s->read_to);
        if (ret < 0)
            errmsg_set(&s->why, ret, "cannot read the file back: %s", strerror(-ret));
        else
            ret = c1_reader_feed(s->reading, buf, n, &s->why);
        s->read_to += n;
        if (ret == 0 && s->read_to < s->bytes && !s->read_in_one_go)
            ret = -EINPROGRESS;
    }
    free(buf);
    return ret;
}

static int read_back(struct jobs *jobs, struct spool *s, struct c1 **c1, struct c1_extra *extra)
{
    int ret = reading_begin(jobs, s);

    if (ret == 0)
        ret = read_on(s);
    if (ret == 0)
        ret = c1_reader_finish(s->reading, c1, extra, &s->why);
    if (ret != -EINPROGRESS)
        reading_end(jobs, s, false);
    return ret;
}

static int read_document(struct jobs *jobs, struct spool *s, struct c1 **c1, struct c1_extra *extra)
{
    if (!s->reader || s->fed != s->bytes)
        return read_back(jobs, s, c1, extra);
    int ret = c1_reader_finish(s->reader, c1, extra, &s->why);
    spool_reset_reader(jobs, s, false);
    return ret;
}

/* ---- what is found ---- */

/* SHA-256 over the public inputs of all partitions, canonical little endian. */
static int digest_public_inputs(const struct c1 *c1, uint8_t out[DIGEST_BYTES], struct errmsg *err)
{
    struct public_params p = public_params_of(c1);
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
    r->test = c1_test_document(c1) != NULL;
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
    if (ret < 0 && ret != -ECANCELED)
        errmsg_set(&s->why, ret, "%s: %s", strerror(-ret), jobs->totals.refusal);
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0)
        ret = disk_said(jobs, store_put(jobs->store, job->id, STORE_DECODED, bytes, len));
    if (ret < 0)
        return ret;
    ret = disk_said(jobs, store_spool_sync(s->fd));
    if (ret < 0) { /* the next sync would say that all is well, and what was written may be gone */
        s->broken = ret;
        s->broken_at = UINT64_MAX;
    }
    return ret;
}

/* The document is a C1. Can it be proved? Then job->ready says what it is. */
static int approve(struct jobs *jobs, struct spool *s, const struct c1 *c1,
                   const struct c1_extra *extra)
{
    struct job_record *r = calloc(1, sizeof(*r));
    int ret = r ? 0 : -ENOMEM;

    if (ret == 0 && jobs->opt.admit)
        ret = jobs->opt.admit(jobs->opt.ctx, c1, &s->why);
    if (ret == 0)
        ret = describe(c1, extra, r, &s->why);
    if (ret == 0)
        ret = keep(jobs, s, c1);
    if (ret < 0) {
        free(r);
        return ret;
    }
    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    free(s->job->ready);
    s->job->ready = r;
    pthread_mutex_unlock(&jobs->lock);
    pthread_mutex_unlock(&jobs->disk);
    return 0;
}

/* Is the file a C1 that can be proved? -EINPROGRESS: ask again. */
static int examine(struct jobs *jobs, struct spool *s)
{
    struct c1 *c1 = NULL;
    struct c1_extra extra = {0};

    if (s->fault) /* which `why` tells of */
        return s->fault;
    if (s->broken && s->why.text[0] == '\0') /* of an earlier write than the last */
        errmsg_set(&s->why, s->broken, "a write to %s failed: %s", jobs->opt.store_dir,
                   strerror(-s->broken));
    if (s->broken)
        return s->broken;
    s->why.text[0] = '\0';
    int ret = spool_file(jobs, s);
    if (ret == 0)
        ret = read_document(jobs, s, &c1, &extra);
    if (ret == 0)
        ret = approve(jobs, s, c1, &extra);
    c1_destroy(c1);
    return ret;
}

bool is_passing(int code)
{
    return code < 0 && code != -EBADMSG && code != -EINVAL && code != -EFBIG && code != -EOPNOTSUPP;
}

/* With lock. */
static void remember_refusal(struct job *job, int code, const char *why)
{
    free(job->refusal);
    job->refusal = strdup(why); /* without memory the errno must do */
    job->refused = code;
}

static void mark_rejected(struct jobs *jobs, struct job *job, const char *why)
{
    job_set_error(job, why);
    job->ended_ns = now_ns();
    if (job->state == JOB_RECEIVING)
        job_set_state(jobs, job, JOB_REJECTED);
}

int refuse(struct jobs *jobs, struct spool *s, int code)
{
    struct job *job = s->job;

    if (s->why.text[0] == '\0' && is_of_disk(code))
        errmsg_set(&s->why, code, "the store %s: %s", jobs->opt.store_dir, strerror(-code));
    else if (s->why.text[0] == '\0')
        errmsg_set(&s->why, code, "%s", strerror(-code));
    pthread_mutex_lock(&jobs->lock);
    bool temporary = job_name_is_temporary(job->name);
    if (job->accepted && !job->gone)
        code = 0; /* renames have made a job of it meanwhile, under another name */
    else if (temporary)
        remember_refusal(job, code, s->why.text);
    else if (!job->gone)
        mark_rejected(jobs, job, s->why.text);
    pthread_mutex_unlock(&jobs->lock);
    s->judged = !is_passing(code);
    s->verdict = code;
    return temporary && !is_passing(code) ? 0 : code;
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
    free(job->name_on_disk);
    job->name_on_disk = NULL;
    job->accepted = true;
    jobs->totals.disk_refused_ms = 0;
    quota_end(jobs, job);
    job->stray_record = false;
    job->accepted_ns = r->accepted_ns;
    job->proof = seal_proof_by_id(r->proof_id);
    job->test = r->test;
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
static int accept_as(struct jobs *jobs, struct job *job, const char *name)
{
    struct job_record r;
    uint64_t named = 0, loser;
    char *copy = strdup(name);
    int ret = copy ? behind_settle_name(jobs, job, name) : -ENOMEM;

    if (ret == 0)
        ret = store_next_id(jobs->store, &named);
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
    ret = disk_said(jobs, store_record_put(jobs->store, &r));
    if (ret < 0) { /* nothing half registered */
        not_accepted(jobs, job);
        goto out;
    }
    pthread_mutex_lock(&jobs->lock);
    bool gone = job->gone, behind = job->removed_behind; /* meanwhile, in memory */
    loser = gone ? 0 : commit(jobs, job, &r, copy);
    pthread_mutex_unlock(&jobs->lock);
    if (gone) {
        if (!behind)
            forget_on_disk(jobs, job->id);
        ret = -ECANCELED;
        goto out;
    }
    copy = NULL; /* now the table's */
    if (loser)
        forget_on_disk(jobs, loser);
out:
    free(copy);
    return ret;
}

/* The name that the job has now, if it is a final one; a rename may have changed it, and accepted the job. */
static int accept_under_its_name(struct jobs *jobs, struct job *job)
{
    char name[JOB_NAME_MAX + 1];
    int ret = 0;

    pthread_mutex_lock(&jobs->lock);
    copy_name(name, job->name);
    pthread_mutex_unlock(&jobs->lock);
    behind_make_way(jobs, name, name);
    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    copy_name(name, job->name);
    give_begin(jobs, job, name);
    pthread_mutex_unlock(&jobs->lock);
    if (!job->accepted && !job_name_is_temporary(name))
        ret = accept_as(jobs, job, name);
    give_end(jobs);
    pthread_mutex_unlock(&jobs->disk);
    return ret;
}

int judge_locked(struct jobs *jobs, struct spool *s)
{
    if (spool_gone(jobs, s))
        return -ECANCELED;
    if (s->bytes == 0 && !s->judged && !s->broken)
        return 0;
    if (!s->judged) {
        int ret = examine(jobs, s);
        if (ret == -EINPROGRESS)
            return ret;
        if (ret < 0)
            return refuse(jobs, s, ret);
        s->judged = true;
        s->verdict = 0;
    }
    if (s->verdict < 0)
        return spool_is_temporary(jobs, s) ? 0 : s->verdict;
    int ret = accept_under_its_name(jobs, s->job);
    return ret < 0 ? refuse(jobs, s, ret) : 0;
}

static int renamed_verdict(struct job *job)
{
    if (job->file_bytes == 0) {
        job_set_error(job, "the file is empty");
        return -EBADMSG;
    }
    if (job->ready)
        return 0;
    if (!job->refused)
        return job->spool && !job->spool->closing ? -EBUSY : -EAGAIN;
    job_set_error(job, job->refusal ? job->refusal : strerror(-job->refused));
    return job->refused == -EINVAL ? -EOPNOTSUPP : job->refused;
}

/* With lock: as a refused upload of this name leaves it. Without a number or memory only the file that was to have the name says why. */
static void leave_error(struct jobs *jobs, const struct job *job, const char *name)
{
    struct job *old = table_find(jobs, name), *rejected;
    uint64_t id;

    if (old && job_state_has_ended((enum job_state)old->state)) {
        job_set_error(old, job->error);
        tell(jobs, old);
        return;
    }
    if ((old && old->state != JOB_REJECTED) || jobs->totals.by_state[JOB_REJECTED] >= 2 * REJECTED_MAX ||
        store_quick_id(jobs->store, &id) < 0)
        return;
    rejected = table_add(jobs, id, name);
    if (!rejected)
        return;
    if (old)
        table_drop(jobs, old);
    rejected->uid = job->uid;
    rejected->gid = job->gid;
    rejected->mode = job->mode;
    rejected->created_ns = now_ns();
    table_name(jobs, rejected, NULL);
    mark_rejected(jobs, rejected, job->error);
}

int submission_refused(struct jobs *jobs, struct job *job, const char *name)
{
    int ret = renamed_verdict(job);

    if (ret == 0 || ret == -EBUSY || ret == -EAGAIN) /* the last two: nothing is known yet */
        return ret;
    leave_error(jobs, job, name);
    tell(jobs, job);
    return ret;
}

int accept_renamed(struct jobs *jobs, struct job *job, const char *name)
{
    pthread_mutex_lock(&jobs->lock);
    int ret = job->gone ? -ENOENT : submission_refused(jobs, job, name);
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0)
        ret = accept_as(jobs, job, name);
    if (ret < 0)
        return ret;
    /* Not before: until it is accepted somebody may open it for writing. */
    pthread_mutex_lock(&jobs->lock);
    bool open = job->spool && !job->spool->settled;
    pthread_mutex_unlock(&jobs->lock);
    if (!open)
        enqueue(jobs, job);
    return 0;
}

/* ---- entering the queue ---- */

static void start(struct jobs *jobs, struct job *job, bool checked)
{
    if (run_start(jobs, job, checked) == 0)
        return;
    pthread_mutex_lock(&jobs->lock);
    jobs->unstarted = true; /* the job is there for good; jobs_tick tries again */
    pthread_mutex_unlock(&jobs->lock);
}

void enqueue(struct jobs *jobs, struct job *job)
{
    start(jobs, job, true);
}

void enqueue_found(struct jobs *jobs, struct job *job)
{
    start(jobs, job, false);
}

/* With lock: accepted, nobody has it open, and yet it waits for nothing. */
static struct job *next_unstarted(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->len; i++) {
        struct job *job = jobs->by_id[i];
        if (job->accepted && job->state == JOB_RECEIVING && !job->run && !job->gone &&
            (!job->spool || job->spool->settled))
            return job;
    }
    return NULL;
}

void start_accepted(struct jobs *jobs)
{
    int ret = 0;

    while (ret == 0) {
        pthread_mutex_lock(&jobs->lock);
        struct job *job = jobs->unstarted ? next_unstarted(jobs) : NULL;
        jobs->unstarted = job != NULL;
        pthread_mutex_unlock(&jobs->lock);
        if (!job)
            break;
        ret = run_start(jobs, job, true);
    }
}
