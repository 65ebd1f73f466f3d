/*
 * Which engine gets what: in the order of the job table, to the one with room that will be through first (balance.h), and from the
 * longest queue to one without work. What engines hold is told of when its job is cancelled or gets another priority.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/sched_internal.h"

static bool give_partition(struct sched *s, struct engine *e, const struct partition_work *w)
{
    const struct strike *strike = sched_find_strike(s, w->job, w->partition);
    struct link_message m = {
        .type = LINK_WORK,
        .work = {w->job, w->partition, (uint32_t)w->priority, w->turn,
                 strike && strike->avoid == e ? strike->avoid_gpu : LINK_NO_PROVER}};
    bool sent = engine_say(s, e, &m, w->c1_fd);

    close(w->c1_fd);
    if (!sent) {
        sched_give_back(s, w->job, w->partition);
        return false;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one of s->engines, which no comparison with NULL makes NULL */
    pace_given(&e->pace, e->flights_len, sched_now_ms());
    e->flights[e->flights_len++] =
        (struct in_flight){.job = w->job,
                           .partition = w->partition,
                           .size = w->size,
                           .priority = w->own, /* if it has changed since, the engine is told */
                           .given = m.work,
                           .stage = PARTITION_SYNTHESIZING,
                           .since = sched_now_ms()};
    return true;
}

/* Bit i: sector_sizes[i] can never be proved there, or not at present. */
static uint32_t refused_sizes(const struct engine *e)
{
    const struct link_hello *h = &e->hello;
    uint32_t refused = 0;

    for (uint32_t i = 0; i < LINK_SIZES; i++)
        refused |= (uint32_t)(h->needed_bytes[i] > h->limit_bytes || e->holds[i].on) << i;
    return refused;
}

bool engine_refuses(const struct engine *e, const struct sector_size *size)
{
    return refused_sizes(e) >> (size - sector_sizes) & 1;
}

/* ---- who gets what ---- */

static struct load load_of(struct engine *e)
{
    size_t capacity = min_size(e->hello.capacity, SCHED_IN_FLIGHT_MAX);
    struct load l = {.open = e->state == ENGINE_READY && sched_now_ms() >= e->deaf_until && !engine_all_set_aside(e),
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

/* It takes partitions, or will in a moment. */
static bool is_there(struct engine *e)
{
    return load_of(e).open || (e->state == ENGINE_STARTING && e->failures == 0);
}

/* The engine that made a wrong proof of this partition, if there is another one that could do better; else NULL. */
static const struct engine *to_be_avoided(struct sched *s, const struct partition_work *w)
{
    const struct strike *strike = sched_find_strike(s, w->job, w->partition);

    for (size_t i = 0; strike && strike->avoid && i < s->engines_len; i++)
        if (&s->engines[i] != strike->avoid && is_there(&s->engines[i]) &&
            !engine_refuses(&s->engines[i], w->size))
            return strike->avoid;
    return NULL;
}

static void park(struct sched *s, const struct partition_work *w)
{
    struct parked *p = malloc(sizeof(*p));

    if (!p) {
        close(w->c1_fd);
        sched_give_back(s, w->job, w->partition);
        return;
    }
    *p = (struct parked){*w, s->parked};
    s->parked = p;
}

void sched_give_back_parked(struct sched *s, struct parked **at)
{
    struct parked *p = *at;

    *at = p->next;
    close(p->work.c1_fd);
    sched_give_back(s, p->work.job, p->work.partition);
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
        if (&s->engines[i] == avoid || engine_refuses(&s->engines[i], p->work.size))
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
            sched_give_back_parked(s, at);
        else if (!give_parked(s, at))
            at = &(*at)->next;
    }
}

/* False when there is nothing for this engine, or it does not take it. */
static bool give_next(struct sched *s, struct engine *e)
{
    struct partition_work w;
    int ret = jobs_take_partition_but(s->opt.jobs, e->node, refused_sizes(e), &w);

    if (ret < 0 && ret != -EAGAIN)
        s->take_at = sched_now_ms() + LACK_MS;
    if (ret < 0)
        return false;
    if (to_be_avoided(s, &w) != e)
        return give_partition(s, e, &w);
    park(s, &w);
    return true;
}

void sched_give_out(struct sched *s)
{
    bool nothing[SCHED_ENGINES_MAX] = {false};
    struct load loads[SCHED_ENGINES_MAX] = {{0}};

    if (sched_now_ms() < s->take_at)
        return;
    s->take_at = 0;
    while (!atomic_load(&s->stop) && !atomic_load(&s->draining) && !s->take_at) {
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
static bool recall(struct sched *s, struct engine *e, struct in_flight *f)
{
    const struct link_message m = {.type = LINK_RECALL, .recall = {f->job, f->partition}};

    return f->recalled = engine_say(s, e, &m, -1);
}

static bool waits_for_recalled(const struct engine *e)
{
    for (size_t i = 0; i < e->flights_len; i++)
        if (e->flights[i].recalled && !e->flights[i].begun)
            return true;
    return false;
}

void engine_recall_waiting(struct sched *s, struct engine *e)
{
    struct in_flight *f;

    while (e->state == ENGINE_READY && (f = last_waiting(e)) != NULL && recall(s, e, f))
        ;
}

void sched_steal(struct sched *s)
{
    struct load loads[SCHED_ENGINES_MAX] = {{0}};

    load_all(s, loads);
    for (size_t i = 0; i < s->engines_len; i++)
        if (waits_for_recalled(&s->engines[i]))
            return;
    for (size_t i = 0; i < s->engines_len && !atomic_load(&s->stop); i++) {
        size_t from = balance_steal(loads, s->engines_len, i);
        struct in_flight *f = from < s->engines_len ? last_waiting(&s->engines[from]) : NULL;
        if (!f || engine_refuses(&s->engines[i], f->size))
            continue;
        recall(s, &s->engines[from], f);
        return;
    }
}

/* ---- what changes while it is there ---- */

void engine_tell_of_cancelled(struct sched *s, struct engine *e)
{
    for (size_t i = 0; i < e->flights_len && e->state == ENGINE_READY; i++) {
        struct in_flight *f = &e->flights[i];
        struct link_message m = {.type = LINK_CANCEL, .cancel = {f->job}};
        if (f->cancel_sent || !jobs_cancelled(s->opt.jobs, f->job))
            continue;
        f->cancel_sent = engine_say(s, e, &m, -1);
    }
}

void engine_tell_of_priorities(struct sched *s, struct engine *e)
{
    for (size_t i = 0; i < e->flights_len && e->state == ENGINE_READY; i++) {
        struct in_flight *f = &e->flights[i];
        enum job_priority now = f->priority;
        if (jobs_partition_priority(s->opt.jobs, f->job, &now) < 0 || now == f->priority)
            continue;
        const struct link_message m = {.type = LINK_PRIORITY, .priority = {f->job, (uint32_t)now}};
        if (engine_say(s, e, &m, -1))
            f->priority = now; /* others of the job send it once more: no harm */
    }
}
