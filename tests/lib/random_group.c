#include "tests/lib/random_group.h"

uint64_t random_u64(struct random *rng)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * 0x2545f4914f6cdd1d;
}

fr_t random_fr(struct random *rng)
{
    uint8_t bytes[FR_BYTES];
    fr_t out;

    for (int i = 0; i < 4; i++)
        store_le64(bytes + 8 * i, random_u64(rng));
    bytes[31] &= 0x3f;
    fr_from_bytes(&out, bytes);
    return out;
}

g1_affine_t g1_of(const fr_t *scalar)
{
    g1_t p = {0};
    g1_affine_t out;

    g1_mul_add(&p, blst_p1_generator(), scalar);
    blst_p1_to_affine(&out, &p);
    return out;
}

g2_affine_t g2_of(const fr_t *scalar)
{
    g2_t p = {0};
    g2_affine_t out;

    g2_mul_add(&p, blst_p2_generator(), scalar);
    blst_p2_to_affine(&out, &p);
    return out;
}
