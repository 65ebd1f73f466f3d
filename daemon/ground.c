#include "daemon/ground.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/evict.h"
#include "daemon/log.h"
#include "daemon/plan.h"
#include "gpu/groth16.h"
#include "gpu/setup.h"
#include "gpu/srs.h"
#include "numa/limits.h"

#define LOG_MODULE LOG_ENGINE

/* What suits a prover that shares its threads with synthesis, and one that has threads or a chip of its own: one partition is made
 * while one is proved, and one more is ready and one ends where that costs the next nothing. */
#define PERMITS_CPU 2
#define PERMITS_DEVICE 4

struct ground {
    struct ground_options opt;
    uint64_t limit_bytes;
    char limit_from[288];

    pthread_mutex_t lock; /* over what others look at; the pipeline's thread alone changes it */
    struct arena *arena;
    struct slots *slots;
    struct plan plan;
    uint64_t params_bytes;
    struct shown {
        uint64_t bytes;          /* on devices */
        uint32_t have, streamed; /* bits of backends */
        bool key;                /* of a simulated device: */
        enum srs_trust trust;
    } shown[GROUND_SIZES];
    /* The pipeline's thread's alone: */
    bool ready;
    const struct sector_size *size; /* that it is ready for; NULL: the test kind */
    const struct srs *srs;
    struct srs *keys[GROUND_SIZES];     /* with a simulated device: the verifying keys alone */
    const struct circuit *circuit;      /* of `size`, where witnesses are compact */
    bool pinned;                        /* the arena, for the devices */
    uint64_t clock, used[GROUND_SIZES]; /* when, in turns of ground_get */
    uint32_t waiting;                   /* bits of sizes */
    bool urgent;                        /* devices may give these up, too */
    const struct backend *asked;        /* is at something that may take long */
};

/* ---- compact witnesses ---- */

/* Where all provers take them. A simulated device has its own kind. */
static bool is_compact(const struct ground *g)
{
    bool compact = !g->opt.sim;

    for (size_t i = 0; i < g->opt.backends_len; i++)
        compact = compact && g->opt.backends[i]->ops->takes_compact;
    return compact;
}

static int get_circuit(struct ground *g, const struct sector_size *size, struct errmsg *err)
{
    g->circuit = NULL;
    return size && is_compact(g) ? circuit_of_size(size, &g->circuit, err) : 0;
}

/* ---- what devices are asked for ---- */

static void ask(struct ground *g, const struct backend *be)
{
    g->asked = be;
    if (g->opt.at_device)
        g->opt.at_device(g->opt.ctx, be);
}

static void answered(struct ground *g)
{
    ask(g, NULL);
}

/* A backend_progress. */
static void get_on(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    struct ground *g = ctx;

    (void)stage, (void)done, (void)total;
    ask(g, g->asked);
}

static void give_up(struct ground *g, struct backend *be, const struct srs *srs)
{
    ask(g, be);
    be->ops->evict(be, srs);
    answered(g);
}

static int prepare_backend(struct ground *g, struct backend *be, struct errmsg *err)
{
    ask(g, be);
    int ret = g->circuit ? groth16_prepare_compact(be, g->srs, g->circuit, get_on, g, err)
                         : groth16_prepare(be, g->srs, get_on, g, err);
    answered(g);
    return ret;
}

static int pin(struct ground *g, struct backend *be, struct arena *arena, struct errmsg *err)
{
    ask(g, be);
    int ret = be->ops->pin(be, arena_memory(arena), arena_get_info(arena)->bytes, err);
    answered(g);
    return ret;
}

static void unpin(struct ground *g, struct backend *be, struct arena *arena)
{
    ask(g, be);
    be->ops->unpin(be, arena_memory(arena));
    answered(g);
}

static void pin_arena(struct ground *g, struct arena *arena)
{
    struct errmsg err;

    for (size_t i = 0; i < g->opt.backends_len && !g->pinned; i++) {
        struct backend *be = g->opt.backends[i];
        if (!be->ops->pin || !is_compact(g))
            continue;
        if (pin(g, be, arena, &err) < 0)
            log_warn(log_i64("node", g->opt.node),
                     log_str("msg", "a GPU takes witnesses by way of a copy"),
                     log_str("error", err.text));
        else
            g->pinned = true;
        break; /* for all of them */
    }
}

static void unpin_arena(struct ground *g, struct arena *arena)
{
    if (g->pinned)
        unpin(g, g->opt.backends[0], arena);
    g->pinned = false;
}

/* ---- what there is, and what is needed ---- */

static void lower_limit(struct ground *g, uint64_t bytes, const char *from, uint32_t sharers)
{
    if (sharers > 1)
        bytes /= sharers;
    if (bytes >= g->limit_bytes)
        return;
    g->limit_bytes = bytes;
    snprintf(g->limit_from, sizeof(g->limit_from), "%s%s", sharers > 1 ? "a share of " : "", from);
}

/* A control group's limit is for all engines together, and so is the machine's memory, unless it is a node's. */
static void find_limit(struct ground *g)
{
    const struct ground_options *opt = &g->opt;
    struct limits limits;
    char node[32];

    limits_read("", &limits);
    g->limit_bytes = UINT64_MAX;
    snprintf(g->limit_from, sizeof(g->limit_from), "nobody");
    snprintf(node, sizeof(node), "node %d", opt->memory_node);
    if (opt->memory_node >= 0 && opt->node_bytes)
        lower_limit(g, opt->node_bytes, node, opt->sharers);
    if (opt->memory_node < 0 || !opt->node_bytes || limits.grouped)
        lower_limit(g, limits.total_bytes, limits.from, opt->engines);
    if (opt->memory_bytes)
        lower_limit(g, opt->memory_bytes, "the configuration", 1);
}

uint32_t ground_permits(const struct ground *g)
{
    if (g->opt.permits)
        return g->opt.permits;
    return g->opt.backends[0]->ops->start ? PERMITS_DEVICE : PERMITS_CPU;
}

/* What devices make in memory of their own takes none here, if they may take that much. */
static bool needs_points_here(const struct ground *g, const struct sector_size *size)
{
    if (g->opt.sim)
        return false;
    for (size_t i = 0; i < g->opt.backends_len; i++)
        if (g->opt.backends[i]->memory_limit)
            return true;
    return !params_makes(g->opt.params, size);
}

static void wish_for(const struct ground *g, const struct sector_size *size, struct plan_wish *out)
{
    struct slots_shape shape;
    struct srs_counts counts;

    if (size && is_compact(g))
        shape = (struct slots_shape){.witness_bytes = compact_bytes_of_size(size)};
    else
        document_slot_bytes(size, g->opt.sim, &shape);
    *out = (struct plan_wish){.name = size ? size->name : "the test kind",
                              .witness_bytes = shape.witness_bytes,
                              .evaluation_bytes = shape.evaluation_bytes,
                              .permits = ground_permits(g)};
    if (!size)
        return;
    srs_counts(size, &counts);
    for (size_t i = 0; i < g->opt.backends_len; i++)
        out->scratch_bytes += groth16_scratch_bytes(g->opt.backends[i], &counts);
    if (needs_points_here(g, size))
        out->params_bytes = srs_file_bytes(&counts);
}

static int plan_for(const struct ground *g, const struct sector_size *size, struct plan *out,
                    struct errmsg *err)
{
    struct plan_wish wish;

    wish_for(g, size, &wish);
    return plan_make(&wish, g->limit_bytes, g->limit_from, out, err);
}

/* ---- the arena and its slots ---- */

static void log_arena(const struct ground *g, const struct arena *arena)
{
    const struct arena_info *info = arena_get_info(arena);

    log_info(log_i64("node", g->opt.node), log_str("msg", "memory is there"),
             log_str("pages", arena_pages_name(info->pages)), log_u64("bytes", info->bytes),
             log_u64("huge_bytes", info->huge_bytes), log_str("bound", info->bound ? "yes" : "no"),
             log_str("locked", info->locked ? "yes" : "no"));
    if (info->lost_pages_alone) /* as on any machine whose pool nobody has filled */
        log_info(
            log_i64("node", g->opt.node),
            log_str("msg", "too few huge pages in the pool, smaller or transparent ones serve"),
            log_str("lost", info->lost));
    else if (info->lost[0])
        log_warn(log_i64("node", g->opt.node), log_str("msg", "memory is not as it should be"),
                 log_str("lost", info->lost));
    if (info->misplaced_bytes > 0)
        log_err(log_i64("node", g->opt.node), log_str("msg", "memory lies on another node"),
                log_u64("bytes", info->misplaced_bytes), log_i64("on", info->misplaced_node));
}

static void drop_arena(struct ground *g, struct arena *arena)
{
    if (arena)
        unpin_arena(g, arena);
    arena_destroy(arena);
}

/* An arena of so many bytes: the one there is, or another. */
static int map(struct ground *g, size_t bytes, struct arena **arena, struct errmsg *err)
{
    const struct arena_options opt = {
        .bytes = bytes, .node = g->opt.memory_node, .workers = g->opt.workers};

    if (*arena && arena_get_info(*arena)->bytes >= bytes)
        return 0;
    drop_arena(g, *arena);
    *arena = NULL;
    int ret = arena_create(&opt, arena, err);
    if (ret == 0)
        log_arena(g, *arena);
    return ret;
}

/* What backends carve for themselves comes behind the slots. */
static void lend_scratch(const struct ground *g, struct arena *arena)
{
    for (size_t i = 0; i < g->opt.backends_len; i++)
        g->opt.backends[i]->scratch = arena;
}

/* Takes what there is away from those who look: mapping may take minutes, and they must not wait for it. */
static struct arena *take_away(struct ground *g)
{
    pthread_mutex_lock(&g->lock);
    struct arena *arena = g->arena;
    struct slots *slots = g->slots;
    g->arena = NULL;
    g->slots = NULL;
    pthread_mutex_unlock(&g->lock);
    slots_destroy(slots);
    lend_scratch(g, NULL);
    if (arena)
        arena_rewind(arena, 0);
    return arena;
}

/* Nothing is in flight. */
static int lay_out(struct ground *g, const struct plan *plan, struct errmsg *err)
{
    struct arena *arena = take_away(g);
    struct slots *slots = NULL;
    int ret = map(g, plan->arena_bytes, &arena, err);

    if (ret == 0)
        ret = slots_create(arena, &plan->slots, &slots, err);
    lend_scratch(g, arena);
    if (ret == 0)
        pin_arena(g, arena);
    pthread_mutex_lock(&g->lock);
    g->arena = arena;
    g->slots = slots;
    g->plan = *plan;
    pthread_mutex_unlock(&g->lock);
    return ret;
}

/* ---- parameters ---- */

static void drop_key(struct ground *g, size_t i)
{
    if (g->keys[i])
        vk_fini(&g->keys[i]->vk);
    free(g->keys[i]);
    g->keys[i] = NULL;
}

/* A simulated device proves with nothing; the check needs the key. */
static int get_key(struct ground *g, const struct sector_size *size, struct errmsg *err)
{
    const size_t i = (size_t)(size - sector_sizes);
    struct srs *key = calloc(1, sizeof(*key));
    bool insecure = false;

    drop_key(g, i);
    int ret = key ? srs_open_vk(size, g->opt.params_dir, &key->vk, &insecure, err)
                  : errmsg_set(err, -ENOMEM, "no memory for a key");
    if (ret < 0) {
        free(key);
        return ret;
    }
    key->size = size;
    key->trust = insecure ? SRS_INSECURE : SRS_CHECKED;
    g->srs = g->keys[i] = key;
    return 0;
}

/* Whatever is wrong with parameters is no fault of who needs them. */
static int code_of_params(int ret)
{
    return ret == 0 || ret == -E2BIG || ret == -ENOMEM || ret == -ENOSPC ? ret : -ENOKEY;
}

static int get_params(struct ground *g, const struct sector_size *size, double *ms,
                      struct errmsg *err)
{
    g->srs = NULL;
    if (!size)
        return 0;
    return code_of_params(g->opt.sim ? get_key(g, size, err)
                                     : params_get(g->opt.params, size, &g->srs, ms, err));
}

/* ---- what devices hold ---- */

static uint32_t bit_of(const struct sector_size *size)
{
    return UINT32_C(1) << (size - sector_sizes);
}

/* NULL where nothing is held of that size, not even the key. */
static const struct srs *held_of(const struct ground *g, size_t i)
{
    return g->opt.sim ? g->keys[i] : params_held(g->opt.params, &sector_sizes[i]);
}

static uint64_t bytes_on(const struct backend *be, const struct srs *srs, bool *streamed)
{
    *streamed = false;
    return be->ops->holds && srs ? be->ops->holds(be, srs, streamed) : 0;
}

/* A prover that does all by itself has the points in memory of its own, and needs no copy on the host. */
static bool keeps_points(const struct ground *g)
{
    bool keeps = true, streamed;

    for (size_t i = 0; i < g->opt.backends_len; i++)
        keeps = keeps && bytes_on(g->opt.backends[i], g->srs, &streamed) > 0 && !streamed;
    return keeps;
}

static void look_at(const struct ground *g, size_t size, struct shown *out)
{
    const struct srs *srs = held_of(g, size);
    bool streamed;

    *out = (struct shown){.key = g->keys[size] != NULL,
                          .trust = g->keys[size] ? g->keys[size]->trust : SRS_UNCHECKED};
    for (size_t i = 0; i < g->opt.backends_len; i++) {
        const uint64_t bytes = bytes_on(g->opt.backends[i], srs, &streamed);
        if (bytes > out->bytes)
            out->bytes = bytes;
        out->have |= (uint32_t)(bytes > 0) << i;
        out->streamed |= (uint32_t)streamed << i;
    }
}

static void look_at_all(struct ground *g)
{
    struct shown now[GROUND_SIZES];

    for (size_t i = 0; i < GROUND_SIZES; i++)
        look_at(g, i, &now[i]);
    pthread_mutex_lock(&g->lock);
    memcpy(g->shown, now, sizeof(now));
    pthread_mutex_unlock(&g->lock);
}

static void evict_from(struct ground *g, struct backend *be, size_t size)
{
    log_info(log_i64("node", g->opt.node), log_str("device", be->ops->name),
             log_str("msg", "parameters given up for others"),
             log_str("size", sector_sizes[size].name));
    give_up(g, be, held_of(g, size));
}

/* Room for those at hand on a device that lacks it. False when there will not be enough: then nothing goes. */
static bool evict_for(struct ground *g, struct backend *be)
{
    struct evict_set sets[GROUND_SIZES];
    const uint64_t lacks = be->lacks;
    uint32_t go, all = 0;
    bool streamed;

    be->lacks = 0; /* answered, one way or the other */
    for (size_t i = 0; i < GROUND_SIZES; i++) {
        const struct srs *srs = held_of(g, i);
        sets[i] = (struct evict_set){
            .bytes = srs == g->srs ? 0 : bytes_on(be, srs, &streamed),
            .used = g->used[i],
            .need = g->waiting >> i & 1 ? EVICT_WAITING : EVICT_FREE,
        };
        all |= (uint32_t)(sets[i].bytes > 0) << i;
    }
    if (!evict_choose(sets, GROUND_SIZES, lacks, 0, g->urgent, &go) && go != all)
        return false;
    for (size_t i = 0; i < GROUND_SIZES; i++)
        if (go >> i & 1)
            evict_from(g, be, i);
    return go != 0;
}

static int refuse_for_waiting(const struct ground *g, struct errmsg *err)
{
    const struct sector_size *other = sector_sizes;

    while (other->name && !(g->waiting & bit_of(other)))
        other++;
    return errmsg_set(err, -EBUSY, "partitions wait that need the parameters of %s",
                      other->name ? other->name : "others");
}

/* What is streamed, before those of another size may take its memory on the host. */
static int return_points(struct ground *g, const struct sector_size *size, struct errmsg *err)
{
    bool streamed;

    for (size_t i = 0; i < GROUND_SIZES; i++)
        for (size_t k = 0; k < g->opt.backends_len && size != &sector_sizes[i]; k++) {
            bytes_on(g->opt.backends[k], held_of(g, i), &streamed);
            if (!streamed)
                continue;
            if (!g->urgent && g->waiting >> i & 1)
                return refuse_for_waiting(g, err);
            evict_from(g, g->opt.backends[k], i);
        }
    return 0;
}

static int prepare_backends(struct ground *g, struct errmsg *err)
{
    int ret = 0;

    for (size_t i = 0; i < g->opt.backends_len && ret == 0; i++) {
        struct backend *be = g->opt.backends[i];
        do
            ret = prepare_backend(g, be, err);
        while (ret == -ENOSPC && evict_for(g, be));
    }
    return ret == -ENOSPC ? refuse_for_waiting(g, err) : ret;
}

/* NULL: it is no device that lacks room. */
static struct backend *lacking(const struct ground *g)
{
    for (size_t i = 0; i < g->opt.backends_len; i++)
        if (g->opt.backends[i]->lacks)
            return g->opt.backends[i];
    return NULL;
}

/* Devices may make them, and then need the room for it; a disk that is full is another matter. */
static int get_params_with_room(struct ground *g, const struct sector_size *size, double *ms,
                                struct errmsg *err)
{
    int ret;

    while ((ret = get_params(g, size, ms, err)) == -ENOSPC) {
        struct backend *be = lacking(g);
        if (!be)
            return -ENOKEY;
        if (!evict_for(g, be))
            return refuse_for_waiting(g, err);
    }
    return ret;
}

static int bring(struct ground *g, const struct sector_size *size, double *ms, struct errmsg *err)
{
    double again_ms = 0;
    int ret = g->srs ? prepare_backends(g, err) : 0;

    if (ret == -ENODATA) { /* devices have given them up meanwhile */
        ret = code_of_params(params_get_again(g->opt.params, size, &g->srs, &again_ms, err));
        *ms += again_ms;
        if (ret == 0)
            ret = prepare_backends(g, err);
    }
    if (ret == 0 && g->srs && !g->opt.sim && keeps_points(g))
        params_drop_points(g->opt.params, size);
    return ret;
}

/* ---- for the pipeline ---- */

bool ground_get(struct ground *g, const struct sector_size *size, struct pipeline_ground *out)
{
    if (!g->ready || g->size != size)
        return false;
    if (size)
        g->used[size - sector_sizes] = ++g->clock;
    if (size && !g->opt.sim)
        params_touch(g->opt.params, size);
    *out = (struct pipeline_ground){.srs = g->srs, .slots = g->slots, .circuit = g->circuit};
    return true;
}

/* By a plan that fits. */
static int carry_out(struct ground *g, const struct sector_size *size, const struct plan *plan,
                     double *ms, struct errmsg *err)
{
    int ret = return_points(g, size, err);

    if (ret == 0)
        ret = get_params_with_room(g, size, ms, err);
    if (ret == 0)
        ret = get_circuit(g, size, err);
    if (ret == 0)
        ret = lay_out(g, plan, err);
    return ret == 0 ? bring(g, size, ms, err) : ret;
}

/* Memory that others have at present is another matter than memory that nobody ever has. */
static int prepare(struct ground *g, const struct sector_size *size, double *ms, struct errmsg *err)
{
    struct plan plan;
    int ret = plan_for(g, size, &plan, err);

    if (ret < 0)
        return ret;
    ret = carry_out(g, size, &plan, ms, err);
    if (ret == -E2BIG)
        return -ENOMEM;
    return ret == -ENOMEM || ret == -ENOSPC ? -EBUSY : ret;
}

static int prepare_for(struct ground *g, const struct sector_size *size, uint32_t waiting,
                       bool urgent, double *ms, struct errmsg *err)
{
    struct srs_counts counts = {0};

    g->ready = false;
    g->waiting = waiting;
    g->urgent = urgent;
    params_set_waiting(g->opt.params, waiting, urgent);
    int ret = prepare(g, size, ms, err);
    look_at_all(g);
    if (ret < 0)
        return ret;
    if (size && !g->opt.sim)
        srs_counts(size, &counts);
    pthread_mutex_lock(&g->lock);
    g->params_bytes = counts.h ? srs_file_bytes(&counts) : 0;
    pthread_mutex_unlock(&g->lock);
    if (size)
        g->used[size - sector_sizes] = ++g->clock;
    g->size = size;
    g->ready = true;
    return 0;
}

int ground_prepare(struct ground *g, const struct sector_size *size, uint32_t waiting, double *ms,
                   struct errmsg *err)
{
    return prepare_for(g, size, waiting, true, ms, err);
}

/* ---- asked for by name ---- */

int ground_load(struct ground *g, const struct sector_size *size, uint32_t waiting,
                struct errmsg *err)
{
    double ms = 0;

    if (g->ready && g->size == size)
        return 0;
    return prepare_for(g, size, waiting, false, &ms, err);
}

int ground_evict(struct ground *g, const struct sector_size *size, uint32_t waiting,
                 struct errmsg *err)
{
    const size_t i = (size_t)(size - sector_sizes);
    const struct srs *srs = held_of(g, i);

    if (waiting & bit_of(size))
        return errmsg_set(err, -EBUSY, "partitions wait that need them");
    for (size_t k = 0; k < g->opt.backends_len && srs; k++)
        if (g->opt.backends[k]->ops->evict)
            give_up(g, g->opt.backends[k], srs);
    if (g->size == size) {
        g->ready = false;
        g->size = NULL;
        pthread_mutex_lock(&g->lock);
        g->params_bytes = 0;
        pthread_mutex_unlock(&g->lock);
    }
    if (g->srs == srs)
        g->srs = NULL;
    drop_key(g, i);
    params_evict(g->opt.params, size);
    look_at_all(g);
    return 0;
}

/* ---- the outside ---- */

void ground_params(struct ground *g, const struct sector_size *size, struct node_params *out)
{
    struct params_look look;

    params_look(g->opt.params, size, &look);
    *out = (struct node_params){.held = look.held,
                                .trust = look.trust,
                                .transformed = look.transformed,
                                .loading = look.loading,
                                .percent = look.percent,
                                .host_bytes = look.bytes,
                                .used_ms = look.used_ms};
    pthread_mutex_lock(&g->lock);
    const struct shown *s = &g->shown[size - sector_sizes];
    out->device_bytes = s->bytes;
    out->devices = s->have;
    out->streamed = s->streamed;
    if (s->key) {
        out->held = true;
        out->trust = s->trust;
    }
    pthread_mutex_unlock(&g->lock);
}

void ground_needs(const struct ground *g, struct ground_needs *out)
{
    struct plan_wish wish;

    for (size_t i = 0; sector_sizes[i].name; i++) {
        wish_for(g, &sector_sizes[i], &wish);
        out->bytes[i] = plan_least_bytes(&wish);
    }
    out->limit_bytes = g->limit_bytes;
    snprintf(out->limit_from, sizeof(out->limit_from), "%.60s", g->limit_from);
}

void ground_look(struct ground *g, struct node_memory *out)
{
    *out = (struct node_memory){
        .node = g->opt.memory_node, .misplaced_node = -1, .limit_bytes = g->limit_bytes};
    pthread_mutex_lock(&g->lock);
    if (g->arena) {
        const struct arena_info *info = arena_get_info(g->arena);
        out->mapped = true;
        out->pages = info->pages;
        out->bound = info->bound;
        out->locked = info->locked;
        out->misplaced_node = info->misplaced_node;
        out->misplaced_bytes = info->misplaced_bytes;
        out->arena_bytes = info->bytes;
        out->huge_bytes = info->huge_bytes;
    }
    if (g->slots) {
        out->shape = *slots_shape(g->slots);
        slots_counts(g->slots, &out->slots);
        out->scratch_bytes = g->plan.arena_bytes - slots_bytes(&g->plan.slots);
    }
    out->params_bytes = g->params_bytes;
    pthread_mutex_unlock(&g->lock);
}

/* The largest circuit that there are parameters for and that fits; those that never will are told of. */
static bool find_largest(struct ground *g, struct plan *out)
{
    char path[4096];
    struct errmsg err;
    bool found = g->opt.sim != NULL && plan_for(g, NULL, out, &err) == 0;

    for (const struct sector_size *size = sector_sizes; size->name && !g->opt.sim; size++) {
        struct plan plan;
        if (srs_find(size, g->opt.params_dir, ".params", path, NULL) < 0)
            continue;
        if (plan_for(g, size, &plan, &err) < 0) {
            log_warn(log_i64("node", g->opt.node), log_str("msg", "too little memory"),
                     log_str("error", err.text));
            continue;
        }
        *out = plan; /* sizes ascend */
        found = true;
    }
    return found;
}

int ground_create(const struct ground_options *opt, struct ground **out, struct errmsg *err)
{
    struct ground *g = calloc(1, sizeof(*g));
    struct errmsg why = {""};
    struct plan plan;

    if (!g)
        return errmsg_set(err, -ENOMEM, "no memory");
    g->opt = *opt;
    pthread_mutex_init(&g->lock, NULL);
    find_limit(g);
    if (find_largest(g, &plan) && lay_out(g, &plan, &why) < 0)
        log_warn(log_i64("node", opt->node), log_str("msg", "no memory for proofs at present"),
                 log_str("error", why.text));
    *out = g;
    return 0;
}

void ground_destroy(struct ground *g)
{
    if (!g)
        return;
    drop_arena(g, take_away(g));
    for (size_t i = 0; i < GROUND_SIZES; i++)
        drop_key(g, i);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
