/*
 * Transforms of the sizes that circuits have, on one thread and on all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cpu/ntt.h"
#include "numa/memory.h"
#include "tests/lib/bench.h"
#include "tests/lib/random_group.h"

struct transforming {
    uint32_t log2_len;
    unsigned threads;
    enum ntt_kind kind;
    const fr_t *values;
    fr_t *v;
};

/* In memory like that of a proof. */
static int copy_values(void *ctx)
{
    struct transforming *t = ctx;
    size_t len = (size_t)1 << t->log2_len;

    t->v = memory_alloc(len, sizeof(*t->v));
    if (!t->v)
        return -1;
    memcpy(t->v, t->values, len * sizeof(*t->v));
    return 0;
}

static int transform(void *ctx)
{
    const struct transforming *t = ctx;
    struct workers *workers = NULL;
    struct backend *be = NULL;
    int ret = workers_create(t->threads, &workers, NULL);

    if (ret == 0)
        ret = backend_cpu_create(workers, &be, NULL);
    for (int i = 0; ret == 0 && i < 3; i++) /* three, for the tables are made once */
        ret = be->ops->ntt(be, t->v, t->log2_len, t->kind, NULL);
    backend_destroy(be);
    workers_destroy(workers);
    return ret;
}

int main(void)
{
    struct random rng = {1};
    struct transforming t;

    bench_calibrate();
    for (t.log2_len = 18; t.log2_len <= 22; t.log2_len += 2) {
        fr_t *values = malloc(sizeof(fr_t) << t.log2_len);
        for (size_t i = 0; i < (size_t)1 << t.log2_len; i++)
            values[i] = random_fr(&rng);
        t.values = values;
        for (int i = 0; i < 4; i++) {
            char name[96];
            t.threads = i < 2;
            t.kind = i % 2 ? NTT_COSET_INVERSE : NTT_FORWARD;
            snprintf(name, sizeof(name), "three transforms of 2^%u, %s, %s", t.log2_len,
                     i % 2 ? "inverse coset" : "forward", t.threads ? "one thread" : "all threads");
            bench_run_prepared(name, copy_values, transform, &t, 0);
        }
        free(values);
    }
    return 0;
}
