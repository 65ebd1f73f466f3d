/*
 * Two passes over a batch around one inversion. The body is written once, in batch_add_impl.h, over names of the
 * coordinate field, and compiled for both groups: the same steps, and no call through a pointer inside them.
 */
#include "gpu/cpu/batch_add.h"

#include "gpu/cpu/batch_add_avx2.h"
#include "gpu/cpu/features.h"

enum step {
    STEP_CHORD,   /* two points with different x */
    STEP_TANGENT, /* twice the same point */
    STEP_DONE,    /* the sum is written: it needed no division */
};

static inline bool fp_is_zero(const fp_t *a)
{
    return (a->l[0] | a->l[1] | a->l[2] | a->l[3] | a->l[4] | a->l[5]) == 0;
}

static inline bool fp2_is_zero(const fp2_t *a)
{
    return fp_is_zero(&a->fp[0]) && fp_is_zero(&a->fp[1]);
}

static fp_t fp_one(void)
{
    static const uint64_t one[6] = {1};
    fp_t out;

    blst_fp_from_uint64(&out, one);
    return out;
}

static fp2_t fp2_one(void)
{
    fp2_t out = {.fp = {fp_one()}};

    return out;
}

#define GROUP g1
#define FIELD fp
#include "gpu/cpu/batch_add_impl.h"

#define GROUP g2
#define FIELD fp2
#include "gpu/cpu/batch_add_impl.h"

/* Whether the chord formula adds this pair, told without reading more than a word of each point: points with the same x
 * or at infinity never pass, and hardly any other fails. */
static inline bool g1_chord_surely(const struct add_pair *pair)
{
    const g1_affine_t *a = pair->a, *b = pair->b;

    return a->x.l[0] != b->x.l[0] && a->x.l[0] != 0 && b->x.l[0] != 0;
}

/* Chords go four side by side, what remains one by one. */
static void g1_add_batch_wide(const struct add_pair *pairs, size_t len,
                              const struct add_pairs_next *next, struct batch_scratch *s)
{
    size_t chords = 0, others = 0;

    for (size_t i = 0; i < len; i++) {
        if (g1_chord_surely(&pairs[i]))
            s->chords[chords++] = &pairs[i];
        else
            s->others[others++] = pairs[i];
    }
    while (chords % 4)
        s->others[others++] = *s->chords[--chords];
    g1_add_chords_avx2(s->chords, chords, next, s);
    g1_add_batch(s->others, others, NULL, s);
}

/* What follows piece [at, at + n) of pairs: more of them, or what the caller said comes next. */
static struct add_pairs_next following(const struct add_pair *pairs, size_t len, size_t end,
                                       const struct add_pair *next, size_t next_len, size_t max)
{
    if (end < len)
        return (struct add_pairs_next){pairs + end, min_size(max, len - end)};
    return (struct add_pairs_next){next, min_size(max, next_len)};
}

void g1_add_pairs_ahead(const struct add_pair *pairs, size_t len, const struct add_pair *next,
                        size_t next_len, struct batch_scratch *scratch)
{
    const size_t max = BATCH_ADD_LEN_G1;
    bool wide = cpu_has_avx2();

    for (size_t i = 0; i < len; i += max) {
        size_t n = min_size(max, len - i);
        struct add_pairs_next after = following(pairs, len, i + n, next, next_len, max);
        (wide ? g1_add_batch_wide : g1_add_batch)(pairs + i, n, &after, scratch);
    }
}

void g2_add_pairs_ahead(const struct add_pair *pairs, size_t len, const struct add_pair *next,
                        size_t next_len, struct batch_scratch *scratch)
{
    const size_t max = BATCH_ADD_LEN_G2;

    for (size_t i = 0; i < len; i += max) {
        size_t n = min_size(max, len - i);
        struct add_pairs_next after = following(pairs, len, i + n, next, next_len, max);
        g2_add_batch(pairs + i, n, &after, scratch);
    }
}

void g1_add_pairs(const struct add_pair *pairs, size_t len, struct batch_scratch *scratch)
{
    g1_add_pairs_ahead(pairs, len, NULL, 0, scratch);
}

void g2_add_pairs(const struct add_pair *pairs, size_t len, struct batch_scratch *scratch)
{
    g2_add_pairs_ahead(pairs, len, NULL, 0, scratch);
}
