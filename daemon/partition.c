#include "daemon/partition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/log.h"
#include "gpu/srs_counts.h"
#include "numa/circuit/compact.h"
#include "numa/circuit/graph.h"

#define LOG_MODULE LOG_ENGINE

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* What the verifier expects of partition `k`. malloc'ed. */
static int expected_inputs(const struct c1 *c1, uint32_t k, fr_t **out, struct errmsg *err)
{
    const struct public_params params = public_params_of(c1);
    fr_t *inputs = malloc(public_inputs_len(c1_size(c1)) * sizeof(*inputs));

    if (!inputs)
        return errmsg_set(err, -ENOMEM, "no memory for the public inputs");
    int ret = public_inputs(&params, k, inputs, err);
    if (ret < 0) {
        free(inputs);
        return ret;
    }
    *out = inputs;
    return 0;
}

/* Judges the 192 bytes that will be published, not the points they were made of. */
static int check_bytes(const struct vk *vk, const fr_t *inputs, size_t inputs_len,
                       const uint8_t bytes[PROOF_BYTES], bool *valid, struct errmsg *err)
{
    struct proof proof;

    *valid = false;
    if (proof_decode(&proof, bytes, err) < 0)
        return 0;
    return groth16_verify(vk, inputs, inputs_len, &proof, valid, err);
}

int partition_check(const struct c1 *c1, uint32_t partition, const struct vk *vk,
                    const uint8_t proof[PROOF_BYTES], bool *valid, struct errmsg *err)
{
    fr_t *inputs = NULL;
    int ret = expected_inputs(c1, partition, &inputs, err);

    if (ret == 0)
        ret = check_bytes(vk, inputs, public_inputs_len(c1_size(c1)), proof, valid, err);
    free(inputs);
    return ret;
}

static bool may_begin(const struct partition_task *task, enum partition_stage stage)
{
    return !task->stage || task->stage(task->ctx, stage);
}

static int prove_witness(const struct partition_task *task, const struct compact *w,
                         struct partition_result *out, struct errmsg *err)
{
    struct groth16_ticket ticket;

    if (!may_begin(task, PARTITION_PROVING))
        return -ECANCELED;
    int ret = groth16_prove_start_compact(task->backend, task->srs, w, &ticket, err);
    if (ret == 0)
        ret = groth16_prove_finish(&ticket, out->proof, err);
    if (ret < 0)
        return ret;
    out->report.transform_ms += ticket.transform_ms;
    out->report.msm_ms += ticket.start_ms - ticket.transform_ms + ticket.finish_ms;
    return 0;
}

static void log_bad_attempt(const struct partition_task *task, uint32_t attempt, const char *what)
{
    log_err(log_u64("job", task->job), log_u64("partition", task->partition),
            log_u64("attempt", attempt), log_str("msg", "a proof is thrown away"),
            log_str("why", what));
}

/* Synthesizes anew each time: a wrong witness must not outlive its attempt. */
static int attempt(const struct partition_task *task, struct compact *w, const fr_t *inputs,
                   struct partition_result *out, bool *valid, struct errmsg *err)
{
    if (!may_begin(task, PARTITION_SYNTHESIZING))
        return -ECANCELED;
    double start = now_ms();
    int ret = compact_make(w, task->c1, task->partition, task->workers, err);
    if (ret < 0)
        return ret;
    out->report.synthesis_ms += now_ms() - start;
    ret = prove_witness(task, w, out, err);
    *valid = false;
    if (ret == -EBADMSG) { /* the prover itself saw that the machine computes wrongly */
        log_bad_attempt(task, out->attempts + 1, err ? err->text : "");
        return 0;
    }
    if (ret < 0)
        return ret;
    start = now_ms();
    ret = check_bytes(&task->srs->vk, inputs, public_inputs_len(c1_size(task->c1)), out->proof,
                      valid, err);
    out->report.verify_ms += now_ms() - start;
    if (ret == 0 && !*valid)
        log_bad_attempt(task, out->attempts + 1, "it does not verify");
    return ret;
}

static int attempts(const struct partition_task *task, struct compact *w, const fr_t *inputs,
                    struct partition_result *out, struct errmsg *err)
{
    bool valid = false;

    while (out->attempts < PARTITION_ATTEMPTS) {
        int ret = attempt(task, w, inputs, out, &valid, err);
        if (ret < 0)
            return ret;
        out->attempts++;
        if (valid)
            return 0;
    }
    return errmsg_set(err, -EILSEQ,
                      "partition %u: %d proofs in a row do not verify: this machine or these "
                      "parameters cannot be trusted",
                      task->partition, PARTITION_ATTEMPTS);
}

/* The witness, and what the prover takes beside it. */
static uint64_t proving_bytes(const struct partition_task *task, const struct circuit *c)
{
    struct srs_counts counts;

    srs_counts(c->size, &counts);
    return compact_bytes(c) + groth16_scratch_bytes(task->backend, &counts);
}

int partition_prove(const struct partition_task *task, struct partition_result *out,
                    struct errmsg *err)
{
    struct partition_result result = {.attempts = 0};
    const struct circuit *circuit = NULL;
    struct compact *w = NULL;
    fr_t *inputs = NULL;
    double start = now_ms();

    int ret = expected_inputs(task->c1, task->partition, &inputs, err);
    if (ret == 0)
        ret = circuit_of_size(c1_size(task->c1), &circuit, err);
    if (ret == 0)
        ret = compact_create(circuit, &w, err);
    if (ret == 0)
        ret = attempts(task, w, inputs, &result, err);
    compact_destroy(w);
    free(inputs);
    if (ret < 0)
        return ret;
    result.report.total_ms = now_ms() - start;
    result.report.params = task->srs->trust;
    memcpy(result.report.vk_digest, task->srs->vk_digest, sizeof(result.report.vk_digest));
    result.report.peak_bytes = proving_bytes(task, circuit);
    *out = result;
    return 0;
}

int partition_verify_all(const struct c1 *c1, const struct vk *vk, const uint8_t *proofs,
                         size_t len, bool *valid, struct errmsg *err)
{
    bool all = true;

    if (len != (size_t)c1_partitions(c1) * PROOF_BYTES)
        return errmsg_set(err, -EINVAL,
                          "a proof of %zu bytes, this C1 has one of %u * %d = %u bytes", len,
                          c1_partitions(c1), PROOF_BYTES, c1_partitions(c1) * PROOF_BYTES);
    for (uint32_t k = 0; k < c1_partitions(c1) && all; k++) {
        int ret = partition_check(c1, k, vk, proofs + (size_t)k * PROOF_BYTES, &all, err);
        if (ret < 0)
            return ret;
    }
    *valid = all;
    return 0;
}
