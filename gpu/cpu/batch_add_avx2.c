/*
 * The same two passes as in batch_add_impl.h, with a running product in each of four lanes; the lanes' products share the
 * inversion. Points are read and written in blst's form, so that nobody else needs to know.
 */
#include "gpu/cpu/batch_add_avx2.h"

#if defined(__x86_64__)

#include "gpu/cpu/fp4.h"

/* Four pairs: the difference of their x, and the product of the differences before it. */
struct quad {
    struct fp4 divisor, before;
};

_Static_assert(sizeof(struct quad) * (BATCH_ADD_LEN_G1 / 4) + 64 <= BATCH_SCRATCH_BYTES,
               "the scratch of a batch is too small");

static struct quad *quads_of(struct batch_scratch *scratch)
{
    return (struct quad *)(((uintptr_t)scratch->bytes + 63) & ~(uintptr_t)63);
}

enum side { SIDE_A, SIDE_B };

static inline const g1_affine_t *point_of(const struct add_pair *pair, enum side side)
{
    return side == SIDE_A ? pair->a : pair->b;
}

static inline void load_x(struct fp4 *out, const struct add_pair *const *pairs, enum side side)
{
    const fp_t *x[4];

    for (int lane = 0; lane < 4; lane++)
        x[lane] = &point_of(pairs[lane], side)->x;
    fp4_load(out, x);
}

/* y with its sign as the pair wants it; loose. */
static inline void load_y(struct fp4 *out, const struct add_pair *const *pairs, enum side side)
{
    const fp_t *y[4];
    int64_t mask[4];

    for (int lane = 0; lane < 4; lane++) {
        const struct add_pair *pair = pairs[lane];
        y[lane] = &point_of(pair, side)->y;
        mask[lane] = -(int64_t)(side == SIDE_A ? pair->negate_a : pair->negate_b);
    }
    fp4_load(out, y);
    fp4_negate(out, _mm256_castsi256_pd(_mm256_setr_epi64x(mask[0], mask[1], mask[2], mask[3])));
}

/* Lane by lane, through one inversion of the product of the four. */
static void fp4_inverse(struct fp4 *x)
{
    fp_t lanes[4], before[4], product, inverse;
    fp_t *const out[4] = {&lanes[0], &lanes[1], &lanes[2], &lanes[3]};
    const fp_t *const in[4] = {&lanes[0], &lanes[1], &lanes[2], &lanes[3]};

    fp4_store(out, *x);
    product = lanes[0];
    for (int i = 1; i < 4; i++) {
        before[i] = product;
        blst_fp_mul(&product, &product, &lanes[i]);
    }
    blst_fp_inverse(&inverse, &product);
    for (int i = 3; i > 0; i--) {
        fp_t lane = lanes[i];
        blst_fp_mul(&lanes[i], &inverse, &before[i]);
        blst_fp_mul(&inverse, &inverse, &lane);
    }
    lanes[0] = inverse;
    fp4_load(x, in);
}

static inline void store_point(const struct add_pair *const *pairs, const struct fp4 *x,
                               const struct fp4 *y)
{
    fp_t *out_x[4], *out_y[4];

    for (int lane = 0; lane < 4; lane++) {
        g1_affine_t *out = pairs[lane]->out;
        out_x[lane] = &out->x;
        out_y[lane] = &out->y;
    }
    fp4_store(out_x, *x);
    fp4_store(out_y, *y);
}

/* Sizes in units of p: products of factors this small are below 0.8 either way, so that x and y below are within what
 * fp4_store takes. */
static inline void add_quad(const struct add_pair *const *pairs, const struct fp4 *divisor,
                            const struct fp4 *inverse)
{
    struct fp4 xa, ya, yb, slope, x, y;

    load_y(&ya, pairs, SIDE_A);
    load_y(&yb, pairs, SIDE_B);
    load_x(&xa, pairs, SIDE_A);
    fp4_sub(&slope, &yb, &ya);
    fp4_carry(&slope);
    fp4_mul(&slope, &slope, inverse);
    fp4_sqr(&x, &slope); /* - xa - xb, and xb = xa + divisor */
    fp4_sub(&x, &x, &xa);
    fp4_sub(&x, &x, &xa);
    fp4_sub(&x, &x, divisor);
    fp4_carry(&x);
    fp4_sub(&y, &xa, &x);
    fp4_mul(&y, &y, &slope);
    fp4_sub(&y, &y, &ya);
    store_point(pairs, &x, &y);
}

void g1_add_chords_avx2(const struct add_pair *const *pairs, size_t len,
                        const struct add_pairs_next *next, struct batch_scratch *scratch)
{
    struct quad *quads = quads_of(scratch);
    struct fp4 product, inverse, xa, xb;

    if (len == 0)
        return;
    load_x(&xa, pairs, SIDE_A);
    load_x(&xb, pairs, SIDE_B);
    fp4_sub(&quads[0].divisor, &xb, &xa);
    product = quads[0].divisor;
    for (size_t i = 1; i < len / 4; i++) {
        load_x(&xa, pairs + 4 * i, SIDE_A);
        load_x(&xb, pairs + 4 * i, SIDE_B);
        fp4_sub(&quads[i].divisor, &xb, &xa);
        quads[i].before = product;
        fp4_mul(&product, &product, &quads[i].divisor);
    }
    fp4_inverse(&product);
    for (size_t i = len / 4; i-- > 1;) {
        for (size_t k = 4 * i; k < 4 * i + 4 && k < next->len; k++)
            prefetch_pair(&next->pairs[k], sizeof(g1_affine_t));
        fp4_mul(&inverse, &product, &quads[i].before);
        fp4_mul(&product, &product, &quads[i].divisor);
        add_quad(pairs + 4 * i, &quads[i].divisor, &inverse);
    }
    add_quad(pairs, &quads[0].divisor, &product);
}

#else

void g1_add_chords_avx2(const struct add_pair *const *pairs, size_t len,
                        const struct add_pairs_next *next, struct batch_scratch *scratch)
{
    (void)pairs;
    (void)len;
    (void)next;
    (void)scratch;
}

#endif
