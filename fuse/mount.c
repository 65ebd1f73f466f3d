/*
 * /proc/self/mountinfo says what is mounted where, also for a mount whose service is dead and whose
 * root nobody can stat any more.
 */
#include "fuse/mount.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/paths.h"

#define STACKED_MAX 64 /* dead mounts on top of each other */

extern char **environ;

bool mount_may_allow_other(const char *fuse_conf)
{
    char line[256], word[32];
    bool allowed = geteuid() == 0;
    FILE *f = allowed ? NULL : fopen(fuse_conf, "re");

    while (f && !allowed && fgets(line, sizeof(line), f))
        allowed = sscanf(line, " %31s", word) == 1 && strcmp(word, "user_allow_other") == 0;
    if (f)
        fclose(f);
    return allowed;
}

/* `path` without slashes at its end, cut into directory and name: "." and "proof", "/" and "proof".
 */
static int cut_path(const char *path, char dir[PATH_MAX], char name[NAME_MAX + 1])
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *slash = memrchr(path, '/', len);
    const char *begin = slash ? slash + 1 : path;
    size_t dir_len = slash ? (size_t)(slash - path) : 0, name_len = len - (size_t)(begin - path);
    if (name_len == 0 || name_len > NAME_MAX || dir_len >= PATH_MAX - 1)
        return -EINVAL;
    memcpy(dir, path, dir_len);
    if (dir_len == 0)
        dir[dir_len++] = slash ? '/' : '.';
    dir[dir_len] = '\0';
    memcpy(name, begin, name_len);
    name[name_len] = '\0';
    return 0;
}

/* Resolves all but the last component, which may be a dead mount that answers nothing; makes what is missing above it, if told to. */
static char *make_absolute(const char *path, bool make, int *ret, struct errmsg *err)
{
    char dir[PATH_MAX], name[NAME_MAX + 1];
    char *real = NULL;

    if (cut_path(path, dir, name) < 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        *ret = errmsg_set(err, -EINVAL, "mount point '%s': not the path of a directory", path);
        return NULL;
    }
    char *parent = realpath(dir, NULL);
    if (!parent && errno == ENOENT && make) {
        *ret = path_make_parents(path, err);
        if (*ret < 0) {
            errmsg_prefix(err, *ret, "mount point %s", path);
            return NULL;
        }
        parent = realpath(dir, NULL);
    }
    if (!parent) {
        *ret = errmsg_set(err, -errno, "mount point %s: %s", path, strerror(errno));
        return NULL;
    }
    if (asprintf(&real, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name) < 0) {
        *ret = errmsg_set(err, -ENOMEM, "mount point %s: no memory", path);
        real = NULL;
    }
    free(parent);
    return real;
}

/* Undoes the \ooo escapes of mountinfo, in place. */
static void unescape(char *s)
{
    char *out = s;

    for (; *s; out++) {
        unsigned c;
        if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
            *out = (char)c;
            s += 4;
        } else {
            *out = *s++;
        }
    }
    *out = '\0';
}

/* The type of what is mounted last on exactly `path`; "" where nothing is. */
static int mounted_type(const char *path, char type[64], struct errmsg *err)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, where[PATH_MAX], kind[64];
    size_t size = 0;

    type[0] = '\0';
    if (!f)
        return errmsg_set(err, -errno, "/proc/self/mountinfo: %s", strerror(errno));
    while (getline(&line, &size, f) > 0) {
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", where) != 1 ||
            sscanf(rest, " - %63s", kind) != 1)
            continue;
        unescape(where);
        if (strcmp(where, path) == 0)
            memcpy(type, kind, sizeof(kind));
    }
    free(line);
    fclose(f);
    return 0;
}

static int detach_by_helper(const char *path)
{
    char *argv[] = {"fusermount3", "-uz", "--", (char *)path, NULL};
    int status;
    pid_t pid;

    int ret = -posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (ret < 0)
        return ret;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

int mount_remove(const char *path)
{
    if (umount2(path, MNT_DETACH) == 0)
        return 0;
    return errno == EPERM ? detach_by_helper(path) : -errno;
}

static int detach(const char *path, struct errmsg *err)
{
    int ret = mount_remove(path);

    if (ret < 0)
        errmsg_set(err, ret,
                   "%s: a dead mount is there and cannot be detached; as root: umount -l %s", path,
                   path);
    return ret;
}

/* 1: a dead mount of ours was there and is gone; 0: nothing is in the way. */
static int clear_one(const char *path, struct errmsg *err)
{
    char type[64];
    struct statfs fs;
    int ret = mounted_type(path, type, err);

    if (ret < 0 || strncmp(type, "fuse", strlen("fuse")) != 0)
        return ret;
    /* Not stat: that may be of what the kernel remembers. */
    bool alive = statfs(path, &fs) == 0 || errno != ENOTCONN;
    if (alive)
        return errmsg_set(err, -EBUSY, "%s: a live mount (%s) is there", path, type);
    if (strcmp(type, "fuse." MOUNT_SUBTYPE) != 0)
        return errmsg_set(err, -EBUSY, "%s: a dead mount of another program (%s) is there", path,
                          type);
    ret = detach(path, err);
    return ret < 0 ? ret : 1;
}

static int check_empty(const char *path, struct errmsg *err)
{
    DIR *dir = opendir(path);
    const struct dirent *e;
    int ret = 0;

    if (!dir)
        return errmsg_set(err, -errno, "mount point %s: %s", path, strerror(errno));
    while (ret == 0 && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ret = errmsg_set(err, -ENOTEMPTY,
                             "mount point %s is not empty ('%s' is in it): the mount "
                             "would hide that",
                             path, e->d_name);
    closedir(dir);
    return ret;
}

int mount_prepare(const char *path, char **absolute, struct errmsg *err)
{
    int ret = 1;
    char *real = make_absolute(path, true, &ret, err);

    if (!real)
        return ret;
    for (int i = 0; ret > 0 && i < STACKED_MAX; i++)
        ret = clear_one(real, err);
    /* Not even root should put a file there while the service is down; fusermount3 wants its user
     * to be able to write. */
    if (ret >= 0 && mkdir(real, geteuid() == 0 ? 0555 : 0755) < 0 && errno != EEXIST)
        ret = errmsg_set(err, -errno, "mount point %s: %s", real, strerror(errno));
    if (ret >= 0)
        ret = check_empty(real, err);
    if (ret < 0) {
        free(real);
        return ret;
    }
    *absolute = real;
    return 0;
}

int mount_check(const char *path, struct errmsg *err)
{
    int ret = 0;
    char type[64];
    struct stat st;
    char *real = make_absolute(path, false, &ret, err);

    if (!real)
        return ret == -ENOENT ? 0 : ret;
    ret = mounted_type(real, type, err);
    if (ret == 0 && strncmp(type, "fuse", strlen("fuse")) == 0) {
        if (strcmp(type, "fuse." MOUNT_SUBTYPE) != 0)
            ret =
                errmsg_set(err, -EBUSY, "%s: a mount of another program (%s) is there", path, type);
    } else if (ret == 0 && (stat(real, &st) == 0 || errno != ENOENT)) {
        ret = check_empty(real, err);
    }
    free(real);
    return ret;
}
