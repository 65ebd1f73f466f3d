#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ctl.h"

#define PROGRESS_EVERY_MS 100

static bool progress_shown;

int ctl_fail(int code, const char *fmt, ...)
{
    va_list ap;

    ctl_progress_end();
    fputs("proofctl: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap); /* NOLINT(clang-analyzer-valist.Uninitialized): two lines up */
    va_end(ap);
    fputc('\n', stderr);
    return code;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void ctl_progress(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    static int64_t last;

    (void)ctx;
    if (!isatty(STDERR_FILENO) || (done < total && now_ms() - last < PROGRESS_EVERY_MS))
        return;
    last = now_ms();
    progress_shown = true;
    if (total > 0)
        fprintf(stderr, "\r\033[K%s %3.0f %%", stage, 100.0 * (double)done / (double)total);
    else
        fprintf(stderr, "\r\033[K%s", stage);
    fflush(stderr);
}

void ctl_progress_end(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

void ctl_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ')
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

void ctl_json_hex(FILE *out, const char *key, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    fprintf(out, "\"%s\":\"", key);
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%02x", p[i]);
    fputc('"', out);
}

struct c1 *ctl_read_c1(const char *path, enum c1_checks checks, struct workers *workers,
                       struct c1_extra *extra)
{
    struct c1 *c1 = NULL;
    struct errmsg err = {""};
    int ret = c1_read_file(path, checks, workers, &c1, extra, &err);

    if (ret == 0)
        return c1;
    /* The reader names what is wrong in the document, not always the document. */
    if (strncmp(err.text, path, strlen(path)) == 0)
        ctl_fail(0, "%s", err.text);
    else
        ctl_fail(0, "%s: %s", path, err.text[0] ? err.text : strerror(-ret));
    return NULL;
}

static int read_all(int fd, size_t max, uint8_t **out, size_t *len)
{
    size_t room = 4096, used = 0;
    uint8_t *bytes = malloc(room + 1);

    while (bytes) {
        ssize_t n = read(fd, bytes + used, room - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || (used += (size_t)n) > max) {
            int ret = n < 0 ? -errno : n > 0 ? -EFBIG : 0;
            if (ret < 0) {
                free(bytes);
                return ret;
            }
            bytes[used] = '\0';
            *out = bytes;
            *len = used;
            return 0;
        }
        if (used < room)
            continue;
        room *= 2;
        uint8_t *more = realloc(bytes, room + 1);
        if (!more)
            free(bytes);
        bytes = more;
    }
    return -ENOMEM;
}

int ctl_read_file(const char *path, size_t max, uint8_t **out, size_t *len)
{
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, max, out, len);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int ret = read_all(fd, max, out, len);
    close(fd);
    return ret;
}

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_in_place(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int ret = write_all(fd, bytes, len);
    return close(fd) < 0 && ret == 0 ? -errno : ret;
}

/* mkstemp makes a private file; the result gets the mode that open() would have given. */
static int finish_temporary(int fd, const char *temporary, const char *path)
{
    mode_t mask = umask(0);

    umask(mask);
    if (fchmod(fd, 0666 & ~mask) < 0 || fsync(fd) < 0)
        return -errno;
    return rename(temporary, path) < 0 ? -errno : 0;
}

int ctl_write_file(const char *path, const void *bytes, size_t len)
{
    struct stat st;
    char *temporary = NULL;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return write_in_place(path, bytes, len);
    const char *slash = strrchr(path, '/');
    int dir_len = slash ? (int)(slash + 1 - path) : 0;
    if (asprintf(&temporary, "%.*s.%s.XXXXXX", dir_len, path, path + dir_len) < 0)
        return -ENOMEM;
    int fd = mkostemp(temporary, O_CLOEXEC);
    int ret = fd < 0 ? -errno : write_all(fd, bytes, len);
    if (ret == 0)
        ret = finish_temporary(fd, temporary, path);
    if (fd >= 0) {
        close(fd);
        if (ret < 0)
            unlink(temporary);
    }
    free(temporary);
    return ret;
}

void ctl_proof_from_text(uint8_t *bytes, size_t *len)
{
    size_t digits = 0;

    for (size_t i = 0; i < *len; i++) {
        if (isxdigit(bytes[i]))
            digits++;
        else if (!isspace(bytes[i]))
            return;
    }
    if (digits == 0 || digits % 2 != 0)
        return;
    digits = 0;
    for (size_t i = 0; i < *len; i++)
        if (isxdigit(bytes[i]))
            bytes[digits++] = bytes[i];
    for (size_t i = 0; i < digits / 2; i++) {
        char pair[2] = {(char)bytes[2 * i], (char)bytes[2 * i + 1]};
        hex_decode(&bytes[i], pair, 1);
    }
    *len = digits / 2;
}
