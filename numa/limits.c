/*
 * A group's limit binds all groups below it, so the way goes from the process's own group up to the root. Page cache that a group is
 * charged for can be reclaimed and counts as available.
 */
#include "numa/limits.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The two generations keep the same things in files of other names. */
struct controller {
    const char *mounts[2]; /* where its hierarchy is */
    const char *limit, *usage;
    const char *cache[2]; /* lines of memory.stat */
};

static const struct controller version_1 = {
    .mounts = {"/sys/fs/cgroup/memory", NULL},
    .limit = "memory.limit_in_bytes",
    .usage = "memory.usage_in_bytes",
    .cache = {"total_inactive_file", "total_active_file"},
};
static const struct controller version_2 = {
    .mounts = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"},
    .limit = "memory.max",
    .usage = "memory.current",
    .cache = {"inactive_file", "active_file"},
};

/* A group: a directory below a mount. */
struct group {
    const char *root, *mount;
    char path[PATH_MAX / 2]; /* "" or "/a/b" */
};

static FILE *open_file(const struct group *g, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s%s%s/%s", g->root, g->mount, g->path, name);

    return n < (int)sizeof(path) ? fopen(path, "re") : NULL;
}

/* A file with one number; false for "max" and for what is not there. */
static bool read_number(const struct group *g, const char *name, uint64_t *out)
{
    FILE *f = open_file(g, name);
    bool found = f && fscanf(f, "%" SCNu64, out) == 1;

    if (f)
        fclose(f);
    return found;
}

/* The number behind `key` at the beginning of a line; 0 without it. */
static uint64_t read_line(FILE *f, const char *key)
{
    char line[256];
    size_t len = strlen(key);

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, len) == 0 && strchr(": \t", line[len]))
            return strtoull(line + len + 1, NULL, 10);
    return 0;
}

static uint64_t read_cache(const struct group *g, const struct controller *c)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(c->cache); i++) {
        FILE *f = open_file(g, "memory.stat");
        sum += read_line(f, c->cache[i]);
        if (f)
            fclose(f);
    }
    return sum;
}

static void apply_group(const struct group *g, const struct controller *c, struct limits *out)
{
    uint64_t limit, usage;

    if (!read_number(g, c->limit, &limit))
        return;
    if (limit < out->total_bytes) {
        out->total_bytes = limit;
        out->grouped = true;
        snprintf(out->from, sizeof(out->from), "control group %.200s", g->path[0] ? g->path : "/");
    }
    if (!read_number(g, c->usage, &usage))
        return;
    uint64_t cache = read_cache(g, c), held = usage > cache ? usage - cache : 0;
    uint64_t left = limit > held ? limit - held : 0;
    if (left < out->available_bytes)
        out->available_bytes = left;
}

/* The group at `path` and all above it, under each mount of the controller. */
static void apply_path(const char *root, const struct controller *c, const char *path,
                       struct limits *out)
{
    for (size_t i = 0; i < ARRAY_LEN(c->mounts) && c->mounts[i]; i++) {
        struct group g = {.root = root, .mount = c->mounts[i]};
        char *slash;

        snprintf(g.path, sizeof(g.path), "%s", strcmp(path, "/") == 0 ? "" : path);
        apply_group(&g, c, out);
        while ((slash = strrchr(g.path, '/'))) {
            *slash = '\0';
            apply_group(&g, c, out);
        }
    }
}

/* A line of /proc/self/cgroup: "0::/a/b" or "4:memory:/a/b", where controllers are a list. */
static void apply_line(const char *root, char *line, struct limits *out)
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!path)
        return;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (strcmp(line, "0:") == 0)
        apply_path(root, &version_2, path, out);
    for (char *rest = controllers + 1, *name; (name = strsep(&rest, ","));)
        if (strcmp(name, "memory") == 0)
            apply_path(root, &version_1, path, out);
}

static void apply_groups(const char *root, struct limits *out)
{
    char path[PATH_MAX], line[PATH_MAX / 2];

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    while (fgets(line, sizeof(line), f))
        apply_line(root, line, out);
    fclose(f);
}

static uint64_t meminfo_bytes(const char *root, const char *key)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    FILE *f = fopen(path, "re");
    uint64_t kib = read_line(f, key);
    if (f)
        fclose(f);
    return kib ? kib * 1024 : UINT64_MAX;
}

void limits_read(const char *root, struct limits *out)
{
    *out = (struct limits){.total_bytes = meminfo_bytes(root, "MemTotal"),
                           .available_bytes = meminfo_bytes(root, "MemAvailable"),
                           .from = "this machine"};
    apply_groups(root, out);
}

uint64_t resident_bytes(pid_t pid)
{
    unsigned long long total, resident = 0;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
