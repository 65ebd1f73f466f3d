/*
 * The scheduler's thread, and what others see of it. It sleeps in poll() until an engine speaks, the spawner reports, somebody wakes it
 * or a timer runs out. After each of these the same pass is made over all engines: start what is due, tell of cancelled jobs, fill up.
 *
 * Its parts: sched_engines.c (how engines start and end, and what they say), sched_deal.c (which of them gets what) and sched_results.c
 * (what becomes of partitions that come back).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/sched_internal.h"

#define LOG_MODULE LOG_SCHED

#define SILENCE_MS 60000
#define JOURNAL_RETRY_MS 5000
#define PARAMS_RETRY_MS 5000
#define STOP_GRACE_MS 3000

int64_t sched_now_ms(void)
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

/* ---- the loop ---- */

static void tell_log_levels(struct sched *s)
{
    uint32_t levels = log_get_levels();
    struct link_message m = {.type = LINK_LOG_LEVELS, .log_levels = {levels}};

    if (levels == s->sent_log_levels)
        return;
    bool heard = true;
    for (size_t i = 0; i < s->engines_len; i++) /* those that are not ready yet hear it after their hello */
        if (s->engines[i].state == ENGINE_READY)
            heard &= engine_say(s, &s->engines[i], &m, -1);
    if (heard)
        s->sent_log_levels = levels;
}

/* When something is to be done about this engine, if nothing happens before. */
static int64_t due_at(const struct sched *s, const struct engine *e)
{
    switch (e->state) {
    case ENGINE_DOWN:
        return atomic_load(&s->draining) ? NEVER : e->retry_at;
    case ENGINE_STOPPING:
        return e->flights_len > 0 ? e->killed + s->opt.silence_ms : NEVER;
    case ENGINE_STARTING:
        if (!e->pid) /* the spawner has not answered */
            return NEVER;
        break;
    case ENGINE_READY:
        break;
    }
    return e->heard + s->opt.silence_ms;
}

static void check_silence(struct sched *s, struct engine *e)
{
    engine_listen(s, e); /* it may be that nobody has listened: the disk, or a front that was stopped */
    if (e->sock >= 0 && sched_now_ms() >= due_at(s, e))
        engine_kill(s, e, "it has been silent for too long");
}

static void check_timers(struct sched *s, struct engine *e)
{
    if (sched_now_ms() < due_at(s, e))
        return;
    if (e->state == ENGINE_DOWN)
        engine_start(s, e);
    else if (e->state == ENGINE_STOPPING)
        engine_take_back(s, e);
    else
        check_silence(s, e);
}

static const struct engine *first_that_holds(const struct sched *s, size_t size)
{
    for (size_t i = 0; i < s->engines_len; i++)
        if (s->engines[i].holds[size].on)
            return &s->engines[i];
    return NULL;
}

/* With lock. */
static void publish_holds(const struct sched *s, struct sched_status *st)
{
    st->holds_len = 0;
    for (size_t i = 0; i < SCHED_SIZES; i++) {
        const struct engine *e = first_that_holds(s, i);
        struct sched_hold *out = &st->holds[st->holds_len];
        if (!e)
            continue;
        out->size = &sector_sizes[i];
        out->node = e->node;
        out->all = s->lacks[i] != JOB_LACKS_NOTHING;
        out->lacks = e->holds[i].lacks;
        out->retry_in_ms = e->holds[i].until; /* made relative by readers */
        memcpy(out->why, e->holds[i].why, sizeof(out->why));
        st->holds_len++;
    }
}

static bool is_drained(const struct sched *s)
{
    bool empty = atomic_load(&s->draining) && !s->parked && s->writing == 0;

    for (size_t i = 0; i < s->engines_len; i++)
        empty = empty && s->engines[i].flights_len == 0;
    return empty;
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
    s->drained = is_drained(s);
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
                                     .set_aside = engine_all_set_aside(e),
                                     .pace_ms = e->pace.ms,
                                     .wrong = e->wrong,
                                     .times = e->times};
        es->retry_in_ms = e->state == ENGINE_DOWN ? e->retry_at : 0; /* made relative by readers */
        memcpy(es->last_end, e->last_end, sizeof(es->last_end));
        es->in_flight_len = e->flights_len;
        for (size_t k = 0; k < e->flights_len; k++) {
            es->in_flight[k].job = e->flights[k].job;
            es->in_flight[k].partition = e->flights[k].partition;
            es->in_flight[k].begun = e->flights[k].begun;
            es->in_flight[k].stage = e->flights[k].stage;
            es->in_flight[k].percent = e->flights[k].percent;
            es->in_flight[k].ms = e->flights[k].since;
            es->in_flight[k].size = e->flights[k].size;
        }
        for (size_t k = 0; k < SCHED_SIZES; k++)
            if (e->wishes[k].state == WISH_DONE)
                e->wishes[k].state = WISH_NONE;
    }
    pthread_mutex_unlock(&s->lock);
}

static void drain(struct sched *s)
{
    while (s->parked)
        sched_give_back_parked(s, &s->parked);
    for (size_t i = 0; i < s->engines_len; i++)
        engine_recall_waiting(s, &s->engines[i]);
}

static void make_pass(struct sched *s)
{
    sched_take_written(s);
    if (s->unwritten && sched_now_ms() >= s->write_again_at)
        sched_retry_unwritten(s);
    tell_log_levels(s);
    sched_check_holds(s);
    for (size_t i = 0; i < s->engines_len; i++) {
        struct engine *e = &s->engines[i];
        check_timers(s, e);
        engine_tell_of_cancelled(s, e);
        engine_tell_of_priorities(s, e);
        engine_tell_wishes(s, e);
    }
    if (atomic_load(&s->draining)) {
        drain(s);
    } else {
        sched_give_out(s);
        sched_steal(s);
    }
    sched_look_for_provers(s);
    publish_status(s);
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int poll_timeout(const struct sched *s)
{
    int64_t at = s->unwritten ? s->write_again_at : NEVER, now = sched_now_ms();

    if (s->take_at)
        at = earliest(at, s->take_at);
    for (size_t i = 0; i < s->engines_len; i++) {
        const struct engine *e = &s->engines[i];
        at = earliest(at, due_at(s, e));
        if (e->deaf_until > now)
            at = earliest(at, e->deaf_until);
        for (size_t k = 0; k < SCHED_SIZES; k++)
            if (e->holds[k].on)
                at = earliest(at, earliest(e->holds[k].until, e->holds[k].look_at));
    }
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
            engine_listen(s, &s->engines[i]);
    return !fds[1].revents || sched_take_supervisor_events(s);
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
    int64_t deadline = sched_now_ms() + STOP_GRACE_MS;
    bool killed = false;

    for (size_t i = 0; i < s->engines_len; i++)
        if (s->engines[i].sock >= 0)
            link_send(s->engines[i].sock, &m, -1);
    while (any_alive(s) && sched_now_ms() < deadline + (killed ? STOP_GRACE_MS : 0)) {
        if (!take_events(s, (int)(deadline > sched_now_ms() ? deadline - sched_now_ms() : 100)))
            break;
        if (killed || sched_now_ms() < deadline)
            continue;
        for (size_t i = 0; i < s->engines_len; i++)
            if (s->engines[i].state != ENGINE_DOWN)
                engine_kill(s, &s->engines[i], "it did not stop in time");
        killed = true;
    }
}

/* Whatever the table still believes to be in an engine is not. */
static void give_back_all(struct sched *s)
{
    while (s->parked)
        sched_give_back_parked(s, &s->parked);
    for (size_t i = 0; i < s->engines_len; i++) {
        struct engine *e = &s->engines[i];
        for (size_t k = 0; k < e->flights_len; k++)
            sched_give_back(s, e->flights[k].job, e->flights[k].partition);
        e->flights_len = 0;
        engine_hang_up(e);
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
    sched_retry_unwritten(s);
    committer_stop(s->committer);
    sched_take_written(s);
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
    s->sent_log_levels = log_get_levels();
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int ret = s->wake_fd < 0 ? -errno : 0;
    if (ret == 0)
        ret = committer_create(opt->jobs, sched_on_written, s, &s->committer);
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

bool sched_drain(struct sched *s)
{
    if (!atomic_exchange(&s->draining, true))
        sched_wake(s);
    pthread_mutex_lock(&s->lock);
    bool drained = s->drained;
    pthread_mutex_unlock(&s->lock);
    return drained;
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

static void make_relative(struct engine_status *e, int64_t now)
{
    if (e->state == ENGINE_DOWN)
        e->retry_in_ms = e->retry_in_ms > now ? e->retry_in_ms - now : 0;
    for (size_t k = 0; k < e->in_flight_len; k++)
        e->in_flight[k].ms = now - e->in_flight[k].ms;
}

void sched_status(struct sched *s, struct sched_status *out)
{
    int64_t now = sched_now_ms();

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
    make_relative(out, sched_now_ms());
}

/* ---- parameters by name ---- */

static bool needs(const struct engine_status *e, const struct sector_size *size)
{
    for (size_t i = 0; i < e->in_flight_len; i++)
        if (e->in_flight[i].size == size)
            return true;
    return false;
}

/* With lock. An engine that is not there holds nothing; what it should load it will be told. */
static void note_wish(struct sched *s, size_t engine, const struct sector_size *size, bool evict)
{
    const bool moot = evict && s->shared.engines[engine].state != ENGINE_READY;

    s->engines[engine].wishes[size - sector_sizes] =
        (struct sched_wish_status){.state = moot ? WISH_NONE : WISH_ASKED, .evict = evict};
}

/* With lock. */
static int check_wish(const struct sched *s, const struct sector_size *size, int node, bool evict,
                      struct errmsg *err)
{
    bool found = node == SCHED_ALL_NODES;

    for (size_t i = 0; i < s->shared.engines_len; i++) {
        const struct engine_status *e = &s->shared.engines[i];
        if (node != SCHED_ALL_NODES && e->node != node)
            continue;
        found = true;
        if (evict && needs(e, size))
            return errmsg_set(err, -EBUSY, "partitions of %s are in flight on node %d", size->name,
                              e->node);
    }
    return found ? 0 : errmsg_set(err, -EINVAL, "there is no node %d", node);
}

int sched_wish(struct sched *s, const struct sector_size *size, int node, bool evict,
               struct errmsg *err)
{
    pthread_mutex_lock(&s->lock);
    int ret = check_wish(s, size, node, evict, err);
    for (size_t i = 0; i < s->shared.engines_len && ret == 0; i++)
        if (node == SCHED_ALL_NODES || s->shared.engines[i].node == node)
            note_wish(s, i, size, evict);
    pthread_mutex_unlock(&s->lock);
    if (ret == 0)
        sched_wake(s);
    return ret;
}

void sched_wish_status(struct sched *s, size_t engine, const struct sector_size *size,
                       struct sched_wish_status *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->engines[engine].wishes[size - sector_sizes];
    pthread_mutex_unlock(&s->lock);
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
