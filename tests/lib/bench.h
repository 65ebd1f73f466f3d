/*
 * Measurements: one line each, median and spread of several runs, each run in a process of its own so that
 * memory is counted apart.
 */
#ifndef TESTS_LIB_BENCH_H
#define TESTS_LIB_BENCH_H

#define BENCH_RUNS 5

/* Prints the machine, its load, and how many products of Fp and Fr (blst) one core does in a second: what
 * the figures that follow can be compared by. */
void bench_calibrate(void);

/* Runs body(ctx) BENCH_RUNS times and prints `name`: wall time, CPU time of all threads, and how far
 * resident memory went above that at the start. `limit_ms` (0: none) is printed beside. A body that
 * returns non-zero ends the program. */
void bench_run(const char *name, int (*body)(void *ctx), void *ctx, double limit_ms);

/* The same, with prepare(ctx) before the clock starts, in the process of the run: what is written to there was not its parent's
 * a moment ago, so that no page is copied while the clock runs. */
void bench_run_prepared(const char *name, int (*prepare)(void *ctx), int (*body)(void *ctx),
                        void *ctx, double limit_ms);

#endif
