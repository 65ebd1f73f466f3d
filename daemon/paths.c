#include "daemon/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
