#include "tests/lib/bench_mount.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse/fs.h"
#include "numa/workers.h"

static struct fs *mounted; /* what the callback of the table tells */
static atomic_bool ended;

struct worker {
    const struct bench_mount *m;
    struct jobs *jobs;
};

static void on_changed(void *ctx, const struct job_info *info, enum job_state was, bool gone)
{
    (void)ctx;
    fs_job_changed(mounted, info, was, gone);
}

static void *work(void *arg)
{
    const struct worker *w = arg;

    while (!atomic_load(&ended))
        if (!w->m->work(w->jobs, w->m->ctx))
            usleep(500);
    return NULL;
}

static int fail(const struct errmsg *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

/* Until SIGTERM. */
static int serve(const struct bench_mount *m)
{
    struct worker worker = {m, NULL};
    struct workers *workers = NULL;
    struct tree *tree = NULL;
    struct errmsg err = {""};
    pthread_t thread;
    sigset_t set;
    int sig;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    const struct fs_options opt = {.mountpoint = m->mount, .store_dir = m->store};
    if (fs_create(&opt, &mounted, &err) < 0) /* before the workers: it forks */
        return fail(&err);
    if (workers_create(0, &workers, &err) < 0)
        return fail(&err);
    struct jobs_options jobs_opt = {
        .store_dir = m->store, .check_workers = workers, .changed = on_changed};
    if (jobs_open(&jobs_opt, &worker.jobs, &err) < 0)
        return fail(&err);
    struct tree_options tree_opt = {.jobs = worker.jobs};
    if (tree_create(&tree_opt, &tree, &err) < 0)
        return fail(&err);
    if (fs_attach(mounted, worker.jobs, tree, &err) < 0 || fs_start(mounted, &err) < 0)
        return fail(&err);
    if (m->work && pthread_create(&thread, NULL, work, &worker) != 0)
        return 1;
    sigwait(&set, &sig);
    atomic_store(&ended, true);
    if (m->work)
        pthread_join(thread, NULL);
    fs_stop(mounted);
    fs_destroy(mounted);
    tree_destroy(tree);
    jobs_close(worker.jobs);
    workers_destroy(workers);
    return 0;
}

static bool wait_for_mount(const char *mount)
{
    char events[256];
    struct stat st;

    snprintf(events, sizeof(events), "%s/events", mount);
    for (int i = 0; i < 1000 && stat(events, &st) < 0; i++)
        usleep(10000);
    return stat(events, &st) == 0;
}

bool bench_mount_stop(pid_t pid)
{
    int status;

    kill(pid, SIGTERM);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

pid_t bench_mount_start(const struct bench_mount *m)
{
    fflush(stdout);
    pid_t pid = fork();

    if (pid == 0)
        _exit(serve(m));
    if (pid > 0 && !wait_for_mount(m->mount)) {
        bench_mount_stop(pid);
        return -1;
    }
    return pid;
}
