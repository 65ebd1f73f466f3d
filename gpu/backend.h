/*
 * What the prover asks of a machine: transforms and multi-scalar multiplications.
 *
 * A backend is created once for a node and proves one partition at a time; its functions are called by one
 * thread at a time and use as many threads or devices as they were given.
 */
#ifndef GPU_BACKEND_H
#define GPU_BACKEND_H

#include "gpu/curve.h"
#include "numa/workers.h"

/* v is 2^log2_len elements, natural order in and out, in place. INVERSE multiplies by 1/len. COSET works
 * on g*H with g = 7: NTT_COSET takes coefficients to values on the coset, NTT_COSET_INVERSE back. */
enum ntt_kind { NTT_FORWARD, NTT_INVERSE, NTT_COSET, NTT_COSET_INVERSE };

struct backend;
struct srs;
struct assignment;
struct groth16_sums;

/* As in srs_options: bytes of a stage. */
typedef void (*backend_progress)(void *ctx, const char *stage, uint64_t done, uint64_t total);

struct backend_ops {
    const char *name; /* "cpu" */
    int (*ntt)(struct backend *be, fr_t *v, uint32_t log2_len, enum ntt_kind kind,
               struct errmsg *err);
    /* out[i] = (d[i] - c[i]) * k and the like are the prover's; these are the heavy ones: */
    int (*msm_g1)(struct backend *be, g1_t *out, const g1_affine_t *bases, const fr_t *scalars,
                  size_t len, struct errmsg *err);
    int (*msm_g2)(struct backend *be, g2_t *out, const g2_affine_t *bases, const fr_t *scalars,
                  size_t len, struct errmsg *err);
    /* NULL, or all of groth16_sums once counts are checked, by a backend that keeps parameters in memory of its own. `w` is
     * not written to. -EBADMSG when a transform was wrong. */
    int (*sums)(struct backend *be, const struct srs *srs, const struct assignment *w,
                struct groth16_sums *out, struct errmsg *err);
    /* NULL, or brings parameters where sums needs them, which does it unasked the first time. progress may be NULL. */
    int (*load)(struct backend *be, const struct srs *srs, backend_progress progress,
                void *progress_ctx, struct errmsg *err);
    void (*destroy)(struct backend *be);
};

/* First member of every backend's own struct. */
struct backend {
    const struct backend_ops *ops;
    struct workers *workers; /* borrowed */
    double transform_ms, msm_ms; /* what the last groth16_sums took, for reports */
};

/* The CPU backend on `workers` (borrowed; NULL: the calling thread alone). */
int backend_cpu_create(struct workers *workers, struct backend **out, struct errmsg *err);

void backend_destroy(struct backend *be);

#endif
