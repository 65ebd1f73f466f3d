#include "numa/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

void errmsg_write(struct errmsg *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    if (!err)
        return;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    errno = saved;
}

int errmsg_prefix(struct errmsg *err, int code, const char *fmt, ...)
{
    struct errmsg old;
    va_list ap;

    if (!err)
        return code;
    old = *err;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", old.text);
    return code;
}

void hex_encode(char *out, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = bytes;

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * len] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int hex_decode(void *out, const char *hex, size_t len)
{
    uint8_t *p = out;

    for (size_t i = 0; i < len; i++) {
        int hi = hex_value(hex[2 * i]);
        int lo = hi < 0 ? -1 : hex_value(hex[2 * i + 1]);
        if (lo < 0)
            return -EINVAL;
        p[i] = (uint8_t)(hi << 4 | lo);
    }
    return 0;
}

/* Unicode 15, table 3-7. */
size_t utf8_length(const char *text)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)))
        return 0; /* too long a form, or half a pair */
    if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)))
        return 0;
    return n;
}

/* C0, DEL, and C1 (U+0080 to U+009F), which terminals obey as well. */
static bool is_control(const char *s)
{
    const uint8_t *c = (const uint8_t *)s;

    return c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
}

size_t escape_name(char *out, size_t size, const char *text)
{
    size_t used = 0;

    for (size_t taken; *text; text += taken) {
        char piece[5];
        size_t len = 2;
        bool whole = utf8_length(text) > 0 && !is_control(text);
        taken = whole ? utf8_length(text) : 1;
        if (*text == '\\' || *text == '\n') /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): it has its length */
            memcpy(piece, *text == '\n' ? "\\n" : "\\\\", 2);
        else if (whole)
            memcpy(piece, text, len = taken);
        else
            len = (size_t)snprintf(piece, sizeof(piece), "\\x%02x", (uint8_t)*text);
        if (len >= size - used)
            break;
        memcpy(out + used, piece, len);
        used += len;
    }
    out[used] = '\0';
    return used;
}

int pread_full(int fd, void *buf, size_t len, uint64_t offset)
{
    uint8_t *p = buf;

    while (len > 0) {
        ssize_t n = pread(fd, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -ENODATA;
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

int pwrite_full(int fd, const void *buf, size_t len, uint64_t offset)
{
    const uint8_t *p = buf;

    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}
