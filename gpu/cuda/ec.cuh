/*
 * Affine points of y^2 = x^3 + b over a coordinate field F (fp: G1, fp2: G2). Infinity is (0, 0), coordinates in memory are
 * canonical: the layout of blst_p1_affine and blst_p2_affine.
 */
#ifndef GPU_CUDA_EC_CUH
#define GPU_CUDA_EC_CUH

#include "gpu/cuda/fp2.cuh"

template <class F> struct affine {
    F x, y;
};
typedef affine<fp> g1_point;
typedef affine<fp2> g2_point;
static_assert(sizeof(g1_point) == 96 && sizeof(g2_point) == 192,
              "the layout of blst's affine points");

template <class F> HOST_DEVICE bool is_infinity(const affine<F> &p)
{
    return is_zero(p.x) && is_zero(p.y);
}

template <class F> HOST_DEVICE affine<F> infinity()
{
    affine<F> r;

    set_zero(r.x);
    set_zero(r.y);
    return r;
}

/* Canonical -p. */
template <class F> HOST_DEVICE affine<F> negate(const affine<F> &p)
{
    return {p.x, reduce_2p(negate_lazy_if(p.y, true))};
}

/* x3 = slope^2 - x1 - x2, from the square in [0, 2p) and canonical x1, x2; canonical. */
template <class F> HOST_DEVICE F chord_x(const F &slope_squared, const F &x1, const F &x2)
{
    return reduce_4p(sub_lazy_doubled(slope_squared, add_raw(x1, x2)));
}

/* y3 = slope (x1 - x3) - y1, from the product in [0, 2p) and y1 in [0, p]; canonical. */
template <class F> HOST_DEVICE F chord_y(const F &product, const F &y1)
{
    return reduce_4p(sub_lazy(product, y1));
}

/* 3 x^2, canonical, for canonical x */
template <class F> HOST_DEVICE F tripled_square(const F &x)
{
    F s = reduce_2p(mul_call(x, x));

    return add(add(s, s), s);
}

/* The sum of any two points, one inversion each: for what the batched addition sets aside, and as its oracle. */
template <class F> HOST_DEVICE_CALL affine<F> add_complete(affine<F> p, affine<F> q)
{
    if (is_infinity(p))
        return q;
    if (is_infinity(q))
        return p;
    bool same_x = equal(p.x, q.x);
    if (same_x && (!equal(p.y, q.y) || is_zero(p.y)))
        return infinity<F>();

    F dividend = same_x ? tripled_square(p.x) : sub(q.y, p.y);
    F divisor = same_x ? add(p.y, p.y) : sub(q.x, p.x);
    F slope = mul_call(dividend, inverse(divisor));
    affine<F> r;

    r.x = chord_x(mul_call(slope, slope), p.x, q.x);
    r.y = chord_y(mul_call(slope, sub_lazy(p.x, r.x)), p.y);
    return r;
}

#endif
