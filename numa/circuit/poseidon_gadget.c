/*
 * The linear layers emit nothing, so the input of an S-box is a sum over the results of earlier ones. Which
 * results and with what coefficients depends on the arity alone: the sums are worked out once
 * (struct layout), with variables numbered from the gadget's first. A use of the gadget then copies them, and
 * takes the values from the permutation on numbers.
 */
#include "numa/circuit/poseidon_gadget.h"

#include <assert.h>
#include <pthread.h>

#define WIDTH_MAX POSEIDON_MAX_WIDTH
/* S-boxes whose input is a sum, and the digest. */
#define SUMS_MAX (WIDTH_MAX * POSEIDON_FULL_ROUNDS + POSEIDON_MAX_PARTIAL)
/* Results that a sum can be over: ONE, a full round's, and one of each partial round. */
#define SLOTS_MAX (1 + WIDTH_MAX + POSEIDON_MAX_PARTIAL)
/* Of 7 full rounds, of the partial rounds and of the full round after them, and of the digest. */
#define TERMS_MAX                                   \
    (POSEIDON_FULL_ROUNDS * WIDTH_MAX * WIDTH_MAX + \
     (POSEIDON_MAX_PARTIAL + WIDTH_MAX) * (WIDTH_MAX + POSEIDON_MAX_PARTIAL))

struct layout {
    uint32_t n_sums, n_terms;
    struct {
        uint32_t first, len;
    } sums[SUMS_MAX];
    struct cs_term terms[TERMS_MAX]; /* var: CS_ONE, or CS_AUX | offset from the gadget's first */
};

/* The state of the permutation as sums over slots. */
struct symbolic {
    fr_t coeff[WIDTH_MAX][SLOTS_MAX];
    cs_var slot[SLOTS_MAX];
    uint32_t n_slots;
};

static void symbolic_init(struct symbolic *s)
{
    memset(s->coeff, 0, sizeof(s->coeff));
    s->slot[0] = CS_ONE;
    s->n_slots = 1;
}

/* Element `i` becomes the variable at `offset`. */
static void symbolic_set(struct symbolic *s, uint32_t i, uint32_t offset)
{
    memset(s->coeff[i], 0, sizeof(s->coeff[i]));
    s->coeff[i][s->n_slots] = *fr_bit(true);
    s->slot[s->n_slots++] = CS_AUX | offset;
}

static void symbolic_linear(struct symbolic *s, const struct poseidon *p, uint32_t round)
{
    fr_t column[WIDTH_MAX];

    for (uint32_t k = 0; k < s->n_slots; k++) {
        for (uint32_t i = 0; i < p->width; i++)
            column[i] = s->coeff[i][k];
        poseidon_linear_layer(p, round, column);
        for (uint32_t i = 0; i < p->width; i++)
            s->coeff[i][k] = column[i];
    }
}

/* Records element `i` as the next sum. Slots are in order of their variables. */
static void layout_record(struct layout *l, const struct symbolic *s, uint32_t i)
{
    const uint32_t first = l->n_terms;

    for (uint32_t k = 0; k < s->n_slots; k++)
        if (!fr_is_zero(&s->coeff[i][k])) {
            assert(l->n_terms < TERMS_MAX);
            l->terms[l->n_terms++] = (struct cs_term){s->slot[k], s->coeff[i][k]};
        }
    assert(l->n_sums < SUMS_MAX);
    l->sums[l->n_sums].first = first;
    l->sums[l->n_sums++].len = l->n_terms - first;
}

/* x^5 + constant, and the powers on the way. */
struct powers {
    fr_t x2, x4, x5;
};

static struct powers powers_of(const fr_t *x, const fr_t *constant)
{
    struct powers p;

    fr_sqr(&p.x2, x);
    fr_sqr(&p.x4, &p.x2);
    fr_mul(&p.x5, &p.x4, x);
    fr_add(&p.x5, &p.x5, constant);
    return p;
}

/* What becomes of element 0, the tag, in round 0: (tag + c[0])^5 + c[width], no variable. */
static fr_t folded_tag(const struct poseidon *p)
{
    fr_t sum;

    fr_add(&sum, &p->tag, &p->compressed[0]);
    return powers_of(&sum, &p->compressed[p->width]).x5;
}

static void make_layout(struct layout *l, const struct poseidon *p)
{
    struct symbolic s, next;
    uint32_t offset = 0;

    symbolic_init(&s);
    s.coeff[0][0] = folded_tag(p);
    for (uint32_t i = 1; i < p->width; i++, offset += 3)
        symbolic_set(&s, i, offset + 2);
    symbolic_linear(&s, p, 0);
    for (uint32_t round = 1; round < poseidon_rounds(p); round++) {
        if (poseidon_round_is_full(p, round)) {
            symbolic_init(&next);
            for (uint32_t i = 0; i < p->width; i++, offset += 4) {
                layout_record(l, &s, i);
                symbolic_set(&next, i, offset + 3);
            }
            s = next;
        } else {
            layout_record(l, &s, 0);
            symbolic_set(&s, 0, offset + 3);
            offset += 4;
        }
        symbolic_linear(&s, p, round);
    }
    layout_record(l, &s, 1);
}

static struct layout layouts[POSEIDON_ARITIES];
static pthread_once_t layouts_once = PTHREAD_ONCE_INIT;

static void make_all(void)
{
    for (uint32_t i = 0; i < POSEIDON_ARITIES; i++)
        make_layout(&layouts[i], poseidon_constants(poseidon_arities[i]));
}

/* One use of the gadget. */
struct use {
    struct cs *cs;
    const struct layout *layout;
    uint32_t first; /* index of the gadget's first variable */
    uint32_t sum;   /* next sum of the layout */
};

/* A variable equal to the next sum: sum * ONE = v. */
static cs_var ensure(struct use *u, const fr_t *value)
{
    const cs_var v = cs_alloc(u->cs, value);
    const uint32_t len = u->layout->sums[u->sum].len;
    const struct cs_term *from = &u->layout->terms[u->layout->sums[u->sum].first];
    struct cs_term terms[SLOTS_MAX], right = {v, *fr_bit(true)};

    u->sum++;
    if (cs_skip_row(u->cs))
        return v;
    for (uint32_t i = 0; i < len; i++) {
        terms[i] = from[i];
        if (terms[i].var != CS_ONE)
            terms[i].var += u->first;
    }
    cs_enforce(u->cs, &(struct cs_lc){terms, len}, &cs_lc_one, &(struct cs_lc){&right, 1});
    return v;
}

/* v, or v + constant * ONE where the constant is not 0. */
static struct cs_lc sum_with_one(struct cs_term terms[2], cs_var v, const fr_t *constant)
{
    terms[0] = (struct cs_term){CS_ONE, *constant};
    terms[1] = (struct cs_term){v, *fr_bit(true)};
    return fr_is_zero(constant) ? (struct cs_lc){&terms[1], 1} : (struct cs_lc){terms, 2};
}

/* (v + pre)^5 + post in three rows; *value is that of v and becomes the result's. */
static void sbox(struct cs *cs, cs_var v, fr_t *value, const fr_t *pre, const fr_t *post)
{
    struct cs_term in[2], out[2], square[1], fourth[1];
    fr_t x, minus_post;

    fr_add(&x, value, pre);
    const struct powers powers = powers_of(&x, post);
    *value = powers.x5;
    const cs_var l2 = cs_alloc(cs, &powers.x2), l4 = cs_alloc(cs, &powers.x4),
                 l5 = cs_alloc(cs, &powers.x5);
    if (!cs->sink->row) {
        cs->n_rows += 3;
        return;
    }
    fr_neg(&minus_post, post);
    square[0] = (struct cs_term){l2, *fr_bit(true)};
    fourth[0] = (struct cs_term){l4, *fr_bit(true)};
    const struct cs_lc l = sum_with_one(in, v, pre), r = sum_with_one(out, l5, &minus_post),
                       sq = {square, 1}, qu = {fourth, 1};
    cs_enforce(cs, &l, &l, &sq);
    cs_enforce(cs, &sq, &sq, &qu);
    cs_enforce(cs, &l, &qu, &r);
}

struct num poseidon_num(struct cs *cs, const struct num *preimage, uint32_t arity)
{
    const struct poseidon *p = poseidon_constants(arity);
    const uint32_t rounds = poseidon_rounds(p);
    const fr_t zero = {{0}}, *post = &p->compressed[p->width + 1];
    struct use u = {.cs = cs, .layout = &layouts[p->index], .first = cs->n_aux};
    fr_t s[WIDTH_MAX];

    pthread_once(&layouts_once, make_all);
    s[0] = folded_tag(p);
    for (uint32_t i = 1; i < p->width; i++) {
        s[i] = preimage[i - 1].value;
        sbox(cs, preimage[i - 1].var, &s[i], &p->compressed[i], post++);
    }
    poseidon_linear_layer(p, 0, s);
    for (uint32_t round = 1; round < rounds; round++) {
        const uint32_t powers = poseidon_round_is_full(p, round) ? p->width : 1;
        for (uint32_t i = 0; i < powers; i++)
            sbox(cs, ensure(&u, &s[i]), &s[i], &zero, round == rounds - 1 ? &zero : post++);
        poseidon_linear_layer(p, round, s);
    }
    return (struct num){.var = ensure(&u, &s[1]), .value = s[1]};
}
