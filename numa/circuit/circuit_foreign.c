#include "numa/circuit/circuit_foreign.h"

#include <errno.h>
#include <stdlib.h>

/* Those of one side of a template, behind the `len` before, or counted where there is no list yet. Returns how many there are then. */
static size_t list_side(struct circuit_foreign *list, size_t len, const struct circuit *c,
                        const struct circuit_template *part, uint32_t side)
{
    const struct circuit_side *from = &c->sides[side];

    for (uint32_t r = 0; r < part->n_rows; r++)
        for (uint32_t i = from->first[part->first_row + r];
             i < from->first[part->first_row + r + 1]; i++) {
            if (CIRCUIT_SEGMENT(from->terms[i].var) < CIRCUIT_FOREIGN)
                continue;
            if (list->terms)
                list->terms[len] = (struct circuit_foreign_term){r, side, from->terms[i]};
            len++;
        }
    return len;
}

static size_t list_all(struct circuit_foreign *list, const struct circuit *c, unsigned sides)
{
    size_t len = 0;

    for (uint32_t k = 0; k < c->n_templates; k++) {
        list->first[k] = len;
        for (uint32_t side = 0; side < CIRCUIT_SIDES; side++)
            if (sides >> side & 1)
                len = list_side(list, len, c, &c->templates[k], side);
    }
    list->first[c->n_templates] = len;
    return len;
}

int circuit_foreign_init(struct circuit_foreign *list, const struct circuit *c, unsigned sides)
{
    *list = (struct circuit_foreign){.first = calloc((size_t)c->n_templates + 1, sizeof(size_t))};
    if (!list->first)
        return -ENOMEM;
    list->terms = malloc((list_all(list, c, sides) + 1) * sizeof(*list->terms));
    if (!list->terms)
        return -ENOMEM;
    list_all(list, c, sides);
    return 0;
}

void circuit_foreign_fini(struct circuit_foreign *list)
{
    free(list->terms);
    free(list->first);
    *list = (struct circuit_foreign){0};
}
