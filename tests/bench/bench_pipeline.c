/*
 * What the front can do: table, scheduler, journal and two real engines with a simulated device that takes no time; no verifier, no mount.
 * Jobs of ten partitions wait in a store on disk (beside the build, or in $BENCH_DIR) when the clock starts, and are done, every result
 * synced, when it ends. The last line is the figure. Usage: bench_pipeline [JOBS]
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/sched.h"
#include "numa/circuit/test_document.h"
#include "tests/lib/bench.h"

#define PARTITIONS 10
#define PERMITS "64"
#define FSYNCS 200

static struct sched *sched;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned done, failed; /* guarded by lock */

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(int ret, const char *what)
{
    if (ret >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(-ret));
    exit(1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void on_changed(void *ctx, const struct job_info *info, enum job_state was, bool gone)
{
    (void)ctx, (void)gone;
    if (info->state == was)
        return;
    if (sched)
        sched_wake(sched);
    pthread_mutex_lock(&lock);
    done += info->state == JOB_DONE;
    failed += info->state == JOB_FAILED || info->state == JOB_REJECTED;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void submit(struct jobs *jobs, uint64_t number)
{
    const struct test_document doc = {.partitions = PARTITIONS, .seed = number};
    const struct upload_owner owner = {.uid = getuid(), .gid = getgid(), .mode = 0600};
    char name[32], text[TEST_DOCUMENT_BYTES_MAX];
    struct job_info info;
    struct upload *u;

    snprintf(name, sizeof(name), "job%u", (unsigned)number);
    check(jobs_create_file(jobs, name, &owner, &info), "jobs_create_file");
    check(upload_open(jobs, info.id, &u), "upload_open");
    check((int)upload_write(u, text, test_document_format(&doc, text), 0), "upload_write");
    check(upload_judge(u), "upload_judge");
    upload_close(u, false);
}

/* What one costs here, for comparison: a small new piece at the end of a file. */
static double fsync_ms(const char *dir)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/fsync", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(fd < 0 ? -errno : 0, path);
    double begin = now_s();
    for (int i = 0; i < FSYNCS; i++)
        if (write(fd, path, 400) != 400 || fsync(fd) < 0)
            check(-errno, path);
    double ms = (now_s() - begin) * 1e3 / FSYNCS;
    close(fd);
    unlink(path);
    return ms;
}

static void write_simulation(const char *path)
{
    FILE *f = fopen(path, "w");

    check(f ? 0 : -errno, path);
    fputs("tickets = 4\nwitness = 4096\nevaluation = 4096\n", f);
    fclose(f);
}

static double run(unsigned jobs_len)
{
    pthread_mutex_lock(&lock);
    while (done < jobs_len && failed == 0)
        pthread_cond_wait(&changed, &lock);
    bool good = failed == 0;
    pthread_mutex_unlock(&lock);
    check(good ? 0 : -EIO, "a job failed");
    return now_s();
}

int main(int argc, char **argv)
{
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    const char *base = getenv("BENCH_DIR") ? getenv("BENCH_DIR") : build;
    const unsigned jobs_len = argc > 1 ? (unsigned)atoi(argv[1]) : 500;
    static const int nodes[] = {0, 1};
    char dir[256], store[300], engine[300], sim[300];
    struct supervisor *supervisor;
    struct jobs *jobs;
    struct errmsg err = {""};

    snprintf(dir, sizeof(dir), "%s/bench-pipeline-XXXXXX", base);
    check(mkdtemp(dir) ? 0 : -errno, dir);
    snprintf(store, sizeof(store), "%s/store", dir);
    snprintf(sim, sizeof(sim), "%s/sim", dir);
    snprintf(engine, sizeof(engine), "%s/proofd-engine", build);
    write_simulation(sim);
    check(supervisor_create(&supervisor, &err), err.text);
    bench_calibrate();
    test_documents_allow();
    log_set_level(LOG_LEVEL_WARN);
    struct jobs_options opt = {.store_dir = store, .changed = on_changed};
    check(jobs_open(&opt, &jobs, &err), err.text);

    double begin = now_s();
    for (unsigned i = 1; i <= jobs_len; i++)
        submit(jobs, i);
    printf("%u jobs accepted and synced in %.2f s; an fsync takes %.2f ms here\n", jobs_len,
           now_s() - begin, fsync_ms(dir));

    const char *cpus = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "cpus:0 cpus:1" : "cpus:0 cpus:0";
    const char *const args[] = {engine,   "--nodes",  cpus,   "--permits",   PERMITS, "--simulate",
                                sim,      "--params", dir,    "--log-level", "warn",  NULL};
    struct sched_options sopt = {.jobs = jobs,
                                 .supervisor = supervisor,
                                 .engine_argv = args,
                                 .nodes = nodes,
                                 .nodes_len = 2};
    struct sched *s;
    check(sched_create(&sopt, &s, &err), err.text);
    sched = s;
    begin = now_s();
    check(sched_start(s, &err), err.text);
    double seconds = run(jobs_len) - begin;
    sched_stop(s);

    struct sched_status *st = malloc(sizeof(*st));
    check(st ? 0 : -ENOMEM, "memory");
    sched_status(s, st);
    check(st->partitions_done == (uint64_t)jobs_len * PARTITIONS ? 0 : -EIO, "a proof too many or too few");
    printf("%u partitions in %.2f s, engines' start included\n", jobs_len * PARTITIONS, seconds);
    free(st);
    sched_destroy(s);
    jobs_close(jobs);
    supervisor_destroy(supervisor);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("partitions/s: %.0f\n", jobs_len * PARTITIONS / seconds);
    return 0;
}
