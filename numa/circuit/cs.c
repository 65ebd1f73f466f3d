#include "numa/circuit/cs.h"

static const struct cs_term term_one = {.var = CS_ONE, .coeff = FR_ONE};

const struct cs_lc cs_lc_one = {.terms = &term_one, .len = 1};
const struct cs_lc cs_lc_zero = {.terms = NULL, .len = 0};

void cs_init(struct cs *cs, const struct cs_sink *sink)
{
    *cs = (struct cs){.sink = sink};
    cs_alloc_input(cs, &term_one.coeff);
}

void cs_init_at(struct cs *cs, const struct cs_sink *sink, const struct cs *at)
{
    *cs = *at;
    cs->sink = sink;
}

cs_var cs_alloc_input(struct cs *cs, const fr_t *value)
{
    if (cs->sink->input)
        cs->sink->input(cs->sink->ctx, cs->n_inputs, value);
    return cs->n_inputs++;
}

void cs_close(struct cs *cs)
{
    struct cs_term term = term_one;
    const struct cs_lc input = {.terms = &term, .len = 1};

    for (uint32_t i = 0; i < cs->n_inputs; i++) {
        term.var = i;
        cs_enforce(cs, &input, &cs_lc_zero, &cs_lc_zero);
    }
}
