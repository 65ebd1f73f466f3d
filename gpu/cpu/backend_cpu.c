/*
 * struct backend on the CPU: a plan for the transforms, kept from proof to proof, and sums.
 */
#include <errno.h>
#include <stdlib.h>

#include "gpu/backend.h"
#include "gpu/cpu/msm.h"
#include "gpu/cpu/ntt.h"

struct backend_cpu {
    struct backend base;
    struct ntt_plan *plan; /* of the last length asked for; NULL at first */
};

static int cpu_ntt(struct backend *be, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
                   struct errmsg *err)
{
    struct backend_cpu *cpu = (struct backend_cpu *)be;

    if (cpu->plan && ntt_plan_log2_len(cpu->plan) != log2_len) {
        ntt_plan_destroy(cpu->plan);
        cpu->plan = NULL;
    }
    if (!cpu->plan) {
        int ret = ntt_plan_create(log2_len, be->workers, &cpu->plan, err);
        if (ret < 0)
            return ret;
    }
    ntt_run(cpu->plan, be->workers, v, kind);
    return 0;
}

static int cpu_msm_g1(struct backend *be, g1_t *out, const g1_affine_t *bases, const fr_t *scalars,
                      size_t len, struct errmsg *err)
{
    union point sum;
    int ret = msm_run(&group_g1, be->workers, &sum, bases, scalars, len, err);

    if (ret == 0)
        *out = sum.g1;
    return ret;
}

static int cpu_msm_g2(struct backend *be, g2_t *out, const g2_affine_t *bases, const fr_t *scalars,
                      size_t len, struct errmsg *err)
{
    union point sum;
    int ret = msm_run(&group_g2, be->workers, &sum, bases, scalars, len, err);

    if (ret == 0)
        *out = sum.g2;
    return ret;
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
    .destroy = cpu_destroy,
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
