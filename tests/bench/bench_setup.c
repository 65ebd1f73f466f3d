/*
 * The 2 KiB development parameters: making them, loading them trusted, loading them with every point checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static int load(const struct place *p, const char *memory, bool remembered)
{
    struct srs_options opt = {.dir = p->dir, .memory = memory};
    struct srs *srs = NULL;

    if (workers_create(0, &opt.workers, NULL) < 0)
        return -1;
    int ret = srs_open(p->size, &opt, &srs, NULL);
    if (ret == 0 && srs->remembered != remembered)
        ret = -1;
    srs_close(srs);
    workers_destroy(opt.workers);
    return ret;
}

static int load_checked(void *ctx)
{
    return load(ctx, "", false);
}

static int load_remembered(void *ctx)
{
    const struct place *p = ctx;

    return load(p, p->memory, true);
}

int main(void)
{
    struct place p = {.size = sector_size_by_name("2KiB")};
    char command[128];

    snprintf(p.dir, sizeof(p.dir), "%s/bench-params", getenv("BUILD") ? getenv("BUILD") : "build");
    snprintf(p.memory, sizeof(p.memory), "%s/trusted", p.dir);
    bench_calibrate();
    bench_run("setup 2 KiB, all threads", make, &p, cpu_has(CPU_IFMA) ? 12000 : 30000);
    bench_run("load 2 KiB parameters, every point checked", load_checked, &p, 0);
    if (load(&p, p.memory, false) < 0)
        return 1;
    bench_run("load 2 KiB parameters, remembered", load_remembered, &p, 0);
    snprintf(command, sizeof(command), "rm -rf %s", p.dir);
    return system(command) != 0;
}
