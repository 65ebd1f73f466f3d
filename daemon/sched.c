/*
 * Everything but the shared part at the top belongs to the scheduler's thread, which sleeps in poll()
 * until an engine speaks, the spawner reports, somebody wakes it or a timer runs out. After each of
 * these the same pass is made over all engines: start what is due, tell of cancelled jobs, fill up.
 */
#include "daemon/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/balance.h"
#include "daemon/committer.h"
#include "daemon/partition.h"

#define SILENCE_MS 60000
#define JOURNAL_RETRY_MS 5000
#define PARAMS_RETRY_MS 5000
#define PARAMS_RETRY_LAST_MS 600000
#define GPU_FAULTS_MAX 3    /* then an engine does without it */
#define PARAMS_LOOK_MS 2000 /* whether the files have changed */
#define RESIDENT_EVERY_MS 500
#define STOP_GRACE_MS 3000
#define HEALTHY_MS 60000 /* an engine that ran so long is not in a crash loop */
#define NEVER INT64_MAX

struct in_flight {
    uint64_t job;
    const struct sector_size *size;
    int64_t since;
    struct link_work given;
    uint32_t partition;
    enum partition_stage stage;
    unsigned percent;
    enum job_priority priority; /* its job's, that the engine knows or has something better for */
    bool cancel_sent;
    bool begun;    /* the engine has said that it works on it */
    bool recalled; /* it should give it back, if it has not begun it */
};

/* A prover whose proofs did not verify. */
struct liar {
    int32_t gpu; /* its number, -1: it is none */
    uint32_t wrong;
};

struct engine {
    int node;
    enum engine_state state;
    pid_t pid;
    int sock;
    int64_t started, heard;    /* when */
    int64_t retry_at, look_at; /* look_at: for its resident memory */
    uint32_t failures;         /* in a row */
    uint32_t starts, deaths;
    uint32_t gpu_faults[ENGINE_GPUS_MAX]; /* ends for a broken GPU, by its number */
    struct liar liars[NODE_PROVERS_MAX];
    size_t liars_len;
    uint64_t wrong; /* of all of them */
    struct pace pace;
    struct link_hello hello;
    struct link_status status;
    struct in_flight flights[SCHED_IN_FLIGHT_MAX];
    size_t flights_len;
    char last_end[256];
};

/* How often a partition failed for a reason that may pass. */
struct strike {
    uint64_t job;
    uint32_t partition, count;
    uint32_t wrong;             /* proofs that did not verify */
    const struct engine *avoid; /* which made the last of these, by that prover */
    int32_t avoid_gpu;
};

/* A size whose parameters could not be used. */
struct hold {
    bool on;   /* nothing of this size is given out */
    bool told; /* everybody knows, and wants to know its end */
    uint64_t stamp;
    int64_t until, look_at;
    uint32_t failures; /* of this stamp, in a row */
    char why[768];
};

/* A partition that should go elsewhere, and where there is no room at the moment. */
struct parked {
    struct partition_work work;
    struct parked *next;
};

struct sched {
    struct sched_options opt;
    pthread_t thread;
    bool running;
    int wake_fd;
    atomic_bool stop;
    atomic_int log_level; /* wanted of engines */

    struct engine *engines;
    size_t engines_len;
    struct hold holds[SCHED_SIZES];
    struct strike *strikes;
    size_t strikes_len, strikes_room;
    struct parked *parked;
    struct committer *committer;
    struct commit *unwritten; /* the disk did not take them yet */
    int64_t write_again_at;
    uint32_t unwritten_len;
    uint64_t done, failed, returned, stolen;
    bool no_prover;
    int sent_log_level;

    pthread_mutex_t lock;
    struct sched_status shared; /* guarded by lock: the copy that others see */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *engine_state_name(enum engine_state state)
{
    static const char *const names[] = {"down", "starting", "ready", "stopping"};
    return names[state];
}

static void tell(const struct sched *s, const struct engine *e, const char *what)
{
    char text[1024];

    if (!s->opt.event)
        return;
    snprintf(text, sizeof(text), "engine node=%d %s", e->node, what);
    s->opt.event(s->opt.ctx, text);
}

/* ---- strikes ---- */

static struct strike *find_strike(struct sched *s, uint64_t job, uint32_t partition)
{
    for (size_t i = 0; i < s->strikes_len; i++)
        if (s->strikes[i].job == job && s->strikes[i].partition == partition)
            return &s->strikes[i];
    return NULL;
}

static void forget_strikes(struct sched *s, uint64_t job, uint32_t partition)
{
    struct strike *strike = find_strike(s, job, partition);

    if (strike)
        *strike = s->strikes[--s->strikes_len];
}

/* NULL: no memory. The count starts over then: the service goes on. */
static struct strike *get_strike(struct sched *s, uint64_t job, uint32_t partition)
{
    struct strike *strike = find_strike(s, job, partition);

    if (strike)
        return strike;
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

/* ---- partitions in flight ---- */

static struct in_flight *find_flight(struct engine *e, uint64_t job, uint32_t partition)
{
    for (size_t i = 0; i < e->flights_len; i++)
        if (e->flights[i].job == job && e->flights[i].partition == partition)
            return &e->flights[i];
    return NULL;
}

static void drop_flight(struct engine *e, const struct in_flight *f)
{
    size_t at = (size_t)(f - e->flights);

    memmove(&e->flights[at], &e->flights[at + 1], (--e->flights_len - at) * sizeof(*f));
}

static void give_back(struct sched *s, uint64_t job, uint32_t partition)
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
static void strike_out(struct sched *s, uint64_t job, uint32_t partition, const char *what)
{
    char text[1024];

    if (jobs_cancelled(s->opt.jobs, job) || add_strike(s, job, partition) < s->opt.strikes) {
        give_back(s, job, partition);
        return;
    }
    snprintf(text, sizeof(text),
             "partition %" PRIu32 ": given up after %" PRIu32 " tries, the last: %s", partition,
             s->opt.strikes, what);
    give_up(s, job, partition, -EIO, text);
}

/* ---- an engine's life ---- */

static void hang_up(struct engine *e)
{
    if (e->sock >= 0)
        close(e->sock);
    e->sock = -1;
}

static void schedule_restart(struct engine *e)
{
    int64_t now = now_ms();

    if (e->started && now - e->started >= HEALTHY_MS)
        e->failures = 0;
    e->state = ENGINE_DOWN;
    e->retry_at = now + supervisor_backoff_ms(e->failures++);
}

/* The numbers of GPUs that broke too often. */
static void list_broken(const struct engine *e, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (unsigned gpu = 0; gpu < ENGINE_GPUS_MAX; gpu++)
        if (e->gpu_faults[gpu] >= GPU_FAULTS_MAX)
            used += (size_t)snprintf(out + used, size - used, used ? ",%u" : "%u", gpu);
}

static void start_engine(struct sched *s, struct engine *e)
{
    const char *argv[32];
    char node[16], broken[4 * ENGINE_GPUS_MAX];
    size_t n = 0;

    while (s->opt.engine_argv[n] && n + 5 < ARRAY_LEN(argv)) {
        argv[n] = s->opt.engine_argv[n];
        n++;
    }
    snprintf(node, sizeof(node), "%d", e->node);
    argv[n++] = "--node";
    argv[n++] = node;
    list_broken(e, broken, sizeof(broken));
    if (broken[0]) {
        argv[n++] = "--without";
        argv[n++] = broken;
    }
    argv[n] = NULL;
    e->started = e->heard = now_ms();
    int ret = supervisor_start(s->opt.supervisor, (uint32_t)(e - s->engines), argv);
    if (ret == 0) {
        e->state = ENGINE_STARTING;
        return;
    }
    log_err(log_i64("node", e->node), log_str("msg", "cannot ask for an engine"),
            log_str("error", strerror(-ret)));
    schedule_restart(e);
}

/* The GPU's number, or -1 for another end. */
static int broken_gpu(int status)
{
    int gpu = WIFEXITED(status) ? WEXITSTATUS(status) - ENGINE_EXIT_GPU : -1;

    return gpu >= 0 && gpu < ENGINE_GPUS_MAX ? gpu : -1;
}

static void count_broken(struct engine *e, int gpu)
{
    if (++e->gpu_faults[gpu] == GPU_FAULTS_MAX)
        log_err(log_i64("node", e->node), log_i64("gpu", gpu),
                log_str("msg", "a GPU is set aside: it broke too often; a restart tries it again"));
}

/* What an engine ended of is the partitions' fault until the contrary is known; not where a GPU broke (`gpu` not -1). */
static void engine_ended(struct sched *s, struct engine *e, const char *how, int gpu)
{
    struct in_flight flights[SCHED_IN_FLIGHT_MAX];
    size_t len = e->flights_len;
    char what[320];

    hang_up(e);
    snprintf(e->last_end, sizeof(e->last_end), "%s", how);
    memcpy(flights, e->flights, sizeof(flights));
    e->flights_len = 0;
    e->pid = 0;
    memset(&e->status, 0, sizeof(e->status));
    if (atomic_load(&s->stop)) {
        e->state = ENGINE_DOWN;
        e->retry_at = NEVER;
        for (size_t i = 0; i < len; i++)
            give_back(s, flights[i].job, flights[i].partition);
        return;
    }
    e->deaths++;
    schedule_restart(e);
    log_err(log_i64("node", e->node), log_str("msg", "engine ended"), log_str("how", how),
            log_u64("in_flight", len), log_i64("restart_ms", e->retry_at - now_ms()));
    snprintf(what, sizeof(what), "ended: %s", how);
    tell(s, e, what);
    snprintf(what, sizeof(what), "the engine ended: %s", how);
    if (gpu >= 0)
        count_broken(e, gpu);
    for (size_t i = 0; i < len; i++) {
        if (gpu >= 0)
            give_back(s, flights[i].job, flights[i].partition);
        else
            strike_out(s, flights[i].job, flights[i].partition, what);
    }
}

static void kill_engine(struct sched *s, struct engine *e, const char *why)
{
    log_err(log_i64("node", e->node), log_i64("pid", e->pid), log_str("msg", "engine is killed"),
            log_str("why", why));
    hang_up(e);
    e->state = ENGINE_STOPPING;
    supervisor_kill(s->opt.supervisor, (uint32_t)(e - s->engines), SIGKILL);
}

static void engine_started(struct sched *s, struct engine *e, const struct supervisor_event *ev)
{
    e->pid = ev->pid;
    e->sock = ev->socket;
    e->starts++;
    e->heard = now_ms();
    /* A full socket means an engine that does not read: better to know than to wait. */
    if (e->sock < 0 || fcntl(e->sock, F_SETFL, O_NONBLOCK) < 0)
        kill_engine(s, e, "no socket");
}

static void listen_to(struct sched *s, struct engine *e);

static void on_supervisor_event(struct sched *s, const struct supervisor_event *ev)
{
    struct engine *e = ev->slot < s->engines_len ? &s->engines[ev->slot] : NULL;
    char how[256];

    if (!e)
        return;
    switch (ev->type) {
    case SUPERVISOR_STARTED:
        engine_started(s, e, ev);
        break;
    case SUPERVISOR_REFUSED:
        snprintf(how, sizeof(how), "%s: cannot be started: %s", s->opt.engine_argv[0],
                 strerror(-ev->error));
        engine_ended(s, e, how, -1);
        break;
    case SUPERVISOR_ENDED:
        listen_to(s, e); /* a result sent just before the end counts */
        supervisor_describe_status(ev->status, how, sizeof(how));
        engine_ended(s, e, how, broken_gpu(ev->status));
        break;
    }
}

/* False when the spawner is dead. */
static bool take_supervisor_events(struct sched *s)
{
    struct supervisor_event ev;
    int ret;

    while ((ret = supervisor_next(s->opt.supervisor, &ev)) == 0)
        on_supervisor_event(s, &ev);
    return ret == -EAGAIN;
}

/* ---- results ---- */

static void on_written(void *ctx)
{
    sched_wake(ctx);
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
    s->write_again_at = now_ms() + s->opt.journal_retry_ms;
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

static void take_written(struct sched *s)
{
    for (struct commit *c = committer_take(s->committer), *next; c; c = next) {
        next = c->next;
        if (c->result.ret < 0)
            keep_unwritten(s, c);
        else
            end_written(s, c);
    }
}

static void retry_unwritten(struct sched *s)
{
    struct commit *list = s->unwritten;

    s->unwritten = NULL;
    while (list) {
        struct commit *c = list;
        list = c->next;
        committer_put(s->committer, c);
    }
}

static void on_done(struct sched *s, struct engine *e, const struct link_done *d)
{
    const struct partition_report *r = &d->report;

    e->failures = 0;
    pace_proved(&e->pace, now_ms());
    if (s->opt.proved)
        s->opt.proved(s->opt.ctx, (size_t)(e - s->engines), d);
    log_info(log_u64("job", d->job), log_u64("partition", d->partition), log_i64("node", e->node),
             log_str("stage", "verified"), log_u64("synthesis_ms", (uint64_t)r->synthesis_ms),
             log_u64("prove_ms", (uint64_t)(r->transform_ms + r->msm_ms)),
             log_u64("total_ms", (uint64_t)r->total_ms),
             log_str("params", srs_trust_text(r->params)));
    struct commit *c = calloc(1, sizeof(*c));
    if (!c) { /* then it is proved again */
        give_back(s, d->job, d->partition);
        return;
    }
    c->result.job = d->job;
    c->result.partition = d->partition;
    c->result.report = d->report;
    memcpy(c->result.proof, d->proof, sizeof(c->result.proof));
    committer_put(s->committer, c);
}

/* ---- sizes whose parameters cannot be used ---- */

static struct hold *hold_of(struct sched *s, const struct sector_size *size)
{
    return &s->holds[size - sector_sizes];
}

static uint64_t stamp_of(struct sched *s, const struct sector_size *size)
{
    return s->opt.params_stamp ? s->opt.params_stamp(s->opt.ctx, size) : 0;
}

static uint32_t hold_pause_ms(const struct sched *s, uint32_t failures)
{
    uint64_t ms = s->opt.params_retry_ms;

    for (; failures > 1 && ms < PARAMS_RETRY_LAST_MS; failures--)
        ms *= 2;
    return (uint32_t)(ms < PARAMS_RETRY_LAST_MS ? ms : PARAMS_RETRY_LAST_MS);
}

/* Whoever took the parameters away, or damaged them, may bring them back. */
static void hold_size(struct sched *s, struct engine *e, const struct sector_size *size,
                      const char *why)
{
    struct hold *h = hold_of(s, size);
    char text[960];

    if (!h->told || strcmp(h->why, why) != 0) {
        log_err(log_str("size", size->name), log_i64("node", e->node),
                log_str("msg", "waiting for parameters"), log_str("error", why));
        snprintf(text, sizeof(text), "waits for parameters of %s: %s", size->name, why);
        tell(s, e, text);
    }
    snprintf(h->why, sizeof(h->why), "%s", why);
    h->told = true;
    h->failures += !h->on; /* several partitions may fail for one reason */
    h->until = now_ms() + hold_pause_ms(s, h->failures);
    h->look_at = now_ms() + PARAMS_LOOK_MS;
    h->stamp = stamp_of(s, size);
    h->on = true;
    jobs_hold_size(s->opt.jobs, size, true);
}

/* Gives out one more try when something has changed, or after the pause. */
static void check_hold(struct sched *s, const struct sector_size *size)
{
    struct hold *h = hold_of(s, size);
    int64_t now = now_ms();

    if (!h->on || (now < h->until && now < h->look_at))
        return;
    h->look_at = now + PARAMS_LOOK_MS;
    bool changed = h->stamp != stamp_of(s, size);
    if (now < h->until && !changed)
        return;
    h->failures = changed ? 0 : h->failures;
    h->on = false;
    jobs_hold_size(s->opt.jobs, size, false);
}

static void check_holds(struct sched *s)
{
    for (const struct sector_size *size = sector_sizes; size->name; size++)
        check_hold(s, size);
}

/* The parameters of this size are there. */
static void end_hold(struct sched *s, const struct sector_size *size)
{
    struct hold *h = hold_of(s, size);

    if (!h->told)
        return;
    log_info(log_str("size", size->name), log_str("msg", "the parameters can be used again"));
    h->failures = 0;
    h->told = false;
    if (h->on)
        jobs_hold_size(s->opt.jobs, size, false);
    h->on = false;
}

static void wait_for_params(struct sched *s, struct engine *e, const struct in_flight *f,
                            const char *why)
{
    hold_size(s, e, f->size, why);
    give_back(s, f->job, f->partition);
}

/* Input errors fail the job, troubles of the engine send the partition round again. */
static void on_failed(struct sched *s, struct engine *e, const struct in_flight *flight,
                      const struct link_failed *f)
{
    if (f->code == -EAGAIN || f->code == -ECANCELED) {
        s->stolen += flight->recalled && !flight->begun;
        give_back(s, f->job, f->partition);
        return;
    }
    if (f->code == -ENOKEY) {
        wait_for_params(s, e, flight, f->text);
        return;
    }
    log_err(log_u64("job", f->job), log_u64("partition", f->partition), log_i64("node", e->node),
            log_str("msg", "partition failed"), log_i64("code", f->code),
            log_str("error", f->text));
    if (f->code == -ENOMEM || f->code == -EIO) {
        strike_out(s, f->job, f->partition, f->text);
        return;
    }
    forget_strikes(s, f->job, f->partition);
    s->failed++;
    jobs_partition_failed(s->opt.jobs, f->job, f->partition, f->code, f->text);
}

/* ---- proofs that do not verify ---- */

static bool say(struct sched *s, struct engine *e, const struct link_message *m, int fd);

static struct liar *find_liar(struct engine *e, int32_t gpu)
{
    for (size_t i = 0; i < e->liars_len; i++)
        if (e->liars[i].gpu == gpu)
            return &e->liars[i];
    return NULL;
}

static bool is_set_aside(struct engine *e, int32_t gpu)
{
    const struct liar *l = find_liar(e, gpu);

    return l && l->wrong >= SCHED_WRONG_MAX;
}

/* As far as it is known what provers it has. */
static bool all_set_aside(struct engine *e)
{
    const struct node_status *st = &e->status.node;
    uint32_t aside = 0;

    for (uint32_t i = 0; i < st->provers_len; i++)
        aside += is_set_aside(e, st->provers[i].gpu);
    return st->provers_len > 0 && aside == st->provers_len;
}

static void say_set_aside(struct sched *s, struct engine *e, int32_t gpu)
{
    const struct link_message m = {.type = LINK_SET_ASIDE, .set_aside = {gpu}};

    say(s, e, &m, -1);
}

/* An engine that is away for a moment may have good provers. */
static void look_for_provers(struct sched *s)
{
    bool none = true;

    for (size_t i = 0; i < s->engines_len; i++)
        none = none && all_set_aside(&s->engines[i]);
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
    tell(s, e, what);
    say_set_aside(s, e, gpu);
    look_for_provers(s);
}

/* Elsewhere, but not for ever. */
static void on_wrong(struct sched *s, struct engine *e, const struct link_wrong *w)
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
        give_back(s, w->job, w->partition);
        return;
    }
    snprintf(text, sizeof(text),
             "partition %" PRIu32
             ": %d proofs in a row do not verify, the last of node %d: this machine or these "
             "parameters cannot be trusted",
             w->partition, PARTITION_ATTEMPTS, e->node);
    give_up(s, w->job, w->partition, -EILSEQ, text);
}

/* ---- what engines say ---- */

static void on_hello(struct sched *s, struct engine *e, const struct link_hello *h)
{
    struct link_message level = {.type = LINK_LOG_LEVEL,
                                 .log_level = {(uint32_t)atomic_load(&s->log_level)}};

    e->hello = *h;
    e->state = ENGINE_READY;
    say(s, e, &level, -1);
    for (size_t i = 0; i < e->liars_len; i++)
        if (is_set_aside(e, e->liars[i].gpu))
            say_set_aside(s, e, e->liars[i].gpu);
    log_info(log_i64("node", e->node), log_i64("pid", e->pid), log_str("msg", "engine ready"),
             log_str("device", h->device), log_u64("threads", h->threads));
    tell(s, e, "started");
}

static void on_stage(struct sched *s, struct engine *e, const struct link_stage *m)
{
    static const char *const names[] = {"load", "synthesize", "prove"};
    struct in_flight *f = find_flight(e, m->job, m->partition);

    if (!f)
        return;
    if (f->stage != (enum partition_stage)m->stage)
        log_debug(log_u64("job", m->job), log_u64("partition", m->partition),
                  log_i64("node", e->node), log_str("stage", names[m->stage]));
    f->stage = (enum partition_stage)m->stage;
    f->percent = m->percent;
    f->begun = true;
    if (f->stage != PARTITION_LOADING)
        end_hold(s, f->size);
    jobs_partition_stage(s->opt.jobs, m->job, m->partition, f->stage, f->percent);
}

/* A result of a partition that the engine does not have is nobody's. */
static bool land(struct engine *e, uint64_t job, uint32_t partition, struct in_flight *landed)
{
    struct in_flight *f = find_flight(e, job, partition);

    if (!f) {
        log_warn(log_u64("job", job), log_u64("partition", partition), log_i64("node", e->node),
                 log_str("msg", "an engine speaks of a partition that it was not given"));
        return false;
    }
    *landed = *f;
    drop_flight(e, f);
    return true;
}

/* A result that names another node than the engine's is made of something else than a proof. */
static bool is_of_node(struct sched *s, struct engine *e, int node)
{
    if (node == e->node)
        return true;
    kill_engine(s, e, "it speaks for another node");
    return false;
}

/* The engine itself should not open files while it proves. */
static uint64_t resident_bytes(pid_t pid)
{
    unsigned long long total, resident = 0;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void take_status(struct engine *e, const struct link_status *st)
{
    const int64_t now = now_ms();
    const uint64_t resident = e->status.resident_bytes;

    e->status = *st;
    e->status.resident_bytes = resident;
    if (resident && now < e->look_at)
        return;
    e->status.resident_bytes = resident_bytes(e->pid);
    e->look_at = now + RESIDENT_EVERY_MS;
}

static void on_message(struct sched *s, struct engine *e, const struct link_message *m)
{
    struct in_flight f;

    switch (m->type) {
    case LINK_HELLO:
        if (e->state != ENGINE_STARTING)
            kill_engine(s, e, "it says hello twice");
        else if (is_of_node(s, e, m->hello.node))
            on_hello(s, e, &m->hello);
        break;
    case LINK_STAGE:
        on_stage(s, e, &m->stage);
        break;
    case LINK_DONE:
        if (is_of_node(s, e, m->done.report.node) && land(e, m->done.job, m->done.partition, &f))
            on_done(s, e, &m->done);
        break;
    case LINK_FAILED:
        if (land(e, m->failed.job, m->failed.partition, &f))
            on_failed(s, e, &f, &m->failed);
        break;
    case LINK_WRONG:
        if (land(e, m->wrong.job, m->wrong.partition, &f))
            on_wrong(s, e, &m->wrong);
        break;
    case LINK_STATUS:
        take_status(e, &m->status);
        break;
    default: /* a message of the front's own kind: an engine that lost its mind */
        kill_engine(s, e, "it sent a message that only the front may send");
    }
}

static void listen_to(struct sched *s, struct engine *e)
{
    struct link_message m;
    int fd;

    while (e->sock >= 0) {
        int ret = link_receive(e->sock, &m, &fd);
        if (fd >= 0)
            close(fd);
        if (ret == -EAGAIN)
            return;
        if (ret == -ENOTCONN) { /* its death will be reported; if it lives, it is of no use */
            hang_up(e);
            e->state = ENGINE_STOPPING;
            supervisor_kill(s->opt.supervisor, (uint32_t)(e - s->engines), SIGKILL);
            return;
        }
        e->heard = now_ms();
        if (ret < 0)
            kill_engine(s, e, "it sent a malformed message");
        else
            on_message(s, e, &m);
    }
}

/* ---- what engines are told ---- */

static bool say(struct sched *s, struct engine *e, const struct link_message *m, int fd)
{
    int ret = link_send(e->sock, m, fd);

    if (ret == -EAGAIN)
        kill_engine(s, e, "it does not read its socket");
    return ret == 0;
}

static bool give_partition(struct sched *s, struct engine *e, const struct partition_work *w)
{
    const struct strike *strike = find_strike(s, w->job, w->partition);
    struct link_message m = {
        .type = LINK_WORK,
        .work = {w->job, w->partition, (uint32_t)w->priority, w->turn,
                 strike && strike->avoid == e ? strike->avoid_gpu : LINK_NO_PROVER}};
    enum job_priority class = w->priority;
    bool sent = say(s, e, &m, w->c1_fd);

    close(w->c1_fd);
    if (!sent) {
        give_back(s, w->job, w->partition);
        return false;
    }
    jobs_partition_priority(s->opt.jobs, w->job, &class);
    pace_given(&e->pace, e->flights_len, now_ms());
    e->flights[e->flights_len++] = (struct in_flight){.job = w->job,
                                                      .partition = w->partition,
                                                      .size = w->size,
                                                      .priority = class,
                                                      .given = m.work,
                                                      .stage = PARTITION_SYNTHESIZING,
                                                      .since = now_ms()};
    return true;
}

/* Bit i: sector_sizes[i] can never be proved there. */
static uint32_t refused_sizes(const struct link_hello *h)
{
    uint32_t refused = 0;

    for (uint32_t i = 0; i < LINK_SIZES; i++)
        refused |= (uint32_t)(h->needed_bytes[i] > h->limit_bytes) << i;
    return refused;
}

/* ---- who gets what ---- */

static struct load load_of(struct engine *e)
{
    size_t capacity = min_size(e->hello.capacity, SCHED_IN_FLIGHT_MAX);
    struct load l = {.open = e->state == ENGINE_READY && !all_set_aside(e),
                     .in_flight = e->flights_len,
                     .ms = e->pace.ms};

    l.room = capacity > e->flights_len ? capacity - e->flights_len : 0;
    for (size_t i = 0; i < e->flights_len; i++)
        l.waiting += !e->flights[i].begun && !e->flights[i].recalled && !e->flights[i].cancel_sent;
    return l;
}

static void load_all(struct sched *s, struct load loads[SCHED_ENGINES_MAX])
{
    for (size_t i = 0; i < s->engines_len; i++)
        loads[i] = load_of(&s->engines[i]);
}

static bool refuses(const struct engine *e, const struct sector_size *size)
{
    return refused_sizes(&e->hello) >> (size - sector_sizes) & 1;
}

/* It takes partitions, or will in a moment. */
static bool is_there(struct engine *e)
{
    return load_of(e).open || (e->state == ENGINE_STARTING && e->failures == 0);
}

/* The engine that made a wrong proof of this partition, if there is another one that could do better; else NULL. */
static const struct engine *to_be_avoided(struct sched *s, const struct partition_work *w)
{
    const struct strike *strike = find_strike(s, w->job, w->partition);

    for (size_t i = 0; strike && strike->avoid && i < s->engines_len; i++)
        if (&s->engines[i] != strike->avoid && is_there(&s->engines[i]) &&
            !refuses(&s->engines[i], w->size))
            return strike->avoid;
    return NULL;
}

static void park(struct sched *s, const struct partition_work *w)
{
    struct parked *p = malloc(sizeof(*p));

    if (!p) {
        close(w->c1_fd);
        give_back(s, w->job, w->partition);
        return;
    }
    *p = (struct parked){*w, s->parked};
    s->parked = p;
}

static void give_back_parked(struct sched *s, struct parked **at)
{
    struct parked *p = *at;

    *at = p->next;
    close(p->work.c1_fd);
    give_back(s, p->work.job, p->work.partition);
    free(p);
}

/* False when there is no room for it. */
static bool give_parked(struct sched *s, struct parked **at)
{
    struct load loads[SCHED_ENGINES_MAX] = {{0}};
    struct parked *p = *at;
    const struct engine *avoid = to_be_avoided(s, &p->work);

    load_all(s, loads);
    for (size_t i = 0; i < s->engines_len; i++)
        if (&s->engines[i] == avoid || refuses(&s->engines[i], p->work.size))
            loads[i].open = false;
    size_t i = balance_choose(loads, s->engines_len);
    if (i == s->engines_len)
        return false;
    *at = p->next;
    give_partition(s, &s->engines[i], &p->work);
    free(p);
    return true;
}

static void give_all_parked(struct sched *s)
{
    struct parked **at = &s->parked;

    while (*at) {
        if (jobs_cancelled(s->opt.jobs, (*at)->work.job))
            give_back_parked(s, at);
        else if (!give_parked(s, at))
            at = &(*at)->next;
    }
}

/* False when there is nothing for this engine, or it does not take it. */
static bool give_next(struct sched *s, struct engine *e)
{
    struct partition_work w;

    if (jobs_take_partition_but(s->opt.jobs, e->node, refused_sizes(&e->hello), &w) < 0)
        return false;
    if (to_be_avoided(s, &w) != e)
        return give_partition(s, e, &w);
    park(s, &w);
    return true;
}

static void give_out(struct sched *s)
{
    bool nothing[SCHED_ENGINES_MAX] = {false};
    struct load loads[SCHED_ENGINES_MAX] = {{0}};

    while (!atomic_load(&s->stop)) {
        give_all_parked(s);
        load_all(s, loads);
        for (size_t i = 0; i < s->engines_len; i++)
            loads[i].open = loads[i].open && !nothing[i];
        size_t i = balance_choose(loads, s->engines_len);
        if (i == s->engines_len)
            return;
        nothing[i] = !give_next(s, &s->engines[i]);
    }
}

/* Of those that have not been begun the one that would be last. */
static struct in_flight *last_waiting(struct engine *e)
{
    struct in_flight *last = NULL;

    for (size_t i = 0; i < e->flights_len; i++) {
        struct in_flight *f = &e->flights[i];
        if (!f->begun && !f->recalled && !f->cancel_sent &&
            (!last || link_work_is_before(&last->given, &f->given)))
            last = f;
    }
    return last;
}

/* What an engine gives back goes through the queue, which has nothing better for the idle one. One at a time. */
static void recall(struct sched *s, struct engine *e)
{
    struct in_flight *f = last_waiting(e);
    const struct link_message m = {.type = LINK_RECALL, .recall = {f->job, f->partition}};

    f->recalled = true;
    say(s, e, &m, -1);
}

static bool waits_for_recalled(const struct engine *e)
{
    for (size_t i = 0; i < e->flights_len; i++)
        if (e->flights[i].recalled && !e->flights[i].begun)
            return true;
    return false;
}

static void steal(struct sched *s)
{
    struct load loads[SCHED_ENGINES_MAX] = {{0}};

    load_all(s, loads);
    for (size_t i = 0; i < s->engines_len; i++)
        if (waits_for_recalled(&s->engines[i]))
            return;
    for (size_t i = 0; i < s->engines_len && !atomic_load(&s->stop); i++) {
        size_t from = balance_steal(loads, s->engines_len, i);
        struct in_flight *f = from < s->engines_len ? last_waiting(&s->engines[from]) : NULL;
        if (!f || refuses(&s->engines[i], f->size))
            continue;
        recall(s, &s->engines[from]);
        return;
    }
}

/* ---- what changes while it is there ---- */

static void tell_of_cancelled(struct sched *s, struct engine *e)
{
    for (size_t i = 0; i < e->flights_len && e->state == ENGINE_READY; i++) {
        struct in_flight *f = &e->flights[i];
        struct link_message m = {.type = LINK_CANCEL, .cancel = {f->job}};
        if (f->cancel_sent || !jobs_cancelled(s->opt.jobs, f->job))
            continue;
        f->cancel_sent = true;
        say(s, e, &m, -1);
    }
}

static void tell_of_priorities(struct sched *s, struct engine *e)
{
    for (size_t i = 0; i < e->flights_len && e->state == ENGINE_READY; i++) {
        struct in_flight *f = &e->flights[i];
        enum job_priority now = f->priority;
        if (jobs_partition_priority(s->opt.jobs, f->job, &now) < 0 || now == f->priority)
            continue;
        const struct link_message m = {.type = LINK_PRIORITY, .priority = {f->job, (uint32_t)now}};
        f->priority = now; /* others of the job send it once more: no harm */
        say(s, e, &m, -1);
    }
}

static void tell_log_level(struct sched *s)
{
    int level = atomic_load(&s->log_level);
    struct link_message m = {.type = LINK_LOG_LEVEL, .log_level = {(uint32_t)level}};

    if (level == s->sent_log_level)
        return;
    s->sent_log_level = level; /* engines that are not ready yet hear it after their hello */
    for (size_t i = 0; i < s->engines_len; i++)
        if (s->engines[i].state == ENGINE_READY)
            say(s, &s->engines[i], &m, -1);
}

/* ---- the loop ---- */

static void check_timers(struct sched *s, struct engine *e)
{
    int64_t now = now_ms();

    if (e->state == ENGINE_DOWN && now >= e->retry_at)
        start_engine(s, e);
    if ((e->state == ENGINE_READY || (e->state == ENGINE_STARTING && e->pid)) &&
        now - e->heard >= s->opt.silence_ms)
        kill_engine(s, e, "it has been silent for too long");
}

/* With lock. */
static void publish_holds(const struct sched *s, struct sched_status *st)
{
    st->holds_len = 0;
    for (size_t i = 0; i < SCHED_SIZES; i++) {
        const struct hold *h = &s->holds[i];
        struct sched_hold *out = &st->holds[st->holds_len];
        if (!h->on)
            continue;
        out->size = &sector_sizes[i];
        out->retry_in_ms = h->until; /* made relative by readers */
        memcpy(out->why, h->why, sizeof(out->why));
        st->holds_len++;
    }
}

static void publish_status(struct sched *s)
{
    pthread_mutex_lock(&s->lock);
    struct sched_status *st = &s->shared;
    st->engines_len = s->engines_len;
    st->unwritten = s->unwritten_len;
    st->partitions_done = s->done;
    st->partitions_failed = s->failed;
    st->partitions_returned = s->returned;
    st->partitions_stolen = s->stolen;
    st->no_prover = s->no_prover;
    publish_holds(s, st);
    for (size_t i = 0; i < s->engines_len; i++) {
        struct engine *e = &s->engines[i];
        struct engine_status *es = &st->engines[i];
        *es = (struct engine_status){.node = e->node,
                                     .state = e->state,
                                     .pid = e->pid,
                                     .hello = e->hello,
                                     .status = e->status,
                                     .starts = e->starts,
                                     .deaths = e->deaths,
                                     .set_aside = all_set_aside(e),
                                     .pace_ms = e->pace.ms,
                                     .wrong = e->wrong};
        es->retry_in_ms = e->state == ENGINE_DOWN ? e->retry_at : 0; /* made relative by readers */
        memcpy(es->last_end, e->last_end, sizeof(es->last_end));
        es->in_flight_len = e->flights_len;
        for (size_t k = 0; k < e->flights_len; k++) {
            es->in_flight[k].job = e->flights[k].job;
            es->in_flight[k].partition = e->flights[k].partition;
            es->in_flight[k].stage = e->flights[k].stage;
            es->in_flight[k].percent = e->flights[k].percent;
            es->in_flight[k].ms = e->flights[k].since;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static void make_pass(struct sched *s)
{
    take_written(s);
    if (s->unwritten && now_ms() >= s->write_again_at)
        retry_unwritten(s);
    tell_log_level(s);
    check_holds(s);
    for (size_t i = 0; i < s->engines_len; i++) {
        struct engine *e = &s->engines[i];
        check_timers(s, e);
        tell_of_cancelled(s, e);
        tell_of_priorities(s, e);
    }
    give_out(s);
    steal(s);
    look_for_provers(s);
    publish_status(s);
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int poll_timeout(const struct sched *s)
{
    int64_t at = s->unwritten ? s->write_again_at : NEVER, now = now_ms();

    for (size_t i = 0; i < s->engines_len; i++) {
        const struct engine *e = &s->engines[i];
        if (e->state == ENGINE_DOWN)
            at = earliest(at, e->retry_at);
        else if (e->state != ENGINE_STOPPING)
            at = earliest(at, e->heard + s->opt.silence_ms);
    }
    for (size_t i = 0; i < SCHED_SIZES; i++)
        if (s->holds[i].on)
            at = earliest(at, earliest(s->holds[i].until, s->holds[i].look_at));
    if (at == NEVER)
        return -1;
    return at <= now ? 0 : (int)earliest(at - now, INT32_MAX);
}

/* Waits for something to happen and takes it in. False when the spawner is dead. */
static bool take_events(struct sched *s, int timeout_ms)
{
    struct pollfd fds[2 + SCHED_ENGINES_MAX] = {{s->wake_fd, POLLIN, 0},
                                                {supervisor_fd(s->opt.supervisor), POLLIN, 0}};
    uint64_t count;

    for (size_t i = 0; i < s->engines_len; i++)
        fds[2 + i] = (struct pollfd){s->engines[i].sock, POLLIN, 0}; /* -1 is skipped */
    if (poll(fds, 2 + s->engines_len, timeout_ms) <= 0)
        return true;
    if (fds[0].revents && read(s->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        log_warn(log_str("msg", "cannot read the wake-up counter"),
                 log_str("error", strerror(errno)));
    for (size_t i = 0; i < s->engines_len; i++)
        if (fds[2 + i].revents)
            listen_to(s, &s->engines[i]);
    return !fds[1].revents || take_supervisor_events(s);
}

static bool any_alive(const struct sched *s)
{
    for (size_t i = 0; i < s->engines_len; i++)
        if (s->engines[i].state != ENGINE_DOWN)
            return true;
    return false;
}

static void stop_engines(struct sched *s)
{
    struct link_message m = {.type = LINK_STOP};
    int64_t deadline = now_ms() + STOP_GRACE_MS;
    bool killed = false;

    for (size_t i = 0; i < s->engines_len; i++)
        if (s->engines[i].sock >= 0)
            link_send(s->engines[i].sock, &m, -1);
    while (any_alive(s) && now_ms() < deadline + (killed ? STOP_GRACE_MS : 0)) {
        if (!take_events(s, (int)(deadline > now_ms() ? deadline - now_ms() : 100)))
            break;
        if (killed || now_ms() < deadline)
            continue;
        for (size_t i = 0; i < s->engines_len; i++)
            if (s->engines[i].state != ENGINE_DOWN)
                kill_engine(s, &s->engines[i], "it did not stop in time");
        killed = true;
    }
}

/* Whatever the table still believes to be in an engine is not. */
static void give_back_all(struct sched *s)
{
    while (s->parked)
        give_back_parked(s, &s->parked);
    for (size_t i = 0; i < s->engines_len; i++) {
        struct engine *e = &s->engines[i];
        for (size_t k = 0; k < e->flights_len; k++)
            give_back(s, e->flights[k].job, e->flights[k].partition);
        e->flights_len = 0;
        hang_up(e);
    }
}

static void *sched_main(void *arg)
{
    struct sched *s = arg;
    bool spawner_alive = true;

    while (!atomic_load(&s->stop) && spawner_alive) {
        make_pass(s);
        spawner_alive = take_events(s, poll_timeout(s));
    }
    if (!spawner_alive) {
        log_err(log_str("msg", "the process that starts engines is dead: the service must end"));
        if (s->opt.lost)
            s->opt.lost(s->opt.ctx);
    } else {
        stop_engines(s);
    }
    give_back_all(s);
    retry_unwritten(s);
    committer_stop(s->committer);
    take_written(s);
    publish_status(s);
    return NULL;
}

/* ---- the outside ---- */

int sched_create(const struct sched_options *opt, struct sched **out, struct errmsg *err)
{
    if (opt->nodes_len == 0 || opt->nodes_len > SCHED_ENGINES_MAX)
        return errmsg_set(err, -EINVAL, "scheduler: %zu engines, 1 to %d are possible",
                          opt->nodes_len, SCHED_ENGINES_MAX);
    struct sched *s = calloc(1, sizeof(*s));
    if (!s)
        return errmsg_set(err, -ENOMEM, "scheduler: no memory");
    s->opt = *opt;
    if (!s->opt.strikes)
        s->opt.strikes = SCHED_STRIKES;
    if (!s->opt.silence_ms)
        s->opt.silence_ms = SILENCE_MS;
    if (!s->opt.params_retry_ms)
        s->opt.params_retry_ms = PARAMS_RETRY_MS;
    if (!s->opt.journal_retry_ms)
        s->opt.journal_retry_ms = JOURNAL_RETRY_MS;
    pthread_mutex_init(&s->lock, NULL);
    s->sent_log_level = (int)log_get_level();
    atomic_store(&s->log_level, s->sent_log_level);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int ret = s->wake_fd < 0 ? -errno : 0;
    if (ret == 0)
        ret = committer_create(opt->jobs, on_written, s, &s->committer);
    s->engines = calloc(opt->nodes_len, sizeof(*s->engines));
    if (!s->engines)
        ret = -ENOMEM;
    if (ret < 0) {
        sched_destroy(s);
        return errmsg_set(err, ret, "scheduler: cannot be set up: %s", strerror(-ret));
    }
    s->engines_len = opt->nodes_len;
    for (size_t i = 0; i < s->engines_len; i++) {
        s->engines[i].node = opt->nodes[i];
        s->engines[i].sock = -1;
    }
    s->opt.nodes = NULL;
    publish_status(s);
    *out = s;
    return 0;
}

int sched_start(struct sched *s, struct errmsg *err)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = pthread_create(&s->thread, NULL, sched_main, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0)
        return errmsg_set(err, -ret, "scheduler: cannot start its thread");
    pthread_setname_np(s->thread, "sched");
    s->running = true;
    return 0;
}

void sched_stop(struct sched *s)
{
    if (!s || !s->running)
        return;
    atomic_store(&s->stop, true);
    sched_wake(s);
    pthread_join(s->thread, NULL);
    s->running = false;
}

void sched_destroy(struct sched *s)
{
    if (!s)
        return;
    sched_stop(s);
    for (struct commit *c = s->unwritten, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    committer_destroy(s->committer);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    pthread_mutex_destroy(&s->lock);
    free(s->strikes);
    free(s->engines);
    free(s);
}

void sched_wake(struct sched *s)
{
    uint64_t one = 1;

    /* Fails only when the counter is full, and then the thread wakes anyway. */
    if (write(s->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        log_warn(log_str("msg", "cannot wake the scheduler"), log_str("error", strerror(errno)));
}

void sched_set_log_level(struct sched *s, enum log_level level)
{
    atomic_store(&s->log_level, (int)level);
    sched_wake(s);
}

static void make_relative(struct engine_status *e, int64_t now)
{
    if (e->state == ENGINE_DOWN)
        e->retry_in_ms = e->retry_in_ms > now ? e->retry_in_ms - now : 0;
    for (size_t k = 0; k < e->in_flight_len; k++)
        e->in_flight[k].ms = now - e->in_flight[k].ms;
}

void sched_status(struct sched *s, struct sched_status *out)
{
    int64_t now = now_ms();

    pthread_mutex_lock(&s->lock);
    *out = s->shared;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < out->holds_len; i++) {
        struct sched_hold *h = &out->holds[i];
        h->retry_in_ms = h->retry_in_ms > now ? h->retry_in_ms - now : 0;
    }
    for (size_t i = 0; i < out->engines_len; i++)
        make_relative(&out->engines[i], now);
}

void sched_engine_status(struct sched *s, size_t engine, struct engine_status *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->shared.engines[engine];
    pthread_mutex_unlock(&s->lock);
    make_relative(out, now_ms());
}

/* Of an engine that is down, what it said last holds. */
bool sched_refuses(struct sched *s, const struct sector_size *size, struct errmsg *err)
{
    size_t i = (size_t)(size - sector_sizes);
    const struct link_hello *best = &s->shared.engines[0].hello; /* who comes nearest */
    bool refused = true;

    pthread_mutex_lock(&s->lock);
    for (size_t k = 0; k < s->shared.engines_len && refused; k++) {
        const struct link_hello *h = &s->shared.engines[k].hello;
        refused = h->needed_bytes[i] > h->limit_bytes;
        if (h->limit_bytes > best->limit_bytes)
            best = h;
    }
    if (refused)
        errmsg_set(err, -EINVAL,
                   "a sector of %s needs %.1f GiB of memory to be proved, %s has %.1f GiB",
                   size->name, (double)best->needed_bytes[i] / (1 << 30), best->limit_from,
                   (double)best->limit_bytes / (1 << 30));
    pthread_mutex_unlock(&s->lock);
    return refused;
}
