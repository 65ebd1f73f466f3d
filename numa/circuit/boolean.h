/*
 * Bits: constants, variables and their negations, with the folding rules that make the circuit what it is
 * (porep-circuit 4.1). Which rule applies first matters: it decides which rows there are.
 */
#ifndef CIRCUIT_BOOLEAN_H
#define CIRCUIT_BOOLEAN_H

#include "numa/circuit/lc.h"

enum boolean_kind { BOOLEAN_CONST, BOOLEAN_IS, BOOLEAN_NOT };

struct boolean {
    cs_var var;   /* IS, NOT: the variable */
    uint8_t kind; /* enum boolean_kind */
    bool value;   /* of this bit, the negation applied */
};

static inline struct boolean boolean_const(bool value)
{
    return (struct boolean){.kind = BOOLEAN_CONST, .value = value};
}

static inline bool boolean_is_const(struct boolean a)
{
    return a.kind == BOOLEAN_CONST;
}

static inline struct boolean boolean_not(struct boolean a)
{
    a.value = !a.value;
    if (a.kind != BOOLEAN_CONST)
        a.kind = a.kind == BOOLEAN_IS ? BOOLEAN_NOT : BOOLEAN_IS;
    return a;
}

/* A new variable that a row holds to 0 or 1. */
struct boolean boolean_alloc(struct cs *cs, bool value);

struct boolean boolean_xor(struct cs *cs, struct boolean a, struct boolean b);
struct boolean boolean_and(struct cs *cs, struct boolean a, struct boolean b);

/* a ? b : c */
struct boolean boolean_ch(struct cs *cs, struct boolean a, struct boolean b, struct boolean c);
/* Two of three. */
struct boolean boolean_maj(struct cs *cs, struct boolean a, struct boolean b, struct boolean c);

/* lc += coeff * a */
void lc_add_boolean(struct lc *lc, struct boolean a, int32_t coeff);
/* lc += 2^shift * a */
void lc_powers_add_boolean(struct lc_powers *lc, struct boolean a, uint32_t shift);

#endif
