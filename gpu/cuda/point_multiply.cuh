/*
 * A point of G1 times a scalar of any size, and what a transform of points does with it, for host and device alike: one thread, one
 * product.
 *
 * On this curve (x, y) -> (beta x, y) multiplies by lambda, a number of 128 bits, so a scalar is split into two halves of 127 bits and a
 * sign, and doublings are half as many. Digits of both halves are four bits wide, -8 to 7; the multiples 1 to 8 of the point are made
 * once. They get a common Z, which is left off: then they are affine points of another curve y^2 = x^3 + b', on which the formulas hold as
 * well, since none of them has b in it. The result gets Z back at the end. Some 1700 products and an inversion in all.
 *
 * Points are of the group of order r: of no other does the endomorphism do what it should.
 */
#ifndef GPU_CUDA_POINT_MULTIPLY_CUH
#define GPU_CUDA_POINT_MULTIPLY_CUH

#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/fr.cuh"

/* Of loops whose code would not stay in the instruction cache. */
#ifdef __CUDACC__
#define NO_UNROLL _Pragma("unroll 1")
#else
#define NO_UNROLL
#endif

/* ---- scalars ---- */

/* lambda^2 + lambda + 1 = 0 modulo r; the group's parameter squared, less one. */
#define LAMBDA_LIMBS 0xffffffff, 0x00000000, 0x0001a402, 0xac45a401

static constexpr int SPLIT_DIGITS = 32;

/* low + high * lambda. A half is kept as itself plus 0x88..8, modulo 2^128: its hexadecimal digits, less 8 each, are then those of the half,
 * whatever its sign. */
struct split_scalar {
    uint32_t half[2][4]; /* low, high */
};

HOST_DEVICE int split_digit(const split_scalar &s, int half, int i)
{
    return (int)(s.half[half][i / 8] >> (i % 8 * 4) & 15) - 8;
}

/* Subtracts `modulus` where that comes nearer to 0; says whether. */
HOST_DEVICE bool centre_half(uint32_t *half, const uint32_t *modulus)
{
    const bool large = half[3] >= 0x56000000; /* half of lambda's */

    if (large)
        limbs_sub<4>(half, half, modulus);
    return large;
}

/* Of a canonical integer. */
HOST_DEVICE split_scalar split(const fr &integer)
{
    const uint32_t lambda[5] = {LAMBDA_LIMBS, 0}, one[4] = {1, 0, 0, 0},
                   digits[4] = {0x88888888, 0x88888888, 0x88888888, 0x88888888};
    uint32_t u[9], less[5],
        more[4]; /* the quotient enters at the lower end; from u[4] on what is left */
    split_scalar s;

    UNROLL
    for (int k = 0; k < 8; k++)
        u[k] = integer.v[k];
    u[8] = 0;
    for (int bit = 0; bit < 128; bit++) { /* the upper half of any scalar is below lambda */
        limbs_add<9>(u, u, u);
        if (limbs_sub<5>(less, u + 4, lambda))
            continue;
        UNROLL
        for (int k = 0; k < 5; k++)
            u[4 + k] = less[k];
        u[0] |= 1;
    }
    if (centre_half(u + 4, lambda))
        limbs_add<4>(u, u, one);
    limbs_add<4>(more, lambda, one);
    if (centre_half(u, more)) /* 1 + (lambda + 1) lambda = 0 */
        limbs_sub<4>(u + 4, u + 4, one);
    limbs_add<4>(s.half[0], u + 4, digits);
    limbs_add<4>(s.half[1], u, digits);
    return s;
}

/* ---- points ---- */

/* (x / z^2, y / z^3), infinity where z is 0; all canonical */
struct jacobian {
    fp x, y, z;
};

/* Canonical ones. The code of a product is there once: what calls it is small enough to stay in the chip's instruction cache. */
HOST_DEVICE_CALL fp product(fp a, fp b)
{
    return reduce_2p(mul(a, b));
}

HOST_DEVICE_CALL fp square(fp a)
{
    return reduce_2p(sqr(a));
}

HOST_DEVICE fp twice(const fp &a)
{
    return add(a, a);
}

HOST_DEVICE jacobian doubled(const jacobian &p)
{
    const fp a = square(p.x), b = square(p.y), c = square(b);
    const fp d = twice(sub(sub(square(add(p.x, b)), a), c)), e = add(twice(a), a);
    jacobian r;

    r.z = twice(product(p.y, p.z));
    r.x = sub(square(e), twice(d));
    r.y = sub(product(e, sub(d, r.x)), twice(twice(twice(c))));
    return r;
}

/* p + q for p other than infinity, q and -q. *ratio becomes what its z is times that of p. */
HOST_DEVICE jacobian add_affine(const jacobian &p, const g1_point &q, fp *ratio)
{
    const fp zz = square(p.z);
    const fp h = sub(product(q.x, zz), p.x), s = sub(product(q.y, product(zz, p.z)), p.y);
    const fp hh = square(h), v = product(p.x, hh), hhh = product(h, hh);
    jacobian r;

    *ratio = h;
    r.z = product(p.z, h);
    r.x = sub(sub(square(s), hhh), twice(v));
    r.y = sub(product(s, sub(v, r.x)), product(p.y, hhh));
    return r;
}

HOST_DEVICE g1_point to_affine(const jacobian &p)
{
    if (is_zero(p.z))
        return infinity<fp>();
    const fp i = reduce_2p(inverse(p.z)), ii = square(i);

    return {product(p.x, ii), product(p.y, product(ii, i))};
}

/* x times this multiplies a point by lambda: a cube root of one. */
HOST_DEVICE fp fp_beta()
{
    return {{0x8671f071, 0xcd03c9e4, 0x1fcda5d2, 0x5dab2246, 0xd3851b95, 0x587042af, 0x01bacb9e,
             0x8eb60ebe, 0x83d050d2, 0x03f97d6e, 0x54638741, 0x18f02065}};
}

static constexpr int MULTIPLES = 8;

/* Multiple k + 1 of a point is (x[0][k], y[k], z), lambda times it (x[1][k], y[k], z). */
struct point_multiples {
    fp x[2][MULTIPLES], y[MULTIPLES], z;
};

/* Of a point other than infinity. One after another by adding it, so that from one to the next z grows by a factor that is known. */
HOST_DEVICE void make_multiples(const g1_point &p, point_multiples &t)
{
    fp ratio[MULTIPLES], factor = fp_one();
    jacobian m = {p.x, p.y, fp_one()};

    for (int k = 0; k < MULTIPLES; k++) {
        if (k == 1) {
            m = doubled(m);
            ratio[1] = m.z;
        } else if (k > 1) {
            m = add_affine(m, p, &ratio[k]);
        }
        t.x[0][k] = m.x;
        t.y[k] = m.y;
    }
    t.z = m.z;
    for (int k = MULTIPLES - 1; k >= 0; k--) {
        const fp two = square(factor);
        t.x[0][k] = product(t.x[0][k], two);
        t.x[1][k] = product(t.x[0][k], fp_beta());
        t.y[k] = product(t.y[k], product(two, factor));
        if (k > 0)
            factor = product(factor, ratio[k]);
    }
}

/*
 * scalar p, for p other than infinity.
 *
 * What is added to is never the point that is added, nor its opposite: its halves would have to differ from those of a digit by halves that
 * stand for 0, of which one at least is lambda - 1 or larger, and they are half of that at most.
 */
HOST_DEVICE jacobian multiply(const g1_point &p, const split_scalar &scalar)
{
    point_multiples t;
    jacobian sum = {};
    fp unused;

    make_multiples(p, t);
    NO_UNROLL
    for (int i = SPLIT_DIGITS - 1; i >= 0; i--) {
        NO_UNROLL
        for (int k = 0; k < 4 && !is_zero(sum.z); k++)
            sum = doubled(sum);
        NO_UNROLL
        for (int half = 0; half < 2; half++) {
            const int digit = split_digit(scalar, half, i), at = (digit < 0 ? -digit : digit) - 1;
            if (digit == 0)
                continue;
            const g1_point q = {t.x[half][at], negate_lazy_if(t.y[at], digit < 0)};
            if (is_zero(sum.z))
                sum = {q.x, q.y, fp_one()};
            else
                sum = add_affine(sum, q, &unused);
        }
    }
    sum.z = product(sum.z, t.z);
    return sum;
}

/* ---- steps of a transform ---- */

/* k p for any p; k in Montgomery form */
HOST_DEVICE jacobian turned_point(const g1_point &p, const fr &k)
{
    if (is_infinity(p) || equal(canonical(k), fr_one()))
        return {p.x, p.y, is_infinity(p) ? p.x : fp_one()};
    return multiply(p, split(to_integer(k)));
}

/* a + q and a - q in place of a and b, whatever they are. The two differ in the sign of a y alone, so both have one z, which is inverted
 * once. */
HOST_DEVICE void point_butterfly(const jacobian &q, g1_point &a, g1_point &b)
{
    const fp zz = square(q.z), h = sub(product(a.x, zz), q.x);

    if (is_infinity(a) || is_zero(q.z) || is_zero(h)) {
        const g1_point p = a, r = to_affine(q);
        a = add_complete(p, r);
        b = add_complete(p, negate(r));
        return;
    }
    const fp s = product(a.y, product(zz, q.z)), hh = square(h), hhh = product(h, hh);
    const fp v = product(q.x, hh), w = product(q.y, hhh), known = add(hhh, twice(v));
    const fp i = reduce_2p(inverse(product(q.z, h))), ii = square(i), iii = product(ii, i);
    const fp plus = sub(s, q.y), minus = add(s, q.y);
    const fp x = sub(square(plus), known), y = sub(product(plus, sub(v, x)), w);
    const fp x2 = sub(square(minus), known), y2 = add(product(minus, sub(v, x2)), w);

    a = {product(x, ii), product(y, iii)};
    b = {product(x2, ii), product(y2, iii)};
}

/* Butterfly i of a level takes the points `first` and `first` + 2^level, and root^power, of a root of order 2^(level + 1). Neighbours have
 * one power as far as there are such, and then the same digits. Of 2^log2_len points that were in reversed order before level 0. */
struct butterfly_place {
    uint32_t first, power;
};

HOST_DEVICE butterfly_place place_of_butterfly(uint32_t log2_len, uint32_t level, uint32_t i)
{
    const uint32_t log2_groups = log2_len - 1 - level, group = i & ((1u << log2_groups) - 1),
                   k = i >> log2_groups;

    return {(group << (level + 1)) + k, k};
}

#endif
