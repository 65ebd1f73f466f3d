/*
 * One line for each file, the newest first; the path at its end is for people. The whole memory is read and
 * written anew: it has a few lines.
 */
#include "gpu/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/newfile.h"

#define MEMORY_MAX ((size_t)64 * 1024) /* more is not ours */
#define LINES_MAX 64
#define KEY_MAX 192

int trusted_default_path(char out[4096])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int len = -1;

    if (cache && cache[0] == '/')
        len = snprintf(out, 4096, "%s/proofd/params-trusted", cache);
    else if (home && home[0] == '/')
        len = snprintf(out, 4096, "%s/.cache/proofd/params-trusted", home);
    return len > 0 && len < 4096 ? 0 : -ENOENT;
}

/* What a line of this file begins with. */
static void make_key(char key[KEY_MAX], const struct trusted_file *f)
{
    char digest[2 * TRUSTED_HEAD_DIGEST_BYTES + 1];
    const struct stat *st = &f->st;

    hex_encode(digest, f->head_digest, sizeof(f->head_digest));
    snprintf(key, KEY_MAX, "1 %llu %llu %llu %lld.%09ld %lld.%09ld %s ", (unsigned long long)st->st_dev,
             (unsigned long long)st->st_ino, (unsigned long long)st->st_size,
             (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec,
             st->st_ctim.tv_nsec, digest);
}

/* The whole memory, NUL at its end; NULL when there is none to be believed. free() it. */
static char *read_memory(const char *memory)
{
    struct stat st;
    char *text = NULL;

    int fd = open(memory, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & (S_IWGRP | S_IWOTH)) == 0 && (size_t)st.st_size <= MEMORY_MAX)
        text = calloc(1, (size_t)st.st_size + 1);
    if (text && pread_full(fd, text, (size_t)st.st_size, 0) < 0) {
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : line + strlen(line);
}

bool trusted_lookup(const char *memory, const struct trusted_file *file)
{
    char key[KEY_MAX], *text = read_memory(memory);
    bool found = false;

    make_key(key, file);
    for (const char *line = text; line && *line && !found; line = next_line(line))
        found = strncmp(line, key, strlen(key)) == 0;
    free(text);
    return found;
}

static void make_directories(const char *memory)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s", memory);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700); /* what is missing shows when the file is written */
        *slash = '/';
    }
}

/* A path that would break the line is not written: it is for people only. */
static const char *printable(const char *path)
{
    return strchr(path, '\n') ? "?" : path;
}

int trusted_remember(const char *memory, const struct trusted_file *file, const char *path,
                     struct errmsg *err)
{
    char key[KEY_MAX], *old = read_memory(memory), *text = NULL;
    size_t room = KEY_MAX + strlen(path) + 2 + (old ? strlen(old) : 0);
    int ret = -ENOMEM;

    text = malloc(room);
    if (!text)
        goto out;
    make_key(key, file);
    size_t len = (size_t)snprintf(text, room, "%s%s\n", key, printable(path));
    int lines = 1;
    for (const char *line = old, *next; line && *line && lines < LINES_MAX; line = next) {
        next = next_line(line);
        if (strncmp(line, key, strlen(key)) == 0 || len + (size_t)(next - line) > MEMORY_MAX)
            continue;
        memcpy(text + len, line, (size_t)(next - line));
        len += (size_t)(next - line);
        lines++;
    }
    make_directories(memory);
    ret = newfile_put(memory, text, len, err);
out:
    free(text);
    free(old);
    return ret == -ENOMEM ? errmsg_set(err, ret, "%s: no memory", memory) : ret;
}
