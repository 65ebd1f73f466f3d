/*
 * The base field F_p of BLS12-381 on the device and, for tests and small host work, on the host: twelve 32-bit limbs in
 * Montgomery form with R = 2^384, the layout of blst_fp.
 *
 * Products are not reduced at their end: with a * b <= 9.8 p^2, mul(a, b) = (a b + q p) / R lies in [0, 2p), because p / R
 * = 0.1016. "Canonical" means below p; what is stored is canonical, what is on its way need not be.
 */
#ifndef GPU_CUDA_FP_CUH
#define GPU_CUDA_FP_CUH

#include "gpu/cuda/limbs.cuh"

struct fp {
    static constexpr int LIMBS = 12;
    uint32_t v[LIMBS];
};
static_assert(sizeof(fp) == 48, "the layout of blst_fp");

HOST_DEVICE fp fp_modulus()
{
    return {{0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0, 0xf38512bf,
             0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea}};
}

HOST_DEVICE fp fp_modulus_doubled()
{
    return {{0xffff5556, 0x73fdffff, 0x62a7ffff, 0x3d57fffd, 0xed61ec48, 0xce61a541, 0xe70a257e,
             0xc8ee9709, 0x869759ae, 0x96374f6c, 0x72ffcd34, 0x340223d4}};
}

/* R mod p: one in Montgomery form. */
HOST_DEVICE fp fp_one()
{
    return {{0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857, 0x70525745,
             0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3}};
}

/* R^3 mod p: takes the plain inverse of a Montgomery form to the Montgomery form of the inverse. */
HOST_DEVICE fp fp_r_cubed()
{
    return {{0xd94ca1e0, 0xed48ac6b, 0x03a7adf8, 0x315f831e, 0x615e29dd, 0x9a53352a, 0x921e1761,
             0x34c04e5e, 0x65724728, 0x2512d435, 0x91755d4d, 0x0aa63460}};
}

/* -1 / p mod 2^32 */
static constexpr uint32_t FP_NEGATIVE_INVERSE = 0xfffcfffd;

HOST_DEVICE void set_one(fp &r)
{
    r = fp_one();
}

HOST_DEVICE void set_zero(fp &r)
{
    UNROLL
    for (int k = 0; k < fp::LIMBS; k++)
        r.v[k] = 0;
}

HOST_DEVICE bool is_zero(const fp &a)
{
    return limbs_are_zero<fp::LIMBS>(a.v);
}

HOST_DEVICE bool equal(const fp &a, const fp &b)
{
    return limbs_equal<fp::LIMBS>(a.v, b.v);
}

/* A limb of a: what is looked at first where a comparison is nearly always false. */
HOST_DEVICE uint32_t low_limb(const fp &a)
{
    return a.v[0];
}

/* No reduction: a + b must stay below 2^384 = 9.8 p. */
HOST_DEVICE fp add_raw(const fp &a, const fp &b)
{
    fp r;

    limbs_add<fp::LIMBS>(r.v, a.v, b.v);
    return r;
}

HOST_DEVICE fp sub_raw(const fp &a, const fp &b)
{
    fp r;

    limbs_sub<fp::LIMBS>(r.v, a.v, b.v);
    return r;
}

/* a - b + p: in (0, 2p) for canonical a and b */
HOST_DEVICE fp sub_lazy(const fp &a, const fp &b)
{
    return add_raw(sub_raw(a, b), fp_modulus());
}

/* a - b + 2p: for b in [0, 2p) */
HOST_DEVICE fp sub_lazy_doubled(const fp &a, const fp &b)
{
    return add_raw(sub_raw(a, b), fp_modulus_doubled());
}

/* [0, 2p) to canonical */
HOST_DEVICE fp reduce_2p(const fp &a)
{
    fp r;

    limbs_reduce<fp::LIMBS>(r.v, a.v, fp_modulus().v);
    return r;
}

/* [0, 4p) to canonical */
HOST_DEVICE fp reduce_4p(const fp &a)
{
    fp r;

    limbs_reduce<fp::LIMBS>(r.v, a.v, fp_modulus_doubled().v);
    return reduce_2p(r);
}

/* Canonical results for canonical operands. */
HOST_DEVICE fp add(const fp &a, const fp &b)
{
    return reduce_2p(add_raw(a, b));
}

HOST_DEVICE fp sub(const fp &a, const fp &b)
{
    return reduce_2p(sub_lazy(a, b));
}

/* negate ? p - a : a, for canonical a; 0 becomes p, which is fine for what is not stored. */
HOST_DEVICE fp negate_lazy_if(const fp &a, bool negate)
{
    fp n = sub_raw(fp_modulus(), a);

    UNROLL
    for (int k = 0; k < fp::LIMBS; k++)
        n.v[k] = negate ? n.v[k] : a.v[k];
    return n;
}

/* The double-width product (24 limbs) divided by R: below t / R + p, so in [0, 2p) for t <= 9.8 p^2. */
HOST_DEVICE fp montgomery_reduce(const uint32_t *t)
{
    constexpr int N = fp::LIMBS;
    const fp p = fp_modulus();
    fp r;

#ifdef __CUDA_ARCH__
    /* Only the lower half is worked on, by N steps that each clear a limb; the upper half is added at the end. As in
     * limbs_mul there are two accumulators; a step shifts by one limb, so they change places. */
    uint32_t even[N], odd[N];

    UNROLL
    for (int k = 0; k < N; k++)
        even[k] = t[k];
    UNROLL
    for (int i = 0; i < N; i++) {
        uint32_t low = i == 0 ? even[0] : add_cc(odd[0], even[1]);
        uint32_t q = low * FP_NEGATIVE_INVERSE;
        uint32_t next[N];

        if (i == 0) {
            mul_row<N>(next, p.v + 1, q);
        } else { /* the carry of `low` enters here */
            UNROLL
            for (int j = 0; j < N - 2; j += 2) {
                next[j] = madc_lo_cc(p.v[j + 1], q, even[j + 2]);
                next[j + 1] = madc_hi_cc(p.v[j + 1], q, even[j + 3]);
            }
            next[N - 2] = madc_lo_cc(p.v[N - 1], q, 0);
            next[N - 1] = madc_hi(p.v[N - 1], q, 0);
            UNROLL
            for (int j = 1; j < N; j++)
                even[j] = odd[j];
        }
        even[0] = low;
        mad_row_open<N>(even, p.v, q);
        even[N - 1] = madc_hi_cc(p.v[N - 2], q, even[N - 1]);
        next[N - 1] = addc(next[N - 1], 0);
        UNROLL
        for (int j = 0; j < N; j++)
            odd[j] = next[j];
    }
    r.v[0] = add_cc(odd[0], even[1]);
    UNROLL
    for (int k = 1; k < N - 1; k++)
        r.v[k] = addc_cc(odd[k], even[k + 1]);
    r.v[N - 1] = addc(odd[N - 1], 0);
    limbs_add<N>(r.v, r.v, t + N);
#else
    uint32_t u[2 * N];

    for (int k = 0; k < 2 * N; k++)
        u[k] = t[k];
    uint32_t top = 0;
    for (int i = 0; i < N; i++) {
        uint32_t q = u[i] * FP_NEGATIVE_INVERSE;
        uint64_t c = 0;
        for (int j = 0; j < N; j++) {
            c += (uint64_t)q * p.v[j] + u[i + j];
            u[i + j] = (uint32_t)c;
            c >>= 32;
        }
        c += (uint64_t)u[i + N] + top;
        u[i + N] = (uint32_t)c;
        top = (uint32_t)(c >> 32);
    }
    for (int k = 0; k < N; k++)
        r.v[k] = u[N + k];
#endif
    return r;
}

HOST_DEVICE fp mul(const fp &a, const fp &b)
{
    uint32_t t[2 * fp::LIMBS];

    limbs_mul<fp::LIMBS>(t, a.v, b.v);
    return montgomery_reduce(t);
}

#ifdef __CUDA_ARCH__
/* r[24] = a^2: the 66 products of different limbs once, doubled, and the squares of the limbs. */
DEVICE void limbs_sqr(uint32_t *r, const uint32_t *a)
{
    constexpr int N = fp::LIMBS;
    uint32_t even[2 * N], odd[2 * N], t[2 * N];

    UNROLL
    for (int k = 0; k < 2 * N; k++)
        even[k] = odd[k] = 0;
    mul_row<N>(odd, a + 1, a[0]);
    mul_row<N - 2>(even + 2, a + 2, a[0]);
    UNROLL
    for (int i = 1; i < N - 1; i++) {
        const int last_odd = (i & 1) ? N - 2 : N - 1, last_even = (i & 1) ? N - 1 : N - 2;

        UNROLL
        for (int j = i + 1; j <= last_odd; j += 2) {
            odd[i + j - 1] = j == i + 1 ? mad_lo_cc(a[i], a[j], odd[i + j - 1])
                                        : madc_lo_cc(a[i], a[j], odd[i + j - 1]);
            odd[i + j] = j == N - 1 ? madc_hi(a[i], a[j], 0) : madc_hi_cc(a[i], a[j], odd[i + j]);
        }
        if (last_odd == N - 2)
            odd[i + last_odd + 1] = addc(0, 0);
        UNROLL
        for (int j = i + 2; j <= last_even; j += 2) {
            even[i + j] = j == i + 2 ? mad_lo_cc(a[i], a[j], even[i + j])
                                     : madc_lo_cc(a[i], a[j], even[i + j]);
            even[i + j + 1] =
                j == N - 1 ? madc_hi(a[i], a[j], 0) : madc_hi_cc(a[i], a[j], even[i + j + 1]);
        }
        if (i + 2 <= last_even && last_even == N - 2)
            even[i + last_even + 2] = addc(0, 0);
    }
    t[0] = 0;
    t[1] = odd[0];
    t[2] = add_cc(even[2], odd[1]);
    UNROLL
    for (int k = 3; k < 2 * N - 2; k++)
        t[k] = addc_cc(even[k], odd[k - 1]);
    t[2 * N - 2] = addc(0, odd[2 * N - 3]);
    t[2 * N - 1] = 0;
    UNROLL
    for (int k = 2 * N - 1; k > 0; k--)
        t[k] = __funnelshift_l(t[k - 1], t[k], 1);
    r[0] = mad_lo_cc(a[0], a[0], 0);
    r[1] = madc_hi_cc(a[0], a[0], t[1]);
    UNROLL
    for (int i = 1; i < N - 1; i++) {
        r[2 * i] = madc_lo_cc(a[i], a[i], t[2 * i]);
        r[2 * i + 1] = madc_hi_cc(a[i], a[i], t[2 * i + 1]);
    }
    r[2 * N - 2] = madc_lo_cc(a[N - 1], a[N - 1], t[2 * N - 2]);
    r[2 * N - 1] = madc_hi(a[N - 1], a[N - 1], t[2 * N - 1]);
}
#endif

HOST_DEVICE fp sqr(const fp &a)
{
#ifdef __CUDA_ARCH__
    uint32_t t[2 * fp::LIMBS];

    limbs_sqr(t, a.v);
    return montgomery_reduce(t);
#else
    return mul(a, a);
#endif
}

HOST_DEVICE_CALL fp mul_call(fp a, fp b)
{
    return mul(a, b);
}

/*
 * The inverse, by the division steps of Bernstein and Yang in the variant that starts at delta = 1/2 ("safegcd", 30 steps a
 * batch, on 13 signed limbs of 30 bits). Leaves when g is 0: 26 or 27 batches as a rule, at most 30.
 */
struct fp_signed30 {
    static constexpr int LIMBS = 13;
    static constexpr int32_t MASK = 0x3fffffff;
    int32_t v[LIMBS];
};

/* The 2x2 matrix of 30 division steps; it multiplies (f, g) and is 2^30 times too large. */
struct fp_steps {
    int32_t u, v, q, r;
};

HOST_DEVICE fp_signed30 fp_modulus30()
{
    return {{0x3fffaaab, 0x27fbffff, 0x153ffffb, 0x2affffac, 0x30f6241e, 0x034a83da, 0x112bf673,
             0x12e13ce1, 0x2cd76477, 0x1ed90d2e, 0x29a4b1ba, 0x3a8e5ff9, 0x001a0111}};
}

HOST_DEVICE fp_steps fp_division_steps(uint32_t f, uint32_t g, int32_t &zeta)
{
    /* As unsigned numbers: the entries fit 31 bits and a sign, sums on the way may wrap. */
    uint32_t u = 1, v = 0, q = 0, r = 1;

#ifdef __CUDA_ARCH__
#pragma unroll 6
#endif
    for (int s = 0; s < 30; s++) {
        bool odd = g & 1, swap = odd && zeta < 0;
        uint32_t f_next = swap ? g : f, u_next = swap ? q : u, v_next = swap ? r : v;

        g += odd ? (swap ? 0u - f : f) : 0;
        q += odd ? (swap ? 0u - u : u) : 0;
        r += odd ? (swap ? 0u - v : v) : 0;
        g >>= 1;
        f = f_next;
        u = u_next << 1;
        v = v_next << 1;
        zeta = (swap ? ~zeta : zeta) - 1;
    }
    return {(int32_t)u, (int32_t)v, (int32_t)q, (int32_t)r};
}

/* (d, e) = t (d, e) / 2^30 mod p, both in (-2p, p) */
HOST_DEVICE void fp_update_inverse(fp_signed30 &d, fp_signed30 &e, const fp_steps &t)
{
    const fp_signed30 p = fp_modulus30();
    constexpr int32_t M = fp_signed30::MASK, TOP = fp_signed30::LIMBS - 1;
    int32_t sd = d.v[TOP] >> 31, se = e.v[TOP] >> 31;
    int32_t md = (t.u & sd) + (t.v & se), me = (t.q & sd) + (t.r & se);
    int64_t cd = (int64_t)t.u * d.v[0] + (int64_t)t.v * e.v[0];
    int64_t ce = (int64_t)t.q * d.v[0] + (int64_t)t.r * e.v[0];

    /* 0x30003 = 1 / p mod 2^30: the multiples of p that clear the lowest limb */
    md -= (int32_t)((0x30003u * (uint32_t)cd + (uint32_t)md) & M);
    me -= (int32_t)((0x30003u * (uint32_t)ce + (uint32_t)me) & M);
    cd = (cd + (int64_t)p.v[0] * md) >> 30;
    ce = (ce + (int64_t)p.v[0] * me) >> 30;
    UNROLL
    for (int k = 1; k <= TOP; k++) {
        int32_t di = d.v[k], ei = e.v[k];

        cd += (int64_t)t.u * di + (int64_t)t.v * ei + (int64_t)p.v[k] * md;
        ce += (int64_t)t.q * di + (int64_t)t.r * ei + (int64_t)p.v[k] * me;
        d.v[k - 1] = (int32_t)cd & M;
        e.v[k - 1] = (int32_t)ce & M;
        cd >>= 30;
        ce >>= 30;
    }
    d.v[TOP] = (int32_t)cd;
    e.v[TOP] = (int32_t)ce;
}

/* (f, g) = t (f, g) / 2^30, exactly */
HOST_DEVICE void fp_update_divided(fp_signed30 &f, fp_signed30 &g, const fp_steps &t)
{
    constexpr int32_t M = fp_signed30::MASK, TOP = fp_signed30::LIMBS - 1;
    int64_t cf = ((int64_t)t.u * f.v[0] + (int64_t)t.v * g.v[0]) >> 30;
    int64_t cg = ((int64_t)t.q * f.v[0] + (int64_t)t.r * g.v[0]) >> 30;

    UNROLL
    for (int k = 1; k <= TOP; k++) {
        int32_t fi = f.v[k], gi = g.v[k];

        cf += (int64_t)t.u * fi + (int64_t)t.v * gi;
        cg += (int64_t)t.q * fi + (int64_t)t.r * gi;
        f.v[k - 1] = (int32_t)cf & M;
        g.v[k - 1] = (int32_t)cg & M;
        cf >>= 30;
        cg >>= 30;
    }
    f.v[TOP] = (int32_t)cf;
    g.v[TOP] = (int32_t)cg;
}

HOST_DEVICE void fp_carry30(fp_signed30 &d)
{
    UNROLL
    for (int k = 0; k < fp_signed30::LIMBS - 1; k++) {
        d.v[k + 1] += d.v[k] >> 30;
        d.v[k] &= fp_signed30::MASK;
    }
}

HOST_DEVICE void fp_add_modulus30_if(fp_signed30 &d, int32_t mask)
{
    const fp_signed30 p = fp_modulus30();

    UNROLL
    for (int k = 0; k < fp_signed30::LIMBS; k++)
        d.v[k] += p.v[k] & mask;
}

HOST_DEVICE fp_signed30 fp_to_signed30(const fp &a)
{
    fp_signed30 r;

    UNROLL
    for (int k = 0; k < fp_signed30::LIMBS; k++) {
        int word = 30 * k / 32, shift = 30 * k % 32;
        uint64_t two = (uint64_t)(word + 1 < fp::LIMBS ? a.v[word + 1] : 0) << 32 | a.v[word];
        r.v[k] = (int32_t)(two >> shift) & fp_signed30::MASK;
    }
    return r;
}

/* For d in [0, p), all limbs in 30 bits. */
HOST_DEVICE fp fp_from_signed30(const fp_signed30 &d)
{
    fp r;

    UNROLL
    for (int w = 0; w < fp::LIMBS; w++) {
        int k = 32 * w / 30, shift = 32 * w % 30;
        uint32_t t = (uint32_t)d.v[k] >> shift | (uint32_t)d.v[k + 1] << (30 - shift);

        if (60 - shift < 32 && k + 2 < fp_signed30::LIMBS)
            t |= (uint32_t)d.v[k + 2] << (60 - shift);
        r.v[w] = t;
    }
    return r;
}

/* For canonical a other than 0; the result is in [0, 2p). Of 0 it makes 0. */
HOST_DEVICE_CALL fp inverse(fp a)
{
    fp_signed30 f = fp_modulus30(), g = fp_to_signed30(a), d = {{0}}, e = {{1}};
    int32_t zeta = -1;

    for (int batch = 0; batch < 32; batch++) {
        int32_t rest = 0;
        UNROLL
        for (int k = 0; k < fp_signed30::LIMBS; k++)
            rest |= g.v[k];
        if (rest == 0)
            break;
        fp_steps t = fp_division_steps((uint32_t)f.v[0], (uint32_t)g.v[0], zeta);
        fp_update_inverse(d, e, t);
        fp_update_divided(f, g, t);
    }
    /* f is 1 or -1 and d, in (-2p, p), is f times the inverse. */
    int32_t sign = f.v[fp_signed30::LIMBS - 1] >> 31;

    fp_add_modulus30_if(d, d.v[fp_signed30::LIMBS - 1] >> 31);
    UNROLL
    for (int k = 0; k < fp_signed30::LIMBS; k++)
        d.v[k] = (d.v[k] ^ sign) - sign;
    fp_carry30(d);
    fp_add_modulus30_if(d, d.v[fp_signed30::LIMBS - 1] >> 31);
    fp_carry30(d);
    return mul(fp_from_signed30(d), fp_r_cubed());
}

#endif
