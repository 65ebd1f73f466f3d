/*
 * Double and add by blst: plain, for few products.
 */
#include "gpu/curve.h"

void g1_mul_add(g1_t *out, const g1_t *base, const fr_t *scalar)
{
    uint8_t bytes[FR_BYTES];
    g1_t product;

    fr_to_bytes(bytes, scalar);
    blst_p1_mult(&product, base, bytes, FR_BITS);
    blst_p1_add_or_double(out, out, &product);
}

void g2_mul_add(g2_t *out, const g2_t *base, const fr_t *scalar)
{
    uint8_t bytes[FR_BYTES];
    g2_t product;

    fr_to_bytes(bytes, scalar);
    blst_p2_mult(&product, base, bytes, FR_BITS);
    blst_p2_add_or_double(out, out, &product);
}
