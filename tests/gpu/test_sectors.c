/*
 * Sectors from compact witness to proof on a GPU, under development parameters that it makes itself: their verifying keys equal the
 * vectors', with r and s fixed the proofs equal the vectors byte for byte, all partitions. Prints how long things take.
 *
 * Then the same where device memory does not hold the parameters: of the small sizes under ever smaller limits, until a load is refused.
 *
 * Small ones at last with their parameters transformed.
 *
 * usage: test_sectors [--transformed] [--memory GIB] [SIZE..]; those of 32 and 64 GiB need $PROOFD_SHARED with the large vectors. With
 * --memory the backend has so much of the device, the rest being taken by a ballast: the parameters, made with all of it, come from host
 * memory. With --transformed all is done with transformed parameters, which takes minutes before.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/transform.h"
#include "tests/gpu/sector_test.h"

#define RUNS 5
/* For the driver: code and what kernels keep for themselves. */
#define DRIVER_BYTES (UINT64_C(128) << 20)

static const struct {
    const char *size, *names[3];
} sectors[] = {
    {"2KiB", {"2KiB-sealed", "2KiB-sparse", "2KiB-v1"}},
    {"8MiB", {"8MiB-sealed"}},
    {"512MiB", {"512MiB-sparse"}},
    {"32GiB", {"32GiB-sparse"}},
    {"64GiB", {"64GiB-sparse"}},
};
#define SMALL_SECTORS 3
static char **only;           /* sizes asked for; NULL: all */
static uint64_t memory_limit; /* --memory; 0: none */
static bool all_transformed;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void print_times(const char *what, double *ms, size_t n)
{
    qsort(ms, n, sizeof(*ms), compare_doubles);
    printf("    %s %.1f ms [%.1f, %.1f]\n", what, ms[n / 2], ms[0], ms[n - 1]);
    fflush(stdout);
}

/* The vectors' partitions, and those that come after them where the vector has one line alone. */
static void prove_vector(const char *name, const struct c1 *c1, const struct circuit *circuit,
                         const struct srs *srs, struct compact *w)
{
    struct groth16_sums sums;
    double witness_ms[64];
    uint32_t n = c1_partitions(c1) < ARRAY_LEN(witness_ms) ? c1_partitions(c1)
                                                           : (uint32_t)ARRAY_LEN(witness_ms);
    int compared = 0;

    (void)circuit;
    for (uint32_t k = 0; k < n; k++) {
        const double begin = now_ms();
        need(compact_make(w, c1, k, workers, &err));
        witness_ms[k] = now_ms() - begin;
        need(groth16_sums_compact(cuda, srs, w, &sums, &err));
        compared += expect_vectors(name, k, &srs->vk, &sums);
    }
    ck_assert_int_gt(compared, 0);
    printf("    %s: %u partitions, equal to %d vectors\n", name, n, compared);
    print_times("witness", witness_ms, n);
}

/* From the witness in its slot to a verified proof, one partition at a time; then two overlapping. */
static void time_proofs(const char *name, const struct srs *srs, struct compact *w)
{
    struct groth16_ticket ticket[2];
    struct prover_times t = {0};
    uint8_t proof_bytes[PROOF_BYTES];
    double ms[RUNS], start_ms[RUNS];
    size_t n_inputs = 0;
    fr_t *inputs = vector_inputs(name, 0, &n_inputs);

    for (int run = -1; run < RUNS; run++) {
        struct proof proof;
        bool valid = false;
        const double begin = now_ms();
        need(groth16_prove_start_compact(cuda, srs, w, &ticket[0], &err));
        const double started = now_ms();
        need(groth16_prove_finish(&ticket[0], proof_bytes, &err));
        need(proof_decode(&proof, proof_bytes, &err));
        need(groth16_verify(&srs->vk, inputs, n_inputs, &proof, &valid, &err));
        if (run >= 0) {
            ms[run] = now_ms() - begin;
            start_ms[run] = started - begin;
        }
        if (name[0]) /* the first partition's inputs are those of partition 0 */
            ck_assert(valid);
    }
    backend_cuda_times(cuda, &t);
    print_times("witness to verified proof", ms, RUNS);
    print_times("  of it start", start_ms, RUNS);
    printf("    last: rows %.1f, transforms %.1f, h %.1f, beside it the other sums %.1f ms\n",
           t.rows, t.transforms, t.main, t.aside);
    free(inputs);
}

static void time_overlapping(const struct srs *srs, struct compact *const w[2])
{
    struct groth16_ticket ticket[2];
    uint8_t proof_bytes[PROOF_BYTES];
    const int count = 8;

    need(groth16_prove_start_compact(cuda, srs, w[0], &ticket[0], &err));
    const double begin = now_ms();
    for (int k = 0; k < count; k++) {
        need(groth16_prove_start_compact(cuda, srs, w[(k + 1) % 2], &ticket[(k + 1) % 2], &err));
        need(groth16_prove_finish(&ticket[k % 2], proof_bytes, &err));
    }
    printf("    overlapping: %.1f ms a proof\n", (now_ms() - begin) / count);
    need(groth16_prove_finish(&ticket[count % 2], proof_bytes, &err));
    fflush(stdout);
}

/* ---- several GPUs ---- */

#define GPUS_MAX 8
#define GPU_PROOFS 8

/* One of the GPUs of an engine, on a thread of its own. */
struct gpu_load {
    struct backend *be;
    struct srs *srs;
    struct compact *const *w;
    pthread_t thread;
    struct errmsg err;
    int ret;
};

static int prove_many(struct gpu_load *g)
{
    struct groth16_ticket ticket[2];
    uint8_t proof[PROOF_BYTES];
    int ret = groth16_prove_start_compact(g->be, g->srs, g->w[0], &ticket[0], &g->err);

    for (int k = 1; k <= GPU_PROOFS && ret == 0; k++) {
        if (k < GPU_PROOFS)
            ret = groth16_prove_start_compact(g->be, g->srs, g->w[k % 2], &ticket[k % 2], &g->err);
        if (ret == 0)
            ret = groth16_prove_finish(&ticket[(k - 1) % 2], proof, &g->err);
    }
    return ret;
}

static void *gpu_main(void *arg)
{
    struct gpu_load *g = arg;

    g->ret = prove_many(g);
    return NULL;
}

static double time_gpus(struct gpu_load *gpus, int n)
{
    const double begin = now_ms();

    for (int i = 0; i < n; i++)
        ck_assert_int_eq(pthread_create(&gpus[i].thread, NULL, gpu_main, &gpus[i]), 0);
    for (int i = 0; i < n; i++)
        pthread_join(gpus[i].thread, NULL);
    for (int i = 0; i < n; i++)
        ck_assert_msg(gpus[i].ret == 0, "%s", gpus[i].err.text);
    return (now_ms() - begin) / (n * GPU_PROOFS);
}

/* All GPUs of the machine beside the first, which is `cuda`: prints what they are worth together. */
static void time_several(const struct circuit *circuit, struct srs *srs, struct compact *const w[2])
{
    struct gpu_load gpus[GPUS_MAX] = {{.be = cuda, .srs = srs, .w = w}};
    struct workers *own[GPUS_MAX] = {NULL};
    int n = 1;

    for (; n < GPUS_MAX; n++) {
        gpus[n].w = w;
        need(workers_create(4, &own[n], &err));
        if (backend_cuda_open(BACKEND_CUDA_ABI, n, own[n], &gpus[n].be, &err) < 0)
            break;
        need(setup_on_device(circuit, gpus[n].be, NULL, NULL, &gpus[n].srs, &err));
    }
    const double one = time_gpus(gpus, 1), all = time_gpus(gpus, n);
    if (n > 1)
        printf("    %d GPUs: %.1f ms a proof, %.2f times one (%.1f)\n", n, all, one / all, one);
    for (int i = 1; i < n; i++) {
        srs_close(gpus[i].srs);
        backend_destroy(gpus[i].be);
    }
    for (int i = 1; i < GPUS_MAX; i++)
        workers_destroy(own[i]);
}

/* ---- transformed parameters ---- */

/* Prints a stage's time when it ends, with all that came before it since the last one did. */
static void tell_stage(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    double *begin = ctx;

    if (done < total)
        return;
    printf("    %s of %llu: %.1f s\n", stage, (unsigned long long)total,
           (now_ms() - *begin) * 1e-3);
    fflush(stdout);
    *begin = now_ms();
}

/* Those on the host, by the device and all threads. */
static void become_transformed(const struct circuit *circuit, struct srs *srs)
{
    double begin = now_ms();
    size_t points = 0;

    cuda->workers = workers;
    need(transform_srs(srs, circuit, cuda, tell_stage, &begin, &err));
    cuda->workers = few_workers;
    for (size_t i = 0; i < srs->vk.ic_len; i++)
        points += !g1_affine_is_infinity(&srs->input_l[i]);
    printf("    %zu of %u inputs have points\n", points, srs->vk.ic_len);
    ck_assert_uint_gt(points, 0);
}

/* ---- less memory ---- */

static int load_under_limit(const struct circuit *circuit, struct srs *srs, uint64_t limit)
{
    cuda->ops->evict(cuda, srs);
    cuda->memory_limit = limit;
    const int ret = groth16_prepare_compact(cuda, srs, circuit, NULL, NULL, &err);
    ck_assert_uint_le(backend_cuda_device_bytes(), limit);
    return ret;
}

/* Everything else that is on the device is ballast. */
static void live_with_less(const struct circuit *circuit, struct srs *srs)
{
    double begin = now_ms();

    if (!srs_has_points(srs))
        take_home(srs);
    printf("    fetched to the host in %.0f ms", now_ms() - begin);
    need(backend_cuda_ballast(cuda, memory_limit + DRIVER_BYTES, &err));
    begin = now_ms();
    need(load_under_limit(circuit, srs, memory_limit));
    printf(", with %.1f GiB of device memory loaded in %.0f ms: %.1f GB taken, %u windows\n",
           (double)memory_limit / (1 << 30), now_ms() - begin,
           (double)backend_cuda_device_bytes() * 1e-9, backend_cuda_windows(cuda));
    fflush(stdout);
}

/* The bytes of the vector from all that fits into less and less. */
static void expect_under_limits(const char *name, const struct circuit *circuit, struct srs *srs,
                                const struct compact *w)
{
    struct groth16_sums sums;
    unsigned most = 0, streamed = 0;
    bool streams;
    int ret;

    for (uint64_t limit = UINT64_C(16) << 30; (ret = load_under_limit(circuit, srs, limit)) == 0;
         limit = limit / 5 * 3) {
        const uint64_t allocations = backend_cuda_allocations();
        for (int run = 0; run < 2; run++) {
            need(groth16_sums_compact(cuda, srs, w, &sums, &err));
            ck_assert_int_gt(expect_vectors(name, 0, &srs->vk, &sums), 0);
        }
        ck_assert_uint_eq(backend_cuda_allocations(), allocations);
        const unsigned windows = backend_cuda_windows(cuda);
        ck_assert_uint_gt(cuda->ops->holds(cuda, srs, &streams), 0);
        ck_assert_int_eq(streams, windows > 0);
        if (windows > 0) {
            streamed++;
            most = windows > most ? windows : most;
            printf("    %s in %.1f MB of %.1f: %u windows\n", name,
                   (double)backend_cuda_device_bytes() * 1e-6, (double)limit * 1e-6, windows);
        }
    }
    printf("    then: %s\n", err.text);
    fflush(stdout);
    ck_assert_int_eq(ret, -ENOMEM);
    ck_assert_uint_gt(streamed, 1);
    ck_assert_uint_gt(most, 12); /* three for each query */
    ck_assert_uint_eq(bytes_held(srs), 0);
    cuda->memory_limit = 0;
}

static bool is_wanted(const char *size)
{
    bool wanted = !only || !*only;

    for (char **a = only; a && *a; a++)
        wanted |= strcmp(*a, size) == 0;
    return wanted;
}

START_TEST(sectors__equal_the_vectors)
{
    struct circuit *circuit = NULL;
    struct srs *srs = NULL;
    struct compact *w[2] = {NULL, NULL};
    struct c1 *limited = NULL;

    if (!is_wanted(sectors[_i].size))
        return;
    double begin = now_ms();
    need(circuit_create(sector_size_by_name(sectors[_i].size), &circuit, &err));
    printf("%s: circuit %.0f ms", sectors[_i].size, now_ms() - begin);
    begin = now_ms();
    need(setup_on_device(circuit, cuda, NULL, NULL, &srs, &err));
    printf(", parameters made in %.0f ms\n", now_ms() - begin);
    fflush(stdout);
    expect_key(srs);
    if (all_transformed) {
        take_home(srs);
        become_transformed(circuit, srs);
        need(groth16_prepare_compact(cuda, srs, circuit, NULL, NULL, &err));
    }
    if (memory_limit)
        live_with_less(circuit, srs);
    for (int k = 0; k < 2; k++) {
        need(compact_create(circuit, &w[k], &err));
        memset(w[k]->values, 0, w[k]->bytes);
        need(cuda->ops->pin(cuda, w[k]->values, w[k]->bytes, &err));
    }
    for (size_t k = 0; k < ARRAY_LEN(sectors[_i].names) && sectors[_i].names[k]; k++) {
        const char *name = sectors[_i].names[k];
        struct c1 *c1 = open_vector(name);
        if (!c1)
            continue;
        const uint64_t allocations = backend_cuda_allocations();
        prove_vector(name, c1, circuit, srs, w[0]);
        if (k == 0) {
            need(compact_make(w[0], c1, 0, workers, &err));
            need(compact_make(w[1], c1, c1_partitions(c1) - 1, workers, &err));
            time_proofs(name, srs, w[0]);
            time_overlapping(srs, w);
        }
        ck_assert_uint_eq(backend_cuda_allocations(), allocations);
        if (k == 0 && !memory_limit && !all_transformed)
            time_several(circuit, srs, w);
        if (k == 0 && !memory_limit && _i < SMALL_SECTORS)
            limited = c1;
        else
            c1_destroy(c1);
    }
    if (limited) {
        need(compact_make(w[0], limited, 0, workers, &err));
        if (!srs_has_points(srs))
            take_home(srs);
        expect_under_limits(sectors[_i].names[0], circuit, srs, w[0]);
        if (!srs->transformed) {
            become_transformed(circuit, srs);
            expect_under_limits(sectors[_i].names[0], circuit, srs, w[0]);
        }
        c1_destroy(limited);
    }
    for (int k = 0; k < 2; k++) {
        cuda->ops->unpin(cuda, w[k]->values);
        compact_destroy(w[k]);
    }
    cuda->ops->evict(cuda, srs);
    srs_close(srs);
    circuit_destroy(circuit);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("sectors on a GPU");
    TCase *tc = tcase_create("sectors");

    if (argc > 1 && strcmp(argv[1], "--transformed") == 0) {
        all_transformed = true;
        argc--;
        argv++;
    }
    if (argc > 2 && strcmp(argv[1], "--memory") == 0) {
        memory_limit = strtoull(argv[2], NULL, 10) << 30;
        argc -= 2;
        argv += 2;
    }
    only = argc > 1 ? argv + 1 : NULL;
    open_gpu();
    tcase_set_timeout(tc, 1200);
    tcase_add_loop_test(tc, sectors__equal_the_vectors, 0, (int)ARRAY_LEN(sectors));
    suite_add_tcase(s, tc);
    int ret = suite_run(s);
    close_gpu();
    return ret;
}
