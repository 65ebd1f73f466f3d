/*
 * Engines: how they start and end, and what they say. One that died, or fell silent, is started again after a pause that grows; what it
 * held comes back to the queue.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/sched_internal.h"
#include "numa/limits.h"

#define LOG_MODULE LOG_SCHED

#define GPU_FAULTS_MAX 3 /* then an engine does without it */
#define RESIDENT_EVERY_MS 500
#define MESSAGES_MAX 1024 /* that are heard at a time: more than a socket holds */
#define HEALTHY_MS 60000  /* an engine that ran so long is not in a crash loop */

void engine_tell(const struct sched *s, const struct engine *e, const char *what)
{
    char text[1024];

    if (!s->opt.event)
        return;
    snprintf(text, sizeof(text), "engine node=%d %s", e->node, what);
    s->opt.event(s->opt.ctx, text);
}

bool engine_say(struct sched *s, struct engine *e, const struct link_message *m, int fd)
{
    int ret = link_send(e->sock, m, fd);

    if (ret == -EPIPE || ret == -EBADF)
        e->deaf_until = NEVER;
    else if (ret < 0 && e->deaf_until != NEVER)
        e->deaf_until = sched_now_ms() + LACK_MS; /* the kernel has no memory for it */
    if (ret == -EAGAIN)
        engine_kill(s, e, "it does not read its socket");
    return ret == 0;
}

/* ---- an engine's life ---- */

void engine_hang_up(struct engine *e)
{
    if (e->sock >= 0)
        close(e->sock);
    e->sock = -1;
}

static void schedule_restart(struct engine *e)
{
    int64_t now = sched_now_ms();

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

void engine_start(struct sched *s, struct engine *e)
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
    e->started = e->heard = sched_now_ms();
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

/* With it end the wishes that it had; it will not be asked again for what perhaps killed it. */
static void end_wishes(struct sched *s, struct engine *e, const char *how)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < SCHED_SIZES; i++) {
        struct sched_wish_status *w = &e->wishes[i];
        if (w->state != WISH_SENT)
            continue;
        w->state = w->evict ? WISH_NONE : WISH_FAILED;
        snprintf(w->why, sizeof(w->why), "the engine ended: %.200s", how);
    }
    pthread_mutex_unlock(&s->lock);
}

static bool was_loading(const struct in_flight *f)
{
    return f->begun && f->stage == PARTITION_LOADING;
}

static bool was_touched(const struct in_flight *f)
{
    return f->reading || (f->begun && !was_loading(f));
}

/* What an engine ended of is the fault of what it worked on until the contrary is known, and of all that it had where that is nothing; not
 * where a GPU broke (`gpu` not -1), nor while it was bringing parameters. */
static void engine_ended(struct sched *s, struct engine *e, const char *how, int gpu)
{
    struct in_flight flights[SCHED_IN_FLIGHT_MAX];
    size_t len = e->flights_len;
    bool known = gpu >= 0; /* who is to blame */
    char what[320];

    engine_hang_up(e);
    end_wishes(s, e, how);
    snprintf(e->last_end, sizeof(e->last_end), "%s", how);
    memcpy(flights, e->flights, sizeof(flights));
    e->flights_len = 0;
    e->pid = 0;
    memset(&e->status, 0, sizeof(e->status));
    for (size_t i = 0; i < SCHED_SIZES; i++) /* the next process has the memory that this one had */
        e->holds[i].on = e->holds[i].on && e->holds[i].lacks != JOB_LACKS_MEMORY;
    if (atomic_load(&s->stop)) {
        e->state = ENGINE_DOWN;
        e->retry_at = NEVER;
        for (size_t i = 0; i < len; i++)
            sched_give_back(s, flights[i].job, flights[i].partition);
        return;
    }
    e->deaths++;
    schedule_restart(e);
    log_err(log_i64("node", e->node), log_str("msg", "engine ended"), log_str("how", how),
            log_u64("in_flight", len), log_i64("restart_ms", e->retry_at - sched_now_ms()));
    snprintf(what, sizeof(what), "ended: %s", how);
    engine_tell(s, e, what);
    snprintf(what, sizeof(what), "the engine ended: %s", how);
    if (gpu >= 0)
        count_broken(e, gpu);
    for (size_t i = 0; i < len; i++)
        known |= was_touched(&flights[i]) || was_loading(&flights[i]);
    for (size_t i = 0; i < len; i++) {
        if (gpu >= 0 || (known && !was_touched(&flights[i])))
            sched_give_back(s, flights[i].job, flights[i].partition);
        else
            sched_strike_out(s, flights[i].job, flights[i].partition, what);
    }
}

static void end_engine(struct sched *s, struct engine *e)
{
    engine_hang_up(e);
    e->state = ENGINE_STOPPING;
    e->killed = sched_now_ms();
    supervisor_kill(s->opt.supervisor, (uint32_t)(e - s->engines), SIGKILL);
}

void engine_kill(struct sched *s, struct engine *e, const char *why)
{
    log_err(log_i64("node", e->node), log_i64("pid", e->pid), log_str("msg", "engine is killed"),
            log_str("why", why));
    end_engine(s, e);
}

/* What it has in flight goes back; what it had begun counts as a failed try, by this reason, if there is one. */
static void empty(struct sched *s, struct engine *e, const char *why)
{
    while (e->flights_len > 0) {
        const struct in_flight f = e->flights[--e->flights_len];
        if (why && was_touched(&f))
            sched_strike_out(s, f.job, f.partition, why);
        else
            sched_give_back(s, f.job, f.partition);
    }
}

void engine_take_back(struct sched *s, struct engine *e)
{
    log_err(log_i64("node", e->node), log_i64("pid", e->pid),
            log_str("msg", "an engine that was killed does not end: others get what it holds"),
            log_u64("in_flight", e->flights_len));
    engine_tell(s, e, "does not end, though it was killed");
    empty(s, e, "the engine was killed and does not end");
}

void engine_replace(struct sched *s, struct engine *e, const char *why)
{
    engine_kill(s, e, why); /* it is not heard any more */
    empty(s, e, NULL);
}

/* The kernel drops a descriptor that it has no number for. */
static void kill_unheard(struct sched *s, struct engine *e)
{
    struct rlimit limit = {0, 0};
    char why[128];

    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(
        why, sizeof(why),
        "no descriptor for its socket: the limit of open files is %ju (ulimit -n, LimitNOFILE)",
        (uintmax_t)limit.rlim_cur);
    engine_kill(s, e, why);
}

static void engine_started(struct sched *s, struct engine *e, const struct supervisor_event *ev)
{
    e->pid = ev->pid;
    e->sock = ev->socket;
    e->deaf_until = 0;
    e->starts++;
    e->heard = sched_now_ms();
    /* A full socket means an engine that does not read: better to know than to wait. */
    if (e->sock < 0)
        kill_unheard(s, e);
    else if (fcntl(e->sock, F_SETFL, O_NONBLOCK) < 0)
        engine_kill(s, e, "its socket does not work");
}

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
        engine_listen(s, e); /* a result sent just before the end counts */
        supervisor_describe_status(ev->status, how, sizeof(how));
        engine_ended(s, e, how, broken_gpu(ev->status));
        break;
    }
}

/* False when the spawner is dead. */
bool sched_take_supervisor_events(struct sched *s)
{
    struct supervisor_event ev;
    int ret;

    while ((ret = supervisor_next(s->opt.supervisor, &ev)) == 0)
        on_supervisor_event(s, &ev);
    return ret == -EAGAIN;
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

/* ---- parameters by name ---- */

/* Nobody has heard of it yet, unless there is another one by now. */
static void wish_again(struct sched *s, struct sched_wish_status *w)
{
    pthread_mutex_lock(&s->lock);
    if (w->state == WISH_SENT)
        w->state = WISH_ASKED;
    pthread_mutex_unlock(&s->lock);
}

void engine_tell_wishes(struct sched *s, struct engine *e)
{
    for (uint32_t i = 0; i < SCHED_SIZES && e->state == ENGINE_READY; i++) {
        struct link_message m = {.type = LINK_PARAMS, .params = {.size = i}};
        pthread_mutex_lock(&s->lock);
        struct sched_wish_status *w = &e->wishes[i];
        bool due = w->state == WISH_ASKED;
        if (due)
            w->state = WISH_SENT;
        m.params.evict = w->evict;
        pthread_mutex_unlock(&s->lock);
        if (due && !engine_say(s, e, &m, -1))
            wish_again(s, w);
    }
}

static void on_params_done(struct sched *s, struct engine *e, const struct link_params_done *d)
{
    const struct sector_size *size = &sector_sizes[d->asked.size];
    const bool evict = d->asked.evict;
    char what[400];

    pthread_mutex_lock(&s->lock);
    struct sched_wish_status *w = &e->wishes[d->asked.size];
    bool due = w->state == WISH_SENT && w->evict == evict;
    if (due) {
        w->state = d->code < 0 ? WISH_FAILED : WISH_DONE;
        memcpy(w->why, d->text, sizeof(w->why));
    }
    pthread_mutex_unlock(&s->lock);
    if (!due) /* there is a later one */
        return;
    const char *done = evict ? "gave up" : "loaded";
    if (d->code < 0)
        snprintf(what, sizeof(what), "cannot %s parameters of %s: %s", evict ? "give up" : "load",
                 size->name, d->text);
    else
        snprintf(what, sizeof(what), "%s parameters of %s", done, size->name);
    if (d->code < 0)
        log_warn(log_i64("node", e->node), log_str("msg", what));
    else
        log_info(log_i64("node", e->node), log_str("msg", what));
    engine_tell(s, e, what);
    if (d->code == 0 && !evict)
        engine_end_hold(e, size);
}

/* ---- what engines say ---- */

static void on_hello(struct sched *s, struct engine *e, const struct link_hello *h)
{
    struct link_message levels = {.type = LINK_LOG_LEVELS, .log_levels = {log_get_levels()}};

    e->hello = *h;
    e->state = ENGINE_READY;
    engine_say(s, e, &levels, -1);
    for (size_t i = 0; i < e->liars_len; i++)
        if (engine_is_set_aside(e, e->liars[i].gpu))
            engine_say_set_aside(s, e, e->liars[i].gpu);
    log_info(log_i64("node", e->node), log_i64("pid", e->pid), log_str("msg", "engine ready"),
             log_str("device", h->device), log_u64("threads", h->threads));
    engine_tell(s, e, "started");
}

static void on_stage(struct sched *s, struct engine *e, const struct link_stage *m)
{
    static const char *const names[] = {"load", "synthesize", "prove"};
    struct in_flight *f = find_flight(e, m->job, m->partition);

    if (!f)
        return;
    if (m->stage == PARTITION_READING || m->stage == PARTITION_READ) { /* it still waits, as everybody else sees it */
        f->reading = m->stage == PARTITION_READING;
        return;
    }
    if (f->stage != (enum partition_stage)m->stage)
        log_debug(log_u64("job", m->job), log_u64("partition", m->partition),
                  log_i64("node", e->node), log_str("stage", names[m->stage]));
    f->stage = (enum partition_stage)m->stage;
    f->percent = m->percent;
    f->begun = true;
    if (f->stage != PARTITION_LOADING) {
        f->has_params_at = f->has_params_at ? f->has_params_at : sched_now_ms();
        engine_end_hold(e, f->size);
    }
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
    engine_kill(s, e, "it speaks for another node");
    return false;
}

static void take_status(struct engine *e, const struct link_status *st)
{
    const int64_t now = sched_now_ms();
    const uint64_t resident = e->status.resident_bytes;

    e->status = *st;
    e->status.resident_bytes = resident;
    if (resident && now < e->look_at)
        return;
    e->status.resident_bytes =
        resident_bytes(e->pid); /* the engine itself should not open files while it proves */
    e->look_at = now + RESIDENT_EVERY_MS;
}

static void on_message(struct sched *s, struct engine *e, const struct link_message *m)
{
    struct in_flight f;

    switch (m->type) {
    case LINK_HELLO:
        if (e->state != ENGINE_STARTING)
            engine_kill(s, e, "it says hello twice");
        else if (is_of_node(s, e, m->hello.node))
            on_hello(s, e, &m->hello);
        break;
    case LINK_STAGE:
        on_stage(s, e, &m->stage);
        break;
    case LINK_DONE:
        if (is_of_node(s, e, m->done.report.node) && land(e, m->done.job, m->done.partition, &f))
            sched_on_done(s, e, &f, &m->done);
        break;
    case LINK_FAILED:
        if (land(e, m->failed.job, m->failed.partition, &f))
            sched_on_failed(s, e, &f, &m->failed);
        break;
    case LINK_WRONG:
        if (land(e, m->wrong.job, m->wrong.partition, &f))
            sched_on_wrong(s, e, &m->wrong);
        break;
    case LINK_STATUS:
        take_status(e, &m->status);
        break;
    case LINK_PARAMS_DONE:
        on_params_done(s, e, &m->params_done);
        break;
    default: /* a message of the front's own kind: an engine that lost its mind */
        engine_kill(s, e, "it sent a message that only the front may send");
    }
}

void engine_listen(struct sched *s, struct engine *e)
{
    struct link_message m;
    int fd;

    for (int n = 0; e->sock >= 0 && n < MESSAGES_MAX; n++) {
        int ret = link_receive(e->sock, &m, &fd);
        if (fd >= 0)
            close(fd);
        if (ret == -EAGAIN)
            return;
        if (ret == -ENOTCONN) { /* its death will be reported; if it lives, it is of no use */
            end_engine(s, e);
            return;
        }
        if (e->deaf_until != NEVER)
            e->heard = sched_now_ms();
        if (ret < 0)
            engine_kill(s, e, "it sent a malformed message");
        else
            on_message(s, e, &m);
    }
}
