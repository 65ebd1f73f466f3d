/*
 * struct backend on the CPU: a plan for the transforms, kept from proof to proof, and sums.
 */
#include <errno.h>
#include <stdlib.h>

#include "gpu/backend.h"
#include "gpu/cpu/msm.h"
#include "gpu/cpu/ntt.h"
#include "gpu/cpu/point_transform.h"
#include "gpu/srs.h"

struct backend_cpu {
    struct backend base;
    struct ntt_plan *plan; /* of the last length asked for; NULL at first */
};

/* The plan for this length comes to stand in cpu->plan. */
static int make_plan(struct backend_cpu *cpu, uint32_t log2_len, struct errmsg *err)
{
    if (cpu->plan && ntt_plan_log2_len(cpu->plan) == log2_len)
        return 0;
    ntt_plan_destroy(cpu->plan);
    cpu->plan = NULL;
    return ntt_plan_create(log2_len, cpu->base.workers, &cpu->plan, err);
}

static int cpu_ntt(struct backend *be, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
                   struct errmsg *err)
{
    struct backend_cpu *cpu = (struct backend_cpu *)be;
    int ret = make_plan(cpu, log2_len, err);

    if (ret == 0)
        ntt_run(cpu->plan, be->workers, v, kind);
    return ret;
}

static int cpu_load(struct backend *be, const struct srs *srs, const struct circuit *circuit,
                    backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    (void)circuit, (void)progress, (void)progress_ctx; /* a moment */
    /* h has a point less than the domain */
    return make_plan((struct backend_cpu *)be, 63 - (uint32_t)__builtin_clzll(srs->h_len + 1), err);
}

static size_t cpu_msm_scratch_bytes(const struct backend *be, size_t len)
{
    return msm_scratch_bytes(&group_g2, len, workers_count(be->workers)); /* the larger points */
}

static int run_msm(struct backend *be, const struct group *group, const void *points,
                   const struct msm_terms *terms, union point *out, struct errmsg *err)
{
    int ret = backend_reserve(be, cpu_msm_scratch_bytes(be, terms->len), err);
    const struct msm_task task = {.group = group,
                                  .workers = be->workers,
                                  .scratch = be->scratch,
                                  .bases = points,
                                  .terms = *terms};

    return ret < 0 ? ret : msm_run(&task, out, err);
}

static int cpu_sum_g1(struct backend *be, g1_t *out, const g1_affine_t *points,
                      const struct msm_terms *terms, struct errmsg *err)
{
    union point sum;
    int ret = run_msm(be, &group_g1, points, terms, &sum, err);

    if (ret == 0)
        *out = sum.g1;
    return ret;
}

static int cpu_sum_g2(struct backend *be, g2_t *out, const g2_affine_t *points,
                      const struct msm_terms *terms, struct errmsg *err)
{
    union point sum;
    int ret = run_msm(be, &group_g2, points, terms, &sum, err);

    if (ret == 0)
        *out = sum.g2;
    return ret;
}

static int cpu_msm_g1(struct backend *be, g1_t *out, const g1_affine_t *bases, const fr_t *scalars,
                      size_t len, struct errmsg *err)
{
    return cpu_sum_g1(be, out, bases, &(struct msm_terms){.scalars = scalars, .len = len}, err);
}

static int cpu_msm_g2(struct backend *be, g2_t *out, const g2_affine_t *bases, const fr_t *scalars,
                      size_t len, struct errmsg *err)
{
    return cpu_sum_g2(be, out, bases, &(struct msm_terms){.scalars = scalars, .len = len}, err);
}

static int cpu_transform_points(struct backend *be, g1_affine_t *points, uint32_t log2_len,
                                const fr_t *shift, const fr_t *factor, backend_progress progress,
                                void *progress_ctx, struct errmsg *err)
{
    return point_transform(points, log2_len, shift, factor, be->workers, progress, progress_ctx,
                           err);
}

static void cpu_destroy(struct backend *be)
{
    struct backend_cpu *cpu = (struct backend_cpu *)be;

    ntt_plan_destroy(cpu->plan);
    free(cpu);
}

static const struct backend_ops cpu_ops = {
    .name = "cpu",
    .ntt = cpu_ntt,
    .msm_g1 = cpu_msm_g1,
    .msm_g2 = cpu_msm_g2,
    .msm_scratch_bytes = cpu_msm_scratch_bytes,
    .load = cpu_load,
    .takes_compact = true,
    .destroy = cpu_destroy,
    .sum_g1 = cpu_sum_g1,
    .sum_g2 = cpu_sum_g2,
    .transform_points = cpu_transform_points,
};

int backend_cpu_create(struct workers *workers, struct backend **out, struct errmsg *err)
{
    struct backend_cpu *cpu = calloc(1, sizeof(*cpu));

    if (!cpu)
        return errmsg_set(err, -ENOMEM, "no memory for a backend");
    cpu->base = (struct backend){.ops = &cpu_ops, .workers = workers};
    *out = &cpu->base;
    return 0;
}
