#include "daemon/ground.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct on_devices {
        uint64_t bytes;
        uint32_t have, streamed; /* bits of backends */
    } on_devices[GROUND_SIZES];
    const struct sector_size *key_of; /* NULL: there is no key */
    enum srs_trust key_trust;
    char parameters[NODE_PROVERS_MAX][sizeof((struct backend){0}.parameters)]; /* of the backends */
    /* The pipeline's thread's alone: */
    bool ready;
    const struct sector_size *size; /* that it is ready for; NULL: the test kind */
    const struct srs *srs;
    struct srs *key;               /* with a simulated device: of `size`, the verifying key alone */
    const struct circuit *circuit; /* of `size`, where witnesses are compact */
    bool pinned;                   /* the arena, for the devices */
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

static void pin_arena(struct ground *g, struct arena *arena)
{
    struct errmsg err;

    for (size_t i = 0; i < g->opt.backends_len; i++) {
        struct backend *be = g->opt.backends[i];
        if (!be->ops->pin || !is_compact(g))
            continue;
        if (be->ops->pin(be, arena_memory(arena), arena_get_info(arena)->bytes, &err) < 0)
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
        g->opt.backends[0]->ops->unpin(g->opt.backends[0], arena_memory(arena));
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
    if (!g->opt.sim)
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
        log_info(log_i64("node", g->opt.node),
                 log_str("msg", "smaller pages than might be, see vm.nr_hugepages"),
                 log_str("lost", info->lost));
    else if (info->lost[0])
        log_warn(log_i64("node", g->opt.node), log_str("msg", "memory is not as it should be"),
                 log_str("lost", info->lost));
    if (info->misplaced_bytes > 0)
        log_err(log_i64("node", g->opt.node), log_str("msg", "memory lies on another node"),
                log_u64("bytes", info->misplaced_bytes), log_i64("on", info->misplaced_node));
}

/* An arena of so many bytes: the one there is, or another. */
static int map(const struct ground *g, size_t bytes, struct arena **arena, struct errmsg *err)
{
    const struct arena_options opt = {
        .bytes = bytes, .node = g->opt.memory_node, .workers = g->opt.workers};

    if (*arena && arena_get_info(*arena)->bytes >= bytes)
        return 0;
    arena_destroy(*arena);
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
    if (arena) {
        unpin_arena(g, arena);
        arena_rewind(arena, 0);
    }
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

static void show_key(struct ground *g)
{
    pthread_mutex_lock(&g->lock);
    g->key_of = g->key ? g->key->size : NULL;
    g->key_trust = g->key ? g->key->trust : SRS_UNCHECKED;
    pthread_mutex_unlock(&g->lock);
}

static void drop_key(struct ground *g)
{
    if (g->key)
        vk_fini(&g->key->vk);
    free(g->key);
    g->key = NULL;
    show_key(g);
}

/* A simulated device proves with nothing; the check needs the key. */
static int get_key(struct ground *g, const struct sector_size *size, struct errmsg *err)
{
    bool insecure = false;

    drop_key(g);
    g->key = calloc(1, sizeof(*g->key));
    if (!g->key)
        return errmsg_set(err, -ENOMEM, "no memory for a key");
    g->key->size = size;
    int ret = srs_open_vk(size, g->opt.params_dir, &g->key->vk, &insecure, err);
    if (ret < 0) {
        free(g->key);
        g->key = NULL;
        return ret;
    }
    g->key->trust = insecure ? SRS_INSECURE : SRS_CHECKED;
    g->srs = g->key;
    show_key(g);
    return 0;
}

static int get_params(struct ground *g, const struct sector_size *size, double *ms,
                      struct errmsg *err)
{
    g->srs = NULL;
    if (!size)
        return 0;
    int ret =
        g->opt.sim ? get_key(g, size, err) : params_get(g->opt.params, size, &g->srs, ms, err);
    return ret == 0 || ret == -ENOMEM ? ret : -ENOKEY;
}

static int prepare_compact(struct ground *g, struct errmsg *err)
{
    int ret = 0;

    for (size_t i = 0; i < g->opt.backends_len && ret == 0; i++)
        ret = groth16_prepare_compact(g->opt.backends[i], g->srs, g->circuit, NULL, NULL, err);
    return ret;
}

/* A prover that does all by itself has the points in memory of its own, and needs no copy on the host. */
static bool keeps_points(const struct ground *g)
{
    bool keeps = true;

    for (size_t i = 0; i < g->opt.backends_len; i++)
        keeps = keeps && g->opt.backends[i]->ops->start && !g->opt.backends[i]->borrows_points;
    return keeps;
}

/* They keep one set at a time: that of `size`, or another. */
static void look_at_devices(struct ground *g, const struct sector_size *size)
{
    struct on_devices now = {0};

    for (size_t i = 0; i < g->opt.backends_len && g->srs; i++) {
        const struct backend *be = g->opt.backends[i];
        bool streamed = false;
        uint64_t bytes = be->ops->holds ? be->ops->holds(be, g->srs, &streamed) : 0;
        if (bytes > now.bytes)
            now.bytes = bytes;
        now.have |= (uint32_t)(bytes > 0) << i;
        now.streamed |= (uint32_t)(bytes > 0 && streamed) << i;
    }
    pthread_mutex_lock(&g->lock);
    memset(g->on_devices, 0, sizeof(g->on_devices));
    g->on_devices[size - sector_sizes] = now;
    pthread_mutex_unlock(&g->lock);
}

/* Before those of another size may take the memory of these. */
static void return_points(const struct ground *g)
{
    for (size_t i = 0; i < g->opt.backends_len; i++)
        if (g->opt.backends[i]->borrows_points && g->srs)
            g->opt.backends[i]->ops->evict(g->opt.backends[i], g->srs);
}

static void note_parameters(struct ground *g)
{
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->opt.backends_len && i < NODE_PROVERS_MAX; i++)
        memcpy(g->parameters[i], g->opt.backends[i]->parameters, sizeof(g->parameters[i]));
    pthread_mutex_unlock(&g->lock);
}

static int prepare_devices(struct ground *g, const struct sector_size *size, double *ms,
                           struct errmsg *err)
{
    double again_ms = 0;
    int ret = prepare_compact(g, err);

    if (ret == -ENODATA) { /* they have those of another size now */
        ret = params_get_again(g->opt.params, size, &g->srs, &again_ms, err);
        *ms += again_ms;
        if (ret == 0)
            ret = prepare_compact(g, err);
    }
    if (ret == 0 && keeps_points(g))
        params_drop_points(g->opt.params, size);
    look_at_devices(g, size);
    return ret;
}

static int prepare_backends(struct ground *g, const struct sector_size *size, double *ms,
                            struct errmsg *err)
{
    int ret = 0;

    if (g->srs && is_compact(g))
        return prepare_devices(g, size, ms, err);
    for (size_t i = 0; i < g->opt.backends_len && ret == 0 && g->srs && !g->opt.sim; i++)
        ret = groth16_prepare(g->opt.backends[i], g->srs, NULL, NULL, err);
    return ret;
}

/* ---- for the pipeline ---- */

bool ground_get(struct ground *g, const struct sector_size *size, struct pipeline_ground *out)
{
    if (!g->ready || g->size != size)
        return false;
    if (size && !g->opt.sim)
        params_touch(g->opt.params, size);
    *out = (struct pipeline_ground){.srs = g->srs, .slots = g->slots, .circuit = g->circuit};
    return true;
}

int ground_prepare(struct ground *g, const struct sector_size *size, double *ms, struct errmsg *err)
{
    struct srs_counts counts;
    struct plan plan;

    g->ready = false;
    if (g->size != size)
        return_points(g);
    int ret = plan_for(g, size, &plan, err);
    if (ret == 0)
        ret = get_params(g, size, ms, err);
    if (ret == 0)
        ret = get_circuit(g, size, err);
    if (ret < 0)
        return ret;
    ret = lay_out(g, &plan, err);
    if (ret == 0)
        ret = prepare_backends(g, size, ms, err);
    note_parameters(g);
    if (ret < 0)
        return ret;
    if (size)
        srs_counts(size, &counts);
    pthread_mutex_lock(&g->lock);
    g->params_bytes = size && !g->opt.sim ? srs_file_bytes(&counts) : 0;
    pthread_mutex_unlock(&g->lock);
    g->size = size;
    g->ready = true;
    return 0;
}

/* ---- asked for by name ---- */

static const struct sector_size *first_of(uint32_t sizes)
{
    const struct sector_size *size = sector_sizes;

    while (size->name && !(sizes >> (size - sector_sizes) & 1))
        size++;
    return size->name ? size : NULL;
}

static uint32_t bit_of(const struct sector_size *size)
{
    return UINT32_C(1) << (size - sector_sizes);
}

/* Devices have room for one set of parameters, and a key of a simulated one is one of them. */
int ground_load(struct ground *g, const struct sector_size *size, uint32_t waiting,
                struct errmsg *err)
{
    const struct sector_size *other = first_of(waiting & ~bit_of(size));
    double ms = 0;

    if (g->ready && g->size == size)
        return 0;
    if (other && keeps_points(g))
        return errmsg_set(err, -EBUSY, "partitions wait that need the parameters of %s",
                          other->name);
    return ground_prepare(g, size, &ms, err);
}

static void evict_from_devices(struct ground *g, const struct sector_size *size)
{
    for (size_t i = 0; i < g->opt.backends_len; i++) {
        struct backend *be = g->opt.backends[i];
        if (be->ops->evict && g->srs && g->srs->size == size)
            be->ops->evict(be, g->srs);
    }
    pthread_mutex_lock(&g->lock);
    g->on_devices[size - sector_sizes] = (struct on_devices){0};
    pthread_mutex_unlock(&g->lock);
}

int ground_evict(struct ground *g, const struct sector_size *size, uint32_t waiting,
                 struct errmsg *err)
{
    if (waiting & bit_of(size))
        return errmsg_set(err, -EBUSY, "partitions wait that need them");
    evict_from_devices(g, size);
    if (g->size == size) {
        g->ready = false;
        g->size = NULL;
        pthread_mutex_lock(&g->lock);
        g->params_bytes = 0;
        pthread_mutex_unlock(&g->lock);
    }
    if (g->srs && g->srs->size == size)
        g->srs = NULL;
    if (g->key && g->key->size == size)
        drop_key(g);
    params_evict(g->opt.params, size);
    return 0;
}

/* ---- the outside ---- */

void ground_params(struct ground *g, const struct sector_size *size, struct node_params *out)
{
    struct params_look look;

    params_look(g->opt.params, size, &look);
    *out = (struct node_params){.held = look.held,
                                .trust = look.trust,
                                .loading = look.loading,
                                .percent = look.percent,
                                .host_bytes = look.bytes,
                                .used_ms = look.used_ms};
    pthread_mutex_lock(&g->lock);
    const struct on_devices *d = &g->on_devices[size - sector_sizes];
    out->device_bytes = d->bytes;
    out->devices = d->have;
    out->streamed = d->streamed;
    if (g->key_of == size) {
        out->held = true;
        out->trust = g->key_trust;
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

void ground_tell_parameters(struct ground *g, struct node_prover *provers, uint32_t len)
{
    pthread_mutex_lock(&g->lock);
    for (uint32_t i = 0; i < len && i < NODE_PROVERS_MAX; i++)
        memcpy(provers[i].parameters, g->parameters[i], sizeof(provers[i].parameters));
    pthread_mutex_unlock(&g->lock);
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
    arena_destroy(take_away(g));
    drop_key(g);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
