#include "daemon/history.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOKS_AFTER_WAKE 20 /* without anything in flight, until it sleeps again */

struct sample {
    int64_t ms;
    uint64_t front_bytes; /* resident, of this process */
    uint64_t resident_bytes,
        hugetlb_bytes; /* of the engine: the kernel counts pages of a pool apart */
    struct node_memory memory;
    struct flight_counts flight;
};

struct course {
    uint64_t job;
    uint32_t partition;
    struct flight_course course;
};

struct engine_history {
    uint64_t samples_len,
        courses_len; /* ever; the last ones are there, each at its number modulo the ring */
    struct sample samples[HISTORY_SAMPLES];
    struct course courses[HISTORY_PARTITIONS];
    bool was_busy; /* the thread's alone */
};

struct history {
    struct sched *sched;
    pthread_t thread;
    bool started;
    struct engine_status *status; /* the thread's alone */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock: */
    bool stop, woken;
    size_t engines_len;
    struct engine_history *engines;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- looking ---- */

/* Lines of /proc/PID/status; 0 for what is not there. */
static void read_memory(const char *pid, uint64_t *resident, uint64_t *hugetlb)
{
    unsigned long long kb;
    char path[32], line[128];

    *resident = *hugetlb = 0;
    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "VmRSS: %llu", &kb) == 1)
            *resident = (uint64_t)kb * 1024;
        else if (sscanf(line, "HugetlbPages: %llu", &kb) == 1)
            *hugetlb = (uint64_t)kb * 1024;
    }
    if (f)
        fclose(f);
}

static void record(struct history *h, struct engine_history *e, const struct engine_status *st)
{
    struct sample s = {
        .ms = now_ms(), .memory = st->status.node.memory, .flight = st->status.node.flight};
    uint64_t none;
    char pid[16];

    snprintf(pid, sizeof(pid), "%d", (int)st->pid);
    if (st->pid > 0)
        read_memory(pid, &s.resident_bytes, &s.hugetlb_bytes);
    read_memory("self", &s.front_bytes, &none);
    pthread_mutex_lock(&h->lock);
    e->samples[e->samples_len++ % HISTORY_SAMPLES] = s;
    pthread_mutex_unlock(&h->lock);
}

/* What ends is recorded once more, as it is without. True while anything is in flight. */
static bool look(struct history *h)
{
    bool any = false;

    for (size_t i = 0; i < h->engines_len; i++) {
        struct engine_history *e = &h->engines[i];
        sched_engine_status(h->sched, i, h->status);
        bool busy = h->status->in_flight_len > 0 || !flight_is_idle(&h->status->status.node.flight);
        if (busy || e->was_busy)
            record(h, e, h->status);
        e->was_busy = busy;
        any = any || busy;
    }
    return any;
}

/* With lock. */
static void pause_until(struct history *h, int64_t ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (!h->stop && now_ms() < ms)
        pthread_cond_timedwait(&h->changed, &h->lock, &t);
}

static void *look_main(void *arg)
{
    struct history *h = arg;
    int looks = 0;

    pthread_mutex_lock(&h->lock);
    while (!h->stop) {
        while (!h->stop && !h->woken && looks == 0)
            pthread_cond_wait(&h->changed, &h->lock);
        if (h->woken)
            looks = LOOKS_AFTER_WAKE;
        h->woken = false;
        int64_t next = now_ms() + HISTORY_EVERY_MS;
        pthread_mutex_unlock(&h->lock);
        looks = look(h) ? LOOKS_AFTER_WAKE : looks - (looks > 0);
        pthread_mutex_lock(&h->lock);
        pause_until(h, next);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

void history_wake(struct history *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->woken = true;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

void history_proved(struct history *h, size_t engine, const struct link_done *done)
{
    struct engine_history *e = &h->engines[engine];
    const struct course c = {done->job, done->partition, done->course};

    pthread_mutex_lock(&h->lock);
    e->courses[e->courses_len++ % HISTORY_PARTITIONS] = c;
    pthread_mutex_unlock(&h->lock);
}

/* ---- showing: of a copy, so that nobody waits for a reader ---- */

static void put_sample(FILE *out, uint64_t number, const struct sample *s)
{
    const struct node_memory *m = &s->memory;

    fprintf(out, "%" PRIu64 " %" PRId64, number, s->ms);
    fprintf(out, " %" PRIu64 " %" PRIu64 " %" PRIu64, s->front_bytes, s->resident_bytes,
            s->hugetlb_bytes);
    fprintf(out, " %" PRIu64 " %" PRIu64, m->arena_bytes, m->huge_bytes);
    fprintf(out, " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64, m->shape.witnesses,
            m->slots.witnesses, m->slots.evaluations, m->slots.bytes);
    for (int i = 0; i < FLIGHT_STAGES; i++)
        fprintf(out, " %" PRIu32, s->flight.now[i].partitions);
    fputc('\n', out);
}

int history_put_samples(struct history *h, size_t engine, FILE *out)
{
    struct sample *copy = malloc(sizeof(h->engines->samples));

    if (!copy)
        return -ENOMEM;
    pthread_mutex_lock(&h->lock);
    uint64_t len = h->engines[engine].samples_len;
    memcpy(copy, h->engines[engine].samples, sizeof(h->engines->samples));
    pthread_mutex_unlock(&h->lock);
    fputs(
        "number ms front_bytes resident_bytes hugetlb_bytes arena_bytes huge_bytes permits in_use "
        "evaluation_parts_in_use bytes_in_use waiting synthesizing ready proving finishing\n",
        out);
    for (uint64_t i = len > HISTORY_SAMPLES ? len - HISTORY_SAMPLES : 0; i < len; i++)
        put_sample(out, i, &copy[i % HISTORY_SAMPLES]);
    free(copy);
    return 0;
}

static void put_course(FILE *out, uint64_t number, const struct course *c)
{
    fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRId32, number, c->job, c->partition,
            c->course.prover);
    for (int i = 0; i <= FLIGHT_STAGES; i++)
        fprintf(out, " %" PRId64 ".%03d", c->course.us[i] / 1000, (int)(c->course.us[i] % 1000));
    fputc('\n', out);
}

int history_put_partitions(struct history *h, size_t engine, FILE *out)
{
    struct course *copy = malloc(sizeof(h->engines->courses));

    if (!copy)
        return -ENOMEM;
    pthread_mutex_lock(&h->lock);
    uint64_t len = h->engines[engine].courses_len;
    memcpy(copy, h->engines[engine].courses, sizeof(h->engines->courses));
    pthread_mutex_unlock(&h->lock);
    fputs("number job partition gpu waiting_ms synthesizing_ms ready_ms proving_ms finishing_ms "
          "ended_ms\n",
          out);
    for (uint64_t i = len > HISTORY_PARTITIONS ? len - HISTORY_PARTITIONS : 0; i < len; i++)
        put_course(out, i, &copy[i % HISTORY_PARTITIONS]);
    free(copy);
    return 0;
}

/* ---- start and end ---- */

static int start_thread(struct history *h)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = pthread_create(&h->thread, NULL, look_main, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    h->started = ret == 0;
    if (h->started)
        pthread_setname_np(h->thread, "history");
    return -ret;
}

int history_create(struct sched *sched, size_t engines, struct history **out)
{
    struct history *h = calloc(1, sizeof(*h));
    pthread_condattr_t attr;

    if (!h)
        return -ENOMEM;
    h->sched = sched;
    h->engines_len = engines;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attr);
    pthread_condattr_destroy(&attr);
    h->status = malloc(sizeof(*h->status));
    h->engines = calloc(engines, sizeof(*h->engines)); /* touched only as far as it is used */
    int ret = h->status && h->engines ? start_thread(h) : -ENOMEM;
    if (ret < 0) {
        history_destroy(h);
        return ret;
    }
    *out = h;
    return 0;
}

void history_destroy(struct history *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
    if (h->started)
        pthread_join(h->thread, NULL);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h->engines);
    free(h->status);
    free(h);
}
