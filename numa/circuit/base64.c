#include "numa/circuit/base64.h"

#include <errno.h>

enum { PAD = 64, SPACE = 65, OTHER = 66 };

/* The value of each character, one of the above, built from the alphabet once. */
#define X OTHER
static const uint8_t values[256] = {
    X,  X,  X,  X,  X,  X,  X,  X,  X,  SPACE, SPACE, X,  X,  SPACE, X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,     X,     X,  X,  X,     X,  X,
    SPACE, X, X, X, X,  X,  X,  X,  X,  X,     X,     62, X,  X,     X,  63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61,    X,     X,  X,  PAD,   X,  X,
    X,  0,  1,  2,  3,  4,  5,  6,  7,  8,     9,     10, 11, 12,    13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24,    25,    X,  X,  X,     X,  X,
    X,  26, 27, 28, 29, 30, 31, 32, 33, 34,    35,    36, 37, 38,    39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50,    51,    X,  X,  X,     X,  X,
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
};
#undef X

bool base64_is_char(uint8_t c)
{
    return values[c] < PAD;
}

static int character(struct base64 *b, uint8_t value, uint8_t **out)
{
    if (b->padding > 0)
        return -EBADMSG;
    b->bits = b->bits << 6 | value;
    if (++b->chars < 4)
        return 0;
    *(*out)++ = (uint8_t)(b->bits >> 16);
    *(*out)++ = (uint8_t)(b->bits >> 8);
    *(*out)++ = (uint8_t)b->bits;
    *b = (struct base64){0};
    return 0;
}

/* Padding ends a group of two or three characters whose last bits are zero. */
static int pad(struct base64 *b, uint8_t **out)
{
    if (b->chars < 2 || b->chars + b->padding == 4)
        return -EBADMSG;
    if (b->padding++ > 0)
        return 0;
    if (b->bits & (b->chars == 2 ? 0xf : 0x3))
        return -EBADMSG;
    *(*out)++ = (uint8_t)(b->bits >> (b->chars == 2 ? 4 : 10));
    if (b->chars == 3)
        *(*out)++ = (uint8_t)(b->bits >> 2);
    return 0;
}

/* Whole groups without anything odd, which is nearly all of a text. Returns characters taken. */
static size_t groups(const uint8_t *text, size_t len, uint8_t **out)
{
    uint8_t *to = *out;
    size_t i = 0;

    for (; i + 4 <= len; i += 4) {
        uint32_t a = values[text[i]], b = values[text[i + 1]];
        uint32_t c = values[text[i + 2]], d = values[text[i + 3]];
        if ((a | b | c | d) >= PAD)
            break;
        uint32_t bits = a << 18 | b << 12 | c << 6 | d;
        to[0] = (uint8_t)(bits >> 16);
        to[1] = (uint8_t)(bits >> 8);
        to[2] = (uint8_t)bits;
        to += 3;
    }
    *out = to;
    return i;
}

int base64_feed(struct base64 *b, const uint8_t *text, size_t len, uint8_t *out, size_t *out_len,
                struct errmsg *err)
{
    uint8_t *to = out;
    size_t i = 0;

    while (i < len) {
        if (b->chars == 0 && b->padding == 0)
            i += groups(text + i, len - i, &to);
        if (i == len)
            break;
        uint8_t value = values[text[i]];
        int ret = value < PAD     ? character(b, value, &to)
                  : value == PAD  ? pad(b, &to)
                  : value == SPACE ? 0
                                  : -EBADMSG;
        if (ret < 0) {
            *out_len = i;
            return errmsg_set(err, ret, "byte 0x%02x does not belong here in base64", text[i]);
        }
        i++;
    }
    *out_len = (size_t)(to - out);
    return 0;
}

int base64_finish(const struct base64 *b, struct errmsg *err)
{
    if (b->chars == 0 || b->chars + b->padding == 4)
        return 0;
    return errmsg_set(err, -EBADMSG, "base64 ends within a group of four");
}
