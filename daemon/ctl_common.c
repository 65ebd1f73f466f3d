#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ctl.h"
#include "gpu/srs.h"

#define PROGRESS_EVERY_MS 100
#define LINE_AT_MOST_EVERY_MS 1000
#define LINE_AT_LEAST_EVERY_MS 10000
#define OPEN_AT_MOST 4096 /* descriptors that a command may have */

static struct {
    bool json;  /* errors are answers */
    bool lines; /* progress where standard error is no terminal */
    bool shown; /* a line of the terminal is ours */
} say;

void ctl_say_in_json(void)
{
    say.json = true;
}

bool ctl_says_json(void)
{
    return say.json;
}

void ctl_progress_lines(void)
{
    say.lines = true;
}

int ctl_fail(int code, const char *fmt, ...)
{
    char text[2 * PATH_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt,
              ap); /* NOLINT(clang-analyzer-valist.Uninitialized): one line up */
    va_end(ap);
    ctl_progress_end();
    if (!say.json) {
        fputs("proofctl: ", stderr);
        ctl_put(stderr, text);
        fputc('\n', stderr);
        return code;
    }
    fputs("{\"error\":", stdout);
    ctl_json_string(stdout, text);
    puts("}");
    return code;
}

int ctl_fail_with(int code, int error, const struct errmsg *err)
{
    return ctl_fail(code, "%s", err->text[0] ? err->text : strerror(-error));
}

int ctl_fail_params(const struct sector_size *size, const char *dir, int error,
                    const struct errmsg *err)
{
    struct errmsg what = *err;

    if (error == -ENOENT)
        srs_say_what_to_do(size, dir, &what);
    return ctl_fail_with(CTL_CANNOT, error, &what);
}

int ctl_fail_size(const char *name)
{
    return ctl_fail(CTL_CANNOT, "'%s' is no sector size (2KiB, 8MiB, 512MiB, 32GiB, 64GiB)", name);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* On a terminal: one line, rewritten. */
static void progress_rewritten(const char *stage, uint64_t done, uint64_t total)
{
    static int64_t last;

    if (done < total && now_ms() - last < PROGRESS_EVERY_MS)
        return;
    last = now_ms();
    say.shown = true;
    fputs("\r\033[K", stderr);
    ctl_put(stderr, stage);
    if (total > 0)
        fprintf(stderr, " %3.0f %%", 100.0 * (double)done / (double)total);
    fflush(stderr);
}

/* Elsewhere: a line when a stage begins, at each tenth of it (one a second at most), at its end, and every ten seconds. */
static void progress_line(const char *stage, uint64_t done, uint64_t total)
{
    static char last_stage[128];
    static unsigned last_tenth;
    static int64_t last;
    unsigned percent = total > 0 ? (unsigned)(100.0 * (double)done / (double)total) : 0;
    int64_t quiet = now_ms() - last;
    bool begins = strncmp(stage, last_stage, sizeof(last_stage) - 1) != 0;
    bool tenth = percent / 10 != last_tenth && (quiet >= LINE_AT_MOST_EVERY_MS || percent >= 100);

    if (!begins && !tenth && quiet < LINE_AT_LEAST_EVERY_MS)
        return;
    snprintf(last_stage, sizeof(last_stage), "%s", stage);
    last_tenth = percent / 10;
    last = now_ms();
    fputs("proofctl: ", stderr);
    ctl_put(stderr, stage);
    if (total > 0)
        fprintf(stderr, " %u %%", percent);
    fputc('\n', stderr);
}

void ctl_progress(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    (void)ctx;
    if (isatty(STDERR_FILENO))
        progress_rewritten(stage, done, total);
    else if (say.lines)
        progress_line(stage, done, total);
}

void ctl_progress_end(void)
{
    if (say.shown)
        fputs("\r\033[K", stderr);
    say.shown = false;
}

void ctl_put(FILE *out, const char *text)
{
    for (size_t len; *text; text += len) {
        char one[5] = "", shown[ESCAPED_BYTES(sizeof(one))];
        len = utf8_length(text) ? utf8_length(text) : 1;
        memcpy(one, text, len);
        if (*text != '\\') /* what was escaped already stays as it is */
            escape_name(shown, sizeof(shown), one);
        fputs(*text != '\\' ? shown : one, out);
    }
}

/* Control characters, those of two bytes too, and bytes that are no UTF-8 become the numbers that they have. */
void ctl_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (size_t len; *text; text += len) {
        const unsigned char c = (unsigned char)text[0], next = (unsigned char)text[1];
        len = utf8_length(text);
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (len == 2 && c == 0xc2 && next < 0xa0)
            fprintf(out, "\\u%04x", next);
        else if (len == 0 || c < ' ' || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fwrite(text, 1, len, out);
        len = len ? len : 1;
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

enum ctl_exit ctl_exit_of(int error)
{
    return error == -EBADMSG || error == -EINVAL || error == -EFBIG ? CTL_NO : CTL_CANNOT;
}

int ctl_read_c1(const char *path, enum c1_checks checks, struct workers *workers, struct c1 **out)
{
    struct c1_extra extra;
    struct errmsg err = {""};
    int ret = strcmp(path, CTL_STDIN_PATH) == 0
                  ? c1_read_fd(STDIN_FILENO, path, checks, workers, out, &extra, &err)
                  : c1_read_file(path, checks, workers, out, &extra, &err);

    if (ret == 0)
        return 0;
    /* The reader names what is wrong in the document, not always the document, and no reason of the system's. */
    bool judged = ctl_exit_of(ret) == CTL_NO;
    bool named = strncmp(err.text, path, strlen(path)) == 0;
    ctl_fail(0, "%s%s%s%s%s", named ? "" : path, named ? "" : ": ", err.text,
             judged        ? ""
             : err.text[0] ? ": "
                           : "",
             judged ? "" : strerror(-ret));
    return ret;
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
    if (strcmp(path, CTL_STDIN_PATH) == 0)
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

static char being_written[PATH_MAX + 8];

/* What we have open under that name is ours: another process that writes it has locked us out. */
static void on_signal(int number)
{
    struct stat there, ours;

    if (lstat(being_written, &there) == 0)
        for (int fd = STDERR_FILENO + 1; fd < OPEN_AT_MOST; fd++)
            if (fstat(fd, &ours) == 0 && ours.st_dev == there.st_dev &&
                ours.st_ino == there.st_ino) {
                unlink(being_written);
                break;
            }
    signal(number, SIG_DFL);
    raise(number);
}

void ctl_remove_when_interrupted(const char *path)
{
    const struct sigaction action = {.sa_handler = on_signal};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction before;

    snprintf(being_written, sizeof(being_written), "%s.tmp", path);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

int ctl_may_write(const char *path)
{
    char dir[PATH_MAX];
    struct stat st;

    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT)
        return -errno;
    if (there && S_ISDIR(st.st_mode))
        return -EISDIR;
    if (there && !S_ISREG(st.st_mode))
        return access(path, W_OK) < 0 ? -errno : 0;
    const char *slash = strrchr(path, '/');
    int n =
        snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
    if (n >= (int)sizeof(dir))
        return -ENAMETOOLONG;
    return access(dir, W_OK) < 0 ? -errno : 0;
}

int ctl_write_file(const char *path, const void *bytes, size_t len)
{
    struct stat st;
    char *temporary = NULL;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return write_in_place(path, bytes, len);
    const char *slash = strrchr(path, '/');
    int dir_len = slash ? (int)(slash + 1 - path) : 0;
    /* Of a long name only as much as leaves room for the rest. */
    if (asprintf(&temporary, "%.*s.%.200s.XXXXXX", dir_len, path, path + dir_len) < 0)
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

size_t ctl_proof_from_text(uint8_t *bytes, size_t *len)
{
    size_t digits = 0;

    for (size_t i = 0; i < *len; i++) {
        if (isxdigit(bytes[i]))
            digits++;
        else if (!isspace(bytes[i]))
            return 0;
    }
    if (digits % 2 != 0)
        return digits;
    digits = 0;
    for (size_t i = 0; i < *len; i++)
        if (isxdigit(bytes[i]))
            bytes[digits++] = bytes[i];
    for (size_t i = 0; i < digits / 2; i++) {
        char pair[2] = {(char)bytes[2 * i], (char)bytes[2 * i + 1]};
        hex_decode(&bytes[i], pair, 1);
    }
    if (digits > 0)
        *len = digits / 2;
    return digits;
}
