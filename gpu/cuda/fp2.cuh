/*
 * F_p2 = F_p[u] / (u^2 + 1), the coordinate field of G2: the same operations as F_p under the same names, so that curve
 * code takes either. Ranges are those of fp.cuh, component by component.
 */
#ifndef GPU_CUDA_FP2_CUH
#define GPU_CUDA_FP2_CUH

#include "gpu/cuda/fp.cuh"

struct fp2 {
    fp c0, c1;
};
static_assert(sizeof(fp2) == 96, "the layout of blst_fp2");

HOST_DEVICE void set_one(fp2 &r)
{
    set_one(r.c0);
    set_zero(r.c1);
}

HOST_DEVICE void set_zero(fp2 &r)
{
    set_zero(r.c0);
    set_zero(r.c1);
}

HOST_DEVICE bool is_zero(const fp2 &a)
{
    return is_zero(a.c0) && is_zero(a.c1);
}

HOST_DEVICE bool equal(const fp2 &a, const fp2 &b)
{
    return equal(a.c0, b.c0) && equal(a.c1, b.c1);
}

HOST_DEVICE uint32_t low_limb(const fp2 &a)
{
    return low_limb(a.c0);
}

HOST_DEVICE fp2 add_raw(const fp2 &a, const fp2 &b)
{
    return {add_raw(a.c0, b.c0), add_raw(a.c1, b.c1)};
}

HOST_DEVICE fp2 sub_lazy(const fp2 &a, const fp2 &b)
{
    return {sub_lazy(a.c0, b.c0), sub_lazy(a.c1, b.c1)};
}

HOST_DEVICE fp2 sub_lazy_doubled(const fp2 &a, const fp2 &b)
{
    return {sub_lazy_doubled(a.c0, b.c0), sub_lazy_doubled(a.c1, b.c1)};
}

HOST_DEVICE fp2 reduce_2p(const fp2 &a)
{
    return {reduce_2p(a.c0), reduce_2p(a.c1)};
}

HOST_DEVICE fp2 reduce_4p(const fp2 &a)
{
    return {reduce_4p(a.c0), reduce_4p(a.c1)};
}

HOST_DEVICE fp2 add(const fp2 &a, const fp2 &b)
{
    return {add(a.c0, b.c0), add(a.c1, b.c1)};
}

HOST_DEVICE fp2 sub(const fp2 &a, const fp2 &b)
{
    return {sub(a.c0, b.c0), sub(a.c1, b.c1)};
}

HOST_DEVICE fp2 negate_lazy_if(const fp2 &a, bool negate)
{
    return {negate_lazy_if(a.c0, negate), negate_lazy_if(a.c1, negate)};
}

/* Components below 2p in, components below 2p out. Three products and two reductions: with v0 = a0 b0, v1 = a1 b1,
 *   c1 = (a0 + a1)(b0 + b1) - v0 - v1 = a0 b1 + a1 b0 < 8 p^2, of which the reduction makes less than 1.9 p;
 *   c0 = v0 - v1 + p R / 2, which is in (0.9 p^2, 9 p^2) because v0, v1 < 4 p^2 and R = 9.84 p: less than 2 p. */
HOST_DEVICE fp2 mul(const fp2 &a, const fp2 &b)
{
    constexpr int N = fp::LIMBS;
    uint32_t v0[2 * N], v1[2 * N], cross[2 * N];
    fp sa = add_raw(a.c0, a.c1), sb = add_raw(b.c0, b.c1);
    const fp p = fp_modulus();
    fp2 r;

    limbs_mul<N>(v0, a.c0.v, b.c0.v);
    limbs_mul<N>(v1, a.c1.v, b.c1.v);
    limbs_mul<N>(cross, sa.v, sb.v);
    limbs_sub<2 * N>(cross, cross, v0);
    limbs_sub<2 * N>(cross, cross, v1);
    r.c1 = montgomery_reduce(cross);

    uint32_t half_pr[N + 1]; /* p R / 2 from limb N - 1 on: p is odd, so its last bit falls there */
    half_pr[0] = p.v[0] << 31;
    UNROLL
    for (int k = 1; k < N; k++)
        half_pr[k] = p.v[k] << 31 | p.v[k - 1] >> 1;
    half_pr[N] = p.v[N - 1] >> 1;
    limbs_sub<2 * N>(v0, v0, v1);
    limbs_add<N + 1>(v0 + N - 1, v0 + N - 1, half_pr);
    r.c0 = montgomery_reduce(v0);
    return r;
}

HOST_DEVICE fp2 sqr(const fp2 &a)
{
    return mul(a, a);
}

HOST_DEVICE_CALL fp2 mul_call(fp2 a, fp2 b)
{
    return mul(a, b);
}

/* For canonical a other than 0; components in [0, 2p). */
HOST_DEVICE_CALL fp2 inverse(fp2 a)
{
    fp norm = add_raw(mul_call(a.c0, a.c0), mul_call(a.c1, a.c1));
    fp inv = inverse(reduce_4p(norm));

    return {mul_call(a.c0, inv), mul_call(negate_lazy_if(a.c1, true), inv)};
}

#endif
