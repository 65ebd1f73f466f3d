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

struct cs;

struct cs_term {
    cs_var var;
    fr_t coeff;
};

/* A linear combination as rows carry it: sorted by var, no var twice, no zero coefficient. */
struct cs_lc {
    const struct cs_term *terms;
    size_t len;
};

/* Takes the rows. `row` counts from 0. The combinations are valid during the call only. Each function may be
 * NULL; without `row` no combination is ever built, which makes a run for the values alone several times
 * faster. */
struct cs_sink {
    void (*row)(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                const struct cs_lc *c);
    void (*input)(void *ctx, uint32_t index, const fr_t *value);
    void (*aux)(void *ctx, uint32_t index, const fr_t *value);
    /* For aux variables that are bits; without it they go to `aux` like the rest. */
    void (*bit)(void *ctx, uint32_t index, bool value);
    /* A named step of the PoRep circuit begins, with these counters. */
    void (*step)(void *ctx, const char *name, const struct cs *cs);
    void *ctx;
};

/*
 * Gadgets' side: numa/circuit/ alone.
 *
 * A variable's value travels with it (struct boolean, struct num), so a cs needs no memory of them, and may
 * start at any counters: parts of one circuit can be synthesized side by side.
 */
struct cs {
    const struct cs_sink *sink;
    uint32_t n_inputs, n_aux; /* allocated so far: the next index of each kind */
    uint64_t n_rows;
};

/* An empty system: allocates ONE. `sink` is borrowed. */
void cs_init(struct cs *cs, const struct cs_sink *sink);

/* A system that goes on where another stood: *at gives the counters. */
void cs_init_at(struct cs *cs, const struct cs_sink *sink, const struct cs *at);

static inline cs_var cs_alloc(struct cs *cs, const fr_t *value)
{
    if (cs->sink->aux)
        cs->sink->aux(cs->sink->ctx, cs->n_aux, value);
    return CS_AUX | cs->n_aux++;
}

cs_var cs_alloc_input(struct cs *cs, const fr_t *value);

/* Enforces a * b = c. */
static inline void cs_enforce(struct cs *cs, const struct cs_lc *a, const struct cs_lc *b,
                              const struct cs_lc *c)
{
    if (cs->sink->row)
        cs->sink->row(cs->sink->ctx, cs->n_rows, a, b, c);
    cs->n_rows++;
}

/* True, with the row counted, where nobody wants its terms. */
static inline bool cs_skip_row(struct cs *cs)
{
    if (cs->sink->row)
        return false;
    cs->n_rows++;
    return true;
}

static inline void cs_step(struct cs *cs, const char *name)
{
    if (cs->sink->step)
        cs->sink->step(cs->sink->ctx, name, cs);
}

/* The rows x_i * 0 = 0 of porep-circuit 1.3, one for each input: the last thing in a circuit. */
void cs_close(struct cs *cs);

/* ONE alone, and the empty combination. */
extern const struct cs_lc cs_lc_one, cs_lc_zero;

#endif
