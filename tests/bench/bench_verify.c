/*
 * How long the verifier takes, its key loaded: one proof of 2 KiB and of 32 GiB, and the ten of a 32 GiB sector at once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/verify.h"
#include "tests/lib/bench.h"
#include "tests/lib/vectors.h"

#define ROUNDS 100 /* in one measured run */

struct proofs {
    struct vk vk;
    fr_t *inputs;
    size_t inputs_len, count;
    struct proof proof[10];
};

static void load(struct proofs *p, const char *name, size_t count)
{
    struct vector_meta meta;
    uint8_t bytes[PROOF_BYTES];

    vector_meta(name, &meta);
    vector_vk(meta.proof->size, &p->vk);
    p->count = count;
    p->inputs = NULL;
    for (uint32_t k = 0; k < count; k++) {
        fr_t *inputs = vector_inputs(name, k, &p->inputs_len);
        p->inputs = realloc(p->inputs, (k + 1) * p->inputs_len * sizeof(*inputs));
        memcpy(p->inputs + k * p->inputs_len, inputs, p->inputs_len * sizeof(*inputs));
        free(inputs);
        if (!vector_proof(name, "proof-r3-s5.txt", k, bytes) ||
            proof_decode(&p->proof[k], bytes, NULL) < 0)
            exit(1);
    }
}

static void unload(struct proofs *p)
{
    free(p->inputs);
    vk_fini(&p->vk);
}

/* Decoding included: a verifier gets bytes. */
static int verify(void *ctx)
{
    const struct proofs *p = ctx;
    uint8_t bytes[10][PROOF_BYTES];
    struct proof decoded[10];
    bool valid = true;

    for (size_t k = 0; k < p->count; k++)
        proof_encode(bytes[k], &p->proof[k]);
    for (int i = 0; i < ROUNDS && valid; i++) {
        for (size_t k = 0; k < p->count; k++)
            if (proof_decode(&decoded[k], bytes[k], NULL) < 0)
                return -1;
        if (groth16_verify_batch(&p->vk, p->inputs, p->inputs_len, decoded, p->count, &valid, NULL) < 0)
            return -1;
    }
    return valid ? 0 : -1;
}

static void measure(const char *what, const char *name, size_t count, double limit_ms)
{
    struct proofs p;

    load(&p, name, count);
    bench_run(what, verify, &p, ROUNDS * limit_ms);
    unload(&p);
}

int main(void)
{
    bench_calibrate();
    measure("verify 100 times one proof of 2 KiB", "2KiB-sealed", 1, 3);
    measure("verify 100 times one proof of 32 GiB", "32GiB-sparse", 1, 0);
    measure("verify 100 times ten proofs of 32 GiB in a batch", "32GiB-sparse", 10, 0);
    return 0;
}
