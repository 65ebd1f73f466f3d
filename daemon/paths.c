#include "daemon/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Joins what exists with what does not. */
static int join(const char *head, const char *rest, char out[PATH_MAX])
{
    bool root = strcmp(head, "/") == 0;
    int n = *rest ? snprintf(out, PATH_MAX, "%s/%s", root ? "" : head, rest)
                  : snprintf(out, PATH_MAX, "%s", head);

    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Cuts the last name off `path`, which has no slash at its end. Returns the name. */
static char *cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    char *name = slash + 1;

    while (slash > path && slash[-1] == '/')
        slash--;
    *slash = '\0';
    return name;
}

int path_resolve(const char *path, char out[PATH_MAX])
{
    char head[PATH_MAX], real[PATH_MAX], rest[PATH_MAX] = "", more[PATH_MAX];

    int n = snprintf(head, sizeof(head), "%s%s", path[0] == '/' ? "" : "./", path);
    if (n >= (int)sizeof(head))
        return -ENAMETOOLONG;
    for (;;) {
        size_t len = strlen(head);
        while (len > 1 && head[len - 1] == '/')
            head[--len] = '\0';
        if (realpath(len ? head : "/", real))
            return join(real, rest, out);
        if ((errno != ENOENT && errno != ENOTCONN) || !strchr(head, '/') || len <= 1)
            return -errno;
        const char *name = cut_last(head);
        n = snprintf(more, sizeof(more), "%s%s%s", name, *rest ? "/" : "", rest);
        if (n >= (int)sizeof(more))
            return -ENAMETOOLONG;
        memcpy(rest, more, sizeof(rest));
    }
}

bool path_is_inside(const char *path, const char *dir)
{
    char real_path[PATH_MAX], real_dir[PATH_MAX];

    if (path_resolve(path, real_path) < 0 || path_resolve(dir, real_dir) < 0)
        return false;
    size_t n = strlen(real_dir);
    if (n == 1) /* everything is inside the root */
        return true;
    return strncmp(real_path, real_dir, n) == 0 && (!real_path[n] || real_path[n] == '/');
}

/* What is stored below must not be lost with a name above it. */
static int sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int ret = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return ret;
}

/* Length of `path` without slashes at its end, but for that of the root. */
static size_t trimmed(const char *path, size_t len)
{
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

bool path_parent(const char *path, char out[PATH_MAX])
{
    size_t len = trimmed(path, strlen(path));

    if (len == 1 && path[0] == '/')
        return false;
    while (len > 0 && path[len - 1] != '/')
        len--;
    len = trimmed(path, len);
    if (len == 0 || len >= PATH_MAX)
        return false;
    memcpy(out, path, len);
    out[len] = '\0';
    return true;
}

int path_make_parents(const char *path, struct errmsg *err)
{
    char dir[PATH_MAX], above[PATH_MAX + 4];
    struct stat st;

    if (!path_parent(path, dir))
        return 0;
    if (stat(dir, &st) == 0 || errno != ENOENT) /* other trouble is told by who uses the path */
        return 0;
    int ret = path_make_parents(dir, err);
    if (ret < 0)
        return ret;
    if (mkdir(dir, 0755) < 0)
        return errno == EEXIST
                   ? 0
                   : errmsg_set(err, -errno, "cannot make %s: %s", dir, strerror(errno));
    snprintf(above, sizeof(above), "%s/..", dir);
    ret = sync_dir(above);
    return ret < 0 ? errmsg_set(err, ret, "cannot sync %s: %s", above, strerror(-ret)) : 0;
}

#define TEXT_BYTES_MAX (1 << 20)

int path_open_text(const char *path, FILE **out, struct errmsg *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        ret = errmsg_set(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
        ret = errmsg_set(err, -EINVAL, "%s: not a regular file", path);
    else if (st.st_size > TEXT_BYTES_MAX)
        ret = errmsg_set(err, -EFBIG, "%s: %lld bytes, at most %d are read", path,
                         (long long)st.st_size, TEXT_BYTES_MAX);
    if (ret == 0 && !(*out = fdopen(fd, "r")))
        ret = errmsg_set(err, -errno, "%s: %s", path, strerror(errno));
    if (ret < 0 && fd >= 0)
        close(fd);
    return ret;
}

int path_check_program(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0 || access(path, X_OK) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) ? 0 : -EACCES;
}
