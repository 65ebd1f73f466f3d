/*
 * What engines do. A run is one computation; jobs of the same content share it. The first of them is
 * its home: engines read the decoded form from the home's directory, and finished partitions are
 * journalled there. When the home is removed, the next one becomes home and gets a journal of its own
 * first. A content that has been proved already needs no engine: its partitions are taken over and the
 * job ends at once.
 *
 * An engine knows a partition by the id that was home when it took it. That id may have left since; the
 * result is as good as any other, for what is proved is the content.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs_internal.h"
#include "daemon/log.h"
#include "daemon/report.h"

#define LOG_MODULE LOG_JOBS

#define SYNCERS 16 /* threads that wait for the disk: it makes few syncs of many at the same time */

/* For the queue's order: of a clock that nobody sets. */
static bool in_engine(const struct slot *slot)
{
    return slot->state == SLOT_TAKEN || slot->state == SLOT_LOADING ||
           slot->state == SLOT_SYNTHESIZING || slot->state == SLOT_PROVING;
}

/* ---- runs (with lock) ---- */

static struct run *run_of_content(struct jobs *jobs, const uint8_t id[DIGEST_BYTES])
{
    struct run *run = jobs->runs;

    while (run && memcmp(run->members->content_id, id, DIGEST_BYTES) != 0)
        run = run->next;
    return run;
}

static struct run *run_create(struct jobs *jobs, const struct job *job)
{
    struct run *run = calloc(1, sizeof(*run) + job->partitions * sizeof(struct slot));

    if (!run)
        return NULL;
    run->partitions = job->partitions;
    run->node = -1;
    run->ending = JOB_QUEUED;
    run->next = jobs->runs;
    jobs->runs = run;
    return run;
}

static void run_join(struct run *run, struct job *job)
{
    struct job **last = &run->members;

    while (*last)
        last = &(*last)->next_member;
    *last = job;
    job->next_member = NULL;
    job->run = run;
}

static void run_free(struct jobs *jobs, struct run *run)
{
    struct run **p = &jobs->runs;

    while (*p != run)
        p = &(*p)->next;
    *p = run->next;
    order_remove(jobs->order, &run->order);
    for (uint32_t i = 0; i < run->partitions; i++)
        free(run->slots[i].entry);
    free(run->failure);
    free(run);
}

void runs_free(struct jobs *jobs)
{
    while (jobs->runs)
        run_free(jobs, jobs->runs);
}

void run_leave(struct jobs *jobs, struct job *job)
{
    struct run *run = job->run;
    struct job **p = &run->members;

    while (*p != job)
        p = &(*p)->next_member;
    *p = job->next_member;
    job->next_member = NULL;
    job->run = NULL;
    for (struct job *m = run->members; m; m = m->next_member)
        m->same_as = m == run->members ? 0 : run->members->id;
    if (run->members)
        run_reorder(jobs, run);
    else
        run_free(jobs, run);
}

static enum job_state run_state(const struct run *run)
{
    enum job_state state = JOB_QUEUED;

    for (uint32_t i = 0; i < run->partitions; i++) {
        if (run->slots[i].state == SLOT_PROVING || run->slots[i].state == SLOT_HELD)
            return JOB_PROVING;
        if (run->slots[i].state == SLOT_SYNTHESIZING)
            state = JOB_SYNTHESIZING;
    }
    return run->ending == JOB_QUEUED ? state : JOB_PROVING;
}

/* The best of those that load parameters, -1: none does. */
static int loading_percent(const struct run *run)
{
    int percent = -1;

    for (uint32_t i = 0; i < run->partitions; i++) {
        const struct slot *slot = &run->slots[i];
        if (slot->state == SLOT_LOADING && slot->percent > percent)
            percent = slot->percent;
    }
    return percent;
}

static bool has_taken(const struct run *run)
{
    for (uint32_t i = 0; i < run->partitions; i++) {
        if (in_engine(&run->slots[i]))
            return true;
    }
    return false;
}

static uint32_t first_waiting(const struct run *run)
{
    uint32_t i = 0;

    while (i < run->partitions && run->slots[i].state != SLOT_WAITING)
        i++;
    return i;
}

/* The first that has not been removed, or NULL: nobody wants what it computes. */
static struct job *live_member(const struct run *run)
{
    struct job *job = run->members;

    while (job && job->gone)
        job = job->next_member;
    return job;
}

/* The highest class of its members, the age of the oldest, at the cost of its home's owner. */
static struct order_key order_key(const struct run *run)
{
    struct order_key key = {.age = UINT64_MAX,
                            .priority = JOB_LOW,
                            .user = run->members->uid,
                            .size = (unsigned)(run->members->proof->size - sector_sizes)};

    for (const struct job *m = run->members; m; m = m->next_member) {
        if (m->gone)
            continue;
        if (m->priority > key.priority)
            key.priority = (enum job_priority)m->priority;
        if (m->id < key.age)
            key.age = m->id;
    }
    return key;
}

static struct run *run_of_order(struct order_entry *e)
{
    return (struct run *)((char *)e - offsetof(struct run, order));
}

static bool same_place(const struct order_key *a, const struct order_key *b)
{
    return a->age == b->age && a->priority == b->priority && a->user == b->user &&
           a->size == b->size;
}

/* Puts the run where it belongs among those that wait. Where memory is short it is left out, and looked at again by runs_retry. */
void run_reorder(struct jobs *jobs, struct run *run)
{
    const struct order_key key = order_key(run);
    bool waits = !run->preparing && run->ending == JOB_QUEUED &&
                 first_waiting(run) < run->partitions && live_member(run);

    if (run->order.in && (!waits || !same_place(&key, &run->order.key)))
        order_remove(jobs->order, &run->order);
    if (waits && !run->order.in)
        order_put(jobs->order, &run->order, &key, monotonic_ms());
}

static enum job_lack *held_of(struct jobs *jobs, const struct sector_size *size)
{
    return &jobs->held[size - sector_sizes];
}

/* Shows in every member what the run has come to. */
static void run_refresh(struct jobs *jobs, struct run *run)
{
    enum job_state state = run_state(run);
    int percent = state == JOB_QUEUED ? loading_percent(run) : -1;
    bool idle = state == JOB_QUEUED && !has_taken(run);
    enum job_lack lacks = idle ? *held_of(jobs, run->members->proof->size) : JOB_LACKS_NOTHING;
    bool params = lacks == JOB_LACKS_PARAMS || percent >= 0;
    bool memory = lacks == JOB_LACKS_MEMORY;

    run->done = 0;
    for (uint32_t i = 0; i < run->partitions; i++)
        run->done += run->slots[i].state == SLOT_DONE;
    int32_t node = idle ? -1 : run->node;
    for (struct job *m = run->members; m; m = m->next_member) {
        if (m->gone)
            continue;
        if (m->partitions_done != run->done || m->node != node || m->params_percent != percent ||
            m->waits_for_params != params || m->waits_for_memory != memory)
            tell(jobs, m);
        m->partitions_done = run->done;
        m->node = node;
        m->params_percent = (int8_t)percent;
        m->waits_for_params = params;
        m->waits_for_memory = memory;
        job_set_state(jobs, m, state);
    }
    run_reorder(jobs, run);
}

/* ---- the journal (with disk) ---- */

/* Entries of the run that are done, in order. */
static struct partition_entry *done_entries(struct jobs *jobs, const struct run *run, size_t *len)
{
    struct partition_entry *entries = calloc(run->partitions, sizeof(*entries));

    *len = 0;
    if (!entries)
        return NULL;
    pthread_mutex_lock(&jobs->lock);
    for (uint32_t i = 0; i < run->partitions; i++) {
        if (run->slots[i].state == SLOT_DONE)
            entries[(*len)++] = *run->slots[i].entry;
    }
    pthread_mutex_unlock(&jobs->lock);
    return entries;
}

/* Writes a whole journal into the directory of `job`. Durable when it returns 0. */
static int journal_write(struct jobs *jobs, const struct job *job,
                         const struct partition_entry *entries, size_t len)
{
    uint8_t *bytes = calloc(len + 1, PARTITION_ENTRY_BYTES);
    int ret = bytes ? 0 : -ENOMEM;

    for (size_t i = 0; i < len && bytes; i++)
        partition_entry_encode(bytes + i * PARTITION_ENTRY_BYTES, job->content_id, &entries[i]);
    if (ret == 0)
        ret = store_put(jobs->store, job->id, STORE_PARTITIONS, bytes, len * PARTITION_ENTRY_BYTES);
    if (ret == 0)
        ret = store_sync(jobs->store, job->id);
    free(bytes);
    return ret;
}

/* Makes the home's journal say what the run has. */
static int journal_rewrite(struct jobs *jobs, struct run *run, const struct job *home)
{
    size_t len;
    struct partition_entry *entries = done_entries(jobs, run, &len);
    int ret = entries ? journal_write(jobs, home, entries, len) : -ENOMEM;

    run->journal_stale = ret < 0;
    if (ret == 0)
        run->journal_bytes = len * PARTITION_ENTRY_BYTES;
    free(entries);
    return ret;
}

static int journal_add(struct jobs *jobs, struct run *run, struct slot *const *slots, size_t len)
{
    const struct job *home = run->members;
    uint8_t *bytes = calloc(len, PARTITION_ENTRY_BYTES);
    int ret = !bytes ? -ENOMEM : run->journal_stale ? journal_rewrite(jobs, run, home) : 0;

    for (size_t i = 0; i < len && ret == 0; i++)
        partition_entry_encode(bytes + i * PARTITION_ENTRY_BYTES, home->content_id,
                               slots[i]->entry);
    if (ret == 0)
        ret = store_journal_append(jobs->store, home->id, bytes, len * PARTITION_ENTRY_BYTES,
                                   run->journal_bytes);
    if (ret == 0)
        run->journal_bytes += len * PARTITION_ENTRY_BYTES;
    free(bytes);
    return ret;
}

/* With lock: partitions that other parameters proved do not go with those that `vk_digest` is of. */
static void drop_other_parameters(struct run *run, const uint8_t vk_digest[SRS_VK_DIGEST_BYTES])
{
    for (uint32_t i = 0; i < run->partitions; i++) {
        struct slot *slot = &run->slots[i];
        if ((slot->state == SLOT_DONE || slot->state == SLOT_HELD) &&
            memcmp(slot->entry->report.vk_digest, vk_digest, SRS_VK_DIGEST_BYTES) != 0) {
            slot->state = SLOT_WAITING;
            run->journal_stale = true;
        }
    }
}

/* Which proofs may be used. */
struct parameters {
    bool any; /* nobody asks */
    bool known;
    uint8_t vk_digest[SRS_VK_DIGEST_BYTES];
};

static struct parameters ask_parameters(struct jobs *jobs, const struct job *job)
{
    struct parameters p = {.any = !jobs->opt.params || job->test};

    if (!p.any)
        p.known = jobs->opt.params(jobs->opt.ctx, job->proof->size, p.vk_digest) == 0;
    return p;
}

/* `own`: what this job had proved is good as long as nothing else is known. */
static bool is_usable(const struct partition_entry *entry, const struct parameters *p, bool own)
{
    if (p->any || !p->known)
        return p->any || own;
    return memcmp(entry->report.vk_digest, p->vk_digest, SRS_VK_DIGEST_BYTES) == 0;
}

static bool slot_make_entry(struct slot *slot)
{
    if (!slot->entry)
        slot->entry = calloc(1, sizeof(*slot->entry));
    return slot->entry;
}

/* With lock. */
static void slot_load(struct run *run, const struct partition_entry *entry)
{
    struct slot *slot = &run->slots[entry->partition];

    if (in_engine(slot) || !slot_make_entry(slot)) /* without memory: proved once more */
        return;
    drop_other_parameters(run, entry->report.vk_digest); /* what is later in a journal is newer */
    *slot->entry = *entry;
    slot->state = SLOT_DONE;
    run->node = entry->report.node;
}

int journal_read(struct jobs *jobs, uint64_t id, const uint8_t content_id[DIGEST_BYTES],
                 uint32_t partitions, struct journal *out)
{
    uint8_t *bytes = NULL;
    size_t len = 0, bad = 0;
    struct journal j = {0};
    int ret = store_get(jobs->store, id, STORE_PARTITIONS, &bytes, &len);

    if (ret < 0)
        return ret;
    j.entries = calloc(len / PARTITION_ENTRY_BYTES + 1, sizeof(*j.entries));
    for (size_t at = 0; j.entries && at + PARTITION_ENTRY_BYTES <= len;
         at += PARTITION_ENTRY_BYTES) {
        struct partition_entry *entry = &j.entries[j.len];
        if (partition_entry_decode(bytes + at, content_id, entry) < 0 ||
            entry->partition >= partitions) {
            bad++;
            continue;
        }
        j.len++;
        j.holes = bad;
        j.good_bytes += bad == 0 ? PARTITION_ENTRY_BYTES : 0;
    }
    free(bytes);
    if (!j.entries)
        return -ENOMEM;
    *out = j;
    return 0;
}

static void log_journal(struct jobs *jobs, uint64_t id, const struct journal *j, size_t others)
{
    if (j->holes > 0) {
        log_err(
            log_u64("job", id), log_u64("entries", j->holes),
            log_str("msg", "its journal was damaged on disk: these partitions are proved again"));
        count_repaired(jobs);
    }
    if (others > 0)
        log_warn(log_u64("job", id), log_u64("entries", others),
                 log_str("msg", "partitions that other parameters proved are proved again"));
}

/* Takes into the run what the journal of job `id` has of this content. Returns the bytes that are good; what
 * is behind them, and what is not used, makes the journal stale. */
static uint64_t journal_load(struct jobs *jobs, struct run *run, uint64_t id, const struct job *job,
                             const struct parameters *params)
{
    struct journal j;
    size_t others = 0;

    if (journal_read(jobs, id, job->content_id, run->partitions, &j) < 0)
        return 0;
    pthread_mutex_lock(&jobs->lock);
    for (size_t i = 0; i < j.len; i++) {
        if (is_usable(&j.entries[i], params, id == job->id))
            slot_load(run, &j.entries[i]);
        else
            others++;
    }
    run->journal_stale |= j.holes > 0 || others > 0;
    run_refresh(jobs, run);
    pthread_mutex_unlock(&jobs->lock);
    log_journal(jobs, id, &j, id == job->id ? others : 0);
    free(j.entries);
    return j.good_bytes;
}

/* ---- ends (with disk) ---- */

/* What the disk says of a job, brought to its end. */
static int ended_record(struct jobs *jobs, const struct job *job, const struct run *run,
                        const struct partition_entry *entries, size_t len, struct job_record *r)
{
    int ret = store_record_get(jobs->store, job->id, r);

    if (ret < 0)
        return ret;
    pthread_mutex_lock(&jobs->lock);
    r->state = run->ending;
    r->partitions_done = (uint32_t)len;
    r->node = run->node;
    r->insecure = len > 0 && entries_params(entries, len) < SRS_CHECKED;
    r->same_as = job->same_as;
    r->started_ns = job->started_ns;
    r->ended_ns = now_ns();
    pthread_mutex_unlock(&jobs->lock);
    return 0;
}

static int put_proof(struct jobs *jobs, uint64_t id, const struct partition_entry *entries,
                     size_t len)
{
    size_t bytes = sizeof(entries->proof);
    uint8_t *proof = calloc(len, bytes);

    if (!proof)
        return -ENOMEM;
    for (size_t i = 0; i < len; i++)
        memcpy(proof + i * bytes, entries[i].proof, bytes);
    int ret = store_put(jobs->store, id, STORE_PROOF, proof, len * bytes);
    free(proof);
    return ret;
}

/* What an ended job has on disk. */
struct end {
    struct job_record record;
    size_t report_bytes, error_bytes;
};

/* Everything that the ended record promises, then the record. */
static int put_end(struct jobs *jobs, const struct run *run, const struct job *job,
                   const struct partition_entry *entries, size_t len, struct end *end)
{
    struct job_record *r = &end->record;
    char *json = NULL;
    int ret = ended_record(jobs, job, run, entries, len, r);

    if (ret == 0)
        ret = report_make(r, entries, len, run->failure, &json);
    if (ret == 0 && run->ending == JOB_DONE)
        ret = put_proof(jobs, job->id, entries, len);
    if (ret == 0 && run->ending == JOB_FAILED)
        ret = store_put(jobs->store, job->id, STORE_ERROR, run->failure, strlen(run->failure));
    /* Other jobs of this content may be served from the journal later. */
    if (ret == 0 && (job != run->members || run->journal_stale))
        ret = journal_write(jobs, job, entries, len);
    assert(ret < 0 || json); /* report_make has set it */
    if (ret == 0)
        ret = store_put(jobs->store, job->id, STORE_REPORT, json, strlen(json));
    if (ret == 0)
        ret = store_record_put(jobs->store, r);
    end->report_bytes = json ? strlen(json) : 0;
    end->error_bytes = run->failure ? strlen(run->failure) : 0;
    free(json);
    return ret;
}

/* With lock. */
static void show_end(struct jobs *jobs, struct job *job, const struct end *end)
{
    const struct job_record *r = &end->record;

    if (job->gone) { /* removed in memory, and soon on disk */
        run_leave(jobs, job);
        return;
    }
    job->partitions_done = r->partitions_done;
    job->node = r->node;
    job->insecure = r->insecure;
    job->ended_ns = r->ended_ns;
    job_set_state(jobs, job, r->state);
    job->report_bytes = (uint32_t)end->report_bytes;
    job->error_bytes = (uint32_t)end->error_bytes;
    uint64_t same_as = job->same_as;
    run_leave(jobs, job);
    job->same_as = same_as; /* that computation has been shared for good */
}

static int end_member(struct jobs *jobs, struct run *run, struct job *job)
{
    struct end end;
    size_t len;
    struct partition_entry *entries = done_entries(jobs, run, &len);
    int ret = entries ? put_end(jobs, run, job, entries, len, &end) : -ENOMEM;

    free(entries);
    if (ret < 0)
        return ret;
    store_drop(jobs->store, job->id, STORE_DECODED);
    pthread_mutex_lock(&jobs->lock);
    job_account(jobs, job, job->disk_bytes - min_size(end.record.decoded_bytes, job->disk_bytes));
    show_end(jobs, job, &end);
    pthread_mutex_unlock(&jobs->lock);
    return 0;
}

/* The home comes last: as long as there is anything left to do the run has a home. */
static struct job *last_member(struct run *run)
{
    struct job *job = run->members;

    while (job->next_member)
        job = job->next_member;
    return job;
}

/* Ends all jobs of the run. What the disk refuses is tried again by runs_retry. */
static int run_end(struct jobs *jobs, struct run *run)
{
    int ret = 0;
    bool last = false;

    while (ret == 0 && !last) {
        struct job *job = last_member(run);
        last = job == run->members;
        ret = end_member(jobs, run, job); /* with the last one the run has gone */
    }
    return ret;
}

/* Sets the end, once. */
static void run_set_ending(struct jobs *jobs, struct run *run, enum job_state state, char *failure)
{
    pthread_mutex_lock(&jobs->lock);
    if (run->ending == JOB_QUEUED) {
        run->ending = state;
        run->failure = failure;
        failure = NULL;
        run_refresh(jobs, run);
    }
    pthread_mutex_unlock(&jobs->lock);
    free(failure);
}

/* Without lock: how many partitions are done. */
static uint32_t run_done(struct jobs *jobs, const struct run *run)
{
    pthread_mutex_lock(&jobs->lock);
    uint32_t done = run->done;
    pthread_mutex_unlock(&jobs->lock);
    return done;
}

static int run_end_if_complete(struct jobs *jobs, struct run *run)
{
    if (run_done(jobs, run) < run->partitions)
        return 0;
    run_set_ending(jobs, run, JOB_DONE, NULL);
    return run_end(jobs, run);
}

/* ---- starting (with disk) ---- */

/* A job whose proof can be taken over, the newest: parameters change. With lock. */
static struct job *proved_before(struct jobs *jobs, const struct job *job)
{
    for (size_t i = jobs->len; i-- > 0;) {
        struct job *other = jobs->by_id[i];
        if (other->state == JOB_DONE && !other->gone &&
            memcmp(other->content_id, job->content_id, DIGEST_BYTES) == 0)
            return other;
    }
    return NULL;
}

/* With lock: puts the job into a run. *source is the id of a job that has the proof already, or 0. */
static int run_enter(struct jobs *jobs, struct job *job, bool checked, uint64_t *source)
{
    struct run *run = run_of_content(jobs, job->content_id);

    *source = 0;
    if (job->gone)
        return -ECANCELED;
    if (!run) {
        struct job *proved = proved_before(jobs, job);
        *source = proved ? proved->id : 0;
        run = run_create(jobs, job);
        if (!run)
            return -ENOMEM;
        run->checked = checked;
        run->preparing = true;
    } else {
        job->same_as = run->members->id;
    }
    run_join(run, job);
    job_set_state(jobs, job, run_state(run));
    tell(jobs, job);
    return 0;
}

/* Takes over what has been proved of this content: before a restart, or by a job that is done. */
static void run_load(struct jobs *jobs, struct job *job, uint64_t source)
{
    struct run *run = job->run;
    struct parameters params = ask_parameters(jobs, job);
    bool home = run->members == job;
    uint64_t bytes = journal_load(jobs, run, job->id, job, &params);

    if (home)
        run->journal_bytes = bytes;
    else if (bytes > 0)
        run->journal_stale = true;
    uint32_t had = run_done(jobs, run);
    if (source && had < run->partitions) {
        journal_load(jobs, run, source, job, &params);
        pthread_mutex_lock(&jobs->lock); /* `disk` keeps changes away, not those who look */
        run->journal_stale |= run->done > had;
        if (run->done == run->partitions)
            job->same_as = source;
        pthread_mutex_unlock(&jobs->lock);
    }
    if (run->journal_stale)
        journal_rewrite(jobs, run, run->members); /* else with the next entry */
}

int run_start(struct jobs *jobs, struct job *job, bool checked)
{
    uint64_t source;

    pthread_mutex_lock(&jobs->lock);
    int ret = run_enter(jobs, job, checked, &source);
    pthread_mutex_unlock(&jobs->lock);
    if (ret < 0)
        return ret;
    run_load(jobs, job, source);

    pthread_mutex_lock(&jobs->lock);
    struct run *run = job->run;
    run->preparing = false;
    run_refresh(jobs, run);
    pthread_mutex_unlock(&jobs->lock);
    run_end_if_complete(jobs, run); /* tried again later where the disk is full */
    return 0;
}

void run_prepare_leave(struct jobs *jobs, struct job *job)
{
    struct run *run = job->run;

    if (run->members != job || !job->next_member)
        return;
    /* The next home has no journal; it is stale if this fails. Its decoded form is its own. */
    run->journal_bytes = 0;
    journal_rewrite(jobs, run, job->next_member);
    pthread_mutex_lock(&jobs->lock);
    run->checked = false;
    pthread_mutex_unlock(&jobs->lock);
}

/* ---- taking ---- */

/* With lock: sizes of which nothing is given out. */
static uint32_t held_sizes(const struct jobs *jobs)
{
    uint32_t held = 0;

    for (uint32_t i = 0; i < SIZES_MAX; i++)
        held |= (uint32_t)(jobs->held[i] != JOB_LACKS_NOTHING) << i;
    return held;
}

/* With lock. */
static void slot_take(struct jobs *jobs, struct run *run, struct job *home, uint32_t partition, int node)
{
    struct slot *slot = &run->slots[partition];

    slot->state = SLOT_TAKEN;
    slot->taken_as = home->id;
    home->in_engines[partition / 64] |= (uint64_t)1 << partition % 64;
    run->node = node;
    run_refresh(jobs, run);
}

/* With lock: a partition is being computed. What it waited for before that, parameters and a place in the engine, is no part of the time
 * that its jobs ran. */
static void run_started(struct run *run)
{
    for (struct job *m = run->members; m; m = m->next_member) {
        if (!m->started_ns)
            m->started_ns = now_ns();
    }
}

/* Is the decoded form on disk what was accepted? */
static int check_decoded(struct jobs *jobs, const struct job *home)
{
    uint8_t digest[SHA256_DIGEST_LENGTH], *bytes = NULL;
    size_t len;
    int ret = store_get(jobs->store, home->id, STORE_DECODED, &bytes, &len);

    if (ret < 0)
        return ret;
    SHA256(bytes, len, digest);
    free(bytes);
    return memcmp(digest, home->content_id, sizeof(digest)) == 0 ? 0 : -EBADMSG;
}

static int open_work(struct jobs *jobs, const struct job *home, bool checked, int *fd)
{
    int ret = checked ? 0 : check_decoded(jobs, home);

    if (ret == -EBADMSG || ret == -ENOENT || ret == -EIO)
        ret = decoded_again(jobs, home->id, home->content_id);
    return ret < 0 ? ret : store_open_file(jobs->store, home->id, STORE_DECODED, fd);
}

static bool is_lack(int code)
{
    return code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

/* No engine can be given this partition: the job has been removed meanwhile, or memory is short; or the
 * stored form is damaged or lost. */
static void give_up(struct jobs *jobs, const struct partition_work *work, bool stays, int code)
{
    char text[128];

    if (!stays || is_lack(code)) {
        jobs_partition_returned(jobs, work->job, work->partition);
        return;
    }
    snprintf(text, sizeof(text), "the job store has lost the decoded form of this job: %s",
             code == -EBADMSG ? "its checksum is wrong" : strerror(-code));
    jobs_partition_failed(jobs, work->job, work->partition, code, text);
}

/* With lock. `home` gets a reference. */
static struct job *take_next(struct jobs *jobs, int node, uint32_t refused,
                             struct partition_work *work, bool *checked)
{
    struct order_turn turn;
    int64_t now = monotonic_ms();

    if (!order_next(jobs->order, refused | held_sizes(jobs), now, &turn))
        return NULL;
    struct run *run = run_of_order(turn.entry);
    struct job *home = live_member(run); /* each has the decoded form */
    assert(home);
    order_taken(jobs->order, &turn, now);
    work->job = home->id;
    work->size = home->proof->size;
    work->priority = turn.priority;
    work->own = turn.entry->key.priority;
    work->turn = turn.turn;
    work->partition = first_waiting(run);
    assert(work->partition < run->partitions);
    *checked = run->checked && home == run->members;
    slot_take(jobs, run, home, work->partition, node);
    job_get(home);
    return home;
}

/* The reference is given back. True when the job is still home of its run. */
static bool work_opened(struct jobs *jobs, struct job *home, bool good)
{
    pthread_mutex_lock(&jobs->lock);
    bool stays = home->run && home->run->members == home;
    if (good && stays)
        home->run->checked = true;
    job_put(home);
    pthread_mutex_unlock(&jobs->lock);
    return stays;
}

int jobs_take_partition(struct jobs *jobs, int node, struct partition_work *out)
{
    return jobs_take_partition_but(jobs, node, 0, out);
}

int jobs_take_partition_but(struct jobs *jobs, int node, uint32_t refused,
                            struct partition_work *out)
{
    struct partition_work work = {.c1_fd = -1};
    bool checked = false;

    pthread_mutex_lock(&jobs->lock);
    struct job *home = take_next(jobs, node, refused, &work, &checked);
    pthread_mutex_unlock(&jobs->lock);
    if (!home)
        return -EAGAIN;
    int ret = open_work(jobs, home, checked, &work.c1_fd);
    bool stays = work_opened(jobs, home, ret == 0);
    if (ret < 0)
        give_up(jobs, &work, stays, ret);
    else
        *out = work;
    tell_all(jobs);
    return ret == 0 || is_lack(ret) ? ret : -EAGAIN;
}

/* ---- what engines say ---- */

/* With lock: the run that a job of an engine belongs to, though the job may have left it. */
static struct run *run_of_job(struct jobs *jobs, const struct job *job)
{
    if (job->run)
        return job->run;
    return job->gone ? run_of_content(jobs, job->content_id) : NULL;
}

/* With lock: a partition of `job` has left its engine. A cancelled job goes with the last one. */
static void let_go(struct jobs *jobs, struct job *job, uint32_t partition)
{
    if (partition >= PARTITIONS_MAX)
        return;
    job->in_engines[partition / 64] &= ~((uint64_t)1 << partition % 64);
    if (job->gone && !(job->in_engines[0] | job->in_engines[1]))
        table_drop(jobs, job);
}

/* With lock: the slot that an engine speaks of, or NULL. An engine that had it has it no more. */
static struct slot *slot_back(struct jobs *jobs, uint64_t id, uint32_t partition, struct run **out)
{
    struct job *job = table_get(jobs, id);
    struct run *run = job ? run_of_job(jobs, job) : NULL;
    struct slot *slot = run && partition < run->partitions ? &run->slots[partition] : NULL;
    bool its = slot && slot->taken_as == id;

    if (its) {
        slot->taken_as = 0;
        if (in_engine(slot))
            slot->state = SLOT_WAITING;
    }
    if (job)
        let_go(jobs, job, partition);
    *out = run;
    return slot;
}

void jobs_partition_stage(struct jobs *jobs, uint64_t id, uint32_t partition,
                          enum partition_stage stage, unsigned percent)
{
    static const enum slot_state states[] = {
        [PARTITION_LOADING] = SLOT_LOADING,
        [PARTITION_SYNTHESIZING] = SLOT_SYNTHESIZING,
        [PARTITION_PROVING] = SLOT_PROVING,
    };

    pthread_mutex_lock(&jobs->lock);
    struct job *job = table_get(jobs, id);
    struct run *run = job ? run_of_job(jobs, job) : NULL;
    if (run && partition < run->partitions && in_engine(&run->slots[partition]) &&
        run->slots[partition].taken_as == id) {
        run->slots[partition].state = states[stage];
        run->slots[partition].percent = (uint8_t)percent;
        if (stage != PARTITION_LOADING)
            run_started(run);
        run_refresh(jobs, run);
    }
    pthread_mutex_unlock(&jobs->lock);
    tell_all(jobs);
}

void jobs_hold_size(struct jobs *jobs, const struct sector_size *size, enum job_lack lacks)
{
    pthread_mutex_lock(&jobs->lock);
    *held_of(jobs, size) = lacks;
    for (struct run *run = jobs->runs; run; run = run->next) {
        if (run->members->proof->size == size)
            run_refresh(jobs, run);
    }
    pthread_mutex_unlock(&jobs->lock);
    tell_all(jobs);
}

void jobs_partition_returned(struct jobs *jobs, uint64_t id, uint32_t partition)
{
    struct run *run = NULL;

    pthread_mutex_lock(&jobs->lock);
    slot_back(jobs, id, partition, &run);
    if (run)
        run_refresh(jobs, run);
    pthread_mutex_unlock(&jobs->lock);
    tell_all(jobs);
}

/* With lock: keeps a proof in memory until the journal has it. -ENOMEM. */
static int slot_hold(struct run *run, struct slot *slot, const uint8_t proof[192],
                     const struct partition_report *report)
{
    if (slot->state == SLOT_DONE)
        return 0;
    if (!slot_make_entry(slot))
        return -ENOMEM;
    slot->entry->partition = (uint32_t)(slot - run->slots);
    slot->entry->report = *report;
    memcpy(slot->entry->proof, proof, sizeof(slot->entry->proof));
    slot->state = SLOT_HELD;
    drop_other_parameters(run, report->vk_digest);
    return 0;
}

/* With disk: puts what is held into the journal, all with one sync. A held slot changes under disk alone. */
static int journal_held(struct jobs *jobs, struct run *run)
{
    struct slot **held = calloc(run->partitions, sizeof(struct slot *));
    size_t len = 0;

    if (!held)
        return -ENOMEM;
    pthread_mutex_lock(&jobs->lock);
    for (uint32_t i = 0; i < run->partitions; i++) {
        if (run->slots[i].state == SLOT_HELD)
            held[len++] = &run->slots[i];
    }
    pthread_mutex_unlock(&jobs->lock);
    int ret = len > 0 ? journal_add(jobs, run, held, len) : 0;
    pthread_mutex_lock(&jobs->lock);
    for (size_t i = 0; i < len && ret == 0; i++)
        held[i]->state = SLOT_DONE;
    run_refresh(jobs, run);
    pthread_mutex_unlock(&jobs->lock);
    free(held);
    return ret;
}

/* With disk: journals what is held, and ends the run when nothing is left to do. */
static int run_settle(struct jobs *jobs, struct run *run)
{
    int ret = journal_held(jobs, run);

    if (ret < 0)
        return ret;
    if (run->ending != JOB_QUEUED)
        return run_end(jobs, run);
    return run_end_if_complete(jobs, run);
}

/* Runs that results are of, each once. */
struct settling {
    struct jobs *jobs;
    struct {
        struct run *run;
        int ret;
    } * runs;
    size_t len;
};

static void settle_one(void *ctx, size_t item, unsigned thread)
{
    struct settling *st = ctx;

    (void)thread;
    st->runs[item].ret = run_settle(st->jobs, st->runs[item].run);
}

static size_t settling_find(struct settling *st, struct run *run)
{
    size_t i = 0;

    while (i < st->len && st->runs[i].run != run)
        i++;
    if (i == st->len)
        st->runs[st->len++].run = run;
    return i;
}

/* With lock. What the table takes belongs to a run, whose place among those to settle it gets; SIZE_MAX: nothing is left to do. */
static void hold_results(struct settling *st, struct proof_result *results, size_t len,
                         size_t *places)
{
    for (size_t i = 0; i < len; i++) {
        struct proof_result *r = &results[i];
        struct run *run = NULL;
        struct slot *slot = slot_back(st->jobs, r->job, r->partition, &run);
        r->ret = slot ? slot_hold(run, slot, r->proof, &r->report) : 0;
        if (run) /* nobody may take what is being journalled, and it may have been the last that waited */
            run_reorder(st->jobs, run);
        places[i] = slot && r->ret == 0 ? settling_find(st, run) : SIZE_MAX;
    }
}

/* With disk. Runs have nothing to do with each other. */
static void settle_all(struct settling *st)
{
    struct jobs *jobs = st->jobs;

    if (st->len > 1 && !jobs->syncers)
        workers_create(SYNCERS, &jobs->syncers, NULL); /* without them one after another */
    workers_run(st->len > 1 ? jobs->syncers : NULL, st->len, settle_one, st);
}

void jobs_partitions_done(struct jobs *jobs, struct proof_result *results, size_t len)
{
    struct settling st = {.jobs = jobs};
    size_t *places = calloc(len, sizeof(*places));

    st.runs = calloc(len, sizeof(*st.runs));
    for (size_t i = 0; i < len; i++)
        results[i].ret = -ENOMEM;
    if (places && st.runs) {
        pthread_mutex_lock(&jobs->disk);
        pthread_mutex_lock(&jobs->lock);
        hold_results(&st, results, len, places);
        pthread_mutex_unlock(&jobs->lock);
        settle_all(&st);
        pthread_mutex_unlock(&jobs->disk);
        for (size_t i = 0; i < len; i++) {
            if (places[i] != SIZE_MAX)
                results[i].ret = st.runs[places[i]].ret;
        }
        tell_all(jobs);
    }
    free(places);
    free(st.runs);
}

int jobs_partition_done(struct jobs *jobs, uint64_t id, uint32_t partition,
                        const uint8_t proof[192], const struct partition_report *report)
{
    struct proof_result one = {.job = id, .partition = partition, .report = *report};

    memcpy(one.proof, proof, sizeof(one.proof));
    jobs_partitions_done(jobs, &one, 1);
    return one.ret;
}

static char *failure_text(uint32_t partition, int code, const char *text)
{
    char *failure = NULL;

    if (asprintf(&failure, "%s\npartition %" PRIu32 ", code %d (%s)\n", text, partition, code,
                 code < 0 ? strerror(-code) : "none") < 0)
        return NULL;
    return failure;
}

void jobs_partition_failed(struct jobs *jobs, uint64_t id, uint32_t partition, int code,
                           const char *text)
{
    struct run *run = NULL;
    char *failure = failure_text(partition, code, text);

    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    struct slot *slot = slot_back(jobs, id, partition, &run);
    bool open = slot && slot->state == SLOT_WAITING; /* from here on another engine may take it */
    if (run)
        run_refresh(jobs, run);
    pthread_mutex_unlock(&jobs->lock);
    /* Without memory for a word the partition is simply tried again. */
    if (run && open && failure) {
        run_set_ending(jobs, run, JOB_FAILED, failure);
        failure = NULL;
        run_end(jobs, run);
    }
    pthread_mutex_unlock(&jobs->disk);
    free(failure);
    tell_all(jobs);
}

int jobs_partition_priority(struct jobs *jobs, uint64_t id, enum job_priority *out)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = table_get(jobs, id);
    struct run *run = job ? run_of_job(jobs, job) : NULL;
    if (run)
        *out = order_key(run).priority;
    pthread_mutex_unlock(&jobs->lock);
    return run ? 0 : -ENOENT;
}

bool jobs_cancelled(struct jobs *jobs, uint64_t id)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *job = table_get(jobs, id);
    const struct run *run = job ? run_of_job(jobs, job) : NULL;
    bool cancelled = !run || !live_member(run);
    pthread_mutex_unlock(&jobs->lock);
    return cancelled;
}

/* ---- what the disk refused ---- */

void runs_retry(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->disk);
    pthread_mutex_lock(&jobs->lock);
    struct run *run = jobs->runs, *next; /* runs come and go under disk alone */
    pthread_mutex_unlock(&jobs->lock);
    for (; run; run = next) {
        next = run->next;
        pthread_mutex_lock(&jobs->lock);
        run_reorder(jobs, run);
        pthread_mutex_unlock(&jobs->lock);
        run_settle(jobs, run);
    }
    pthread_mutex_unlock(&jobs->disk);
    tell_all(jobs);
}
