/*
 * A and B of a circuit's rows, arranged for evaluation. Nothing here that is not in the circuit's sides: nine rows in ten are over a few bits
 * with coefficients 1, -1 and 2, the long ones are sums of whole words of bits, and to know that beforehand saves most of the
 * work.
 *
 * Made with the circuit, immutable, and as flat as it.
 */
#ifndef CIRCUIT_CIRCUIT_PLAN_H
#define CIRCUIT_CIRCUIT_PLAN_H

#include "numa/circuit/circuit.h"

#ifdef __cplusplus
extern "C" {
#endif

enum circuit_run_kind {
    CIRCUIT_RUN_SMALL,   /* rows over bits: small[first], one for each row */
    CIRCUIT_RUN_SUM,     /* one row: A is a sum of words, sums[first]; B is ONE */
    CIRCUIT_RUN_GENERAL, /* as the sides say */
    CIRCUIT_RUN_ZERO,    /* A = B = 0 */
};

/* Rows of one kind, one after another. */
struct circuit_run {
    uint32_t kind;
    uint32_t row; /* counted from the template's first */
    uint32_t n_rows;
    uint32_t first;
};

/*
 * A row over at most three bits in A and one in B. Bits are numbered for an instance: 0 is a bit that is 0; own bit k (an aux
 * variable that it allocates) is 1 + k; then come the bits of other segments that the template's gathers list.
 *
 *     A = small integer a[bit[0] + 2 bit[1] + 4 bit[2]] of the form,     B = small integer b[bit[3]]
 */
struct circuit_small {
    uint16_t form;
    uint16_t bit[4];
};
struct circuit_form {
    int8_t a[8], b[2];
};

/* `len` bits from the segment's first on take numbers from `number` on. */
struct circuit_gather {
    uint32_t segment, len, number;
};

/* Adds, or takes off, 2^shift times the integer that `len` <= 32 bits spell, which stand `stride` (1 or 2) apart from the bit
 * `var` on, least significant first. */
struct circuit_word {
    uint32_t var; /* as in a term */
    uint8_t len, stride, shift, negative;
};
struct circuit_sum {
    uint32_t first_word, n_words;
    uint32_t constant; /* a coefficient that is added, CIRCUIT_SMALL for none */
};

struct circuit_plan_part {
    uint32_t first_run, n_runs;
    uint32_t first_gather, n_gathers;
    uint32_t n_bits; /* that have numbers */
};

struct circuit_plan {
    uint32_t n_runs, n_small, n_forms, n_gathers, n_sums, n_words;
    struct circuit_plan_part *parts; /* by template */
    struct circuit_run *runs;
    struct circuit_small *small;
    struct circuit_form *forms;
    struct circuit_gather *gathers;
    struct circuit_sum *sums;
    struct circuit_word *words;
};

/* For circuit_create: plans a circuit whose templates, sides and coefficients are there. Returns 0 with *out set (end it with
 * circuit_plan_destroy) or -ENOMEM. */
int circuit_plan_create(const struct circuit *c, struct circuit_plan **out);
void circuit_plan_destroy(struct circuit_plan *p);

size_t circuit_plan_bytes(const struct circuit *c, const struct circuit_plan *p);

#ifdef __cplusplus
}
#endif

#endif
