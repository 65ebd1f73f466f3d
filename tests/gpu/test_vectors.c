/*
 * Real sectors on a GPU: with r and s fixed the proofs equal the vectors byte for byte. Prints how long the sums take.
 *
 * PROOFD_TEST_PARAMS names a directory with development parameters; sizes that it does not hold are left out.
 */
#include "gpu/backend_cuda.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/groth16.h"
#include "numa/circuit/c1_reader.h"
#include "numa/circuit/witness.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

#define RUNS 5

static const char *const vectors[] = {"2KiB-sealed", "2KiB-sparse", "2KiB-v1", "8MiB-sealed",
                                      "512MiB-sparse"};
static struct workers *workers;
static struct backend *cuda;
static struct errmsg err;

static void need(int ret)
{
    ck_assert_msg(ret == 0, "%s", err.text);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* True if there is such a vector, which the proof then equals. */
static bool expect_vector(const char *name, const struct vk *vk, const struct groth16_sums *sums,
                          const char *file, fr_t r, fr_t s)
{
    struct proof proof;
    uint8_t got[PROOF_BYTES], want[PROOF_BYTES];

    if (!vector_proof(name, file, 0, want))
        return false;
    groth16_assemble(vk, sums, &r, &s, &proof);
    proof_encode(got, &proof);
    ck_assert_msg(memcmp(got, want, PROOF_BYTES) == 0, "%s %s", name, file);
    return true;
}

static void prove_vector(const char *name, const struct c1 *c1, const struct srs *srs)
{
    struct assignment *w = NULL;
    struct groth16_sums sums;
    double ms[RUNS];
    fr_t r = vector_label_scalar("proof test vector: r");
    fr_t s = vector_label_scalar("proof test vector: s");

    need(witness_assign(c1, 0, workers, &w, &err));
    need(cuda->ops->load(cuda, srs, NULL, NULL, NULL, &err));
    for (int run = -1; run < RUNS; run++) {
        double start = now_ms();
        need(groth16_sums(cuda, srs, w, &sums, &err));
        if (run >= 0)
            ms[run] = now_ms() - start;
    }
    qsort(ms, RUNS, sizeof(*ms), compare_doubles);
    printf("%s: sums of partition 0 in %.1f ms [%.1f, %.1f]\n", name, ms[RUNS / 2], ms[0],
           ms[RUNS - 1]);
    int compared =
        expect_vector(name, &srs->vk, &sums, "proof-r0-s0.txt", fr_from_u64(0), fr_from_u64(0)) +
        expect_vector(name, &srs->vk, &sums, "proof-r3-s5.txt", fr_from_u64(3), fr_from_u64(5)) +
        expect_vector(name, &srs->vk, &sums, "proof-labels.txt", r, s);
    ck_assert_int_gt(compared, 0);
    printf("    equal to %d vectors\n", compared);
    assignment_destroy(w);
}

START_TEST(proofs__equal_the_vectors)
{
    const char *name = vectors[_i], *dir = getenv("PROOFD_TEST_PARAMS");
    char path[256];
    struct srs *srs = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    struct srs_options opt = {.dir = dir, .memory = "", .workers = workers};

    snprintf(path, sizeof(path), "tests/vectors/c1/%s/bare.json.zst", name);
    need(c1_read_file(path, C1_CHECK_FORM, workers, &c1, &extra, &err));
    int ret = dir ? srs_open(c1_size(c1), &opt, &srs, &err) : -ENOENT;
    if (ret == -ENOENT) {
        suite_skip(name, "no development parameters in PROOFD_TEST_PARAMS");
    } else {
        need(ret);
        prove_vector(name, c1, srs);
    }
    srs_close(srs);
    c1_destroy(c1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("vectors on a GPU");
    TCase *tc = tcase_create("vectors");

    setenv("CK_FORK", "no", 1); /* a forked child has no CUDA context */
    if (workers_create(0, &workers, &err) < 0)
        return 1;
    int ret = backend_cuda_open(BACKEND_CUDA_ABI, 0, workers, &cuda, &err);
    if (ret < 0) {
        printf("%s\n%s\n", err.text, ret == -ENODEV ? "no GPU" : "");
        return ret == -ENODEV ? 77 : 1;
    }
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, proofs__equal_the_vectors, 0, (int)ARRAY_LEN(vectors));
    suite_add_tcase(s, tc);
    ret = suite_run(s);
    backend_destroy(cuda);
    workers_destroy(workers);
    return ret;
}
