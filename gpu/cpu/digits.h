/*
 * Scalars cut into signed digits: k = +-(sum of digit_i * 2^(bits * i)), every digit in [-2^(bits-1), 2^(bits-1)].
 *
 * Signed digits halve the number of buckets or table entries, since a point is negated for free. Two things keep the
 * digits independent of each other, so that any window can be read alone: k above r/2 is replaced by r - k, which
 * leaves 254 bits and a sign, and a constant is added once so that no borrow runs from window to window.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_CPU_DIGITS_H
#define GPU_CPU_DIGITS_H

#include <stdlib.h>

#include "numa/base.h"
#include "numa/circuit/fr.h"

#define DIGITS_BITS_MIN 2
#define DIGITS_BITS_MAX 22

#define DIGITS_WINDOWS_MAX ((255 + DIGITS_BITS_MIN - 1) / DIGITS_BITS_MIN)

/* Where a digit stands, and what is taken off it. */
struct digits_place {
    uint8_t word, shift;
    uint32_t mask;
    int32_t half;
};

struct digits {
    unsigned bits, windows;
    unsigned wide; /* the first so many have `bits` bits, others one less, the last what is left */
    uint64_t bias[4]; /* half of what it counts to, in each window but the last */
    struct digits_place places[DIGITS_WINDOWS_MAX];
};

/* A scalar ready to be read: |k| + bias, the sign in the highest bit, and nothing that counts behind it. */
struct recoded {
    uint64_t l[5];
};

/* Where a window begins. */
static inline unsigned digits_at(const struct digits *d, unsigned window)
{
    return d->bits * window - (window > d->wide ? window - d->wide : 0);
}

static inline void digits_places(struct digits *d)
{
    for (unsigned w = 0; w < d->windows; w++) {
        const bool last = w + 1 == d->windows;
        const unsigned at = digits_at(d, w), end = last ? 255 : digits_at(d, w + 1);
        const uint32_t half = last ? 0 : UINT32_C(1) << (end - at - 1);
        d->places[w] = (struct digits_place){.word = (uint8_t)(at / 64),
                                             .shift = (uint8_t)(at % 64),
                                             /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): 32 bits at most */
                                             .mask = (uint32_t)((UINT64_C(1) << (end - at)) - 1),
                                             .half = (int32_t)half};
        d->bias[(end - 1) / 64] |= (uint64_t)!last << (end - 1) % 64;
    }
}

/* Windows of `bits` bits, the last one of what is left. */
static inline void digits_init(struct digits *d, unsigned bits)
{
    *d = (struct digits){.bits = bits, .windows = (255 + bits - 1) / bits};
    d->wide = d->windows;
    digits_places(d);
}

/* So many windows, of nearly the same length. */
static inline void digits_init_even(struct digits *d, unsigned windows)
{
    *d = (struct digits){.bits = (255 + windows - 1) / windows, .windows = windows};
    d->wide = windows - (d->bits * windows - 255);
    digits_places(d);
}

/* Digits of a window are at most 2^this in size. */
static inline unsigned digits_log2_max(const struct digits *d, unsigned window)
{
    return d->bits - 1 - (window >= d->wide);
}

/* Adds the bias to a canonical value that is at most (r - 1) / 2, and notes the sign. */
static inline void digits_recode(const struct digits *d, struct recoded *out,
                                 const uint64_t magnitude[4], bool negative)
{
    unsigned __int128 carry = 0;

    for (int i = 0; i < 4; i++) {
        carry += (unsigned __int128)magnitude[i] + d->bias[i];
        out->l[i] = (uint64_t)carry;
        carry >>= 64;
    }
    out->l[3] |= (uint64_t)negative << 63;
    out->l[4] = 0;
}

/* The canonical value of *s or of -*s, whichever is smaller; *negative tells which. */
static inline void digits_magnitude(uint64_t out[4], bool *negative, const fr_t *s)
{
    static const uint64_t r[4] = {0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805,
                                  0x73eda753299d7d48};
    uint64_t k[4], flipped[4];
    unsigned char borrow = 0, smaller = 0;

    blst_uint64_from_fr(k, s);
    for (int i = 0; i < 4; i++) {
        unsigned __int128 d = (unsigned __int128)r[i] - k[i] - borrow;
        flipped[i] = (uint64_t)d;
        borrow = (unsigned char)(d >> 64 & 1);
    }
    for (int i = 0; i < 4; i++) /* flipped < k? */
        smaller = (unsigned char)(((unsigned __int128)flipped[i] - k[i] - smaller) >> 64 & 1);
    *negative = smaller;
    memcpy(out, smaller ? flipped : k, sizeof(k));
}

static inline bool digits_negative(const struct recoded *s)
{
    return s->l[3] >> 63;
}

/* Digit `window` of |k|; its sign is to be turned where digits_negative. */
static inline int32_t digits_get(const struct digits *d, const struct recoded *s, unsigned window)
{
    const struct digits_place *p = &d->places[window];
    const uint64_t v = s->l[p->word] >> p->shift | s->l[p->word + 1] << 1 << (63 - p->shift);

    return (int32_t)(v & p->mask) - p->half;
}

#endif
