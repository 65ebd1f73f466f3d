/*
 * The inside of a transform's plan, for the ways of running it: ntt.c on any CPU, ntt_avx2.c four columns side by side, ntt_ifma.c
 * eight.
 */
#ifndef GPU_CPU_NTT_PLAN_H
#define GPU_CPU_NTT_PLAN_H

#include "gpu/cpu/features.h"
#include "gpu/cpu/fr_factor.h"
#include "gpu/cpu/ntt.h"

#define NTT_LANES 4 /* columns that ntt.c and ntt_avx2.c take into the cache together */
#define NTT_LANES_IFMA 8

/* Products with these take other forms than blst's (fr_factor.h); NULL where they are not used. */
struct wide_factors {
    struct fr_factor *avx2;
    struct fr_factor52 *ifma;
};

/* Factors of one transform of 2^log2_len over a coset: entry h + j belongs to level 2h, for j < h. */
struct factors {
    uint32_t log2_len;
    bool plain; /* over the domain itself: the factors of the first level are 1 */
    fr_t *w;
    struct wide_factors wide; /* the same */
};

/* What differs between the kinds of transform. */
struct passes {
    struct factors rows, columns; /* of the transforms over n1 and over n2 */
    /* Between the phases, element (n2, k1) is multiplied by start * column^n2 * (step * root^n2)^k1. */
    fr_t start, column, step, root;
    fr_t *scale; /* of k2 at the end; NULL: none */
    struct wide_factors wide_scale;
};

struct ntt_plan {
    uint32_t log2_len, log2_rows, log2_columns;
    enum cpu_code code;      /* what runs it */
    struct passes passes[4]; /* by enum ntt_kind */
    uint32_t *order;         /* bit reversal of row numbers, then of column numbers */
    fr_t *scratch;           /* the matrix between the phases, which may keep it in an order of their own */
    char *blocks;            /* for each thread, block_bytes */
    size_t block_bytes;
    unsigned threads;
};

static inline const uint32_t *ntt_row_order(const struct ntt_plan *plan)
{
    return plan->order;
}

static inline const uint32_t *ntt_column_order(const struct ntt_plan *plan)
{
    return plan->order + ((size_t)1 << plan->log2_rows);
}

/* A vector that is being transformed. */
struct transform {
    struct ntt_plan *plan;
    const struct passes *passes;
    fr_t *v;
};

/* The factor of element (n2, 0) between the phases, and the ratio from k1 to k1 + 1. */
void ntt_between(const struct passes *p, size_t n2, fr_t *factor, fr_t *ratio);

/* Loop bodies over groups of columns; ctx is a struct transform. */
void ntt_phase_one_avx2(void *ctx, size_t item, unsigned thread);
void ntt_phase_two_avx2(void *ctx, size_t item, unsigned thread);
void ntt_phase_one_ifma(void *ctx, size_t item, unsigned thread);
void ntt_phase_two_ifma(void *ctx, size_t item, unsigned thread);

/* What a thread's block takes. */
size_t ntt_avx2_block_bytes(uint32_t log2_rows);
size_t ntt_ifma_block_bytes(uint32_t log2_rows);

#endif
