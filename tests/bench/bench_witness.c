/*
 * What a partition costs before the prover: the circuit's tables (once), the compact witness, A and B of the rows; and beside them
 * the gadgets' way, which the fast one is tested against. Of 32 GiB the C1 is made up: it has the right form, and that is all that
 * the time depends on.
 *
 * bench_witness [THREADS]. The last line is the one to compare.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "numa/circuit/c1_reader.h"
#include "numa/circuit/compact.h"
#include "numa/circuit/witness.h"
#include "numa/memory.h"
#include "tests/lib/bench.h"
#include "tests/lib/files.h"
#include "tests/lib/random_challenge.h"

#define WINDOW_ROWS 65536 /* that rows are written to, over and over */
#define RUNS 9

struct setting {
    struct c1 *c1;
    struct circuit *circuit;
    struct compact *w;
    struct workers *workers;
    fr_t *window[2]; /* one of each for every thread */
};

static int make_circuit(void *ctx)
{
    const struct setting *s = ctx;
    struct circuit *c = NULL;
    int ret = circuit_create(c1_size(s->c1), &c, NULL);

    circuit_destroy(c);
    return ret;
}

static int make_witness(struct setting *s)
{
    return compact_make(s->w, s->c1, 0, s->workers, NULL);
}

static void window_rows(void *ctx, size_t item, unsigned thread)
{
    const struct setting *s = ctx;
    const uint64_t first = item * WINDOW_ROWS,
                   end = min_size(first + WINDOW_ROWS, s->circuit->n_rows);

    compact_rows(s->w, first, end, s->window[0] + (size_t)thread * WINDOW_ROWS,
                 s->window[1] + (size_t)thread * WINDOW_ROWS);
}

static int make_rows(struct setting *s)
{
    workers_run(s->workers, (s->circuit->n_rows + WINDOW_ROWS - 1) / WINDOW_ROWS, window_rows, s);
    return 0;
}

/* The gadgets' way. */
static int assign(void *ctx)
{
    const struct setting *s = ctx;
    struct assignment *w = NULL;
    int ret = witness_assign(s->c1, 0, NULL, &w, NULL);

    assignment_destroy(w);
    return ret;
}

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of several runs in one process, in memory that is there, as in a service. */
static double warm(const char *name, int (*body)(struct setting *s), struct setting *s)
{
    double t[RUNS], cpu[RUNS];

    for (int i = -1; i < RUNS; i++) {
        const double start = now(CLOCK_MONOTONIC), cpu_start = now(CLOCK_PROCESS_CPUTIME_ID);
        if (body(s) != 0) {
            fprintf(stderr, "%s: the measured code failed\n", name);
            exit(1);
        }
        if (i >= 0) {
            t[i] = now(CLOCK_MONOTONIC) - start;
            cpu[i] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
        }
    }
    qsort(t, RUNS, sizeof(t[0]), by_value);
    qsort(cpu, RUNS, sizeof(cpu[0]), by_value);
    printf("%s, %u threads: wall %.1f ms, median of %d (%.1f to %.1f), CPU %.1f ms\n", name,
           workers_count(s->workers), 1e3 * t[RUNS / 2], RUNS, 1e3 * t[0], 1e3 * t[RUNS - 1],
           1e3 * cpu[RUNS / 2]);
    fflush(stdout);
    return t[RUNS / 2];
}

static void setting_init(struct setting *s, unsigned threads)
{
    struct errmsg err = {{0}};
    int ret = circuit_create(c1_size(s->c1), &s->circuit, &err);

    if (ret == 0)
        ret = compact_create(s->circuit, &s->w, &err);
    if (ret == 0)
        ret = workers_create(threads, &s->workers, &err);
    for (int i = 0; ret == 0 && i < 2; i++) {
        s->window[i] = memory_alloc((size_t)workers_count(s->workers) * WINDOW_ROWS, sizeof(fr_t));
        ret = s->window[i] ? 0 : -1;
    }
    if (ret < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

static void setting_fini(struct setting *s)
{
    free(s->window[0]);
    free(s->window[1]);
    workers_destroy(s->workers);
    compact_destroy(s->w);
    circuit_destroy(s->circuit);
}

static void of_2KiB(void)
{
    struct setting s = {NULL};
    struct c1_extra extra;
    struct errmsg err;

    if (c1_read_file(c1_path("2KiB-sealed", "bare.json.zst"), C1_CHECK_FORM, NULL, &s.c1, &extra,
                     &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    bench_run("witness and rows 2KiB by the gadgets, 1 thread", assign, &s, 0);
    setting_init(&s, 1);
    warm("witness 2KiB", make_witness, &s);
    warm("rows 2KiB", make_rows, &s);
    setting_fini(&s);
    c1_destroy(s.c1);
}

/* Seconds of the witness on so many threads. */
static double of_32GiB(struct c1 *c1, unsigned threads)
{
    struct setting s = {.c1 = c1};

    setting_init(&s, threads);
    const double seconds = warm("witness 32GiB", make_witness, &s);
    warm("rows 32GiB", make_rows, &s);
    setting_fini(&s);
    return seconds;
}

int main(int argc, char **argv)
{
    const unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    struct setting s = {.c1 = random_c1(sector_size_by_name("32GiB"), 1)};

    bench_calibrate();
    bench_run("circuit 32GiB, tables made", make_circuit, &s, 1000);
    of_2KiB();
    of_32GiB(s.c1, 1);
    const double seconds = of_32GiB(s.c1, threads);
    c1_destroy(s.c1);
    printf("witness 32GiB: %.2f s, %u threads\n", seconds, threads);
    return 0;
}
