/*
 * proofctl transform: the transformed points of a sector size's parameters, in a file beside them.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ctl.h"
#include "daemon/store.h"
#include "gpu/backend_cuda.h"
#include "gpu/srs.h"
#include "gpu/transformed.h"
#include "gpu/trusted.h"

/* A point times a scalar on one core, to tell how long it will take. */
#define PRODUCT_US 120.0

struct transforming {
    const struct ctl_args *args;
    const struct sector_size *size;
    char params[4096], path[4096], memory[4096];
    struct srs_counts counts;
    struct workers *workers;
    struct backend *backend;
    struct srs *srs;
};

/* ---- what is needed ---- */

/* That of the service, where --store says so: it believes nothing that another user has written. */
static int find_memory(struct transforming *t)
{
    const char *store = t->args->store;
    char counter[PATH_MAX];
    struct stat st;

    if (!store && trusted_default_path(t->memory) < 0)
        return ctl_fail(CTL_CANNOT,
                        "neither HOME nor XDG_CACHE_HOME is a path, so nobody would "
                        "trust the file: --store names the store of a service that has none");
    if (!store)
        return CTL_OK;
    if (stat(store, &st) < 0)
        return ctl_fail(CTL_CANNOT, "%s: %s", store, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return ctl_fail(CTL_CANNOT, "%s: %s", store,
                        S_ISDIR(st.st_mode) ? "belongs to another user, who has to run this"
                                            : "is no directory");
    if (snprintf(t->memory, sizeof(t->memory), "%s/%s", store, TRUSTED_STORE_NAME) >=
            (int)sizeof(t->memory) ||
        snprintf(counter, sizeof(counter), "%s/%s", store, STORE_COUNTER) >= (int)sizeof(counter))
        return ctl_fail(CTL_CANNOT, "%s: name too long", store);
    if (access(counter, F_OK) < 0)
        return ctl_fail(CTL_CANNOT, "%s: is no store: no proofd has been started with it", store);
    return CTL_OK;
}

static int find_files(struct transforming *t)
{
    struct errmsg err = {""};
    int ret = srs_find(t->size, t->args->params, ".params", t->params, &err);

    if (ret < 0)
        return ctl_fail_params(t->size, t->args->params, ret, &err);
    srs_counts(t->size, &t->counts);
    if (transformed_path(t->params, t->path) < 0)
        return ctl_fail(CTL_CANNOT, "%s: name too long", t->params);
    ret = transformed_check_room(t->params, &t->counts, &err);
    if (ret < 0)
        return ctl_fail_with(CTL_CANNOT, ret, &err);
    if (access(t->path, F_OK) == 0 && access(t->path, W_OK) < 0)
        return ctl_fail(CTL_CANNOT, "%s: cannot be written: %s", t->path, strerror(errno));
    return CTL_OK;
}

static double cpu_minutes(const struct transforming *t)
{
    const double m = (double)t->counts.h + 1;
    double log2_m = 0;

    for (size_t n = t->counts.h; n > 0; n /= 2)
        log2_m++;
    return 2 * m * (1 + log2_m / 2) * PRODUCT_US / 60e6 / workers_count(t->workers);
}

static void cpu_time(const struct transforming *t, char *out, size_t size)
{
    const double minutes = cpu_minutes(t), days = minutes / (24 * 60);

    if (days < 2)
        snprintf(out, size, "%.0f minutes", minutes);
    else
        snprintf(out, size, "%.0f days", days);
}

static int find_backend(struct transforming *t)
{
    struct errmsg err = {""};
    char time[32];
    int ret = workers_create(t->args->threads, &t->workers, &err);

    if (ret == 0 && t->args->cpu)
        ret = backend_cpu_create(t->workers, &t->backend, &err);
    if (ret < 0)
        return ctl_fail_with(CTL_CANNOT, ret, &err);
    if (t->args->cpu)
        return CTL_OK;
    ret = backend_cuda_create((int)t->args->gpu, t->workers, &t->backend, &err);
    if (ret < 0) {
        cpu_time(t, time, sizeof(time));
        return ctl_fail(CTL_CANNOT, "no GPU: %s; --cpu does it here, in some %s", err.text, time);
    }
    if (!t->backend->ops->transform_points)
        return ctl_fail(CTL_CANNOT, "%s transforms no points", t->backend->ops->name);
    return CTL_OK;
}

/* ---- the work ---- */

static int open_params(struct transforming *t)
{
    const struct srs_options opt = {.dir = t->args->params,
                                    .memory = t->memory,
                                    .workers = t->workers,
                                    .progress = ctl_progress,
                                    .plain = true};
    struct errmsg err = {""};
    int ret = srs_open(t->size, &opt, &t->srs, &err);

    if (ret < 0)
        return ctl_fail_params(t->size, t->args->params, ret, &err);
    /* The sums over A and B have no part in it, and at 32 GiB their points take 22 GB. */
    free(t->srs->a);
    free(t->srs->b_g1);
    free(t->srs->b_g2);
    t->srs->a = t->srs->b_g1 = NULL;
    t->srs->b_g2 = NULL;
    return CTL_OK;
}

static int report(const struct transforming *t)
{
    const uint64_t bytes = srs_transformed_bytes(&t->counts);

    if (!t->args->json) {
        printf(
            "%s: transformed parameters made: %s (%.1f GB); they are taken from the next load on\n",
            t->size->name, t->path, (double)bytes / 1e9);
        return CTL_OK;
    }
    printf("{\"size\":\"%s\",\"insecure\":%s,\"bytes\":%llu,\"file\":", t->size->name,
           t->srs->trust == SRS_INSECURE ? "true" : "false", (unsigned long long)bytes);
    ctl_json_string(stdout, t->path);
    puts("}");
    return CTL_OK;
}

static int make(struct transforming *t)
{
    const struct transformed_options opt = {
        .memory = t->memory, .backend = t->backend, .progress = ctl_progress};
    const struct circuit *circuit = NULL;
    struct errmsg err = {""};
    int ret = circuit_of_size(t->size, &circuit, &err);

    ctl_remove_when_interrupted(t->path);
    if (ret == 0)
        ret = transformed_make(t->srs, circuit, &opt, &err);
    ctl_progress_end();
    return ret < 0 ? ctl_fail_with(CTL_CANNOT, ret, &err) : report(t);
}

int ctl_transform(const struct ctl_args *args)
{
    struct transforming t = {.args = args, .size = sector_size_by_name(args->operands[0])};

    if (!t.size)
        return ctl_fail_size(args->operands[0]);
    ctl_progress_lines();
    int code = find_memory(&t);
    if (code == CTL_OK)
        code = find_files(&t);
    if (code == CTL_OK)
        code = find_backend(&t);
    if (code == CTL_OK)
        code = open_params(&t);
    if (code == CTL_OK)
        code = make(&t);
    ctl_progress_end();
    srs_close(t.srs);
    backend_destroy(t.backend);
    workers_destroy(t.workers);
    return code;
}
