/*
 * A whole proof of 2 KiB with the parameters loaded: witness, transforms, sums, and what each takes. Where the reference
 * program is at hand (tests/lib/find-reference.sh) it proves the same in turn, and the ratio is printed.
 *
 * bench_prove [PARAMS-DIR [THREADS]]; the parameters of 2 KiB are made there (default $BUILD/params) where they are missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gpu/cpu/features.h"
#include "gpu/groth16.h"
#include "gpu/setup.h"
#include "numa/circuit/c1_reader.h"
#include "numa/circuit/compact.h"
#include "tests/lib/bench.h"
#include "tests/lib/vectors.h"

#define VECTOR "c1/2KiB-sealed"

struct times {
    double wall, cpu;
};

static struct times now(void)
{
    struct timespec wall, cpu;

    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct times){(double)wall.tv_sec + 1e-9 * (double)wall.tv_nsec,
                          (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec};
}

/* The stages of a proof in their order, as the backend sees them come. */
static const char *const stages[] = {"witness",     "transform 1", "transform 2", "transform 3",
                                     "transform 4", "transform 5", "transform 6", "sum h",
                                     "sum l",       "sum a",       "sum b, G1",   "sum b, G2",
                                     "rows, rest",  "all"};
#define STAGES ARRAY_LEN(stages)
#define STAGE_REST (STAGES - 2)
#define STAGE_ALL (STAGES - 1)

static struct times samples[STAGES][BENCH_RUNS];
static int run;
static size_t stage;

static void stage_end(struct times start)
{
    struct times end = now();

    samples[stage++][run] = (struct times){end.wall - start.wall, end.cpu - start.cpu};
}

/* A backend that takes the times of another. */
struct timed {
    struct backend base;
    struct backend *inner;
};

/* It has the scratch memory of the outer one, as an engine's backend has it: one piece for all. */
static struct backend *inner_of(struct backend *be)
{
    struct backend *inner = ((struct timed *)be)->inner;

    inner->scratch = be->scratch;
    return inner;
}

static size_t timed_msm_scratch_bytes(const struct backend *be, size_t len)
{
    const struct backend *inner = ((const struct timed *)be)->inner;

    return inner->ops->msm_scratch_bytes(inner, len);
}

static int timed_ntt(struct backend *be, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
                     struct errmsg *err)
{
    struct backend *inner = inner_of(be);
    struct times start = now();
    int ret = inner->ops->ntt(inner, v, log2_len, kind, err);

    stage_end(start);
    return ret;
}

static int timed_msm_g1(struct backend *be, g1_t *out, const g1_affine_t *bases,
                        const fr_t *scalars, size_t len, struct errmsg *err)
{
    struct backend *inner = inner_of(be);
    struct times start = now();
    int ret = inner->ops->msm_g1(inner, out, bases, scalars, len, err);

    stage_end(start);
    return ret;
}

static int timed_sum_g1(struct backend *be, g1_t *out, const g1_affine_t *points,
                        const struct msm_terms *terms, struct errmsg *err)
{
    struct backend *inner = inner_of(be);
    struct times start = now();
    int ret = inner->ops->sum_g1(inner, out, points, terms, err);

    stage_end(start);
    return ret;
}

static int timed_sum_g2(struct backend *be, g2_t *out, const g2_affine_t *points,
                        const struct msm_terms *terms, struct errmsg *err)
{
    struct backend *inner = inner_of(be);
    struct times start = now();
    int ret = inner->ops->sum_g2(inner, out, points, terms, err);

    stage_end(start);
    return ret;
}

static const struct backend_ops timed_ops = {.name = "timed",
                                             .msm_scratch_bytes = timed_msm_scratch_bytes,
                                             .ntt = timed_ntt,
                                             .msm_g1 = timed_msm_g1,
                                             .takes_compact = true,
                                             .sum_g1 = timed_sum_g1,
                                             .sum_g2 = timed_sum_g2};

static int prove_once(const struct c1 *c1, const struct srs *srs, struct timed *be,
                      struct compact *w, struct errmsg *err)
{
    struct groth16_ticket ticket;
    uint8_t proof[PROOF_BYTES];
    struct times start = now(), sum = {0};

    stage = 0;
    int ret = compact_make(w, c1, 0, be->base.workers, err);
    stage_end(start);
    if (ret == 0)
        ret = groth16_prove_start_compact(&be->base, srs, w, &ticket, err);
    if (ret == 0)
        ret = groth16_prove_finish(&ticket, proof, err);
    struct times end = now();
    for (size_t i = 0; i < STAGE_REST; i++) {
        sum.wall += samples[i][run].wall;
        sum.cpu += samples[i][run].cpu;
    }
    samples[STAGE_ALL][run] = (struct times){end.wall - start.wall, end.cpu - start.cpu};
    samples[STAGE_REST][run] = (struct times){samples[STAGE_ALL][run].wall - sum.wall,
                                              samples[STAGE_ALL][run].cpu - sum.cpu};
    return ret;
}

static int by_wall(const void *a, const void *b)
{
    double x = ((const struct times *)a)->wall, y = ((const struct times *)b)->wall;

    return (x > y) - (x < y);
}

static void report(unsigned threads)
{
    const char *wanted = cpu_has(CPU_IFMA) ? " (wanted: at most 4.5 s on two cores)"
                                           : " (wanted: at most 12 s on two cores)";
    struct rusage usage;

    for (size_t i = 0; i < STAGES; i++) {
        qsort(samples[i], BENCH_RUNS, sizeof(samples[i][0]), by_wall);
        struct times t = samples[i][BENCH_RUNS / 2];
        printf("prove 2 KiB, %u threads, %-11s wall %6.2f s (%.2f to %.2f), CPU %6.2f s%s\n",
               threads, stages[i], t.wall, samples[i][0].wall, samples[i][BENCH_RUNS - 1].wall,
               t.cpu, i == STAGE_ALL ? wanted : "");
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("prove 2 KiB, %u threads, resident at most %ld MB (wanted: at most 2400)\n", threads,
           usage.ru_maxrss / 1024);
}

/* Seconds that the reference program says it took, or 0 when it is not there. */
static double reference_prove(const char *params)
{
    const char *build = getenv("BUILD");
    char path[VECTOR_PATH_MAX], command[8192], line[1024];
    double seconds = 0;

    if (!vector_find(path, VECTOR "/c1.json"))
        return 0;
    snprintf(command, sizeof(command),
             "program=$(tests/lib/find-reference.sh) && dir='%s/reference' && mkdir -p \"$dir\" && "
             "\"$program\" import '%s' \"$dir\" && \"$program\" prove \"$dir\" '%s' 3 5 2>&1",
             build ? build : "build", path, params);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "proved in ");
        if (at)
            seconds = strtod(at + strlen("proved in "), NULL);
    }
    if (f)
        pclose(f);
    return seconds;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report_reference(double seconds[BENCH_RUNS])
{
    qsort(seconds, BENCH_RUNS, sizeof(seconds[0]), by_value);
    double median = seconds[BENCH_RUNS / 2];
    if (median == 0) {
        printf("no ratio: c2-reference is not at hand (tests/lib/find-reference.sh)\n");
        return;
    }
    printf("prove 2 KiB, reference, wall %.2f s (%.2f to %.2f): %.1f times ours\n", median,
           seconds[0], seconds[BENCH_RUNS - 1], median / samples[STAGE_ALL][BENCH_RUNS / 2].wall);
}

static int setup(const char *dir, struct workers *workers, struct srs **srs, struct c1 **c1,
                 struct errmsg *err)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    struct setup_options make = {.dir = dir, .workers = workers};
    struct srs_options open = {.dir = dir, .workers = workers};
    char path[VECTOR_PATH_MAX];
    struct c1_extra extra;
    bool made;
    int ret = setup_run(size, &make, &made, err);

    if (ret == 0)
        ret = srs_open(size, &open, srs, err);
    if (ret == 0 && !vector_find(path, VECTOR "/c1.json"))
        ret = errmsg_set(err, -1, "the vector " VECTOR " is missing");
    if (ret == 0)
        ret = c1_read_file(path, C1_CHECK_FORM, workers, c1, &extra, err);
    return ret;
}

int main(int argc, char **argv)
{
    const char *build = getenv("BUILD");
    char dir[1024];
    struct workers *workers = NULL;
    struct timed be = {.base = {.ops = &timed_ops}};
    struct srs *srs = NULL;
    struct c1 *c1 = NULL;
    const struct circuit *circuit = NULL;
    struct compact *w = NULL;
    struct errmsg err = {""};
    double reference[BENCH_RUNS] = {0};

    snprintf(dir, sizeof(dir), "%s%s",
             argc > 1 ? argv[1]
             : build  ? build
                      : "build",
             argc > 1 ? "" : "/params");
    int ret = workers_create(argc > 2 ? (unsigned)atoi(argv[2]) : 0, &workers, &err);
    if (ret == 0)
        ret = setup(dir, workers, &srs, &c1, &err);
    if (ret == 0)
        ret = circuit_of_size(c1_size(c1), &circuit, &err);
    if (ret == 0)
        ret = compact_create(circuit, &w, &err);
    if (ret == 0)
        ret = backend_cpu_create(workers, &be.inner, &err);
    be.base.workers = workers;
    bench_calibrate();
    for (run = 0; ret == 0 && run < BENCH_RUNS; run++) {
        ret = prove_once(c1, srs, &be, w, &err);
        reference[run] = reference_prove(srs->path);
    }
    if (ret == 0) {
        report(workers_count(workers));
        report_reference(reference);
    } else {
        fprintf(stderr, "bench_prove: %s\n", err.text);
    }
    backend_destroy(be.inner);
    backend_fini(&be.base);
    compact_destroy(w);
    c1_destroy(c1);
    srs_close(srs);
    workers_destroy(workers);
    return ret < 0;
}
