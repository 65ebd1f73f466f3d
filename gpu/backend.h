/*
 * What the prover asks of a machine: transforms and multi-scalar multiplications, or whole parts of a proof.
 *
 * A backend is created once for a node; its functions are called by one thread at a time and use as many threads or devices as they
 * were given. What it needs beside parameters and slots is taken by groth16_prepare, so that a proof takes nothing.
 */
#ifndef GPU_BACKEND_H
#define GPU_BACKEND_H

#include "gpu/curve.h"
#include "numa/arena.h"

/* v is 2^log2_len elements, natural order in and out, in place. INVERSE multiplies by 1/len. COSET works
 * on g*H with g = 7: NTT_COSET takes coefficients to values on the coset, NTT_COSET_INVERSE back. */
enum ntt_kind { NTT_FORWARD, NTT_INVERSE, NTT_COSET, NTT_COSET_INVERSE };

struct backend;
struct srs;
struct assignment;
struct groth16_sums;
struct groth16_ticket;
struct srs_counts;
struct circuit;
struct secrets;

/*
 * What a sum over a query consists of: scalars[i] times point point_of[i] for i < len (point_of NULL: point i), those left out that have
 * MSM_NO_POINT; and, once each, the points of variables whose bit in `ones` is set. Variable i < ones_len has point `first` + the number of
 * bits of `dense` before i, and none where its own is clear; with dense NULL, point i. `rank` as circuit.h has it.
 */
#define MSM_NO_POINT UINT32_MAX
struct msm_terms {
    const fr_t *scalars;
    const uint32_t *point_of;
    size_t len;
    const uint64_t *ones, *dense;
    const uint32_t *rank;
    size_t ones_len;
    uint32_t first;
};

/* The vectors of a parameter file, in its order. */
enum srs_section { SRS_H, SRS_L, SRS_A, SRS_B_G1, SRS_B_G2, SRS_SECTIONS };

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
    /* Bytes that a sum of up to `len` scalars carves from the scratch. NULL: none. */
    size_t (*msm_scratch_bytes)(const struct backend *be, size_t len);
    /*
     * start and finish: NULL, or the two parts of groth16_sums by a backend that does all of them itself; counts are checked
     * already. The ticket's `w` or `compact` is not written to. The ticket is filled in but for `device`, which is the
     * backend's own. start returns when the rows' values are not needed any more; -EBADMSG when a transform was wrong. After
     * start has succeeded, finish or abort is called once.
     */
    int (*start)(struct backend *be, struct groth16_ticket *ticket, struct errmsg *err);
    int (*finish)(struct backend *be, struct groth16_ticket *ticket, struct errmsg *err);
    void (*abort)(struct backend *be, struct groth16_ticket *ticket);
    /* NULL, or in place of finish by what is no prover: the proof itself. */
    int (*finish_proof)(struct backend *be, struct groth16_ticket *ticket, uint8_t proof[192],
                        struct errmsg *err);
    /* Whether it proves compact witnesses: start takes tickets with one, or there are sum_g1 and sum_g2. It says nothing of where
     * points are: a backend without start takes those of the srs for every proof. */
    bool takes_compact;
    /* NULL, or takes what proofs over these parameters need, which start does unasked the first time: of compact witnesses of
     * `circuit`, of expanded ones where that is NULL. Others that are there stay, but those of the same circuit. progress may be NULL.
     * -EBUSY when tickets over others are open; -ENODATA when it needs points that *srs has not (srs_drop_points); -ENOSPC when
     * others must be given up before (`lacks`). */
    int (*load)(struct backend *be, const struct srs *srs, const struct circuit *circuit,
                backend_progress progress, void *progress_ctx, struct errmsg *err);
    /* NULL, or makes development parameters for `circuit` in memory of its own, ready for compact witnesses; `ic` becomes the
     * scalars of the verifying key's points, 1 / gamma included. Errors as of load; -ENOMEM before memory is taken. */
    int (*develop)(struct backend *be, const struct circuit *circuit, const struct secrets *t,
                   fr_t *ic, backend_progress progress, void *progress_ctx, struct errmsg *err);
    /* With develop: `len` points from `first` on of what it has made or proved over last, as g1_affine_t or g2_affine_t. */
    int (*fetch)(struct backend *be, enum srs_section section, size_t first, size_t len,
                 void *points, struct errmsg *err);
    /* NULL, or lets the device take witnesses straight from this memory, until unpin or the backend's end. */
    int (*pin)(struct backend *be, void *memory, size_t bytes, struct errmsg *err);
    void (*unpin)(struct backend *be, void *memory);
    void (*destroy)(struct backend *be);
    /* Sums over the points that a compact witness asks for. NULL beside start. */
    int (*sum_g1)(struct backend *be, g1_t *out, const g1_affine_t *points,
                  const struct msm_terms *terms, struct errmsg *err);
    int (*sum_g2)(struct backend *be, g2_t *out, const g2_affine_t *points,
                  const struct msm_terms *terms, struct errmsg *err);
    /* Both NULL, or for memory of its own where load keeps parameters. holds: how many bytes these take there, 0 where they are not;
     * *streamed (never NULL): proofs read the points of the srs that was given, which stay where they are until evict or the backend's
     * end. evict: gives them up, unless tickets over them are open. */
    uint64_t (*holds)(const struct backend *be, const struct srs *srs, bool *streamed);
    void (*evict)(struct backend *be, const struct srs *srs);
    /* NULL, or points[j] becomes the sum over k of factor shift^k w^-jk points[k], m = 2^log2_len of them, in place, in natural order, w
     * as in ntt; any of them may be infinity. progress (may be NULL) hears of multiplications of points, stage "transform". -EINVAL,
     * -ENOMEM, or what a device says, and then points are of no use. */
    int (*transform_points)(struct backend *be, g1_affine_t *points, uint32_t log2_len,
                            const fr_t *shift, const fr_t *factor, backend_progress progress,
                            void *progress_ctx, struct errmsg *err);
};

/* First member of every backend's own struct. */
struct backend {
    const struct backend_ops *ops;
    struct workers *workers; /* borrowed */
    /* Proofs that may be begun and not finished at a time; of more than one, one may be in start and the others in finish, on
     * threads of their own. 0 is 1. */
    unsigned tickets;
    bool broken; /* a device has answered with an error: the process should end, and say which */
    /* Of a device: what the backend takes of its memory at most, in place of all that is free but a little. 0: none. Counts from the next
     * load on. */
    uint64_t memory_limit;
    uint64_t lacks; /* after -ENOSPC: bytes that others must give up, UINT64_MAX: all of them */
    uint32_t
        stall_ms; /* a step that takes longer will never end: the process should. 0: it may take its time */
    struct arena *scratch;     /* borrowed, or own_scratch; NULL: made when it is needed */
    struct arena *own_scratch; /* goes with the backend */
};

/* The CPU backend on `workers` (borrowed; NULL: the calling thread alone). */
int backend_cpu_create(struct workers *workers, struct backend **out, struct errmsg *err);

/* Makes sure that `bytes` can be carved from be->scratch: by making one, if there is none that is somebody else's. 0 or -ENOMEM. */
int backend_reserve(struct backend *be, size_t bytes, struct errmsg *err);

void backend_destroy(struct backend *be);
/* What backend_destroy does beside destroy(): for a backend in the caller's storage. */
void backend_fini(struct backend *be);

#endif
