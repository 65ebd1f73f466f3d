/*
 * Each operation allocates the result's variable, says its row, and returns it as a plain bit. The rules
 * are in the order of porep-circuit 4.1.
 */
#include "numa/circuit/boolean.h"

static bool is_false(struct boolean a)
{
    return a.kind == BOOLEAN_CONST && !a.value;
}

static bool is_true(struct boolean a)
{
    return a.kind == BOOLEAN_CONST && a.value;
}

/* A variable for the result of an operation: its own row follows from the operation's. */
static struct boolean alloc_result(struct cs *cs, bool value)
{
    struct boolean out = {.kind = BOOLEAN_IS, .value = value};

    if (cs->sink->bit) {
        cs->sink->bit(cs->sink->ctx, cs->n_aux, value);
        out.var = CS_AUX | cs->n_aux++;
    } else {
        out.var = cs_alloc(cs, fr_bit(value));
    }
    return out;
}

/* ONE - var, or var itself. */
static struct lc lc_literal(cs_var var, bool negated)
{
    struct lc lc = {0};

    if (negated)
        lc_add(&lc, CS_ONE, 1);
    lc_add(&lc, var, negated ? -1 : 1);
    return lc;
}

struct boolean boolean_alloc(struct cs *cs, bool value)
{
    const struct boolean v = alloc_result(cs, value);

    if (cs_skip_row(cs))
        return v;
    const struct lc a = lc_literal(v.var, true), b = lc_of(v.var, 1), c = {0};
    lc_enforce(cs, &a, &b, &c);
    return v;
}

/* XOR of two variables with these values: 2a * b = a + b - v. */
static struct boolean xor_variables(struct cs *cs, cs_var a, cs_var b, bool value)
{
    const struct boolean v = alloc_result(cs, value);

    if (cs_skip_row(cs))
        return v;
    const struct lc x = lc_of(a, 2), y = lc_of(b, 1);
    struct lc z = {0};
    lc_add(&z, a, 1);
    lc_add(&z, b, 1);
    lc_add(&z, v.var, -1);
    lc_enforce(cs, &x, &y, &z);
    return v;
}

/* and(a, b) of two bits that are not constant: one row, over the variables or their complements. */
static struct boolean and_variables(struct cs *cs, struct boolean a, struct boolean b)
{
    const struct boolean v = alloc_result(cs, a.value && b.value);

    if (cs_skip_row(cs))
        return v;
    const struct lc x = lc_literal(a.var, a.kind == BOOLEAN_NOT),
                    y = lc_literal(b.var, b.kind == BOOLEAN_NOT), z = lc_of(v.var, 1);
    lc_enforce(cs, &x, &y, &z);
    return v;
}

struct boolean boolean_xor(struct cs *cs, struct boolean a, struct boolean b)
{
    if (boolean_is_const(a))
        return a.value ? boolean_not(b) : b;
    if (boolean_is_const(b))
        return b.value ? boolean_not(a) : a;
    if (a.kind == b.kind)
        return xor_variables(cs, a.var, b.var, a.value != b.value);
    const struct boolean plain = a.kind == BOOLEAN_IS ? a : b,
                         negated = a.kind == BOOLEAN_IS ? b : a;
    return boolean_not(xor_variables(cs, plain.var, negated.var, plain.value == negated.value));
}

struct boolean boolean_and(struct cs *cs, struct boolean a, struct boolean b)
{
    if (is_false(a) || is_false(b))
        return boolean_const(false);
    if (is_true(a))
        return b;
    if (is_true(b))
        return a;
    /* Of a plain and a negated bit the plain one comes first. */
    if (a.kind == BOOLEAN_NOT && b.kind == BOOLEAN_IS)
        return and_variables(cs, b, a);
    return and_variables(cs, a, b);
}

/* The general case of ch: (b - c) * a = v - c. */
static struct boolean ch_variable(struct cs *cs, struct boolean a, struct boolean b,
                                  struct boolean c)
{
    const struct boolean v = alloc_result(cs, a.value ? b.value : c.value);

    if (cs_skip_row(cs))
        return v;
    struct lc x = {0}, y = {0}, z = {0};
    lc_add_boolean(&x, b, 1);
    lc_add_boolean(&x, c, -1);
    lc_add_boolean(&y, a, 1);
    lc_add_boolean(&z, c, -1);
    lc_add(&z, v.var, 1);
    lc_enforce(cs, &x, &y, &z);
    return v;
}

struct boolean boolean_ch(struct cs *cs, struct boolean a, struct boolean b, struct boolean c)
{
    if (boolean_is_const(a) && boolean_is_const(b) && boolean_is_const(c))
        return boolean_const(a.value ? b.value : c.value);
    if (is_false(a))
        return c;
    if (is_false(b))
        return boolean_and(cs, boolean_not(a), c);
    if (is_false(c))
        return boolean_and(cs, a, b);
    if (is_true(c))
        return boolean_not(boolean_and(cs, a, boolean_not(b)));
    if (is_true(b))
        return boolean_not(boolean_and(cs, boolean_not(a), boolean_not(c)));
    return ch_variable(cs, a, b, c);
}

/* The general case of maj: (2bc - b - c) * a = bc - v. The variable of v comes before that of bc, the row of
 * bc before that of v. */
static struct boolean maj_variable(struct cs *cs, struct boolean a, struct boolean b,
                                   struct boolean c)
{
    const struct boolean v =
        alloc_result(cs, (a.value && b.value) || (a.value && c.value) || (b.value && c.value));
    const struct boolean bc = boolean_and(cs, b, c);

    if (cs_skip_row(cs))
        return v;
    struct lc x = {0}, y = {0}, z = {0};
    lc_add_boolean(&x, b, -1);
    lc_add_boolean(&x, c, -1);
    lc_add_boolean(&x, bc, 2);
    lc_add_boolean(&y, a, 1);
    lc_add_boolean(&z, bc, 1);
    lc_add(&z, v.var, -1);
    lc_enforce(cs, &x, &y, &z);
    return v;
}

/* not (not a and not b) */
static struct boolean or_of(struct cs *cs, struct boolean a, struct boolean b)
{
    return boolean_not(boolean_and(cs, boolean_not(a), boolean_not(b)));
}

struct boolean boolean_maj(struct cs *cs, struct boolean a, struct boolean b, struct boolean c)
{
    if (boolean_is_const(a) && boolean_is_const(b) && boolean_is_const(c))
        return boolean_const(a.value + b.value + c.value >= 2);
    if (is_false(a))
        return boolean_and(cs, b, c);
    if (is_false(b))
        return boolean_and(cs, a, c);
    if (is_false(c))
        return boolean_and(cs, a, b);
    if (is_true(c))
        return or_of(cs, a, b);
    if (is_true(b))
        return or_of(cs, a, c);
    if (is_true(a))
        return or_of(cs, b, c);
    return maj_variable(cs, a, b, c);
}

void lc_add_boolean(struct lc *lc, struct boolean a, int32_t coeff)
{
    if (a.kind == BOOLEAN_IS) {
        lc_add(lc, a.var, coeff);
        return;
    }
    if (a.kind == BOOLEAN_NOT)
        lc_add(lc, a.var, -coeff);
    if (a.kind == BOOLEAN_NOT || a.value)
        lc_add(lc, CS_ONE, coeff);
}

void lc_powers_add_boolean(struct lc_powers *lc, struct boolean a, uint32_t shift)
{
    if (a.kind != BOOLEAN_CONST)
        lc_powers_add(lc, a.var, shift, a.kind == BOOLEAN_NOT);
    if (a.kind == BOOLEAN_NOT || is_true(a))
        lc_powers_add_one(lc, shift);
}
