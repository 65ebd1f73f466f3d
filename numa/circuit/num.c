/*
 * Rows over a number and its bits: sums of powers of two, at most 255 terms.
 */
#include "numa/circuit/num.h"

#include <assert.h>

struct num num_alloc(struct cs *cs, const fr_t *value)
{
    return (struct num){.var = cs_alloc(cs, value), .value = *value};
}

/* a * ONE = c */
static void enforce_same(struct cs *cs, const struct lc *a, cs_var c)
{
    const struct lc one = lc_of(CS_ONE, 1), right = lc_of(c, 1);

    lc_enforce(cs, a, &one, &right);
}

void num_inputize(struct cs *cs, const struct num *n)
{
    const struct lc input = lc_of(cs_alloc_input(cs, &n->value), 1);

    enforce_same(cs, &input, n->var);
}

void num_enforce_equal(struct cs *cs, const struct num *a, const struct num *b)
{
    const struct lc left = lc_of(a->var, 1);

    enforce_same(cs, &left, b->var);
}

struct num num_add(struct cs *cs, const struct num *a, const struct num *b)
{
    fr_t value;
    struct lc sum = lc_of(a->var, 1);

    fr_add(&value, &a->value, &b->value);
    const struct num n = num_alloc(cs, &value);
    lc_add(&sum, b->var, 1);
    enforce_same(cs, &sum, n.var);
    return n;
}

void num_to_bits(struct cs *cs, const struct num *n, struct boolean bits[NUM_BITS])
{
    uint8_t bytes[FR_BYTES];
    struct lc_powers sum;
    struct cs_term terms[NUM_BITS + 1];

    fr_to_bytes(bytes, &n->value);
    for (uint32_t i = 0; i < NUM_BITS; i++)
        bits[i] = boolean_alloc(cs, bytes[i / 8] >> (i % 8) & 1);
    if (cs_skip_row(cs))
        return;
    lc_powers_init(&sum);
    lc_powers_add(&sum, n->var, 0, true);
    for (uint32_t i = 0; i < NUM_BITS; i++)
        lc_powers_add_boolean(&sum, bits[i], i);
    const struct cs_lc c = lc_powers_expand(&sum, terms);
    cs_enforce(cs, &cs_lc_zero, &cs_lc_zero, &c);
}

void bits_reverse_in_bytes(struct boolean *bits, size_t len)
{
    assert(len % 8 == 0);
    for (size_t byte = 0; byte < len; byte += 8)
        for (size_t i = 0; i < 4; i++) {
            struct boolean low = bits[byte + i];
            bits[byte + i] = bits[byte + 7 - i];
            bits[byte + 7 - i] = low;
        }
}

void num_to_byte_bits(struct cs *cs, const struct num *n, struct boolean bits[NUM_BYTE_BITS])
{
    num_to_bits(cs, n, bits);
    bits[NUM_BITS] = boolean_const(false);
    bits_reverse_in_bytes(bits, NUM_BYTE_BITS);
}

static fr_t bits_value(const struct boolean *bits, size_t len)
{
    uint8_t bytes[FR_BYTES] = {0};
    fr_t value = {{0}};

    for (size_t i = 0; i < len; i++)
        bytes[i / 8] |= (uint8_t)(bits[i].value << (i % 8));
    fr_from_bytes(&value, bytes); /* below 2^254: always below r */
    return value;
}

/* sum of 2^i * bits[i] = var, times ONE */
static void enforce_packed(struct cs *cs, const struct boolean *bits, size_t len, cs_var var)
{
    struct lc_powers sum;
    struct cs_term terms[NUM_PACK_BITS + 1], right[LC_TERMS];

    if (cs_skip_row(cs))
        return;
    lc_powers_init(&sum);
    for (size_t i = 0; i < len; i++)
        lc_powers_add_boolean(&sum, bits[i], (uint32_t)i);
    const struct lc value = lc_of(var, 1);
    const struct cs_lc a = lc_powers_expand(&sum, terms), c = lc_expand(&value, right);
    cs_enforce(cs, &a, &cs_lc_one, &c);
}

struct num num_from_bits(struct cs *cs, const struct boolean *bits, size_t len)
{
    len = min_size(len, NUM_PACK_BITS);
    const fr_t value = bits_value(bits, len);
    const struct num n = num_alloc(cs, &value);

    enforce_packed(cs, bits, len, n.var);
    return n;
}

struct num num_from_byte_bits(struct cs *cs, const struct boolean bits[NUM_BYTE_BITS])
{
    struct boolean reversed[NUM_BYTE_BITS];

    memcpy(reversed, bits, sizeof(reversed));
    bits_reverse_in_bytes(reversed, NUM_BYTE_BITS);
    return num_from_bits(cs, reversed, NUM_BYTE_BITS);
}

void num_inputize_bits(struct cs *cs, const struct boolean *bits, size_t len)
{
    assert(len <= NUM_PACK_BITS);
    const fr_t value = bits_value(bits, len);

    enforce_packed(cs, bits, len, cs_alloc_input(cs, &value));
}
