#include "daemon/params.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/evict.h"
#include "daemon/log.h"
#include "numa/circuit/witness.h"

#define LOG_MODULE LOG_PARAMS

#define SIZES 10 /* of sector_sizes */

struct params {
    struct params_options opt;
    const struct params_source *source;
    struct held {
        struct srs *srs;
        uint64_t bytes; /* that giving it up would bring, near enough */
        uint64_t used;  /* when, in calls of params_get */
    } held[SIZES];
    uint64_t clock;
    uint32_t waiting; /* bits of sizes */
    bool urgent;      /* these may go too */

    pthread_mutex_t lock;
    /* guarded by lock: */
    const struct sector_size *loading; /* NULL: none */
    unsigned percent;
    char text[256]; /* what is held */
    struct shown {
        bool held, transformed;
        enum srs_trust trust;
        uint64_t bytes;
        double used_at;
    } shown[SIZES]; /* the same, for each size */
};

/* ---- this machine ---- */

static uint64_t file_bytes(const struct sector_size *size, const char *dir)
{
    char path[4096];
    struct stat st;

    if (srs_find(size, dir, ".params", path, NULL) < 0 || stat(path, &st) < 0)
        return 0;
    return (uint64_t)st.st_size;
}

static void memory(struct limits *out)
{
    limits_read("", out);
}

static const struct params_source this_machine = {srs_open, srs_close, file_bytes, memory};

/* ---- what is held ---- */

int params_create(const struct params_options *opt, struct params **out)
{
    struct params *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->opt = *opt;
    p->source = opt->source ? opt->source : &this_machine;
    pthread_mutex_init(&p->lock, NULL);
    *out = p;
    return 0;
}

void params_destroy(struct params *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < SIZES; i++)
        if (p->held[i].srs)
            p->source->close(p->held[i].srs);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uint64_t bytes_of_points(const struct srs *srs)
{
    uint64_t g1 =
        srs->h_len + srs->l_len + srs->a_len + srs->b_len + (srs->transformed ? srs->vk.ic_len : 0);

    return srs_has_points(srs) ? g1 * sizeof(g1_affine_t) + srs->b_len * sizeof(g2_affine_t) : 0;
}

/* With lock. */
static void show_held(struct shown *s, const struct srs *srs)
{
    s->held = srs != NULL;
    s->trust = srs ? srs->trust : SRS_UNCHECKED;
    s->transformed = srs && srs->transformed;
    s->bytes = srs ? bytes_of_points(srs) : 0;
}

/* Keeps what others see in step with what is held. */
static void describe_held(struct params *p)
{
    size_t used = 0;

    pthread_mutex_lock(&p->lock);
    p->loading = NULL;
    p->text[0] = '\0';
    for (size_t i = 0; i < SIZES; i++)
        show_held(&p->shown[i], p->held[i].srs);
    for (size_t i = 0; i < SIZES && used < sizeof(p->text); i++)
        if (p->held[i].srs)
            used += (size_t)snprintf(p->text + used, sizeof(p->text) - used, "%s%s (%s%s)",
                                     used ? ", " : "", sector_sizes[i].name,
                                     srs_trust_text(p->held[i].srs->trust),
                                     p->held[i].srs->transformed ? ", transformed" : "");
    pthread_mutex_unlock(&p->lock);
}

static void show_percent(struct params *p, unsigned percent)
{
    pthread_mutex_lock(&p->lock);
    p->percent = percent;
    pthread_mutex_unlock(&p->lock);
    if (p->opt.loading)
        p->opt.loading(p->opt.ctx, percent);
}

/* Where more turns out to be done than was expected it stands still for a while. */
static void show_progress(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    struct params *p = ctx;
    unsigned percent = total ? (unsigned)(100.0 * (double)done / (double)total) : 0;

    (void)stage;
    if (percent > p->percent) /* only this thread changes it */
        show_percent(p, percent);
}

void params_describe(struct params *p, char *out, size_t size)
{
    pthread_mutex_lock(&p->lock);
    if (p->loading)
        snprintf(out, size, "%s%sloading %s %u%%", p->text, p->text[0] ? ", " : "",
                 p->loading->name, p->percent);
    else
        snprintf(out, size, "%s", p->text);
    pthread_mutex_unlock(&p->lock);
}

void params_look(struct params *p, const struct sector_size *size, struct params_look *out)
{
    const struct shown *s = &p->shown[size - sector_sizes];

    pthread_mutex_lock(&p->lock);
    *out = (struct params_look){.held = s->held,
                                .trust = s->trust,
                                .transformed = s->transformed,
                                .bytes = s->bytes,
                                .used_ms = s->held ? (int64_t)(now_ms() - s->used_at) : -1,
                                .loading = p->loading == size,
                                .percent = p->loading == size ? p->percent : 0};
    pthread_mutex_unlock(&p->lock);
}

/* ---- loading ---- */

/* What a proof of this size will take beyond what is taken now: the points fill as much memory as the
 * file, near enough; then one assignment, and as much again for the sums. */
static uint64_t bytes_needed(const struct params *p, const struct sector_size *size)
{
    return 2 * (uint64_t)assignment_bytes(size) + p->source->file_bytes(size, p->opt.dir);
}

/* False when there is nothing that would bring anything. */
static bool evict_for(struct params *p, uint64_t want, uint64_t room)
{
    struct evict_set sets[SIZES];
    uint32_t go;

    for (size_t i = 0; i < SIZES; i++)
        sets[i] = (struct evict_set){
            .bytes = p->held[i].srs ? p->held[i].bytes : 0,
            .used = p->held[i].used,
            .need = p->waiting >> i & 1 ? EVICT_WAITING : EVICT_FREE,
        };
    evict_choose(sets, SIZES, want, room, p->urgent, &go); /* not enough is better than nothing */
    for (size_t i = 0; i < SIZES; i++) {
        if (!(go >> i & 1))
            continue;
        log_info(log_str("msg", "parameters given up for memory"),
                 log_str("size", sector_sizes[i].name));
        params_evict(p, &sector_sizes[i]);
    }
    return go != 0;
}

static int make_room(struct params *p, const struct sector_size *size, struct errmsg *err)
{
    uint64_t need = bytes_needed(p, size);
    struct limits limits;

    p->source->memory(&limits);
    if (need > limits.total_bytes)
        return errmsg_set(err, -E2BIG, "%s: parameters and a proof need %.1f GiB, %s has %.1f GiB",
                          size->name, (double)need / (1 << 30), limits.from,
                          (double)limits.total_bytes / (1 << 30));
    while (need > limits.available_bytes && evict_for(p, need, limits.available_bytes))
        p->source->memory(&limits);
    return 0;
}

bool params_makes(const struct params *p, const struct sector_size *size)
{
    return p->opt.make && p->source->file_bytes(size, p->opt.dir) == 0;
}

static int open_or_make(struct params *p, const struct sector_size *size,
                        const struct srs_options *opt, struct srs **out, struct errmsg *err)
{
    int ret = p->source->open(size, opt, out, err);

    return ret == -ENOENT && p->opt.make ? p->opt.make(p->opt.ctx, size, opt, out, err) : ret;
}

static int load(struct params *p, const struct sector_size *size, struct held *h,
                struct errmsg *err)
{
    const struct srs_options opt = {.dir = p->opt.dir,
                                    .memory = p->opt.trusted,
                                    .workers = p->opt.workers,
                                    .progress = show_progress,
                                    .progress_ctx = p};
    struct srs *srs = NULL;

    int ret = make_room(p, size, err);
    if (ret < 0)
        return ret;
    pthread_mutex_lock(&p->lock);
    p->loading = size;
    pthread_mutex_unlock(&p->lock);
    show_percent(p, 0);
    do
        ret = open_or_make(p, size, &opt, &srs, err);
    while (ret == -ENOMEM && evict_for(p, 1, 0));
    if (ret == 0) {
        h->srs = srs;
        h->bytes = p->source->file_bytes(size, p->opt.dir);
        if (!h->bytes) /* made */
            h->bytes = bytes_of_points(srs);
    }
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
                 /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): success has set it */
                 log_str("params", srs_trust_text(h->srs->trust)),
                 log_str("transformed", h->srs->transformed ? "yes" : "no"),
                 log_u64("ms", (uint64_t)*load_ms), log_str("file", h->srs->path));
        if (h->srs->not_transformed.text[0]) /* NOLINT(clang-analyzer-core.NullDereference): likewise */
            log_warn(log_str("msg", "parameters without their transformed points"),
                     log_str("size", size->name), log_str("why", h->srs->not_transformed.text));
    }
    params_touch(p, size);
    *out = h->srs;
    return 0;
}

const struct srs *params_held(const struct params *p, const struct sector_size *size)
{
    return p->held[size - sector_sizes].srs;
}

void params_touch(struct params *p, const struct sector_size *size)
{
    p->held[size - sector_sizes].used = ++p->clock;
    pthread_mutex_lock(&p->lock);
    p->shown[size - sector_sizes].used_at = now_ms();
    pthread_mutex_unlock(&p->lock);
}

void params_set_waiting(struct params *p, uint32_t sizes, bool urgent)
{
    p->waiting = sizes;
    p->urgent = urgent;
}

bool params_evict(struct params *p, const struct sector_size *size)
{
    struct held *h = &p->held[size - sector_sizes];

    if (!h->srs)
        return false;
    p->source->close(h->srs);
    h->srs = NULL;
    describe_held(p);
    return true;
}

void params_drop_points(struct params *p, const struct sector_size *size)
{
    struct held *h = &p->held[size - sector_sizes];

    if (!h->srs)
        return;
    srs_drop_points(h->srs);
    h->bytes = 0;
    describe_held(p);
}

int params_get_again(struct params *p, const struct sector_size *size, const struct srs **out,
                     double *load_ms, struct errmsg *err)
{
    const struct held *h = &p->held[size - sector_sizes];

    if (h->srs && !srs_has_points(h->srs))
        params_evict(p, size);
    return params_get(p, size, out, load_ms, err);
}
