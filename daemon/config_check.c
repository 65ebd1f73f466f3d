#include "daemon/config_check.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/confine.h"
#include "daemon/nodes.h"
#include "daemon/params_watch.h"
#include "daemon/paths.h"
#include "daemon/sim.h"
#include "daemon/store.h"
#include "numa/circuit/compact.h"
#include "numa/limits.h"

#define PARAMS_VARIABLE "FIL_PROOFS_PARAMETER_CACHE"

/* Of one option. */
struct option_check {
    const char *option;
    int (*check)(const struct config *cfg, struct errmsg *err);
};

/* The first that fails, with where its option's value is from. */
static int check_each(const struct option_check *checks, size_t len, const struct config *cfg,
                      struct errmsg *err)
{
    int ret = 0;

    for (size_t i = 0; ret == 0 && i < len; i++) {
        ret = checks[i].check(cfg, err);
        if (ret < 0)
            config_blame(cfg, checks[i].option, ret, err);
    }
    return ret;
}

/* A service that read its own mount would wait for itself. */
static int check_paths(const struct config *cfg, struct errmsg *err)
{
    const char *cache = cfg->params[0] ? NULL : getenv(PARAMS_VARIABLE);
    const struct {
        const char *what, *path;
    } used[] = {{"store", cfg->store},
                {"params", cfg->params},
                {PARAMS_VARIABLE, cache ? cache : ""},
                {"engine", cfg->engine},
                {"simulate", cfg->simulate}};

    for (size_t i = 0; i < ARRAY_LEN(used); i++)
        if (used[i].path[0] && path_is_inside(used[i].path, cfg->mount))
            return config_blame(cfg, used[i].what,
                                errmsg_set(err, -EINVAL, "%s %s lies inside the mount %s",
                                           used[i].what, used[i].path, cfg->mount),
                                err);
    /* It would be taken for a job. */
    if (path_is_inside(cfg->mount, cfg->store))
        return config_blame(cfg, "mount",
                            errmsg_set(err, -EINVAL, "mount %s lies inside the store %s",
                                       cfg->mount, cfg->store),
                            err);
    return 0;
}

static int check_nodes(const struct config *cfg, struct errmsg *err)
{
    struct nodes *nodes = NULL;
    int ret = nodes_read(cfg->nodes, &nodes, err);

    nodes_destroy(nodes);
    return ret < 0 ? errmsg_prefix(err, ret, "nodes") : 0;
}

static int check_gpus(const struct config *cfg, struct errmsg *err)
{
    if (strcmp(cfg->gpus, "auto") == 0 || strcmp(cfg->gpus, "none") == 0)
        return 0;
    return errmsg_set(err, -EINVAL, "gpus: '%s' is neither auto nor none", cfg->gpus);
}

static int check_confine(const struct config *cfg, struct errmsg *err)
{
    enum confine how;

    if (confine_parse(cfg->confine, &how) == 0)
        return 0;
    return errmsg_set(err, -EINVAL, "confine: '%s' is none of auto, on, off", cfg->confine);
}

static int check_development(const struct config *cfg, struct errmsg *err)
{
    if (config_makes_parameters(cfg) && (cfg->simulate[0] || strcmp(cfg->gpus, "none") == 0))
        return errmsg_set(
            err, -EINVAL,
            "development_parameters: device: only GPUs make parameters, and none is to be used");
    if (config_makes_parameters(cfg) || strcmp(cfg->development_parameters, "none") == 0)
        return 0;
    return errmsg_set(err, -EINVAL, "development_parameters: '%s' is neither none nor device",
                      cfg->development_parameters);
}

static int check_critical_group(const struct config *cfg, struct errmsg *err)
{
    gid_t gid;

    return config_critical_gid(cfg, &gid, err);
}

static int check_shared_group(const struct config *cfg, struct errmsg *err)
{
    gid_t gid;

    return config_shared_gid(cfg, &gid, err);
}

static int check_device(const struct config *cfg, struct errmsg *err)
{
    const char *name = cfg->device;

    if (*name && strlen(name) <= CONFIG_DEVICE_MAX && *name != '.' &&
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
            strlen(name))
        return 0;
    return errmsg_set(err, -EINVAL, "device: '%s' is neither none nor a name for a node in /dev",
                      name);
}

int config_check(const struct config *cfg, struct errmsg *err)
{
    static const struct option_check checks[] = {{"nodes", check_nodes},
                                                 {"device", check_device},
                                                 {"confine", check_confine},
                                                 {"critical_group", check_critical_group},
                                                 {"shared_group", check_shared_group},
                                                 {"gpus", check_gpus},
                                                 {"development_parameters", check_development}};
    int ret = check_paths(cfg, err);

    return ret < 0 ? ret : check_each(checks, ARRAY_LEN(checks), cfg, err);
}

/* ---- directories and programs ---- */

static int check_dir(const char *what, const char *path, int mode, struct errmsg *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errmsg_set(err, -errno, "%s %s: %s", what, path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return errmsg_set(err, -ENOTDIR, "%s %s: not a directory", what, path);
    if (access(path, mode) < 0)
        return errmsg_set(err, -errno, "%s %s: %s", what, path, strerror(errno));
    return 0;
}

/* What mkdir would say of a name that is not there, whatever is above it. */
static int check_name_to_make(const char *what, const char *path, struct errmsg *err)
{
    const char *name = path + strlen(path);
    struct stat st;

    while (name > path && name[-1] == '/')
        name--;
    const char *end = name;
    while (name > path && name[-1] != '/')
        name--;
    if (end - name > NAME_MAX)
        return errmsg_set(err, -ENAMETOOLONG, "%s: a name of more than %d bytes: %s", what, NAME_MAX, path);
    if (lstat(path, &st) == 0)
        return errmsg_set(err, -ENOENT, "%s %s: a symbolic link to what is not there", what, path);
    return 0;
}

/* Whoever may write there, nothing can be made. */
static int check_kind(const char *path, struct errmsg *err)
{
    struct statfs fs;

    if (statfs(path, &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC))
        return errmsg_set(err, -EINVAL, "%s is of the kernel's own files", path);
    return 0;
}

/* One that is made where it is absent, with what is missing above it. */
static int check_dir_to_make(const char *what, const char *path, struct errmsg *err)
{
    char at[PATH_MAX], above[PATH_MAX];
    int ret;

    if (access(path, F_OK) == 0 || errno != ENOENT)
        return check_dir(what, path, R_OK | W_OK | X_OK, err);
    snprintf(at, sizeof(at), "%s", path);
    do {
        ret = check_name_to_make(what, at, err);
        bool named = path_parent(at, above);
        snprintf(at, sizeof(at), "%s", named ? above : at[0] == '/' ? "/" : ".");
    } while (ret == 0 && access(at, F_OK) < 0 && errno == ENOENT && strcmp(at, ".") != 0);
    if (ret < 0)
        return ret;
    ret = check_dir(what, at, W_OK | X_OK, err);
    if (ret == 0)
        ret = check_kind(at, err);
    return ret < 0 ? errmsg_prefix(err, ret, "%s %s cannot be made", what, path) : 0;
}

static int check_store(const struct config *cfg, struct errmsg *err)
{
    int ret = check_dir_to_make("store", cfg->store, err);

    return ret < 0 ? ret : store_check(cfg->store, err);
}

int config_check_mount(const struct config *cfg, struct errmsg *err)
{
    int ret = check_dir_to_make("mount", cfg->mount, err);

    return ret < 0 ? config_blame(cfg, "mount", ret, err) : 0;
}

/* One that is not there yet, or not open, only warns: what has the parameters may be mounted later, and jobs look again. */
static int check_params(const struct config *cfg, struct errmsg *err)
{
    struct stat st;

    if (cfg->params[0] && stat(cfg->params, &st) == 0 && !S_ISDIR(st.st_mode))
        return errmsg_set(err, -ENOTDIR, "params %s: not a directory", cfg->params);
    return 0;
}

static int check_engine(const struct config *cfg, struct errmsg *err)
{
    int ret = cfg->engine[0] ? path_check_program(cfg->engine) : 0;

    return ret < 0 ? errmsg_set(err, ret, "engine program %s: %s", cfg->engine, strerror(-ret)) : 0;
}

static int check_simulated(const struct config *cfg, struct errmsg *err)
{
    struct sim *sim = NULL;
    int ret = cfg->simulate[0] ? sim_create(cfg->simulate, &sim, err) : 0;

    sim_destroy(sim);
    return ret < 0 ? errmsg_prefix(err, ret, "simulate") : 0;
}

/* Less than one slot and the parameters is too little for any prover; what it needs for itself comes on top, and engines say it. */
static void warn_of_memory(const struct config *cfg, const struct sector_size *size, FILE *warnings)
{
    struct srs_counts counts;
    struct limits limits;

    limits_read("", &limits);
    uint64_t has = cfg->memory_bytes && cfg->memory_bytes < limits.total_bytes ? cfg->memory_bytes
                                                                               : limits.total_bytes;
    srs_counts(size, &counts);
    uint64_t least = srs_file_bytes(&counts) + compact_bytes_of_size(size);
    if (has < least)
        fprintf(warnings,
                "warning: memory: an engine may use %.1f GiB, a sector of %s needs more than %.1f "
                "GiB: every job of that size will be "
                "refused\n",
                (double)has / (1 << 30), size->name, (double)least / (1 << 30));
}

static void warn_of_none(const struct config *cfg, FILE *warnings)
{
    struct errmsg searched;

    srs_list_dirs(cfg->params[0] ? cfg->params : NULL, &searched);
    fprintf(warnings,
            "warning: no parameters that can be used in %s: every job will be refused until there "
            "are some\n",
            searched.text);
}

static void warn_of_params(const struct config *cfg, FILE *warnings)
{
    struct params_watch *watch = NULL;
    struct errmsg err = {""};
    struct srs_look look;
    bool any = false;

    if (config_makes_parameters(cfg))
        fprintf(
            warnings,
            "warning: development_parameters: GPUs make insecure ones where there is no file\n");
    if (params_watch_create(cfg->params, "", NULL, &watch) < 0)
        return;
    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        int ret = params_watch_look(watch, size, &look, &err);
        any |= ret == 0;
        if (ret == 0 && !cfg->simulate[0])
            warn_of_memory(cfg, size, warnings);
        if (ret < 0 && ret != -ENOENT)
            fprintf(warnings, "warning: parameters of %s: %s\n", size->name, err.text);
    }
    if (!any && !config_makes_parameters(cfg))
        warn_of_none(cfg, warnings);
    params_watch_destroy(watch);
}

int config_check_machine(const struct config *cfg, FILE *warnings, struct errmsg *err)
{
    static const struct option_check checks[] = {{"store", check_store},
                                                 {"params", check_params},
                                                 {"engine", check_engine},
                                                 {"simulate", check_simulated}};
    int ret = check_each(checks, ARRAY_LEN(checks), cfg, err);

    if (ret == 0 && warnings)
        warn_of_params(cfg, warnings);
    return ret;
}
