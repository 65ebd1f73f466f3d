/*
 * Several sets of parameters on a GPU at once: proofs over each in turns equal the vectors and load nothing anew, and where memory does not
 * hold all of them, those go that should, never what a proof is on its way over.
 *
 * usage: test_sets [SIZE..]. Without sizes the small ones, by way of the host's memory, under a limit that holds two of three. With sizes
 * ("32GiB 64GiB", which need $PROOFD_SHARED with the large vectors): these, made on the device beside each other. Prints how long things take.
 */
#include "daemon/evict.h"
#include "tests/gpu/sector_test.h"

#define SETS_MAX 5

static const struct {
    const char *size, *name;
} sectors[SETS_MAX] = {
    {"2KiB", "2KiB-sealed"},   {"8MiB", "8MiB-sealed"},   {"512MiB", "512MiB-sparse"},
    {"32GiB", "32GiB-sparse"}, {"64GiB", "64GiB-sparse"},
};

static struct set {
    const char *name;
    struct circuit *circuit;
    struct srs *srs;
    uint32_t partition; /* the last one, of which there is a proof of every size */
    struct compact *w;
    uint64_t used;
} sets[SETS_MAX];
static size_t sets_len;
static uint64_t turns;
static char **sizes; /* asked for */
static bool large;   /* some were */

static void make_witness(struct set *s)
{
    struct c1 *c1 = open_vector(s->name);

    ck_assert_ptr_nonnull(c1);
    need(compact_create(s->circuit, &s->w, &err));
    memset(s->w->values, 0, s->w->bytes);
    s->partition = c1_size(c1)->partitions - 1;
    need(compact_make(s->w, c1, s->partition, workers, &err));
    c1_destroy(c1);
}

static void make_set(size_t sector)
{
    struct set *s = &sets[sets_len++];

    *s = (struct set){.name = sectors[sector].name};
    need(circuit_create(sector_size_by_name(sectors[sector].size), &s->circuit, &err));
    make_witness(s);
    const double begin = now_ms();
    need(setup_on_device(s->circuit, cuda, NULL, NULL, &s->srs, &err));
    printf("    %s: parameters made in %.0f ms, %.1f GB; %.1f GB of the device are taken\n",
           sectors[sector].size, now_ms() - begin, (double)bytes_held(s->srs) * 1e-9,
           (double)backend_cuda_device_bytes() * 1e-9);
    fflush(stdout);
    expect_key(s->srs);
}

static void end_sets(void)
{
    for (size_t k = 0; k < sets_len; k++) {
        cuda->ops->evict(cuda, sets[k].srs);
        srs_close(sets[k].srs);
        compact_destroy(sets[k].w);
        circuit_destroy(sets[k].circuit);
    }
    sets_len = 0;
}

static int load(size_t k)
{
    return groth16_prepare_compact(cuda, sets[k].srs, sets[k].circuit, NULL, NULL, &err);
}

static void evict_all(void)
{
    for (size_t k = 0; k < sets_len; k++)
        cuda->ops->evict(cuda, sets[k].srs);
}

/* As an engine does it. */
static void bring(size_t k, uint32_t waiting)
{
    struct evict_set held[SETS_MAX];
    uint32_t go;
    int ret;

    while ((ret = load(k)) == -ENOSPC) {
        for (size_t i = 0; i < sets_len; i++)
            held[i] = (struct evict_set){.bytes = i == k ? 0 : bytes_held(sets[i].srs),
                                         .used = sets[i].used,
                                         .need = waiting >> i & 1 ? EVICT_WAITING : EVICT_FREE};
        ck_assert(evict_choose(held, sets_len, cuda->lacks, 0, true, &go));
        for (size_t i = 0; i < sets_len; i++)
            if (go >> i & 1)
                cuda->ops->evict(cuda, sets[i].srs);
    }
    need(ret);
    ck_assert_uint_eq(cuda->lacks, 0); /* what an earlier load lacked is forgotten */
    sets[k].used = ++turns;
    ck_assert_uint_le(backend_cuda_device_bytes(),
                      cuda->memory_limit ? cuda->memory_limit : UINT64_MAX);
}

/* Bits of sets. */
static void expect_held(uint32_t want)
{
    uint32_t held = 0;
    bool streamed;

    for (size_t k = 0; k < sets_len; k++) {
        held |= (uint32_t)(bytes_held(sets[k].srs) > 0) << k;
        cuda->ops->holds(cuda, sets[k].srs, &streamed);
        ck_assert(!streamed);
    }
    ck_assert_uint_eq(held, want);
}

static void prove(size_t k)
{
    struct groth16_sums sums;

    need(groth16_sums_compact(cuda, sets[k].srs, sets[k].w, &sums, &err));
    ck_assert_int_gt(expect_vectors(sets[k].name, sets[k].partition, &sets[k].srs->vk, &sums), 0);
}

/* Over each in turns: nothing is taken, nothing is given up. */
static void prove_in_turns(uint32_t which, int rounds)
{
    const uint64_t allocations = backend_cuda_allocations();

    for (int round = 0; round < rounds; round++)
        for (size_t k = 0; k < sets_len; k++) {
            if (!(which >> k & 1))
                continue;
            const double begin = now_ms();
            bring(k, 0);
            const double brought = now_ms();
            prove(k);
            printf("    %s: at hand in %.1f ms, proved in %.1f ms\n", sets[k].name, brought - begin,
                   now_ms() - brought);
            fflush(stdout);
        }
    ck_assert_uint_eq(backend_cuda_allocations(), allocations);
    expect_held(which);
}

/* The first of smaller and smaller limits under which the last of three finds no room. */
static void limit_to_two(void)
{
    int ret = 0;

    for (uint64_t limit = UINT64_C(16) << 30; ret == 0; limit = limit / 16 * 15) {
        evict_all();
        cuda->memory_limit = limit;
        need(load(0));
        need(load(1));
        ret = load(2);
    }
    ck_assert_int_eq(ret, -ENOSPC);
    expect_held(3);
    printf("    under %.2f GB: %s; %.0f MB are lacking\n", (double)cuda->memory_limit * 1e-9,
           err.text, (double)cuda->lacks * 1e-6);
    evict_all();
}

static void expect_kept_in_flight(size_t k, size_t other, size_t absent)
{
    struct groth16_ticket ticket, none;
    uint8_t proof[PROOF_BYTES];

    bring(k, 0);
    need(groth16_prove_start_compact(cuda, sets[k].srs, sets[k].w, &ticket, &err));
    ck_assert_int_eq(load(absent), -EBUSY);
    ck_assert_int_eq(groth16_prove_start_compact(cuda, sets[other].srs, sets[other].w, &none, &err),
                     -EBUSY);
    cuda->ops->evict(cuda, sets[k].srs);
    expect_held(1u << k | 1u << other);
    need(groth16_prove_finish(&ticket, proof, &err));
    prove(k);
}

START_TEST(sets__two_of_three)
{
    if (large)
        return;
    for (size_t k = 0; k < 3; k++) {
        make_set(k);
        take_home(sets[k].srs);
    }
    const uint64_t nothing = backend_cuda_device_bytes();
    limit_to_two();
    for (int round = 0; round < 2; round++) {
        ck_assert_uint_eq(backend_cuda_device_bytes(), nothing);
        bring(0, 0);
        prove(0);
        bring(1, 0);
        prove(1);
        expect_held(3);
        prove_in_turns(3, 2);
        bring(2, 0); /* the longest unused goes */
        prove(2);
        expect_held(6);
        expect_kept_in_flight(1, 2, 0);
        bring(0, 1u << 2); /* but what others wait with */
        prove(0);
        expect_held(5);
        prove_in_turns(5, 1);
        bring(1, 1u << 0 | 1u << 2); /* unless there is nothing else */
        prove(1);
        expect_held(6);
        cuda->ops->evict(cuda, sets[2].srs);
        expect_held(2);
        prove(1);
        evict_all();
        expect_held(0);
    }
    ck_assert_uint_eq(backend_cuda_device_bytes(), nothing);
    cuda->memory_limit = 0;
    for (size_t k = 0; k < 3; k++)
        bring(k, 0);
    prove_in_turns(7, 2);
    srs_drop_points(sets[0].srs); /* it needs them no more, and then it does */
    prove_in_turns(7, 1);
    cuda->ops->evict(cuda, sets[0].srs);
    ck_assert_int_eq(load(0), -ENODATA);
    expect_held(6);
    prove(2);
    end_sets();
    ck_assert_uint_eq(backend_cuda_device_bytes(), nothing);
}
END_TEST

START_TEST(sets__side_by_side)
{
    uint32_t all = 0;

    for (char **size = sizes; *size; size++)
        for (size_t i = 0; i < SETS_MAX; i++)
            if (strcmp(*size, sectors[i].size) == 0) {
                all |= 1u << sets_len;
                make_set(i);
            }
    if (!large)
        return;
    prove_in_turns(all, 3);
    printf("    %zu sets side by side in %.1f GB\n", sets_len,
           (double)backend_cuda_device_bytes() * 1e-9);
    end_sets();
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("sets of parameters on a GPU");
    TCase *tc = tcase_create("sets");

    sizes = argv + 1;
    large = argc > 1;
    open_gpu();
    tcase_set_timeout(tc, 1200);
    tcase_add_test(tc, sets__two_of_three);
    tcase_add_test(tc, sets__side_by_side);
    suite_add_tcase(s, tc);
    int ret = suite_run(s);
    close_gpu();
    return ret;
}
