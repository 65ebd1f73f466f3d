/* blst's compressed form is the one of the field; what it leaves to us are the subgroup and infinity. */
#include "gpu/proof.h"

#include <errno.h>

#define B_OFFSET G1_COMPRESSED_BYTES
#define C_OFFSET (B_OFFSET + G2_COMPRESSED_BYTES)

_Static_assert(C_OFFSET + G1_COMPRESSED_BYTES == PROOF_BYTES, "A, B and C fill a proof");

void proof_encode(uint8_t out[PROOF_BYTES], const struct proof *proof)
{
    blst_p1_affine_compress(out, &proof->a);
    blst_p2_affine_compress(out + B_OFFSET, &proof->b);
    blst_p1_affine_compress(out + C_OFFSET, &proof->c);
}

static const char *decode_fault(BLST_ERROR status)
{
    switch (status) {
    case BLST_BAD_ENCODING:
        return "is not a compressed point";
    case BLST_POINT_NOT_ON_CURVE:
        return "is not on the curve";
    default:
        return "is outside the subgroup";
    }
}

static const char *g1_fault(g1_affine_t *out, const uint8_t *bytes)
{
    BLST_ERROR status = blst_p1_uncompress(out, bytes);

    if (status != BLST_SUCCESS)
        return decode_fault(status);
    if (blst_p1_affine_is_inf(out))
        return "is infinity";
    return blst_p1_affine_in_g1(out) ? NULL : decode_fault(BLST_POINT_NOT_IN_GROUP);
}

static const char *g2_fault(g2_affine_t *out, const uint8_t *bytes)
{
    BLST_ERROR status = blst_p2_uncompress(out, bytes);

    if (status != BLST_SUCCESS)
        return decode_fault(status);
    if (blst_p2_affine_is_inf(out))
        return "is infinity";
    return blst_p2_affine_in_g2(out) ? NULL : decode_fault(BLST_POINT_NOT_IN_GROUP);
}

int proof_decode(struct proof *out, const uint8_t bytes[PROOF_BYTES], struct errmsg *err)
{
    struct proof p;
    const char *fault;

    if ((fault = g1_fault(&p.a, bytes)))
        return errmsg_set(err, -EBADMSG, "proof: A %s", fault);
    if ((fault = g2_fault(&p.b, bytes + B_OFFSET)))
        return errmsg_set(err, -EBADMSG, "proof: B %s", fault);
    if ((fault = g1_fault(&p.c, bytes + C_OFFSET)))
        return errmsg_set(err, -EBADMSG, "proof: C %s", fault);
    *out = p;
    return 0;
}
