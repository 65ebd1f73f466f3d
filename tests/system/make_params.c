/*
 * Makes the development parameters of a size: make_params SIZE DIR. For tests that need them before proofctl can
 * be built, and to measure: prints time and memory of each stage.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "gpu/setup.h"

struct stage {
    const char *name;
    double start;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void progress(void *ctx, const char *name, uint64_t done, uint64_t total)
{
    struct stage *s = ctx;

    if (!s->name || strcmp(s->name, name) != 0)
        *s = (struct stage){name, now()};
    if (done == total)
        printf("%-8s %10llu  %6.2f s\n", name, (unsigned long long)total, now() - s->start);
}

int main(int argc, char **argv)
{
    const struct sector_size *size = argc == 3 ? sector_size_by_name(argv[1]) : NULL;
    struct workers *workers = NULL;
    struct stage stage = {NULL, 0};
    struct errmsg err;
    struct rusage usage;
    bool made;

    if (!size) {
        fprintf(stderr, "usage: make_params SIZE DIR\n");
        return 2;
    }
    double start = now();
    int ret = workers_create(0, &workers, &err);
    struct setup_options opt = {
        .dir = argv[2], .workers = workers, .progress = progress, .progress_ctx = &stage};
    if (ret == 0)
        ret = setup_run(size, &opt, &made, &err);
    workers_destroy(workers);
    if (ret < 0) {
        fprintf(stderr, "make_params: %s\n", err.text);
        return 1;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("%s: %s in %.1f s, %.1f s of processor time, %ld MB resident at most\n", argv[1],
           made ? "made" : "there already", now() - start,
           (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec,
           usage.ru_maxrss / 1024);
    return 0;
}
