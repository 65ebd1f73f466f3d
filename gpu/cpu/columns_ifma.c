/*
 * Eight columns to a vector, kept as they are multiplied: limbs of 52 bits (fp8.h), not canonical, of either sign. Only what
 * is taken in is brought into this form, and it costs a few shifts: the coordinates of a point, blst's times 2^384, are cut
 * into limbs 12 bits (x) and 2 bits (y) higher. A slope then is times 2^406: squared it gives an x times 2^396, and with a
 * difference of these a y times 2^386, so that sums have the form of what they are made of and nothing is ever shifted back.
 *
 * Coordinates are subtracted without reducing them, so they grow, by less than 2^12 p + 3 p with each point; `bound` says for
 * each vector how many p they may have reached, either way. What is multiplied is first made positive by an offset, a
 * multiple of p above all that may be subtracted in the batch.
 *
 * A batch is two passes around one inversion: products of the divisors forward, single inverses and sums backward.
 *
 * Points are read once, lane by lane, and taken into vectors: those of the next batch while this one is divided, into the place of
 * points that have been added. The memory is asked for them a few vectors earlier.
 */
#include "gpu/cpu/columns_code.h"
#include "gpu/cpu/features.h"

#if defined(__x86_64__)

#include <stdlib.h>

#include "gpu/cpu/fp2x8.h"
#include "numa/memory.h"

#define LANES FP8_LANES
#define X_SHIFT 12
#define Y_SHIFT 2
#define BOUND_OF_BASE (1u << X_SHIFT)
#define BOUND_MAX (1u << 28) /* three of them are below 2^30, so that factors stay below 2^31 p */
/* Vectors that share an inversion: columns and scratch take 256 KiB, the points on their way as much again. With twice as many the
 * inversion would be felt less, but pages of 4 KiB, which are what a virtual machine may have, would not fit the TLB. */
#define BATCH_G1 256
#define BATCH_G2 128
#define AHEAD 8 /* vectors whose points are on their way into the first-level cache */

/* Factors, modulo p: 2^404 and 2^414 bring x and y back to blst's form; 2^426 makes 2y a divisor, three times that makes x^2
 * the dividend of a tangent. And 2^64 in blst's form: see invert. */
static const uint64_t x_from_form[FP8_LIMBS] = {0xd003480ea7ee1, 0x3798a71288f15, 0xf9b49b2d851eb,
                                                0xf5b85ac3d2c2d, 0xe247b2f79f0ad, 0x5a88f0d3f7602,
                                                0xf0c3ce8358db5, 0x04cc5};
static const uint64_t y_from_form[FP8_LIMBS] = {0xcd203aa3a2e6c, 0x58629a23f8dcb, 0x33208dac15cdf,
                                                0x1cdb47705d494, 0x42522721fe21d, 0xd4997671edca6,
                                                0x8f166e8dd8641, 0x18b30};
static const uint64_t to_divisor[FP8_LIMBS] = {0x23aa3a7f7659a, 0x0713d791f3885, 0x3917b3bbc5d9a,
                                               0xd40901f4024e9, 0xd8a6873e575b6, 0x5cf79448bde15,
                                               0xd50d45a4f93ff, 0x0c4cd};
static const uint64_t to_dividend[FP8_LIMBS] = {0x7afeaf7e68623, 0x168a32b5dadef, 0x4037b8f166cce,
                                                0x695b9eab344ac, 0x13ac2102b6d9f, 0xfb3f0696edf74,
                                                0x608438f0821b2, 0x0ae58};
static const fp_t two_to_64 = {{0x42b7fde37dba9366, 0x7784894e27525bc3, 0xb2b91b9dc1f5b1e9,
                                0x206f497dfcafb872, 0x594137cc89a9b0bb, 0x0411cd9d20d7e399}};

/* What happens in the lanes of a vector; a lane without a bit anywhere stays as it is. */
struct step {
    uint8_t add;     /* a sum that needs a division */
    uint8_t tangent; /* of these, equal points */
    uint8_t take;    /* infinity plus a point */
    uint8_t cancel;  /* opposite points */
};

struct ifma_columns {
    struct columns base;
    void *vectors;
    uint8_t *live;   /* of each vector, the lanes that are not infinity */
    uint32_t *bound; /* of each vector, in p */
    void *scratch;   /* divisors and products */
    struct step steps[BATCH_G1];
    void *points; /* of a batch, taken in */
    uint8_t points_live[BATCH_G1];
    struct addends next; /* whose points came in with the batch before, */
    base_ref next_refs[BATCH_G1 * LANES];
    size_t taken; /* so many vectors of them */
};

/* What is added: points that were taken in, or other columns. */
struct source {
    const void *vectors;
    const uint8_t *live;
    size_t len;     /* columns */
    uint32_t bound; /* of what is added */
};

/* Points that refs name, and where they are taken in. */
struct intake {
    const void *bases;
    const base_ref *refs;
    base_ref last_refs[LANES]; /* of the last vector, filled up */
    size_t len;
    void *vectors;
    uint8_t *live;
};

static inline size_t vectors_of(size_t columns)
{
    return (columns + LANES - 1) / LANES;
}

static inline const base_ref *refs_at(const struct intake *in, size_t vector)
{
    return LANES * (vector + 1) > in->len ? in->last_refs : in->refs + LANES * vector;
}

/* Of `len` columns, the lanes of a vector that there is something for. */
static inline __mmask8 lanes_at(size_t len, size_t vector)
{
    size_t left = len - LANES * vector;

    return left >= LANES ? 0xff : (__mmask8)((1u << left) - 1);
}

/* Of the first `most` of what is added. */
static struct intake intake_of(struct ifma_columns *c, const struct addends *add, size_t most)
{
    struct intake in = {.bases = add->bases,
                        .refs = add->refs,
                        .len = min_size(most, add->len),
                        .vectors = c->points,
                        .live = c->points_live};
    size_t whole = in.len / LANES * LANES;

    for (size_t i = 0; i < LANES && in.len > 0; i++)
        in.last_refs[i] = add->refs[whole + i < in.len ? whole + i : 0];
    return in;
}

/* Vectors of these addends that came in with the batch before. That is told by the refs themselves: a caller's array may be the same
 * and say something else. */
static size_t taken_in(const struct ifma_columns *c, const struct addends *add)
{
    const struct addends *next = &c->next;

    if (next->bases != add->bases || next->len != add->len ||
        memcmp(next->refs, add->refs, add->len * sizeof(*add->refs)) != 0)
        return 0;
    return c->taken;
}

/* Remembers what came in: `vectors` of these. */
static void remember_taken(struct ifma_columns *c, const struct intake *in, size_t vectors)
{
    c->taken = vectors;
    c->next.len = vectors ? in->len : 0;
    if (vectors == 0)
        return;
    c->next.bases = in->bases;
    memcpy(c->next_refs, in->refs, in->len * sizeof(*in->refs));
}

/* The largest bound among some vectors. */
static uint32_t bound_of(const uint32_t *bound, size_t vectors)
{
    uint32_t largest = 0;

    for (size_t k = 0; k < vectors; k++)
        largest = bound[k] > largest ? bound[k] : largest;
    return largest;
}

static void ifma_destroy(struct columns *columns)
{
    struct ifma_columns *c = (struct ifma_columns *)columns;

    free(c->vectors);
    free(c->live);
    free(c->bound);
    free(c->scratch);
    free(c->points);
    free(c);
}

static void ifma_clear(struct columns *columns, size_t at, size_t len)
{
    struct ifma_columns *c = (struct ifma_columns *)columns;

    memset(c->live + at / LANES, 0, vectors_of(len));
    memset(c->bound + at / LANES, 0, vectors_of(len) * sizeof(*c->bound));
}

/* Vectors for `len` columns, and what a batch of some vectors works with. */
static struct columns *ifma_create(size_t len, size_t batch, size_t vector_bytes,
                                   size_t division_bytes)
{
    struct ifma_columns *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->vectors = aligned_alloc(64, vectors_of(len) * vector_bytes);
    c->live = calloc(vectors_of(len) + 1, sizeof(*c->live));
    c->bound = calloc(vectors_of(len) + 1, sizeof(*c->bound));
    c->scratch = aligned_alloc(64, batch * division_bytes);
    c->points = aligned_alloc(64, batch * vector_bytes);
    c->next.refs = c->next_refs;
    if (c->vectors && c->live && c->bound && c->scratch && c->points)
        return &c->base;
    ifma_destroy(&c->base);
    return NULL;
}

static void fp_scale(fp_t *x, const fp_t *k)
{
    blst_fp_mul(x, x, k);
}

static void fp2_scale(fp2_t *x, const fp_t *k)
{
    fp_scale(&x->fp[0], k);
    fp_scale(&x->fp[1], k);
}

#define GROUP g1
#define FIELD fp
#define ELEMENTS fp8
#define BATCH BATCH_G1
#include "gpu/cpu/columns_ifma_impl.h"

#define GROUP g2
#define FIELD fp2
#define ELEMENTS fp2x8
#define BATCH BATCH_G2
#include "gpu/cpu/columns_ifma_impl.h"

const struct columns_code *columns_ifma(const struct group *group)
{
    if (!cpu_has(CPU_IFMA))
        return NULL;
    return group == &group_g2 ? &g2_code : &g1_code;
}

#else

const struct columns_code *columns_ifma(const struct group *group)
{
    (void)group;
    return NULL;
}

#endif
