/*
 * Gadgets name variables by number alone, so a template is recorded with numbers that say where a variable belongs: bits 24
 * and up of a cs_var are the segment, its place there below. What remains is to count values apart from bits.
 */
#include "numa/circuit/circuit_builder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/circuit_plan.h"
#include "numa/circuit/growing.h"
#include "numa/circuit/porep.h"

#define SEGMENTS_MAX 32
#define IS_BIT UINT32_MAX
#define NO_INDEX UINT32_MAX

/* What of a template's variables occurs in A and B. */
struct occurrence {
    uint64_t *own[2];             /* bitmaps over its own aux variables; NULL when it has none */
    GROWING(uint32_t) foreign[2]; /* terms' vars, each once */
};

struct recorded {
    uint32_t *value_places; /* n_values: which of the own aux variables are values */
    struct occurrence occurs;
};

struct builder {
    struct circuit *circuit;
    bool failed; /* for want of memory */
    GROWING(fr_t) coeffs;
    uint32_t *coeff_slots; /* a hash table of indices into coeffs */
    size_t coeff_slots_len;
    GROWING(struct circuit_template) templates;
    GROWING(struct recorded) recorded; /* by template */
    GROWING(uint32_t) first[CIRCUIT_SIDES];
    GROWING(struct circuit_term) terms[CIRCUIT_SIDES];
    GROWING(struct circuit_instance) instances;
    GROWING(struct circuit_base) bases;
    /* The template being recorded. */
    struct cs cs;
    struct cs_sink sink;
    struct circuit_template current;
    bool foreign_value[SEGMENTS_MAX];
    GROWING(uint32_t) places; /* of own aux variables: IS_BIT, or the place among the values */
    struct cs here;           /* what has been placed */
    uint32_t values_here;
};

/* ---- coefficients ---- */

static size_t coeff_hash(const fr_t *value)
{
    return (size_t)((value->l[0] ^ value->l[1] * 3 ^ value->l[3]) * UINT64_C(0x9e3779b97f4a7c15) >>
                    32);
}

static void coeff_enter(struct builder *b, uint32_t index)
{
    const size_t mask = b->coeff_slots_len - 1;
    size_t slot = coeff_hash(&b->coeffs.at[index]) & mask;

    while (b->coeff_slots[slot] != NO_INDEX)
        slot = (slot + 1) & mask;
    b->coeff_slots[slot] = index;
}

static int coeff_slots_resize(struct builder *b, size_t len)
{
    uint32_t *slots = malloc(len * sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    free(b->coeff_slots);
    b->coeff_slots = slots;
    b->coeff_slots_len = len;
    memset(slots, 0xff, len * sizeof(*slots));
    for (uint32_t i = 0; i < b->coeffs.len; i++)
        coeff_enter(b, i);
    return 0;
}

/* The index of a coefficient, a new one if need be. */
static uint32_t coeff_index(struct builder *b, const fr_t *value)
{
    const size_t mask = b->coeff_slots_len - 1;

    for (size_t slot = coeff_hash(value) & mask; b->coeff_slots[slot] != NO_INDEX;
         slot = (slot + 1) & mask)
        if (fr_equal(&b->coeffs.at[b->coeff_slots[slot]], value))
            return b->coeff_slots[slot];
    const size_t len = b->coeffs.len;
    if (2 * len >= b->coeff_slots_len && coeff_slots_resize(b, 2 * b->coeff_slots_len) < 0)
        b->failed = true;
    GROWING_PUSH(&b->failed, b->coeffs, *value);
    if (b->failed)
        return 0;
    coeff_enter(b, (uint32_t)len);
    return (uint32_t)len;
}

/* The small integers come first. */
static int coeffs_init(struct builder *b)
{
    int ret = coeff_slots_resize(b, 1 << 12);

    for (int i = -CIRCUIT_SMALL; ret == 0 && i <= CIRCUIT_SMALL; i++) {
        fr_t value = fr_from_u64((uint64_t)abs(i));
        if (i < 0)
            fr_neg(&value, &value);
        coeff_index(b, &value);
    }
    return b->failed ? -ENOMEM : ret;
}

/* ---- recording ---- */

static cs_var local(uint32_t segment, uint32_t place)
{
    return segment << 24 | place;
}

static uint32_t term_var(const struct builder *b, cs_var var)
{
    const uint32_t segment = CIRCUIT_SEGMENT(var), place = CIRCUIT_OFFSET(var);

    if (!(var & CS_AUX))
        return CIRCUIT_VALUE | var;
    if (segment >= CIRCUIT_FOREIGN)
        return local(segment, place) | (b->foreign_value[segment] ? CIRCUIT_VALUE : 0);
    assert(segment == CIRCUIT_OWN);
    const uint32_t value_place = b->places.at[place];
    return value_place == IS_BIT ? local(segment, place)
                                 : CIRCUIT_VALUE | local(segment, value_place);
}

static void record_side(struct builder *b, int side, const struct cs_lc *lc)
{
    GROWING_PUSH(&b->failed, b->first[side], (uint32_t)b->terms[side].len);
    for (size_t i = 0; i < lc->len && !b->failed; i++)
        GROWING_PUSH(&b->failed, b->terms[side],
                     (struct circuit_term){term_var(b, lc->terms[i].var),
                                           coeff_index(b, &lc->terms[i].coeff)});
}

/* Which aux variables are in A and B. */
static void record_occurrence(struct builder *b, int side, const struct cs_lc *lc)
{
    struct occurrence *occurs = &b->recorded.at[b->recorded.len - 1].occurs;

    for (size_t i = 0; i < lc->len; i++) {
        const cs_var var = lc->terms[i].var;
        if ((var & CS_AUX) && CIRCUIT_SEGMENT(var) >= CIRCUIT_FOREIGN)
            GROWING_PUSH(&b->failed, occurs->foreign[side], term_var(b, var));
    }
}

static void record_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b_side,
                       const struct cs_lc *c)
{
    struct builder *b = ctx;

    (void)row;
    if (b->failed)
        return;
    record_side(b, CIRCUIT_A, a);
    record_side(b, CIRCUIT_B, b_side);
    record_side(b, CIRCUIT_C, c);
    record_occurrence(b, CIRCUIT_A, a);
    record_occurrence(b, CIRCUIT_B, b_side);
}

static void record_bit(void *ctx, uint32_t index, bool value)
{
    struct builder *b = ctx;

    (void)index, (void)value;
    GROWING_PUSH(&b->failed, b->places, IS_BIT);
}

static void record_value(void *ctx, uint32_t index, const fr_t *value)
{
    struct builder *b = ctx;

    (void)index, (void)value;
    GROWING_PUSH(&b->failed, b->places, b->current.n_values++);
}

struct cs *builder_record(struct builder *b)
{
    const struct cs begin = {.n_inputs = local(CIRCUIT_OWN_INPUTS, 0),
                             .n_aux = local(CIRCUIT_OWN, 0)};

    GROWING_PUSH(&b->failed, b->recorded, (struct recorded){.value_places = NULL});
    b->current = (struct circuit_template){.first_row = (uint32_t)b->first[CIRCUIT_A].len,
                                           .n_segments = CIRCUIT_FOREIGN};
    b->places.len = 0;
    b->sink = (struct cs_sink){.row = record_row, .aux = record_value, .bit = record_bit, .ctx = b};
    cs_init_at(&b->cs, &b->sink, &begin);
    return &b->cs;
}

static cs_var foreign(struct builder *b, uint32_t segment, uint32_t place, bool value)
{
    assert(segment >= CIRCUIT_FOREIGN && segment < SEGMENTS_MAX && place < 1u << 24);
    if (b->current.n_segments <= segment)
        b->current.n_segments = segment + 1;
    b->foreign_value[segment] = value;
    return CS_AUX | local(segment, place);
}

struct num builder_foreign_num(struct builder *b, uint32_t segment, uint32_t place)
{
    return (struct num){.var = foreign(b, segment, place, true)};
}

struct boolean builder_foreign_bit(struct builder *b, uint32_t segment, uint32_t place)
{
    return (struct boolean){.var = foreign(b, segment, place, false), .kind = BOOLEAN_IS};
}

void builder_foreign_bytes(struct builder *b, uint32_t segment, struct boolean bits[NUM_BYTE_BITS])
{
    for (uint32_t i = 0; i < NUM_BITS; i++)
        bits[i] = builder_foreign_bit(b, segment, i);
    bits[NUM_BITS] = boolean_const(false);
    bits_reverse_in_bytes(bits, NUM_BYTE_BITS);
}

uint32_t builder_own(const struct builder *b, cs_var var)
{
    assert(b->failed || CIRCUIT_SEGMENT(var) == CIRCUIT_OWN);
    return b->failed ? 0 : term_var(b, var);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Each number once. */
static size_t sort_unique(uint32_t *at, size_t len)
{
    size_t n = 0;

    if (len > 0)
        qsort(at, len, sizeof(*at), by_number);
    for (size_t i = 0; i < len; i++)
        if (n == 0 || at[n - 1] != at[i])
            at[n++] = at[i];
    return n;
}

static void set_bit(uint64_t *bitmap, size_t i)
{
    bitmap[i / 64] |= UINT64_C(1) << i % 64;
}

static size_t words_of(size_t bits)
{
    return (bits + 63) / 64;
}

/* The values' places, and what of the own variables occurs in the rows since the template's first. */
static void describe_own(struct builder *b, struct recorded *r)
{
    const struct circuit_template *t = &b->current;

    r->value_places = malloc((t->n_values + 1) * sizeof(*r->value_places));
    for (int side = CIRCUIT_A; side <= CIRCUIT_B; side++)
        r->occurs.own[side] = calloc(words_of(t->n_aux) + 1, sizeof(uint64_t));
    if (!r->value_places || !r->occurs.own[CIRCUIT_A] || !r->occurs.own[CIRCUIT_B]) {
        b->failed = true;
        return;
    }
    for (uint32_t i = 0; i < t->n_aux; i++)
        if (b->places.at[i] != IS_BIT)
            r->value_places[b->places.at[i]] = i;
    for (int side = CIRCUIT_A; side <= CIRCUIT_B; side++) {
        const size_t begin = t->n_rows ? b->first[side].at[t->first_row] : b->terms[side].len;
        for (size_t i = begin; i < b->terms[side].len; i++) {
            const uint32_t var = b->terms[side].at[i].var, place = CIRCUIT_OFFSET(var);
            if (CIRCUIT_SEGMENT(var) == CIRCUIT_OWN)
                set_bit(r->occurs.own[side], var & CIRCUIT_VALUE ? r->value_places[place] : place);
        }
    }
}

uint32_t builder_end(struct builder *b)
{
    if (b->failed)
        return 0;
    struct recorded *r = &b->recorded.at[b->recorded.len - 1];
    b->current.n_rows = (uint32_t)b->first[CIRCUIT_A].len - b->current.first_row;
    b->current.n_aux = b->cs.n_aux - local(CIRCUIT_OWN, 0);
    b->current.n_inputs = b->cs.n_inputs - local(CIRCUIT_OWN_INPUTS, 0);
    assert(b->current.n_aux == b->places.len && b->current.n_rows == b->cs.n_rows);
    for (int side = CIRCUIT_A; side <= CIRCUIT_B; side++)
        r->occurs.foreign[side].len =
            sort_unique(r->occurs.foreign[side].at, r->occurs.foreign[side].len);
    describe_own(b, r);
    GROWING_PUSH(&b->failed, b->templates, b->current);
    return b->failed ? 0 : (uint32_t)b->templates.len - 1;
}

/* ---- placing ---- */

struct circuit_base builder_here(const struct builder *b)
{
    return (struct circuit_base){b->here.n_aux, b->values_here};
}

struct circuit_base builder_at(struct circuit_base base, uint32_t own, uint32_t place)
{
    if (own & CIRCUIT_VALUE)
        return (struct circuit_base){0, base.value + CIRCUIT_OFFSET(own) + place};
    return (struct circuit_base){base.aux + CIRCUIT_OFFSET(own) + place, 0};
}

struct circuit_base builder_place(struct builder *b, uint32_t template_index,
                                  const struct circuit_base *foreign_bases)
{
    const struct circuit_base own = builder_here(b);

    if (b->failed)
        return own;
    const struct circuit_template *t = &b->templates.at[template_index];
    GROWING_PUSH(&b->failed, b->instances,
                 (struct circuit_instance){template_index, (uint32_t)b->here.n_rows,
                                           (uint32_t)b->bases.len});
    GROWING_PUSH(&b->failed, b->bases, (struct circuit_base){0, 0});
    GROWING_PUSH(&b->failed, b->bases, own);
    GROWING_PUSH(&b->failed, b->bases, (struct circuit_base){0, b->here.n_inputs});
    for (uint32_t i = CIRCUIT_FOREIGN; i < t->n_segments; i++)
        GROWING_PUSH(&b->failed, b->bases, foreign_bases[i - CIRCUIT_FOREIGN]);
    b->here.n_rows += t->n_rows;
    b->here.n_aux += t->n_aux;
    b->here.n_inputs += t->n_inputs;
    b->values_here += t->n_values;
    return own;
}

/* Rows x_i * 0 = 0 (porep-circuit 1.3). */
static void place_closing_rows(struct builder *b)
{
    struct cs *cs = builder_record(b);
    const struct cs_term term = {foreign(b, CIRCUIT_FOREIGN, 0, true), *fr_bit(true)};

    cs_enforce(cs, &(struct cs_lc){&term, 1}, &cs_lc_zero, &cs_lc_zero);
    const uint32_t close = builder_end(b);
    if (b->failed)
        return;
    /* What it is over are inputs, no aux variables. */
    b->recorded.at[close].occurs.foreign[CIRCUIT_A].len = 0;
    for (uint32_t i = 0; i < b->here.n_inputs; i++)
        builder_place(b, close, &(struct circuit_base){0, i});
}

/* ---- what follows from the templates ---- */

/* Ors `bits` bits into a bitmap from bit `at` on. Both have a spare word, and `from` is clear past its end. */
static void or_bits(uint64_t *bitmap, size_t at, const uint64_t *from, size_t bits)
{
    uint64_t *to = bitmap + at / 64;
    const unsigned shift = at % 64;

    for (size_t i = 0; i < words_of(bits); i++) {
        to[i] |= from[i] << shift;
        if (shift > 0)
            to[i + 1] |= from[i] >> (64 - shift);
    }
}

static void mark_instance(struct circuit *c, const struct circuit_instance *in,
                          const struct recorded *r)
{
    const struct circuit_base *bases = &c->bases[in->first_base];
    const uint32_t n_aux = c->templates[in->template_index].n_aux;
    uint64_t *const densities[2] = {c->a_density, c->b_density};

    for (int side = CIRCUIT_A; side <= CIRCUIT_B; side++) {
        or_bits(densities[side], bases[CIRCUIT_OWN].aux, r->occurs.own[side], n_aux);
        for (size_t i = 0; i < r->occurs.foreign[side].len; i++) {
            const uint32_t var = r->occurs.foreign[side].at[i], place = CIRCUIT_OFFSET(var);
            const struct circuit_base *base = &bases[CIRCUIT_SEGMENT(var)];
            set_bit(densities[side], var & CIRCUIT_VALUE
                                         ? c->value_aux[base->value + place - c->n_inputs]
                                         : base->aux + place);
        }
    }
}

static void list_values(struct circuit *c, const struct recorded *recorded)
{
    uint32_t *at = c->value_aux;

    for (uint32_t i = 0; i < c->n_instances; i++) {
        const struct circuit_instance *in = &c->instances[i];
        const uint32_t first = c->bases[in->first_base + CIRCUIT_OWN].aux;
        for (uint32_t k = 0; k < c->templates[in->template_index].n_values; k++)
            *at++ = first + recorded[in->template_index].value_places[k];
    }
    assert(at == c->value_aux + c->n_values - c->n_inputs);
}

static void rank(uint32_t *out, const uint64_t *density, uint32_t words)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < words; i++) {
        if (i % CIRCUIT_RANK_WORDS == 0)
            *out++ = n;
        n += (uint32_t)__builtin_popcountll(density[i]);
    }
    *out = n;
}

static void list_points(uint32_t *points, const struct circuit *c, const uint64_t *density,
                        const uint32_t *rank, uint32_t n_inputs)
{
    for (uint32_t i = 0; i < c->n_inputs; i++)
        points[i] = i < n_inputs ? i : CIRCUIT_NO_POINT;
    for (uint32_t i = c->n_inputs; i < c->n_values; i++) {
        const uint32_t aux = c->value_aux[i - c->n_inputs];
        points[i] = density[aux / 64] >> (aux % 64) & 1
                        ? n_inputs + circuit_density_rank(density, rank, aux)
                        : CIRCUIT_NO_POINT;
    }
}

static int derive(struct circuit *c, const struct recorded *recorded)
{
    const uint32_t blocks = (c->aux_words + CIRCUIT_RANK_WORDS - 1) / CIRCUIT_RANK_WORDS;

    c->value_aux = calloc(c->n_values - c->n_inputs + 1, sizeof(*c->value_aux));
    c->a_density = calloc(c->aux_words, sizeof(*c->a_density));
    c->b_density = calloc(c->aux_words, sizeof(*c->b_density));
    c->a_rank = malloc((blocks + 1) * sizeof(*c->a_rank));
    c->b_rank = malloc((blocks + 1) * sizeof(*c->b_rank));
    c->a_points = malloc(c->n_values * sizeof(*c->a_points));
    c->b_points = malloc(c->n_values * sizeof(*c->b_points));
    if (!c->value_aux || !c->a_density || !c->b_density || !c->a_rank || !c->b_rank ||
        !c->a_points || !c->b_points)
        return -ENOMEM;
    list_values(c, recorded);
    for (uint32_t i = 0; i < c->n_instances; i++)
        mark_instance(c, &c->instances[i], &recorded[c->instances[i].template_index]);
    rank(c->a_rank, c->a_density, c->aux_words);
    rank(c->b_rank, c->b_density, c->aux_words);
    list_points(c->a_points, c, c->a_density, c->a_rank, c->n_inputs);
    list_points(c->b_points, c, c->b_density, c->b_rank, CIRCUIT_B_INPUTS);
    return 0;
}

static void take_tables(struct builder *b)
{
    struct circuit *c = b->circuit;

    c->n_coeffs = (uint32_t)b->coeffs.len;
    c->n_templates = (uint32_t)b->templates.len;
    c->n_instances = (uint32_t)b->instances.len;
    c->n_bases = (uint32_t)b->bases.len;
    c->template_rows = (uint32_t)b->first[CIRCUIT_A].len;
    for (int side = 0; side < CIRCUIT_SIDES; side++) {
        GROWING_PUSH(&b->failed, b->first[side], (uint32_t)b->terms[side].len);
        GROWING_TAKE(c->sides[side].first, b->first[side]);
        GROWING_TAKE(c->sides[side].terms, b->terms[side]);
    }
    GROWING_TAKE(c->coeffs, b->coeffs);
    GROWING_TAKE(c->templates, b->templates);
    GROWING_TAKE(c->instances, b->instances);
    GROWING_TAKE(c->bases, b->bases);
}

int builder_finish(struct builder *b, const struct circuit_offsets *offsets, struct circuit **out)
{
    struct circuit *c = b->circuit;
    struct porep_counts n;

    place_closing_rows(b);
    porep_counts(c->size, &n);
    take_tables(b);
    if (b->failed)
        return -ENOMEM;
    assert(b->here.n_inputs == n.inputs && b->here.n_aux == n.aux && b->here.n_rows == n.rows);
    assert(b->values_here == n.values);
    c->n_inputs = n.inputs;
    c->n_aux = n.aux;
    c->n_rows = n.rows;
    c->log2_domain = n.log2_domain;
    c->n_values = b->values_here;
    c->aux_words = circuit_aux_words(n.aux);
    c->offsets = *offsets;
    if (derive(c, b->recorded.at) < 0 || circuit_plan_create(c, &c->plan) < 0)
        return -ENOMEM;
    *out = c;
    b->circuit = NULL; /* now the caller's */
    return 0;
}

int builder_create(const struct sector_size *size, struct builder **out)
{
    struct builder *b = calloc(1, sizeof(*b));
    struct porep_counts n;

    if (b)
        b->circuit = calloc(1, sizeof(*b->circuit));
    if (!b || !b->circuit || coeffs_init(b) < 0) {
        builder_destroy(b);
        return -ENOMEM;
    }
    porep_counts(size, &n);
    b->circuit->size = size;
    b->here.n_inputs = 1; /* ONE */
    b->values_here = n.inputs;
    *out = b;
    return 0;
}

void builder_destroy(struct builder *b)
{
    if (!b)
        return;
    circuit_destroy(b->circuit);
    free(b->coeffs.at);
    free(b->coeff_slots);
    free(b->templates.at);
    for (size_t i = 0; i < b->recorded.len; i++) {
        free(b->recorded.at[i].value_places);
        for (int side = CIRCUIT_A; side <= CIRCUIT_B; side++) {
            free(b->recorded.at[i].occurs.own[side]);
            free(b->recorded.at[i].occurs.foreign[side].at);
        }
    }
    free(b->recorded.at);
    for (int side = 0; side < CIRCUIT_SIDES; side++) {
        free(b->first[side].at);
        free(b->terms[side].at);
    }
    free(b->instances.at);
    free(b->bases.at);
    free(b->places.at);
    free(b);
}
