/*
 * proofd-engine: the pipeline of one node. Started by proofd with the socket to it as descriptor 3; it
 * has no other way in, and ends with that socket.
 *
 * The main thread reads messages and says once a second, or oftener while it has work, that the process is alive, also while a builder brings the node's memory,
 * which may take minutes; then the builder says hello and ends. All work is the pipeline's. A stop gives back at once what is there,
 * for a partition that was begun is worth nothing to anybody.
 *
 * Once it is warm it asks nothing of the kernel but to wait, to speak and for randomness: what it needs is there, and small blocks
 * come from a heap that never shrinks.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/confine.h"
#include "daemon/ground.h"
#include "daemon/log.h"
#include "daemon/nodes.h"
#include "daemon/supervise.h"
#include "daemon/version.h"
#include "gpu/backend_cuda.h"
#include "gpu/setup.h"

#define LOG_MODULE LOG_ENGINE

#define STATUS_EVERY_MS 1000
#define STATUS_PAUSE_MS 50 /* between those that go with results, while there is more to come */
#define STATUS_BUSY_MS 100 /* likewise, while partitions are here: for who measures (history.h) */
#define OOM_SCORE "500"    /* the kernel should take an engine rather than the front */
#define PATIENCE 20        /* times a device's stall_ms: for a word while it is made ready */
#define GPU_THREADS 4      /* that do a GPU's last additions */
#define HEAP_BLOCK_MAX \
    (32 << 20) /* larger ones are mapped one by one; the most that glibc allows */

struct options {
    int node;
    const char *nodes;
    unsigned threads;
    const char *params;  /* NULL: search order */
    const char *trusted; /* NULL: the user's own */
    const char *make; /* where the keys of parameters go that devices make; NULL: they make none */
    uint64_t memory_bytes;
    uint32_t permits;
    bool gpus;
    uint64_t gpu_memory_bytes; /* of each; 0: what is free */
    enum confine confine;
    uint32_t without;     /* bit i: not GPU i */
    const char *simulate; /* NULL: no simulated device */
};

struct engine {
    struct options opt;
    struct nodes *nodes;
    const struct node *node; /* of these: this one */
    uint64_t node_bytes;     /* of its memory; 0: unknown */
    struct workers *workers;
    struct workers *gpu_workers; /* the GPUs' own, so that no sum waits for a synthesis */
    struct sim *sim;
    struct backend *backends[NODE_PROVERS_MAX];
    int32_t gpu_numbers[NODE_PROVERS_MAX]; /* of the backends */
    size_t backends_len;
    struct params *params;
    struct ground *ground; /* the builder's, until it says hello */
    struct flight flight;
    struct link_work preparing;          /* the pipeline's thread's: whose parameters are loaded */
    _Atomic(struct pipeline *) pipeline; /* NULL until the builder has made it */
    atomic_int built;                    /* 0: not yet; 1: yes; negative: it cannot be */
    atomic_llong status_at;              /* when the last one was said */
    _Atomic(const struct backend *) at_device; /* that is being made ready, NULL: none is */
    atomic_llong device_heard;                 /* when it was asked, or got on */
};

/* A front that is gone is noticed by the reader. */
static void say(const struct link_message *m)
{
    int ret = link_send(SUPERVISOR_ENGINE_FD, m, -1);

    if (ret < 0 && ret != -EPIPE)
        log_err(log_str("msg", "cannot speak to the front"), log_str("error", strerror(-ret)));
}

static void __attribute__((noreturn)) leave(int code)
{
    log_stop();
    _exit(code);
}

/* Says which GPU it was, if it was one. */
static void __attribute__((noreturn)) leave_for(const struct engine *e, const struct backend *be)
{
    for (size_t i = 0; i < e->backends_len; i++)
        if (e->backends[i] == be && !e->sim && e->gpu_numbers[i] >= 0 &&
            e->gpu_numbers[i] < ENGINE_GPUS_MAX)
            leave(ENGINE_EXIT_GPU + (int)e->gpu_numbers[i]);
    leave(1);
}

/* ---- what the pipeline says ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void say_status(struct engine *e)
{
    struct link_message m = {.type = LINK_STATUS};
    struct node_status *st = &m.status.node;
    struct pipeline *pipeline = atomic_load(&e->pipeline);

    flight_read(&e->flight, &st->flight);
    st->memory.misplaced_node = st->memory.node = -1;
    if (pipeline) {
        ground_look(e->ground, &st->memory);
        st->provers_len = pipeline_provers(pipeline, st->provers);
        for (uint32_t i = 0; i < st->provers_len; i++)
            st->provers[i].gpu = e->gpu_numbers[i];
    }
    for (size_t i = 0; pipeline && sector_sizes[i].name; i++)
        ground_params(e->ground, &sector_sizes[i], &st->params[i]);
    params_describe(e->params, m.status.params, sizeof(m.status.params));
    atomic_store(&e->status_at, now_ms());
    say(&m);
}

/* With a result. Thousands a second need not have one each, but the last of them. */
static void say_status_now_and_then(struct engine *e)
{
    struct pipeline *pipeline = atomic_load(&e->pipeline);

    if (!pipeline || pipeline_is_idle(pipeline) ||
        now_ms() - atomic_load(&e->status_at) >= STATUS_PAUSE_MS)
        say_status(e);
}

static void say_stage(void *ctx, const struct link_work *w, enum partition_stage stage)
{
    const struct link_message m = {.type = LINK_STAGE, .stage = {w->job, w->partition, stage, 0}};

    (void)ctx;
    say(&m);
}

static void say_loading(void *ctx, unsigned percent)
{
    struct engine *e = ctx;
    const struct link_message m = {
        .type = LINK_STAGE,
        .stage = {e->preparing.job, e->preparing.partition, PARTITION_LOADING, percent}};

    say(&m);
}

static void say_done(void *ctx, const struct link_work *w, const uint8_t proof[PROOF_BYTES],
                     const struct partition_report *report, const struct flight_course *course)
{
    const struct engine *e = ctx;
    struct link_message m = {.type = LINK_DONE,
                             .done = {w->job, w->partition, {0}, *report, *course}};

    m.done.course.prover = e->gpu_numbers[course->prover];
    memcpy(m.done.proof, proof, PROOF_BYTES);
    say(&m);
    say_status_now_and_then(ctx);
}

static void say_failed(void *ctx, const struct link_work *w, int code, const char *text)
{
    struct link_message m = {.type = LINK_FAILED, .failed = {w->job, w->partition, code, ""}};

    snprintf(m.failed.text, sizeof(m.failed.text), "%s", text);
    say(&m);
    say_status(ctx);
}

static void say_wrong(void *ctx, const struct link_work *w, size_t backend, const char *text)
{
    const struct engine *e = ctx;
    struct link_message m = {.type = LINK_WRONG,
                             .wrong = {w->job, w->partition, e->gpu_numbers[backend], ""}};

    snprintf(m.wrong.text, sizeof(m.wrong.text), "%s", text);
    say(&m);
    say_status(ctx);
}

/* What a device does after an error is anybody's guess, and its memory is lost: the front gives the partitions to others. */
static void end_broken(void *ctx, const struct backend *be, const char *text)
{
    struct engine *e = ctx;

    log_err(log_i64("node", e->opt.node), log_str("device", be->ops->name),
            log_str("msg", "a device is broken, the engine ends"), log_str("error", text));
    leave_for(e, be);
}

static bool get_ground(void *ctx, const struct sector_size *size, struct pipeline_ground *out)
{
    return ground_get(((struct engine *)ctx)->ground, size, out);
}

static int prepare_ground(void *ctx, const struct link_work *work, const struct sector_size *size,
                          uint32_t waiting, double *ms, struct errmsg *err)
{
    struct engine *e = ctx;

    e->preparing = *work;
    return ground_prepare(e->ground, size, waiting, ms, err);
}

static void note_device(void *ctx, const struct backend *be)
{
    struct engine *e = ctx;

    atomic_store(&e->device_heard, now_ms());
    atomic_store(&e->at_device, be);
}

/* What the front asked for by name. */
static void do_chore(void *ctx, const struct sector_size *size, bool evict, uint32_t waiting)
{
    struct engine *e = ctx;
    struct link_message m = {.type = LINK_PARAMS_DONE};
    struct errmsg err = {""};

    e->preparing = (struct link_work){.job = 0}; /* nobody's */
    int ret = evict ? ground_evict(e->ground, size, waiting, &err)
                    : ground_load(e->ground, size, waiting, &err);
    say_status(e); /* first: who hears the end of it sees what there is now */
    m.params_done = (struct link_params_done){
        .asked = {.size = (uint32_t)(size - sector_sizes), .evict = evict}, .code = ret};
    snprintf(m.params_done.text, sizeof(m.params_done.text), "%.255s", ret < 0 ? err.text : "");
    say(&m);
}

/* ---- the reader ---- */

static size_t find_backend(const struct engine *e, int32_t gpu)
{
    for (size_t i = 0; i < e->backends_len; i++)
        if (e->gpu_numbers[i] == gpu)
            return i;
    return SIZE_MAX;
}

static void take_work(struct engine *e, const struct link_work *w, int fd)
{
    struct pipeline *pipeline = atomic_load(&e->pipeline);

    if (!pipeline) {
        log_err(log_str("msg", "the front gave work before the engine was there"));
        leave(1);
    }
    if (pipeline_give(pipeline, w, find_backend(e, w->avoid), fd) < 0)
        say_failed(e, w, -EAGAIN, "the engine was given more than it has room for");
}

static void set_aside(struct engine *e, int32_t gpu)
{
    struct pipeline *pipeline = atomic_load(&e->pipeline);
    size_t i = find_backend(e, gpu);

    if (!pipeline || i == SIZE_MAX)
        return;
    log_err(log_i64("node", e->opt.node), log_i64("gpu", gpu),
            log_str("device", e->backends[i]->ops->name),
            log_str("msg", "a prover is set aside: it made too many wrong proofs"));
    if (!pipeline_set_aside(pipeline, i))
        pipeline_cancel_all(pipeline, -EAGAIN, "the last prover here has been set aside");
    say_status(e);
}

/* A proof cannot be interrupted, and nobody will take it: the process ends under it. */
static void stop(struct engine *e)
{
    struct pipeline *pipeline = atomic_load(&e->pipeline);

    if (pipeline)
        pipeline_cancel_all(pipeline, -EAGAIN, "the engine is stopping");
    if (!pipeline || !pipeline_is_idle(pipeline))
        leave(0);
}

/* False when there is nothing more to read. */
static bool serve_message(struct engine *e)
{
    struct link_message m;
    int fd, ret = link_receive(SUPERVISOR_ENGINE_FD, &m, &fd);

    if (ret == -ENOTCONN)
        leave(0); /* the front is gone, and with it all reason to live */
    if (ret < 0) {
        log_err(log_str("msg", "the front sent a malformed message"),
                log_str("error", strerror(-ret)));
        leave(1);
    }
    switch (m.type) {
    case LINK_WORK:
        take_work(e, &m.work, fd);
        return true;
    case LINK_CANCEL:
        if (atomic_load(&e->pipeline))
            pipeline_cancel(atomic_load(&e->pipeline), m.cancel.job, -ECANCELED, "cancelled");
        return true;
    case LINK_PRIORITY:
        if (atomic_load(&e->pipeline))
            pipeline_set_priority(atomic_load(&e->pipeline), m.priority.job, m.priority.priority);
        return true;
    case LINK_RECALL:
        if (atomic_load(&e->pipeline))
            pipeline_recall(atomic_load(&e->pipeline), m.recall.job, m.recall.partition);
        return true;
    case LINK_SET_ASIDE:
        set_aside(e, m.set_aside.gpu);
        return true;
    case LINK_PARAMS:
        if (atomic_load(&e->pipeline))
            pipeline_ask(atomic_load(&e->pipeline), &sector_sizes[m.params.size], m.params.evict);
        return true;
    case LINK_LOG_LEVELS:
        log_set_levels(m.log_levels.levels);
        return true;
    case LINK_STOP:
        stop(e);
        return false;
    default:
        log_err(log_str("msg", "the front sent an engine's message"), log_u64("type", m.type));
        leave(1);
    }
}

static void __attribute__((noreturn))
end_stalled(struct engine *e, const struct backend *be, int64_t ms, const char *what)
{
    log_err(log_i64("node", e->opt.node), log_str("device", be->ops->name), log_i64("ms", ms),
            log_str("msg", "the device does not answer"), log_str("step", what));
    leave_for(e, be);
}

/* While parameters come from a disk no device is asked for anything: that may take as long as it likes. */
static void look_at_device(struct engine *e)
{
    const struct backend *be = atomic_load(&e->at_device);
    int64_t ms = now_ms() - atomic_load(&e->device_heard); /* which was noted before the other */

    if (be && be->stall_ms && ms > (int64_t)PATIENCE * be->stall_ms)
        end_stalled(e, be, ms, "made ready");
}

/* A device that does not come back takes the process with it, which is what makes it come back. */
static void look_for_stalls(struct engine *e)
{
    struct node_prover provers[NODE_PROVERS_MAX];
    struct pipeline *pipeline = atomic_load(&e->pipeline);
    uint32_t len = pipeline ? pipeline_provers(pipeline, provers) : 0;

    for (uint32_t i = 0; i < len; i++)
        if (provers[i].stalled)
            end_stalled(e, e->backends[i], provers[i].step_ms, "proving");
    look_at_device(e);
}

static bool is_busy(struct engine *e)
{
    struct pipeline *pipeline = atomic_load(&e->pipeline);

    return pipeline && !pipeline_is_idle(pipeline);
}

/* Until the front says stop; false when the engine cannot be built. */
static bool read_messages(struct engine *e)
{
    struct pollfd p = {SUPERVISOR_ENGINE_FD, POLLIN, 0};

    for (;;) {
        int n = poll(&p, 1, is_busy(e) ? STATUS_BUSY_MS : STATUS_EVERY_MS);
        if (atomic_load(&e->built) < 0)
            return false;
        if (n > 0 && !serve_message(e))
            return true;
        if (n <= 0)
            say_status(e);
        look_for_stalls(e);
    }
}

/* ---- start ---- */

static void volunteer_for_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, OOM_SCORE, strlen(OOM_SCORE)) < 0)
        log_debug(log_str("msg", "cannot set the oom score"), log_str("error", strerror(errno)));
    close(fd);
}

/* Small blocks come from one heap, which keeps what it has. */
static void tame_heap(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_MAX);
    mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

static int bind_here(struct engine *e, struct errmsg *err)
{
    const struct placement *where = &e->node->where;
    struct errmsg why;

    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): find_node has set it */
    if (!e->node->bound)
        return 0;
    if (where->lost[0])
        log_warn(log_i64("node", e->opt.node), log_str("msg", where->lost));
    int ret = placement_bind(where, &why);
    if (ret > 0)
        log_warn(log_i64("node", e->opt.node), log_str("msg", why.text));
    return ret < 0 ? errmsg_set(err, ret, "node %d: %s", e->opt.node, why.text) : 0;
}

/* 0 of the only node that has memory: what the machine has is said better elsewhere, for a virtual machine that was given memory
 * piece by piece may count but a part of it as its node's. */
static uint64_t memory_of(const struct topology *t, int id)
{
    const struct topology_node *node = topology_find(t, id);
    size_t others = 0;

    for (size_t i = 0; i < t->nodes_len; i++)
        others += t->nodes[i].id != id && t->nodes[i].total_bytes > 0;
    return node && others > 0 ? node->total_bytes : 0;
}

static int find_node(struct engine *e, struct errmsg *err)
{
    struct topology *t = NULL;
    int ret = nodes_read(e->opt.nodes, &e->nodes, err);

    if (ret < 0)
        return ret;
    e->node = nodes_find(e->nodes, e->opt.node);
    if (!e->node)
        return errmsg_set(err, -EINVAL, "node %d: there is no such node", e->opt.node);
    ret = topology_read(TOPOLOGY_SYSFS, &t, err);
    if (ret < 0)
        return ret;
    e->node_bytes = e->node->bound ? memory_of(t, e->node->where.memory_node) : 0;
    topology_destroy(t);
    return 0;
}

static int make_simulated(struct engine *e, struct errmsg *err)
{
    int ret = sim_create(e->opt.simulate, &e->sim, err);

    for (unsigned i = 0; ret == 0 && i < sim_devices(e->sim); i++) {
        ret = backend_sim_create(e->sim, &e->backends[i], err);
        if (ret == 0)
            e->gpu_numbers[e->backends_len++] =
                (int32_t)((unsigned)(e->node - e->nodes->list) * sim_devices(e->sim) + i);
    }
    return ret;
}

/* Those that do not work are left out, with a word. */
static void make_gpus(struct engine *e)
{
    struct errmsg err;

    /* As topology.h counts them. */
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): find_node has set it */
    for (size_t i = 0; i < e->node->gpus_len; i++) {
        const uint32_t number = e->node->gpus[i];
        if (number < ENGINE_GPUS_MAX && e->opt.without >> number & 1) {
            log_warn(log_i64("node", e->opt.node), log_u64("gpu", number),
                     log_str("msg", "a GPU that broke too often is not used"));
            continue;
        }
        int ret = e->gpu_workers ? 0 : workers_create(GPU_THREADS, &e->gpu_workers, &err);
        if (ret == 0)
            ret = backend_cuda_create((int)number, e->gpu_workers, &e->backends[e->backends_len],
                                      &err);
        if (ret == 0) {
            e->backends[e->backends_len]->memory_limit = e->opt.gpu_memory_bytes;
            e->gpu_numbers[e->backends_len++] = (int32_t)number;
        } else
            log_warn(log_i64("node", e->opt.node), log_u64("gpu", number),
                     log_str("msg", "a GPU is not used"), log_str("error", err.text));
    }
}

static int make_backends(struct engine *e, struct errmsg *err)
{
    if (e->opt.simulate)
        return make_simulated(e, err);
    if (e->opt.gpus)
        make_gpus(e);
    if (e->backends_len > 0)
        return 0;
    int ret = backend_cpu_create(e->workers, &e->backends[0], err);
    if (ret == 0)
        e->gpu_numbers[e->backends_len++] = -1;
    return ret;
}

struct making {
    struct engine *engine;
    const struct srs_options *opt;
};

static void note_making(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    const struct making *m = ctx;

    note_device(m->engine, m->engine->backends[0]); /* which of them it is nobody says */
    if (m->opt->progress)
        m->opt->progress(m->opt->progress_ctx, stage, done, total);
}

/* Development parameters that no file holds. Whoever makes them makes the same: the key that was there first says so. */
static int make_on_devices(void *ctx, const struct sector_size *size, const struct srs_options *opt,
                           struct srs **out, struct errmsg *err)
{
    struct engine *e = ctx;
    struct making making = {e, opt};
    const struct circuit *circuit = NULL;
    struct srs *srs = NULL;

    int ret = circuit_of_size(size, &circuit, err);
    note_device(e, e->backends[0]);
    if (ret == 0)
        ret = setup_on_devices(circuit, e->backends, e->backends_len, note_making, &making, &srs,
                               err);
    note_device(e, NULL);
    if (ret == 0)
        ret = setup_keep_key(size, e->opt.make, &srs->vk, err);
    for (size_t i = 0; i < e->backends_len && ret < 0; i++)
        if (e->backends[i]->broken)
            end_broken(ctx, e->backends[i], err->text);
    if (ret < 0) {
        srs_close(srs);
        return errmsg_prefix(err, ret, "no parameters of %s can be made", size->name);
    }
    log_warn(log_i64("node", e->opt.node),
             log_str("msg", "insecure development parameters were made on the device"),
             log_str("size", size->name));
    *out = srs;
    return 0;
}

static int make_params(struct engine *e)
{
    const struct params_options opt = {.dir = e->opt.params,
                                       .trusted = e->opt.trusted,
                                       .workers = e->workers,
                                       .make = e->opt.make ? make_on_devices : NULL,
                                       .loading = say_loading,
                                       .ctx = e};

    return params_create(&opt, &e->params);
}

/* What takes no time. */
static int prepare(struct engine *e, struct errmsg *err)
{
    int ret = find_node(e, err);

    if (ret == 0)
        ret = bind_here(e, err);
    if (ret == 0)
        ret = workers_create(e->opt.threads, &e->workers, err);
    if (ret == 0)
        ret = make_backends(e, err);
    return ret == 0 ? make_params(e) : ret;
}

/* Engines that use the memory of this one's node. */
static uint32_t count_sharers(const struct engine *e)
{
    uint32_t sharers = 0;

    for (size_t i = 0; i < e->nodes->len; i++)
        sharers += e->nodes->list[i].where.memory_node == e->node->where.memory_node;
    return sharers;
}

static int make_ground(struct engine *e, struct errmsg *err)
{
    const struct ground_options opt = {.node = e->opt.node,
                                       .memory_node = e->node->bound ? e->node->where.memory_node
                                                                     : ARENA_ANY_NODE,
                                       .node_bytes = e->node_bytes,
                                       .sharers = count_sharers(e),
                                       .engines = (uint32_t)e->nodes->len,
                                       .memory_bytes = e->opt.memory_bytes,
                                       .permits = e->opt.permits,
                                       .workers = e->workers,
                                       .backends = e->backends,
                                       .backends_len = e->backends_len,
                                       .params = e->params,
                                       .params_dir = e->opt.params,
                                       .sim = e->sim,
                                       .at_device = note_device,
                                       .ctx = e};

    return ground_create(&opt, &e->ground, err);
}

static int make_pipeline(struct engine *e, struct errmsg *err)
{
    const struct pipeline_options opt = {.node = e->opt.node,
                                         .capacity = ground_permits(e->ground),
                                         .workers = e->workers,
                                         .backends = e->backends,
                                         .backends_len = e->backends_len,
                                         .sim = e->sim,
                                         .flight = &e->flight,
                                         .ground = get_ground,
                                         .prepare = prepare_ground,
                                         .chore = do_chore,
                                         .stage = say_stage,
                                         .done = say_done,
                                         .failed = say_failed,
                                         .wrong = say_wrong,
                                         .broken = end_broken,
                                         .ctx = e};
    struct pipeline *pipeline;
    int ret = pipeline_create(&opt, &pipeline, err);

    if (ret == 0)
        atomic_store(&e->pipeline, pipeline);
    return ret;
}

static void say_hello(struct engine *e)
{
    struct link_message m = {.type = LINK_HELLO,
                             .hello = {.node = e->opt.node,
                                       .threads = workers_count(e->workers),
                                       .capacity = ground_permits(e->ground)}};
    const char *name = e->backends[0]->ops->name;

    struct ground_needs needs;
    ground_needs(e->ground, &needs);
    memcpy(m.hello.needed_bytes, needs.bytes, sizeof(m.hello.needed_bytes));
    memcpy(m.hello.limit_from, needs.limit_from, sizeof(m.hello.limit_from));
    m.hello.limit_bytes = needs.limit_bytes;
    snprintf(m.hello.device, sizeof(m.hello.device), e->backends_len > 1 ? "%s, %zu of them" : "%s",
             name, e->backends_len);
    say(&m);
    say_status(e);
}

static void *builder_main(void *arg)
{
    struct engine *e = arg;
    struct errmsg err = {""};
    int ret = make_ground(e, &err);

    if (ret == 0)
        ret = make_pipeline(e, &err);
    if (ret < 0)
        log_err(log_i64("node", e->opt.node), log_str("msg", "the engine cannot be set up"),
                log_str("error", err.text));
    else
        say_hello(e);
    atomic_store(&e->built, ret < 0 ? ret : 1);
    return NULL;
}

/* ---- end ---- */

/* A counter that is not zero when nothing is there is a slot that somebody forgot. */
static void check_idle(struct engine *e)
{
    struct flight_counts c;

    flight_read(&e->flight, &c);
    if (!flight_is_idle(&c))
        log_err(log_i64("node", e->opt.node),
                log_str("msg", "something is in flight that is not there"));
}

static void take_down(struct engine *e)
{
    pipeline_destroy(atomic_load(&e->pipeline));
    check_idle(e);
    ground_destroy(e->ground);
    params_destroy(e->params);
    for (size_t i = 0; i < e->backends_len; i++)
        backend_destroy(e->backends[i]);
    sim_destroy(e->sim);
    workers_destroy(e->gpu_workers);
    workers_destroy(e->workers);
    nodes_destroy(e->nodes);
}

static int run(struct engine *e)
{
    pthread_t builder;
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = pthread_create(&builder, NULL, builder_main, e);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        log_err(log_str("msg", "cannot start the builder"), log_str("error", strerror(ret)));
        return 1;
    }
    pthread_setname_np(builder, "builder");
    bool stopped = read_messages(e);
    pthread_join(builder, NULL);
    return stopped ? 0 : 1;
}

static void print_help(void)
{
    puts("Usage: proofd-engine --node N [--nodes TEXT] [--threads N] [--memory BYTES] [--permits "
         "N]\n"
         "                     [--gpus auto|none] [--gpu-memory BYTES] [--confine auto|on|off] "
         "[--without N,..] [--params DIR] [--trusted FILE] [--make DIR] "
         "[--simulate "
         "FILE]\n"
         "                     [--log-level LEVELS]\n"
         "Proves partitions for proofd, which starts it with a socket as descriptor 3. Not for use "
         "by hand.");
}

/* "0,3": bits 0 and 3. */
static uint32_t parse_numbers(const char *text)
{
    uint32_t bits = 0;

    for (char *end; *text; text = *end ? end + 1 : end) {
        unsigned long n = strtoul(text, &end, 10);
        if (n < 32)
            bits |= UINT32_C(1) << n;
        if (end == text)
            break;
    }
    return bits;
}

/* proofd has checked its options; what it hands on needs no bounds here. Returns the exit status, or -1
 * to go on. */
static int parse(int argc, char **argv, struct options *opt)
{
    static const struct option longopts[] = {
        {"node", required_argument, NULL, 'n'},      {"nodes", required_argument, NULL, 'N'},
        {"threads", required_argument, NULL, 't'},   {"memory", required_argument, NULL, 'm'},
        {"permits", required_argument, NULL, 'P'},   {"gpus", required_argument, NULL, 'g'},
        {"confine", required_argument, NULL, 'c'},   {"gpu-memory", required_argument, NULL, 'G'},
        {"without", required_argument, NULL, 'w'},   {"params", required_argument, NULL, 'p'},
        {"trusted", required_argument, NULL, 'r'},   {"make", required_argument, NULL, 'M'},
        {"simulate", required_argument, NULL, 's'},  {"log-level", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},            {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int c;

    if (argc == 2 && strcmp(argv[1], "help") == 0)
        argv[1] = "-h";
    while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
        if (c == 'n')
            opt->node = atoi(optarg);
        else if (c == 'N')
            opt->nodes = optarg;
        else if (c == 't')
            opt->threads = (unsigned)atoi(optarg);
        else if (c == 'm')
            opt->memory_bytes = strtoull(optarg, NULL, 10);
        else if (c == 'P')
            opt->permits = (uint32_t)atoi(optarg);
        else if (c == 'g')
            opt->gpus = strcmp(optarg, "none") != 0;
        else if (c == 'G')
            opt->gpu_memory_bytes = strtoull(optarg, NULL, 10);
        else if ((c == 'c' && confine_parse(optarg, &opt->confine) == 0) ||
                 (c == 'l' && log_change_levels(optarg, NULL) == 0))
            continue;
        else if (c == 'w')
            opt->without = parse_numbers(optarg);
        else if (c == 'p')
            opt->params = *optarg ? optarg : NULL;
        else if (c == 'r')
            opt->trusted = optarg;
        else if (c == 'M')
            opt->make = optarg;
        else if (c == 's')
            opt->simulate = optarg;
        else if (c == 'h' || c == 'v') {
            if (c == 'h')
                print_help();
            else
                puts("proofd-engine " PROOFD_VERSION);
            return 0;
        } else
            return 2;
    }
    return -1;
}

static bool has_socket(void)
{
    int type = 0;
    socklen_t len = sizeof(type);

    return getsockopt(SUPERVISOR_ENGINE_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
           type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
    static struct engine e = {.opt = {.nodes = "", .gpus = true}};
    struct errmsg err = {""};

    log_choose_times();
    int code = parse(argc, argv, &e.opt);
    if (code >= 0)
        return code;
    if (!has_socket()) {
        log_err(
            log_str("msg", "descriptor 3 is no socket of proofd, which alone starts this program"));
        return 2;
    }
    fcntl(SUPERVISOR_ENGINE_FD, F_SETFD, FD_CLOEXEC);
    volunteer_for_oom();
    tame_heap();
    if (confine_wanted(e.opt.confine, e.opt.gpus && !e.opt.simulate) && confine_apply(&err) < 0)
        log_warn(log_i64("node", e.opt.node), log_str("msg", "the engine is not confined"),
                 log_str("error", err.text));
    if (prepare(&e, &err) < 0) {
        log_err(log_i64("node", e.opt.node), log_str("msg", "the engine cannot be set up"),
                log_str("error", err.text));
        take_down(&e);
        return 1;
    }
    if (log_start(&err) < 0)
        log_warn(log_str("msg", err.text));
    code = run(&e);
    take_down(&e);
    log_stop();
    return code;
}
