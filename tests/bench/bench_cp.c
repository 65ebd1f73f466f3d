/*
 * How long `cp` of a C1 of 32 GiB into the mount takes, with every check, until it is accepted and
 * synced and cp exits; and what `ls` takes meanwhile. The service is a process of its own, without
 * engines.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/bench.h"
#include "tests/lib/bench_mount.h"
#include "tests/lib/files.h"
#include "tests/lib/vectors.h"

#define LIMIT_MS 1000.0

struct place {
    char dir[64], mount[80], store[80], c1[80];
};

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static pid_t spawn(const char *program, const char *a, const char *b)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp(program, program, a, b, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static bool succeeds(pid_t pid)
{
    int status;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;

    return (d > 0) - (d < 0);
}

static void print(const char *what, double *ms, double limit)
{
    qsort(ms, BENCH_RUNS, sizeof(*ms), by_value);
    printf("%s: wall %.1f ms (%.1f to %.1f)", what, ms[BENCH_RUNS / 2], ms[0], ms[BENCH_RUNS - 1]);
    if (limit > 0)
        printf(" (wanted: at most %.0f ms)", limit);
    printf("\n");
}

static bool measure(const struct place *p)
{
    char to[96], jobs[96];
    double cp[BENCH_RUNS], looks[BENCH_RUNS];
    struct stat st;

    snprintf(jobs, sizeof(jobs), "%s/jobs", p->mount);
    snprintf(to, sizeof(to), "%s/jobs/c1", p->mount);
    for (int i = 0; i < BENCH_RUNS; i++) {
        double start = now_ms();
        pid_t pid = spawn("cp", p->c1, to);
        usleep(50000);
        looks[i] = now_ms();
        if (stat(jobs, &st) < 0)
            return false;
        looks[i] = now_ms() - looks[i];
        if (!succeeds(pid))
            return false;
        cp[i] = now_ms() - start;
        unlink(to);
    }
    print("cp of a 32 GiB C1 into the mount", cp, LIMIT_MS);
    print("stat of the directory meanwhile", looks, 0);
    return true;
}

static void write_c1(const struct place *p, const char *packed)
{
    size_t len;
    uint8_t *bytes = file_read(packed, &len);
    FILE *f = fopen(p->c1, "we");

    if (!f || fwrite(bytes, len, 1, f) != 1 || fclose(f) != 0) {
        perror(p->c1);
        exit(1);
    }
    free(bytes);
}

int main(void)
{
    struct place p = {.dir = "/tmp/proofd-bench.XXXXXX"};
    char path[VECTOR_PATH_MAX];

    if (!vector_find(path, "c1/32GiB-sparse/bare.json.zst")) {
        printf("bench_cp needs $PROOFD_SHARED with the 32 GiB vector\n");
        return 77;
    }
    if (access("/dev/fuse", W_OK) < 0) {
        printf("bench_cp needs /dev/fuse\n");
        return 77;
    }
    bench_calibrate();
    if (!mkdtemp(p.dir))
        return 1;
    snprintf(p.mount, sizeof(p.mount), "%s/mnt", p.dir);
    snprintf(p.store, sizeof(p.store), "%s/store", p.dir);
    snprintf(p.c1, sizeof(p.c1), "%s/c1.json", p.dir);
    write_c1(&p, path);
    const struct bench_mount m = {.mount = p.mount, .store = p.store};
    pid_t service = bench_mount_start(&m);
    bool ok = service > 0 && measure(&p);
    ok = service > 0 && bench_mount_stop(service) && ok;
    ok = succeeds(spawn("rm", "-rf", p.dir)) && ok;
    return ok ? 0 : 1;
}
