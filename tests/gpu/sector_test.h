/*
 * For test programs that prove sectors on a GPU by way of the backend, as an engine does: one that skips where there is none, vectors,
 * parameters that the device makes.
 */
#ifndef TESTS_GPU_SECTOR_TEST_H
#define TESTS_GPU_SECTOR_TEST_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/backend_cuda.h"
#include "gpu/cuda/times.h"
#include "gpu/groth16.h"
#include "gpu/setup.h"
#include "numa/circuit/c1_reader.h"
#include "numa/circuit/compact.h"
#include "numa/memory.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

/* Points that are fetched at a time. */
#define FETCH ((size_t)1 << 22)

static struct workers *workers, *few_workers;
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

/* The first one; without one ends the program with 77. */
static void open_gpu(void)
{
    setenv("CK_FORK", "no", 1); /* a forked child has no CUDA context */
    if (workers_create(0, &workers, &err) < 0 || workers_create(4, &few_workers, &err) < 0)
        exit(1);
    int ret = backend_cuda_open(BACKEND_CUDA_ABI, 0, few_workers, &cuda, &err);
    if (ret < 0) {
        printf("%s\n%s\n", err.text, ret == -ENODEV ? "no GPU" : "");
        exit(ret == -ENODEV ? 77 : 1);
    }
}

static void close_gpu(void)
{
    backend_destroy(cuda);
    workers_destroy(workers);
    workers_destroy(few_workers);
}

/* 1 if there is such a vector, which the proof then equals. */
static int expect_vector(const char *name, uint32_t partition, const struct vk *vk,
                         const struct groth16_sums *sums, const char *file, fr_t r, fr_t s)
{
    struct proof proof;
    uint8_t got[PROOF_BYTES], want[PROOF_BYTES];

    if (!vector_proof(name, file, partition, want))
        return 0;
    groth16_assemble(vk, sums, &r, &s, &proof);
    proof_encode(got, &proof);
    ck_assert_msg(memcmp(got, want, PROOF_BYTES) == 0, "%s partition %u %s", name, partition, file);
    return 1;
}

static int expect_vectors(const char *name, uint32_t partition, const struct vk *vk,
                          const struct groth16_sums *sums)
{
    fr_t r = vector_label_scalar("proof test vector: r");
    fr_t s = vector_label_scalar("proof test vector: s");

    return expect_vector(name, partition, vk, sums, "proof-r0-s0.txt", fr_from_u64(0),
                         fr_from_u64(0)) +
           expect_vector(name, partition, vk, sums, "proof-r3-s5.txt", fr_from_u64(3),
                         fr_from_u64(5)) +
           expect_vector(name, partition, vk, sums, "proof-labels.txt", r, s);
}

static struct c1 *open_vector(const char *name)
{
    char path[VECTOR_PATH_MAX], file[128];
    struct c1 *c1 = NULL;
    struct c1_extra extra;

    snprintf(file, sizeof(file), "c1/%s/bare.json.zst", name);
    if (!vector_find(path, file)) {
        suite_skip(name, "needs $PROOFD_SHARED with the large vectors");
        return NULL;
    }
    need(c1_read_file(path, C1_CHECK_FORM, workers, &c1, &extra, &err));
    return c1;
}

static void expect_key(const struct srs *srs)
{
    struct vk want;
    uint8_t *got_bytes = malloc(vk_bytes(srs->vk.ic_len)),
            *want_bytes = malloc(vk_bytes(srs->vk.ic_len));

    vector_vk(srs->size, &want);
    ck_assert_uint_eq(want.ic_len, srs->vk.ic_len);
    vk_write(got_bytes, &srs->vk);
    vk_write(want_bytes, &want);
    ck_assert_mem_eq(got_bytes, want_bytes, vk_bytes(srs->vk.ic_len));
    vk_fini(&want);
    free(got_bytes);
    free(want_bytes);
}

static uint64_t bytes_held(const struct srs *srs)
{
    bool streamed;

    return cuda->ops->holds(cuda, srs, &streamed);
}

static void *fetch_section(enum srs_section section, size_t len, size_t bytes)
{
    char *points = memory_alloc(len, bytes);

    ck_assert_ptr_nonnull(points);
    for (size_t at = 0; at < len; at += FETCH)
        need(cuda->ops->fetch(cuda, section, at, len - at < FETCH ? len - at : FETCH,
                              points + at * bytes, &err));
    return points;
}

/* What the backend has made, on the host; it has nothing any more. */
static void take_home(struct srs *srs)
{
    srs->h = fetch_section(SRS_H, srs->h_len, sizeof(*srs->h));
    srs->l = fetch_section(SRS_L, srs->l_len, sizeof(*srs->l));
    srs->a = fetch_section(SRS_A, srs->a_len, sizeof(*srs->a));
    srs->b_g1 = fetch_section(SRS_B_G1, srs->b_len, sizeof(*srs->b_g1));
    srs->b_g2 = fetch_section(SRS_B_G2, srs->b_len, sizeof(*srs->b_g2));
    cuda->ops->evict(cuda, srs);
    ck_assert_uint_eq(bytes_held(srs), 0);
}

#endif
