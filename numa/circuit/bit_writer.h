/*
 * Writes variables of a compact witness in the order of their allocation: bits into a bitmap, values into an array.
 *
 * Several writers may fill the same arrays side by side, each a range of its own: words of the bitmap that ranges
 * share are written by atomic or, so the bitmap must be zero beforehand. A writer belongs to one thread.
 */
#ifndef CIRCUIT_BIT_WRITER_H
#define CIRCUIT_BIT_WRITER_H

#include "numa/circuit/fr.h"

struct bit_writer {
    uint64_t *word;  /* where `pending` belongs */
    uint64_t *first; /* the first word, which may be shared */
    uint64_t pending;
    unsigned fill; /* bits of the word that are behind us, < 64 */
    fr_t *value;   /* where the next value goes */
};

/* From bit `at` of the bitmap on. */
static inline struct bit_writer bit_writer_at(uint64_t *bitmap, uint32_t at, fr_t *values)
{
    return (struct bit_writer){
        .word = bitmap + at / 64, .first = bitmap + at / 64, .fill = at % 64, .value = values};
}

static inline void bit_writer_flush_word(struct bit_writer *w)
{
    if (w->word == w->first)
        __atomic_fetch_or(w->word, w->pending, __ATOMIC_RELAXED);
    else
        *w->word = w->pending;
    w->word++;
}

/* The `len` low bits of `bits`, 1 <= len <= 64; those above are zero. */
static inline void bit_writer_put(struct bit_writer *w, uint64_t bits, unsigned len)
{
    const unsigned fill = w->fill + len;

    w->pending |= bits << w->fill;
    if (fill >= 64) {
        bit_writer_flush_word(w);
        w->pending = fill > 64 ? bits >> (64 - w->fill) : 0;
    }
    w->fill = fill % 64;
}

/* `len` variables that are no bits: their places in the bitmap stay zero. */
static inline void bit_writer_skip(struct bit_writer *w, uint32_t len)
{
    uint32_t fill = w->fill + len;

    for (; fill >= 64; fill -= 64) {
        bit_writer_flush_word(w);
        w->pending = 0;
    }
    w->fill = fill;
}

static inline const fr_t *bit_writer_put_value(struct bit_writer *w, const fr_t *value)
{
    bit_writer_skip(w, 1);
    *w->value = *value;
    return w->value++;
}

/* Writes what is pending. */
static inline void bit_writer_end(struct bit_writer *w)
{
    if (w->pending)
        __atomic_fetch_or(w->word, w->pending, __ATOMIC_RELAXED);
    w->pending = 0;
}

/* How many bits have been passed since the beginning of `bitmap`. */
static inline uint32_t bit_writer_tell(const struct bit_writer *w, const uint64_t *bitmap)
{
    return (uint32_t)((w->word - bitmap) * 64 + w->fill);
}

#endif
