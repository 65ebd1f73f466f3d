/*
 * Linear combinations while gadgets build them.
 *
 * Coefficients in this circuit are small integers, or sums of powers of two over hundreds of bits, or the
 * constants of Poseidon (which bring their own tables). The two kinds here keep them in that short form
 * until a row is handed over, sorted and merged as cs.h wants it.
 */
#ifndef CIRCUIT_LC_H
#define CIRCUIT_LC_H

#include "numa/circuit/cs.h"

/* A few variables with small integer coefficients. Start from {0}. */
#define LC_TERMS 8
#define LC_COEFF_MAX 8 /* in absolute value */
struct lc {
    uint32_t len;
    struct {
        cs_var var;
        int32_t coeff; /* never 0 */
    } terms[LC_TERMS]; /* sorted by var */
};

/* lc += coeff * var */
void lc_add(struct lc *lc, cs_var var, int32_t coeff);

static inline struct lc lc_of(cs_var var, int32_t coeff)
{
    return (struct lc){.len = 1, .terms[0] = {var, coeff}};
}

void lc_enforce(struct cs *cs, const struct lc *a, const struct lc *b, const struct lc *c);

/* Writes at most LC_TERMS terms to `out`; returns them as a combination. */
struct cs_lc lc_expand(const struct lc *lc, struct cs_term *out);

/* A sum of +-2^shift * var and a constant. A sum never holds more than fits one row of additions: seven of
 * ten operands of 32 bits (porep-circuit 4.4). */
#define LC_POWERS_TERMS 2240
struct lc_power {
    cs_var var;
    uint16_t shift;
    bool negative;
};
struct lc_powers {
    fr_t constant; /* coefficient of ONE */
    uint32_t len;
    struct lc_power terms[LC_POWERS_TERMS];
};

static inline void lc_powers_init(struct lc_powers *lc)
{
    lc->len = 0;
    memset(&lc->constant, 0, sizeof(lc->constant));
}

/* lc += +-2^shift * var, var not ONE; shift < 255. */
static inline void lc_powers_add(struct lc_powers *lc, cs_var var, uint32_t shift, bool negative)
{
    lc->terms[lc->len++] = (struct lc_power){var, (uint16_t)shift, negative};
}

/* lc += 2^shift * ONE */
void lc_powers_add_one(struct lc_powers *lc, uint32_t shift);

/* Sorts and merges into `out`, which has room for LC_POWERS_TERMS + 1 terms. Reorders lc->terms. */
struct cs_lc lc_powers_expand(struct lc_powers *lc, struct cs_term *out);

/* The field element of a bit. */
const fr_t *fr_bit(bool value);

#endif
