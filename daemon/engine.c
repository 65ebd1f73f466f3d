/*
 * proofd-engine: the pipeline of one node. Started by proofd with the socket to it as descriptor 3; it
 * has no other way in, and ends with that socket.
 *
 * Two threads: the reader takes messages and says once a second that the process is alive; the main
 * thread proves one partition after another. A partition that is cancelled is dropped at the next stage;
 * a stop gives back at once what is there, for a partition that was begun is worth nothing to anybody.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/link.h"
#include "daemon/log.h"
#include "daemon/params.h"
#include "daemon/partition.h"
#include "daemon/supervise.h"
#include "daemon/version.h"
#include "numa/circuit/c1_check.h"
#include "numa/placement.h"

#define CAPACITY 1 /* partitions that the front may give at a time */
#define QUEUE_MAX 4
#define STATUS_EVERY_MS 1000
#define OOM_SCORE "500" /* the kernel should take an engine rather than the front */

struct options {
    int node;
    bool bind;
    unsigned threads;
    const char *params;  /* NULL: search order */
    const char *trusted; /* NULL: the user's own */
    enum log_level log_level;
};

struct work {
    struct link_work id;
    int c1_fd;
};

struct engine {
    struct options opt;
    struct workers *workers;
    struct backend *backend;
    struct params *params;
    struct c1 *c1; /* of the job that was worked on last; the pipeline's alone */
    uint64_t c1_job;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock: */
    struct work queue[QUEUE_MAX];
    size_t queue_len;
    struct link_work current;
    bool busy; /* current is being worked on */
    bool current_cancelled;
    bool stop;
};

/* A front that is gone is noticed by the reader. */
static void say(const struct link_message *m)
{
    int ret = link_send(SUPERVISOR_ENGINE_FD, m, -1);

    if (ret < 0 && ret != -EPIPE)
        log_err(log_str("msg", "cannot speak to the front"), log_str("error", strerror(-ret)));
}

static void say_failed(const struct link_work *w, int code, const char *text)
{
    struct link_message m = {.type = LINK_FAILED,
                             .failed = {.job = w->job, .partition = w->partition, .code = code}};

    snprintf(m.failed.text, sizeof(m.failed.text), "%s", text);
    say(&m);
}

static uint64_t resident_bytes(void)
{
    unsigned long long total, resident = 0;

    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (fscanf(f, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void say_status(struct engine *e)
{
    struct link_message m = {.type = LINK_STATUS, .status = {.resident_bytes = resident_bytes()}};

    pthread_mutex_lock(&e->lock);
    m.status.in_flight = (uint32_t)e->queue_len + e->busy;
    pthread_mutex_unlock(&e->lock);
    params_describe(e->params, m.status.params, sizeof(m.status.params));
    say(&m);
}

/* ---- the reader ---- */

static void take_work(struct engine *e, const struct link_work *w, int fd)
{
    pthread_mutex_lock(&e->lock);
    bool room = e->queue_len < QUEUE_MAX;
    if (room)
        e->queue[e->queue_len++] = (struct work){*w, fd};
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (room)
        return;
    close(fd);
    say_failed(w, -EAGAIN, "the engine was given more than it has room for");
}

/* Takes the queued partitions of `job` (of all jobs if `all`) out and answers for them. */
static void drop_queued(struct engine *e, uint64_t job, bool all, int code, const char *text)
{
    size_t kept = 0;

    for (size_t i = 0; i < e->queue_len; i++) {
        if (!all && e->queue[i].id.job != job) {
            e->queue[kept++] = e->queue[i];
            continue;
        }
        close(e->queue[i].c1_fd);
        say_failed(&e->queue[i].id, code, text);
    }
    e->queue_len = kept;
}

static void cancel(struct engine *e, uint64_t job)
{
    pthread_mutex_lock(&e->lock);
    drop_queued(e, job, false, -ECANCELED, "cancelled");
    if (e->busy && e->current.job == job)
        e->current_cancelled = true;
    pthread_mutex_unlock(&e->lock);
}

static void __attribute__((noreturn)) leave(int code)
{
    log_stop();
    _exit(code);
}

/* A proof cannot be interrupted, and nobody will take it: the process ends under it. */
static void stop(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    drop_queued(e, 0, true, -EAGAIN, "the engine is stopping");
    bool busy = e->busy;
    if (busy)
        say_failed(&e->current, -EAGAIN, "the engine is stopping");
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (busy)
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
        cancel(e, m.cancel.job);
        return true;
    case LINK_LOG_LEVEL:
        log_set_level((enum log_level)m.log_level.level);
        return true;
    case LINK_STOP:
        stop(e);
        return false;
    default:
        log_err(log_str("msg", "the front sent an engine's message"), log_u64("type", m.type));
        leave(1);
    }
}

static void *reader_main(void *arg)
{
    struct engine *e = arg;
    struct pollfd p = {SUPERVISOR_ENGINE_FD, POLLIN, 0};

    for (;;) {
        int n = poll(&p, 1, STATUS_EVERY_MS);
        if (n > 0 && !serve_message(e))
            return NULL;
        say_status(e);
    }
}

/* ---- the pipeline ---- */

/* Is the current partition still to be proved? */
static bool is_wanted(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    bool wanted = !e->current_cancelled && !e->stop;
    pthread_mutex_unlock(&e->lock);
    return wanted;
}

static bool begin_stage(void *ctx, enum partition_stage stage)
{
    struct engine *e = ctx;
    struct link_message m = {.type = LINK_STAGE,
                             .stage = {e->current.job, e->current.partition, stage, 0}};
    bool wanted = is_wanted(e);

    if (wanted)
        say(&m);
    return wanted;
}

/* While the pipeline waits in open_params. */
static void say_loading(void *ctx, unsigned percent)
{
    struct engine *e = ctx;
    struct link_message m = {
        .type = LINK_STAGE,
        .stage = {e->current.job, e->current.partition, PARTITION_LOADING, percent}};

    say(&m);
}

/* What the front has checked once is checked again as far as it is cheap: it came over a file. */
static int open_c1(struct engine *e, const struct work *w, struct errmsg *err)
{
    struct c1 *c1 = NULL;

    if (e->c1 && e->c1_job == w->id.job)
        return 0;
    c1_destroy(e->c1);
    e->c1 = NULL;
    int ret = c1_from_fd(w->c1_fd, &c1, err);
    if (ret == 0)
        ret = c1_check_roots(c1, err);
    if (ret == 0)
        ret = c1_check_graph(c1, c1_seal_proof(c1), err);
    if (ret == 0 && w->id.partition >= c1_partitions(c1))
        ret = errmsg_set(err, -EINVAL, "partition %u of a C1 of %u", w->id.partition,
                         c1_partitions(c1));
    if (ret < 0) {
        c1_destroy(c1);
        return ret;
    }
    e->c1 = c1;
    e->c1_job = w->id.job;
    return 0;
}

static int open_params(struct engine *e, const struct srs **srs, double *load_ms,
                       struct errmsg *err)
{
    int ret = params_get(e->params, c1_size(e->c1), srs, load_ms, err);

    return ret == 0 || ret == -ENOMEM ? ret : -ENOKEY;
}

static int prove(struct engine *e, const struct work *w, struct partition_result *out,
                 struct errmsg *err)
{
    const struct srs *srs;
    double load_ms;

    int ret = open_c1(e, w, err);
    if (ret < 0)
        return ret;
    if (!is_wanted(e))
        return errmsg_set(err, -ECANCELED, "cancelled");
    ret = open_params(e, &srs, &load_ms, err);
    if (ret < 0)
        return ret;
    const struct partition_task task = {.job = w->id.job,
                                        .partition = w->id.partition,
                                        .c1 = e->c1,
                                        .srs = srs,
                                        .backend = e->backend,
                                        .workers = e->workers,
                                        .stage = begin_stage,
                                        .ctx = e};
    ret = partition_prove(&task, out, err);
    if (ret < 0)
        return ret;
    out->report.node = e->opt.node;
    out->report.params_ms = load_ms;
    snprintf(out->report.device, sizeof(out->report.device), "%s", e->backend->ops->name);
    return 0;
}

/* After a stop nothing is said: the partition was given back. */
static void answer(struct engine *e, const struct link_message *m)
{
    pthread_mutex_lock(&e->lock);
    if (!e->stop)
        say(m);
    e->busy = false;
    pthread_mutex_unlock(&e->lock);
}

static void work_on(struct engine *e, const struct work *w)
{
    struct link_message m = {.type = LINK_DONE};
    struct partition_result result;
    struct errmsg err = {""};

    int ret = prove(e, w, &result, &err);
    close(w->c1_fd);
    if (ret == 0) {
        m.done = (struct link_done){w->id.job, w->id.partition, {0}, result.report};
        memcpy(m.done.proof, result.proof, PROOF_BYTES);
    } else {
        m.type = LINK_FAILED;
        m.failed = (struct link_failed){w->id.job, w->id.partition, ret, ""};
        snprintf(m.failed.text, sizeof(m.failed.text), "%s", err.text[0] ? err.text : strerror(-ret));
    }
    answer(e, &m);
    say_status(e);
}

/* Waits for the next partition. False when it is time to stop. */
static bool next_work(struct engine *e, struct work *w)
{
    pthread_mutex_lock(&e->lock);
    while (!e->stop && e->queue_len == 0)
        pthread_cond_wait(&e->changed, &e->lock);
    bool go_on = !e->stop;
    if (go_on) {
        *w = e->queue[0];
        memmove(&e->queue[0], &e->queue[1], --e->queue_len * sizeof(e->queue[0]));
        e->current = w->id;
        e->current_cancelled = false;
        e->busy = true;
    }
    pthread_mutex_unlock(&e->lock);
    return go_on;
}

/* ---- start and end ---- */

static void volunteer_for_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, OOM_SCORE, strlen(OOM_SCORE)) < 0)
        log_debug(log_str("msg", "cannot set the oom score"), log_str("error", strerror(errno)));
    close(fd);
}

static int bind_to(const struct topology *t, int node, struct errmsg *err)
{
    struct placement_allowed allowed;
    struct placement where = {0};
    struct errmsg why;

    int ret = placement_allowed_read("", &allowed);
    if (ret < 0)
        return errmsg_set(err, ret, "no memory");
    ret = placement_of_node(t, &allowed, node, &where, err);
    placement_allowed_fini(&allowed);
    if (ret < 0)
        return ret;
    if (where.lost[0])
        log_warn(log_i64("node", node), log_str("msg", where.lost));
    ret = placement_bind(&where, &why);
    placement_fini(&where);
    if (ret > 0)
        log_warn(log_i64("node", node), log_str("msg", why.text));
    return ret < 0 ? errmsg_set(err, ret, "node %d: %s", node, why.text) : 0;
}

static int bind_to_node(const struct options *opt, struct errmsg *err)
{
    struct topology *t = NULL;
    int ret = topology_read(TOPOLOGY_SYSFS, &t, err);

    if (ret == 0)
        ret = bind_to(t, opt->node, err);
    topology_destroy(t);
    return ret;
}

static int make_params(struct engine *e)
{
    const struct params_options opt = {.dir = e->opt.params,
                                       .trusted = e->opt.trusted,
                                       .workers = e->workers,
                                       .loading = say_loading,
                                       .ctx = e};

    return params_create(&opt, &e->params);
}

static int build(struct engine *e, struct errmsg *err)
{
    int ret = e->opt.bind ? bind_to_node(&e->opt, err) : 0;

    if (ret == 0)
        ret = workers_create(e->opt.threads, &e->workers, err);
    if (ret == 0)
        ret = backend_cpu_create(e->workers, &e->backend, err);
    if (ret == 0)
        ret = make_params(e);
    return ret;
}

static void take_down(struct engine *e)
{
    c1_destroy(e->c1);
    params_destroy(e->params);
    backend_destroy(e->backend);
    workers_destroy(e->workers);
}

static void say_hello(const struct engine *e)
{
    struct link_message m = {.type = LINK_HELLO,
                             .hello = {.node = e->opt.node,
                                       .threads = workers_count(e->workers),
                                       .capacity = CAPACITY}};

    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): build() has made it, or main() ended */
    snprintf(m.hello.device, sizeof(m.hello.device), "%s", e->backend->ops->name);
    say(&m);
}

static int run(struct engine *e)
{
    pthread_t reader;
    sigset_t all, old;
    struct work w;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = pthread_create(&reader, NULL, reader_main, e);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        log_err(log_str("msg", "cannot start the reader"), log_str("error", strerror(ret)));
        return 1;
    }
    pthread_setname_np(reader, "reader");
    say_hello(e);
    while (next_work(e, &w))
        work_on(e, &w);
    pthread_join(reader, NULL);
    return 0;
}

static void print_help(void)
{
    puts("Usage: proofd-engine --node N [--bind] [--threads N] [--params DIR] [--trusted FILE]\n"
         "                     [--log-level LEVEL]\n"
         "Proves partitions for proofd, which starts it with a socket as descriptor 3. Not for use by hand.");
}

/* proofd has checked its options; what it hands on needs no bounds here. Returns the exit status, or -1
 * to go on. */
static int parse(int argc, char **argv, struct options *opt)
{
    static const struct option longopts[] = {
        {"node", required_argument, NULL, 'n'},      {"bind", no_argument, NULL, 'b'},
        {"threads", required_argument, NULL, 't'},   {"params", required_argument, NULL, 'p'},
        {"trusted", required_argument, NULL, 'r'},   {"log-level", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},            {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int c;

    if (argc == 2 && strcmp(argv[1], "help") == 0)
        argv[1] = "-h";
    while ((c = getopt_long(argc, argv, "h", longopts, NULL)) != -1) {
        if (c == 'n')
            opt->node = atoi(optarg);
        else if (c == 'b')
            opt->bind = true;
        else if (c == 't')
            opt->threads = (unsigned)atoi(optarg);
        else if (c == 'p')
            opt->params = *optarg ? optarg : NULL;
        else if (c == 'r')
            opt->trusted = optarg;
        else if (c == 'l' && log_level_parse(optarg, &opt->log_level) == 0)
            log_set_level(opt->log_level);
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
    static struct engine e = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER};
    struct errmsg err = {""};

    int code = parse(argc, argv, &e.opt);
    if (code >= 0)
        return code;
    if (!has_socket()) {
        log_err(log_str("msg", "descriptor 3 is no socket of proofd, which alone starts this program"));
        return 2;
    }
    fcntl(SUPERVISOR_ENGINE_FD, F_SETFD, FD_CLOEXEC);
    volunteer_for_oom();
    if (build(&e, &err) < 0) {
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
