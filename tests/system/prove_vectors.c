/*
 * The exact proofs of vectors: prove_vectors PARAMS-DIR NAME...
 *
 * For each vector c1/NAME the 192 bytes must equal those of an independent implementation, for three pairs of r and s (fewer
 * are known of the large sizes). One set of sums serves all three. Prints how long it took, how much memory there was at most,
 * and "N passed, N failed, N skipped"; a failure says which sum is wrong.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "gpu/groth16.h"
#include "numa/circuit/c1.h"
#include "numa/circuit/c1_reader.h"
#include "numa/circuit/compact.h"
#include "numa/circuit/witness.h"
#include "tests/lib/vectors.h"

struct expectation {
    const char *file;
    fr_t r, s;
};

static unsigned passed, failed, skipped;

/* C1 of a vector in the form that is there. */
static int read_c1(const char *name, struct workers *workers, struct c1 **out, struct errmsg *err)
{
    static const char *const forms[] = {"bare.json", "bare.json.zst"};
    char path[VECTOR_PATH_MAX], file[128];
    struct c1_extra extra;

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        snprintf(file, sizeof(file), "c1/%s/%s", name, forms[i]);
        if (vector_find(path, file))
            return c1_read_file(path, C1_CHECK_STRICT, workers, out, &extra, err);
    }
    return errmsg_set(err, -1, "no such vector");
}

static void report(const char *name, const char *what, bool ok)
{
    printf("%s %s %s\n", ok ? "ok    " : "FAILED", name, what);
    *(ok ? &passed : &failed) += 1;
}

/* Which sums a wrong part of a proof points at: with r = s = 0 each part is one sum or two. */
static void explain(const struct expectation *e, const uint8_t got[PROOF_BYTES],
                    const uint8_t want[PROOF_BYTES])
{
    bool plain = fr_is_zero(&e->r) && fr_is_zero(&e->s);

    if (memcmp(got, want, 48) != 0)
        printf("       A differs: the sum over a\n");
    if (memcmp(got + 48, want + 48, 96) != 0)
        printf("       B differs: the sum over b in G2\n");
    if (memcmp(got + 144, want + 144, 48) != 0)
        printf("       C differs: %s\n",
               plain ? "h, or the sum over h or l"
                     : "if it is right for r = s = 0, the sum over b in G1");
}

static void check_partition(const char *name, const struct srs *srs,
                            const struct groth16_sums *sums, uint32_t partition)
{
    const struct expectation expectations[] = {
        {"proof-r0-s0.txt", fr_from_u64(0), fr_from_u64(0)},
        {"proof-r3-s5.txt", fr_from_u64(3), fr_from_u64(5)},
        {"proof-labels.txt", vector_label_scalar("proof test vector: r"),
         vector_label_scalar("proof test vector: s")},
    };
    uint8_t got[PROOF_BYTES], want[PROOF_BYTES];
    struct proof proof;

    for (size_t i = 0; i < ARRAY_LEN(expectations); i++) {
        const struct expectation *e = &expectations[i];
        if (!vector_proof(name, e->file, partition, want)) {
            printf("SKIP  %s has no %s\n", name, e->file);
            skipped++;
            continue;
        }
        groth16_assemble(&srs->vk, sums, &e->r, &e->s, &proof);
        proof_encode(got, &proof);
        bool equal = memcmp(got, want, PROOF_BYTES) == 0;
        report(name, e->file, equal);
        if (!equal)
            explain(e, got, want);
    }
}

static int sums_of_compact(struct backend *be, const struct srs *srs, const struct c1 *c1,
                           struct groth16_sums *out, struct errmsg *err)
{
    const struct circuit *circuit = NULL;
    struct compact *w = NULL;
    int ret = circuit_of_size(c1_size(c1), &circuit, err);

    if (ret == 0)
        ret = compact_create(circuit, &w, err);
    if (ret == 0)
        ret = compact_make(w, c1, 0, be->workers, err);
    if (ret == 0)
        ret = groth16_sums_compact(be, srs, w, out, err);
    compact_destroy(w);
    return ret;
}

static int sums_of_expanded(struct backend *be, const struct srs *srs, const struct c1 *c1,
                            struct groth16_sums *out, struct errmsg *err)
{
    struct assignment *w = NULL;
    int ret = witness_assign(c1, 0, be->workers, &w, err);

    if (ret == 0)
        ret = groth16_sums(be, srs, w, out, err);
    assignment_destroy(w);
    return ret;
}

/* All vectors are of one size: parameters are opened for the first and serve the rest. */
struct prover {
    const char *dir;
    struct workers *workers;
    struct backend *backend;
    struct srs *srs;
};

static int open_prover(struct prover *p, const struct sector_size *size, struct errmsg *err)
{
    struct srs_options opt = {.dir = p->dir, .workers = p->workers};
    int ret = p->srs ? 0 : srs_open(size, &opt, &p->srs, err);

    if (ret == 0 && !p->backend)
        ret = backend_cpu_create(p->workers, &p->backend, err);
    return ret;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_cost(const char *name, const struct prover *p, double start)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    printf("%s: witness and sums in %.2f s, %u threads, at most %.1f GB resident\n", name,
           seconds() - start, workers_count(p->workers), 1.024e-6 * (double)usage.ru_maxrss);
}

static int check_vector(struct prover *p, const char *name, bool compact, struct errmsg *err)
{
    struct c1 *c1 = NULL;
    struct groth16_sums sums;
    int ret = read_c1(name, p->workers, &c1, err);

    if (ret == 0)
        ret = open_prover(p, c1_seal_proof(c1)->size, err);
    double start = seconds();
    if (ret == 0)
        ret = (compact ? sums_of_compact : sums_of_expanded)(p->backend, p->srs, c1, &sums, err);
    if (ret == 0) {
        print_cost(name, p, start);
        check_partition(name, p->srs, &sums, 0);
    }
    c1_destroy(c1);
    return ret;
}

int main(int argc, char **argv)
{
    struct prover p = {.dir = argv[1]};
    struct errmsg err = {""};

    if (argc < 3 || workers_create(0, &p.workers, &err) < 0) {
        fprintf(stderr, "usage: prove_vectors PARAMS-DIR NAME...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        /* The second in the expanded form. */
        if (check_vector(&p, argv[i], i != 3, &err) < 0) {
            report(argv[i], "no proof", false);
            printf("       %s\n", err.text);
        }
        fflush(stdout);
    }
    backend_destroy(p.backend);
    srs_close(p.srs);
    workers_destroy(p.workers);
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed > 0;
}
