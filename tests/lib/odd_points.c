/*
 * Plain double and add over blst's complete additions: its own multiplication takes short cuts that are right
 * in the subgroup only.
 */
#include "tests/lib/odd_points.h"

#include <assert.h>

#define ORDER_LIMBS 14

/* Orders of the two curves, cofactor times r, least significant 64 bits first; zero-filled. */
static const uint64_t g1_order[ORDER_LIMBS] = {
    0x8c0000000000aaab, 0x1eabfffeb1540000, 0x6730d2a0f6b0f624,
    0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a,
};
static const uint64_t g2_order[ORDER_LIMBS] = {
    0xb2a9fffe1c7238e5, 0x43116b1e2788e6a8, 0xb096de2c62640b26, 0x3f2484c55b94474a,
    0x744a2d5eb3dd4d21, 0x37697386bf984315, 0xf53149330978ef01, 0x50a62cfd16ddca6e,
    0x66e59e49349e8bd0, 0xe2dc90e50e7046b4, 0x4bd278eaa22f25e9, 0x02a437a4b8c35fc7,
};

/* out = in / divisor; returns the remainder. */
static uint32_t divide(uint64_t out[ORDER_LIMBS], const uint64_t in[ORDER_LIMBS], uint32_t divisor)
{
    uint64_t rest = 0;

    for (int i = ORDER_LIMBS - 1; i >= 0; i--) {
        uint64_t high = rest << 32 | in[i] >> 32;
        uint64_t low = (high % divisor) << 32 | (uint32_t)in[i];
        out[i] = (high / divisor) << 32 | low / divisor;
        rest = low % divisor;
    }
    return (uint32_t)rest;
}

/* The part of the group's order that is prime to `factor`. */
static void without_factor(uint64_t out[ORDER_LIMBS], const uint64_t order[ORDER_LIMBS],
                           uint32_t factor)
{
    uint64_t quotient[ORDER_LIMBS];

    memcpy(out, order, ORDER_LIMBS * sizeof(*out));
    assert(divide(quotient, out, factor) == 0);
    while (divide(quotient, out, factor) == 0)
        memcpy(out, quotient, sizeof(quotient));
}

static g1_t g1_times(const g1_t *p, const uint64_t k[ORDER_LIMBS])
{
    g1_t out = {0};

    for (int bit = 64 * ORDER_LIMBS - 1; bit >= 0; bit--) {
        blst_p1_double(&out, &out);
        if (k[bit / 64] >> (bit % 64) & 1)
            blst_p1_add_or_double(&out, &out, p);
    }
    return out;
}

static g2_t g2_times(const g2_t *p, const uint64_t k[ORDER_LIMBS])
{
    g2_t out = {0};

    for (int bit = 64 * ORDER_LIMBS - 1; bit >= 0; bit--) {
        blst_p2_double(&out, &out);
        if (k[bit / 64] >> (bit % 64) & 1)
            blst_p2_add_or_double(&out, &out, p);
    }
    return out;
}

g1_affine_t odd_g1(uint64_t x)
{
    uint8_t bytes[G1_COMPRESSED_BYTES] = {0x80};
    g1_affine_t out;

    for (;; x++) {
        store_be64(bytes + sizeof(bytes) - 8, x);
        if (blst_p1_uncompress(&out, bytes) == BLST_SUCCESS && !blst_p1_affine_in_g1(&out))
            return out;
    }
}

g2_affine_t odd_g2(uint64_t x)
{
    uint8_t bytes[G2_COMPRESSED_BYTES] = {0x80};
    g2_affine_t out;

    for (;; x++) {
        store_be64(bytes + sizeof(bytes) - 8, x);
        if (blst_p2_uncompress(&out, bytes) == BLST_SUCCESS && !blst_p2_affine_in_g2(&out))
            return out;
    }
}

/* Multiplied by all but the powers of `order`, a point keeps its component of such an order, if it has one. */
g1_affine_t odd_g1_of_order(uint32_t order)
{
    uint64_t rest[ORDER_LIMBS];
    const uint64_t step[ORDER_LIMBS] = {order};
    g1_affine_t out;

    without_factor(rest, g1_order, order);
    for (uint64_t x = 1;; x++) {
        g1_affine_t base = odd_g1(1000 * x);
        g1_t p, next;
        blst_p1_from_affine(&p, &base);
        p = g1_times(&p, rest);
        if (blst_p1_is_inf(&p))
            continue;
        while (next = g1_times(&p, step), !blst_p1_is_inf(&next))
            p = next;
        blst_p1_to_affine(&out, &p);
        return out;
    }
}

g2_affine_t odd_g2_of_order(uint32_t order)
{
    uint64_t rest[ORDER_LIMBS];
    const uint64_t step[ORDER_LIMBS] = {order};
    g2_affine_t out;

    without_factor(rest, g2_order, order);
    for (uint64_t x = 1;; x++) {
        g2_affine_t base = odd_g2(1000 * x);
        g2_t p, next;
        blst_p2_from_affine(&p, &base);
        p = g2_times(&p, rest);
        if (blst_p2_is_inf(&p))
            continue;
        while (next = g2_times(&p, step), !blst_p2_is_inf(&next))
            p = next;
        blst_p2_to_affine(&out, &p);
        return out;
    }
}

g1_affine_t odd_g1_shifted(const g1_affine_t *honest, const g1_affine_t *odd)
{
    g1_t sum;
    g1_affine_t out;

    blst_p1_from_affine(&sum, honest);
    blst_p1_add_or_double_affine(&sum, &sum, odd);
    blst_p1_to_affine(&out, &sum);
    return out;
}

g2_affine_t odd_g2_shifted(const g2_affine_t *honest, const g2_affine_t *odd)
{
    g2_t sum;
    g2_affine_t out;

    blst_p2_from_affine(&sum, honest);
    blst_p2_add_or_double_affine(&sum, &sum, odd);
    blst_p2_to_affine(&out, &sum);
    return out;
}
