/*
 * Four elements of F_r side by side, for CPUs with AVX2: what includes this is compiled with -mavx2.
 *
 * An element is ten limbs of 26 bits in 32-bit lanes, two limbs to a 64-bit lane: limb i below, limb i + 5 above. The six
 * spare bits take the sums and differences of a whole transform, so that nothing is carried before a product, which
 * carries anyway. r is 1 modulo 2^32: a step of Montgomery's reduction needs no product to find its multiple of r.
 *
 *   tidy     limbs below 2^26, what products give; a factor must be, and so must what is subtracted
 *   loose    limbs below 2^32, value below 66r
 *
 * R is 2^260. Elements are blst's, times 2^256; factors are times 2^260 (fr_factor.h), so that a product of the two is
 * blst's again.
 */
#ifndef GPU_CPU_FR4_H
#define GPU_CPU_FR4_H

#include <immintrin.h>

#include "gpu/cpu/fr_factor.h"

#define FR4_LIMBS FR_FACTOR_LIMBS
#define FR4_BITS FR_FACTOR_BITS
#define FR4_UNROLL _Pragma("GCC unroll 10")

struct fr4 {
    __m256i l[FR4_LIMBS / 2];
};

/* r, 2^260 - r, and 4r with limbs that no tidy element below 4r exceeds anywhere. */
static const uint32_t fr4_r[FR4_LIMBS] = {0x1,       0x3ffffc0, 0x1bfefff, 0xbfff9,   0x153bda4,
                                          0x2687601, 0x39d8080, 0x1f520cc, 0x353299d, 0x1cfb69};
static const uint32_t fr4_complement[FR4_LIMBS] = {0x3ffffff, 0x3f,      0x2401000, 0x3f40006,
                                                   0x2ac425b, 0x19789fe, 0x627f7f,  0x20adf33,
                                                   0xacd662,  0x3e30496};
static const uint32_t fr4_four_r[FR4_LIMBS] = {0x4000004, 0x7fffeff, 0x6ffbffe, 0x42fffe4,
                                               0x54ef68f, 0x5a1d804, 0x6760201, 0x7d48332,
                                               0x54ca674, 0x73eda6};

static inline __m256i fr4_mask(void)
{
    return _mm256_set1_epi64x(((int64_t)1 << FR4_BITS) - 1);
}

static inline __m256i fr4_set(uint32_t limb)
{
    return _mm256_set1_epi64x(limb);
}

/* Ten limbs of up to 63 bits, each in 64-bit lanes: what sums of products are. */
struct fr4_columns {
    __m256i l[FR4_LIMBS];
};

/* Carries from below upward; the highest limb keeps what is left. */
static inline void fr4_carry(struct fr4_columns *c)
{
    FR4_UNROLL for (int i = 0; i < FR4_LIMBS - 1; i++)
    {
        c->l[i + 1] = _mm256_add_epi64(c->l[i + 1], _mm256_srli_epi64(c->l[i], FR4_BITS));
        c->l[i] = _mm256_and_si256(c->l[i], fr4_mask());
    }
}

static inline struct fr4 fr4_pack(const struct fr4_columns *c)
{
    struct fr4 out;

    FR4_UNROLL for (int i = 0; i < FR4_LIMBS / 2; i++) out.l[i] =
        _mm256_or_si256(c->l[i], _mm256_slli_epi64(c->l[i + 5], 32));
    return out;
}

static inline struct fr4_columns fr4_unpack(const struct fr4 *x)
{
    struct fr4_columns out;

    FR4_UNROLL for (int i = 0; i < FR4_LIMBS / 2; i++)
    {
        out.l[i] = _mm256_and_si256(x->l[i], _mm256_set1_epi64x(0xffffffff));
        out.l[i + 5] = _mm256_srli_epi64(x->l[i], 32);
    }
    return out;
}

/* Keeps the compiler from putting a sum off: it would compute all products of a step first and have no registers for
 * them. */
static inline void fr4_settle(__m256i *sum)
{
    __asm__("" : "+x"(*sum));
}

/* One step of a product: adds x times one limb of the factor, then the multiple of r that clears the lowest limb, and moves
 * all limbs down by one. */
static inline void fr4_step(struct fr4_columns *c, const struct fr4_columns *x, __m256i limb)
{
    FR4_UNROLL for (int j = 0; j < FR4_LIMBS; j++)
    {
        c->l[j] = _mm256_add_epi64(c->l[j], _mm256_mul_epu32(x->l[j], limb));
        fr4_settle(&c->l[j]);
    }
    __m256i m = _mm256_and_si256(_mm256_sub_epi64(_mm256_setzero_si256(), c->l[0]), fr4_mask());
    __m256i carry = _mm256_srli_epi64(_mm256_add_epi64(c->l[0], m), FR4_BITS);
    FR4_UNROLL for (int j = 1; j < FR4_LIMBS; j++)
    {
        c->l[j - 1] = _mm256_add_epi64(c->l[j], _mm256_mul_epu32(m, fr4_set(fr4_r[j])));
        fr4_settle(&c->l[j - 1]);
    }
    c->l[FR4_LIMBS - 1] = _mm256_setzero_si256();
    c->l[0] = _mm256_add_epi64(c->l[0], carry);
}

/* x * factor for one factor: x is loose, the product tidy and below 2.9r. */
static inline struct fr4 fr4_mul_factor(const struct fr4 *x, const struct fr_factor *factor)
{
    struct fr4_columns in = fr4_unpack(x), c = {{_mm256_setzero_si256()}};

    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) c.l[i] = _mm256_setzero_si256();
    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) fr4_step(&c, &in, fr4_set(factor->l[i]));
    fr4_carry(&c);
    return fr4_pack(&c);
}

/* The same with a factor for each lane, tidy. */
static inline struct fr4 fr4_mul(const struct fr4 *x, const struct fr4 *factor)
{
    struct fr4_columns in = fr4_unpack(x), by = fr4_unpack(factor), c;

    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) c.l[i] = _mm256_setzero_si256();
    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) fr4_step(&c, &in, by.l[i]);
    fr4_carry(&c);
    return fr4_pack(&c);
}

static inline struct fr4 fr4_add(const struct fr4 *a, const struct fr4 *b)
{
    struct fr4 out;

    FR4_UNROLL for (int i = 0; i < FR4_LIMBS / 2; i++) out.l[i] =
        _mm256_add_epi32(a->l[i], b->l[i]);
    return out;
}

/* a - b + 4r; b is tidy and below 4r. */
static inline struct fr4 fr4_sub(const struct fr4 *a, const struct fr4 *b)
{
    struct fr4 out;

    FR4_UNROLL for (int i = 0; i < FR4_LIMBS / 2; i++)
    {
        __m256i four_r =
            _mm256_set1_epi64x((int64_t)((uint64_t)fr4_four_r[i + 5] << 32 | fr4_four_r[i]));
        out.l[i] = _mm256_sub_epi32(_mm256_add_epi32(a->l[i], four_r), b->l[i]);
    }
    return out;
}

static inline void fr4_transpose(__m256i r[4])
{
    __m256i a = _mm256_unpacklo_epi64(r[0], r[1]), b = _mm256_unpackhi_epi64(r[0], r[1]);
    __m256i c = _mm256_unpacklo_epi64(r[2], r[3]), d = _mm256_unpackhi_epi64(r[2], r[3]);

    r[0] = _mm256_permute2x128_si256(a, c, 0x20);
    r[1] = _mm256_permute2x128_si256(b, d, 0x20);
    r[2] = _mm256_permute2x128_si256(a, c, 0x31);
    r[3] = _mm256_permute2x128_si256(b, d, 0x31);
}

/* 26 bits from bit `at` on of the 256-bit values whose words are w[0..3]. */
static inline __m256i fr4_cut(const __m256i w[4], int at)
{
    int word = at / 64, shift = at % 64;
    __m256i v = _mm256_srli_epi64(w[word], shift);

    if (shift > 64 - FR4_BITS && word < 3)
        v = _mm256_or_si256(v, _mm256_slli_epi64(w[word + 1], 64 - shift));
    return _mm256_and_si256(v, fr4_mask());
}

/* Four elements one after another: lane l takes in[l]. */
static inline struct fr4 fr4_load(const fr_t *in)
{
    struct fr4_columns c;
    __m256i w[4];

    FR4_UNROLL for (int i = 0; i < 4; i++) w[i] = _mm256_loadu_si256((const __m256i *)in[i].l);
    fr4_transpose(w);
    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) c.l[i] = fr4_cut(w, FR4_BITS * i);
    return fr4_pack(&c);
}

/* Takes off r as often as it goes into x. */
static inline void fr4_canonical(struct fr4_columns *x)
{
    struct fr4_columns less;

    /* The quotient from the limb above bit 234, at most one too small: 0x46aa123 / 2^47 is just below 2^234 / r. */
    fr4_carry(x);
    __m256i quotient = _mm256_srli_epi64(_mm256_mul_epu32(x->l[9], fr4_set(0x46aa123)), 47);
    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) x->l[i] =
        _mm256_add_epi64(x->l[i], _mm256_mul_epu32(quotient, fr4_set(fr4_complement[i])));
    fr4_carry(x);
    x->l[9] = _mm256_and_si256(x->l[9], fr4_mask()); /* quotient * 2^260 */
    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) less.l[i] =
        _mm256_add_epi64(x->l[i], fr4_set(fr4_complement[i]));
    fr4_carry(&less);
    /* Bit 260 tells that r went in once more. */
    __m256i once_more = _mm256_cmpgt_epi64(less.l[9], fr4_mask());
    FR4_UNROLL for (int i = 0; i < FR4_LIMBS; i++) x->l[i] =
        _mm256_blendv_epi8(x->l[i], less.l[i], once_more);
    x->l[9] = _mm256_and_si256(x->l[9], fr4_mask());
}

#define FR4_AT(i, shift) _mm256_slli_epi64(c.l[i], shift)
#define FR4_FROM(i, shift) _mm256_srli_epi64(c.l[i], shift)

/* Four canonical elements: rows[l] is lane l. x is loose. */
static inline void fr4_to_rows(__m256i rows[4], const struct fr4 *x)
{
    struct fr4_columns c = fr4_unpack(x);

    fr4_canonical(&c);
    rows[0] = _mm256_or_si256(_mm256_or_si256(c.l[0], FR4_AT(1, 26)), FR4_AT(2, 52));
    rows[1] = _mm256_or_si256(_mm256_or_si256(FR4_FROM(2, 12), FR4_AT(3, 14)), FR4_AT(4, 40));
    rows[2] = _mm256_or_si256(_mm256_or_si256(FR4_FROM(4, 24), FR4_AT(5, 2)),
                              _mm256_or_si256(FR4_AT(6, 28), FR4_AT(7, 54)));
    rows[3] = _mm256_or_si256(_mm256_or_si256(FR4_FROM(7, 10), FR4_AT(8, 16)), FR4_AT(9, 42));
    fr4_transpose(rows);
}

#undef FR4_AT
#undef FR4_FROM

/* Lane l goes to out[l]. */
static inline void fr4_store(fr_t *out, const struct fr4 *x)
{
    __m256i rows[4];

    fr4_to_rows(rows, x);
    FR4_UNROLL for (int i = 0; i < 4; i++) _mm256_storeu_si256((__m256i *)out[i].l, rows[i]);
}

#endif
