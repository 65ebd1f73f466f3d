/*
 * /proc/self/mountinfo says what is mounted where, also for a mount whose service is dead and whose
 * root nobody can stat any more.
 */
#include "fuse/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
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

/* ---- what a mount needs ---- */

#define CAP_SYS_ADMIN_BIT 21

static bool has_sys_admin(void)
{
    char line[256];
    uint64_t effective = 0;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1)
            break;
    if (f)
        fclose(f);
    return effective >> CAP_SYS_ADMIN_BIT & 1;
}

void mount_places_init(struct mount_places *out)
{
    const char *path = getenv("PATH");

    *out = (struct mount_places){.device = "/dev/fuse",
                                 .path = path ? path : "/usr/bin:/bin",
                                 .selinux = "/sys/fs/selinux/enforce",
                                 .apparmor = "/proc/self/attr/current",
                                 .may_mount = geteuid() == 0 && has_sys_admin(),
                                 .has_name = getpwuid(getuid()) != NULL};
}

/* The first word of a file; "" where there is none. */
static void first_word(const char *path, char word[128])
{
    FILE *f = fopen(path, "re");

    if (!f || fscanf(f, "%127s", word) != 1)
        word[0] = '\0';
    if (f)
        fclose(f);
}

/* `what` was refused although owner and mode allow it. */
static int policy_denies(const struct mount_places *places, const char *what, struct errmsg *err)
{
    char enforce[128], profile[128];

    first_word(places->selinux, enforce);
    first_word(places->apparmor, profile);
    if (strcmp(enforce, "1") == 0)
        return errmsg_set(
            err, -EACCES,
            "%s is denied, which SELinux may do (it is enforcing): see ausearch -m avc -ts recent",
            what);
    if (profile[0] && strcmp(profile, "unconfined") != 0)
        return errmsg_set(err, -EACCES,
                          "%s is denied, which AppArmor may do (profile %s): see journalctl -k "
                          "--grep apparmor, or dmesg",
                          what, profile);
    return errmsg_set(err, -EACCES,
                      "%s is denied although owner and mode allow it: by a security policy, as a "
                      "container's seccomp filter or device "
                      "list",
                      what);
}

/* As the kernel would decide it by owner and mode. */
static bool mode_allows(const struct stat *st)
{
    gid_t groups[256];
    int n = getgroups((int)ARRAY_LEN(groups), groups);
    bool member = st->st_gid == getegid();

    if (geteuid() == 0)
        return true;
    if (st->st_uid == geteuid())
        return (st->st_mode & 0600) == 0600;
    for (int i = 0; i < n; i++)
        member = member || groups[i] == st->st_gid;
    return member ? (st->st_mode & 0060) == 0060 : (st->st_mode & 0006) == 0006;
}

static int check_device(const struct mount_places *places, struct errmsg *err)
{
    struct stat st;
    int fd = open(places->device, O_RDWR | O_CLOEXEC);

    if (fd >= 0) {
        close(fd);
        return 0;
    }
    int error = errno;
    if (error == ENOENT || error == ENXIO || error == ENODEV)
        return errmsg_set(err, -ENOENT,
                          "%s is not there: modprobe fuse, or give the container the device",
                          places->device);
    if (stat(places->device, &st) == 0 && !mode_allows(&st))
        return errmsg_set(err, -EACCES,
                          "%s is not open to this user (mode %o, owner %u:%u): chmod 666 %s, as "
                          "udev does, or start the service as root",
                          places->device, st.st_mode & 07777u, st.st_uid, st.st_gid,
                          places->device);
    if (error == EACCES || error == EPERM) {
        char what[300];
        snprintf(what, sizeof(what), "opening %.200s", places->device);
        return policy_denies(places, what, err);
    }
    return errmsg_set(err, -error, "%s: %s", places->device, strerror(error));
}

static bool find_helper(const char *path, char out[PATH_MAX], struct stat *st)
{
    while (path) {
        const char *end = strchrnul(path, ':');
        int n = snprintf(out, PATH_MAX, "%.*s/fusermount3", (int)(end - path), path);
        if (n < PATH_MAX && stat(out, st) == 0 && S_ISREG(st->st_mode))
            return true;
        path = *end ? end + 1 : NULL;
    }
    return false;
}

static int check_helper(const struct mount_places *places, struct errmsg *err)
{
    char path[PATH_MAX];
    struct stat st;

    if (places->may_mount)
        return 0;
    if (geteuid() == 0)
        return errmsg_set(err, -EPERM,
                          "the right to mount (CAP_SYS_ADMIN) is missing: docker run --cap-add "
                          "SYS_ADMIN --device /dev/fuse");
    if (!find_helper(places->path, path, &st))
        return errmsg_set(
            err, -ENOENT,
            "fusermount3 is not installed, without which only root can mount: apt install fuse3");
    if (st.st_uid != 0 || !(st.st_mode & S_ISUID))
        return errmsg_set(err, -EPERM,
                          "%s is not root's with the set-user-ID bit, without which only root can "
                          "mount: reinstall fuse3",
                          path);
    if (!places->has_name)
        return errmsg_set(
            err, -EPERM,
            "user %u has no name (no entry in /etc/passwd), without which fusermount3 "
            "does not mount: give it one, or start the service as root",
            getuid());
    return 0;
}

int mount_lacks(const struct mount_places *places, bool tried, struct errmsg *err)
{
    int ret = check_device(places, err);

    if (ret == 0)
        ret = check_helper(places, err);
    if (ret == 0 && tried)
        ret = policy_denies(places, "mounting", err);
    return ret;
}

/* ---- the place ---- */

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
    char type[64];

    if (umount2(path, MNT_DETACH) == 0)
        return 0;
    if (errno != EPERM)
        return -errno;
    /* Somebody was quicker, and the helper would complain of it to standard error. */
    if (mounted_type(path, type, NULL) == 0 && !type[0])
        return -EINVAL;
    return detach_by_helper(path);
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
    /* Not touched: one that does not answer would take this service along. */
    if (strcmp(type, "fuse." MOUNT_SUBTYPE) != 0)
        return errmsg_set(err, -EBUSY, "%s: a mount of another program (%s) is there", path, type);
    /* Not stat: that may be of what the kernel remembers. */
    if (statfs(path, &fs) == 0 || errno != ENOTCONN)
        return errmsg_set(err, -EBUSY,
                          "%s: a live mount (%s) is there: stop its service, or give this one a "
                          "mount point of its own",
                          path, type);
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
        else
            ret = 1;
    } else if (ret == 0 && (stat(real, &st) == 0 || errno != ENOENT)) {
        ret = check_empty(real, err);
    }
    free(real);
    return ret;
}
