/*
 * Eight elements of F_r side by side, for CPUs with AVX-512 IFMA: what includes this is compiled for them.
 *
 * An element is five limbs of 52 bits in 64-bit lanes. R is 2^260. Elements are blst's, times 2^256; factors are times 2^260
 * (fr_factor.h), so that a product of the two is blst's again. 2^260 is 35 r: sums and differences of a whole transform stay
 * below it without being reduced.
 *
 *   loose   limbs below 2^62 in size, of either sign, of a value in [0, 2^260)
 *   tidy    limbs in [0, 2^52): what fr8_carry makes of loose ones, what may be multiplied
 */
#ifndef GPU_CPU_FR8_H
#define GPU_CPU_FR8_H

#include <immintrin.h>

#include "gpu/cpu/fr_factor.h"

#define FR8_LIMBS FR_FACTOR52_LIMBS
#define FR8_BITS FR_FACTOR52_BITS
#define FR8_UNROLL _Pragma("GCC unroll 10")

struct fr8 {
    __m512i l[FR8_LIMBS];
};

/* r; 2^260 - r; -1/r mod 2^52. */
static const uint64_t fr8_r[FR8_LIMBS] = {0xfffff00000001, 0x02fffe5bfefff, 0x9a1d80553bda4,
                                          0x7d483339d8080, 0x073eda753299d};
static const uint64_t fr8_complement[FR8_LIMBS] = {
    0x00000ffffffff, 0xfd0001a401000, 0x65e27faac425b, 0x82b7ccc627f7f, 0xf8c1258acd662};
#define FR8_MINUS_R_INVERSE 0xffffeffffffff
#define FR8_QUOTIENT 0x8d54253b7fb6e /* 2^98 / (r / 2^208 + 1), rounded down */

static inline __m512i fr8_set(uint64_t x)
{
    return _mm512_set1_epi64((long long)x);
}

static inline __m512i fr8_mask(void)
{
    return fr8_set((UINT64_C(1) << FR8_BITS) - 1);
}

static inline void fr8_carry(struct fr8 *x)
{
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS - 1; i++)
    {
        x->l[i + 1] = _mm512_add_epi64(x->l[i + 1], _mm512_srai_epi64(x->l[i], FR8_BITS));
        x->l[i] = _mm512_and_si512(x->l[i], fr8_mask());
    }
}

static inline void fr8_add(struct fr8 *out, const struct fr8 *a, const struct fr8 *b)
{
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) out->l[i] = _mm512_add_epi64(a->l[i], b->l[i]);
}

/* a - b + 2 r; b is a product. */
static inline void fr8_sub(struct fr8 *out, const struct fr8 *a, const struct fr8 *b)
{
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) out->l[i] =
        _mm512_sub_epi64(_mm512_add_epi64(a->l[i], fr8_set(2 * fr8_r[i])), b->l[i]);
}

/* Six columns of a product under way. */
struct fr8_columns {
    __m512i l[FR8_LIMBS + 1];
};

/* Adds x times one limb of the factor, then the multiple of r that clears the lowest column, and moves all down by one. */
static inline void fr8_step(struct fr8_columns *c, const struct fr8 *x, __m512i limb)
{
    FR8_UNROLL for (int j = 0; j < FR8_LIMBS; j++) c->l[j] =
        _mm512_madd52lo_epu64(c->l[j], x->l[j], limb);
    __m512i low = c->l[0];
    __m512i m = _mm512_madd52lo_epu64(_mm512_setzero_si512(), low, fr8_set(FR8_MINUS_R_INVERSE));
    FR8_UNROLL for (int j = 0; j < FR8_LIMBS; j++) c->l[j + 1] =
        _mm512_madd52hi_epu64(c->l[j + 1], x->l[j], limb);
    /* Column and half product have 0 or 2^52 in their lower bits together. */
    c->l[1] =
        _mm512_add_epi64(c->l[1], _mm512_srli_epi64(_mm512_add_epi64(low, fr8_mask()), FR8_BITS));
    FR8_UNROLL for (int j = 1; j < FR8_LIMBS; j++) c->l[j] =
        _mm512_madd52lo_epu64(c->l[j], m, fr8_set(fr8_r[j]));
    FR8_UNROLL for (int j = 0; j < FR8_LIMBS; j++) c->l[j] =
        _mm512_madd52hi_epu64(c->l[j + 1], m, fr8_set(fr8_r[j]));
    c->l[FR8_LIMBS] = _mm512_setzero_si512();
}

/* out = x * factor / R, loose. x is tidy and the factor below r, then out is below 2 r; of x below 2 r and a factor below 2 r it is
 * below 1.12 r. */
static inline void fr8_mul(struct fr8 *out, const struct fr8 *x, const struct fr8 *factor)
{
    struct fr8_columns c;

    FR8_UNROLL for (int i = 0; i <= FR8_LIMBS; i++) c.l[i] = _mm512_setzero_si512();
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) fr8_step(&c, x, factor->l[i]);
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) out->l[i] = c.l[i];
}

/* Two products: each fills the time in which the other waits for itself. */
static inline void fr8_mul_two(struct fr8 *out_a, const struct fr8 *a, const struct fr8 *by_a,
                               struct fr8 *out_b, const struct fr8 *b, const struct fr8 *by_b)
{
    struct fr8_columns c, d;

    FR8_UNROLL for (int i = 0; i <= FR8_LIMBS; i++) c.l[i] = d.l[i] = _mm512_setzero_si512();
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++)
    {
        fr8_step(&c, a, by_a->l[i]);
        fr8_step(&d, b, by_b->l[i]);
    }
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++)
    {
        out_a->l[i] = c.l[i];
        out_b->l[i] = d.l[i];
    }
}

/* The same factor in all lanes. */
static inline struct fr8 fr8_broadcast(const struct fr_factor52 *factor)
{
    struct fr8 out;

    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) out.l[i] = fr8_set(factor->l[i]);
    return out;
}

/* Loose becomes canonical. */
static inline void fr8_canonical(struct fr8 *x)
{
    struct fr8 less;

    fr8_carry(x);
    /* The quotient from the highest limb, at most one too small. */
    __m512i quotient = _mm512_srli_epi64(
        _mm512_madd52hi_epu64(_mm512_setzero_si512(), x->l[4], fr8_set(FR8_QUOTIENT)), 46);
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) x->l[i] =
        _mm512_madd52lo_epu64(x->l[i], quotient, fr8_set(fr8_complement[i]));
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS - 1; i++) x->l[i + 1] =
        _mm512_madd52hi_epu64(x->l[i + 1], quotient, fr8_set(fr8_complement[i]));
    fr8_carry(x);
    x->l[4] = _mm512_and_si512(x->l[4], fr8_mask()); /* quotient * 2^260 */
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) less.l[i] =
        _mm512_sub_epi64(x->l[i], fr8_set(fr8_r[i]));
    fr8_carry(&less);
    __mmask8 below = _mm512_movepi64_mask(less.l[4]);
    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) x->l[i] =
        _mm512_mask_blend_epi64(below, less.l[i], x->l[i]);
}

/* Four words of eight elements: lane l has the words of element fr8_order[l], which is what falls out of the shuffles. */
struct fr8_words {
    __m512i w[4];
};

static const uint8_t fr8_order[8] = {0, 2, 1, 3, 4, 6, 5, 7};

/* Eight elements one after another. */
static inline struct fr8_words fr8_words_load(const fr_t *in)
{
    const __m512i *rows = (const __m512i *)in;
    __m512i a = _mm512_loadu_si512(rows), b = _mm512_loadu_si512(rows + 1);
    __m512i c = _mm512_loadu_si512(rows + 2), d = _mm512_loadu_si512(rows + 3);
    __m512i ab_even = _mm512_unpacklo_epi64(a, b), ab_odd = _mm512_unpackhi_epi64(a, b);
    __m512i cd_even = _mm512_unpacklo_epi64(c, d), cd_odd = _mm512_unpackhi_epi64(c, d);

    return (struct fr8_words){
        {_mm512_shuffle_i64x2(ab_even, cd_even, 0x88), _mm512_shuffle_i64x2(ab_odd, cd_odd, 0x88),
         _mm512_shuffle_i64x2(ab_even, cd_even, 0xdd), _mm512_shuffle_i64x2(ab_odd, cd_odd, 0xdd)}};
}

/* rows[i]: elements 2 i and 2 i + 1. */
static inline void fr8_words_to_rows(__m512i rows[4], const struct fr8_words *x)
{
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    __m512i a = _mm512_unpacklo_epi64(x->w[0], x->w[1]),
            b = _mm512_unpackhi_epi64(x->w[0], x->w[1]);
    __m512i c = _mm512_unpacklo_epi64(x->w[2], x->w[3]),
            d = _mm512_unpackhi_epi64(x->w[2], x->w[3]);

    rows[0] = _mm512_permutex2var_epi64(a, low, c);
    rows[1] = _mm512_permutex2var_epi64(b, low, d);
    rows[2] = _mm512_permutex2var_epi64(a, high, c);
    rows[3] = _mm512_permutex2var_epi64(b, high, d);
}

/* 52 bits from bit `at` on. */
static inline __m512i fr8_cut(const struct fr8_words *x, int at)
{
    int word = at / 64, shift = at % 64;
    __m512i v = _mm512_srli_epi64(x->w[word], (unsigned)shift);

    if (shift > 64 - FR8_BITS && word < 3)
        v = _mm512_or_si512(v, _mm512_slli_epi64(x->w[word + 1], (unsigned)(64 - shift)));
    return _mm512_and_si512(v, fr8_mask());
}

static inline struct fr8 fr8_of_words(const struct fr8_words *x)
{
    struct fr8 out;

    FR8_UNROLL for (int i = 0; i < FR8_LIMBS; i++) out.l[i] = fr8_cut(x, FR8_BITS * i);
    return out;
}

/* Of elements a factor, 16 times them: tidy, and a product with it is below 2 r as well where the other side is below 2 r. */
static inline struct fr8 fr8_factor_of_words(const struct fr8_words *x)
{
    struct fr8 out;

    out.l[0] = _mm512_and_si512(_mm512_slli_epi64(x->w[0], 4), fr8_mask());
    FR8_UNROLL for (int i = 1; i < FR8_LIMBS; i++) out.l[i] = fr8_cut(x, FR8_BITS * i - 4);
    return out;
}

#define FR8_UP(i, n) _mm512_slli_epi64(x->l[i], n)
#define FR8_DOWN(i, n) _mm512_srli_epi64(x->l[i], n)

/* x is tidy and below 2^256. */
static inline struct fr8_words fr8_to_words(const struct fr8 *x)
{
    return (struct fr8_words){{_mm512_or_si512(x->l[0], FR8_UP(1, 52)),
                               _mm512_or_si512(FR8_DOWN(1, 12), FR8_UP(2, 40)),
                               _mm512_or_si512(FR8_DOWN(2, 24), FR8_UP(3, 28)),
                               _mm512_or_si512(FR8_DOWN(3, 36), FR8_UP(4, 16))}};
}

#undef FR8_UP
#undef FR8_DOWN

/* Writes eight canonical elements; past the caches, where they are whole lines: for what nobody reads soon. */
static inline void fr8_store(fr_t *out, const struct fr8 *x)
{
    struct fr8_words words = fr8_to_words(x);
    __m512i rows[4];

    fr8_words_to_rows(rows, &words);
    for (size_t i = 0; i < 4; i++)
        if ((uintptr_t)out % 64 == 0)
            _mm512_stream_si512((__m512i *)(void *)out + i, rows[i]);
        else
            _mm512_storeu_si512(out + 2 * i, rows[i]);
}

/* r[i] becomes what was lane i of all eight. */
static inline void fr8_transpose(__m512i r[8])
{
    __m512i pairs[8], quads[8];

    FR8_UNROLL for (int i = 0; i < 8; i += 2)
    {
        pairs[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
    }
    FR8_UNROLL for (int i = 0; i < 2; i++) /* of lanes 0, 2, 4, 6 and of lanes 1, 3, 5, 7 */
    {
        quads[i] = _mm512_shuffle_i64x2(pairs[i], pairs[i + 2], 0x88);
        quads[i + 2] = _mm512_shuffle_i64x2(pairs[i], pairs[i + 2], 0xdd);
        quads[i + 4] = _mm512_shuffle_i64x2(pairs[i + 4], pairs[i + 6], 0x88);
        quads[i + 6] = _mm512_shuffle_i64x2(pairs[i + 4], pairs[i + 6], 0xdd);
    }
    FR8_UNROLL for (int i = 0; i < 4; i++)
    {
        r[i] = _mm512_shuffle_i64x2(quads[i], quads[i + 4], 0x88);
        r[i + 4] = _mm512_shuffle_i64x2(quads[i], quads[i + 4], 0xdd);
    }
}

#endif
