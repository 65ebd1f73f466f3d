/*
 * A template's rows are sorted into kinds one after another. A sum of bits has its coefficients as field elements; they are taken
 * apart into powers of two, and bits whose powers go up as their numbers do are put together to words again: the sums are those of
 * SHA-256's additions, and of numbers and their bits.
 */
#include "numa/circuit/circuit_plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/growing.h"

#define SEGMENTS 128
#define NUMBERS_MAX (UINT16_MAX + 1)
#define WORD_BITS 32
#define POWERS_MAX 4 /* that a coefficient of a sum may have */

/* A coefficient's integer, the one of least magnitude. */
struct magnitude {
    uint64_t limbs[4];
    bool negative;
};

/* sign 2^shift times a bit */
struct power {
    uint32_t var;
    uint8_t shift;
    bool negative;
};

struct planner {
    const struct circuit *c;
    bool failed;
    struct magnitude *magnitudes; /* of the coefficients */
    GROWING(struct circuit_run) runs;
    GROWING(struct circuit_small) small;
    GROWING(struct circuit_form) forms;
    GROWING(struct circuit_gather) gathers;
    GROWING(struct circuit_sum) sums;
    GROWING(struct circuit_word) words;
    GROWING(struct power) powers; /* of one sum */
    /* Of the template at hand: how many bits of each segment have numbers, and the first one's. */
    uint32_t gathered[SEGMENTS], number[SEGMENTS];
};

/* A side of a row. */
struct side_row {
    const struct circuit_term *terms;
    uint32_t len;
};

static struct side_row side_row(const struct circuit *c, int side, uint32_t row)
{
    const struct circuit_side *s = &c->sides[side];

    return (struct side_row){s->terms + s->first[row], s->first[row + 1] - s->first[row]};
}

/* ---- small rows ---- */

/* A side over bits with small coefficients: constant + coeff[0] * bit[0] + .. */
struct small_side {
    int constant, coeff[3];
    uint32_t var[3], len;
};

static bool small_side(const struct side_row *row, uint32_t bits_max, struct small_side *out)
{
    int magnitude = 0;

    *out = (struct small_side){0};
    for (uint32_t i = 0; i < row->len; i++) {
        const struct circuit_term *t = &row->terms[i];
        if (t->coeff >= CIRCUIT_SMALL_COEFFS)
            return false;
        const int coeff = (int)t->coeff - CIRCUIT_SMALL;
        magnitude += abs(coeff);
        if (t->var == CIRCUIT_ONE) {
            out->constant = coeff;
        } else {
            if (t->var & CIRCUIT_VALUE || out->len == bits_max)
                return false;
            out->coeff[out->len] = coeff;
            out->var[out->len++] = t->var;
        }
    }
    return magnitude <= CIRCUIT_SMALL;
}

static bool small_row(const struct circuit *c, uint32_t row, struct small_side *a,
                      struct small_side *b)
{
    const struct side_row ra = side_row(c, CIRCUIT_A, row), rb = side_row(c, CIRCUIT_B, row);

    return ra.len + rb.len > 0 && small_side(&ra, 3, a) && small_side(&rb, 1, b);
}

/* Gives numbers to the bits of other segments that small rows are over, and to those between them. */
static uint32_t number_bits(struct planner *p, const struct circuit_template *t)
{
    struct small_side sides[2];
    uint32_t next = 1 + t->n_aux;

    memset(p->gathered, 0, sizeof(p->gathered));
    for (uint32_t r = t->first_row; r < t->first_row + t->n_rows; r++) {
        if (!small_row(p->c, r, &sides[0], &sides[1]))
            continue;
        for (int side = 0; side < 2; side++)
            for (uint32_t i = 0; i < sides[side].len; i++) {
                const uint32_t var = sides[side].var[i], segment = CIRCUIT_SEGMENT(var);
                if (p->gathered[segment] <= CIRCUIT_OFFSET(var))
                    p->gathered[segment] = CIRCUIT_OFFSET(var) + 1;
            }
    }
    p->number[CIRCUIT_OWN] = 1;
    for (uint32_t segment = CIRCUIT_FOREIGN; segment < SEGMENTS; segment++) {
        p->number[segment] = NUMBERS_MAX;
        if (p->gathered[segment] == 0 || next + (uint64_t)p->gathered[segment] > NUMBERS_MAX)
            continue; /* its rows are general ones */
        p->number[segment] = next;
        GROWING_PUSH(&p->failed, p->gathers,
                     (struct circuit_gather){segment, p->gathered[segment], next});
        next += p->gathered[segment];
    }
    return next;
}

/* The number of a bit, or NUMBERS_MAX if it has none. */
static uint32_t number_of(const struct planner *p, uint32_t var, uint32_t n_bits)
{
    const uint32_t number = p->number[CIRCUIT_SEGMENT(var)] + CIRCUIT_OFFSET(var);

    return number < n_bits && number < NUMBERS_MAX ? number : NUMBERS_MAX;
}

static struct circuit_form form_of(const struct small_side *a, const struct small_side *b)
{
    struct circuit_form form;

    for (int bits = 0; bits < 8; bits++)
        form.a[bits] = (int8_t)(a->constant + (bits & 1) * a->coeff[0] +
                                (bits >> 1 & 1) * a->coeff[1] + (bits >> 2) * a->coeff[2]);
    for (int bit = 0; bit < 2; bit++)
        form.b[bit] = (int8_t)(b->constant + bit * b->coeff[0]);
    return form;
}

/* There are a few dozen. */
static uint16_t form_index(struct planner *p, const struct circuit_form *form)
{
    size_t i = 0;

    while (i < p->forms.len && memcmp(&p->forms.at[i], form, sizeof(*form)) != 0)
        i++;
    if (i == p->forms.len)
        GROWING_PUSH(&p->failed, p->forms, *form);
    return (uint16_t)i;
}

/* False for a row that is none, or whose bits have no numbers. */
static bool plan_small(struct planner *p, uint32_t row, uint32_t n_bits)
{
    struct circuit_small small = {0};
    struct small_side a, b;

    if (!small_row(p->c, row, &a, &b))
        return false;
    for (uint32_t i = 0; i < a.len + b.len; i++) {
        const uint32_t number = number_of(p, i < a.len ? a.var[i] : b.var[0], n_bits);
        if (number == NUMBERS_MAX)
            return false;
        small.bit[i < a.len ? i : 3] = (uint16_t)number;
    }
    const struct circuit_form form = form_of(&a, &b);
    small.form = form_index(p, &form);
    GROWING_PUSH(&p->failed, p->small, small);
    return true;
}

/* ---- sums ---- */

static bool limbs_above(const uint64_t *a, const uint64_t *b)
{
    for (int i = 3; i >= 0; i--)
        if (a[i] != b[i])
            return a[i] > b[i];
    return false;
}

static int make_magnitudes(struct planner *p)
{
    p->magnitudes = malloc(p->c->n_coeffs * sizeof(*p->magnitudes));
    if (!p->magnitudes)
        return -ENOMEM;
    for (uint32_t i = 0; i < p->c->n_coeffs; i++) {
        struct magnitude *m = &p->magnitudes[i];
        uint64_t negated[4];
        fr_t minus;
        fr_neg(&minus, &p->c->coeffs[i]);
        blst_uint64_from_fr(m->limbs, &p->c->coeffs[i]);
        blst_uint64_from_fr(negated, &minus);
        m->negative = limbs_above(m->limbs, negated);
        if (m->negative)
            memcpy(m->limbs, negated, sizeof(negated));
    }
    return 0;
}

/* Lists the powers of A's bits; false when they are not few, or other things than bits are in A. */
static bool list_powers(struct planner *p, const struct side_row *a, uint32_t *constant)
{
    p->powers.len = 0;
    *constant = CIRCUIT_SMALL; /* 0 */
    for (uint32_t i = 0; i < a->len; i++) {
        const struct circuit_term *t = &a->terms[i];
        const struct magnitude *m = &p->magnitudes[t->coeff];
        int powers = 0;
        if (t->var == CIRCUIT_ONE) {
            *constant = t->coeff;
            continue;
        }
        if (t->var & CIRCUIT_VALUE)
            return false;
        for (int limb = 0; limb < 4; limb++)
            for (uint64_t bits = m->limbs[limb]; bits; bits &= bits - 1) {
                const int shift = 64 * limb + __builtin_ctzll(bits);
                GROWING_PUSH(&p->failed, p->powers,
                             (struct power){t->var, (uint8_t)shift, m->negative});
                powers++;
            }
        if (powers > POWERS_MAX)
            return false;
    }
    return p->powers.len > 0;
}

/* Bits and powers that go up together have this in common. */
static int64_t diagonal(const struct power *x, int stride)
{
    return (int64_t)stride * x->shift - (int64_t)x->var;
}

static int by_diagonal(const struct power *x, const struct power *y, int stride)
{
    const int64_t dx = diagonal(x, stride), dy = diagonal(y, stride);

    if (x->negative != y->negative)
        return x->negative ? 1 : -1;
    if (dx != dy)
        return dx > dy ? 1 : -1;
    return (x->var > y->var) - (x->var < y->var);
}

static int by_diagonal_1(const void *x, const void *y)
{
    return by_diagonal(x, y, 1);
}

static int by_diagonal_2(const void *x, const void *y)
{
    return by_diagonal(x, y, 2);
}

/* Length of the run that begins at powers[at]. */
static size_t run_len(const struct power *powers, size_t at, size_t len, int stride)
{
    size_t n = 1;

    while (at + n < len && n < WORD_BITS && powers[at + n].negative == powers[at].negative &&
           powers[at + n].var == powers[at].var + n * (size_t)stride &&
           powers[at + n].shift == powers[at].shift + n)
        n++;
    return n;
}

/* Turns runs of at least `shortest` into words; what is left stays. */
static void take_words(struct planner *p, int stride, size_t shortest)
{
    struct power *powers = p->powers.at;
    size_t left = 0;

    if (p->powers.len == 0)
        return;
    qsort(powers, p->powers.len, sizeof(*powers), stride == 1 ? by_diagonal_1 : by_diagonal_2);
    for (size_t i = 0; i < p->powers.len;) {
        const size_t n = run_len(powers, i, p->powers.len, stride);
        if (n >= shortest) {
            GROWING_PUSH(&p->failed, p->words,
                         (struct circuit_word){powers[i].var, (uint8_t)n, (uint8_t)stride,
                                               powers[i].shift, powers[i].negative});
        } else {
            memmove(&powers[left], &powers[i], n * sizeof(*powers));
            left += n;
        }
        i += n;
    }
    p->powers.len = left;
}

static bool plan_sum(struct planner *p, uint32_t row)
{
    const struct side_row a = side_row(p->c, CIRCUIT_A, row), b = side_row(p->c, CIRCUIT_B, row);
    struct circuit_sum sum = {.first_word = (uint32_t)p->words.len};

    if (b.len != 1 || b.terms[0].var != CIRCUIT_ONE || b.terms[0].coeff != CIRCUIT_SMALL + 1)
        return false;
    if (!list_powers(p, &a, &sum.constant))
        return false;
    take_words(p, 1, 2);
    take_words(p, 2, 1);
    sum.n_words = (uint32_t)p->words.len - sum.first_word;
    GROWING_PUSH(&p->failed, p->sums, sum);
    return true;
}

/* ---- rows in order ---- */

static bool is_zero_row(const struct circuit *c, uint32_t row)
{
    return side_row(c, CIRCUIT_A, row).len + side_row(c, CIRCUIT_B, row).len == 0;
}

/* Continues the run before, if it is of the same kind and each row of it has something of its own. */
static void add_run(struct planner *p, const struct circuit_plan_part *part, uint32_t kind,
                    uint32_t row, size_t first)
{
    if (p->runs.len > part->first_run && p->runs.at[p->runs.len - 1].kind == kind &&
        kind != CIRCUIT_RUN_SUM)
        p->runs.at[p->runs.len - 1].n_rows++;
    else
        GROWING_PUSH(&p->failed, p->runs, (struct circuit_run){kind, row, 1, (uint32_t)first});
}

static struct circuit_plan_part plan_template(struct planner *p, const struct circuit_template *t)
{
    struct circuit_plan_part part = {.first_run = (uint32_t)p->runs.len,
                                     .first_gather = (uint32_t)p->gathers.len};

    part.n_bits = number_bits(p, t);
    for (uint32_t i = 0; i < t->n_rows && !p->failed; i++) {
        const uint32_t row = t->first_row + i;
        const size_t n_small = p->small.len, n_sums = p->sums.len;
        if (is_zero_row(p->c, row))
            add_run(p, &part, CIRCUIT_RUN_ZERO, i, 0);
        else if (plan_small(p, row, part.n_bits))
            add_run(p, &part, CIRCUIT_RUN_SMALL, i, n_small);
        else if (plan_sum(p, row))
            add_run(p, &part, CIRCUIT_RUN_SUM, i, n_sums);
        else
            add_run(p, &part, CIRCUIT_RUN_GENERAL, i, 0);
    }
    part.n_runs = (uint32_t)p->runs.len - part.first_run;
    part.n_gathers = (uint32_t)p->gathers.len - part.first_gather;
    return part;
}

static void take_arrays(struct planner *p, struct circuit_plan *plan)
{
    plan->n_runs = (uint32_t)p->runs.len;
    plan->n_small = (uint32_t)p->small.len;
    plan->n_forms = (uint32_t)p->forms.len;
    plan->n_gathers = (uint32_t)p->gathers.len;
    plan->n_sums = (uint32_t)p->sums.len;
    plan->n_words = (uint32_t)p->words.len;
    GROWING_TAKE(plan->runs, p->runs);
    GROWING_TAKE(plan->small, p->small);
    GROWING_TAKE(plan->forms, p->forms);
    GROWING_TAKE(plan->gathers, p->gathers);
    GROWING_TAKE(plan->sums, p->sums);
    GROWING_TAKE(plan->words, p->words);
}

static void planner_fini(struct planner *p)
{
    free(p->magnitudes);
    free(p->runs.at);
    free(p->small.at);
    free(p->forms.at);
    free(p->gathers.at);
    free(p->sums.at);
    free(p->words.at);
    free(p->powers.at);
}

int circuit_plan_create(const struct circuit *c, struct circuit_plan **out)
{
    struct planner *p = calloc(1, sizeof(*p));
    struct circuit_plan *plan = calloc(1, sizeof(*plan));
    int ret = -ENOMEM;

    if (plan)
        plan->parts = malloc(c->n_templates * sizeof(*plan->parts));
    if (!p || !plan || !plan->parts)
        goto out;
    p->c = c;
    p->failed = make_magnitudes(p) < 0;
    for (uint32_t i = 0; i < c->n_templates && !p->failed; i++)
        plan->parts[i] = plan_template(p, &c->templates[i]);
    take_arrays(p, plan);
    if (!p->failed) {
        *out = plan;
        plan = NULL; /* now the caller's */
        ret = 0;
    }
out:
    if (p)
        planner_fini(p);
    free(p);
    circuit_plan_destroy(plan);
    return ret;
}

void circuit_plan_destroy(struct circuit_plan *p)
{
    if (!p)
        return;
    free(p->parts);
    free(p->runs);
    free(p->small);
    free(p->forms);
    free(p->gathers);
    free(p->sums);
    free(p->words);
    free(p);
}

size_t circuit_plan_bytes(const struct circuit *c, const struct circuit_plan *p)
{
    return sizeof(*p) + c->n_templates * sizeof(*p->parts) + p->n_runs * sizeof(*p->runs) +
           p->n_small * sizeof(*p->small) + p->n_forms * sizeof(*p->forms) +
           p->n_gathers * sizeof(*p->gathers) + p->n_sums * sizeof(*p->sums) +
           p->n_words * sizeof(*p->words);
}
