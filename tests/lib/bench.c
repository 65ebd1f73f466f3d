#include "tests/lib/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <blst.h>

struct sample {
    double wall_ms, cpu_ms, extra_mb;
};

static double now_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A line of /proc/self/status in MB. */
static double memory_mb(const char *key)
{
    char line[256];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtod(line + strlen(key) + 1, NULL);
    if (f)
        fclose(f);
    return kb / 1024;
}

static void machine_name(char out[128])
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");

    snprintf(out, 128, "unknown CPU");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, 128, "%.120s", strchr(line, ':') + 2);
            break;
        }
    if (f)
        fclose(f);
}

/* Millions of products a second, each waiting for the one before. */
static double products(void (*multiply)(void *x, const void *y), void *x, const void *y)
{
    enum { COUNT = 2000000 };
    double start = now_ms(CLOCK_PROCESS_CPUTIME_ID);

    for (int i = 0; i < COUNT; i++)
        multiply(x, y);
    return COUNT / 1e3 / (now_ms(CLOCK_PROCESS_CPUTIME_ID) - start);
}

static void multiply_fp(void *x, const void *y)
{
    blst_fp_mul(x, x, y);
}

static void multiply_fr(void *x, const void *y)
{
    blst_fr_mul(x, x, y);
}

void bench_calibrate(void)
{
    blst_fp p = {{3, 5, 7, 11, 13, 1}}, p2 = {{17, 19, 23, 29, 31, 1}};
    blst_fr r = {{3, 5, 7, 11}}, r2 = {{17, 19, 23, 29}};
    double load[1] = {0};
    char name[128];

    machine_name(name);
    if (getloadavg(load, 1) < 1)
        load[0] = -1;
    printf("machine: %s, %ld CPUs, load %.1f; blst: %.1f million Fp products/s, %.1f million Fr "
           "products/s\n",
           name, sysconf(_SC_NPROCESSORS_ONLN), load[0], products(multiply_fp, &p, &p2),
           products(multiply_fr, &r, &r2));
    fflush(stdout);
}

/* What a run does. */
struct work {
    int (*prepare)(void *ctx), (*body)(void *ctx);
    void *ctx;
};

static void child(int pipe_fd, const struct work *w)
{
    struct sample s;

    if (w->prepare && w->prepare(w->ctx) != 0)
        _exit(1);
    double before_mb = memory_mb("VmRSS:"), wall = now_ms(CLOCK_MONOTONIC);
    double cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);

    if (w->body(w->ctx) != 0)
        _exit(1);
    s.wall_ms = now_ms(CLOCK_MONOTONIC) - wall;
    s.cpu_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    s.extra_mb = memory_mb("VmHWM:") - before_mb;
    _exit(write(pipe_fd, &s, sizeof(s)) == (ssize_t)sizeof(s) ? 0 : 1);
}

static struct sample run_once(const char *name, const struct work *w)
{
    struct sample s;
    int fds[2], status = 1;

    fflush(stdout);
    if (pipe(fds) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0)
        child(fds[1], w);
    close(fds[1]);
    if (pid < 0 || read(fds[0], &s, sizeof(s)) != (ssize_t)sizeof(s) ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "%s: the measured code failed\n", name);
        exit(1);
    }
    close(fds[0]);
    return s;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_run(const char *name, int (*body)(void *ctx), void *ctx, double limit_ms)
{
    bench_run_prepared(name, NULL, body, ctx, limit_ms);
}

void bench_run_prepared(const char *name, int (*prepare)(void *ctx), int (*body)(void *ctx),
                        void *ctx, double limit_ms)
{
    const struct work w = {prepare, body, ctx};
    double wall[BENCH_RUNS], cpu[BENCH_RUNS], mb[BENCH_RUNS];
    char limit[48] = "";

    for (int i = 0; i < BENCH_RUNS; i++) {
        struct sample s = run_once(name, &w);
        wall[i] = s.wall_ms, cpu[i] = s.cpu_ms, mb[i] = s.extra_mb;
    }
    qsort(wall, BENCH_RUNS, sizeof(wall[0]), by_value);
    qsort(cpu, BENCH_RUNS, sizeof(cpu[0]), by_value);
    qsort(mb, BENCH_RUNS, sizeof(mb[0]), by_value);
    if (limit_ms > 0)
        snprintf(limit, sizeof(limit), " (wanted: at most %.0f ms)", limit_ms);
    printf("%s: wall %.1f ms (%.1f to %.1f), CPU %.1f ms (%.1f to %.1f)%s, %.1f MB over start\n",
           name, wall[BENCH_RUNS / 2], wall[0], wall[BENCH_RUNS - 1], cpu[BENCH_RUNS / 2], cpu[0],
           cpu[BENCH_RUNS - 1], limit, mb[BENCH_RUNS - 1]);
    fflush(stdout);
}
