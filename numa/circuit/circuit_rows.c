/*
 * Rows as the gadgets give them: variables by their numbers in the whole circuit, in their order. A template has its terms in
 * the order of its own numbers, which is a few ascending runs in the other.
 */
#include "numa/circuit/circuit.h"

#include <errno.h>
#include <stdlib.h>

#include "numa/circuit/cs.h"

struct side_terms {
    struct cs_term *at, *spare; /* as many as the longest row has */
};

static cs_var number_of(const struct circuit *c, const struct circuit_base *bases, uint32_t var)
{
    const uint32_t number = circuit_variable(c, bases, var);

    return number < c->n_inputs ? number : CS_AUX | (number - c->n_inputs);
}

static size_t run_end(const struct cs_term *terms, size_t begin, size_t len)
{
    size_t i = begin + 1;

    while (i < len && terms[i - 1].var < terms[i].var)
        i++;
    return i < len ? i : len;
}

static void merge(struct cs_term *out, const struct cs_term *x, size_t x_len,
                  const struct cs_term *y, size_t y_len)
{
    while (x_len + y_len > 0) {
        const bool from_x = y_len == 0 || (x_len > 0 && x->var < y->var);
        *out++ = from_x ? *x++ : *y++;
        from_x ? x_len-- : y_len--;
    }
}

/* Merges neighbouring runs until there is one. */
static void sort_runs(struct side_terms *t, size_t len)
{
    while (run_end(t->at, 0, len) < len) {
        for (size_t begin = 0; begin < len;) {
            const size_t middle = run_end(t->at, begin, len),
                         end = middle < len ? run_end(t->at, middle, len) : len;
            merge(t->spare + begin, t->at + begin, middle - begin, t->at + middle, end - middle);
            begin = end;
        }
        struct cs_term *sorted = t->spare;
        t->spare = t->at;
        t->at = sorted;
    }
}

static struct cs_lc side_of_row(const struct circuit *c, const struct circuit_base *bases, int side,
                                uint32_t row, struct side_terms *t)
{
    const uint32_t begin = c->sides[side].first[row], end = c->sides[side].first[row + 1];
    const struct circuit_term *from = c->sides[side].terms;

    for (uint32_t i = begin; i < end; i++)
        t->at[i - begin] =
            (struct cs_term){number_of(c, bases, from[i].var), c->coeffs[from[i].coeff]};
    if (end > begin)
        sort_runs(t, end - begin);
    return (struct cs_lc){t->at, end - begin};
}

static void rows(const struct circuit *c, const struct cs_sink *sink,
                 struct side_terms terms[CIRCUIT_SIDES])
{
    uint64_t row = 0;

    for (uint32_t i = 0; i < c->n_instances; i++) {
        const struct circuit_template *t = &c->templates[c->instances[i].template_index];
        const struct circuit_base *bases = &c->bases[c->instances[i].first_base];
        for (uint32_t r = t->first_row; r < t->first_row + t->n_rows; r++) {
            const struct cs_lc a = side_of_row(c, bases, CIRCUIT_A, r, &terms[CIRCUIT_A]),
                               b = side_of_row(c, bases, CIRCUIT_B, r, &terms[CIRCUIT_B]),
                               z = side_of_row(c, bases, CIRCUIT_C, r, &terms[CIRCUIT_C]);
            sink->row(sink->ctx, row++, &a, &b, &z);
        }
    }
}

static size_t longest_side(const struct circuit *c)
{
    size_t longest = 0;

    for (int side = 0; side < CIRCUIT_SIDES; side++)
        for (uint32_t r = 0; r < c->template_rows; r++) {
            const size_t len = c->sides[side].first[r + 1] - c->sides[side].first[r];
            longest = len > longest ? len : longest;
        }
    return longest;
}

int circuit_rows(const struct circuit *c, const struct cs_sink *sink, struct errmsg *err)
{
    const size_t longest = longest_side(c);
    struct cs_term *memory = malloc(2 * CIRCUIT_SIDES * (longest + 1) * sizeof(*memory));
    struct side_terms terms[CIRCUIT_SIDES];

    if (!memory)
        return errmsg_set(err, -ENOMEM, "no memory for a row");
    for (size_t side = 0; side < CIRCUIT_SIDES; side++) {
        terms[side].at = memory + 2 * side * longest;
        terms[side].spare = terms[side].at + longest;
    }
    rows(c, sink, terms);
    free(memory);
    return 0;
}
