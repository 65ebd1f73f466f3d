/*
 * All state is in a table of entries under one lock, which is held for looking and moving alone. An entry in a step belongs to the
 * thread that works on it; one that waits or is ready belongs to nobody. Cancelling answers at once in both cases: an entry of nobody
 * is cleared by the canceller, one in a step by its thread when the step ends.
 */
#include "daemon/pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"
#include "gpu/groth16.h"
#include "gpu/srs.h"

#define LOG_MODULE LOG_ENGINE

#define FREE (-1) /* a state beside those of enum flight_stage */

/* A document that partitions of one job share. */
struct shared_document {
    uint64_t job;
    struct document *document; /* NULL: a free place */
    unsigned users;
};

struct entry {
    int state;     /* FREE or an enum flight_stage */
    bool in_step;  /* a thread works on it */
    bool answered; /* it has been said how it ends */
    struct link_work work;
    int fd; /* of the document, until it is read; then -1 */
    struct shared_document *shared;
    struct pipeline_ground ground; /* of the slot */
    struct slot slot;
    uint64_t bytes; /* of the slot, as counted in flight */
    struct assignment w; /* or compact, as the ground says */
    struct compact compact;
    struct groth16_ticket ticket;
    const struct prover *avoid; /* what that one made did not verify */
    const struct prover *prover; /* that has it, or had it last */
    struct partition_report report;
    struct flight_course course;
    int64_t begun_us, since_us; /* when it first had a slot; when it came to its state */
};

struct prover {
    struct pipeline *pipeline;
    struct backend *backend;
    bool starting;          /* guarded by the pipeline's lock: one start at a time */
    pthread_cond_t changed; /* with that lock: there may be something to start */
    pthread_t *threads;
    unsigned threads_len;
    struct node_prover counts; /* guarded by the pipeline's lock */
};

struct pipeline {
    struct pipeline_options opt;
    struct prover provers[NODE_PROVERS_MAX];
    pthread_t synthesis;
    bool synthesis_started;
    /* More than the capacity: what was cancelled in a step is here until that ends. */
    size_t entries_len;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* for synthesis */
    /* guarded by lock: */
    bool stop;
    struct entry *entries;
    struct shared_document *documents; /* one more than entries: one is always without users */
    uint32_t asked[2]; /* bits of sector_sizes: to be loaded, to be given up */
    bool at_chore;
};

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- entries (with lock) ---- */

static void enter(struct pipeline *p, struct entry *e, enum flight_stage stage)
{
    e->state = (int)stage;
    e->since_us = e->course.us[stage] = now_us();
    flight_enter(p->opt.flight, stage, e->bytes);
}

static void leave(struct pipeline *p, struct entry *e)
{
    flight_leave(p->opt.flight, (enum flight_stage)e->state, e->bytes,
                 (uint64_t)(now_us() - e->since_us));
}

static void move(struct pipeline *p, struct entry *e, enum flight_stage stage)
{
    leave(p, e);
    enter(p, e, stage);
}

/* Between leaving a stage and entering the next. */
static void return_slot(struct entry *e, bool all)
{
    if (!e->slot.witness)
        return;
    e->bytes = all ? 0 : slots_shape(e->ground.slots)->witness_bytes;
    if (all)
        slots_return(e->ground.slots, &e->slot);
    else
        slots_return_evaluation(e->ground.slots, &e->slot);
}

static void close_document(struct entry *e)
{
    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1;
}

static void clear(struct pipeline *p, struct entry *e)
{
    leave(p, e);
    return_slot(e, true);
    close_document(e);
    if (e->shared)
        e->shared->users--; /* the document stays until its place is wanted */
    e->state = FREE;
    pthread_cond_signal(&p->changed);
}

static size_t usable(const struct pipeline *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->opt.backends_len; i++)
        n += !p->provers[i].counts.set_aside;
    return n;
}

/* The best that waits in `stage` and that `prover` (may be NULL) should take. */
static struct entry *best(struct pipeline *p, enum flight_stage stage, const struct prover *prover)
{
    struct entry *found = NULL;

    for (size_t i = 0; i < p->entries_len; i++) {
        struct entry *e = &p->entries[i];
        if (e->state != (int)stage || e->in_step)
            continue;
        if (prover && e->avoid == prover && usable(p) > 1)
            continue;
        if (!found || link_work_is_before(&e->work, &found->work))
            found = e;
    }
    return found;
}

/* One thread of each that could start something. A thread that ends a step looks by itself. */
static void wake_provers(struct pipeline *p)
{
    for (size_t i = 0; i < p->opt.backends_len; i++)
        if (!p->provers[i].starting && !p->provers[i].counts.set_aside)
            pthread_cond_signal(&p->provers[i].changed);
}

static bool any_in_flight(const struct pipeline *p)
{
    for (size_t i = 0; i < p->entries_len; i++)
        if (p->entries[i].state != FREE && p->entries[i].state != FLIGHT_WAITING)
            return true;
    return false;
}

/* ---- steps and their ends ---- */

/* The lock is given up; the entry is this thread's. */
static void begin_step(struct pipeline *p, struct entry *e)
{
    e->in_step = true;
    pthread_mutex_unlock(&p->lock);
}

/* The lock is held again. False when nobody wants the entry any more, which is cleared then. */
static bool end_step(struct pipeline *p, struct entry *e)
{
    pthread_mutex_lock(&p->lock);
    e->in_step = false;
    if (!e->answered && !p->stop)
        return true;
    flight_count(p->opt.flight, FLIGHT_CANCELLED);
    clear(p, e);
    return false;
}

/* With lock, which is given up meanwhile: what the partition held is free before this is known. */
static void end_failed(struct pipeline *p, struct entry *e, int code, const char *text)
{
    const struct link_work work = e->work;

    flight_count(p->opt.flight, FLIGHT_FAILED);
    clear(p, e);
    pthread_mutex_unlock(&p->lock);
    p->opt.failed(p->opt.ctx, &work, code, *text ? text : strerror(-code));
    pthread_mutex_lock(&p->lock);
}

static void end_done(struct pipeline *p, struct entry *e, const uint8_t proof[PROOF_BYTES])
{
    const struct link_work work = e->work;
    const struct partition_report report = e->report;
    struct flight_course course = e->course;

    course.us[FLIGHT_STAGES] = now_us();
    course.prover = (int32_t)(e->prover - p->provers);
    flight_count(p->opt.flight, FLIGHT_VERIFIED);
    clear(p, e);
    pthread_mutex_unlock(&p->lock);
    p->opt.done(p->opt.ctx, &work, proof, &report, &course);
    pthread_mutex_lock(&p->lock);
}

/* ---- documents ---- */

/* With lock. The job's document, if somebody has read it. */
static bool share_document(struct pipeline *p, struct entry *e)
{
    for (size_t i = 0; i <= p->entries_len && !e->shared; i++) {
        struct shared_document *s = &p->documents[i];
        if (!s->document || s->job != e->work.job)
            continue;
        e->shared = s;
        s->users++;
        close_document(e);
    }
    return e->shared != NULL;
}

/* With lock. In place of one that nobody uses. */
static void keep_document(struct pipeline *p, uint64_t job, struct document *document)
{
    struct shared_document *s = p->documents;

    while (s->users > 0)
        s++;
    document_destroy(s->document);
    *s = (struct shared_document){.job = job, .document = document};
}

static int read_document(struct pipeline *p, struct entry *e, struct document **out,
                         struct errmsg *err)
{
    int ret = document_from_fd(e->fd, p->opt.sim, out, err);

    if (ret == 0 && e->work.partition >= document_partitions(*out)) {
        ret = errmsg_set(err, -EINVAL, "partition %u of a document of %u", e->work.partition,
                         document_partitions(*out));
        document_destroy(*out);
    }
    return ret;
}

/* ---- synthesis: one thread ---- */

static void open_document(struct pipeline *p, struct entry *e)
{
    struct document *document = NULL;
    struct errmsg err = {""};

    const struct link_work work = e->work;
    begin_step(p, e);
    p->opt.stage(p->opt.ctx, &work, PARTITION_READING);
    int ret = read_document(p, e, &document, &err);
    p->opt.stage(p->opt.ctx, &work, PARTITION_READ);
    bool wanted = end_step(p, e);
    if (ret == 0)
        keep_document(p, e->work.job, document);
    else if (wanted) /* documents are small: what memory one lacks others have at present */
        end_failed(p, e, ret == -ENOMEM ? -EBUSY : ret, err.text);
}

/* Of those whose documents have been read. */
static uint32_t waiting_sizes(const struct pipeline *p)
{
    uint32_t sizes = 0;

    for (size_t i = 0; i < p->entries_len; i++) {
        const struct entry *e = &p->entries[i];
        const struct sector_size *size = e->state == FLIGHT_WAITING && e->shared
                                             ? document_size(e->shared->document)
                                             : NULL;
        if (size)
            sizes |= UINT32_C(1) << (size - sector_sizes);
    }
    return sizes;
}

static void prepare_ground(struct pipeline *p, struct entry *e)
{
    struct errmsg err = {""};
    double ms = 0;

    const struct link_work work = e->work;
    const uint32_t waiting = waiting_sizes(p);
    begin_step(p, e);
    int ret =
        p->opt.prepare(p->opt.ctx, &work, document_size(e->shared->document), waiting, &ms, &err);
    bool wanted = end_step(p, e);
    e->report.params_ms += ms;
    if (ret < 0 && wanted)
        end_failed(p, e, ret, err.text);
}

static int fill_slot(struct pipeline *p, struct entry *e, struct errmsg *err)
{
    const struct document *d = e->shared->document;

    if (e->ground.circuit)
        return document_synthesize_compact(d, e->work.partition, p->opt.workers, &e->slot,
                                           e->ground.circuit, &e->compact, err);
    return document_synthesize(d, e->work.partition, p->opt.workers, &e->slot, &e->w, err);
}

/* With a slot. */
static void synthesize(struct pipeline *p, struct entry *e)
{
    const struct slots_shape *shape = slots_shape(e->ground.slots);
    struct errmsg err = {""};

    leave(p, e);
    e->bytes = shape->witness_bytes + shape->evaluation_bytes;
    enter(p, e, FLIGHT_SYNTHESIZING);
    if (!e->begun_us)
        e->begun_us = e->since_us;
    const struct link_work work = e->work;
    begin_step(p, e);
    p->opt.stage(p->opt.ctx, &work, PARTITION_SYNTHESIZING);
    int ret = fill_slot(p, e, &err);
    if (!end_step(p, e))
        return;
    e->report.synthesis_ms += (double)(now_us() - e->since_us) * 1e-3;
    if (ret < 0) {
        end_failed(p, e, ret, err.text);
        return;
    }
    move(p, e, FLIGHT_READY);
    wake_provers(p);
}

/* ---- chores: the same thread ---- */

static struct entry *unread(struct pipeline *p)
{
    for (size_t i = 0; i < p->entries_len; i++)
        if (p->entries[i].state == FLIGHT_WAITING && !p->entries[i].shared)
            return &p->entries[i];
    return NULL;
}

/* As advance. Nothing new is synthesized until it is done: what is in flight ends soon. */
static bool do_chore(struct pipeline *p)
{
    struct entry *e = unread(p);

    if (e) {
        if (!share_document(p, e))
            open_document(p, e);
        return true;
    }
    if (any_in_flight(p))
        return false;
    const bool evict = p->asked[1] != 0;
    const unsigned i = (unsigned)__builtin_ctz(p->asked[evict]);
    const uint32_t waiting = waiting_sizes(p);
    p->asked[evict] &= ~(UINT32_C(1) << i);
    p->at_chore = true;
    pthread_mutex_unlock(&p->lock);
    p->opt.chore(p->opt.ctx, &sector_sizes[i], evict, waiting);
    pthread_mutex_lock(&p->lock);
    p->at_chore = false;
    return true;
}

/* Takes the best partition a step further. False when there is nothing to do until something changes. */
static bool advance(struct pipeline *p)
{
    if (p->asked[0] | p->asked[1])
        return do_chore(p);
    struct entry *e = best(p, FLIGHT_WAITING, NULL);
    if (!e)
        return false;
    if (!e->shared && !share_document(p, e)) {
        open_document(p, e);
        return true;
    }
    if (!p->opt.ground(p->opt.ctx, document_size(e->shared->document), &e->ground)) {
        if (any_in_flight(p))
            return false;
        prepare_ground(p, e);
        return true;
    }
    if (!slots_take(e->ground.slots, &e->slot))
        return false;
    synthesize(p, e);
    return true;
}

static void *synthesis_main(void *arg)
{
    struct pipeline *p = arg;

    pthread_mutex_lock(&p->lock);
    while (!p->stop)
        if (!advance(p))
            pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- proving: threads of a backend ---- */

/* With lock, which is given up meanwhile. */
static void end_wrong(struct pipeline *p, struct prover *v, struct entry *e, const char *why)
{
    const struct link_work work = e->work;

    v->counts.invalid++;
    flight_count(p->opt.flight, FLIGHT_INVALID);
    log_err(log_u64("job", work.job), log_u64("partition", work.partition),
            log_str("device", v->backend->ops->name), log_str("msg", "a proof is thrown away"),
            log_str("why", why));
    clear(p, e);
    pthread_mutex_unlock(&p->lock);
    p->opt.wrong(p->opt.ctx, &work, (size_t)(v - p->provers), why);
    pthread_mutex_lock(&p->lock);
}

/* The first step, with and without lock. When it returns, the evaluation part is free. */
static int start_proof(struct pipeline *p, struct prover *v, struct entry *e, struct errmsg *err)
{
    move(p, e, FLIGHT_PROVING);
    e->prover = v;
    v->starting = true;
    v->counts.proving++;
    const struct link_work work = e->work;
    begin_step(p, e);
    p->opt.stage(p->opt.ctx, &work, PARTITION_PROVING);
    int ret = e->ground.circuit ? groth16_prove_start_compact(v->backend, e->ground.srs, &e->compact,
                                                             &e->ticket, err)
                                : groth16_prove_start(v->backend, e->ground.srs, &e->w, &e->ticket,
                                                      err);
    pthread_mutex_lock(&p->lock);
    v->starting = false;
    v->counts.proving--;
    v->counts.start_us += (uint64_t)(now_us() - e->since_us);
    leave(p, e);
    return_slot(e, false);
    enter(p, e, FLIGHT_FINISHING);
    v->counts.finishing++;
    pthread_cond_signal(&p->changed); /* there is an evaluation part */
    pthread_cond_signal(&v->changed);
    bool wanted = !e->answered && !p->stop;
    pthread_mutex_unlock(&p->lock);
    if (ret < 0 || wanted)
        return ret;
    groth16_prove_abort(&e->ticket);
    return -ECANCELED;
}

static void report(const struct pipeline *p, const struct prover *v, struct entry *e)
{
    const struct slots_shape *shape = slots_shape(e->ground.slots);
    const struct groth16_ticket *t = &e->ticket;
    const struct srs *srs = e->ground.srs;
    struct partition_report *r = &e->report;

    r->transform_ms += t->transform_ms;
    r->msm_ms += t->start_ms - t->transform_ms + t->finish_ms;
    r->params = srs ? srs->trust : SRS_INSECURE;
    if (srs)
        memcpy(r->vk_digest, srs->vk_digest, sizeof(r->vk_digest));
    r->node = p->opt.node;
    r->peak_bytes = shape->witness_bytes + shape->evaluation_bytes;
    r->total_ms = (double)(now_us() - e->begun_us) * 1e-3;
    snprintf(r->device, sizeof(r->device), "%s", v->backend->ops->name);
}

/* The second step and the check, without lock. */
static int finish_proof(struct entry *e, uint8_t proof[PROOF_BYTES], bool *valid,
                        struct errmsg *err)
{
    const struct vk *vk = e->ground.srs ? &e->ground.srs->vk : NULL;
    int ret = groth16_prove_finish(&e->ticket, proof, err);
    int64_t begin = now_us();

    if (ret == 0)
        ret = document_check(e->shared->document, e->work.partition, vk, proof, valid, err);
    e->report.verify_ms += (double)(now_us() - begin) * 1e-3;
    return ret;
}

static void prove(struct pipeline *p, struct prover *v, struct entry *e)
{
    uint8_t proof[PROOF_BYTES];
    struct errmsg err = {""};
    bool valid = false;
    int ret = start_proof(p, v, e, &err);

    if (ret == 0)
        ret = finish_proof(e, proof, &valid, &err);
    if (ret < 0 && v->backend->broken) {
        if (p->opt.broken)
            p->opt.broken(p->opt.ctx, v->backend, err.text);
        ret = -EAGAIN;
    }
    bool wanted = end_step(p, e);
    v->counts.finishing--;
    if (!wanted)
        return;
    report(p, v, e);
    v->counts.finish_us += (uint64_t)(now_us() - e->since_us);
    if (ret == -EBADMSG) /* the prover itself saw that the machine computes wrongly */
        end_wrong(p, v, e, err.text);
    else if (ret < 0)
        end_failed(p, e, ret, err.text);
    else if (!valid)
        end_wrong(p, v, e, "it does not verify");
    else {
        v->counts.proofs++;
        end_done(p, e, proof);
    }
}

static void *prover_main(void *arg)
{
    struct prover *v = arg;
    struct pipeline *p = v->pipeline;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct entry *e = v->starting || v->counts.set_aside ? NULL : best(p, FLIGHT_READY, v);
        if (e)
            prove(p, v, e);
        else
            pthread_cond_wait(&v->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the outside ---- */

int pipeline_give(struct pipeline *p, const struct link_work *work, size_t avoid, int fd)
{
    struct entry *e = NULL;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->entries_len && !e && !p->stop && usable(p) > 0; i++)
        if (p->entries[i].state == FREE)
            e = &p->entries[i];
    if (e) {
        *e = (struct entry){.work = *work, .fd = fd};
        e->avoid = avoid < p->opt.backends_len ? &p->provers[avoid] : NULL;
        enter(p, e, FLIGHT_WAITING);
        pthread_cond_signal(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    if (e)
        return 0;
    close(fd);
    return -EAGAIN;
}

void pipeline_recall(struct pipeline *p, uint64_t job, uint32_t partition)
{
    struct link_work work;
    bool found = false;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->entries_len && !found; i++) {
        struct entry *e = &p->entries[i];
        if (e->state != FLIGHT_WAITING || e->answered || e->work.job != job ||
            e->work.partition != partition)
            continue;
        work = e->work;
        e->answered = true;
        if (!e->in_step)
            clear(p, e);
        found = true;
    }
    pthread_mutex_unlock(&p->lock);
    if (found)
        p->opt.failed(p->opt.ctx, &work, -EAGAIN, "recalled");
}

bool pipeline_set_aside(struct pipeline *p, size_t backend)
{
    pthread_mutex_lock(&p->lock);
    p->provers[backend].counts.set_aside = true;
    size_t left = usable(p);
    wake_provers(p); /* they may take now what they avoided */
    pthread_mutex_unlock(&p->lock);
    return left > 0;
}

/* With lock. Takes the first entry of the job (of all jobs) that has no answer yet out, or lets its thread do so. */
static bool withdraw(struct pipeline *p, uint64_t job, bool all, struct link_work *work)
{
    for (size_t i = 0; i < p->entries_len; i++) {
        struct entry *e = &p->entries[i];
        if (e->state == FREE || e->answered || (!all && e->work.job != job))
            continue;
        *work = e->work;
        e->answered = true;
        if (!e->in_step) {
            flight_count(p->opt.flight, FLIGHT_CANCELLED);
            clear(p, e);
        }
        return true;
    }
    return false;
}

static void cancel(struct pipeline *p, uint64_t job, bool all, int code, const char *text)
{
    struct link_work work;

    for (;;) {
        pthread_mutex_lock(&p->lock);
        bool found = withdraw(p, job, all, &work);
        pthread_mutex_unlock(&p->lock);
        if (!found)
            return;
        p->opt.failed(p->opt.ctx, &work, code, text);
    }
}

void pipeline_cancel(struct pipeline *p, uint64_t job, int code, const char *text)
{
    cancel(p, job, false, code, text);
}

void pipeline_cancel_all(struct pipeline *p, int code, const char *text)
{
    cancel(p, 0, true, code, text);
}

void pipeline_set_priority(struct pipeline *p, uint64_t job, uint32_t priority)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->entries_len; i++)
        if (p->entries[i].work.job == job)
            p->entries[i].work.priority = priority;
    pthread_mutex_unlock(&p->lock);
}

/* With lock. How long the oldest step of the backend has lasted. */
static int64_t longest_step_ms(const struct pipeline *p, const struct prover *v)
{
    int64_t now = now_us(), longest = 0;

    for (size_t i = 0; i < p->entries_len; i++) {
        const struct entry *e = &p->entries[i];
        bool proving = e->state == FLIGHT_PROVING || e->state == FLIGHT_FINISHING;
        if (proving && e->prover == v && now - e->since_us > longest)
            longest = now - e->since_us;
    }
    return longest / 1000;
}

uint32_t pipeline_provers(struct pipeline *p, struct node_prover out[NODE_PROVERS_MAX])
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->opt.backends_len; i++) {
        const struct prover *v = &p->provers[i];
        out[i] = v->counts;
        snprintf(out[i].name, sizeof(out[i].name), "%s", v->backend->ops->name);
        out[i].step_ms = longest_step_ms(p, v);
        out[i].stalled = v->backend->stall_ms && out[i].step_ms > v->backend->stall_ms;
    }
    pthread_mutex_unlock(&p->lock);
    return (uint32_t)p->opt.backends_len;
}

void pipeline_ask(struct pipeline *p, const struct sector_size *size, bool evict)
{
    const uint32_t bit = UINT32_C(1) << (size - sector_sizes);

    pthread_mutex_lock(&p->lock);
    p->asked[evict] |= bit;
    p->asked[!evict] &= ~bit; /* the last word counts */
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

bool pipeline_is_idle(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    bool idle = !p->at_chore;
    for (size_t i = 0; i < p->entries_len; i++)
        idle = idle && p->entries[i].state == FREE;
    pthread_mutex_unlock(&p->lock);
    return idle;
}

/* ---- start and end ---- */

static unsigned tickets(const struct backend *be)
{
    return be->tickets ? be->tickets : 1;
}

static int start_thread(pthread_t *thread, const char *name, void *(*body)(void *), void *arg)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret == 0)
        pthread_setname_np(*thread, name);
    return -ret;
}

static int start_prover(struct prover *v)
{
    int ret = 0;

    v->threads = calloc(tickets(v->backend), sizeof(*v->threads));
    if (!v->threads)
        return -ENOMEM;
    while (ret == 0 && v->threads_len < tickets(v->backend)) {
        ret = start_thread(&v->threads[v->threads_len], "prover", prover_main, v);
        if (ret == 0)
            v->threads_len++;
    }
    return ret;
}

static int start_threads(struct pipeline *p)
{
    int ret = start_thread(&p->synthesis, "synthesis", synthesis_main, p);

    p->synthesis_started = ret == 0;
    for (size_t i = 0; i < p->opt.backends_len && ret == 0; i++)
        ret = start_prover(&p->provers[i]);
    return ret;
}

static void init_entries(struct pipeline *p)
{
    p->entries_len = p->opt.capacity + 1; /* synthesis is a step as well */
    for (size_t i = 0; i < p->opt.backends_len; i++) {
        p->provers[i].pipeline = p;
        p->provers[i].backend = p->opt.backends[i];
        pthread_cond_init(&p->provers[i].changed, NULL);
        p->entries_len += tickets(p->opt.backends[i]);
    }
    p->entries = calloc(p->entries_len, sizeof(*p->entries));
    p->documents = calloc(p->entries_len + 1, sizeof(*p->documents));
    for (size_t i = 0; p->entries && i < p->entries_len; i++)
        p->entries[i] = (struct entry){.state = FREE, .fd = -1};
}

int pipeline_create(const struct pipeline_options *opt, struct pipeline **out, struct errmsg *err)
{
    if (opt->capacity < 1 || opt->capacity > PIPELINE_CAPACITY_MAX || opt->backends_len < 1 ||
        opt->backends_len > NODE_PROVERS_MAX)
        return errmsg_set(err, -EINVAL, "a pipeline for %u partitions and %zu devices",
                          opt->capacity, opt->backends_len);
    struct pipeline *p = calloc(1, sizeof(*p));
    if (!p)
        return errmsg_set(err, -ENOMEM, "no memory for a pipeline");
    p->opt = *opt;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    init_entries(p);
    int ret = p->entries && p->documents ? start_threads(p) : -ENOMEM;
    if (ret < 0) {
        pipeline_destroy(p);
        return errmsg_set(err, ret, "the pipeline cannot be started: %s", strerror(-ret));
    }
    *out = p;
    return 0;
}

static void join_threads(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->changed);
    for (size_t i = 0; i < p->opt.backends_len; i++)
        pthread_cond_broadcast(&p->provers[i].changed);
    pthread_mutex_unlock(&p->lock);
    if (p->synthesis_started)
        pthread_join(p->synthesis, NULL);
    for (size_t i = 0; i < p->opt.backends_len; i++)
        while (p->provers[i].threads_len > 0)
            pthread_join(p->provers[i].threads[--p->provers[i].threads_len], NULL);
}

void pipeline_destroy(struct pipeline *p)
{
    if (!p)
        return;
    join_threads(p);
    for (size_t i = 0; p->entries && i < p->entries_len; i++)
        if (p->entries[i].state != FREE)
            clear(p, &p->entries[i]);
    for (size_t i = 0; p->documents && i <= p->entries_len; i++)
        document_destroy(p->documents[i].document);
    for (size_t i = 0; i < p->opt.backends_len; i++) {
        free(p->provers[i].threads);
        pthread_cond_destroy(&p->provers[i].changed);
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->documents);
    free(p->entries);
    free(p);
}
