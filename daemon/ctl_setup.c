/*
 * proofctl setup: the insecure development parameters of one sector size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl.h"
#include "gpu/backend_cuda.h"
#include "gpu/setup.h"
#include "gpu/srs.h"

static int report(const struct ctl_args *args, const struct sector_size *size, const char *dir,
                  bool made)
{
    if (!args->json) {
        printf("%s: insecure development parameters %s in %s\n", size->name,
               made ? "made" : "were there already", dir);
        return CTL_OK;
    }
    printf("{\"size\":\"%s\",\"made\":%s,\"insecure\":true,\"dir\":", size->name,
           made ? "true" : "false");
    ctl_json_string(stdout, dir);
    puts("}");
    return CTL_OK;
}

/* A GPU makes the points faster than any number of cores: NULL where there is none. */
static struct backend *find_device(struct workers *workers)
{
    struct backend *device = NULL;
    struct errmsg err;

    return backend_cuda_create(0, workers, &device, &err) == 0 ? device : NULL;
}

static void say_without(void *ctx, const struct errmsg *why)
{
    (void)ctx;
    ctl_progress_end();
    fprintf(stderr, "proofctl: not by the GPU but by the CPUs: %s\n", why->text);
}

static void say_damaged(void *ctx, const struct errmsg *how)
{
    (void)ctx;
    ctl_progress_end();
    fputs("proofctl: ", stderr);
    ctl_put(stderr, how->text);
    fputs(": made anew\n", stderr);
}

/* Work in memory comes first, minutes or hours: nothing is there to be removed then. */
static void heed_signals(const struct sector_size *size, const char *dir)
{
    char id[SECTOR_CACHE_ID_MAX], path[4096];

    sector_cache_id(size, id);
    if (snprintf(path, sizeof(path), "%s/%s.params", dir, id) < (int)sizeof(path))
        ctl_remove_when_interrupted(path);
}

static int set_up(const struct ctl_args *args, const struct sector_size *size, const char *dir)
{
    struct workers *workers = NULL;
    struct errmsg err = {""};
    bool made = false;

    if (workers_create(args->threads, &workers, &err) < 0)
        return ctl_fail(CTL_CANNOT, "%s", err.text);
    ctl_progress_lines();
    struct backend *device = find_device(workers);
    struct setup_options opt = {.dir = dir,
                                .workers = workers,
                                .device = device,
                                .without_device = say_without,
                                .damaged = say_damaged,
                                .progress = ctl_progress};
    heed_signals(size, dir);
    int ret = setup_run(size, &opt, &made, &err);
    ctl_progress_end();
    backend_destroy(device);
    workers_destroy(workers);
    if (ret < 0)
        return ctl_fail_with(CTL_CANNOT, ret, &err);
    return report(args, size, dir, made);
}

int ctl_setup(const struct ctl_args *args)
{
    const struct sector_size *size = sector_size_by_name(args->operands[0]);
    char dir[4096];

    if (!size)
        return ctl_fail_size(args->operands[0]);
    if (args->params)
        return set_up(args, size, args->params);
    struct errmsg err;
    if (srs_development_dir(dir, &err) < 0)
        return ctl_fail(CTL_CANNOT, "%s", err.text);
    return set_up(args, size, dir);
}
