/*
 * proofd: reads options, builds the parts, runs until it is told to stop, takes them down in reverse
 * order. The main thread reads signals, the mount's end and the spawner's; everything else has threads
 * of its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/config_check.h"
#include "daemon/jobs.h"
#include "daemon/node_files.h"
#include "daemon/notify.h"
#include "daemon/params_files.h"
#include "daemon/params_watch.h"
#include "daemon/paths.h"
#include "daemon/sched.h"
#include "daemon/sim.h"
#include "daemon/status.h"
#include "daemon/supervise.h"
#include "daemon/version.h"
#include "fuse/device.h"
#include "fuse/fs.h"
#include "fuse/mount.h"
#include "gpu/trusted.h"
#include "numa/workers.h"

#define LOG_MODULE LOG_FRONT

#define ENGINE_NAME "proofd-engine"
#define ENGINE_ARGS_MAX 28
#define MADE_NAME "params-insecure" /* in the store */
#define DRAIN_LOOK_MS 50
#define STOP_MORE_S 30 /* that a stop may take besides */

enum exit_status { EXIT_STOPPED = 0, EXIT_FAULT = 1, EXIT_USAGE = 2 };

struct service {
    int argc;
    char **argv;
    struct config config;
    char engine_path[PATH_MAX];
    char threads_arg[24], memory_arg[24], permits_arg[24], gpu_memory_arg[24], levels_arg[LOG_LEVELS_TEXT];
    char trusted[PATH_MAX]; /* empty: the user's own */
    char made[PATH_MAX];    /* keys of what devices make; empty: they make nothing */
    const char *engine_argv[ENGINE_ARGS_MAX];
    struct nodes *nodes;
    int node_ids[NODES_MAX];
    struct history *history;
    struct node_files *node_files;
    struct params_files *params_files;

    int signals;
    int lost_fd; /* an eventfd: the spawner is dead */
    struct supervisor *supervisor;
    struct workers *check_workers;
    struct jobs *jobs;
    struct params_watch *params;
    struct sched *sched;
    struct tree *tree;
    struct fs *mount;
    _Atomic(struct fs *) fs; /* the same, once it shows something */
    struct device *cuse;
    _Atomic(struct device *) device; /* the same, while it serves */
    struct status_source source;
};

/* ---- what the parts ask of the service ---- */

/* What can never be proved is refused at the door: parameters that are not there, or that cannot be loaded; memory that no
 * engine has. */
static int admit(void *ctx, const struct c1 *c1, struct errmsg *err)
{
    const struct service *sv = ctx;
    const struct sector_size *size = c1_size(c1);
    struct srs_look look;

    if (c1_test_document(c1)) /* for a simulated device, or it would not have been read */
        return 0;
    int ret = params_watch_look(sv->params, size, &look, err);
    if (ret != -ENOENT && ret != -EBADMSG) /* any other trouble may pass: the job waits */
        return sched_refuses(sv->sched, size, err) ? -EOPNOTSUPP : 0;
    if (ret == -ENOENT)
        srs_say_what_to_do(size, *sv->config.params ? sv->config.params : NULL, err);
    else
        errmsg_prefix(err, ret, "there are no parameters to prove a sector of %s with", size->name);
    return -EOPNOTSUPP;
}

static int say_params(void *ctx, const struct sector_size *size,
                      uint8_t vk_digest[SRS_VK_DIGEST_BYTES])
{
    const struct service *sv = ctx;
    struct srs_look look;

    int ret = params_watch_look(sv->params, size, &look, NULL);
    if (ret == 0 && look.made_by_devices && !look.has_been_made)
        return -ENOENT; /* nobody knows yet */
    if (ret == 0)
        memcpy(vk_digest, look.vk_digest, SRS_VK_DIGEST_BYTES);
    return ret;
}

static uint64_t stamp_params(void *ctx, const struct sector_size *size)
{
    const struct service *sv = ctx;

    return params_watch_stamp(sv->params, size);
}

static int say_key_since(void *ctx, const struct sector_size *size, int64_t since_ms,
                         uint8_t vk_digest[SRS_VK_DIGEST_BYTES])
{
    const struct service *sv = ctx;

    return params_watch_key(sv->params, size, since_ms, vk_digest);
}

/* Why a file was refused: one line. */
static void log_refused(const struct service *sv, const struct job_info *info)
{
    char *text = NULL;

    if (sv->jobs && jobs_error(sv->jobs, info->id, &text) == 0)
        text[strcspn(text, "\n")] = '\0';
    LOG_AT(LOG_JOBS, LOG_LEVEL_INFO, log_u64("job", info->id), log_str("name", info->name),
           log_str("state", job_state_name(info->state)), log_u64("uid", info->uid),
           log_u64("bytes", info->file_bytes), log_str("error", text ? text : "unknown"));
    free(text);
}

/* A job's milestones. A file that is received is none, but its refusal is what its user will ask about. */
static void log_change(const struct service *sv, const struct job_info *info, enum job_state was,
                       bool gone)
{
    bool cancelled = info->state == JOB_CANCELLED && was != JOB_RECEIVING;

    if (gone)
        LOG_AT(LOG_JOBS, LOG_LEVEL_DEBUG, log_u64("job", info->id), log_str("name", info->name),
               log_str("state", "removed"));
    if (info->state == was)
        return;
    if (info->state == JOB_REJECTED)
        log_refused(sv, info);
    else if (cancelled || (!gone && info->state != JOB_RECEIVING))
        LOG_AT(LOG_JOBS, LOG_LEVEL_INFO, log_u64("job", info->id), log_str("name", info->name),
               log_str("state", job_state_name(info->state)), log_u64("uid", info->uid),
               log_u64("bytes", info->file_bytes));
}

static void on_job_changed(void *ctx, const struct job_info *info, enum job_state was, bool gone)
{
    struct service *sv = ctx;

    log_change(sv, info, was, gone);
    if (sv->sched)
        sched_wake(sv->sched);
    history_wake(sv->history);
    fs_job_changed(atomic_load(&sv->fs), info, was, gone);
    device_job_changed(atomic_load(&sv->device), info, was, gone);
}

static void on_event(void *ctx, const char *text)
{
    struct service *sv = ctx;
    struct fs *fs = atomic_load(&sv->fs);

    if (fs)
        fs_event(fs, text);
    device_event(atomic_load(&sv->device), text);
}

static void on_proved(void *ctx, size_t engine, const struct link_done *done)
{
    history_proved(((struct service *)ctx)->history, engine, done);
}

static void on_spawner_lost(void *ctx)
{
    struct service *sv = ctx;
    uint64_t one = 1;

    if (write(sv->lost_fd, &one, sizeof(one)) < 0)
        log_err(log_str("msg", "cannot wake the main thread"), log_str("error", strerror(errno)));
}

static void on_device_room(void *ctx)
{
    fs_room(atomic_load(&((struct service *)ctx)->fs));
}

static void on_device_lost(void *ctx)
{
    const struct service *sv = ctx;

    LOG_AT(LOG_FUSE, LOG_LEVEL_ERR, log_str("msg", "the kernel has taken the device away; a restart brings it back"),
           log_str("device", sv->config.device));
}

static void on_fs_warning(void *ctx, const char *text)
{
    (void)ctx;
    LOG_AT(LOG_FUSE, LOG_LEVEL_WARN, log_str("msg", text));
}

/* ---- the service's own files ---- */

static int render_status(void *ctx, char **text, size_t *len)
{
    return status_render(&((struct service *)ctx)->source, text, len);
}

static int render_metrics(void *ctx, char **text, size_t *len)
{
    return metrics_render(&((struct service *)ctx)->source, text, len);
}

static int render_log_level(void *ctx, char **text, size_t *len)
{
    char levels[LOG_LEVELS_TEXT];

    (void)ctx;
    log_levels_text(log_get_levels(), levels);
    int n = asprintf(text, "%s\n", levels);
    if (n < 0)
        return -ENOMEM;
    *len = (size_t)n;
    return 0;
}

static int write_log_level(void *ctx, const char *text, struct errmsg *err)
{
    int ret = log_change_levels(text, err);

    if (ret == 0)
        sched_wake(((struct service *)ctx)->sched);
    return ret;
}

/* ---- building ---- */

/* Beside this program, unless the configuration says otherwise. */
static int find_engine(struct service *sv, struct errmsg *err)
{
    char self[PATH_MAX];

    if (sv->config.engine[0]) {
        snprintf(sv->engine_path, sizeof(sv->engine_path), "%s", sv->config.engine);
    } else {
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n < 0)
            return errmsg_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        n = snprintf(sv->engine_path, sizeof(sv->engine_path), "%s/%s", self, ENGINE_NAME);
        if (n >= (ssize_t)sizeof(sv->engine_path))
            return errmsg_set(err, -ENAMETOOLONG, "%s: too long a path", self);
    }
    int ret = path_check_program(sv->engine_path);
    return ret < 0 ? errmsg_set(err, ret, "engine program %s: %s", sv->engine_path, strerror(-ret)) : 0;
}

/* A service without a home directory keeps in its store which parameter files were found good. */
static void choose_trusted(struct service *sv)
{
    char path[PATH_MAX];

    if (trusted_default_path(path) == 0)
        return;
    int n =
        snprintf(sv->trusted, sizeof(sv->trusted), "%s/%s", sv->config.store, TRUSTED_STORE_NAME);
    if (n >= (int)sizeof(sv->trusted))
        sv->trusted[0] = '\0';
}

static int choose_made(struct service *sv, struct errmsg *err)
{
    if (!config_makes_parameters(&sv->config))
        return 0;
    int n = snprintf(sv->made, sizeof(sv->made), "%s/%s", sv->config.store, MADE_NAME);
    if (n >= (int)sizeof(sv->made))
        return errmsg_set(err, -ENAMETOOLONG, "%s: too long a path", sv->config.store);
    return 0;
}

static void make_engine_args(struct service *sv)
{
    const char **argv = sv->engine_argv;
    size_t n = 0;

    snprintf(sv->threads_arg, sizeof(sv->threads_arg), "%" PRIu64, sv->config.threads);
    snprintf(sv->memory_arg, sizeof(sv->memory_arg), "%" PRIu64, sv->config.memory_bytes);
    snprintf(sv->permits_arg, sizeof(sv->permits_arg), "%" PRIu64, sv->config.permits);
    snprintf(sv->gpu_memory_arg, sizeof(sv->gpu_memory_arg), "%" PRIu64,
             sv->config.gpu_memory_bytes);
    log_levels_text(sv->config.log_levels, sv->levels_arg);
    const char *const args[] = {sv->engine_path, "--nodes", sv->config.nodes,
                                "--threads", sv->threads_arg,
                                "--memory", sv->memory_arg,
                                "--permits", sv->permits_arg,
                                "--gpus", sv->config.gpus,
                                "--gpu-memory", sv->gpu_memory_arg,
                                "--confine", sv->config.confine,
                                "--params", sv->config.params,
                                "--log-level", sv->levels_arg};
    for (size_t i = 0; i < ARRAY_LEN(args); i++)
        argv[n++] = args[i];
    if (sv->config.simulate[0]) {
        argv[n++] = "--simulate";
        argv[n++] = sv->config.simulate;
    }
    if (sv->trusted[0]) {
        argv[n++] = "--trusted";
        argv[n++] = sv->trusted;
    }
    if (sv->made[0]) {
        argv[n++] = "--make";
        argv[n++] = sv->made;
    }
    argv[n] = NULL;
}

/* What is asked for has to be there at the start; engines look again, each for itself. */
static int choose_nodes(struct service *sv, struct errmsg *err)
{
    int ret = nodes_read(sv->config.nodes, &sv->nodes, err);

    if (ret < 0)
        return errmsg_prefix(err, ret, "nodes");
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): success has set it */
    for (size_t i = 0; i < sv->nodes->len; i++)
        sv->node_ids[i] = sv->nodes->list[i].id;
    return 0;
}

/* Each open file of the mount and each waiting job may hold a descriptor. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warn(log_str("msg", "cannot raise the limit of open files"),
                 log_str("error", strerror(errno)));
}

/* A directory that is mistyped, or has yet to be mounted, is not seen otherwise. */
static void log_no_params(const struct service *sv)
{
    struct errmsg searched;

    srs_list_dirs(sv->config.params[0] ? sv->config.params : NULL, &searched);
    LOG_AT(LOG_PARAMS, LOG_LEVEL_WARN,
           log_str("msg", "no parameters found: every job will be refused until there are some "
                          "(proofctl setup makes insecure ones for development)"),
           log_str("looked_in", searched.text));
}

static void log_params(const struct service *sv)
{
    struct srs_look look;
    struct errmsg err = {""};
    size_t found = 0;

    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        int ret = params_watch_look(sv->params, size, &look, &err);
        found += ret != -ENOENT;
        if (ret == 0 && look.made_by_devices)
            continue;
        if (ret < 0 && ret != -ENOENT)
            LOG_AT(LOG_PARAMS, LOG_LEVEL_ERR, log_str("msg", "parameters cannot be used"),
                   log_str("size", size->name), log_str("error", err.text));
        else if (ret == 0 && look.trust == SRS_INSECURE)
            LOG_AT(LOG_PARAMS, LOG_LEVEL_WARN, log_str("msg", srs_trust_text(look.trust)),
                   log_str("size", size->name), log_str("file", look.path));
        else if (ret == 0)
            LOG_AT(LOG_PARAMS, LOG_LEVEL_INFO, log_str("msg", "parameters found"), log_str("size", size->name),
                   log_str("params", srs_trust_text(look.trust)), log_str("file", look.path));
    }
    if (sv->made[0])
        LOG_AT(LOG_PARAMS, LOG_LEVEL_WARN, log_str("msg", srs_trust_text(SRS_INSECURE)),
               log_str("size", "all without a file"), log_str("file", "made on devices"));
    if (found == 0)
        log_no_params(sv);
}

static struct jobs_options jobs_options(struct service *sv)
{
    return (struct jobs_options){
        .store_dir = sv->config.store,
        .check_workers = sv->check_workers,
        .max_unfinished = (uint32_t)sv->config.max_unfinished,
        .max_store_bytes = sv->config.max_store_bytes,
        .max_unsubmitted = (uint32_t)sv->config.max_unsubmitted,
        .max_unsubmitted_user = (uint32_t)sv->config.max_unsubmitted_user,
        .max_unsubmitted_bytes = sv->config.max_unsubmitted_bytes,
        .max_unsubmitted_bytes_user = sv->config.max_unsubmitted_bytes_user,
        .unsubmitted_s = (int64_t)sv->config.unsubmitted_age_s,
        .keep_finished = (uint32_t)sv->config.keep_finished,
        .keep_finished_s = (int64_t)sv->config.keep_finished_age_s,
        .aging_ms = (int64_t)sv->config.aging_s * 1000,
        .keep_finished_bytes = sv->config.keep_finished_bytes,
        .admit = admit,
        .params = say_params,
        .changed = on_job_changed,
        .said = on_event,
        .ctx = sv,
    };
}

static int open_jobs(struct service *sv, struct errmsg *err)
{
    const struct jobs_options opt = jobs_options(sv);

    return jobs_open(&opt, &sv->jobs, err);
}

static int make_sched(struct service *sv, struct errmsg *err)
{
    const struct sched_options opt = {
        .jobs = sv->jobs,
        .supervisor = sv->supervisor,
        .engine_argv = sv->engine_argv,
        .nodes = sv->node_ids,
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): choose_nodes has set it */
        .nodes_len = sv->nodes->len,
        .strikes = (uint32_t)sv->config.tries,
        .silence_ms = (uint32_t)sv->config.silence_s * 1000,
        .params_stamp = stamp_params,
        .params_key = say_key_since,
        .event = on_event,
        .proved = on_proved,
        .lost = on_spawner_lost,
        .ctx = sv,
    };

    return sched_create(&opt, &sv->sched, err);
}

/* A simulated device says for itself how many there are. */
static int make_node_files(struct service *sv, struct errmsg *err)
{
    struct sim *sim = NULL;
    unsigned simulated = 0;
    int ret = sv->config.simulate[0] ? sim_create(sv->config.simulate, &sim, err) : 0;

    if (ret < 0)
        return ret;
    if (sim)
        simulated = sim_devices(sim);
    sim_destroy(sim);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): build_processes has set them */
    ret = history_create(sv->sched, sv->nodes->len, &sv->history);
    if (ret == 0)
        ret = node_files_create(sv->nodes, simulated, sv->sched, sv->history, &sv->node_files);
    if (ret == 0)
        ret = params_files_create(sv->sched, sv->nodes->len, sv->params, &sv->params_files);
    return ret < 0 ? errmsg_set(err, ret, "no memory") : 0;
}

static int make_tree(struct service *sv, struct errmsg *err)
{
    const struct tree_file own[] = {
        {"status", 0444, render_status, NULL, sv, NULL},
        {"metrics", 0444, render_metrics, NULL, sv, NULL},
        {"log_level", 0644, render_log_level, write_log_level, sv, NULL},
    };
    size_t nodes_len, params_len, len = ARRAY_LEN(own);
    gid_t operators;
    int ret = config_critical_gid(&sv->config, &operators, err);
    if (ret < 0)
        return ret;
    const struct node_file *nodes = node_files_list(sv->node_files, &nodes_len);
    const struct params_file *params = params_files_list(sv->params_files, &params_len);
    struct tree_file *files = calloc(len + nodes_len + params_len, sizeof(*files));

    if (!files)
        return errmsg_set(err, -ENOMEM, "no memory");
    memcpy(files, own, sizeof(own));
    for (size_t i = 0; i < nodes_len; i++)
        files[len++] = (struct tree_file){
            .path = nodes[i].path, .mode = 0444, .render = nodes[i].render, .ctx = nodes[i].ctx};
    for (size_t i = 0; i < params_len; i++)
        files[len++] = (struct tree_file){.path = params[i].path,
                                          .mode = 0664,
                                          .render = params[i].render,
                                          .write = params[i].write,
                                          .ctx = params[i].ctx,
                                          .present = params[i].present};
    const struct tree_options opt = {.jobs = sv->jobs,
                                     .files = files,
                                     .files_len = len,
                                     .uid = getuid(),
                                     .gid = getgid(),
                                     .operators = operators,
                                     .shared = sv->config.shared_group[0]};
    ret = tree_create(&opt, &sv->tree, err);
    free(files);
    return ret;
}

static int make_mount(struct service *sv, struct errmsg *err)
{
    gid_t critical_gid, shared_gid = CONFIG_NO_GROUP;
    int ret = config_critical_gid(&sv->config, &critical_gid, err);
    if (ret == 0)
        ret = config_shared_gid(&sv->config, &shared_gid, err);
    if (ret < 0)
        return ret;
    const struct fs_options opt = {.mountpoint = sv->config.mount,
                                   .critical_gid = critical_gid,
                                   .shared = shared_gid != CONFIG_NO_GROUP,
                                   .shared_gid = shared_gid,
                                   .store_dir = sv->config.store,
                                   .max_unfinished = (uint32_t)sv->config.max_unfinished,
                                   .warn = on_fs_warning,
                                   .ctx = sv};

    return fs_create(&opt, &sv->mount, err);
}

static int serve_mount(struct service *sv, struct errmsg *err)
{
    int ret = fs_attach(sv->mount, sv->jobs, sv->tree, err);

    if (ret < 0)
        return ret;
    atomic_store(&sv->fs, sv->mount);
    return fs_start(sv->mount, err);
}

/* Without it everything else runs. */
static void serve_device(struct service *sv)
{
    const struct device_options opt = {.name = sv->config.device,
                                       .fd = -1,
                                       .jobs = sv->jobs,
                                       .users = fs_users(sv->mount),
                                       .max_unfinished = (uint32_t)sv->config.max_unfinished,
                                       .room = on_device_room,
                                       .lost = on_device_lost,
                                       .ctx = sv};
    struct errmsg err = {""};
    int ret;

    if (strcmp(sv->config.device, "none") == 0)
        return;
    ret = device_create(&opt, &sv->cuse, &err);
    if (ret == 0) {
        atomic_store(&sv->device, sv->cuse);
        ret = device_start(sv->cuse, &err);
    }
    if (ret == 0) {
        LOG_AT(LOG_FUSE, LOG_LEVEL_INFO, log_str("msg", "device ready"), log_str("device", sv->config.device));
        return;
    }
    LOG_AT(LOG_FUSE, LOG_LEVEL_WARN, log_str("msg", "no device file; what it offers is in the mount, too"),
           log_str("device", sv->config.device), log_str("error", err.text));
    atomic_store(&sv->device, NULL);
    device_stop(sv->cuse);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static nlink_t threads_now(void)
{
    struct stat tasks;

    return stat("/proc/self/task", &tasks) == 0 ? tasks.st_nlink : 0;
}

static nlink_t threads_at_start; /* a sanitizer may have one of its own */

/* A child of a process with threads may find locks held for ever. Nothing here forks then (posix_spawn, which is
 * something else, does not come by); should a library do it, somebody must know. */
static void before_fork(void)
{
    if (threads_now() > threads_at_start)
        log_err(log_str("msg", "fork in a process with threads"));
}

static sigset_t own_signals(void)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    return mask;
}

/* Before any thread: the spawner is forked, the mount is made. check_machine has found the engine. */
static int build_processes(struct service *sv, struct errmsg *err)
{
    int ret = choose_nodes(sv, err);

    if (ret < 0)
        return ret;
    choose_trusted(sv);
    if ((ret = choose_made(sv, err)) < 0)
        return ret;
    make_engine_args(sv);
    raise_descriptor_limit();
    ret = supervisor_create(&sv->supervisor, err);
    if (ret < 0)
        return ret;
    threads_at_start = threads_now();
    pthread_atfork(before_fork, NULL, NULL);
    signal(SIGPIPE, SIG_IGN);
    const sigset_t mask = own_signals();
    sv->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    sv->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sv->signals < 0 || sv->lost_fd < 0)
        return errmsg_set(err, -errno, "signalfd, eventfd: %s", strerror(errno));
    /* Last, so that what is wrong so far has not hidden a directory for a moment. */
    return make_mount(sv, err);
}

static int build_parts(struct service *sv, struct errmsg *err)
{
    int ret = workers_create((unsigned)sv->config.threads, &sv->check_workers, err);

    if (ret == 0)
        ret = params_watch_create(sv->config.params, sv->trusted[0] ? sv->trusted : NULL,
                                  sv->made[0] ? sv->made : NULL, &sv->params);
    if (ret == 0)
        ret = params_watch_start(sv->params);
    if (ret == 0)
        ret = open_jobs(sv, err);
    if (ret == 0)
        ret = make_sched(sv, err);
    if (ret < 0)
        return ret;
    sv->source = (struct status_source){&sv->config, sv->jobs, sv->sched, sv->params, now_ms()};
    ret = make_node_files(sv, err);
    if (ret == 0)
        ret = make_tree(sv, err);
    if (ret == 0)
        ret = serve_mount(sv, err);
    if (ret == 0)
        serve_device(sv);
    return ret == 0 ? sched_start(sv->sched, err) : ret;
}

static int build(struct service *sv, struct errmsg *err)
{
    int ret = build_processes(sv, err);

    if (ret < 0)
        return ret;
    if (log_start(err) < 0)
        log_warn(log_str("msg", err->text));
    return build_parts(sv, err);
}

/* Users first, so that nothing new arrives; then the engines; what they held is in the table before
 * that is closed. */
static void take_down(struct service *sv)
{
    struct fs *fs = atomic_load(&sv->fs);

    device_stop(sv->cuse);
    if (fs)
        fs_stop(fs);
    sched_stop(sv->sched);
    atomic_store(&sv->fs, NULL);
    atomic_store(&sv->device, NULL);
    device_destroy(sv->cuse);
    fs_destroy(sv->mount);
    tree_destroy(sv->tree);
    jobs_close(sv->jobs);
    node_files_destroy(sv->node_files);
    params_files_destroy(sv->params_files);
    history_destroy(sv->history);
    sched_destroy(sv->sched);
    nodes_destroy(sv->nodes);
    params_watch_destroy(sv->params);
    supervisor_destroy(sv->supervisor);
    workers_destroy(sv->check_workers);
    if (sv->signals >= 0)
        close(sv->signals);
    if (sv->lost_fd >= 0)
        close(sv->lost_fd);
}

/* ---- running ---- */

/* SIGHUP: what may change while jobs run. The log goes to standard error, parameters are looked at whenever they are needed. */
static void read_config_again(struct service *sv)
{
    uint32_t levels = sv->config.log_levels;
    struct errmsg err = {""};

    if (config_load_again(sv->argc, sv->argv, &sv->config, &err) < 0) {
        log_err(log_str("msg", "SIGHUP: options stay as they are"), log_str("error", err.text));
        return;
    }
    const struct jobs_options opt = jobs_options(sv);
    jobs_set_limits(sv->jobs, &opt);
    fs_set_max_unfinished(sv->mount, opt.max_unfinished);
    device_set_max_unfinished(atomic_load(&sv->device), opt.max_unfinished);
    if (sv->config.log_levels != levels) { /* else they may have been set through the mount */
        log_set_levels(sv->config.log_levels);
        sched_wake(sv->sched);
    }
    log_info(log_str("msg", "SIGHUP: options read again"));
}

/* The signal that ends the service, or NULL. */
static const char *stop_that_came(struct service *sv)
{
    struct signalfd_siginfo info;

    if (read(sv->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return NULL;
    if (info.ssi_signo != SIGHUP)
        return strsignal((int)info.ssi_signo);
    read_config_again(sv);
    return NULL;
}

/* Waits a moment. SIGHUP ends nothing: there is nothing left that options could change. */
static bool is_cut_short(struct service *sv)
{
    struct pollfd fds[] = {{sv->signals, POLLIN, 0}, {sv->lost_fd, POLLIN, 0}};
    struct signalfd_siginfo info;

    if (poll(fds, ARRAY_LEN(fds), DRAIN_LOOK_MS) <= 0)
        return false;
    return fds[1].revents || (read(sv->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
                              info.ssi_signo != SIGHUP);
}

/* Nothing new comes in, what engines have begun may end in its time. A signal, or a spawner that dies, ends that; a mount that is taken
 * away does not, for proofs go to the store and the next start shows them. */
static void drain(struct service *sv)
{
    const int64_t until = now_ms() + (int64_t)sv->config.stop_wait_s * 1000;
    char text[64];

    notify_send("STOPPING=1");
    if (sv->config.stop_wait_s == 0)
        return;
    jobs_refuse_new(sv->jobs);
    fs_refuse_writers(atomic_load(&sv->fs));
    snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%" PRIu64, (sv->config.stop_wait_s + STOP_MORE_S) * 1000000);
    notify_send(text);
    while (!sched_drain(sv->sched)) {
        if (now_ms() >= until || is_cut_short(sv)) {
            log_info(log_str("msg", "what is in flight goes back to the queue"));
            return;
        }
        notify_send("WATCHDOG=1");
    }
}

static enum exit_status run(struct service *sv)
{
    struct pollfd fds[] = {{sv->signals, POLLIN, 0},
                           {fs_ended_fd(atomic_load(&sv->fs)), POLLIN, 0},
                           {sv->lost_fd, POLLIN, 0}};
    uint32_t watchdog = notify_watchdog_ms();
    int wait_ms = watchdog ? (int)watchdog : -1;

    for (;;) {
        int n = poll(fds, ARRAY_LEN(fds), wait_ms);
        if (watchdog)
            notify_send("WATCHDOG=1");
        if (n <= 0)
            continue;
        if (fds[2].revents)
            return EXIT_FAULT;
        if (fds[1].revents) {
            log_warn(log_str("msg", "the mount was taken away, stopping"));
            drain(sv);
            return EXIT_STOPPED;
        }
        const char *name = stop_that_came(sv);
        if (name) {
            log_info(log_str("msg", "stopping"), log_str("signal", name));
            drain(sv);
            return EXIT_STOPPED;
        }
    }
}

static void say_ready(const struct service *sv)
{
    log_info(log_str("msg", "ready"), log_str("version", PROOFD_VERSION),
             log_str("mount", sv->config.mount), log_str("store", sv->config.store));
    int ret = notify_send("READY=1");
    if (ret < 0)
        log_warn(log_str("msg", "the service manager does not listen"),
                 log_str("error", strerror(-ret)));
}

static int check_place(const struct config *cfg, struct errmsg *err)
{
    int ret = mount_check(cfg->mount, err);

    if (ret != 1 && ret != -EBUSY) { /* else nothing is touched that may not answer */
        int dir = config_check_mount(cfg, err);
        if (dir < 0)
            return dir;
    }
    return ret < 0 ? config_blame(cfg, "mount", ret, err) : 0;
}

/* Before anything is made: whether this can be started here, and what is missing. */
static int check_machine(struct service *sv, FILE *warnings, struct errmsg *err)
{
    int ret = find_engine(sv, err);

    if (ret < 0) /* whatever the reason: it is no program */
        return config_blame(&sv->config, "engine", -EINVAL, err);
    ret = config_check_machine(&sv->config, warnings, err);
    if (ret == 0)
        ret = choose_made(sv, err);
    return ret == 0 ? check_place(&sv->config, err) : ret;
}

/* What no later start gets over, until somebody changes the options or what they name. Rights and a disk that is read-only are
 * left to who needs them: a start may need less than is checked. */
static bool can_never_work(int ret)
{
    static const int lasting[] = {-EINVAL,       -ENOENT, -ENOTDIR, -ENOTEMPTY,
                                  -ENAMETOOLONG, -EISDIR, -ELOOP,   -EPROTO};

    for (size_t i = 0; i < ARRAY_LEN(lasting); i++)
        if (lasting[i] == ret)
            return true;
    return false;
}

static enum exit_status serve(struct service *sv)
{
    const sigset_t mask = own_signals();
    struct errmsg err = {""};
    enum exit_status status = EXIT_FAULT;

    sigprocmask(SIG_BLOCK, &mask, NULL); /* first: a SIGHUP would end what has not begun */
    log_set_levels(sv->config.log_levels);
    if (sv->config.simulate[0])
        test_documents_allow();
    int ret = check_machine(sv, NULL, &err);
    if (can_never_work(ret)) {
        status = EXIT_USAGE;
    } else {
        err.text[0] = '\0';
        ret = build(sv, &err);
    }
    if (ret == 0) {
        log_params(sv);
        say_ready(sv);
        status = run(sv);
        notify_send("STOPPING=1");
    } else {
        log_err(log_str("msg", "cannot start"), log_str("error", err.text[0] ? err.text
                                                                             : strerror(-ret)));
    }
    take_down(sv);
    if (ret == 0)
        log_info(log_str("msg", "stopped"));
    log_stop();
    return status;
}

/* --check-config: what would be done, and whether it can be. */
static enum exit_status check(struct service *sv)
{
    const struct config *cfg = &sv->config;
    struct mount_places places;
    struct errmsg err = {""};

    config_print(cfg, stdout);
    if (config_check(cfg, &err) < 0 || check_machine(sv, stderr, &err) < 0) {
        fprintf(stderr, "proofd: %s\n", err.text);
        return EXIT_USAGE;
    }
    mount_places_init(&places);
    if (mount_lacks(&places, false, &err) < 0) {
        fprintf(stderr, "proofd: mount: %s\n", err.text);
        return EXIT_USAGE;
    }
    return EXIT_STOPPED;
}

int main(int argc, char **argv)
{
    static struct service sv = {.signals = -1, .lost_fd = -1};
    enum config_action action;
    struct errmsg err = {""};

    log_choose_times();
    sv.argc = argc;
    sv.argv = argv;
    if (config_load(argc, argv, &sv.config, &action, &err) < 0) {
        fprintf(stderr, "proofd: %s\n", err.text);
        return EXIT_USAGE;
    }
    switch (action) {
    case CONFIG_HELP:
        config_print_help(stdout);
        return EXIT_STOPPED;
    case CONFIG_VERSION:
        puts("proofd " PROOFD_VERSION);
        return EXIT_STOPPED;
    case CONFIG_CHECK:
        return (int)check(&sv);
    case CONFIG_RUN:
        break;
    }
    if (config_check(&sv.config, &err) < 0) {
        fprintf(stderr, "proofd: %s\n", err.text);
        return EXIT_USAGE;
    }
    return (int)serve(&sv);
}
