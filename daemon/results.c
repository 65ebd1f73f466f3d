/*
 * What ended jobs left on disk, and what is done where the disk gives it back damaged. Each is checked when
 * it is read and when the service starts. A proof is put together again from the journal, a report from record
 * and journal. A proof that is in neither is proved again: the decoded form is made from the C1 file, and
 * the job goes back into the queue. Only where that is damaged too does the job fail, and says so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/jobs_internal.h"
#include "daemon/log.h"
#include "daemon/report.h"

#define LOG_MODULE LOG_JOBS

#define READ_BYTES ((size_t)256 << 10)
#define PROOF_BYTES sizeof(((struct partition_entry *)0)->proof)

/* The disk has it not, or not as it was written: it may be made again. */
static bool is_lost(int code)
{
    return code == -EBADMSG || code == -ENOENT || code == -EIO;
}

void count_repaired(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->totals.repaired++;
    pthread_mutex_unlock(&jobs->lock);
}

static void log_repaired(struct jobs *jobs, uint64_t id, const char *what)
{
    log_err(log_u64("job", id), log_str("msg", what));
    count_repaired(jobs);
}

/* With disk: a copy of what is known of a job that is in this state. False: it is gone, or in another. */
static bool still_is(struct jobs *jobs, uint64_t id, enum job_state state, struct job *out)
{
    pthread_mutex_lock(&jobs->lock);
    const struct job *job = table_get(jobs, id);
    bool yes = job && !job->gone && job->state == state;
    if (yes)
        *out = *job; /* for its plain fields */
    pthread_mutex_unlock(&jobs->lock);
    return yes;
}

static int put_and_sync(struct jobs *jobs, uint64_t id, enum store_file file, const void *bytes,
                        size_t len)
{
    int ret = store_put(jobs->store, id, file, bytes, len);

    return ret < 0 ? ret : store_sync(jobs->store, id);
}

/* ---- proofs ---- */

static int read_proof(struct jobs *jobs, uint64_t id, uint32_t partitions, uint8_t **bytes,
                      size_t *len)
{
    uint8_t *found = NULL;
    size_t found_len = 0;
    int ret = store_get(jobs->store, id, STORE_PROOF, &found, &found_len);

    if (ret == 0 && found_len != partitions * PROOF_BYTES)
        ret = -EBADMSG;
    if (ret < 0) {
        free(found);
        return ret;
    }
    *bytes = found;
    *len = found_len;
    return 0;
}

/* -ENODATA where the journal has not all of it. */
static int proof_of_journal(struct jobs *jobs, const struct job *job, uint8_t **bytes, size_t *len)
{
    struct journal j = {0};
    size_t have = 0;
    int ret = journal_read(jobs, job->id, job->content_id, job->partitions, &j);
    uint8_t *proof = calloc(job->partitions, PROOF_BYTES);
    bool *there = calloc(job->partitions, sizeof(*there));

    if (ret == 0 && (!proof || !there))
        ret = -ENOMEM;
    for (size_t i = 0; i < j.len && ret == 0; i++) {
        uint32_t k = j.entries[i].partition;
        memcpy(proof + k * PROOF_BYTES, j.entries[i].proof, PROOF_BYTES);
        have += !there[k];
        there[k] = true;
    }
    if (ret == 0 && have < job->partitions)
        ret = -ENODATA;
    if (ret == 0) {
        *bytes = proof;
        *len = job->partitions * PROOF_BYTES;
        proof = NULL; /* now the caller's */
    }
    free(j.entries);
    free(there);
    free(proof);
    return ret;
}

/* With disk. The proof is as good when it cannot be written down now: the next reader tries again. */
static int repair_proof(struct jobs *jobs, const struct job *job, uint8_t **bytes, size_t *len)
{
    int ret = proof_of_journal(jobs, job, bytes, len);

    if (ret == 0) {
        if (put_and_sync(jobs, job->id, STORE_PROOF, *bytes, *len) == 0)
            log_repaired(jobs, job->id,
                         "its proof was damaged on disk: put together again from its journal");
        return 0;
    }
    if (ret != -ENODATA && !is_lost(ret))
        return ret;
    if (!job->proof_lost)
        log_err(
            log_u64("job", job->id),
            log_str("msg", "its proof and its journal are damaged on disk: it is proved again"));
    pthread_mutex_lock(&jobs->lock);
    struct job *entry = table_get(jobs, job->id);
    if (entry)
        entry->proof_lost = true;
    pthread_mutex_unlock(&jobs->lock);
    return -EIO;
}

int jobs_proof(struct jobs *jobs, uint64_t id, uint8_t **bytes, size_t *len)
{
    struct job_info info;
    struct job job;

    if (jobs_get(jobs, id, &info) < 0 || info.state != JOB_DONE)
        return -ENOENT;
    int ret = read_proof(jobs, id, info.partitions, bytes, len);
    if (!is_lost(ret))
        return ret;
    pthread_mutex_lock(&jobs->disk);
    if (!still_is(jobs, id, JOB_DONE, &job))
        ret = -ENOENT;
    else if ((ret = read_proof(jobs, id, job.partitions, bytes, len)) < 0)
        ret = repair_proof(jobs, &job, bytes, len);
    pthread_mutex_unlock(&jobs->disk);
    return ret;
}

/* ---- reports and errors ---- */

/* With disk. The text of a job that failed, or NULL. */
static char *failure_of(struct jobs *jobs, const struct job_record *r)
{
    uint8_t *text = NULL;
    size_t len;

    if (r->state != JOB_FAILED || store_get(jobs->store, r->id, STORE_ERROR, &text, &len) < 0)
        return NULL;
    return (char *)text;
}

/* With disk. */
static int repair_report(struct jobs *jobs, const struct job *job, char **json)
{
    struct job_record r;
    struct journal j = {0};
    int ret = store_record_get(jobs->store, job->id, &r);

    if (ret < 0)
        return ret;
    journal_read(jobs, job->id, job->content_id, job->partitions, &j); /* or what there is of it */
    char *failure = failure_of(jobs, &r);
    ret = report_make(&r, j.entries, j.len, failure, json);
    free(failure);
    free(j.entries);
    if (ret == 0 && put_and_sync(jobs, job->id, STORE_REPORT, *json, strlen(*json)) == 0)
        log_repaired(jobs, job->id,
                     "its report was damaged on disk: made again from record and journal");
    return ret;
}

/* So that `ls -l` need not look at the disk. 0: as it is. */
static void note_bytes(struct jobs *jobs, const struct job_info *info, size_t report, size_t error)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = table_get(jobs, info->id);
    if (job && job->state == (uint8_t)info->state && job->ended_ns == info->ended_ns) {
        job->report_bytes = report ? (uint32_t)report : job->report_bytes;
        job->error_bytes = error ? (uint32_t)error : job->error_bytes;
    }
    pthread_mutex_unlock(&jobs->lock);
}

int jobs_report(struct jobs *jobs, uint64_t id, char **json)
{
    struct job_info info;
    struct job job;
    size_t len = 0;

    if (jobs_get(jobs, id, &info) < 0 || (info.state != JOB_DONE && info.state != JOB_FAILED))
        return -ENOENT;
    int ret = store_get(jobs->store, id, STORE_REPORT, (uint8_t **)json, &len);
    if (is_lost(ret)) {
        pthread_mutex_lock(&jobs->disk);
        ret = still_is(jobs, id, info.state, &job) ? repair_report(jobs, &job, json) : -ENOENT;
        pthread_mutex_unlock(&jobs->disk);
        len = ret == 0 ? strlen(*json) : 0;
    }
    if (ret == 0)
        note_bytes(jobs, &info, len, 0);
    return ret;
}

/* A copy of the error that is kept in memory, with its newline, or NULL. */
static char *error_in_memory(struct jobs *jobs, uint64_t id)
{
    char *text = NULL;

    pthread_mutex_lock(&jobs->lock);
    struct job *job = table_get(jobs, id);
    if (job && job->error && asprintf(&text, "%s\n", job->error) < 0)
        text = NULL;
    pthread_mutex_unlock(&jobs->lock);
    return text;
}

/* With disk. */
static int repair_error(struct jobs *jobs, uint64_t id, char **text)
{
    *text = strdup("the job failed; the reason was damaged on disk\n");
    if (!*text)
        return -ENOMEM;
    if (put_and_sync(jobs, id, STORE_ERROR, *text, strlen(*text)) == 0)
        log_repaired(jobs, id, "the reason why it failed was damaged on disk");
    return 0;
}

int jobs_error(struct jobs *jobs, uint64_t id, char **text)
{
    struct job_info info;
    struct job job;
    size_t len;
    char *in_memory = error_in_memory(jobs, id);

    if (in_memory) {
        *text = in_memory;
        return 0;
    }
    if (jobs_get(jobs, id, &info) < 0 || info.state != JOB_FAILED)
        return -ENOENT;
    int ret = store_get(jobs->store, id, STORE_ERROR, (uint8_t **)text, &len);
    if (is_lost(ret)) {
        pthread_mutex_lock(&jobs->disk);
        ret = still_is(jobs, id, JOB_FAILED, &job) ? repair_error(jobs, id, text) : -ENOENT;
        pthread_mutex_unlock(&jobs->disk);
    }
    if (ret == 0)
        note_bytes(jobs, &info, 0, strlen(*text));
    return ret;
}

/* ---- proving again ---- */

static int feed_file(int fd, struct c1_reader *reader, uint8_t *buf, struct errmsg *err)
{
    uint64_t at = 0;

    for (;;) {
        ssize_t n = pread(fd, buf, READ_BYTES, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errmsg_set(err, -errno, "cannot read it: %s", strerror(errno)) : 0;
        int ret = c1_reader_feed(reader, buf, (size_t)n, err);
        if (ret < 0)
            return ret;
        at += (uint64_t)n;
    }
}

static int decode_file(int fd, struct c1 **out, struct errmsg *err)
{
    struct c1_reader *reader = NULL;
    struct c1_extra extra;
    uint8_t *buf = malloc(READ_BYTES);
    int ret = buf ? c1_reader_create(C1_CHECK_FORM, NULL, &reader) : -ENOMEM;

    if (ret == 0)
        ret = feed_file(fd, reader, buf, err);
    if (ret == 0)
        ret = c1_reader_finish(reader, out, &extra, err);
    c1_reader_destroy(reader);
    free(buf);
    return ret;
}

/* The C1 as the file has it, which was checked in every way when it had this content id. */
static int read_c1_again(struct jobs *jobs, uint64_t id, const uint8_t content_id[DIGEST_BYTES],
                         struct c1 **out, struct errmsg *err)
{
    uint8_t found[DIGEST_BYTES];
    struct c1 *c1 = NULL;
    int fd = -1;
    int ret = store_open_file(jobs->store, id, STORE_C1, &fd);

    if (ret < 0)
        return errmsg_set(err, ret, "cannot open it: %s", strerror(-ret));
    ret = decode_file(fd, &c1, err);
    store_spool_close(fd);
    if (ret < 0)
        return ret;
    c1_content_id(c1, found);
    if (memcmp(found, content_id, DIGEST_BYTES) != 0) {
        c1_destroy(c1);
        return errmsg_set(err, -EBADMSG, "its content is not what was accepted");
    }
    *out = c1;
    return 0;
}

static int put_decoded(struct jobs *jobs, uint64_t id, const struct c1 *c1)
{
    size_t len;
    const uint8_t *bytes = c1_bincode(c1, &len);

    return put_and_sync(jobs, id, STORE_DECODED, bytes, len);
}

int decoded_again(struct jobs *jobs, uint64_t id, const uint8_t content_id[DIGEST_BYTES])
{
    struct c1 *c1 = NULL;
    int ret = read_c1_again(jobs, id, content_id, &c1, NULL);

    if (ret < 0)
        return ret;
    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    const struct job *job = table_get(jobs, id);
    ret = job && !job->gone ? 0 : -ENOENT;
    pthread_mutex_unlock(&jobs->lock);
    if (ret == 0)
        ret = put_decoded(jobs, id, c1);
    pthread_mutex_unlock(&jobs->disk);
    c1_destroy(c1);
    if (ret == 0)
        log_repaired(jobs, id, "its decoded form was damaged on disk: made again from the file");
    return ret;
}

/* With disk and lock. */
static void show_record(struct jobs *jobs, struct job *job, const struct job_record *r)
{
    job->partitions_done = r->partitions_done;
    job->node = r->node;
    job->same_as = r->same_as;
    job->insecure = r->insecure;
    job->started_ns = r->started_ns;
    job->ended_ns = r->ended_ns;
    job->proof_lost = false;
    job_set_state(jobs, job, r->state);
}

/* With disk: what a job becomes whose proof is lost, on disk and in the table. */
static int replace_end(struct jobs *jobs, uint64_t id, struct job_record *r)
{
    int ret = store_record_put(jobs->store, r);

    if (ret < 0)
        return ret;
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, id);
    if (job)
        show_record(jobs, job, r);
    pthread_mutex_unlock(&jobs->lock);
    return job ? 0 : -ENOENT; /* removed meanwhile, and soon on disk */
}

/* With disk. */
static int back_to_queue(struct jobs *jobs, struct job_record *r, const struct c1 *c1)
{
    int ret = put_decoded(jobs, r->id, c1);

    r->state = JOB_QUEUED;
    r->partitions_done = 0;
    r->node = -1;
    r->same_as = 0;
    r->insecure = false;
    r->started_ns = r->ended_ns = 0;
    if (ret == 0)
        ret = replace_end(jobs, r->id, r);
    if (ret < 0)
        return ret;
    pthread_mutex_lock(&jobs->lock);
    struct job *job = live_job(jobs, r->id);
    if (job) {
        job_get(job);
        job->disk_bytes += r->decoded_bytes; /* whatever the limit is */
        jobs->totals.store_bytes += r->decoded_bytes;
        jobs->totals.repaired++;
    }
    pthread_mutex_unlock(&jobs->lock);
    if (!job)
        return -ENOENT;
    ret = run_start(jobs, job, true);
    pthread_mutex_lock(&jobs->lock);
    job_put(job);
    pthread_mutex_unlock(&jobs->lock);
    return ret;
}

/* With disk. */
static int end_without_proof(struct jobs *jobs, struct job_record *r, const struct errmsg *why)
{
    char text[1024], *json = NULL;

    log_err(log_u64("job", r->id), log_str("name", r->name),
            log_str("msg", "its proof is lost, and the file it was made from"),
            log_str("error", why->text));
    snprintf(text, sizeof(text),
             "the proof was damaged on disk, and so was the file to prove it from again: %s\n",
             why->text);
    r->state = JOB_FAILED;
    r->partitions_done = 0;
    int ret = report_make(r, NULL, 0, text, &json);
    if (ret == 0)
        ret = store_put(jobs->store, r->id, STORE_REPORT, json, strlen(json));
    if (ret == 0)
        ret = store_put(jobs->store, r->id, STORE_ERROR, text, strlen(text));
    if (ret == 0)
        ret = replace_end(jobs, r->id, r);
    const struct job_info info = {.id = r->id, .state = r->state, .ended_ns = r->ended_ns};
    if (ret == 0)
        note_bytes(jobs, &info, strlen(json), strlen(text));
    free(json);
    return ret;
}

/* What the file's bytes are will not change. */
static bool is_for_good(int code)
{
    return code == -EBADMSG || code == -EINVAL || code == -EFBIG || code == -ENOENT;
}

static int prove_again(struct jobs *jobs, const struct job *lost)
{
    struct c1 *c1 = NULL;
    struct errmsg err = {""};
    struct job_record r;
    struct job job;
    int found = read_c1_again(jobs, lost->id, lost->content_id, &c1, &err);

    if (found < 0 && !is_for_good(found))
        return found; /* later */
    pthread_mutex_lock(&jobs->disk);
    int ret = still_is(jobs, lost->id, JOB_DONE, &job) && job.proof_lost ? 0 : -ENOENT;
    if (ret == 0)
        ret = store_record_get(jobs->store, lost->id, &r);
    if (ret == 0)
        ret = found == 0 ? back_to_queue(jobs, &r, c1) : end_without_proof(jobs, &r, &err);
    pthread_mutex_unlock(&jobs->disk);
    c1_destroy(c1);
    return ret;
}

/* With lock: a copy of the next job whose proof is lost. Nobody begins to write over one (upload_open); a
 * writer that has begun may end first. */
static bool next_lost(struct jobs *jobs, uint64_t after, struct job *out)
{
    for (size_t i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->by_id[i];
        if (job->id > after && job->proof_lost && !job->gone && !job->overwriter) {
            *out = *job;
            return true;
        }
    }
    return false;
}

void results_retry(struct jobs *jobs)
{
    struct job job = {.id = 0};
    bool more = true;

    while (more) {
        pthread_mutex_lock(&jobs->lock);
        more = next_lost(jobs, job.id, &job);
        pthread_mutex_unlock(&jobs->lock);
        if (more)
            prove_again(jobs, &job);
    }
}

void results_check(struct jobs *jobs)
{
    uint8_t *proof;
    char *text;
    size_t len;

    for (size_t i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->by_id[i];
        if (job->state == JOB_DONE && jobs_proof(jobs, job->id, &proof, &len) == 0)
            free(proof);
        if (jobs_report(jobs, job->id, &text) == 0)
            free(text);
        if (jobs_error(jobs, job->id, &text) == 0)
            free(text);
    }
    results_retry(jobs);
}
