/*
 * What becomes of partitions that come back: proofs go to the journal, and what failed for a reason that may pass goes round again, a
 * few times. Beside these, what keeps partitions from being given out: parameters that cannot be used, provers that make wrong proofs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/partition.h"
#include "daemon/sched_internal.h"

#define LOG_MODULE LOG_SCHED

#define PARAMS_RETRY_LAST_MS 600000
#define MEMORY_RETRY_LAST_MS 60000 /* nothing tells that others have given theirs back */
#define REPLACED_MAX 3
#define PARAMS_LOOK_MS 2000 /* whether the files have changed */

/* ---- strikes ---- */

struct strike *sched_find_strike(struct sched *s, uint64_t job, uint32_t partition)
{
    for (size_t i = 0; i < s->strikes_len; i++)
        if (s->strikes[i].job == job && s->strikes[i].partition == partition)
            return &s->strikes[i];
    return NULL;
}

static void forget_strikes(struct sched *s, uint64_t job, uint32_t partition)
{
    struct strike *strike = sched_find_strike(s, job, partition);

    if (strike)
        *strike = s->strikes[--s->strikes_len];
}

/* Of partitions that nobody wants any more. */
static void forget_cancelled(struct sched *s)
{
    for (size_t i = 0; i < s->strikes_len;) {
        if (jobs_cancelled(s->opt.jobs, s->strikes[i].job))
            s->strikes[i] = s->strikes[--s->strikes_len];
        else
            i++;
    }
}

/* NULL: no memory. The count starts over then: the service goes on. */
static struct strike *get_strike(struct sched *s, uint64_t job, uint32_t partition)
{
    struct strike *strike = sched_find_strike(s, job, partition);

    if (strike)
        return strike;
    if (s->strikes_len == s->strikes_room)
        forget_cancelled(s);
    if (s->strikes_len == s->strikes_room) {
        size_t room = s->strikes_room ? 2 * s->strikes_room : 16;
        struct strike *more = realloc(s->strikes, room * sizeof(*more));
        if (!more)
            return NULL;
        s->strikes = more;
        s->strikes_room = room;
    }
    strike = &s->strikes[s->strikes_len++];
    *strike = (struct strike){.job = job, .partition = partition};
    return strike;
}

/* Returns how many there are now. */
static uint32_t add_strike(struct sched *s, uint64_t job, uint32_t partition)
{
    struct strike *strike = get_strike(s, job, partition);

    return strike ? ++strike->count : 1;
}

/* ---- back to the queue ---- */

void sched_give_back(struct sched *s, uint64_t job, uint32_t partition)
{
    s->returned++;
    if (s->strikes_len > 0 && jobs_cancelled(s->opt.jobs, job))
        forget_strikes(s, job, partition);
    jobs_partition_returned(s->opt.jobs, job, partition);
}

/* The job fails. */
static void give_up(struct sched *s, uint64_t job, uint32_t partition, int code, const char *text)
{
    log_err(log_u64("job", job), log_u64("partition", partition), log_str("msg", text));
    forget_strikes(s, job, partition);
    s->failed++;
    jobs_partition_failed(s->opt.jobs, job, partition, code, text);
}

/* The engine is to blame, or the partition is: back to the queue, but not for ever. */
void sched_strike_out(struct sched *s, uint64_t job, uint32_t partition, const char *what)
{
    char text[1024];

    if (jobs_cancelled(s->opt.jobs, job) || add_strike(s, job, partition) < s->opt.strikes) {
        sched_give_back(s, job, partition);
        return;
    }
    snprintf(text, sizeof(text),
             "partition %" PRIu32 ": given up after %" PRIu32 " tries, the last: %s", partition,
             s->opt.strikes, what);
    give_up(s, job, partition, -EIO, text);
}

/* ---- sizes that an engine cannot prove at present ---- */

static struct hold *hold_of(struct engine *e, const struct sector_size *size)
{
    return &e->holds[size - sector_sizes];
}

static uint64_t stamp_of(struct sched *s, const struct sector_size *size)
{
    return s->opt.params_stamp ? s->opt.params_stamp(s->opt.ctx, size) : 0;
}

static uint32_t hold_pause_ms(const struct sched *s, enum job_lack lacks, uint32_t failures)
{
    const uint64_t last = lacks == JOB_LACKS_MEMORY ? MEMORY_RETRY_LAST_MS : PARAMS_RETRY_LAST_MS;
    uint64_t ms = s->opt.params_retry_ms;

    for (; failures > 1 && ms < last; failures--)
        ms *= 2;
    return (uint32_t)(ms < last ? ms : last);
}

static void tell_of_hold(struct sched *s, struct engine *e, const struct sector_size *size,
                         enum job_lack lacks, const char *why)
{
    const bool memory = lacks == JOB_LACKS_MEMORY;
    char text[960];

    log_err(log_str("size", size->name), log_i64("node", e->node),
            log_str("msg", memory ? "waiting for memory" : "waiting for parameters"),
            log_str("error", why));
    snprintf(text, sizeof(text), "waits for %s %s: %s", memory ? "memory for" : "parameters of",
             size->name, why);
    engine_tell(s, e, text);
}

/* Whoever took the parameters away, or damaged them, may bring them back, and whoever has the memory may end. */
static void hold_size(struct sched *s, struct engine *e, const struct sector_size *size,
                      enum job_lack lacks, const char *why)
{
    struct hold *h = hold_of(e, size);

    if (!h->told || strcmp(h->why, why) != 0)
        tell_of_hold(s, e, size, lacks, why);
    snprintf(h->why, sizeof(h->why), "%s", why);
    h->lacks = lacks;
    h->told = true;
    h->failures += !h->on; /* several partitions may fail for one reason */
    h->until = sched_now_ms() + hold_pause_ms(s, lacks, h->failures);
    h->look_at = sched_now_ms() + PARAMS_LOOK_MS;
    h->stamp = stamp_of(s, size);
    h->on = true;
}

/* Gives out one more try when something has changed, or after the pause. */
static void check_hold(struct sched *s, struct engine *e, const struct sector_size *size)
{
    struct hold *h = hold_of(e, size);
    int64_t now = sched_now_ms();

    if (!h->on || (now < h->until && now < h->look_at))
        return;
    h->look_at = now + PARAMS_LOOK_MS;
    bool changed = h->stamp != stamp_of(s, size);
    if (now < h->until && !changed)
        return;
    h->failures = changed ? 0 : h->failures;
    h->on = false;
}

/* What keeps a size waiting, where no engine that is there takes it at present. */
static enum job_lack lack_of_all(struct sched *s, const struct sector_size *size)
{
    enum job_lack lacks = JOB_LACKS_NOTHING;

    for (size_t i = 0; i < s->engines_len; i++) {
        struct engine *e = &s->engines[i];
        if (e->state != ENGINE_READY || engine_all_set_aside(e))
            continue;
        if (!engine_refuses(e, size))
            return JOB_LACKS_NOTHING;
        if (hold_of(e, size)->on)
            lacks = hold_of(e, size)->lacks;
    }
    return lacks;
}

void sched_check_holds(struct sched *s)
{
    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        enum job_lack *told = &s->lacks[size - sector_sizes];
        for (size_t i = 0; i < s->engines_len; i++)
            check_hold(s, &s->engines[i], size);
        enum job_lack lacks = lack_of_all(s, size);
        if (lacks != *told)
            jobs_hold_size(s->opt.jobs, size, lacks);
        *told = lacks;
    }
}

void engine_end_hold(struct engine *e, const struct sector_size *size)
{
    struct hold *h = hold_of(e, size);

    if (!h->told)
        return;
    log_info(log_str("size", size->name), log_i64("node", e->node),
             log_str("msg", h->lacks == JOB_LACKS_MEMORY ? "there is memory again"
                                                         : "the parameters can be used again"));
    h->failures = 0;
    h->told = false;
    h->on = false;
}

/* Input errors fail the job, troubles of the engine send the partition round again. */
void sched_on_failed(struct sched *s, struct engine *e, const struct in_flight *flight,
                     const struct link_failed *f)
{
    if (f->code == -EAGAIN || f->code == -ECANCELED) {
        s->stolen += flight->recalled && !flight->begun;
        sched_give_back(s, f->job, f->partition);
        return;
    }
    if (f->code == -ENOKEY || f->code == -EBUSY) {
        hold_size(s, e, flight->size, f->code == -EBUSY ? JOB_LACKS_MEMORY : JOB_LACKS_PARAMS,
                  f->text);
        sched_give_back(s, f->job, f->partition);
        return;
    }
    log_err(log_u64("job", f->job), log_u64("partition", f->partition), log_i64("node", e->node),
            log_str("msg", "partition failed"), log_i64("code", f->code),
            log_str("error", f->text));
    if (f->code == -ENOMEM || f->code == -EIO) {
        sched_strike_out(s, f->job, f->partition, f->text);
        return;
    }
    forget_strikes(s, f->job, f->partition);
    s->failed++;
    jobs_partition_failed(s->opt.jobs, f->job, f->partition, f->code, f->text);
}

/* ---- results ---- */

void sched_on_written(void *ctx)
{
    sched_wake(ctx);
}

static void write_result(struct sched *s, struct commit *c)
{
    s->writing++;
    committer_put(s->committer, c);
}

/* Told once of each. */
static void keep_unwritten(struct sched *s, struct commit *c)
{
    const struct proof_result *r = &c->result;

    if (!c->refused) {
        log_err(log_u64("job", r->job), log_u64("partition", r->partition),
                log_str("msg", "a proof cannot be written to the store yet"),
                log_str("error", strerror(-r->ret)));
        s->unwritten_len++;
    }
    c->refused = true;
    c->next = s->unwritten;
    s->unwritten = c;
    s->write_again_at = sched_now_ms() + s->opt.journal_retry_ms;
}

static void end_written(struct sched *s, struct commit *c)
{
    const struct proof_result *r = &c->result;

    if (c->refused) {
        log_info(log_u64("job", r->job), log_u64("partition", r->partition),
                 log_str("msg", "the proof is in the store now"));
        s->unwritten_len--;
    }
    s->done++;
    forget_strikes(s, r->job, r->partition);
    free(c);
}

void sched_take_written(struct sched *s)
{
    for (struct commit *c = committer_take(s->committer), *next; c; c = next) {
        next = c->next;
        s->writing--;
        if (c->result.ret < 0)
            keep_unwritten(s, c);
        else
            end_written(s, c);
    }
}

void sched_retry_unwritten(struct sched *s)
{
    struct commit *list = s->unwritten;

    s->unwritten = NULL;
    while (list) {
        struct commit *c = list;
        list = c->next;
        write_result(s, c);
    }
}

/* The files have been replaced since the engine read them. What was proved without any says no key. */
static bool is_outdated(struct sched *s, const struct in_flight *flight,
                        const struct partition_report *r)
{
    static const uint8_t none[SRS_VK_DIGEST_BYTES];
    uint8_t now[SRS_VK_DIGEST_BYTES];

    if (!s->opt.params_key || !flight->has_params_at ||
        memcmp(r->vk_digest, none, sizeof(none)) == 0)
        return false;
    return s->opt.params_key(s->opt.ctx, flight->size, flight->has_params_at, now) == 0 &&
           memcmp(r->vk_digest, now, sizeof(now)) != 0;
}

void sched_on_done(struct sched *s, struct engine *e, const struct in_flight *flight,
                   const struct link_done *d)
{
    const struct partition_report *r = &d->report;

    if (is_outdated(s, flight, r)) {
        sched_give_back(s, d->job, d->partition);
        if (++e->replaced > REPLACED_MAX) /* front and engine may never agree */
            hold_size(s, e, flight->size, JOB_LACKS_PARAMS,
                      "engines prove with other parameters than the files hold, again and again");
        engine_replace(s, e, "it proves with parameters whose files have been replaced");
        return;
    }
    e->failures = e->replaced = 0;
    pace_proved(&e->pace, sched_now_ms());
    stage_times_add(&e->times, &d->course);
    if (s->opt.proved)
        s->opt.proved(s->opt.ctx, (size_t)(e - s->engines), d);
    log_info(log_u64("job", d->job), log_u64("partition", d->partition), log_i64("node", e->node),
             log_str("stage", "verified"), log_u64("synthesis_ms", (uint64_t)r->synthesis_ms),
             log_u64("prove_ms", (uint64_t)(r->transform_ms + r->msm_ms)),
             log_u64("total_ms", (uint64_t)r->total_ms),
             log_str("params", srs_trust_text(r->params)));
    struct commit *c = calloc(1, sizeof(*c));
    if (!c) { /* then it is proved again */
        sched_give_back(s, d->job, d->partition);
        return;
    }
    c->result.job = d->job;
    c->result.partition = d->partition;
    c->result.report = d->report;
    memcpy(c->result.proof, d->proof, sizeof(c->result.proof));
    write_result(s, c);
}

/* ---- proofs that do not verify ---- */

static struct liar *find_liar(struct engine *e, int32_t gpu)
{
    for (size_t i = 0; i < e->liars_len; i++)
        if (e->liars[i].gpu == gpu)
            return &e->liars[i];
    return NULL;
}

bool engine_is_set_aside(struct engine *e, int32_t gpu)
{
    const struct liar *l = find_liar(e, gpu);

    return l && l->wrong >= SCHED_WRONG_MAX;
}

/* As far as it is known what provers it has. */
bool engine_all_set_aside(struct engine *e)
{
    const struct node_status *st = &e->status.node;
    uint32_t aside = 0;

    for (uint32_t i = 0; i < st->provers_len; i++)
        aside += engine_is_set_aside(e, st->provers[i].gpu);
    return st->provers_len > 0 && aside == st->provers_len;
}

void engine_say_set_aside(struct sched *s, struct engine *e, int32_t gpu)
{
    const struct link_message m = {.type = LINK_SET_ASIDE, .set_aside = {gpu}};

    engine_say(s, e, &m, -1);
}

/* An engine that is away for a moment may have good provers. */
void sched_look_for_provers(struct sched *s)
{
    bool none = true;

    for (size_t i = 0; i < s->engines_len; i++)
        none = none && engine_all_set_aside(&s->engines[i]);
    if (none && !s->no_prover) {
        log_err(log_str("msg", "every prover has been set aside for wrong proofs: jobs wait until "
                               "somebody has looked at this machine and "
                               "its parameters, and started the service again"));
        if (s->opt.event)
            s->opt.event(
                s->opt.ctx,
                "no prover is left: every one has been set aside for wrong proofs, jobs wait");
    }
    s->no_prover = none;
}

static void count_wrong(struct sched *s, struct engine *e, int32_t gpu)
{
    struct liar *l = find_liar(e, gpu);
    char what[128];

    e->wrong++;
    if (!l && e->liars_len < ARRAY_LEN(e->liars)) {
        l = &e->liars[e->liars_len++];
        *l = (struct liar){.gpu = gpu};
    }
    if (!l || ++l->wrong != SCHED_WRONG_MAX)
        return;
    if (gpu < 0)
        snprintf(what, sizeof(what), "its prover is set aside after %d wrong proofs",
                 SCHED_WRONG_MAX);
    else
        snprintf(what, sizeof(what), "gpu %d is set aside after %d wrong proofs", gpu,
                 SCHED_WRONG_MAX);
    log_err(log_i64("node", e->node), log_i64("gpu", gpu), log_str("msg", what));
    engine_tell(s, e, what);
    engine_say_set_aside(s, e, gpu);
    sched_look_for_provers(s);
}

/* Elsewhere, but not for ever. */
void sched_on_wrong(struct sched *s, struct engine *e, const struct link_wrong *w)
{
    struct strike *strike = get_strike(s, w->job, w->partition);
    char text[256];

    log_err(log_u64("job", w->job), log_u64("partition", w->partition), log_i64("node", e->node),
            log_i64("gpu", w->gpu), log_str("msg", "a proof does not verify"),
            log_str("error", w->text));
    count_wrong(s, e, w->gpu);
    if (strike) {
        strike->avoid = e;
        strike->avoid_gpu = w->gpu;
    }
    if (!strike || ++strike->wrong < PARTITION_ATTEMPTS) {
        sched_give_back(s, w->job, w->partition);
        return;
    }
    snprintf(text, sizeof(text),
             "partition %" PRIu32
             ": %d proofs in a row do not verify, the last of node %d: this machine or these "
             "parameters cannot be trusted",
             w->partition, PARTITION_ATTEMPTS, e->node);
    give_up(s, w->job, w->partition, -EILSEQ, text);
}
