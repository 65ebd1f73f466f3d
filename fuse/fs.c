/*
 * The mount from its making to its end: the session, a few threads that serve it, and what the rest of the service tells it. The operations
 * are in ops.c.
 *
 * libfuse's own loop is not used: its threads come and go and end only by a signal. Ours are a
 * fixed number, wait in epoll_wait() for a request or for the end, and are joined.
 */
#include "fuse/fs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "fuse/mount.h"

#define FUSE_CONF "/etc/fuse.conf"
#define THREADS_DEFAULT 8
#define INTAKE_THREADS 4
#define SLOW_THREADS 4

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


static void warn(struct fs *fs, const char *text)
{
    if (fs->warn)
        fs->warn(fs->ctx, text);
}

/* ---- what the rest of the service tells ---- */

/* False: the mount is going, and with it the descriptor on which the kernel is told. */
static bool tell_begin(struct fs *fs)
{
    pthread_mutex_lock(&fs->lock);
    bool may = !fs->silent;
    fs->telling += may;
    pthread_mutex_unlock(&fs->lock);
    return may;
}

static void tell_end(struct fs *fs)
{
    pthread_mutex_lock(&fs->lock);
    fs->telling--;
    pthread_cond_broadcast(&fs->told);
    pthread_mutex_unlock(&fs->lock);
}

/* From now on nobody is in the midst of telling. */
static void be_silent(struct fs *fs)
{
    pthread_mutex_lock(&fs->lock);
    fs->silent = true;
    while (fs->telling > 0)
        pthread_cond_wait(&fs->told, &fs->lock);
    pthread_mutex_unlock(&fs->lock);
}

void fs_job_changed(struct fs *fs, const struct job_info *info, enum job_state was, bool gone)
{
    if (!fs || !tell_begin(fs))
        return;
    tree_job_changed(fs->tree, info, gone);
    if (gone || job_state_is_final(was) || job_state_is_final(info->state))
        fs_forget_listed(fs, info->id);
    if (job_changes_state(info, was, gone))
        events_add_job(fs->events, info, false);
    if (gone)
        events_add_job(fs->events, info, true);
    texts_changed(fs->texts, tree_job_ino(info->id, TREE_STATUS));
    if (!gone)
        publisher_job_changed(fs->publisher, info->id);
    if (gone)
        writers_gone(fs->writers, info->id);
    writers_room(fs->writers);
    tell_end(fs);
}

struct users *fs_users(struct fs *fs)
{
    return fs->users;
}

void fs_room(struct fs *fs)
{
    if (!fs || !tell_begin(fs))
        return;
    writers_room(fs->writers);
    tell_end(fs);
}

void fs_event(struct fs *fs, const char *text)
{
    if (!fs || !tell_begin(fs))
        return;
    events_add_text(fs->events, text);
    tell_end(fs);
}

static void on_tick(void *ctx)
{
    struct fs *fs = ctx;
    int64_t now = now_ms();

    fs_look_at_space_soon(fs);
    fs_tick_soon(fs);
    writers_tick(fs->writers, now, fs->request_limit_ms);
    if (fs->request_limit_ms)
        events_heartbeat(fs->events, now, fs->request_limit_ms);
}

static void on_publisher_warning(void *ctx, const char *text)
{
    warn(ctx, text);
}

/* ---- the threads that serve ---- */

/* A set of its own for each thread, so that a request wakes one of them and not all. */
static int watch_requests(const struct fs *fs)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event request = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.u32 = 0};
    struct epoll_event stop = {.events = EPOLLIN, .data.u32 = 1};

    if (set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fuse_session_fd(fs->session), &request) == 0 &&
        epoll_ctl(set, EPOLL_CTL_ADD, fs->stop_fd, &stop) == 0)
        return set;
    if (set >= 0)
        close(set);
    return -1;
}

static void *serve(void *arg)
{
    struct fs *fs = arg;
    struct fuse_buf buf = {0};
    struct epoll_event event;
    int set = watch_requests(fs);

    pthread_setname_np(pthread_self(), "fuse");
    while (set >= 0 && !fuse_session_exited(fs->session)) {
        int n = epoll_wait(set, &event, 1, -1);
        if (n < 0 && errno != EINTR)
            break;
        if (n <= 0)
            continue;
        if (event.data.u32 == 1)
            break;
        n = fuse_session_receive_buf(fs->session, &buf);
        if (n == -EINTR || n == -EAGAIN) /* another thread was faster */
            continue;
        if (n <= 0)
            break;
        fuse_session_process_buf(fs->session, &buf);
    }
    free(buf.mem);
    if (set >= 0)
        close(set);
    eventfd_write(fs->ended_fd, 1);
    return NULL;
}

static int start_threads(struct fs *fs)
{
    sigset_t all, old;
    int ret = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (fs->threads_len < fs->threads_max && ret == 0) {
        ret = -pthread_create(&fs->threads[fs->threads_len], NULL, serve, fs);
        fs->threads_len += ret == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ret;
}

/* ---- the kernel's patience ---- */

static int64_t read_seconds(const char *path)
{
    FILE *f = fopen(path, "re");
    long seconds = 0;

    if (f && fscanf(f, "%ld", &seconds) != 1)
        seconds = 0;
    if (f)
        fclose(f);
    return seconds;
}

/* Where the administrator limits how long a request may be pending, the kernel ends the whole mount
 * when one is; so nobody is let wait for more than half of that. */
static int64_t request_limit_ms(void)
{
    int64_t limit = read_seconds("/proc/sys/fs/fuse/default_request_timeout");
    int64_t max = read_seconds("/proc/sys/fs/fuse/max_request_timeout");

    if (max > 0 && (limit == 0 || limit > max))
        limit = max;
    return limit * 1000 / 2;
}

/* ---- life ---- */

static int make_session(struct fs *fs, struct errmsg *err)
{
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    bool allow_other = mount_may_allow_other(FUSE_CONF);
    int bad =
        fuse_opt_add_arg(&args, "proofd") ||
        fuse_opt_add_arg(
            &args,
            "-odefault_permissions,nosuid,nodev,noexec,fsname=proofd,subtype=" MOUNT_SUBTYPE) ||
        (allow_other && fuse_opt_add_arg(&args, "-oallow_other"));

    if (!bad)
        fs->session = fuse_session_new(&args, &fs_operations, sizeof(fs_operations), fs);
    fuse_opt_free_args(&args);
    if (!fs->session)
        return errmsg_set(err, -ENOMEM, "%s: cannot make a FUSE session", fs->mountpoint);
    if (!allow_other)
        warn(fs, "other users cannot use the mount: put user_allow_other into " FUSE_CONF
                 ", or start the service as root");
    return 0;
}

static int mount_session(struct fs *fs, struct errmsg *err)
{
    struct mount_places places;

    mount_places_init(&places);
    int ret = mount_lacks(&places, false, err);
    if (ret == 0 && fuse_session_mount(fs->session, fs->mountpoint) != 0)
        ret = mount_lacks(&places, true, err);
    if (ret < 0)
        return errmsg_prefix(err, ret, "%s: cannot mount", fs->mountpoint);
    fs->mounted = true;
    int fd = fuse_session_fd(fs->session);
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return errmsg_set(err, -errno, "/dev/fuse: %s", strerror(errno));
    return 0;
}

/* What is at its place then is another's. A connection that was aborted leaves the mount, which answers so. */
static bool is_taken_away(const struct fs *fs)
{
    struct pollfd p = {fuse_session_fd(fs->session), POLLIN, 0};
    struct statfs st;

    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) &&
           (statfs(fs->mountpoint, &st) == 0 || errno != ENOTCONN);
}

/* libfuse would fork here, and threads run: so the mount is taken away without it, and the device
 * replaced by something that has ended too, a pipe without a reader, for which libfuse sees that
 * nothing is left to do. With the device goes the kernel's end of the connection: whoever still waits
 * is answered. */
static void unmount(struct fs *fs)
{
    int pipe_fds[2];

    if (!fs->mounted)
        return;
    fs->mounted = false;
    int ret = is_taken_away(fs) ? 0 : mount_remove(fs->mountpoint);
    if ((ret == 0 || ret == -EINVAL) && pipe2(pipe_fds, O_CLOEXEC) == 0) { /* -EINVAL: it is mounted nowhere */
        close(pipe_fds[0]);
        dup3(pipe_fds[1], fuse_session_fd(fs->session), O_CLOEXEC);
        close(pipe_fds[1]);
    }
    fuse_session_unmount(fs->session);
}

static int make_own(struct fs *fs, const struct fs_options *opt, struct errmsg *err)
{
    fs->store_dir = strdup(opt->store_dir);
    fs->threads_max = opt->threads ? opt->threads : THREADS_DEFAULT;
    fs->threads = calloc(fs->threads_max, sizeof(*fs->threads));
    fs->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fs->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!fs->store_dir || !fs->threads || fs->stop_fd < 0 || fs->ended_fd < 0)
        return errmsg_set(err, -ENOMEM, "fuse: no memory or descriptors");
    return 0;
}

static uint32_t half_of(uint32_t max_unfinished)
{
    uint32_t places = max_unfinished ? max_unfinished : UINT32_MAX;

    return places / 2 + places % 2;
}

void fs_set_max_unfinished(struct fs *fs, uint32_t max)
{
    writers_set_places(fs->writers, half_of(max));
}

static int make_workers(struct fs *fs, struct errmsg *err)
{
    struct publisher_options publisher = {.mountpoint = fs->mountpoint,
                                          .tree = fs->tree,
                                          .warn = on_publisher_warning,
                                          .tick = on_tick,
                                          .ctx = fs};
    struct writers_options writers = {.jobs = fs->jobs,
                                      .users = fs->users,
                                      .places_user = half_of(fs->max_unfinished),
                                      .threads = INTAKE_THREADS};
    int ret = intake_create(SLOW_THREADS, &fs->slow, err);

    if (ret == 0)
        ret = publisher_create(&publisher, &fs->publisher, err);
    if (ret < 0)
        return ret;
    writers.publisher = fs->publisher;
    return writers_create(&writers, &fs->writers, err);
}

int fs_create(const struct fs_options *opt, struct fs **out, struct errmsg *err)
{
    struct fs *fs = calloc(1, sizeof(*fs));
    int ret;

    if (!fs)
        return errmsg_set(err, -ENOMEM, "fuse: no memory");
    pthread_mutex_init(&fs->lock, NULL);
    pthread_cond_init(&fs->told, NULL);
    fs->stop_fd = fs->ended_fd = -1;
    fs->max_unfinished = opt->max_unfinished;
    fs->critical_gid = opt->critical_gid;
    fs->shared_gid = opt->shared ? opt->shared_gid : (gid_t)-1;
    fs->warn = opt->warn;
    fs->ctx = opt->ctx;
    fs->request_limit_ms = request_limit_ms();
    ret = make_own(fs, opt, err);
    if (ret == 0)
        ret = mount_prepare(opt->mountpoint, &fs->mountpoint, err);
    if (ret == 0)
        ret = make_session(fs, err);
    if (ret == 0)
        ret = mount_session(fs, err);
    if (ret < 0)
        goto out;
    *out = fs;
    fs = NULL;
out:
    fs_destroy(fs);
    return ret;
}

int fs_attach(struct fs *fs, struct jobs *jobs, struct tree *tree, struct errmsg *err)
{
    fs->jobs = jobs;
    fs->tree = tree;
    fs_look_at_space(fs);
    if (users_create(&fs->users) < 0 || events_create(&fs->events) < 0 || texts_create(tree, &fs->texts) < 0)
        return errmsg_set(err, -ENOMEM, "fuse: no memory");
    return make_workers(fs, err);
}

int fs_start(struct fs *fs, struct errmsg *err)
{
    int ret = writers_start(fs->writers, err);

    if (ret == 0)
        ret = intake_start(fs->slow, err);
    if (ret == 0)
        ret = start_threads(fs);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: cannot start the threads of the mount", fs->mountpoint);
    return publisher_start(fs->publisher, err);
}

void fs_refuse_writers(struct fs *fs)
{
    writers_stop(fs->writers);
}

int fs_ended_fd(const struct fs *fs)
{
    return fs->ended_fd;
}

/* The publisher needs a mount that serves, so it ends first. What has been taken in is finished
 * after the last request has been read and before the mount goes, so everybody whose request was
 * read is answered. */
void fs_stop(struct fs *fs)
{
    publisher_stop(fs->publisher);
    writers_stop(fs->writers);
    events_stop(fs->events);
    fuse_session_exit(fs->session);
    eventfd_write(fs->stop_fd, 1);
    for (unsigned i = 0; i < fs->threads_len; i++)
        pthread_join(fs->threads[i], NULL);
    fs->threads_len = 0;
    intake_destroy(fs->slow);
    fs->slow = NULL;
    writers_drain(fs->writers);
    be_silent(fs);
    fs_close_handles(fs); /* with them goes everything that a later change might tell the kernel of */
    unmount(fs);
}

void fs_destroy(struct fs *fs)
{
    if (!fs)
        return;
    unmount(fs);
    intake_destroy(fs->slow);
    writers_destroy(fs->writers);
    publisher_destroy(fs->publisher);
    events_destroy(fs->events);
    texts_destroy(fs->texts);
    users_destroy(fs->users);
    if (fs->session)
        fuse_session_destroy(fs->session);
    if (fs->stop_fd >= 0)
        close(fs->stop_fd);
    if (fs->ended_fd >= 0)
        close(fs->ended_fd);
    free(fs->threads);
    free(fs->mountpoint);
    free(fs->store_dir);
    pthread_cond_destroy(&fs->told);
    pthread_mutex_destroy(&fs->lock);
    free(fs);
}
