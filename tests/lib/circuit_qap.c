#include "tests/lib/circuit_qap.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/qap.h"

static void must(int ret, const struct errmsg *err)
{
    if (ret == 0)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

void circuit_qap_make(const struct circuit *c, const fr_t *tau, struct circuit_qap *out)
{
    struct porep_counts counts;
    struct errmsg err = {""};
    struct qap *q = NULL;

    porep_counts(c->size, &counts);
    must(qap_create(&counts, tau, NULL, &q, &err), &err);
    const struct cs_sink sink = qap_sink(q);
    must(circuit_rows(c, &sink, &err), &err);
    *out = (struct circuit_qap){.lagrange = q->lagrange, .side = {q->u, q->v, q->w}, .held = q};
}

void circuit_qap_end(struct circuit_qap *q)
{
    qap_destroy(q->held);
}
