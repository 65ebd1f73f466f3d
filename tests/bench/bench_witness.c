/*
 * How long the assignment of a partition of 2 KiB takes, and its parts: values alone, values and rows.
 */
#include <stdio.h>

#include "numa/circuit/c1_reader.h"
#include "numa/circuit/witness.h"
#include "tests/lib/bench.h"
#include "tests/lib/files.h"

struct synthesis {
    const struct c1 *c1;
    bool rows, all_threads;
};

static void ignore_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                       const struct cs_lc *c)
{
    (void)ctx, (void)row, (void)a, (void)b, (void)c;
}

static int synthesize(void *ctx)
{
    const struct synthesis *s = ctx;
    const struct cs_sink sink = {.row = s->rows ? ignore_row : NULL};

    return porep_synthesize(s->c1, 0, &sink, NULL);
}

static int assign(void *ctx)
{
    const struct synthesis *s = ctx;
    struct workers *workers = NULL;
    struct assignment *w = NULL;
    int ret = s->all_threads ? workers_create(0, &workers, NULL) : 0;

    if (ret == 0)
        ret = witness_assign(s->c1, 0, workers, &w, NULL);
    assignment_destroy(w);
    workers_destroy(workers);
    return ret;
}

int main(void)
{
    struct synthesis s = {NULL, false, false};
    struct c1_extra extra;
    struct errmsg err;
    struct c1 *c1;

    if (c1_read_file(c1_path("2KiB-sealed", "bare.json.zst"), C1_CHECK_FORM, NULL, &c1, &extra,
                     &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    s.c1 = c1;
    bench_calibrate();
    bench_run("synthesis of 2 KiB, values alone", synthesize, &s, 0);
    s.rows = true;
    bench_run("synthesis of 2 KiB, values and rows", synthesize, &s, 0);
    bench_run("assignment of 2 KiB, one thread", assign, &s, 0);
    s.all_threads = true;
    bench_run("assignment of 2 KiB, all threads", assign, &s, 0);
    c1_destroy(c1);
    return 0;
}
