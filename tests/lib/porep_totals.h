/*
 * What porep-circuit 7.1 to 7.3 record of whole circuits.
 */
#ifndef TESTS_LIB_POREP_TOTALS_H
#define TESTS_LIB_POREP_TOTALS_H

#include "numa/circuit/sector.h"

struct porep_totals {
    const char *name; /* of the sector size */
    uint32_t inputs, aux;
    uint64_t constraints, rows;
    uint32_t log2_domain, a_aux, b_aux;
    const char *digest;
};

/* The ten sizes, smallest first; the last two are large. */
#define POREP_TOTALS 10
#define POREP_TOTALS_SMALL 8
extern const struct porep_totals porep_totals[POREP_TOTALS];

/* Circuits that no sector has. */
struct porep_odd {
    struct sector_size size;
    uint64_t constraints;
    const char *digest;
};
#define POREP_ODD 5
extern const struct porep_odd porep_odd[POREP_ODD];

#endif
