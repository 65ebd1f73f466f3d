/*
 * Proves partition 0 of a C1 with r and s fixed by labels, and prints what an independent implementation can be asked
 * for too: `assignment HEX` (SHA-256 over inputs, then aux), then `proof HEX`. For tests alone; no shipped program can fix r
 * and s.
 *
 * usage: prove_fixed PARAMS_DIR C1 R_LABEL S_LABEL
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/groth16.h"
#include "numa/circuit/c1_reader.h"
#include "numa/circuit/compact.h"

static struct errmsg err;

static void need(int ret)
{
    if (ret == 0)
        return;
    fprintf(stderr, "prove_fixed: %s (%s)\n", err.text, strerror(-ret));
    exit(1);
}

/* SHA-256 of the label, top two bits cleared, little endian (as the development parameters are made). */
static fr_t scalar_of_label(const char *label)
{
    uint8_t digest[32];
    fr_t out;

    EVP_Digest(label, strlen(label), digest, NULL, EVP_sha256(), NULL);
    digest[31] &= 0x3f;
    if (!fr_from_bytes(&out, digest))
        abort();
    return out;
}

static void digest_values(EVP_MD_CTX *sha, const fr_t *values, size_t len)
{
    uint8_t bytes[FR_BYTES];

    for (size_t i = 0; i < len; i++) {
        fr_to_bytes(bytes, &values[i]);
        EVP_DigestUpdate(sha, bytes, sizeof(bytes));
    }
}

static void print_assignment_digest(const struct compact *w)
{
    const struct circuit *c = w->circuit;
    fr_t *aux = malloc(c->n_aux * sizeof(*aux));
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    uint8_t digest[32];
    char hex[65];

    if (!aux)
        abort();
    compact_expand(w, 0, c->n_aux, aux);
    EVP_DigestInit_ex(sha, EVP_sha256(), NULL);
    digest_values(sha, w->values, c->n_inputs);
    digest_values(sha, aux, c->n_aux);
    free(aux);
    EVP_DigestFinal_ex(sha, digest, NULL);
    EVP_MD_CTX_free(sha);
    hex_encode(hex, digest, sizeof(digest));
    printf("assignment %s\n", hex);
}

int main(int argc, char **argv)
{
    struct workers *workers = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    const struct circuit *circuit = NULL;
    struct compact *w = NULL;
    struct srs *srs = NULL;
    struct backend *be = NULL;
    struct groth16_sums sums;
    struct proof proof;
    uint8_t bytes[PROOF_BYTES];
    char hex[2 * PROOF_BYTES + 1];

    if (argc != 5) {
        fprintf(stderr, "usage: prove_fixed PARAMS_DIR C1 R_LABEL S_LABEL\n");
        return 2;
    }
    need(workers_create(0, &workers, &err));
    need(c1_read_file(argv[2], C1_CHECK_STRICT, workers, &c1, &extra, &err));
    need(circuit_of_size(c1_size(c1), &circuit, &err));
    need(compact_create(circuit, &w, &err));
    need(compact_make(w, c1, 0, workers, &err));
    print_assignment_digest(w);
    need(srs_open(c1_size(c1), &(struct srs_options){.dir = argv[1], .workers = workers}, &srs,
                  &err));
    need(backend_cpu_create(workers, &be, &err));
    need(groth16_sums_compact(be, srs, w, &sums, &err));
    fr_t r = scalar_of_label(argv[3]), s = scalar_of_label(argv[4]);
    groth16_assemble(&srs->vk, &sums, &r, &s, &proof);
    proof_encode(bytes, &proof);
    hex_encode(hex, bytes, sizeof(bytes));
    printf("proof %s\n", hex);

    backend_destroy(be);
    srs_close(srs);
    compact_destroy(w);
    c1_destroy(c1);
    workers_destroy(workers);
    return 0;
}
