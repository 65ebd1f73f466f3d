/*
 * The 2 KiB development parameters: making them, loading them for the first time, where every point is looked at or the digest of the
 * file is known, and again, by the notes of its chunks.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/features.h"
#include "gpu/setup.h"
#include "gpu/srs.h"
#include "tests/lib/bench.h"

struct place {
    char dir[64], memory[96];
    struct sector_size const *size;
};

static int make(void *ctx)
{
    const struct place *p = ctx;
    struct setup_options opt = {.dir = p->dir};
    char command[128];
    bool made = false;

    snprintf(command, sizeof(command), "rm -rf %s", p->dir);
    if (system(command) != 0 || workers_create(0, &opt.workers, NULL) < 0)
        return -1;
    int ret = setup_run(p->size, &opt, &made, NULL);
    workers_destroy(opt.workers);
    return ret < 0 || !made ? -1 : 0;
}

/* c2-formats 7.1; nobody publishes it, but a published one spares the same work. */
#define DIGEST "48d5ac5cbd1beee39af7f6ae3d80c122"

static int load(const struct place *p, const char *digest, bool remembered)
{
    char path[4096];
    struct srs_source source = {.path = path, .digest = digest};
    struct srs_options opt = {.dir = p->dir, .memory = p->memory};
    struct srs *srs = NULL;

    srs_counts(p->size, &source.counts);
    if (srs_find(p->size, p->dir, ".params", path, NULL) < 0 ||
        workers_create(0, &opt.workers, NULL) < 0)
        return -1;
    int ret = srs_load(&source, p->size, &opt, &srs, NULL);
    if (ret == 0 && srs->remembered != remembered)
        ret = -1;
    srs_close(srs);
    workers_destroy(opt.workers);
    return ret;
}

static int forget(void *ctx)
{
    const struct place *p = ctx;
    char command[128];

    snprintf(command, sizeof(command), "rm -f %s*", p->memory);
    return system(command);
}

static int load_first(void *ctx)
{
    return load(ctx, NULL, false);
}

static int load_first_published(void *ctx)
{
    return load(ctx, DIGEST, false);
}

static int load_again(void *ctx)
{
    return load(ctx, NULL, true);
}

int main(void)
{
    struct place p = {.size = sector_size_by_name("2KiB")};
    char command[128];

    snprintf(p.dir, sizeof(p.dir), "%s/bench-params", getenv("BUILD") ? getenv("BUILD") : "build");
    snprintf(p.memory, sizeof(p.memory), "%s/trusted", p.dir);
    bench_calibrate();
    bench_run("setup 2 KiB, all threads", make, &p, cpu_has(CPU_IFMA) ? 12000 : 30000);
    bench_run_prepared("load 2 KiB parameters first, published digest", forget,
                       load_first_published, &p, 0);
    bench_run_prepared("load 2 KiB parameters first, every point checked", forget, load_first, &p,
                       0);
    bench_run("load 2 KiB parameters again, by chunks", load_again, &p, 0);
    snprintf(command, sizeof(command), "rm -rf %s", p.dir);
    return system(command) != 0;
}
