#include "daemon/params.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/log.h"
#include "numa/circuit/witness.h"

#define SIZES 10 /* of sector_sizes */

struct params {
    const char *dir, *trusted;
    struct workers *workers;
    struct held {
        struct srs *srs;
        uint64_t used; /* when, in calls of params_get */
    } held[SIZES];
    uint64_t clock;

    pthread_mutex_t lock;
    /* guarded by lock: */
    char loading[32];
    uint64_t load_done, load_total;
    char text[256]; /* what is held */
};

int params_create(const char *dir, const char *trusted, struct workers *workers, struct params **out)
{
    struct params *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->dir = dir;
    p->trusted = trusted;
    p->workers = workers;
    pthread_mutex_init(&p->lock, NULL);
    *out = p;
    return 0;
}

void params_destroy(struct params *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < SIZES; i++)
        srs_close(p->held[i].srs);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Keeps the text that others see in step with what is held. */
static void describe_held(struct params *p)
{
    size_t used = 0;

    pthread_mutex_lock(&p->lock);
    p->loading[0] = '\0';
    p->text[0] = '\0';
    for (size_t i = 0; i < SIZES && used < sizeof(p->text); i++)
        if (p->held[i].srs)
            used += (size_t)snprintf(p->text + used, sizeof(p->text) - used, "%s%s%s",
                                     used ? ", " : "", sector_sizes[i].name,
                                     p->held[i].srs->trust == SRS_INSECURE ? " (insecure development parameters)"
                                                              : "");
    pthread_mutex_unlock(&p->lock);
}

static void show_progress(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    struct params *p = ctx;

    (void)stage;
    pthread_mutex_lock(&p->lock);
    p->load_done = done;
    p->load_total = total;
    pthread_mutex_unlock(&p->lock);
}

void params_describe(struct params *p, char *out, size_t size)
{
    pthread_mutex_lock(&p->lock);
    if (p->loading[0])
        snprintf(out, size, "%s%sloading %s %.0f %%", p->text, p->text[0] ? ", " : "", p->loading,
                 p->load_total ? 100.0 * (double)p->load_done / (double)p->load_total : 0.0);
    else
        snprintf(out, size, "%s", p->text);
    pthread_mutex_unlock(&p->lock);
}

/* A line of /proc/meminfo in bytes; UINT64_MAX where it cannot be read: then nothing is refused. */
static uint64_t meminfo(const char *key)
{
    char line[256];
    uint64_t kib, bytes = UINT64_MAX;

    FILE *f = fopen("/proc/meminfo", "re");
    if (!f)
        return bytes;
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0 &&
            sscanf(line + strlen(key), ": %" SCNu64, &kib) == 1)
            bytes = kib * 1024;
    fclose(f);
    return bytes;
}

/* What a proof of this size will take beyond what is taken now: the points fill as much memory as the
 * file, near enough; then one assignment, and as much again for the sums. */
static uint64_t bytes_needed(const struct params *p, const struct sector_size *size)
{
    char path[4096];
    struct stat st;
    uint64_t bytes = 2 * (uint64_t)assignment_bytes(size);

    if (srs_find(size, p->dir, ".params", path, NULL) == 0 && stat(path, &st) == 0)
        bytes += (uint64_t)st.st_size;
    return bytes;
}

static struct held *longest_unused(struct params *p)
{
    struct held *oldest = NULL;

    for (size_t i = 0; i < SIZES; i++)
        if (p->held[i].srs && (!oldest || p->held[i].used < oldest->used))
            oldest = &p->held[i];
    return oldest;
}

static bool evict_one(struct params *p)
{
    struct held *h = longest_unused(p);

    if (!h)
        return false;
    log_info(log_str("msg", "parameters given up for memory"), log_str("size", h->srs->size->name));
    srs_close(h->srs);
    h->srs = NULL;
    describe_held(p);
    return true;
}

static int make_room(struct params *p, const struct sector_size *size, struct errmsg *err)
{
    uint64_t need = bytes_needed(p, size), total = meminfo("MemTotal");

    if (need > total)
        return errmsg_set(err, -ENOMEM,
                          "%s: parameters and a proof need %.1f GiB, this machine has %.1f GiB",
                          size->name, (double)need / (1 << 30), (double)total / (1 << 30));
    while (need > meminfo("MemAvailable") && evict_one(p))
        ;
    return 0;
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int load(struct params *p, const struct sector_size *size, struct held *h,
                struct errmsg *err)
{
    const struct srs_options opt = {.dir = p->dir,
                                    .memory = p->trusted,
                                    .workers = p->workers,
                                    .progress = show_progress,
                                    .progress_ctx = p};

    int ret = make_room(p, size, err);
    if (ret < 0)
        return ret;
    pthread_mutex_lock(&p->lock);
    snprintf(p->loading, sizeof(p->loading), "%s", size->name);
    p->load_done = p->load_total = 0;
    pthread_mutex_unlock(&p->lock);
    do
        ret = srs_open(size, &opt, &h->srs, err);
    while (ret == -ENOMEM && evict_one(p));
    describe_held(p);
    return ret;
}

int params_get(struct params *p, const struct sector_size *size, const struct srs **out,
               double *load_ms, struct errmsg *err)
{
    struct held *h = &p->held[size - sector_sizes];
    double start = now_ms();

    *load_ms = 0;
    if (!h->srs) {
        int ret = load(p, size, h, err);
        if (ret < 0)
            return ret;
        *load_ms = now_ms() - start;
        log_info(log_str("msg", "parameters loaded"), log_str("size", size->name),
                 log_u64("ms", (uint64_t)*load_ms), log_str("file", h->srs->path));
        if (h->srs->trust == SRS_INSECURE)
            log_warn(log_str("msg", "insecure development parameters"), log_str("size", size->name),
                     log_str("file", h->srs->path));
    }
    h->used = ++p->clock;
    *out = h->srs;
    return 0;
}
