/*
 * What the gRPC way costs beyond `cp`, for the same C1 of 32 GiB in the wrapping that Curio sends: tests/grpc/bench.py measures, here are the service without
 * engines and proofd-grpc before it. Then GetStatus under load, of a service with a simulated device.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/bench.h"
#include "tests/lib/bench_mount.h"
#include "tests/lib/vectors.h"

#define LIMIT_MS 300.0

struct place {
    char dir[64], mount[80], store[80], address[96], program[512];
};

static int lacks(const char *what)
{
    printf("bench_grpc needs %s\n", what);
    return 77;
}

static bool succeeds(pid_t pid)
{
    int status;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static pid_t spawn(const char *const argv[])
{
    pid_t pid = fork();

    if (pid == 0) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    return pid;
}

static bool measure(const struct place *p, const char *packed)
{
    char limit[16];
    const char *const front[] = {p->program, "--mount",     p->mount, "--listen",
                                 p->address, "--log-level", "err",    NULL};
    const char *const client[] = {
        "/usr/bin/python3", "-B", "tests/grpc/bench.py", p->mount, p->address, packed, limit, NULL};

    snprintf(limit, sizeof(limit), "%.0f", LIMIT_MS);
    pid_t service = spawn(front);
    /* A client that keeps its memory from call to call, as a node does that runs for long. */
    setenv("MALLOC_MMAP_THRESHOLD_", "1000000000", 1);
    setenv("MALLOC_TRIM_THRESHOLD_", "4000000000", 1);
    bool ok = succeeds(spawn(client));
    kill(service, SIGTERM);
    return succeeds(service) && ok;
}

int main(void)
{
    struct place p = {.dir = "/tmp/proofd-bench.XXXXXX"};
    const char *build = getenv("BUILD");
    char packed[VECTOR_PATH_MAX];

    snprintf(p.program, sizeof(p.program), "%s/proofd-grpc", build ? build : "build");
    if (access(p.program, X_OK) < 0)
        return lacks("gRPC for C++ when this was built");
    if (!vector_find(packed, "c1/32GiB-sparse/bare.json.zst"))
        return lacks("$PROOFD_SHARED with the 32 GiB vector");
    if (access("/dev/fuse", W_OK) < 0)
        return lacks("/dev/fuse");
    bench_calibrate();
    if (!mkdtemp(p.dir))
        return 1;
    snprintf(p.mount, sizeof(p.mount), "%s/mnt", p.dir);
    snprintf(p.store, sizeof(p.store), "%s/store", p.dir);
    snprintf(p.address, sizeof(p.address), "unix:%s/socket", p.dir);
    const struct bench_mount m = {.mount = p.mount, .store = p.store};
    pid_t service = bench_mount_start(&m);
    bool ok = service > 0 && measure(&p, packed);
    ok = service > 0 && bench_mount_stop(service) && ok;
    const char *const tidy[] = {"rm", "-rf", p.dir, NULL};
    ok = succeeds(spawn(tidy)) && ok;
    return ok ? 0 : 1;
}
