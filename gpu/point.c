/*
 * A coordinate is 48 bytes, big endian. It is taken apart into six 64-bit limbs here and brought into
 * Montgomery form by one product, which is all that loading a file of known digest costs per coordinate.
 */
#include "gpu/point.h"

#define FP_BYTES ((size_t)48)
#define FP_LIMBS 6

/* The three flags of the first byte: compressed, infinity, sign. */
#define FLAG_INFINITY 0x40
#define FLAGS 0xe0

/* p, least significant limb first (c2-formats, conventions of the curve). */
static const uint64_t modulus[FP_LIMBS] = {
    0xb9feffffffffaaab, 0x1eabfffeb153ffff, 0x6730d2a0f6b0f624,
    0x64774b84f38512bf, 0x4b1ba7b6434bacd7, 0x1a0111ea397fe69a,
};

const char *point_fault_text(enum point_fault fault)
{
    switch (fault) {
    case POINT_OK:
        return "is good";
    case POINT_FLAGS:
        return "is not in uncompressed form";
    case POINT_NOT_CANONICAL:
        return "has a coordinate that is not below the modulus";
    case POINT_INFINITY:
        return "is infinity";
    case POINT_OFF_CURVE:
        return "is not on the curve";
    case POINT_OUTSIDE_SUBGROUP:
        return "is outside the subgroup";
    }
    return "is bad";
}

static bool below_modulus(const uint64_t limbs[FP_LIMBS])
{
    for (int i = FP_LIMBS - 1; i >= 0; i--)
        if (limbs[i] != modulus[i])
            return limbs[i] < modulus[i];
    return false;
}

/* False, with *out zero, when the value is not below p. */
static bool fp_decode(fp_t *out, const uint8_t bytes[FP_BYTES])
{
    uint64_t limbs[FP_LIMBS];

    for (int i = 0; i < FP_LIMBS; i++)
        limbs[i] = load_be64(bytes + FP_BYTES - 8 * ((size_t)i + 1));
    if (!below_modulus(limbs)) {
        memset(out, 0, sizeof(*out));
        return false;
    }
    blst_fp_from_uint64(out, limbs);
    return true;
}

static void fp_encode(uint8_t bytes[FP_BYTES], const fp_t *v)
{
    uint64_t limbs[FP_LIMBS];

    blst_uint64_from_fp(limbs, v);
    for (int i = 0; i < FP_LIMBS; i++)
        store_be64(bytes + FP_BYTES - 8 * ((size_t)i + 1), limbs[i]);
}

/* Infinity has one encoding, 0x40 and zeros; any other use of the flags is refused. */
static enum point_fault flags_fault(const uint8_t *bytes, size_t len)
{
    uint8_t rest = 0;

    if (bytes[0] != FLAG_INFINITY)
        return POINT_FLAGS;
    for (size_t i = 1; i < len; i++)
        rest |= bytes[i];
    return rest ? POINT_FLAGS : POINT_INFINITY;
}

enum point_fault g1_decode(g1_affine_t *out, const uint8_t bytes[G1_BYTES])
{
    if (bytes[0] & FLAGS)
        return flags_fault(bytes, G1_BYTES);
    bool x = fp_decode(&out->x, bytes);
    bool y = fp_decode(&out->y, bytes + FP_BYTES);
    if (!x || !y)
        return POINT_NOT_CANONICAL;
    /* (0, 0) stands for infinity in memory, but is not its encoding. */
    return g1_affine_is_infinity(out) ? POINT_OFF_CURVE : POINT_OK;
}

enum point_fault g2_decode(g2_affine_t *out, const uint8_t bytes[G2_BYTES])
{
    fp_t *const order[] = {&out->x.fp[1], &out->x.fp[0], &out->y.fp[1], &out->y.fp[0]};
    bool canonical = true;

    if (bytes[0] & FLAGS)
        return flags_fault(bytes, G2_BYTES);
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        canonical &= fp_decode(order[i], bytes + i * FP_BYTES);
    if (!canonical)
        return POINT_NOT_CANONICAL;
    return g2_affine_is_infinity(out) ? POINT_OFF_CURVE : POINT_OK;
}

enum point_fault g1_decode_checked(g1_affine_t *out, const uint8_t bytes[G1_BYTES])
{
    enum point_fault fault = g1_decode(out, bytes);

    if (fault)
        return fault;
    if (!blst_p1_affine_on_curve(out))
        return POINT_OFF_CURVE;
    return blst_p1_affine_in_g1(out) ? POINT_OK : POINT_OUTSIDE_SUBGROUP;
}

enum point_fault g2_decode_checked(g2_affine_t *out, const uint8_t bytes[G2_BYTES])
{
    enum point_fault fault = g2_decode(out, bytes);

    if (fault)
        return fault;
    if (!blst_p2_affine_on_curve(out))
        return POINT_OFF_CURVE;
    return blst_p2_affine_in_g2(out) ? POINT_OK : POINT_OUTSIDE_SUBGROUP;
}

enum point_fault g1_affine_fault(const g1_affine_t *p)
{
    return below_modulus(p->x.l) && below_modulus(p->y.l) ? POINT_OK : POINT_NOT_CANONICAL;
}

void g1_encode(uint8_t bytes[G1_BYTES], const g1_affine_t *p)
{
    fp_encode(bytes, &p->x);
    fp_encode(bytes + FP_BYTES, &p->y);
}

void g2_encode(uint8_t bytes[G2_BYTES], const g2_affine_t *p)
{
    fp_encode(bytes, &p->x.fp[1]);
    fp_encode(bytes + FP_BYTES, &p->x.fp[0]);
    fp_encode(bytes + 2 * FP_BYTES, &p->y.fp[1]);
    fp_encode(bytes + 3 * FP_BYTES, &p->y.fp[0]);
}
