/*
 * What three rules of the pipeline are worth: a permit is held until its memory is free, the ready queue is as long as there are
 * permits, evaluation buffers are freed when the device has used them. The service has them by construction; this is a model of the
 * pipeline of earlier systems, in which each rule can be broken: a task for each partition waits for a permit, synthesizes, hands over
 * through a bounded queue; two workers share a device. Stages sleep, memory is mapped, touched and unmapped for real and read from
 * /proc/self/statm.
 *
 * Times are those of a 32 GiB partition with twelve syntheses at a time (36.5 s, 3.75 s of the device, 1.7 s to finish) by 64, sizes
 * those of its witness and evaluation vectors (3.88 and 11.65 GiB) by 1024. Ways take turns. Prints a table in markdown; times and
 * sizes are multiplied back. Usage: experiment_policies [RUNS [PARTITIONS]]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TIME_SCALE 64
#define SIZE_SCALE 1024
#define GIB 1073741824.0
#define WITNESS_BYTES ((size_t)(3.88 * GIB / SIZE_SCALE))
#define EVALUATION_BYTES ((size_t)(11.65 * GIB / SIZE_SCALE))
#define SYNTHESIS_MS (36500.0 / TIME_SCALE)
#define START_MS (3750.0 / TIME_SCALE)
#define FINISH_MS (1700.0 / TIME_SCALE)
#define JITTER 0.15 /* of synthesis and start, more or less */
#define PERMITS 12
#define WORKERS 2
#define PARTITIONS_MAX 1000
#define RUNS_MAX 20
#define SAMPLE_MS 5

enum permit_rule { WITH_SYNTHESIS, WITH_QUEUE, WITH_MEMORY };

struct way {
    const char *permit, *queue, *evaluation; /* in words */
    enum permit_rule rule;
    unsigned capacity;
    bool late; /* evaluation buffers go with the witness */
};

static const struct way ways[] = {
    {"with its memory", "12", "after the start", WITH_MEMORY, PERMITS, false},
    {"when the queue has it", "12", "after the start", WITH_QUEUE, PERMITS, false},
    {"when synthesis ends", "12", "after the start", WITH_SYNTHESIS, PERMITS, false},
    {"with its memory", "1", "after the start", WITH_MEMORY, 1, false},
    {"when the queue has it", "1", "after the start", WITH_QUEUE, 1, false},
    {"with its memory", "12", "at the end", WITH_MEMORY, PERMITS, true},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

struct result {
    double seconds;    /* of a partition, as a rule of the whole run */
    double peak, mean; /* bytes resident beyond those at the begin */
    double blocked_s;  /* of a partition, waiting for room in the queue */
};

struct partition {
    char *witness, *evaluation;
    struct run *run;
    unsigned seed;
    pthread_t task;
};

/* All guarded by lock but the constants and `ended`. */
struct run {
    const struct way *way;
    unsigned partitions;
    pthread_mutex_t lock, device;
    pthread_cond_t changed;
    unsigned permits; /* free */
    struct partition *queue[PARTITIONS_MAX];
    unsigned head, tail; /* of the queue, in which each partition has a place of its own */
    double blocked_ms;
    atomic_bool ended;
    double peak, sum;
    size_t samples;
    struct partition list[PARTITIONS_MAX];
};

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void sleep_ms(double ms)
{
    const struct timespec t = {(time_t)(ms / 1e3), (long)((ms - 1e3 * (long)(ms / 1e3)) * 1e6)};

    nanosleep(&t, NULL);
}

static void sleep_about(double ms, unsigned *seed)
{
    sleep_ms(ms * (1 + JITTER * (2.0 * rand_r(seed) / RAND_MAX - 1)));
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static char *map(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(p != MAP_FAILED, "mmap");
    madvise(p, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096)
        p[i] = 1;
    return p;
}

static double resident_bytes(void)
{
    unsigned long long total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    must(f && fscanf(f, "%llu %llu", &total, &resident) == 2, "/proc/self/statm");
    fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void *sample_main(void *arg)
{
    struct run *r = arg;
    double begin = resident_bytes();

    while (!atomic_load(&r->ended)) {
        double bytes = resident_bytes() - begin;
        r->peak = bytes > r->peak ? bytes : r->peak;
        r->sum += bytes;
        r->samples++;
        sleep_ms(SAMPLE_MS);
    }
    return NULL;
}

static void give_permit(struct run *r, enum permit_rule now)
{
    if (r->way->rule != now)
        return;
    pthread_mutex_lock(&r->lock);
    r->permits++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void hand_over(struct run *r, struct partition *p)
{
    double begin = now_ms();

    pthread_mutex_lock(&r->lock);
    while (r->tail - r->head >= r->way->capacity)
        pthread_cond_wait(&r->changed, &r->lock);
    r->queue[r->tail++] = p;
    r->blocked_ms += now_ms() - begin;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* A partition up to the queue; it has a permit. */
static void *task_main(void *arg)
{
    struct partition *p = arg;
    struct run *r = p->run;

    p->witness = map(WITNESS_BYTES);
    p->evaluation = map(EVALUATION_BYTES);
    sleep_about(SYNTHESIS_MS, &p->seed);
    give_permit(r, WITH_SYNTHESIS);
    hand_over(r, p);
    give_permit(r, WITH_QUEUE);
    return NULL;
}

/* NULL when all have been taken. */
static struct partition *take(struct run *r)
{
    struct partition *p = NULL;

    pthread_mutex_lock(&r->lock);
    while (r->head == r->tail && r->head < r->partitions)
        pthread_cond_wait(&r->changed, &r->lock);
    if (r->head < r->tail)
        p = r->queue[r->head++];
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return p;
}

static void free_evaluation(struct partition *p)
{
    munmap(p->evaluation, EVALUATION_BYTES);
}

static void *worker_main(void *arg)
{
    struct run *r = arg;
    struct partition *p;

    while ((p = take(r)) != NULL) {
        pthread_mutex_lock(&r->device);
        sleep_about(START_MS, &p->seed);
        pthread_mutex_unlock(&r->device);
        if (!r->way->late)
            free_evaluation(p);
        sleep_ms(FINISH_MS);
        if (r->way->late)
            free_evaluation(p);
        munmap(p->witness, WITNESS_BYTES);
        give_permit(r, WITH_MEMORY);
    }
    return NULL;
}

/* Gives out permits in order, as they come back. */
static void dispatch(struct run *r)
{
    for (unsigned i = 0; i < r->partitions; i++) {
        pthread_mutex_lock(&r->lock);
        while (r->permits == 0)
            pthread_cond_wait(&r->changed, &r->lock);
        r->permits--;
        pthread_mutex_unlock(&r->lock);
        struct partition *p = &r->list[i];
        p->run = r;
        p->seed = i + 1;
        must(pthread_create(&p->task, NULL, task_main, p) == 0, "pthread_create");
    }
}

static struct result run_way(const struct way *way, unsigned partitions)
{
    struct run *r = calloc(1, sizeof(*r));
    pthread_t workers[WORKERS], sampler;

    must(r != NULL, "calloc");
    r->way = way;
    r->partitions = partitions;
    r->permits = PERMITS;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->device, NULL);
    pthread_cond_init(&r->changed, NULL);
    must(pthread_create(&sampler, NULL, sample_main, r) == 0, "pthread_create");
    for (int i = 0; i < WORKERS; i++)
        must(pthread_create(&workers[i], NULL, worker_main, r) == 0, "pthread_create");
    double begin = now_ms();
    dispatch(r);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    double ms = now_ms() - begin;
    for (unsigned i = 0; i < partitions; i++)
        pthread_join(r->list[i].task, NULL);
    atomic_store(&r->ended, true);
    pthread_join(sampler, NULL);
    const struct result out = {ms / 1e3 / partitions, r->peak, r->sum / (double)r->samples,
                               r->blocked_ms / 1e3 / partitions};
    free(r);
    return out;
}

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;

    return (d > 0) - (d < 0);
}

/* "12.3 (11.9 to 12.8)", multiplied. */
static void put_spread(const struct result *list, size_t runs, size_t offset, double factor)
{
    double values[RUNS_MAX];

    for (size_t i = 0; i < runs; i++)
        memcpy(&values[i], (const char *)&list[i] + offset, sizeof(double));
    qsort(values, runs, sizeof(*values), by_value);
    printf(" %.1f (%.1f to %.1f) |", values[runs / 2] * factor, values[0] * factor,
           values[runs - 1] * factor);
}

int main(int argc, char **argv)
{
    static struct result results[WAYS][RUNS_MAX];
    const size_t runs = argc > 1 ? (size_t)atoi(argv[1]) : 5;
    const unsigned partitions = argc > 2 ? (unsigned)atoi(argv[2]) : 100;

    if (runs < 1 || runs > RUNS_MAX || partitions < 1 || partitions > PARTITIONS_MAX) {
        fprintf(stderr, "usage: experiment_policies [RUNS 1 to %d [PARTITIONS 1 to %d]]\n",
                RUNS_MAX, PARTITIONS_MAX);
        return 2;
    }
    for (size_t i = 0; i < runs; i++)
        for (size_t w = 0; w < WAYS; w++)
            results[w][i] = run_way(&ways[w], partitions);
    printf("| a permit comes back | queue | evaluation is freed | s for a proof | GiB at most | "
           "GiB on average | "
           "s blocked, each |\n|---|---|---|---|---|---|---|\n");
    for (size_t w = 0; w < WAYS; w++) {
        printf("| %s | %s | %s |", ways[w].permit, ways[w].queue, ways[w].evaluation);
        put_spread(results[w], runs, offsetof(struct result, seconds), 10.0 * TIME_SCALE);
        put_spread(results[w], runs, offsetof(struct result, peak), SIZE_SCALE / GIB);
        put_spread(results[w], runs, offsetof(struct result, mean), SIZE_SCALE / GIB);
        put_spread(results[w], runs, offsetof(struct result, blocked_s), TIME_SCALE);
        putchar('\n');
    }
    return 0;
}
