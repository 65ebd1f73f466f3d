/*
 * The constraint system (R1CS) as a stream: gadgets allocate variables and enforce rows, a sink
 * takes each row as it comes (porep-circuit 1.2). Nothing is kept here but counters and values, so a
 * system of 130 million rows needs no room for rows.
 *
 * A cs belongs to one thread.
 */
#ifndef CIRCUIT_CS_H
#define CIRCUIT_CS_H

#include <stddef.h>

#include "numa/base.h"
#include "numa/circuit/fr.h"

/* Input i is i; aux i is CS_AUX | i. Input 0 is ONE. The order of these numbers is that of
 * porep-circuit 7.3. */
typedef uint32_t cs_var;
#define CS_AUX 0x80000000u
#define CS_ONE ((cs_var)0)

struct cs_term {
    cs_var var;
    fr_t coeff;
};

/* A linear combination as rows carry it: sorted by var, no var twice, no zero coefficient. */
struct cs_lc {
    const struct cs_term *terms;
    size_t len;
};

/* Takes the rows. `row` counts from 0. The combinations are valid during the call only. */
struct cs_sink {
    void (*row)(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                const struct cs_lc *c);
    void (*input)(void *ctx, uint32_t index, const fr_t *value); /* may be NULL */
    void (*aux)(void *ctx, uint32_t index, const fr_t *value);   /* may be NULL */
    void *ctx;
};

struct cs; /* gadgets' side: numa/circuit/ alone, declared further down by its owner */

#endif
