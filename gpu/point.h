/*
 * Points in their uncompressed encoding (c2-formats 5.2), as parameter files hold them.
 *
 * Decoding and checking are two steps, because a file of known digest needs only the first. Any thread may
 * call anything here.
 */
#ifndef GPU_POINT_H
#define GPU_POINT_H

#include "gpu/curve.h"

/* What is wrong with a point; 0 when nothing is. */
enum point_fault {
    POINT_OK,
    POINT_FLAGS,         /* compressed, or a stray bit among the top three */
    POINT_NOT_CANONICAL, /* a coordinate is not below the modulus */
    POINT_INFINITY,
    POINT_OFF_CURVE,
    POINT_OUTSIDE_SUBGROUP,
};

/* "is not on the curve" and the like. */
const char *point_fault_text(enum point_fault fault);

/* Decodes one point; looks at flags, canonical coordinates and infinity, not at the curve. *out is written
 * in any case, and is to be used only when there was no fault. */
enum point_fault g1_decode(g1_affine_t *out, const uint8_t bytes[G1_BYTES]);
enum point_fault g2_decode(g2_affine_t *out, const uint8_t bytes[G2_BYTES]);

/* The same, then curve and subgroup: for a few points (about 40 and 60 microseconds each). */
enum point_fault g1_decode_checked(g1_affine_t *out, const uint8_t bytes[G1_BYTES]);
enum point_fault g2_decode_checked(g2_affine_t *out, const uint8_t bytes[G2_BYTES]);

/* Of a point as it is in memory: coordinates that are not canonical; infinity is none. */
enum point_fault g1_affine_fault(const g1_affine_t *p);

/* The encodings, of points that are not infinity. */
void g1_encode(uint8_t bytes[G1_BYTES], const g1_affine_t *p);
void g2_encode(uint8_t bytes[G2_BYTES], const g2_affine_t *p);

#endif
