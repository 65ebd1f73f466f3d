/*
 * Eight elements of F_p side by side, for CPUs with AVX-512 IFMA: what includes this is compiled for them.
 *
 * An element is eight limbs of 52 bits in 64-bit lanes. The multiply-add of IFMA takes the lower 52 bits of two limbs and adds
 * the lower or the upper half of their product to a 64-bit sum; what a limb has above its 52 bits is lost to it. R is 2^416.
 *
 *   loose    limbs below 2^61 in size, of either sign
 *   tidy     limbs 0 to 6 in [0, 2^52), the highest of either sign: what fp8_carry gives
 *   factor   tidy and not negative, below 2^31 p: what may be multiplied. One factor of two is below 4p
 *
 * A sum of products takes 16 halves a column and the reduction 16 more, below 2^57 together.
 *
 * Two instructions a cycle is all that such a CPU does on 512 bits; a product is 294 of them, 257 of these multiply-adds. Measured
 * on a Sapphire Rapids at 3 GHz: 57 ns for eight products that do not wait for one another, 65 ns for a chain of them.
 */
#ifndef GPU_CPU_FP8_H
#define GPU_CPU_FP8_H

#include <immintrin.h>

#include "gpu/curve.h"

#define FP8_LIMBS 8
#define FP8_BITS 52
#define FP8_LANES 8
#define FP8_UNROLL _Pragma("GCC unroll 16")

typedef __m512i fp8_limb; /* one limb of eight elements */

struct fp8 {
    fp8_limb l[FP8_LIMBS];
};

/* The columns of a product. */
struct fp8_wide {
    fp8_limb l[2 * FP8_LIMBS];
};

/* p; 2^-52 mod p; R mod p. */
static const uint64_t fp8_p[FP8_LIMBS] = {0xeffffffffaaab, 0xfeb153ffffb9f, 0x6b0f6241eabff,
                                          0x12bf6730d2a0f, 0x764774b84f385, 0x1ba7b6434bacd,
                                          0x1ea397fe69a4b, 0x1a011};
static const uint64_t fp8_fold[FP8_LIMBS] = {0x04be07d2027cb, 0xd7786e39002d4, 0xf51047083c4dd,
                                             0x96079a7670223, 0x04ca513044b79, 0x6615d3780ea11,
                                             0xf9a5623d6a279, 0x6803};
static const uint64_t fp8_one[FP8_LIMBS] = {0x6480ea8e9b9af, 0x65766c8fe444f, 0x8b540fea96f7d,
                                            0x3b2ee82efd422, 0xa6723e5f0ade5, 0xff6eb6fdd4230,
                                            0xe06ef23c24a25, 0x14c8e};
#define FP8_MINUS_P_INVERSE 0x3fffcfffcfffd /* -1/p mod 2^52 */
#define FP8_P_INVERSE 0xc000300030003

static inline fp8_limb fp8_set(uint64_t x)
{
    return _mm512_set1_epi64((long long)x);
}

static inline fp8_limb fp8_mask(void)
{
    return fp8_set((UINT64_C(1) << FP8_BITS) - 1);
}

/* The same limbs in all lanes. */
static inline void fp8_broadcast(struct fp8 *out, const uint64_t limbs[FP8_LIMBS])
{
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) out->l[i] = fp8_set(limbs[i]);
}

/* Limbs of n * p, which is tidy. */
static inline void fp8_multiple_of_p(struct fp8 *out, uint32_t n)
{
    unsigned __int128 carry = 0;

    for (int i = 0; i < FP8_LIMBS; i++) {
        carry += (unsigned __int128)fp8_p[i] * n;
        out->l[i] = fp8_set((uint64_t)carry & ((UINT64_C(1) << FP8_BITS) - 1));
        carry >>= FP8_BITS;
    }
}

static inline void fp8_add(struct fp8 *out, const struct fp8 *a, const struct fp8 *b)
{
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) out->l[i] = _mm512_add_epi64(a->l[i], b->l[i]);
}

static inline void fp8_sub(struct fp8 *out, const struct fp8 *a, const struct fp8 *b)
{
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) out->l[i] = _mm512_sub_epi64(a->l[i], b->l[i]);
}

/* Loose becomes tidy. */
static inline void fp8_carry(struct fp8 *x)
{
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS - 1; i++)
    {
        x->l[i + 1] = _mm512_add_epi64(x->l[i + 1], _mm512_srai_epi64(x->l[i], FP8_BITS));
        x->l[i] = _mm512_and_si512(x->l[i], fp8_mask());
    }
}

/* x becomes -x in the lanes whose bit is set; tidy becomes loose. */
static inline void fp8_negate(struct fp8 *x, __mmask8 lanes)
{
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) x->l[i] =
        _mm512_mask_sub_epi64(x->l[i], lanes, _mm512_setzero_si512(), x->l[i]);
}

/* x += n, the same n for all coordinates of an element. */
static inline void fp8_offset(struct fp8 *x, const struct fp8 *n)
{
    fp8_add(x, x, n);
}

/* x -= n */
static inline void fp8_deduct(struct fp8 *x, const struct fp8 *n)
{
    fp8_sub(x, x, n);
}

/* Lane l takes x's lane l + n, round the end. */
static inline void fp8_rotate(struct fp8 *out, const struct fp8 *x, int n)
{
    const __m512i from =
        _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), fp8_set((uint64_t)n));

    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) out->l[i] =
        _mm512_permutexvar_epi64(from, x->l[i]);
}

/* a where the bit is set, else b. */
static inline void fp8_select(struct fp8 *out, __mmask8 mask, const struct fp8 *a,
                              const struct fp8 *b)
{
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) out->l[i] =
        _mm512_mask_blend_epi64(mask, b->l[i], a->l[i]);
}

static inline void fp8_mul_wide(struct fp8_wide *wide, const struct fp8 *a, const struct fp8 *b)
{
    FP8_UNROLL for (int i = 0; i < 2 * FP8_LIMBS; i++) wide->l[i] = _mm512_setzero_si512();
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++)
    {
        fp8_limb x = b->l[i];
        FP8_UNROLL for (int j = 0; j < FP8_LIMBS; j++) wide->l[i + j] =
            _mm512_madd52lo_epu64(wide->l[i + j], a->l[j], x);
        FP8_UNROLL for (int j = 0; j < FP8_LIMBS; j++) wide->l[i + j + 1] =
            _mm512_madd52hi_epu64(wide->l[i + j + 1], a->l[j], x);
    }
}

/* Products of different limbs once, then twice, then the squares of limbs. */
static inline void fp8_sqr_wide(struct fp8_wide *wide, const struct fp8 *a)
{
    FP8_UNROLL for (int i = 0; i < 2 * FP8_LIMBS; i++) wide->l[i] = _mm512_setzero_si512();
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++)
    {
        fp8_limb x = a->l[i];
        FP8_UNROLL for (int j = i + 1; j < FP8_LIMBS; j++) wide->l[i + j] =
            _mm512_madd52lo_epu64(wide->l[i + j], a->l[j], x);
        FP8_UNROLL for (int j = i + 1; j < FP8_LIMBS; j++) wide->l[i + j + 1] =
            _mm512_madd52hi_epu64(wide->l[i + j + 1], a->l[j], x);
    }
    FP8_UNROLL for (int i = 1; i < 2 * FP8_LIMBS - 1; i++) wide->l[i] =
        _mm512_add_epi64(wide->l[i], wide->l[i]);
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++)
    {
        wide->l[2 * i] = _mm512_madd52lo_epu64(wide->l[2 * i], a->l[i], a->l[i]);
        wide->l[2 * i + 1] = _mm512_madd52hi_epu64(wide->l[2 * i + 1], a->l[i], a->l[i]);
    }
}

/* out = wide / R, not carried; columns may have either sign.
 *
 * Seven times the lowest column's 52 bits are added times 2^-52 mod p one column higher: no product is needed to find what to add,
 * so the next column waits for one multiply-add. That alone would leave the value 2^52 times too large; the last step is
 * Montgomery's own, which adds the multiple of p that clears the column. With 2^-52 mod p below 0.26 p, the result of factors a
 * and b is between 0 and a b / R + 1.26 p, and below 1.5 p where a b is below 2^33 p^2. */
static inline void fp8_reduce_wide(struct fp8 *out, struct fp8_wide *wide)
{
    fp8_limb *l = wide->l;

    FP8_UNROLL for (int i = 0; i < FP8_LIMBS - 1; i++)
    {
        fp8_limb low = l[i];
        FP8_UNROLL for (int j = 0; j < FP8_LIMBS; j++) l[i + 1 + j] =
            _mm512_madd52lo_epu64(l[i + 1 + j], low, fp8_set(fp8_fold[j]));
        l[i + 1] = _mm512_add_epi64(l[i + 1], _mm512_srai_epi64(low, FP8_BITS));
        FP8_UNROLL for (int j = 0; j < FP8_LIMBS; j++) l[i + 2 + j] =
            _mm512_madd52hi_epu64(l[i + 2 + j], low, fp8_set(fp8_fold[j]));
    }
    fp8_limb last = l[FP8_LIMBS - 1];
    fp8_limb m = _mm512_madd52lo_epu64(_mm512_setzero_si512(), last, fp8_set(FP8_MINUS_P_INVERSE));
    /* Column and lowest half product are 0 or 2^52 together in their lower bits. */
    l[FP8_LIMBS] = _mm512_add_epi64(
        l[FP8_LIMBS], _mm512_srai_epi64(_mm512_add_epi64(last, fp8_mask()), FP8_BITS));
    FP8_UNROLL for (int j = 1; j < FP8_LIMBS; j++) l[FP8_LIMBS - 1 + j] =
        _mm512_madd52lo_epu64(l[FP8_LIMBS - 1 + j], m, fp8_set(fp8_p[j]));
    FP8_UNROLL for (int j = 0; j < FP8_LIMBS; j++) out->l[j] =
        _mm512_madd52hi_epu64(l[FP8_LIMBS + j], m, fp8_set(fp8_p[j]));
}

/* out = a * b / R, a factor below 1.5 p; may be a or b. Not inlined: a loop over five copies would leave the cache of decoded
 * instructions. */
static __attribute__((noinline)) void fp8_mul(struct fp8 *out, const struct fp8 *a,
                                              const struct fp8 *b)
{
    struct fp8_wide wide;

    fp8_mul_wide(&wide, a, b);
    fp8_reduce_wide(out, &wide);
    fp8_carry(out);
}

/* The same without the last carry: for what is added to before it is carried. */
static __attribute__((noinline)) void fp8_mul_loose(struct fp8 *out, const struct fp8 *a,
                                                    const struct fp8 *b)
{
    struct fp8_wide wide;

    fp8_mul_wide(&wide, a, b);
    fp8_reduce_wide(out, &wide);
}

static __attribute__((noinline)) void fp8_sqr_loose(struct fp8 *out, const struct fp8 *a)
{
    struct fp8_wide wide;

    fp8_sqr_wide(&wide, a);
    fp8_reduce_wide(out, &wide);
}

/* Lanes that are zero modulo p; x is a factor below 2^31 p. A multiple n p has the lowest limb of n p, which times 1/p is n: few
 * other values have such a lowest limb, and those are reduced to find out. */
static inline __mmask8 fp8_maybe_zero(const struct fp8 *x)
{
    fp8_limb n = _mm512_madd52lo_epu64(_mm512_setzero_si512(), x->l[0], fp8_set(FP8_P_INVERSE));

    return _mm512_cmplt_epu64_mask(n, fp8_set(UINT64_C(1) << 31));
}

/* x, a tidy value in [0, 2p), becomes canonical. */
static inline void fp8_canonical(struct fp8 *x)
{
    struct fp8 p, less;

    fp8_broadcast(&p, fp8_p);
    fp8_sub(&less, x, &p);
    fp8_carry(&less);
    fp8_select(x, _mm512_movepi64_mask(less.l[FP8_LIMBS - 1]), x, &less);
}

/* out = x * k / R */
static inline void fp8_scale(struct fp8 *out, const struct fp8 *x, const struct fp8 *k)
{
    fp8_mul(out, x, k);
}

/* Of all lanes; x is a factor. */
static inline __mmask8 fp8_is_zero(const struct fp8 *x)
{
    struct fp8 one, y;
    fp8_limb bits = _mm512_setzero_si512();

    fp8_broadcast(&one, fp8_one);
    fp8_mul(&y, x, &one);
    fp8_canonical(&y);
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) bits = _mm512_or_si512(bits, y.l[i]);
    return _mm512_testn_epi64_mask(bits, bits);
}

/* Words `at` and `at` + 1 of every second element from in[first] on. */
static inline __m512i fp8_pairs_of_words(const fp_t *const in[FP8_LANES], int first, int at)
{
#define FP8_PAIR(i) _mm_loadu_si128((const __m128i *)(in[first + (i)]->l + at))
    __m512i out = _mm512_broadcast_i64x2(FP8_PAIR(0));

    out = _mm512_mask_broadcast_i64x2(out, 0x0c, FP8_PAIR(2));
    out = _mm512_mask_broadcast_i64x2(out, 0x30, FP8_PAIR(4));
    return _mm512_mask_broadcast_i64x2(out, 0xc0, FP8_PAIR(6));
#undef FP8_PAIR
}

/* 52 bits from bit `at` on, which may be negative, of the values whose words are w[0..5]. */
static inline __attribute__((always_inline)) fp8_limb fp8_cut(const __m512i w[6], int at)
{
    int word = at < 0 ? 0 : at / 64, shift = at < 0 ? 0 : at % 64;
    __m512i v = at < 0 ? _mm512_slli_epi64(w[0], (unsigned)-at) : w[word];

    if (shift)
        v = _mm512_srli_epi64(v, (unsigned)shift);
    if (shift > 64 - FP8_BITS && word < 5)
        v = _mm512_or_si512(v, _mm512_slli_epi64(w[word + 1], (unsigned)(64 - shift)));
    return _mm512_and_si512(v, fp8_mask());
}

/* *in[l] * 2^shift into lane l: a factor below 2^shift p. shift is at most 31. */
static inline __attribute__((always_inline)) void
fp8_load(struct fp8 *out, const fp_t *const in[FP8_LANES], int shift)
{
    __m512i w[6];

    FP8_UNROLL for (int i = 0; i < 6; i += 2)
    {
        __m512i even = fp8_pairs_of_words(in, 0, i), odd = fp8_pairs_of_words(in, 1, i);
        w[i] = _mm512_unpacklo_epi64(even, odd);
        w[i + 1] = _mm512_unpackhi_epi64(even, odd);
    }
    FP8_UNROLL for (int i = 0; i < FP8_LIMBS; i++) out->l[i] = fp8_cut(w, FP8_BITS * i - shift);
}

#define FP8_UP(i, n) _mm512_slli_epi64(x->l[i], n)
#define FP8_DOWN(i, n) _mm512_srli_epi64(x->l[i], n)

/* Writes a canonical element to *out[l] from every lane whose bit is set. */
static inline void fp8_store(fp_t *const out[FP8_LANES], const struct fp8 *x, __mmask8 lanes)
{
    __m512i w[6];

    w[0] = _mm512_or_si512(x->l[0], FP8_UP(1, 52));
    w[1] = _mm512_or_si512(FP8_DOWN(1, 12), FP8_UP(2, 40));
    w[2] = _mm512_or_si512(FP8_DOWN(2, 24), FP8_UP(3, 28));
    w[3] = _mm512_or_si512(FP8_DOWN(3, 36), FP8_UP(4, 16));
    w[4] = _mm512_or_si512(_mm512_or_si512(FP8_DOWN(4, 48), FP8_UP(5, 4)), FP8_UP(6, 56));
    w[5] = _mm512_or_si512(FP8_DOWN(6, 8), FP8_UP(7, 44));
    for (int i = 0; i < 6; i++) {
        uint64_t lane[FP8_LANES];
        _mm512_storeu_si512(lane, w[i]);
        for (int l = 0; l < FP8_LANES; l++)
            if (lanes >> l & 1)
                out[l]->l[i] = lane[l];
    }
}

#undef FP8_UP
#undef FP8_DOWN

#endif
