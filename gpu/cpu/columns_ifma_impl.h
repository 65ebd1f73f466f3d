/*
 * The body of columns_ifma.c, once for each group. Before including it define
 *   GROUP      g1 or g2, the prefix of the functions made here
 *   FIELD      fp or fp2, its coordinate field
 *   ELEMENTS   fp8 or fp2x8, eight elements of it
 *   BATCH      vectors that share an inversion
 * The macros are undefined again at the end.
 */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(suffix) PASTE(GROUP, suffix)
#define FIELD_T PASTE(FIELD, t)
#define POINT_T NAME(affine_t)
#define ELEMENTS_T struct ELEMENTS
#define OP(suffix) PASTE(ELEMENTS, suffix)

struct NAME(vector) {
    ELEMENTS_T x, y;
};

/* Of one vector in a batch: the divisors, and the product of those before them. */
struct NAME(division) {
    ELEMENTS_T divisor, before;
};

struct NAME(batch) {
    struct NAME(vector) * sums;
    uint8_t *live;
    uint32_t *bound;
    const struct source *source;
    struct step *steps;
    struct NAME(division) * divisions;
    struct fp8 offset;
    const struct intake *next; /* what is taken in meanwhile: vectors [0, taken) */
    size_t taken;
};

/* Brings the points of some lanes of a vector into the first-level cache. Few at a time: the CPU waits for some dozen lines at
 * once, and what comes then waits for these. (Inlined by force: to gcc a function that only fetches has no effect, and its calls
 * go.) */
static inline __attribute__((always_inline)) void NAME(fetch)(const struct intake *in, size_t k,
                                                              int lane, int lanes)
{
    const base_ref *refs = refs_at(in, k);

    for (int l = lane; l < lane + lanes; l++) {
        const char *p = (const char *)((const POINT_T *)in->bases + (refs[l] >> 1));
        for (size_t at = 0; at < sizeof(POINT_T); at += 64)
            __builtin_prefetch(p + at);
        __builtin_prefetch(p + sizeof(POINT_T) - 1);
    }
}

/* Takes vector k in. Hardly any point but infinity has an x whose lowest bits are zero. */
static inline void NAME(take_in)(const struct intake *in, size_t k)
{
    struct NAME(vector) *to = (struct NAME(vector) *)in->vectors + k;
    const base_ref *refs = refs_at(in, k);
    const FIELD_T *x[LANES], *y[LANES];
    __m256i signs = _mm256_loadu_si256((const __m256i *)refs);
    __mmask8 live = lanes_at(in->len, k);

    for (int l = 0; l < LANES; l++) {
        const POINT_T *point = (const POINT_T *)in->bases + (refs[l] >> 1);
        x[l] = &point->x;
        y[l] = &point->y;
    }
    OP(load)(&to->x, x, X_SHIFT);
    OP(load)(&to->y, y, Y_SHIFT);
    OP(negate)(&to->y, _mm256_test_epi32_mask(signs, _mm256_set1_epi32(1)));
    fp8_limb low = *(const fp8_limb *)&to->x;
    __mmask8 suspects = _mm512_testn_epi64_mask(low, low);
    for (int l = 0; suspects; l++, suspects >>= 1)
        if (suspects & 1 && NAME(affine_is_infinity)((const POINT_T *)in->bases + (refs[l] >> 1)))
            live &= (__mmask8) ~(1u << l);
    in->live[k] = live;
}

/* Vectors [first, end) of an intake. */
static __attribute__((noinline)) void NAME(take_in_all)(const struct intake *in, size_t first,
                                                        size_t end)
{
    for (size_t k = first; k < first + AHEAD && k < end; k++)
        NAME(fetch)(in, k, 0, LANES);
    for (size_t k = first; k < end; k++) {
        if (k + AHEAD < end)
            NAME(fetch)(in, k + AHEAD, 0, LANES);
        NAME(take_in)(in, k);
    }
}

static inline const struct NAME(vector) * NAME(source_at)(const struct NAME(batch) * b, size_t k)
{
    return (const struct NAME(vector) *)b->source->vectors + k;
}

/* Lanes in which both points have the same x: their divisor becomes 2y, unless they cancel each other. */
static __attribute__((noinline)) void NAME(same_x)(const struct NAME(batch) * b, size_t k,
                                                   struct step *step, ELEMENTS_T *divisor)
{
    const ELEMENTS_T *y = &b->sums[k].y;
    struct fp8 factor;
    ELEMENTS_T sum;

    __mmask8 same = step->add & OP(is_zero)(divisor);
    if (!same)
        return;
    OP(add)(&sum, &NAME(source_at)(b, k)->y, y);
    OP(offset)(&sum, &b->offset);
    OP(carry)(&sum);
    step->cancel = same & OP(is_zero)(&sum);
    step->add &= (uint8_t)~step->cancel;
    step->tangent = same & (uint8_t)~step->cancel;
    fp8_broadcast(&factor, to_divisor);
    OP(scale)(&sum, &sum, &factor);
    OP(select)(divisor, step->tangent, &sum, divisor);
}

/* Finds out what is to be done in each lane, and the divisors: x2 - x1, and 1 where nothing is divided. */
static inline struct step NAME(start)(const struct NAME(batch) * b, size_t k, ELEMENTS_T *divisor)
{
    ELEMENTS_T one;

    __mmask8 live = lanes_at(b->source->len, k) & b->source->live[k];
    struct step step = {.add = live & b->live[k], .take = live & (__mmask8)~b->live[k]};
    OP(sub)(divisor, &NAME(source_at)(b, k)->x, &b->sums[k].x);
    OP(offset)(divisor, &b->offset);
    OP(carry)(divisor);
    if (__builtin_expect(OP(maybe_zero)(divisor) & step.add, 0))
        NAME(same_x)(b, k, &step, divisor);
    if (__builtin_expect(step.add != 0xff, 0)) {
        OP(broadcast)(&one, fp8_one);
        OP(select)(divisor, step.add, divisor, &one);
    }
    return step;
}

/* The dividend of a tangent: 3 x^2 */
static __attribute__((noinline)) void NAME(tangent)(const struct NAME(batch) * b, size_t k,
                                                    ELEMENTS_T *out)
{
    ELEMENTS_T x = b->sums[k].x;
    struct fp8 factor;

    OP(offset)(&x, &b->offset);
    OP(carry)(&x);
    fp8_broadcast(&factor, fp8_one);
    OP(scale)(&x, &x, &factor); /* reduces it, so that it may be squared */
    OP(sqr_loose)(&x, &x);
    OP(carry)(&x);
    fp8_broadcast(&factor, to_dividend);
    OP(scale)(&x, &x, &factor);
    OP(select)(out, b->steps[k].tangent, &x, out);
}

/* y2 - y1, or 3 x^2 for a tangent */
static inline void NAME(dividend)(const struct NAME(batch) * b, size_t k, ELEMENTS_T *out)
{
    OP(sub)(out, &NAME(source_at)(b, k)->y, &b->sums[k].y);
    OP(offset)(out, &b->offset);
    OP(carry)(out);
    if (__builtin_expect(b->steps[k].tangent, 0))
        NAME(tangent)(b, k, out);
}

/* x1 + x2, loose; of a chord x2 is x1 and the divisor, less the offset. */
static inline void NAME(sum_of_x)(const struct NAME(batch) * b, size_t k, ELEMENTS_T *out)
{
    const ELEMENTS_T *x = &b->sums[k].x;

    if (__builtin_expect(b->steps[k].tangent, 0)) {
        OP(add)(out, &NAME(source_at)(b, k)->x, x);
        return;
    }
    OP(add)(out, x, x);
    OP(add)(out, out, &b->divisions[k].divisor);
    OP(deduct)(out, &b->offset);
}

/* x of the third intersection: slope^2 - x1 - x2 */
static inline void NAME(third_x)(const struct NAME(batch) * b, size_t k, const ELEMENTS_T *slope,
                                 ELEMENTS_T *out)
{
    ELEMENTS_T t;

    OP(sqr_loose)(out, slope);
    NAME(sum_of_x)(b, k, &t);
    OP(sub)(out, out, &t);
    OP(carry)(out);
}

/* Its y, mirrored: slope (x1 - x) - y1 */
static inline void NAME(third_y)(const struct NAME(batch) * b, size_t k, const ELEMENTS_T *slope,
                                 const ELEMENTS_T *x, ELEMENTS_T *out)
{
    ELEMENTS_T t;

    OP(sub)(&t, &b->sums[k].x, x);
    OP(offset)(&t, &b->offset);
    OP(carry)(&t);
    OP(mul_loose)(out, slope, &t);
    OP(sub)(out, out, &b->sums[k].y);
    OP(carry)(out);
}

static inline void NAME(keep)(const struct NAME(batch) * b, size_t k, struct NAME(vector) * sum)
{
    __mmask8 add = b->steps[k].add;

    if (__builtin_expect(add != 0xff, 0)) {
        OP(select)(&sum->x, add, &sum->x, &b->sums[k].x);
        OP(select)(&sum->y, add, &sum->y, &b->sums[k].y);
    }
    b->sums[k] = *sum;
}

/* Lanes that were infinity become what is added. */
static inline void NAME(take)(const struct NAME(batch) * b, size_t k)
{
    struct NAME(vector) *sum = &b->sums[k], p = *NAME(source_at)(b, k);

    OP(carry)(&p.y);
    OP(select)(&sum->x, b->steps[k].take, &p.x, &sum->x);
    OP(select)(&sum->y, b->steps[k].take, &p.y, &sum->y);
}

/* Lane by lane: the product of the other lanes, times the inverse of the product of all. */
static void NAME(invert)(ELEMENTS_T *x)
{
    ELEMENTS_T two, four, all, others, t;
    struct fp8 one;
    FIELD_T inverse;
    FIELD_T *const out[LANES] = {&inverse};
    const FIELD_T *const in[LANES] = {&inverse, &inverse, &inverse, &inverse,
                                      &inverse, &inverse, &inverse, &inverse};

    OP(rotate)(&others, x, 1);
    OP(mul)(&two, x, &others);
    OP(rotate)(&t, &two, 2);
    OP(mul)(&four, &two, &t);
    OP(mul)(&others, &others, &t);
    OP(rotate)(&t, &four, 4);
    OP(mul)(&all, &four, &t);
    OP(mul)(&others, &others, &t);
    /* As blst reads it, `all` has a factor of 2^32 too many, so that the inverse lacks one; and another makes it ours. */
    fp8_broadcast(&one, fp8_one);
    OP(scale)(&all, &all, &one);
    OP(canonical)(&all);
    OP(store)(out, &all, 1);
    PASTE(PASTE(blst, FIELD), inverse)(&inverse, &inverse);
    PASTE(FIELD, scale)(&inverse, &two_to_64);
    OP(load)(&t, in, 0);
    OP(mul)(x, &others, &t);
}

/* Each becomes its inverse. */
static void NAME(invert_two)(ELEMENTS_T x[2])
{
    ELEMENTS_T both;

    OP(mul)(&both, &x[0], &x[1]);
    NAME(invert)(&both);
    OP(mul)(&x[0], &x[0], &both);
    OP(mul)(&x[1], &x[1], &both);
    both = x[0];
    x[0] = x[1];
    x[1] = both;
}

/* Products of the divisors, of vectors with even and with odd numbers, each before[k] without that of vector k: two that do not
 * wait for each other. Whether any lane divides. */
static inline bool NAME(multiply_up)(const struct NAME(batch) * b, ELEMENTS_T product[2])
{
    const size_t vectors = vectors_of(b->source->len);
    uint8_t add = 0;

    OP(broadcast)(&product[0], fp8_one);
    product[1] = product[0];
    b->steps[0] = NAME(start)(b, 0, &b->divisions[0].divisor);
    for (size_t k = 0; k < vectors; k++) {
        struct NAME(division) *d = &b->divisions[k];

        if (k + AHEAD >= vectors && k < b->taken)
            NAME(fetch)(b->next, k, 0, LANES);
        if (k + 1 < vectors)
            b->steps[k + 1] = NAME(start)(b, k + 1, &d[1].divisor);
        add |= b->steps[k].add;
        d->before = product[k % 2];
        OP(mul)(&product[k % 2], &product[k % 2], &d->divisor);
    }
    return add;
}

/* The sums, from the last vector to the first. Products that wait for each other do not follow one another: between those of
 * one vector, the inverse of the next is made. What is added next comes in meanwhile, to where this vector's points were. */
static inline void NAME(divide_down)(const struct NAME(batch) * b, ELEMENTS_T product[2])
{
    size_t k = vectors_of(b->source->len) - 1;
    ELEMENTS_T inverse, slope, dividend;
    struct NAME(vector) sum;

    OP(mul)(&inverse, &product[k % 2], &b->divisions[k].before);
    OP(mul)(&product[k % 2], &product[k % 2], &b->divisions[k].divisor);
    NAME(dividend)(b, k, &dividend);
    for (;; k--) {
        bool fetch = k >= AHEAD && k - AHEAD < b->taken;

        if (fetch)
            NAME(fetch)(b->next, k - AHEAD, 0, 2);
        OP(mul)(&slope, &dividend, &inverse);
        if (k > 0) {
            NAME(dividend)(b, k - 1, &dividend);
            OP(mul)(&inverse, &product[(k - 1) % 2], &b->divisions[k - 1].before);
        }
        if (fetch)
            NAME(fetch)(b->next, k - AHEAD, 2, 2);
        NAME(third_x)(b, k, &slope, &sum.x);
        if (k > 0)
            OP(mul)(&product[(k - 1) % 2], &product[(k - 1) % 2], &b->divisions[k - 1].divisor);
        if (fetch)
            NAME(fetch)(b->next, k - AHEAD, 4, 2);
        NAME(third_y)(b, k, &slope, &sum.x, &sum.y);
        NAME(keep)(b, k, &sum);
        if (__builtin_expect(b->steps[k].take, 0))
            NAME(take)(b, k);
        if (fetch)
            NAME(fetch)(b->next, k - AHEAD, 6, 2);
        if (k < b->taken)
            NAME(take_in)(b->next, k);
        if (k == 0)
            break;
    }
}

static __attribute__((noinline)) void NAME(add_batch)(const struct NAME(batch) * b)
{
    size_t vectors = vectors_of(b->source->len);
    ELEMENTS_T product[2];

    if (NAME(multiply_up)(b, product)) {
        NAME(invert_two)(product);
        NAME(divide_down)(b, product);
    } else {
        for (size_t k = 0; k < vectors; k++)
            if (b->steps[k].take)
                NAME(take)(b, k);
        NAME(take_in_all)(b->next, 0, b->taken);
    }
    for (size_t k = 0; k < vectors; k++) {
        b->live[k] = (uint8_t)((b->live[k] | b->steps[k].take) & ~b->steps[k].cancel);
        b->bound[k] += b->source->bound + 3;
    }
}

/* Brings coordinates below 2 p. */
static void NAME(reduce)(struct ifma_columns *c, size_t vector, size_t vectors)
{
    struct NAME(vector) *sums = (struct NAME(vector) *)c->vectors + vector;
    struct fp8 offset, one;

    fp8_broadcast(&one, fp8_one);
    for (size_t k = 0; k < vectors; k++) {
        fp8_multiple_of_p(&offset, c->bound[vector + k] + 1);
        OP(offset)(&sums[k].x, &offset);
        OP(offset)(&sums[k].y, &offset);
        OP(carry)(&sums[k].x);
        OP(carry)(&sums[k].y);
        OP(scale)(&sums[k].x, &sums[k].x, &one);
        OP(scale)(&sums[k].y, &sums[k].y, &one);
        c->bound[vector + k] = 2;
    }
}

/* The largest bound of a range, after reducing it if need be. */
static uint32_t NAME(settle)(struct ifma_columns *c, size_t vector, size_t vectors)
{
    uint32_t bound = bound_of(c->bound + vector, vectors);

    if (bound < BOUND_MAX)
        return bound;
    NAME(reduce)(c, vector, vectors);
    return 2;
}

/* The batch that adds `source` to the columns from `vector` on. */
static void NAME(batch_init)(struct NAME(batch) * b, struct ifma_columns *c, size_t vector,
                             const struct source *source)
{
    *b = (struct NAME(batch)){
        .sums = (struct NAME(vector) *)c->vectors + vector,
        .live = c->live + vector,
        .bound = c->bound + vector,
        .source = source,
        .steps = c->steps,
        .divisions = c->scratch,
    };
    uint32_t bound = NAME(settle)(c, vector, vectors_of(source->len));
    /* What is subtracted is at most twice a sum, a point, and less than 3 p of rounding. */
    fp8_multiple_of_p(&b->offset, 2 * bound + source->bound + 8);
}

/* A batch of points: what has not been taken in meanwhile is now. */
static void NAME(add_points)(struct ifma_columns *c, size_t vector, const struct addends *add,
                             const struct addends *next)
{
    const size_t vectors = vectors_of(add->len);
    const struct source source = {
        .vectors = c->points, .live = c->points_live, .len = add->len, .bound = BOUND_OF_BASE};
    const struct addends nothing = {.len = 0};
    const struct intake now = intake_of(c, add, BATCH * LANES),
                        then = intake_of(c, next ? next : &nothing, BATCH * LANES);
    struct NAME(batch) b;

    NAME(take_in_all)(&now, taken_in(c, add), vectors);
    NAME(batch_init)(&b, c, vector, &source);
    b.next = &then;
    b.taken = min_size(vectors, vectors_of(then.len));
    NAME(add_batch)(&b);
    remember_taken(c, &then, b.taken);
}

static void NAME(add)(struct columns *columns, size_t at, const struct addends *add,
                      const struct addends *next)
{
    for (size_t first = 0; first < add->len; first += BATCH * LANES) {
        size_t len = min_size(BATCH * LANES, add->len - first);
        struct addends piece = {add->bases, add->refs + first, len};
        struct addends rest = {add->bases, piece.refs + len, add->len - first - len};
        NAME(add_points)
        ((struct ifma_columns *)columns, (at + first) / LANES, &piece, rest.len ? &rest : next);
    }
}

static void NAME(add_columns)(struct columns *columns, size_t to, size_t from, size_t len)
{
    struct ifma_columns *c = (struct ifma_columns *)columns;
    struct NAME(batch) b;

    for (size_t first = 0; first < len; first += BATCH * LANES) {
        size_t vector = (from + first) / LANES;
        struct source source = {.vectors = (const struct NAME(vector) *)c->vectors + vector,
                                .live = c->live + vector,
                                .len = min_size(BATCH * LANES, len - first)};
        source.bound = NAME(settle)(c, vector, vectors_of(source.len));
        NAME(batch_init)(&b, c, (to + first) / LANES, &source);
        NAME(add_batch)(&b);
    }
}

/* Writes the columns of one vector whose bit is set; infinity is all zero. */
static void NAME(store_vector)(struct ifma_columns *c, size_t vector, __mmask8 lanes, POINT_T *out)
{
    struct NAME(vector) sum = ((struct NAME(vector) *)c->vectors)[vector];
    FIELD_T *x[LANES], *y[LANES];
    struct fp8 offset, factor;

    for (int l = 0; l < LANES; l++) {
        bool written = lanes >> l & 1;
        x[l] = written ? &out[l].x : NULL;
        y[l] = written ? &out[l].y : NULL;
        if (written && !(c->live[vector] >> l & 1))
            memset(&out[l], 0, sizeof(out[l]));
    }
    fp8_multiple_of_p(&offset, c->bound[vector] + 1);
    OP(offset)(&sum.x, &offset);
    OP(offset)(&sum.y, &offset);
    OP(carry)(&sum.x);
    OP(carry)(&sum.y);
    fp8_broadcast(&factor, x_from_form);
    OP(scale)(&sum.x, &sum.x, &factor);
    fp8_broadcast(&factor, y_from_form);
    OP(scale)(&sum.y, &sum.y, &factor);
    OP(canonical)(&sum.x);
    OP(canonical)(&sum.y);
    OP(store)(x, &sum.x, lanes & c->live[vector]);
    OP(store)(y, &sum.y, lanes & c->live[vector]);
}

static void NAME(store)(struct columns *columns, size_t at, size_t len, void *out)
{
    for (size_t i = 0; i < len; i += LANES) {
        size_t n = min_size(LANES, len - i);
        NAME(store_vector)
        ((struct ifma_columns *)columns, (at + i) / LANES, (__mmask8)((1u << n) - 1),
         (POINT_T *)out + i);
    }
}

static struct columns *NAME(create)(const struct group *group, size_t len)
{
    (void)group;
    return ifma_create(len, BATCH, sizeof(struct NAME(vector)), sizeof(struct NAME(division)));
}

static const struct columns_code NAME(code) = {
    .batch = BATCH * LANES,
    .create = NAME(create),
    .destroy = ifma_destroy,
    .clear = ifma_clear,
    .add = NAME(add),
    .add_columns = NAME(add_columns),
    .store = NAME(store),
};

#undef PASTE_
#undef PASTE
#undef NAME
#undef FIELD_T
#undef POINT_T
#undef ELEMENTS_T
#undef OP
#undef GROUP
#undef FIELD
#undef ELEMENTS
#undef BATCH
