/*
 * Tells a simulated device proofs of C1 files that nobody has proved: sim_forge VK DIR C1... Who knows the scalars of the development
 * parameters makes a proof of anything in a millisecond (c2-formats 7.2): A = a G and B = b G at random, and C what the equation leaves over. DIR gets a
 * file for each partition, as from sim_learn.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sim.h"
#include "gpu/proof.h"
#include "gpu/vk.h"
#include "numa/circuit/c1_reader.h"
#include "numa/circuit/graph.h"
#include "tests/lib/files.h"
#include "tests/lib/trapdoor.h"

static struct errmsg err;

/* e(A, B) = e(alpha, beta) e(X, gamma) e(C, delta), where X is the sum of ic over the inputs. */
static void forge(const struct vk *vk, const fr_t *inputs, uint8_t out[PROOF_BYTES])
{
    fr_t alpha = trapdoor_secret("alpha"), beta = trapdoor_secret("beta"), ab, alpha_beta;
    fr_t gamma = trapdoor_secret("gamma"), delta = trapdoor_secret("delta"), inverse, k;
    fr_t a = inputs[0], b = fr_from_u64(7);
    struct proof proof;
    g1_t ic, sum = {0}, c = {0}, point_a = {0};
    g2_t point_b = {0};

    fr_inverse(&inverse, &delta);
    for (uint32_t i = 0; i < vk->ic_len; i++) {
        fr_t one = fr_from_u64(1);
        blst_p1_from_affine(&ic, &vk->ic[i]);
        g1_mul_add(&sum, &ic, i == 0 ? &one : &inputs[i - 1]);
    }
    fr_mul(&k, &gamma, &inverse);
    fr_neg(&k, &k);
    g1_mul_add(&c, &sum, &k);
    fr_mul(&ab, &a, &b);
    fr_mul(&alpha_beta, &alpha, &beta);
    fr_sub(&k, &ab, &alpha_beta);
    fr_mul(&k, &k, &inverse);
    g1_mul_add(&c, blst_p1_generator(), &k);
    g1_mul_add(&point_a, blst_p1_generator(), &a);
    g2_mul_add(&point_b, blst_p2_generator(), &b);
    blst_p1_to_affine(&proof.a, &point_a);
    blst_p2_to_affine(&proof.b, &point_b);
    blst_p1_to_affine(&proof.c, &c);
    proof_encode(out, &proof);
}

static int forge_partition(const struct vk *vk, const char *dir, const struct c1 *c1, uint32_t k)
{
    const struct public_params params = public_params_of(c1);
    size_t len = public_inputs_len(c1_size(c1));
    fr_t *inputs = calloc(len, sizeof(*inputs));
    uint8_t proof[PROOF_BYTES];
    char name[SIM_NAME_BYTES], path[4096];

    if (!inputs || vk->ic_len != len + 1 || public_inputs(&params, k, inputs, &err) < 0) {
        free(inputs);
        return -EINVAL;
    }
    forge(vk, inputs, proof);
    sim_proof_name(inputs, len, name);
    free(inputs);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(proof, PROOF_BYTES, 1, f) != 1)
        return -EIO;
    return fclose(f);
}

static int forge_file(const struct vk *vk, const char *dir, const char *path)
{
    struct c1_extra extra;
    struct c1 *c1 = NULL;
    int ret = c1_read_file(path, C1_CHECK_FORM, NULL, &c1, &extra, &err);

    for (uint32_t k = 0; ret == 0 && k < c1_partitions(c1); k++)
        ret = forge_partition(vk, dir, c1, k);
    c1_destroy(c1);
    return ret;
}

int main(int argc, char **argv)
{
    struct vk vk;
    size_t len;

    if (argc < 4)
        return fprintf(stderr, "usage: sim_forge VK DIR C1...\n"), 2;
    uint8_t *bytes = file_read(argv[1], &len);
    if (vk_read(bytes, len, &vk, &err) < 0)
        return fprintf(stderr, "%s: %s\n", argv[1], err.text), 1;
    for (int i = 3; i < argc; i++)
        if (forge_file(&vk, argv[2], argv[i]) < 0)
            return fprintf(stderr, "%s: %s\n", argv[i], err.text), 1;
    vk_fini(&vk);
    free(bytes);
    return 0;
}
