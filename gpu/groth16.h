/*
 * The Groth16 prover (c2-formats 6), in the order of the paper, over a backend.
 *
 * A proof is made in two steps. prove_start does what needs the rows' values, which are most of an assignment's memory; when it
 * returns, that memory is free for something else. prove_finish does the rest, or prove_abort drops it. A backend says how many
 * proofs may be begun and not finished (backend.tickets); where it is one, one thread at a time may call these functions on it.
 */
#ifndef GPU_GROTH16_H
#define GPU_GROTH16_H

#include "gpu/backend.h"
#include "gpu/srs.h"
#include "gpu/verify.h"
#include "numa/circuit/assignment.h"

struct circuit;
struct compact;

/* The sums that do not depend on r and s: what takes the time. Over transformed parameters the inputs' sum is in l. */
struct groth16_sums {
    g1_t h, l, a, b_g1;
    g2_t b_g2;
};

/* A proof that has been begun, in the caller's storage. */
struct groth16_ticket {
    struct backend *be;
    const struct srs *srs;
    struct assignment *w; /* one of the two */
    const struct compact *compact;
    struct groth16_sums sums;   /* as far as they are known */
    void *device;               /* the backend's own */
    double start_ms, finish_ms; /* what the steps took, for reports */
    double transform_ms;        /* of start_ms; 0 where it cannot be told apart */
};

/* Bytes of scratch memory that a proof of a circuit takes on this backend. */
size_t groth16_scratch_bytes(const struct backend *be, const struct srs_counts *counts);

/* Takes what proofs over these parameters need: scratch memory, tables, memory of a device and the parameters there. prove_start does
 * it unasked the first time. No ticket may be open on the backend. progress may be NULL. -ENOMEM and what the backend says. */
int groth16_prepare(struct backend *be, const struct srs *srs, backend_progress progress,
                    void *progress_ctx, struct errmsg *err);

/* The same for compact witnesses of `circuit`; -EINVAL for a backend that does not take them. */
int groth16_prepare_compact(struct backend *be, const struct srs *srs,
                            const struct circuit *circuit, backend_progress progress,
                            void *progress_ctx, struct errmsg *err);

/* Begins a proof. On success a and b of the assignment are used up; all else of *w and *srs is borrowed until the ticket's end. On
 * failure there is no ticket. -EINVAL when the parameters do not fit the assignment (err says which count, found and
 * wanted), -ENOMEM, -EBADMSG when h comes out of an impossible degree: the transforms or the machine are faulty. */
int groth16_prove_start(struct backend *be, const struct srs *srs, struct assignment *w,
                        struct groth16_ticket *ticket, struct errmsg *err);
/* Begins a proof of a compact witness, which is borrowed until the ticket's end: that a start may return before the device has it
 * all. -EINVAL also for a backend that does not take them. */
int groth16_prove_start_compact(struct backend *be, const struct srs *srs, const struct compact *w,
                                struct groth16_ticket *ticket, struct errmsg *err);
/* The rest, with r and s from the kernel's generator, wiped after use; the proof as it is published, read back once. Ends the ticket
 * in any case. */
int groth16_prove_finish(struct groth16_ticket *ticket, uint8_t proof[PROOF_BYTES],
                         struct errmsg *err);
/* In place of prove_finish, when nobody wants the proof any more. */
void groth16_prove_abort(struct groth16_ticket *ticket);

/* Both steps for the sums alone. */
int groth16_sums(struct backend *be, const struct srs *srs, struct assignment *w,
                 struct groth16_sums *out, struct errmsg *err);

int groth16_sums_compact(struct backend *be, const struct srs *srs, const struct compact *w,
                         struct groth16_sums *out, struct errmsg *err);

/* Puts a proof together. The shipped programs reach this through groth16_prove_finish alone; tests give r and s. */
void groth16_assemble(const struct vk *vk, const struct groth16_sums *sums, const fr_t *r,
                      const fr_t *s, struct proof *out);

/* Both steps, for the points. */
int groth16_prove(struct backend *be, const struct srs *srs, struct assignment *w,
                  struct proof *out, struct errmsg *err);

#endif
