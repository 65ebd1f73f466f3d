/*
 * Proves one partition: witness, proof, and the check without which nothing leaves.
 *
 * Used by the engine and by `proofctl prove`. The public inputs of the check are computed from the C1
 * by the graph alone, independently of the circuit that made the witness.
 *
 * One partition at a time on a backend; the calling thread drives, workers and backend do the work.
 */
#ifndef DAEMON_PARTITION_H
#define DAEMON_PARTITION_H

#include "daemon/jobs.h"
#include "gpu/groth16.h"

#define PARTITION_ATTEMPTS 3 /* a proof that does not verify is made again twice */

struct partition_task {
    uint64_t job; /* for the log */
    uint32_t partition;
    const struct c1 *c1;
    const struct srs *srs; /* of the same size */
    struct backend *backend;
    struct workers *workers; /* may be NULL */
    /* A stage begins. False: nobody wants the proof any more. May be NULL. */
    bool (*stage)(void *ctx, enum partition_stage stage);
    void *ctx;
};

struct partition_result {
    uint8_t proof[PROOF_BYTES];
    uint32_t attempts;              /* 1: right at once */
    struct partition_report report; /* without node, device and params_ms */
};

/* Returns 0 with a verified proof in *out; -ECANCELED after a stage() that said so; -EILSEQ when no
 * attempt gave a proof that verifies; -EBADMSG or -EINVAL when the C1 cannot be proved; -ENOMEM. */
int partition_prove(const struct partition_task *task, struct partition_result *out,
                    struct errmsg *err);

/* The check: whether `proof` is one of the partition, and not of anything else. 0 with *valid set, -ENOMEM. A bad encoding or a point
 * that is none is invalid, not an error; err then says which. */
int partition_check(const struct c1 *c1, uint32_t partition, const struct vk *vk,
                    const uint8_t proof[PROOF_BYTES], bool *valid, struct errmsg *err);

/* The whole of a C1's proofs against a verifying key: `proofs` is 192 bytes for each partition of `c1`.
 * Returns 0 with *valid set; -EINVAL when the length is wrong. A proof with a bad encoding or a point
 * that is none is invalid, not an error; err then says which. */
int partition_verify_all(const struct c1 *c1, const struct vk *vk, const uint8_t *proofs, size_t len,
                         bool *valid, struct errmsg *err);

#endif
