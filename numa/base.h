/*
 * What every layer needs and no library has: error messages, bounds, byte order, hex.
 *
 * Everything here may be called from any thread.
 */
#ifndef NUMA_BASE_H
#define NUMA_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Why a call failed, for people: one line, no newline at its end. */
struct errmsg {
    char text[768];
};

/* Fills *err (which may be NULL). errno stays as it was. */
void errmsg_write(struct errmsg *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline int errmsg_code(int code)
{
    return code;
}

/* The same, and gives `code`, so that reporting an error is one line. No function: whoever compiles or analyzes a caller
 * sees which code comes back. */
#define errmsg_set(err, code, ...) (errmsg_write((err), __VA_ARGS__), errmsg_code(code))

/* Puts "prefix: " (formatted) before the text of *err. Returns `code`. */
int errmsg_prefix(struct errmsg *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t load_le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint64_t load_le64(const uint8_t *p)
{
    return (uint64_t)load_le32(p + 4) << 32 | load_le32(p);
}

static inline uint64_t load_be64(const uint8_t *p)
{
    return (uint64_t)load_be32(p) << 32 | load_be32(p + 4);
}

static inline void store_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static inline void store_le32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static inline void store_be64(uint8_t *p, uint64_t v)
{
    store_be32(p, (uint32_t)(v >> 32));
    store_be32(p + 4, (uint32_t)v);
}

static inline void store_le64(uint8_t *p, uint64_t v)
{
    store_le32(p, (uint32_t)v);
    store_le32(p + 4, (uint32_t)(v >> 32));
}

/* Lower-case hex with a terminating NUL: `out` has room for 2*len+1 characters. */
void hex_encode(char *out, const void *bytes, size_t len);

/* Decodes exactly 2*len hex digits of either case. Returns 0, or -EINVAL at any other character. */
int hex_decode(void *out, const char *hex, size_t len);

/* Length of the UTF-8 character at `text`, or 0 when the bytes there are none. Ends at a NUL. */
size_t utf8_length(const char *text);

#define ESCAPED_BYTES(n) (4 * (n) + 1) /* room for any text of n bytes, escaped */

/* Text of others (a name, a key) for a line that people read: control characters and bytes that are
 * no UTF-8 as \n or \xNN, a backslash doubled; the rest as it is. What does not fit into `size`
 * bytes is left out, never half a character. Returns the length. */
size_t escape_name(char *out, size_t size, const char *text);

/* Reads or writes exactly `len` bytes at `offset`, over signals and short transfers.
 * Returns 0 or a negative errno; pread_full gives -ENODATA where the file ends early. */
int pread_full(int fd, void *buf, size_t len, uint64_t offset);
int pwrite_full(int fd, const void *buf, size_t len, uint64_t offset);

#endif
