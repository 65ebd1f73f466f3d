/*
 * The scalar field F_r of BLS12-381 on the device and, for tables and tests, on the host: eight 32-bit limbs in the layout
 * of blst_fr.
 *
 * Values on their way are kept in [0, 2r), "loose"; 2r < 2^256. canonical() brings them below r. Addition, subtraction and
 * both products take loose operands and give loose results.
 *
 * A product by a constant known beforehand costs less than a Montgomery product. The constant w is held twice, as w * 2^128
 * and w * 2^256 mod r; with a = a_lo + 2^128 a_hi the sum a_lo * w_128 + a_hi * w_256 is a w 2^128 and has twelve limbs, so four
 * Montgomery steps are left of eight. The product has the form that a had, Montgomery or not.
 *
 * The shape of r saves a third of a step: r = 1 - 2^32 (mod 2^64), so that with m = t mod 2^32
 *   t - m r = (t - m) + m 2^32 + m FR_REST 2^64 - m 2^256,  FR_REST = 2^192 - (floor(r / 2^64) + 1),
 * six multiply-adds for nine.
 */
#ifndef GPU_CUDA_FR_CUH
#define GPU_CUDA_FR_CUH

#include "gpu/cuda/limbs.cuh"

struct fr {
    static constexpr int LIMBS = 8;
    uint32_t v[LIMBS];
};
static_assert(sizeof(fr) == 32, "the layout of blst_fr");

/* A constant w for mul_constant: w * 2^128 and w * 2^256 mod r, canonical. */
struct fr_constant {
    uint32_t w128[fr::LIMBS], w256[fr::LIMBS];
};

#define FR_MODULUS_LIMBS \
    0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753
#define FR_MODULUS_DOUBLED_LIMBS \
    0x00000002, 0xfffffffe, 0xfffcb7fd, 0xa77b4805, 0x1343b00a, 0x6673b010, 0x533afa90, 0xe7db4ea6

HOST_DEVICE fr fr_modulus()
{
    return {{FR_MODULUS_LIMBS}};
}

HOST_DEVICE fr fr_modulus_doubled()
{
    return {{FR_MODULUS_DOUBLED_LIMBS}};
}

/* 2^256 mod r: one in Montgomery form. */
HOST_DEVICE fr fr_one()
{
    return {{0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa, 0xecbc4ff5, 0x998c4fef, 0xacc5056f,
             0x1824b159}};
}

/* 2^512 mod r: takes an integer to Montgomery form. */
HOST_DEVICE fr fr_r_squared()
{
    return {{0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb, 0x7254398f, 0x05d31496, 0x9f59ff11,
             0x0748d9d9}};
}

HOST_DEVICE fr fr_zero()
{
    return {{0, 0, 0, 0, 0, 0, 0, 0}};
}

HOST_DEVICE bool is_zero(const fr &a)
{
    return limbs_are_zero<fr::LIMBS>(a.v);
}

HOST_DEVICE bool equal(const fr &a, const fr &b)
{
    return limbs_equal<fr::LIMBS>(a.v, b.v);
}

HOST_DEVICE fr canonical(const fr &a)
{
    fr r;

    limbs_reduce<fr::LIMBS>(r.v, a.v, fr_modulus().v);
    return r;
}

#ifdef __CUDA_ARCH__
#define FR_REST_0 0x0001a401u
#define FR_REST_1 0xac425bfdu
#define FR_REST_2 0xf65e27fau
#define FR_REST_3 0xccc627f7u
#define FR_REST_4 0xd66282b7u
#define FR_REST_5 0x8c1258acu

/* acc[0..8) += (b0, b1, b2, b3) * a on aligned pairs of limbs, the carry to `top` */
DEVICE void fr_row(uint32_t *acc, uint32_t &top, uint32_t b0, uint32_t b1, uint32_t b2, uint32_t b3,
                   uint32_t a)
{
    asm("mad.lo.cc.u32 %0,%9,%13,%0; madc.hi.cc.u32 %1,%9,%13,%1;"
        "madc.lo.cc.u32 %2,%10,%13,%2; madc.hi.cc.u32 %3,%10,%13,%3;"
        "madc.lo.cc.u32 %4,%11,%13,%4; madc.hi.cc.u32 %5,%11,%13,%5;"
        "madc.lo.cc.u32 %6,%12,%13,%6; madc.hi.cc.u32 %7,%12,%13,%7; addc.u32 %8,%8,0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
          "+r"(acc[6]), "+r"(acc[7]), "+r"(top)
        : "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(a));
}

/* limb += left; then the row above, into which that carry goes */
DEVICE void fr_row_after(uint32_t &limb, uint32_t left, uint32_t *acc, uint32_t &top, uint32_t b0,
                         uint32_t b1, uint32_t b2, uint32_t b3, uint32_t a)
{
    asm("add.cc.u32 %9,%9,%10;"
        "madc.lo.cc.u32 %0,%11,%15,%0; madc.hi.cc.u32 %1,%11,%15,%1;"
        "madc.lo.cc.u32 %2,%12,%15,%2; madc.hi.cc.u32 %3,%12,%15,%3;"
        "madc.lo.cc.u32 %4,%13,%15,%4; madc.hi.cc.u32 %5,%13,%15,%5;"
        "madc.lo.cc.u32 %6,%14,%15,%6; madc.hi.cc.u32 %7,%14,%15,%7; addc.u32 %8,%8,0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
          "+r"(acc[6]), "+r"(acc[7]), "+r"(top), "+r"(limb)
        : "r"(left), "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(a));
}

DEVICE void fr_first_row(uint32_t *acc, uint32_t b0, uint32_t b1, uint32_t b2, uint32_t b3,
                         uint32_t a)
{
    asm("mul.lo.u32 %0,%8,%12; mul.hi.u32 %1,%8,%12; mul.lo.u32 %2,%9,%12; mul.hi.u32 %3,%9,%12;"
        "mul.lo.u32 %4,%10,%12; mul.hi.u32 %5,%10,%12; mul.lo.u32 %6,%11,%12; mul.hi.u32 "
        "%7,%11,%12;"
        : "=r"(acc[0]), "=r"(acc[1]), "=r"(acc[2]), "=r"(acc[3]), "=r"(acc[4]), "=r"(acc[5]),
          "=r"(acc[6]), "=r"(acc[7])
        : "r"(b0), "r"(b1), "r"(b2), "r"(b3), "r"(a));
}

/* The running sum in two accumulators: its value is even + 2^32 odd. */
struct fr_sum {
    uint32_t even[9], odd[9];
};

/* One Montgomery step with m = even[0]; the term -m 2^256 is left to fr_finish. */
DEVICE void fr_step(fr_sum &s)
{
    uint32_t m = s.even[0];

    asm("add.cc.u32 %0,%0,%8;"
        "madc.lo.cc.u32 %1,%9,%8,%1; madc.hi.cc.u32 %2,%9,%8,%2;"
        "madc.lo.cc.u32 %3,%10,%8,%3; madc.hi.cc.u32 %4,%10,%8,%4;"
        "madc.lo.cc.u32 %5,%11,%8,%5; madc.hi.cc.u32 %6,%11,%8,%6; addc.u32 %7,%7,0;"
        : "+r"(s.even[1]), "+r"(s.even[2]), "+r"(s.even[3]), "+r"(s.even[4]), "+r"(s.even[5]),
          "+r"(s.even[6]), "+r"(s.even[7]), "+r"(s.even[8])
        : "r"(m), "r"(FR_REST_0), "r"(FR_REST_2), "r"(FR_REST_4));
    asm("mad.lo.cc.u32 %0,%8,%7,%0; madc.hi.cc.u32 %1,%8,%7,%1;"
        "madc.lo.cc.u32 %2,%9,%7,%2; madc.hi.cc.u32 %3,%9,%7,%3;"
        "madc.lo.cc.u32 %4,%10,%7,%4; madc.hi.cc.u32 %5,%10,%7,%5; addc.u32 %6,%6,0;"
        : "+r"(s.odd[2]), "+r"(s.odd[3]), "+r"(s.odd[4]), "+r"(s.odd[5]), "+r"(s.odd[6]),
          "+r"(s.odd[7]), "+r"(s.odd[8])
        : "r"(m), "r"(FR_REST_1), "r"(FR_REST_3), "r"(FR_REST_5));
}

/* s one limb to the right: the accumulators change places, the limb that is left of `even` is returned. */
DEVICE uint32_t fr_shift(fr_sum &s)
{
    uint32_t left = s.even[1];
    fr_sum t;

    UNROLL
    for (int i = 0; i < 9; i++)
        t.even[i] = s.odd[i];
    UNROLL
    for (int i = 0; i < 7; i++)
        t.odd[i] = s.even[i + 2];
    t.odd[7] = t.odd[8] = 0;
    s = t;
    return left;
}

/* odd + (even >> 32) - (m << 32 (8 - STEPS)), plus r if negative: loose. m: what fr_step left, STEPS of them. */
template <int STEPS> DEVICE fr fr_finish(const fr_sum &s, const uint32_t *m)
{
    fr f;
    uint32_t t;

    asm("add.cc.u32 %0,%9,%18; addc.cc.u32 %1,%10,%19; addc.cc.u32 %2,%11,%20;"
        "addc.cc.u32 %3,%12,%21; addc.cc.u32 %4,%13,%22; addc.cc.u32 %5,%14,%23;"
        "addc.cc.u32 %6,%15,%24; addc.cc.u32 %7,%16,%25; addc.u32 %8,%17,0;"
        : "=r"(f.v[0]), "=r"(f.v[1]), "=r"(f.v[2]), "=r"(f.v[3]), "=r"(f.v[4]), "=r"(f.v[5]),
          "=r"(f.v[6]), "=r"(f.v[7]), "=r"(t)
        : "r"(s.odd[0]), "r"(s.odd[1]), "r"(s.odd[2]), "r"(s.odd[3]), "r"(s.odd[4]), "r"(s.odd[5]),
          "r"(s.odd[6]), "r"(s.odd[7]), "r"(s.odd[8]), "r"(s.even[1]), "r"(s.even[2]),
          "r"(s.even[3]), "r"(s.even[4]), "r"(s.even[5]), "r"(s.even[6]), "r"(s.even[7]),
          "r"(s.even[8]));
    if (STEPS == 4)
        asm("sub.cc.u32 %0,%0,%5; subc.cc.u32 %1,%1,%6; subc.cc.u32 %2,%2,%7;"
            "subc.cc.u32 %3,%3,%8; subc.u32 %4,%4,0;"
            : "+r"(f.v[4]), "+r"(f.v[5]), "+r"(f.v[6]), "+r"(f.v[7]), "+r"(t)
            : "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]));
    else
        asm("sub.cc.u32 %0,%0,%9; subc.cc.u32 %1,%1,%10; subc.cc.u32 %2,%2,%11;"
            "subc.cc.u32 %3,%3,%12; subc.cc.u32 %4,%4,%13; subc.cc.u32 %5,%5,%14;"
            "subc.cc.u32 %6,%6,%15; subc.cc.u32 %7,%7,%16; subc.u32 %8,%8,0;"
            : "+r"(f.v[0]), "+r"(f.v[1]), "+r"(f.v[2]), "+r"(f.v[3]), "+r"(f.v[4]), "+r"(f.v[5]),
              "+r"(f.v[6]), "+r"(f.v[7]), "+r"(t)
            : "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]), "r"(m[4 % STEPS]), "r"(m[5 % STEPS]),
              "r"(m[6 % STEPS]), "r"(m[7 % STEPS]));
    const fr r = fr_modulus();
    asm("{ .reg .pred p; setp.ne.u32 p,%8,0;"
        "@p add.cc.u32 %0,%0,%9; @p addc.cc.u32 %1,%1,%10; @p addc.cc.u32 %2,%2,%11;"
        "@p addc.cc.u32 %3,%3,%12; @p addc.cc.u32 %4,%4,%13; @p addc.cc.u32 %5,%5,%14;"
        "@p addc.cc.u32 %6,%6,%15; @p addc.u32 %7,%7,%16; }"
        : "+r"(f.v[0]), "+r"(f.v[1]), "+r"(f.v[2]), "+r"(f.v[3]), "+r"(f.v[4]), "+r"(f.v[5]),
          "+r"(f.v[6]), "+r"(f.v[7])
        : "r"(t), "r"(r.v[0]), "r"(r.v[1]), "r"(r.v[2]), "r"(r.v[3]), "r"(r.v[4]), "r"(r.v[5]),
          "r"(r.v[6]), "r"(r.v[7]));
    return f;
}
#else
/* t / 2^(32 STEPS) mod r by STEPS Montgomery steps, loose; t has STEPS + 8 limbs and is below 2^(32 STEPS) * 2r. */
template <int STEPS> inline fr fr_reduce_steps(const uint32_t *t)
{
    constexpr int N = fr::LIMBS;
    const fr r = fr_modulus(), doubled = fr_modulus_doubled();
    uint32_t u[STEPS + N + 1];
    fr out;

    for (int k = 0; k < STEPS + N; k++)
        u[k] = t[k];
    u[STEPS + N] = 0;
    for (int i = 0; i < STEPS; i++) {
        uint32_t m = 0u - u[i]; /* -1 / r mod 2^32 is -1 */
        uint64_t c = 0;
        for (int j = 0; j < N; j++) {
            c += (uint64_t)m * r.v[j] + u[i + j];
            u[i + j] = (uint32_t)c;
            c >>= 32;
        }
        for (int j = i + N; c && j <= STEPS + N; j++) {
            c += u[j];
            u[j] = (uint32_t)c;
            c >>= 32;
        }
    }
    if (limbs_sub<N>(out.v, u + STEPS, doubled.v) && !u[STEPS + N]) /* was below 2r */
        for (int k = 0; k < N; k++)
            out.v[k] = u[STEPS + k];
    return out;
}
#endif

/* a w for any a < 2^256; loose */
HOST_DEVICE fr mul_constant(const fr &a, const uint32_t *w128, const uint32_t *w256)
{
#ifdef __CUDA_ARCH__
    fr_sum s;
    uint32_t m[4];

    fr_first_row(s.even, w128[0], w128[2], w128[4], w128[6], a.v[0]);
    fr_first_row(s.odd, w128[1], w128[3], w128[5], w128[7], a.v[0]);
    s.even[8] = s.odd[8] = 0;
    fr_row(s.even, s.even[8], w256[0], w256[2], w256[4], w256[6], a.v[4]);
    fr_row(s.odd, s.odd[8], w256[1], w256[3], w256[5], w256[7], a.v[4]);
    m[0] = s.even[0];
    fr_step(s);
    UNROLL
    for (int j = 1; j < 4; j++) {
        uint32_t left = fr_shift(s);
        fr_row_after(s.even[0], left, s.odd, s.odd[8], w128[1], w128[3], w128[5], w128[7], a.v[j]);
        fr_row(s.even, s.even[8], w128[0], w128[2], w128[4], w128[6], a.v[j]);
        fr_row(s.odd, s.odd[8], w256[1], w256[3], w256[5], w256[7], a.v[4 + j]);
        fr_row(s.even, s.even[8], w256[0], w256[2], w256[4], w256[6], a.v[4 + j]);
        m[j] = s.even[0];
        fr_step(s);
    }
    return fr_finish<4>(s, m);
#else
    uint32_t t[12];

    for (uint32_t &limb : t)
        limb = 0;
    for (int half = 0; half < 2; half++) {
        const uint32_t *w = half ? w256 : w128;
        for (int i = 0; i < 4; i++) {
            uint64_t c = 0;
            for (int j = 0; j < 12 - i; j++) {
                c += t[i + j];
                if (j < fr::LIMBS)
                    c += (uint64_t)a.v[4 * half + i] * w[j];
                t[i + j] = (uint32_t)c;
                c >>= 32;
            }
        }
    }
    return fr_reduce_steps<4>(t);
#endif
}

HOST_DEVICE fr mul_constant(const fr &a, const fr_constant &w)
{
    return mul_constant(a, w.w128, w.w256);
}

/* a b / 2^256 for a < 2^256 and loose b; loose */
HOST_DEVICE fr mul(const fr &a, const fr &b)
{
#ifdef __CUDA_ARCH__
    fr_sum s;
    uint32_t m[8];

    fr_first_row(s.even, b.v[0], b.v[2], b.v[4], b.v[6], a.v[0]);
    fr_first_row(s.odd, b.v[1], b.v[3], b.v[5], b.v[7], a.v[0]);
    s.even[8] = s.odd[8] = 0;
    m[0] = s.even[0];
    fr_step(s);
    UNROLL
    for (int j = 1; j < 8; j++) {
        uint32_t left = fr_shift(s);
        fr_row_after(s.even[0], left, s.odd, s.odd[8], b.v[1], b.v[3], b.v[5], b.v[7], a.v[j]);
        fr_row(s.even, s.even[8], b.v[0], b.v[2], b.v[4], b.v[6], a.v[j]);
        m[j] = s.even[0];
        fr_step(s);
    }
    return fr_finish<8>(s, m);
#else
    uint32_t t[16];

    limbs_mul<fr::LIMBS>(t, a.v, b.v);
    return fr_reduce_steps<8>(t);
#endif
}

HOST_DEVICE fr add(const fr &a, const fr &b)
{
    const fr m = fr_modulus_doubled();
    fr r;

#ifdef __CUDA_ARCH__
    asm("{ .reg .u32 t0,t1,t2,t3,t4,t5,t6,t7,c; .reg .pred p;"
        "add.cc.u32 %0,%8,%16; addc.cc.u32 %1,%9,%17; addc.cc.u32 %2,%10,%18;"
        "addc.cc.u32 %3,%11,%19; addc.cc.u32 %4,%12,%20; addc.cc.u32 %5,%13,%21;"
        "addc.cc.u32 %6,%14,%22; addc.cc.u32 %7,%15,%23; addc.u32 c,0,0;"
        "sub.cc.u32 t0,%0,%24; subc.cc.u32 t1,%1,%25; subc.cc.u32 t2,%2,%26;"
        "subc.cc.u32 t3,%3,%27; subc.cc.u32 t4,%4,%28; subc.cc.u32 t5,%5,%29;"
        "subc.cc.u32 t6,%6,%30; subc.cc.u32 t7,%7,%31; subc.u32 c,c,0;"
        "setp.eq.u32 p,c,0;"
        "selp.u32 %0,t0,%0,p; selp.u32 %1,t1,%1,p; selp.u32 %2,t2,%2,p; selp.u32 %3,t3,%3,p;"
        "selp.u32 %4,t4,%4,p; selp.u32 %5,t5,%5,p; selp.u32 %6,t6,%6,p; selp.u32 %7,t7,%7,p; }"
        : "=&r"(r.v[0]), "=&r"(r.v[1]), "=&r"(r.v[2]), "=&r"(r.v[3]), "=&r"(r.v[4]), "=&r"(r.v[5]),
          "=&r"(r.v[6]), "=&r"(r.v[7])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(a.v[4]), "r"(a.v[5]), "r"(a.v[6]),
          "r"(a.v[7]), "r"(b.v[0]), "r"(b.v[1]), "r"(b.v[2]), "r"(b.v[3]), "r"(b.v[4]), "r"(b.v[5]),
          "r"(b.v[6]), "r"(b.v[7]), "r"(m.v[0]), "r"(m.v[1]), "r"(m.v[2]), "r"(m.v[3]), "r"(m.v[4]),
          "r"(m.v[5]), "r"(m.v[6]), "r"(m.v[7]));
#else
    fr sum;
    uint32_t carry = limbs_add<fr::LIMBS>(sum.v, a.v, b.v);
    uint32_t borrow = limbs_sub<fr::LIMBS>(r.v, sum.v, m.v);
    if (borrow && !carry)
        r = sum;
#endif
    return r;
}

HOST_DEVICE fr sub(const fr &a, const fr &b)
{
    const fr m = fr_modulus_doubled();
    fr r;

#ifdef __CUDA_ARCH__
    asm("{ .reg .u32 c; .reg .pred p;"
        "sub.cc.u32 %0,%8,%16; subc.cc.u32 %1,%9,%17; subc.cc.u32 %2,%10,%18;"
        "subc.cc.u32 %3,%11,%19; subc.cc.u32 %4,%12,%20; subc.cc.u32 %5,%13,%21;"
        "subc.cc.u32 %6,%14,%22; subc.cc.u32 %7,%15,%23; subc.u32 c,0,0;"
        "setp.ne.u32 p,c,0;"
        "@p add.cc.u32 %0,%0,%24; @p addc.cc.u32 %1,%1,%25; @p addc.cc.u32 %2,%2,%26;"
        "@p addc.cc.u32 %3,%3,%27; @p addc.cc.u32 %4,%4,%28; @p addc.cc.u32 %5,%5,%29;"
        "@p addc.cc.u32 %6,%6,%30; @p addc.u32 %7,%7,%31; }"
        : "=&r"(r.v[0]), "=&r"(r.v[1]), "=&r"(r.v[2]), "=&r"(r.v[3]), "=&r"(r.v[4]), "=&r"(r.v[5]),
          "=&r"(r.v[6]), "=&r"(r.v[7])
        : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(a.v[4]), "r"(a.v[5]), "r"(a.v[6]),
          "r"(a.v[7]), "r"(b.v[0]), "r"(b.v[1]), "r"(b.v[2]), "r"(b.v[3]), "r"(b.v[4]), "r"(b.v[5]),
          "r"(b.v[6]), "r"(b.v[7]), "r"(m.v[0]), "r"(m.v[1]), "r"(m.v[2]), "r"(m.v[3]), "r"(m.v[4]),
          "r"(m.v[5]), "r"(m.v[6]), "r"(m.v[7]));
#else
    if (limbs_sub<fr::LIMBS>(r.v, a.v, b.v))
        limbs_add<fr::LIMBS>(r.v, r.v, m.v);
#endif
    return r;
}

/* base^exponent, all in Montgomery form; loose */
HOST_DEVICE fr power(fr base, uint64_t exponent)
{
    fr r = fr_one();

    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            r = mul(r, base);
        base = mul(base, base);
    }
    return r;
}

/* Canonical 1 / a in Montgomery form, by Fermat: for a few values. */
HOST_DEVICE fr inverse(const fr &a)
{
    const uint32_t exponent[fr::LIMBS] = {0xffffffff, 0xfffffffe, 0xfffe5bfe, 0x53bda402,
                                          0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
    fr r = fr_one();

    for (int i = 254; i >= 0; i--) {
        r = mul(r, r);
        if (exponent[i >> 5] >> (i & 31) & 1)
            r = mul(r, a);
    }
    return canonical(r);
}

/* The constant for products by w, which is in Montgomery form. */
HOST_DEVICE fr_constant make_constant(const fr &w)
{
    const fr two_128 = {{0, 0, 0, 0, 1, 0, 0, 0}};
    fr high = canonical(w), low = canonical(mul(w, two_128));
    fr_constant c;

    UNROLL
    for (int k = 0; k < fr::LIMBS; k++) {
        c.w128[k] = low.v[k];
        c.w256[k] = high.v[k];
    }
    return c;
}

/* A small integer in Montgomery form. */
HOST_DEVICE fr fr_from_u32(uint32_t v)
{
    fr a = fr_zero();

    a.v[0] = v;
    return mul(a, fr_r_squared());
}

/* The integer 1: a product by it leaves Montgomery form. */
HOST_DEVICE fr fr_integer_one()
{
    return {{1, 0, 0, 0, 0, 0, 0, 0}};
}

/* The integer itself, canonical. */
HOST_DEVICE fr to_integer(const fr &a)
{
    return canonical(mul(a, fr_integer_one()));
}

#endif
