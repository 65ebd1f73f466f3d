/*
 * A circuit's polynomials at a point, by gpu/qap.c, for tests in C++ (which the constraint system's headers are not for).
 */
#ifndef TESTS_LIB_CIRCUIT_QAP_H
#define TESTS_LIB_CIRCUIT_QAP_H

#include "numa/circuit/circuit.h"

struct circuit_qap {
    const fr_t *lagrange;            /* of the rows */
    const fr_t *side[CIRCUIT_SIDES]; /* of all variables, inputs first */
    void *held;
};

/* What goes wrong here ends the test program. */
void circuit_qap_make(const struct circuit *c, const fr_t *tau, struct circuit_qap *out);
void circuit_qap_end(struct circuit_qap *q);

#endif
