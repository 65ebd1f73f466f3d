/*
 * Sums of the kinds that a proof has: scalars of full width, and those of a witness, of which most are 0 or 1. With every
 * kind of code that this CPU has; shorter ones with the plain kind, which is the slowest by far.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/features.h"
#include "gpu/cpu/fixed_base.h"
#include "gpu/cpu/msm.h"
#include "numa/memory.h"
#include "tests/lib/bench.h"
#include "tests/lib/random_group.h"

#define LOG2_LEN 20
#define LOG2_LEN_PLAIN 18
#define LEN ((size_t)1 << LOG2_LEN)

struct summing {
    const struct group *group;
    const void *bases;
    const fr_t *scalars;
    unsigned log2_len;
    unsigned threads;
    enum cpu_code code;
};

static int sum(void *ctx)
{
    const struct summing *s = ctx;
    const size_t len = (size_t)1 << s->log2_len;
    struct msm_task task = {
        .group = s->group, .bases = s->bases, .terms = {.scalars = s->scalars, .len = len}};
    struct arena_options opt = {.node = ARENA_ANY_NODE};
    union point out;
    int ret = workers_create(s->threads, &task.workers, NULL);

    opt.bytes = msm_scratch_bytes(s->group, len, workers_count(task.workers));
    opt.workers = task.workers;
    if (ret == 0)
        ret = arena_create(&opt, &task.scratch, NULL);
    if (ret == 0)
        ret = msm_run(&task, &out, NULL);
    arena_destroy(task.scratch);
    workers_destroy(task.workers);
    return ret;
}

static void measure(struct summing s, const char *group, const char *scalars)
{
    char name[96];

    s.log2_len = s.code == CPU_PLAIN ? LOG2_LEN_PLAIN : LOG2_LEN;
    for (int all = 0; all < 2; all++) {
        s.threads = !all;
        snprintf(name, sizeof(name), "sum of 2^%u in %s, %s, %s, %s", s.log2_len, group, scalars,
                 cpu_code_name(s.code), all ? "all threads" : "one thread");
        bench_run(name, sum, &s, 0);
    }
}

/* LEN distinct bases; 2^16 take their turns in G2, where making them takes longer. */
static int make_bases(g1_affine_t *g1, g2_affine_t *g2, const fr_t *logs)
{
    const size_t distinct = (size_t)1 << 16;
    struct workers *workers = NULL;
    struct fixed_base *t1 = NULL, *t2 = NULL;
    int ret = workers_create(0, &workers, NULL);

    if (ret == 0)
        ret = fixed_base_g1_create(blst_p1_affine_generator(), 13, workers, &t1, NULL);
    if (ret == 0)
        ret = fixed_base_g2_create(blst_p2_affine_generator(), 11, workers, &t2, NULL);
    if (ret == 0)
        ret = fixed_base_g1_mul(t1, workers, logs, LEN, g1, NULL);
    if (ret == 0)
        ret = fixed_base_g2_mul(t2, workers, logs, distinct, g2, NULL);
    for (size_t i = distinct; i < LEN; i++)
        g2[i] = g2[i % distinct];
    fixed_base_destroy(t1);
    fixed_base_destroy(t2);
    workers_destroy(workers);
    return ret;
}

int main(void)
{
    struct random rng = {1};
    fr_t *full = malloc(LEN * sizeof(*full)), *witness = malloc(LEN * sizeof(*witness));
    g1_affine_t *g1 = memory_alloc(LEN, sizeof(*g1)); /* as parameters are */
    g2_affine_t *g2 = memory_alloc(LEN, sizeof(*g2));

    bench_calibrate();
    for (size_t i = 0; i < LEN; i++) {
        full[i] = random_fr(&rng);
        uint64_t dice = random_u64(&rng);
        witness[i] = dice % 64 ? fr_from_u64(dice >> 8 & 1) : full[i];
    }
    if (make_bases(g1, g2, full) < 0)
        return 1;
    for (int code = CPU_CODES - 1; code >= 0; code--) {
        cpu_use_at_most((enum cpu_code)code);
        if (!cpu_has((enum cpu_code)code))
            continue;
        measure(
            (struct summing){
                .group = &group_g1, .bases = g1, .scalars = full, .code = (enum cpu_code)code},
            "G1", "full width");
        measure(
            (struct summing){
                .group = &group_g1, .bases = g1, .scalars = witness, .code = (enum cpu_code)code},
            "G1", "as in a witness");
        measure(
            (struct summing){
                .group = &group_g2, .bases = g2, .scalars = full, .code = (enum cpu_code)code},
            "G2", "full width");
        measure(
            (struct summing){
                .group = &group_g2, .bases = g2, .scalars = witness, .code = (enum cpu_code)code},
            "G2", "as in a witness");
    }
    free(full);
    free(witness);
    free(g1);
    free(g2);
    return 0;
}
