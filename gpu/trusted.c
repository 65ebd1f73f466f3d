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

/* A line: where the file is and when it was made, then what it is, then its path. */
struct line {
    char where[KEY_MAX], what[KEY_MAX];
};

static void make_line(struct line *l, const struct trusted_file *f)
{
    char head[2 * TRUSTED_DIGEST_BYTES + 1], digest[2 * TRUSTED_DIGEST_BYTES + 1];
    const struct stat *st = &f->st;

    hex_encode(head, f->head_digest, sizeof(f->head_digest));
    hex_encode(digest, f->digest, sizeof(f->digest));
    /* cppcheck-suppress ctuuninitvar ; an array that is written */
    snprintf(l->where, KEY_MAX, "2 %llu %llu %lld.%09ld %lld.%09ld ", (unsigned long long)st->st_dev,
             (unsigned long long)st->st_ino, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
             (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
    snprintf(l->what, KEY_MAX, "%llu %s %s ", (unsigned long long)st->st_size, head, digest);
}

char *trusted_read_own(const char *path, size_t most, size_t *len)
{
    struct stat st;
    char *bytes = NULL;

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & (S_IWGRP | S_IWOTH)) == 0 && (size_t)st.st_size <= most)
        bytes = calloc(1, (size_t)st.st_size + 1);
    if (bytes && pread_full(fd, bytes, (size_t)st.st_size, 0) < 0) {
        free(bytes);
        bytes = NULL;
    }
    close(fd);
    if (bytes)
        *len = (size_t)st.st_size;
    return bytes;
}

static char *read_memory(const char *memory)
{
    size_t len;

    return trusted_read_own(memory, MEMORY_MAX, &len);
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : line + strlen(line);
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What follows the first `words` words of a line, or NULL when it has not so many. */
static const char *skip_words(const char *line, int words)
{
    for (; words > 0; words--) {
        line += strcspn(line, " \n");
        if (*line++ != ' ')
            return NULL;
    }
    return line;
}

#define WORDS_WHERE 5

bool trusted_lookup(const char *memory, struct trusted_file *file)
{
    char *text = read_memory(memory);
    bool found = false;
    struct line l;

    make_line(&l, file);
    *strrchr(l.what, ' ') = '\0';
    l.what[strlen(l.what) - 2 * TRUSTED_DIGEST_BYTES] = '\0'; /* that is asked for */
    for (const char *line = text; line && *line && !found; line = next_line(line)) {
        const char *what = line + strlen(l.where);
        found = begins_with(line, l.where) && begins_with(what, l.what) &&
                hex_decode(file->digest, what + strlen(l.what), sizeof(file->digest)) == 0;
    }
    free(text);
    return found;
}

bool trusted_lookup_bytes(const char *memory, const struct trusted_file *file)
{
    char *text = read_memory(memory);
    bool found = false;
    struct line l;

    make_line(&l, file);
    for (const char *line = text; line && *line && !found; line = next_line(line)) {
        const char *what = begins_with(line, "2 ") ? skip_words(line, WORDS_WHERE) : NULL;
        found = what && begins_with(what, l.what);
    }
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
    char *old = read_memory(memory), *text = NULL;
    size_t room = sizeof(struct line) + strlen(path) + 2 + (old ? strlen(old) : 0);
    struct line l;
    int ret = -ENOMEM;

    text = malloc(room);
    if (!text)
        goto out;
    make_line(&l, file);
    size_t len = (size_t)snprintf(text, room, "%s%s%s\n", l.where, l.what, printable(path));
    int lines = 1;
    for (const char *line = old, *next; line && *line && lines < LINES_MAX; line = next) {
        next = next_line(line);
        if (begins_with(line, l.where) || len + (size_t)(next - line) > MEMORY_MAX)
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
