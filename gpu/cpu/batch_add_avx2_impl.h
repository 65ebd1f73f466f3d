/*
 * The body of batch_add_avx2.c, once for each group. Before including it define
 *   GROUP   g1 or g2, the prefix of the functions made here
 *   FIELD   fp or fp2, its coordinate field
 *   LANES   fp4 or fp2x4, four elements of it
 * The macros are undefined again at the end.
 */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(suffix) PASTE(GROUP, suffix)
#define FIELD_T PASTE(FIELD, t)
#define POINT_T NAME(affine_t)
#define OP(suffix) PASTE(PASTE(blst, FIELD), suffix)
#define LANES_T struct LANES
#define LANES_OP(suffix) PASTE(LANES, suffix)

/* Four pairs: the difference of their x, and the product of the differences before it. */
struct NAME(quad) {
    LANES_T divisor, before;
};

static inline const POINT_T *NAME(point_of)(const struct add_pair *pair, enum side side)
{
    return side == SIDE_A ? pair->a : pair->b;
}

static inline void NAME(load_x)(LANES_T *out, const struct add_pair *const *pairs, enum side side)
{
    const FIELD_T *x[4];

    for (int lane = 0; lane < 4; lane++)
        x[lane] = &NAME(point_of)(pairs[lane], side)->x;
    LANES_OP(load)(out, x);
}

/* y with its sign as the pair wants it; loose. */
static inline void NAME(load_y)(LANES_T *out, const struct add_pair *const *pairs, enum side side)
{
    const FIELD_T *y[4];
    int64_t mask[4];

    for (int lane = 0; lane < 4; lane++) {
        const struct add_pair *pair = pairs[lane];
        y[lane] = &NAME(point_of)(pair, side)->y;
        mask[lane] = -(int64_t)(side == SIDE_A ? pair->negate_a : pair->negate_b);
    }
    LANES_OP(load)(out, y);
    LANES_OP(negate)
    (out, _mm256_castsi256_pd(_mm256_setr_epi64x(mask[0], mask[1], mask[2], mask[3])));
}

static inline void NAME(load_divisor)(LANES_T *out, const struct add_pair *const *pairs)
{
    LANES_T xa, xb;

    NAME(load_x)(&xa, pairs, SIDE_A);
    NAME(load_x)(&xb, pairs, SIDE_B);
    LANES_OP(sub)(out, &xb, &xa);
    LANES_OP(carry)(out);
}

/* Lane by lane, through one inversion of the product of the four. */
static void NAME(invert)(LANES_T *x)
{
    FIELD_T lanes[4], before[4], product, inverse;
    FIELD_T *const out[4] = {&lanes[0], &lanes[1], &lanes[2], &lanes[3]};
    const FIELD_T *const in[4] = {&lanes[0], &lanes[1], &lanes[2], &lanes[3]};

    LANES_OP(store)(out, x);
    product = lanes[0];
    for (int i = 1; i < 4; i++) {
        before[i] = product;
        OP(mul)(&product, &product, &lanes[i]);
    }
    OP(inverse)(&inverse, &product);
    for (int i = 3; i > 0; i--) {
        FIELD_T lane = lanes[i];
        OP(mul)(&lanes[i], &inverse, &before[i]);
        OP(mul)(&inverse, &inverse, &lane);
    }
    lanes[0] = inverse;
    LANES_OP(load)(x, in);
    LANES_OP(carry)(x);
}

static inline void NAME(store_point)(const struct add_pair *const *pairs, const LANES_T *x,
                                     const LANES_T *y)
{
    FIELD_T *out_x[4], *out_y[4];

    for (int lane = 0; lane < 4; lane++) {
        POINT_T *out = pairs[lane]->out;
        out_x[lane] = &out->x;
        out_y[lane] = &out->y;
    }
    LANES_OP(store)(out_x, x);
    LANES_OP(store)(out_y, y);
}

/* In units of p: the slope is below 0.7 in size, x between -2.7 and 0.7, y between -2 and 1, which is within what the
 * store takes. */
static inline void NAME(add_quad)(const struct add_pair *const *pairs, const LANES_T *divisor,
                                  const LANES_T *inverse)
{
    LANES_T xa, ya, yb, slope, x, y;

    NAME(load_y)(&ya, pairs, SIDE_A);
    NAME(load_y)(&yb, pairs, SIDE_B);
    NAME(load_x)(&xa, pairs, SIDE_A);
    LANES_OP(sub)(&slope, &yb, &ya);
    LANES_OP(carry)(&slope);
    LANES_OP(mul)(&slope, &slope, inverse);
    LANES_OP(sqr)(&x, &slope); /* - xa - xb, and xb = xa + divisor */
    LANES_OP(sub)(&x, &x, &xa);
    LANES_OP(sub)(&x, &x, &xa);
    LANES_OP(sub)(&x, &x, divisor);
    LANES_OP(carry)(&x);
    LANES_OP(sub)(&y, &xa, &x);
    LANES_OP(carry)(&y);
    LANES_OP(mul)(&y, &y, &slope);
    LANES_OP(sub)(&y, &y, &ya);
    NAME(store_point)(pairs, &x, &y);
}

void NAME(add_chords_avx2)(const struct add_pair *const *pairs, size_t len,
                           const struct add_pairs_next *next, struct batch_scratch *scratch)
{
    struct NAME(quad) *quads = aligned_bytes(scratch);
    LANES_T product, inverse;

    if (len == 0)
        return;
    NAME(load_divisor)(&quads[0].divisor, pairs);
    product = quads[0].divisor;
    for (size_t i = 1; i < len / 4; i++) {
        NAME(load_divisor)(&quads[i].divisor, pairs + 4 * i);
        quads[i].before = product;
        LANES_OP(mul)(&product, &product, &quads[i].divisor);
    }
    NAME(invert)(&product);
    for (size_t i = len / 4; i-- > 1;) {
        for (size_t k = 4 * i; k < 4 * i + 4 && k < next->len; k++)
            prefetch_pair(&next->pairs[k], sizeof(POINT_T));
        LANES_OP(mul)(&inverse, &product, &quads[i].before);
        LANES_OP(mul)(&product, &product, &quads[i].divisor);
        NAME(add_quad)(pairs + 4 * i, &quads[i].divisor, &inverse);
    }
    NAME(add_quad)(pairs, &quads[0].divisor, &product);
}

#undef PASTE_
#undef PASTE
#undef NAME
#undef FIELD_T
#undef POINT_T
#undef OP
#undef LANES_T
#undef LANES_OP
#undef GROUP
#undef FIELD
#undef LANES
