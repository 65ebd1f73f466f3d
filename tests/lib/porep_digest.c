#include "tests/lib/porep_digest.h"

#include <stdio.h>
#include <stdlib.h>

struct recorder {
    struct r1cs_digest *digest;
    uint64_t constraints; /* rows that are not closing rows */
    struct cs counters;
    uint8_t *a_aux, *b_aux, *b_input; /* a byte a variable */
    void (*step)(void *ctx, const char *name, const struct cs *cs);
    void *step_ctx;
};

static void record_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                       const struct cs_lc *c)
{
    struct recorder *r = ctx;

    if (row >= r->constraints)
        return;
    r1cs_digest_row(r->digest, row, a, b, c);
    r->counters.n_rows++;
    for (size_t i = 0; i < a->len; i++)
        if (a->terms[i].var & CS_AUX)
            r->a_aux[a->terms[i].var & ~CS_AUX] = 1;
    for (size_t i = 0; i < b->len; i++)
        *(b->terms[i].var & CS_AUX ? &r->b_aux[b->terms[i].var & ~CS_AUX]
                                   : &r->b_input[b->terms[i].var]) = 1;
}

static void record_input(void *ctx, uint32_t index, const fr_t *value)
{
    (void)value;
    ((struct recorder *)ctx)->counters.n_inputs = index + 1;
}

static void record_aux(void *ctx, uint32_t index, const fr_t *value)
{
    (void)value;
    ((struct recorder *)ctx)->counters.n_aux = index + 1;
}

static void record_step(void *ctx, const char *name, const struct cs *cs)
{
    const struct recorder *r = ctx;

    if (r->step)
        r->step(r->step_ctx, name, cs);
}

static uint32_t sum(const uint8_t *bytes, uint32_t len)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < len; i++)
        n += bytes[i];
    return n;
}

void porep_structure(const struct sector_size *size,
                     void (*step)(void *ctx, const char *name, const struct cs *cs), void *ctx,
                     struct porep_structure *out)
{
    struct porep_counts n;

    porep_counts(size, &n);
    struct recorder r = {.digest = r1cs_digest_create(),
                         .constraints = n.constraints,
                         .a_aux = calloc(n.aux, 1),
                         .b_aux = calloc(n.aux, 1),
                         .b_input = calloc(n.inputs, 1),
                         .step = step,
                         .step_ctx = ctx};
    const struct cs_sink sink = {.row = record_row,
                                 .input = record_input,
                                 .aux = record_aux,
                                 .step = record_step,
                                 .ctx = &r};
    if (!r.a_aux || !r.b_aux || !r.b_input || porep_synthesize_blank(size, &sink, NULL) < 0) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    out->inputs = r.counters.n_inputs;
    out->aux = r.counters.n_aux;
    out->constraints = r.counters.n_rows;
    out->a_aux_density = sum(r.a_aux, n.aux);
    out->b_aux_density = sum(r.b_aux, n.aux);
    out->b_input_density = sum(r.b_input, n.inputs);
    r1cs_digest_finish(r.digest, &r.counters, out->digest);
    r1cs_digest_destroy(r.digest);
    free(r.a_aux);
    free(r.b_aux);
    free(r.b_input);
}
