/*
 * Tells a simulated device the true proofs of a C1: sim_learn C1 PROOFS DIR. PROOFS has a line "INDEX HEX" for each partition; DIR gets
 * a file for each, named by its public inputs (doc/formats.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sim.h"
#include "gpu/proof.h"
#include "numa/circuit/c1_reader.h"
#include "numa/circuit/graph.h"

static struct errmsg err;

static int write_proof(const char *dir, const struct c1 *c1, uint32_t k,
                       const uint8_t proof[PROOF_BYTES])
{
    const struct public_params params = public_params_of(c1);
    size_t len = public_inputs_len(c1_size(c1));
    fr_t *inputs = calloc(len, sizeof(*inputs));
    char name[SIM_NAME_BYTES], path[4096];

    if (!inputs || public_inputs(&params, k, inputs, &err) < 0)
        return -1;
    sim_proof_name(inputs, len, name);
    free(inputs);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(proof, PROOF_BYTES, 1, f) != 1)
        return -1;
    return fclose(f);
}

int main(int argc, char **argv)
{
    char hex[2 * PROOF_BYTES + 1];
    uint8_t proof[PROOF_BYTES];
    struct c1_extra extra;
    struct c1 *c1 = NULL;
    unsigned index;

    if (argc != 4 || c1_read_file(argv[1], C1_CHECK_FORM, NULL, &c1, &extra, &err) < 0)
        return fprintf(stderr, "sim_learn C1 PROOFS DIR: %s\n", err.text), 1;
    FILE *f = fopen(argv[2], "re");
    for (uint32_t k = 0; k < c1_partitions(c1); k++)
        if (!f || fscanf(f, "%u %384s", &index, hex) != 2 || index != k ||
            hex_decode(proof, hex, PROOF_BYTES) < 0 || write_proof(argv[3], c1, k, proof) < 0)
            return fprintf(stderr, "%s, partition %u: %s\n", argv[2], k, err.text), 1;
    fclose(f);
    c1_destroy(c1);
    return 0;
}
