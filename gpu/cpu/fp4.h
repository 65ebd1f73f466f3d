/*
 * Four elements of F_p side by side, for CPUs with AVX2 and FMA: what includes this is compiled with -mavx2 -mfma.
 *
 * An element is eight limbs of 48 bits, each a signed integer in a double. R is 2^384, so values are those of
 * blst's Montgomery form and only their cut is another. A product of two limbs has up to 96 bits; a fused multiply-add
 * to a large constant rounds it to a multiple of 2^48, and a second one gives the rest, exactly. Doubles leave room
 * above 48 bits, so that sums and differences need not be carried:
 *
 *   tidy     limbs up to 2^47 + 2^5 in size: what products and fp4_carry give
 *   loose    limbs below 2^48 in size: coordinates as loaded, differences of two of them
 *
 * Loose elements may be multiplied; an element may be several times p in size, of either sign.
 *
 * Measured on Zen 3 at 3 GHz: 24 ns a product, where blst's scalar one takes 43. Tried and not better: a chain of
 * eight Montgomery steps instead of one product by -1/p (fewer operations, but each waits for the last), two such
 * chains interleaved, and fewer loads: there, FMA and addition share a read port and do three operations a cycle.
 */
#ifndef GPU_CPU_FP4_H
#define GPU_CPU_FP4_H

#include <immintrin.h>

#include "gpu/curve.h"

#define FP4_LIMBS 8
#define FP4_UNROLL _Pragma("GCC unroll 16")

typedef __m256d fp4_limb; /* one limb of four elements */

struct fp4 {
    fp4_limb l[FP4_LIMBS];
};

/* p in limbs of [0, 2^48) and in limbs of [-2^47, 2^47); -1/p mod 2^384. */
static const double fp4_p_unsigned[FP4_LIMBS] = {
    281474976688811.0, 194974335351294.0, 270634993844222.0, 113459389855408.0,
    83034393350847.0,  73992301405303.0,  253550359455670.0, 28591897852287.0};
static const double fp4_p_signed[FP4_LIMBS] = {
    -21845.0,         -86500641359361.0, -10839982866433.0, 113459389855409.0,
    83034393350847.0, 73992301405303.0,  -27924617254986.0, 28591897852288.0};
static const double fp4_p_inverse[FP4_LIMBS] = {
    -12885098499.0,    -41982971311628.0, 12404543642515.0, 25216540526819.0,
    -59311104271540.0, -32535193576979.0, -3760634784001.0, -54218039296341.0};

/* The sum of a column: high is FP4_ROUND plus multiples of 2^48, low what was rounded off. */
#define FP4_ROUND 0x1.8p100
#define FP4_DOWN 0x1p-48

struct fp4_column {
    fp4_limb high, low;
};

static inline fp4_limb fp4_set(double x)
{
    return _mm256_set1_pd(x);
}

/* Up to 16 products of limbs whose sizes multiply to 2^95, or 8 of 2^96, fit a column. */
static inline void fp4_accumulate(struct fp4_column *c, fp4_limb a, fp4_limb b)
{
    fp4_limb high = _mm256_fmadd_pd(a, b, c->high);
    fp4_limb rounded = _mm256_sub_pd(c->high, high);

    c->high = high;
    c->low = _mm256_add_pd(c->low, _mm256_fmadd_pd(a, b, rounded));
}

/* An empty column that takes what the column below it passes on. */
static inline struct fp4_column fp4_column(fp4_limb from_below)
{
    return (struct fp4_column){.high = fp4_set(FP4_ROUND), .low = from_below};
}

/* What the column above takes of this one's products. */
static inline fp4_limb fp4_high(const struct fp4_column *c)
{
    return _mm256_mul_pd(_mm256_sub_pd(c->high, fp4_set(FP4_ROUND)), fp4_set(FP4_DOWN));
}

/* Cuts x to +-2^47 and returns what the limb above takes. */
static inline fp4_limb fp4_cut(fp4_limb *x)
{
    fp4_limb round = fp4_set(FP4_ROUND);
    fp4_limb multiple = _mm256_sub_pd(_mm256_add_pd(*x, round), round);

    *x = _mm256_sub_pd(*x, multiple);
    return _mm256_mul_pd(multiple, fp4_set(FP4_DOWN));
}

/* Makes limbs up to 2^52 in size tidy: each passes on once, none waits for another. */
static inline void fp4_carry(struct fp4 *x)
{
    fp4_limb up[FP4_LIMBS - 1];

    FP4_UNROLL for (int i = 0; i < FP4_LIMBS - 1; i++) up[i] = fp4_cut(&x->l[i]);
    FP4_UNROLL for (int i = 1; i < FP4_LIMBS; i++) x->l[i] = _mm256_add_pd(x->l[i], up[i - 1]);
}

/* The columns of a product. */
struct fp4_wide {
    fp4_limb l[2 * FP4_LIMBS];
};

/* out = wide / 2^384: adds the multiple of p that makes the lower half zero. Of that half only the carry is needed, which is
 * its highest column rounded: the others are too small to matter. */
static inline void fp4_reduce_wide(struct fp4 *out, const struct fp4_wide *wide)
{
    struct fp4 low, m;
    struct fp4_column c;
    fp4_limb up = _mm256_setzero_pd();

    FP4_UNROLL for (int k = 0; k < FP4_LIMBS; k++)
    {
        low.l[k] = wide->l[k];
        fp4_limb next = fp4_cut(&low.l[k]);
        low.l[k] = _mm256_add_pd(low.l[k], up);
        up = next;
    }
    fp4_limb low_carry = up, high = _mm256_setzero_pd();
    up = _mm256_setzero_pd();
    /* m = low * (-1/p) mod 2^384 */
    FP4_UNROLL for (int k = 0; k < FP4_LIMBS; k++)
    {
        c = fp4_column(high);
        FP4_UNROLL for (int i = 0; i <= k; i++)
            fp4_accumulate(&c, low.l[i], fp4_set(fp4_p_inverse[k - i]));
        high = fp4_high(&c);
        m.l[k] = c.low;
        fp4_limb next = fp4_cut(&m.l[k]);
        m.l[k] = _mm256_add_pd(m.l[k], up);
        up = next;
    }
    /* The columns of m * p from the one below the highest of the lower half; of that one, what it passes on. */
    c = fp4_column(_mm256_setzero_pd());
    FP4_UNROLL for (int i = 0; i < FP4_LIMBS - 1; i++) c.high =
        _mm256_fmadd_pd(m.l[i], fp4_set(fp4_p_signed[FP4_LIMBS - 2 - i]), c.high);
    high = fp4_high(&c);
    c = fp4_column(_mm256_add_pd(high, low.l[FP4_LIMBS - 1]));
    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++)
        fp4_accumulate(&c, m.l[i], fp4_set(fp4_p_signed[FP4_LIMBS - 1 - i]));
    high = fp4_high(&c);
    up = _mm256_add_pd(fp4_cut(&c.low), low_carry);
    FP4_UNROLL for (int k = FP4_LIMBS; k < 2 * FP4_LIMBS - 1; k++)
    {
        c = fp4_column(_mm256_add_pd(high, wide->l[k]));
        FP4_UNROLL for (int i = k - FP4_LIMBS + 1; i < FP4_LIMBS; i++)
            fp4_accumulate(&c, m.l[i], fp4_set(fp4_p_signed[k - i]));
        high = fp4_high(&c);
        fp4_limb next = fp4_cut(&c.low);
        out->l[k - FP4_LIMBS] = _mm256_add_pd(c.low, up);
        up = next;
    }
    out->l[FP4_LIMBS - 1] = _mm256_add_pd(_mm256_add_pd(high, wide->l[2 * FP4_LIMBS - 1]), up);
}

static inline void fp4_mul_wide(struct fp4_wide *wide, const struct fp4 *a, const struct fp4 *b)
{
    fp4_limb high = _mm256_setzero_pd();

    FP4_UNROLL for (int k = 0; k < 2 * FP4_LIMBS - 1; k++)
    {
        struct fp4_column c = fp4_column(high);
        FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) if (k - i >= 0 && k - i < FP4_LIMBS)
            fp4_accumulate(&c, a->l[i], b->l[k - i]);
        high = fp4_high(&c);
        wide->l[k] = c.low;
    }
    wide->l[2 * FP4_LIMBS - 1] = high;
}

static inline void fp4_sqr_wide(struct fp4_wide *wide, const struct fp4 *a)
{
    fp4_limb high = _mm256_setzero_pd();
    struct fp4 twice;

    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) twice.l[i] = _mm256_add_pd(a->l[i], a->l[i]);
    FP4_UNROLL for (int k = 0; k < 2 * FP4_LIMBS - 1; k++)
    {
        struct fp4_column c = fp4_column(high);
        FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) if (k - i > i && k - i < FP4_LIMBS)
            fp4_accumulate(&c, twice.l[i], a->l[k - i]);
        if (k % 2 == 0)
            fp4_accumulate(&c, a->l[k / 2], a->l[k / 2]);
        high = fp4_high(&c);
        wide->l[k] = c.low;
    }
    wide->l[2 * FP4_LIMBS - 1] = high;
}

/* Not inlined: a product is a thousand instructions, and a loop over five copies leaves the op cache. Factors are
 * loose; out is tidy, and may be one of them. */
static __attribute__((noinline)) void fp4_mul(struct fp4 *out, const struct fp4 *a,
                                              const struct fp4 *b)
{
    struct fp4_wide wide;

    fp4_mul_wide(&wide, a, b);
    fp4_reduce_wide(out, &wide);
}

static __attribute__((noinline)) void fp4_sqr(struct fp4 *out, const struct fp4 *a)
{
    struct fp4_wide wide;

    fp4_sqr_wide(&wide, a);
    fp4_reduce_wide(out, &wide);
}

static inline void fp4_add(struct fp4 *out, const struct fp4 *a, const struct fp4 *b)
{
    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) out->l[i] = _mm256_add_pd(a->l[i], b->l[i]);
}

static inline void fp4_sub(struct fp4 *out, const struct fp4 *a, const struct fp4 *b)
{
    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) out->l[i] = _mm256_sub_pd(a->l[i], b->l[i]);
}

/* x becomes p - x in the lanes whose mask is all ones; x has limbs of [0, 2^48). */
static inline void fp4_negate(struct fp4 *x, fp4_limb mask)
{
    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) x->l[i] =
        _mm256_blendv_pd(x->l[i], _mm256_sub_pd(fp4_set(fp4_p_unsigned[i]), x->l[i]), mask);
}

static inline void fp4_transpose(fp4_limb r[4])
{
    fp4_limb a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    fp4_limb c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);

    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

/* Four limbs of 48 bits from 24 bytes: 12 of them from `low` on, 12 that end with the 16 from `high` on, or begin there. */
static inline fp4_limb fp4_unpack(const uint8_t *low, const uint8_t *high, __m256i order)
{
    __m256i bytes =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                _mm_loadu_si128((const __m128i *)high), 1);

    return _mm256_castsi256_pd(_mm256_shuffle_epi8(bytes, order));
}

/* Limbs of [0, 2^48). The elements are canonical. */
static inline void fp4_load(struct fp4 *out, const fp_t *const in[4])
{
    const __m256i begin = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1, 0,
                                           1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1);
    const __m256i end = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1, 4, 5,
                                         6, 7, 8, 9, -1, -1, 10, 11, 12, 13, 14, 15, -1, -1);
    const fp4_limb magic = fp4_set(0x1p52);

    FP4_UNROLL for (int lane = 0; lane < 4; lane++)
    {
        const uint8_t *p = (const uint8_t *)in[lane];
        out->l[lane] = fp4_unpack(p, p + 12, begin);
        out->l[4 + lane] = fp4_unpack(p + 24, p + 32, end);
    }
    fp4_transpose(out->l);
    fp4_transpose(out->l + 4);
    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) out->l[i] =
        _mm256_sub_pd(_mm256_or_pd(out->l[i], magic), magic);
}

/* Subtracts p from an element below 2p that is not below p. */
static inline void fp_subtract_p(fp_t *x)
{
    static const uint64_t p[6] = {0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624,
                                  0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a};
    fp_t difference;
    uint64_t borrow = 0;

    for (int i = 0; i < 6; i++) {
        unsigned __int128 d = (unsigned __int128)x->l[i] - p[i] - borrow;
        difference.l[i] = (uint64_t)d;
        borrow = (uint64_t)(d >> 64) & 1;
    }
    if (!borrow)
        *x = difference;
}

/* Subtracts the multiple of p that leaves [0, p), but for a value within 2^-38 of the upper end, of which it may take one
 * too few. x is in (-3p, 4p), its limbs below 2^51 in size. */
static inline void fp4_subtract_multiple(struct fp4 *x)
{
    const fp4_limb three = fp4_set(3), to_quotient = fp4_set(0x1.3b06ba5e7993dp-45 * (1 - 0x1p-39));

    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) x->l[i] =
        _mm256_fmadd_pd(three, fp4_set(fp4_p_unsigned[i]), x->l[i]);
    fp4_limb top = _mm256_fmadd_pd(x->l[6], fp4_set(FP4_DOWN), x->l[7]);
    fp4_limb quotient = _mm256_floor_pd(_mm256_mul_pd(top, to_quotient));
    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++) x->l[i] =
        _mm256_fnmadd_pd(quotient, fp4_set(fp4_p_unsigned[i]), x->l[i]);
}

/* The limbs of a non-negative value, brought into [0, 2^48) from below upward, as integers. */
static inline void fp4_to_integers(__m256i out[FP4_LIMBS], const struct fp4 *x)
{
    /* 2^52 + 2^51 makes the integer readable in the mantissa, 2^51 above zero: eight units of the limb above, which does
     * without them. */
    const __m256i mantissa = _mm256_set1_epi64x((INT64_C(1) << 52) - 1);
    const __m256i limb = _mm256_set1_epi64x((INT64_C(1) << 48) - 1);
    __m256i carry = _mm256_setzero_si256();

    FP4_UNROLL for (int i = 0; i < FP4_LIMBS; i++)
    {
        fp4_limb readable = _mm256_add_pd(x->l[i], fp4_set(0x1.8p52 - (i ? 8 : 0)));
        __m256i v = _mm256_and_si256(_mm256_castpd_si256(readable), mantissa);
        v = _mm256_add_epi64(v, carry);
        carry = _mm256_srli_epi64(v, 48);
        out[i] = _mm256_and_si256(v, limb);
    }
}

/* Joins four limbs into three words. */
static inline void fp4_join(__m256i out[3], const __m256i in[4])
{
    out[0] = _mm256_or_si256(in[0], _mm256_slli_epi64(in[1], 48));
    out[1] = _mm256_or_si256(_mm256_srli_epi64(in[1], 16), _mm256_slli_epi64(in[2], 32));
    out[2] = _mm256_or_si256(_mm256_srli_epi64(in[2], 32), _mm256_slli_epi64(in[3], 16));
}

/* Writes canonical elements. The values are in (-3p, 4p), their limbs below 2^50 in size. */
static inline void fp4_store(fp_t *const out[4], const struct fp4 *in)
{
    struct fp4 x = *in;
    __m256i limbs[FP4_LIMBS], words[8];
    fp4_limb rows[8];

    fp4_subtract_multiple(&x);
    fp4_to_integers(limbs, &x);
    fp4_join(words, limbs);
    fp4_join(words + 3, limbs + 4);
    words[6] = words[7] = _mm256_setzero_si256();
    FP4_UNROLL for (int i = 0; i < 8; i++) rows[i] = _mm256_castsi256_pd(words[i]);
    fp4_transpose(rows);
    fp4_transpose(rows + 4);
    FP4_UNROLL for (int lane = 0; lane < 4; lane++)
    {
        _mm256_storeu_pd((double *)out[lane]->l, rows[lane]);
        _mm_storeu_pd((double *)(out[lane]->l + 4), _mm256_castpd256_pd128(rows[4 + lane]));
    }
    /* Within 2^-38 of p: once in hundreds of billions for random values, and for zero. */
    __m256i near = _mm256_cmpgt_epi64(limbs[7], _mm256_set1_epi64x(28591897852286));
    int mask = _mm256_movemask_pd(_mm256_castsi256_pd(near));
    for (int lane = 0; mask; lane++, mask >>= 1)
        if (mask & 1)
            fp_subtract_p(out[lane]);
}

#endif
