/*
 * The body of batch_add.c, once for each group. Before including it define
 *   GROUP   g1 or g2, the prefix of the functions made here
 *   FIELD   fp or fp2, its coordinate field
 *   BATCH   additions that share an inversion
 * The macros are undefined again at the end.
 */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(suffix) PASTE(GROUP, suffix)
#define FIELD_T PASTE(FIELD, t)
#define POINT_T NAME(affine_t)
#define OP(suffix) PASTE(PASTE(blst, FIELD), suffix)

/* y of a point, with its sign as the pair wants it. */
static inline FIELD_T NAME(signed_y)(const POINT_T *p, bool negate)
{
    FIELD_T y = p->y;

    if (negate)
        OP(cneg)(&y, &y, true);
    return y;
}

static void NAME(copy_signed)(POINT_T *out, const POINT_T *p, bool negate)
{
    FIELD_T y = NAME(signed_y)(p, negate);

    out->x = p->x;
    out->y = y;
}

/* The pairs that may need more than the chord formula. *divisor is x2 - x1 and becomes 2y for equal points. */
static enum step NAME(start_special)(const struct add_pair *pair, FIELD_T *divisor)
{
    const POINT_T *a = pair->a, *b = pair->b;

    if (NAME(affine_is_infinity)(a)) {
        NAME(copy_signed)(pair->out, b, pair->negate_b);
        return STEP_DONE;
    }
    if (NAME(affine_is_infinity)(b)) {
        NAME(copy_signed)(pair->out, a, pair->negate_a);
        return STEP_DONE;
    }
    if (!PASTE(FIELD, is_zero)(divisor)) /* x = 0 without being infinity: outside the subgroup */
        return STEP_CHORD;
    FIELD_T ya = NAME(signed_y)(a, pair->negate_a), yb = NAME(signed_y)(b, pair->negate_b);
    OP(add)(divisor, &ya, &yb);
    if (!PASTE(FIELD, is_zero)(divisor))
        return STEP_TANGENT;
    memset(pair->out, 0, sizeof(*a)); /* opposite points */
    return STEP_DONE;
}

/* Decides how to add a pair and finds the divisor of its slope. */
static inline enum step NAME(start)(const struct add_pair *pair, FIELD_T *divisor)
{
    const POINT_T *a = pair->a, *b = pair->b;

    OP(sub)(divisor, &b->x, &a->x);
    if (PASTE(FIELD, is_zero)(divisor) || PASTE(FIELD, is_zero)(&a->x) ||
        PASTE(FIELD, is_zero)(&b->x))
        return NAME(start_special)(pair, divisor);
    return STEP_CHORD;
}

/* The slope's dividend: y2 - y1, or 3 x^2 for a tangent. */
static inline void NAME(dividend)(const struct add_pair *pair, enum step step, FIELD_T *out)
{
    const POINT_T *a = pair->a, *b = pair->b;

    if (step == STEP_TANGENT) {
        OP(sqr)(out, &a->x);
        OP(mul_by_3)(out, out);
        return;
    }
    FIELD_T ya = NAME(signed_y)(a, pair->negate_a), yb = NAME(signed_y)(b, pair->negate_b);
    OP(sub)(out, &yb, &ya);
}

/* The third intersection of the line of slope dividend * inverse through a and b, mirrored. */
static inline void NAME(finish)(const struct add_pair *pair, enum step step, const FIELD_T *inverse)
{
    const POINT_T *a = pair->a, *b = pair->b;
    POINT_T *out = pair->out;
    FIELD_T slope, x, y, ya;

    NAME(dividend)(pair, step, &slope);
    OP(mul)(&slope, &slope, inverse);
    OP(sqr)(&x, &slope);
    OP(sub)(&x, &x, &a->x);
    OP(sub)(&x, &x, &b->x);
    OP(sub)(&y, &a->x, &x);
    OP(mul)(&y, &y, &slope);
    ya = NAME(signed_y)(a, pair->negate_a);
    OP(sub)(&out->y, &y, &ya);
    out->x = x;
}

/* One batch: products of the divisors forward, one inversion, then the single inverses backward. */
static void NAME(add_batch)(const struct add_pair *pairs, size_t len,
                            const struct add_pairs_next *next, struct batch_scratch *s)
{
    FIELD_T product = PASTE(FIELD, one)(), inverse;
    size_t divisions = 0;

    for (size_t i = 0; i < len; i++) {
        s->step[i] = NAME(start)(&pairs[i], &s->GROUP.divisor[i]);
        if (s->step[i] == STEP_DONE)
            continue;
        divisions++;
        s->GROUP.before[i] = product;
        OP(mul)(&product, &product, &s->GROUP.divisor[i]);
    }
    if (divisions == 0)
        return;
    OP(inverse)(&product, &product);
    for (size_t i = len; i-- > 0;) {
        if (next && i < next->len)
            prefetch_pair(&next->pairs[i], sizeof(POINT_T));
        if (s->step[i] == STEP_DONE)
            continue;
        OP(mul)(&inverse, &product, &s->GROUP.before[i]);
        OP(mul)(&product, &product, &s->GROUP.divisor[i]);
        NAME(finish)(&pairs[i], s->step[i], &inverse);
    }
}

/* Whether the chord formula adds this pair, told without reading more than a word of each point: points with the same x
 * or at infinity never pass, and hardly any other fails. */
static inline bool NAME(chord_surely)(const struct add_pair *pair)
{
    uint64_t a = *(const uint64_t *)pair->a, b = *(const uint64_t *)pair->b;

    return a != b && a != 0 && b != 0;
}

/* Chords go four side by side, what remains one by one. */
static void NAME(add_batch_wide)(const struct add_pair *pairs, size_t len,
                                 const struct add_pairs_next *next, struct batch_scratch *s)
{
    size_t chords = 0, others = 0;

    for (size_t i = 0; i < len; i++) {
        if (NAME(chord_surely)(&pairs[i]))
            s->chords[chords++] = &pairs[i];
        else
            s->others[others++] = pairs[i];
    }
    while (chords % 4)
        s->others[others++] = *s->chords[--chords];
    NAME(add_chords_avx2)(s->chords, chords, next, s);
    NAME(add_batch)(s->others, others, NULL, s);
}

void NAME(add_pairs_ahead)(const struct add_pair *pairs, size_t len, const struct add_pair *next,
                           size_t next_len, struct batch_scratch *scratch)
{
    bool wide = cpu_has(CPU_AVX2);

    for (size_t i = 0; i < len; i += BATCH) {
        size_t n = min_size(BATCH, len - i);
        struct add_pairs_next after = following(pairs, len, i + n, next, next_len, BATCH);
        (wide ? NAME(add_batch_wide) : NAME(add_batch))(pairs + i, n, &after, scratch);
    }
}

void NAME(add_pairs)(const struct add_pair *pairs, size_t len, struct batch_scratch *scratch)
{
    NAME(add_pairs_ahead)(pairs, len, NULL, 0, scratch);
}

void NAME(batch_add)(POINT_T *acc, const POINT_T *add, size_t len, struct batch_scratch *scratch)
{
    struct add_pair pairs[128];

    for (size_t i = 0; i < len; i += ARRAY_LEN(pairs)) {
        size_t n = min_size(ARRAY_LEN(pairs), len - i);
        for (size_t k = 0; k < n; k++)
            pairs[k] = (struct add_pair){.a = &acc[i + k], .b = &add[i + k], .out = &acc[i + k]};
        NAME(add_pairs)(pairs, n, scratch);
    }
}

#undef PASTE_
#undef PASTE
#undef NAME
#undef FIELD_T
#undef POINT_T
#undef OP
#undef GROUP
#undef FIELD
#undef BATCH
