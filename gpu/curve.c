/*
 * Double and add by blst: plain, for few products.
 */
#include "gpu/curve.h"

void g1_mul_add(g1_t *out, const g1_t *base, const fr_t *scalar)
{
    scalar_t s;
    g1_t product;

    blst_scalar_from_fr(&s, scalar);
    blst_p1_mult(&product, base, s.b, FR_BITS);
    blst_p1_add_or_double(out, out, &product);
    explicit_bzero(&s, sizeof(s));
    explicit_bzero(&product, sizeof(product));
}

void g2_mul_add(g2_t *out, const g2_t *base, const fr_t *scalar)
{
    scalar_t s;
    g2_t product;

    blst_scalar_from_fr(&s, scalar);
    blst_p2_mult(&product, base, s.b, FR_BITS);
    blst_p2_add_or_double(out, out, &product);
    explicit_bzero(&s, sizeof(s));
    explicit_bzero(&product, sizeof(product));
}
