/*
 * A constraint system's polynomials at one point tau (c2-formats 7): what the parameters are made of.
 *
 * Variable v has a polynomial for each side A, B, C of the rows, with the coefficient of row i as its value at
 * omega^i. Its value at tau is the sum of coefficient times Lagrange value over the rows, so the rows can be
 * taken as a stream.
 *
 * They come from a circuit's templates, which is quick, or one by one, for systems without templates and as the oracle of the rest.
 *
 * A qap belongs to one thread.
 */
#ifndef GPU_QAP_H
#define GPU_QAP_H

#include "numa/circuit/circuit.h"
#include "numa/circuit/cs.h"
#include "numa/circuit/porep.h"
#include "numa/workers.h"

struct qap {
    uint32_t n_inputs, n_aux; /* inputs with ONE */
    uint64_t n_rows;
    uint32_t log2_domain;
    fr_t vanishing; /* tau^m - 1 */
    /* Values of the variables' polynomials, inputs first: n_inputs + n_aux each. */
    fr_t *u, *v, *w;
    fr_t *lagrange; /* n_rows; dropped by qap_drop_lagrange */
};

/* A system of these counts without any row yet. tau must not be in the domain. Returns 0 with *out set (end it
 * with qap_destroy), -EINVAL, -ENOMEM. */
int qap_create(const struct porep_counts *counts, const fr_t *tau, struct workers *workers,
               struct qap **out, struct errmsg *err);
void qap_destroy(struct qap *q);

/* Takes rows, each once, below n_rows. */
struct cs_sink qap_sink(struct qap *q);

/* Takes all rows of a circuit, which has the counts that q was made with. Returns 0 or -ENOMEM. */
int qap_take_circuit(struct qap *q, const struct circuit *circuit, struct workers *workers,
                     struct errmsg *err);

/* Gives back what only the taking of rows needs. */
void qap_drop_lagrange(struct qap *q);

#endif
