/*
 * The transform between coefficients and values over a domain of 2^log2_len roots of unity (c2-formats 6.2).
 *
 * A plan belongs to one thread at a time; its transforms use the workers that they are given.
 */
#ifndef GPU_CPU_NTT_H
#define GPU_CPU_NTT_H

#include "gpu/backend.h"

/* Tables and scratch for transforms of one length: about as much memory as the vector itself. */
struct ntt_plan;

/* Returns 0 with *out set (end it with ntt_plan_destroy), -EINVAL when there are no roots of unity that long,
 * -ENOMEM. */
int ntt_plan_create(uint32_t log2_len, struct workers *workers, struct ntt_plan **out,
                    struct errmsg *err);
void ntt_plan_destroy(struct ntt_plan *plan);

uint32_t ntt_plan_log2_len(const struct ntt_plan *plan);

/* Transforms v, of the plan's length, in place. */
void ntt_run(struct ntt_plan *plan, struct workers *workers, fr_t *v, enum ntt_kind kind);

#endif
