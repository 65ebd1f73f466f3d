/*
 * The terms of templates that name variables of other instances.
 *
 * Who goes through a circuit's terms variable by variable takes an instance's own variables from one thread and these apart, since many
 * instances may name the same one. Pure functions; any thread may call them.
 */
#ifndef CIRCUIT_CIRCUIT_FOREIGN_H
#define CIRCUIT_CIRCUIT_FOREIGN_H

#include "numa/circuit/circuit.h"

struct circuit_foreign_term {
    uint32_t row; /* counts from the template's first */
    uint32_t side;
    struct circuit_term term;
};

struct circuit_foreign {
    struct circuit_foreign_term *terms; /* template by template: of template k, */
    size_t *first;                      /* terms[first[k]] .. terms[first[k + 1] - 1] */
};

/* Those of some sides: bit s of `sides` asks for side s. Returns 0 or -ENOMEM; circuit_foreign_fini in either case. */
int circuit_foreign_init(struct circuit_foreign *list, const struct circuit *c, unsigned sides);
void circuit_foreign_fini(struct circuit_foreign *list);

#endif
