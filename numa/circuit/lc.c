/*
 * Field elements of the coefficients come from two tables, made once. Sums of powers are sorted by a radix
 * sort: the terms of a row are a few dozen interleaved runs, which a merge sort handles at the price of a
 * mispredicted branch a term and level.
 */
#include "numa/circuit/lc.h"

#include <assert.h>
#include <pthread.h>

static struct {
    fr_t small[2 * LC_COEFF_MAX + 1]; /* of -LC_COEFF_MAX at 0 */
    fr_t power[2][FR_BITS];           /* of 2^i and of -2^i */
} tables;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (int i = 0; i <= LC_COEFF_MAX; i++) {
        tables.small[LC_COEFF_MAX + i] = fr_from_u64((uint64_t)i);
        fr_neg(&tables.small[LC_COEFF_MAX - i], &tables.small[LC_COEFF_MAX + i]);
    }
    tables.power[0][0] = fr_from_u64(1);
    for (int i = 0; i < FR_BITS; i++) {
        if (i > 0)
            fr_add(&tables.power[0][i], &tables.power[0][i - 1], &tables.power[0][i - 1]);
        fr_neg(&tables.power[1][i], &tables.power[0][i]);
    }
}

const fr_t *fr_bit(bool value)
{
    static const fr_t bits[2] = {{{0}}, FR_ONE};

    return &bits[value];
}

void lc_add(struct lc *lc, cs_var var, int32_t coeff)
{
    uint32_t at = lc->len;

    while (at > 0 && lc->terms[at - 1].var > var)
        at--;
    if (at > 0 && lc->terms[at - 1].var == var) {
        lc->terms[at - 1].coeff += coeff;
        if (lc->terms[at - 1].coeff == 0) {
            lc->len--;
            memmove(&lc->terms[at - 1], &lc->terms[at], (lc->len - at + 1) * sizeof(lc->terms[0]));
        }
        return;
    }
    assert(lc->len < LC_TERMS);
    memmove(&lc->terms[at + 1], &lc->terms[at], (lc->len - at) * sizeof(lc->terms[0]));
    lc->terms[at].var = var;
    lc->terms[at].coeff = coeff;
    lc->len++;
}

struct cs_lc lc_expand(const struct lc *lc, struct cs_term *out)
{
    pthread_once(&tables_once, make_tables);
    for (uint32_t i = 0; i < lc->len; i++) {
        out[i].var = lc->terms[i].var;
        out[i].coeff = tables.small[LC_COEFF_MAX + lc->terms[i].coeff];
    }
    return (struct cs_lc){.terms = out, .len = lc->len};
}

void lc_enforce(struct cs *cs, const struct lc *a, const struct lc *b, const struct lc *c)
{
    struct cs_term terms[3][LC_TERMS];

    if (cs_skip_row(cs))
        return;
    const struct cs_lc x = lc_expand(a, terms[0]), y = lc_expand(b, terms[1]),
                       z = lc_expand(c, terms[2]);
    cs_enforce(cs, &x, &y, &z);
}

void lc_powers_add_one(struct lc_powers *lc, uint32_t shift)
{
    pthread_once(&tables_once, make_tables);
    fr_add(&lc->constant, &lc->constant, &tables.power[0][shift]);
}

static bool is_sorted(const struct lc_power *terms, uint32_t len)
{
    for (uint32_t i = 1; i < len; i++)
        if (terms[i - 1].var > terms[i].var)
            return false;
    return true;
}

/* One pass by the digit of 8 bits at `bit` of var - base. */
static void sort_pass(const struct lc_power *in, struct lc_power *out, uint32_t len, cs_var base,
                      uint32_t bit)
{
    uint32_t start[256] = {0}, sum = 0;

    for (uint32_t i = 0; i < len; i++)
        start[(in[i].var - base) >> bit & 255]++;
    for (int digit = 0; digit < 256; digit++) {
        uint32_t n = start[digit];
        start[digit] = sum;
        sum += n;
    }
    for (uint32_t i = 0; i < len; i++)
        out[start[(in[i].var - base) >> bit & 255]++] = in[i];
}

/* Sorts by var; digits above the range of the variables cost nothing. */
static void sort_terms(struct lc_powers *lc)
{
    struct lc_power other[LC_POWERS_TERMS];
    cs_var lowest = lc->terms[0].var, highest = lowest;

    for (uint32_t i = 1; i < lc->len; i++) {
        lowest = lc->terms[i].var < lowest ? lc->terms[i].var : lowest;
        highest = lc->terms[i].var > highest ? lc->terms[i].var : highest;
    }
    struct lc_power *from = lc->terms, *to = other;
    for (uint32_t bit = 0; bit < 32 && (highest - lowest) >> bit > 0; bit += 8) {
        sort_pass(from, to, lc->len, lowest, bit);
        struct lc_power *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != lc->terms)
        memcpy(lc->terms, from, lc->len * sizeof(*from));
}

struct cs_lc lc_powers_expand(struct lc_powers *lc, struct cs_term *out)
{
    size_t len = 0;

    pthread_once(&tables_once, make_tables);
    if (!is_sorted(lc->terms, lc->len))
        sort_terms(lc);
    if (!fr_is_zero(&lc->constant))
        out[len++] = (struct cs_term){CS_ONE, lc->constant};
    for (uint32_t i = 0; i < lc->len;) {
        const cs_var var = lc->terms[i].var;
        struct cs_term *term = &out[len];
        term->var = var;
        term->coeff = tables.power[lc->terms[i].negative][lc->terms[i].shift];
        for (i++; i < lc->len && lc->terms[i].var == var; i++)
            fr_add(&term->coeff, &term->coeff,
                   &tables.power[lc->terms[i].negative][lc->terms[i].shift]);
        len += !fr_is_zero(&term->coeff);
    }
    return (struct cs_lc){.terms = out, .len = len};
}
