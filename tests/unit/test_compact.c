/*
 * The compact witness against the gadgets' assignment, variable by variable, for made-up partitions of every size, and against
 * the digests of real ones. 32 GiB: the first and the last partition, PROOFD_ALL=1 takes all ten, PROOFD_QUICK=1 none.
 */
#include "numa/circuit/compact.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_reader.h"
#include "tests/lib/files.h"
#include "tests/lib/r1cs.h"
#include "tests/lib/random_challenge.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

#define LARGE "32GiB-sparse"
#define LARGE_PARTITIONS 10

static struct circuit *circuit_of(const struct sector_size *size)
{
    struct errmsg err = {{0}};
    struct circuit *c = NULL;

    ck_assert_msg(circuit_create(size, &c, &err) == 0, "%s", err.text);
    return c;
}

/* A witness full of rubbish, as one is that has been used before. */
static struct compact *create(const struct circuit *c)
{
    struct errmsg err = {{0}};
    struct compact *w = NULL;

    ck_assert_msg(compact_create(c, &w, &err) == 0, "%s", err.text);
    memset(w->values, 0xa5, w->bytes);
    return w;
}

static struct c1 *read_c1(const char *path)
{
    struct errmsg err = {{0}};
    struct c1_extra extra;
    struct c1 *c1 = NULL;

    ck_assert_msg(c1_read_file(path, C1_CHECK_FORM, NULL, &c1, &extra, &err) == 0, "%s", err.text);
    return c1;
}

/* Compares variables as the gadgets allocate them. */
struct comparison {
    const struct compact *w;
    uint32_t next_value, next_aux;
};

static void compare_input(void *ctx, uint32_t index, const fr_t *value)
{
    const struct comparison *cmp = ctx;

    if (!fr_equal(&cmp->w->values[index], value))
        ck_abort_msg("input %u", index);
}

static bool bit_of(const struct compact *w, uint32_t aux)
{
    return w->bits[aux / 64] >> (aux % 64) & 1;
}

static void compare_value(void *ctx, uint32_t index, const fr_t *value)
{
    struct comparison *cmp = ctx;
    const struct circuit *c = cmp->w->circuit;
    const uint32_t at = cmp->next_value++;

    /* An assertion is a system call, so failures alone make one. */
    if (index != cmp->next_aux++ || c->value_aux[at - c->n_inputs] != index ||
        bit_of(cmp->w, index) || !fr_equal(&cmp->w->values[at], value))
        ck_abort_msg("value %u, aux variable %u", at, index);
}

static void compare_bit(void *ctx, uint32_t index, bool value)
{
    struct comparison *cmp = ctx;

    if (index != cmp->next_aux++ || bit_of(cmp->w, index) != value)
        ck_abort_msg("bit %u", index);
}

static void compare(const struct compact *w, const struct porep_roots *roots,
                    const struct porep_challenge *challenges)
{
    const struct circuit *c = w->circuit;
    struct comparison cmp = {.w = w, .next_value = c->n_inputs};
    const struct cs_sink sink = {
        .input = compare_input, .aux = compare_value, .bit = compare_bit, .ctx = &cmp};
    struct porep_header header;
    struct cs cs;

    cs_init(&cs, &sink);
    porep_synthesize_header(&cs, roots, &header);
    for (uint32_t i = 0; i < c->size->challenges; i++)
        porep_synthesize_challenge(&cs, c->size, &header, &challenges[i]);
    ck_assert_uint_eq(cs.n_inputs, c->n_inputs);
    ck_assert_uint_eq(cmp.next_aux, c->n_aux);
    ck_assert_uint_eq(cmp.next_value, c->n_values);
    ck_assert_uint_eq(w->bits[c->aux_words - 2] >> 1 >> (c->n_aux - 1) % 64, 0);
    ck_assert_uint_eq(w->bits[c->aux_words - 1], 0);
}

START_TEST(compact_compute__equals_the_gadgets)
{
    const struct sector_size *size = &sector_sizes[_i];
    struct circuit *c = circuit_of(size);
    struct compact *w = create(c);
    struct workers *workers = NULL;

    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    for (uint64_t seed = 1; seed <= (size->challenges > 2 ? 1 : 4); seed++) {
        struct porep_challenge *challenges = random_challenges(size, 1000 * (uint64_t)_i + seed);
        struct porep_roots roots;
        random_roots(&roots, seed);
        compact_compute(w, &roots, challenges, workers);
        compare(w, &roots, challenges);
        free(challenges);
    }
    workers_destroy(workers);
    compact_destroy(w);
    circuit_destroy(c);
}
END_TEST

START_TEST(compact_compute__is_the_same_on_any_number_of_threads)
{
    const struct sector_size *size = sector_size_by_name("16KiB");
    struct circuit *c = circuit_of(size);
    struct compact *one = create(c), *many = create(c);
    struct porep_challenge *challenges = random_challenges(size, 77);
    struct porep_roots roots;

    random_roots(&roots, 78);
    compact_compute(one, &roots, challenges, NULL);
    for (unsigned threads = 1; threads <= 8; threads *= 2) {
        struct workers *workers = NULL;
        ck_assert_int_eq(workers_create(threads, &workers, NULL), 0);
        memset(many->values, 0x5a, many->bytes);
        compact_compute(many, &roots, challenges, workers);
        ck_assert_mem_eq(one->values, many->values, one->bytes);
        workers_destroy(workers);
    }
    free(challenges);
    compact_destroy(one);
    compact_destroy(many);
    circuit_destroy(c);
}
END_TEST

#define CHUNK 100003

/* Digest of the inputs, if wanted, and of all aux variables, a piece at a time. */
static void digest_of(const struct compact *w, bool inputs, char out[R1CS_DIGEST_HEX])
{
    struct aux_digest *d = aux_digest_create();
    fr_t *piece = malloc(CHUNK * sizeof(*piece));

    for (uint32_t i = 0; inputs && i < w->circuit->n_inputs; i++)
        aux_digest_value(d, 0, &w->values[i]);
    for (uint32_t first = 0; first < w->circuit->n_aux; first += CHUNK) {
        const uint32_t end = (uint32_t)min_size(first + CHUNK, w->circuit->n_aux);
        compact_expand(w, first, end, piece);
        for (uint32_t i = first; i < end; i++)
            aux_digest_value(d, 0, &piece[i - first]);
    }
    aux_digest_finish(d, out);
    aux_digest_destroy(d);
    free(piece);
}

START_TEST(compact_make__equals_the_reference)
{
    const char *name = c1_names[_i];
    struct c1 *c1 = read_c1(c1_path(name, "bare.json.zst"));
    struct circuit *c = circuit_of(c1_size(c1));
    struct compact *w = create(c);
    struct errmsg err = {{0}};
    char got[R1CS_DIGEST_HEX], want[128];
    size_t len;

    ck_assert_msg(compact_make(w, c1, 0, NULL, &err) == 0, "%s", err.text);
    char *json = (char *)file_read(c1_path(name, "witness.json"), &len);
    digest_of(w, false, got);
    ck_assert_str_eq(got, vector_json_value(json, "aux_sha256", want));
    digest_of(w, true, got);
    ck_assert_str_eq(got, vector_json_value(json, "assignment_sha256", want));
    free(json);
    compact_destroy(w);
    circuit_destroy(c);
    c1_destroy(c1);
}
END_TEST

/* Of a later partition too, and of the largest form that there is. */
START_TEST(compact_make__takes_from_a_c1_what_the_gadgets_take)
{
    static const struct {
        const char *name;
        uint32_t partition;
    } cases[] = {{"8MiB", 0}, {"32GiB", 7}, {"64GiB", 9}};
    const struct sector_size *size = sector_size_by_name(cases[_i].name);
    const uint32_t partition = cases[_i].partition;
    struct porep_challenge *challenges = calloc(size->challenges, sizeof(*challenges));
    struct c1 *c1 = random_c1(size, 31);
    struct circuit *c = circuit_of(size);
    struct compact *made = create(c), *computed = create(c);
    struct porep_roots roots;

    ck_assert_int_eq(compact_make(made, c1, partition, NULL, NULL), 0);
    porep_read_roots(c1, partition, &roots);
    for (uint32_t i = 0; i < size->challenges; i++)
        ck_assert_int_eq(porep_read_challenge(c1, partition, i, &roots, &challenges[i], NULL), 0);
    compact_compute(computed, &roots, challenges, NULL);
    ck_assert_int_eq(memcmp(made->values, computed->values, made->bytes), 0);
    free(challenges);
    compact_destroy(made);
    compact_destroy(computed);
    circuit_destroy(c);
    c1_destroy(c1);
}
END_TEST

START_TEST(compact_expand__any_range_is_part_of_the_whole)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    struct circuit *c = circuit_of(size);
    struct compact *w = create(c);
    struct porep_challenge *challenges = random_challenges(size, 5);
    fr_t *whole = malloc(c->n_aux * sizeof(*whole)), *part = malloc(c->n_aux * sizeof(*part));
    struct porep_roots roots;

    random_roots(&roots, 6);
    compact_compute(w, &roots, challenges, NULL);
    compact_expand(w, 0, c->n_aux, whole);
    srandom(1);
    for (int i = 0; i < 2000; i++) {
        const uint32_t first = (uint32_t)random() % (c->n_aux + 1), len = (uint32_t)random() % 2000;
        const uint32_t end = (uint32_t)min_size(first + len, c->n_aux);
        compact_expand(w, first, end, part);
        ck_assert_int_eq(memcmp(part, whole + first, (end - first) * sizeof(*part)), 0);
    }
    free(whole);
    free(part);
    free(challenges);
    compact_destroy(w);
    circuit_destroy(c);
}
END_TEST

START_TEST(compact_make__refuses_roots_that_differ)
{
    struct c1 *good = read_c1(c1_path("2KiB-sealed", "bare.json.zst")), *bad = NULL;
    struct circuit *c = circuit_of(c1_size(good));
    struct compact *w = create(c);
    struct challenge_proof proof;
    struct errmsg err = {{0}};
    size_t len;
    const uint8_t *image = c1_bincode(good, &len);
    uint8_t *copy = malloc(len);

    memcpy(copy, image, len);
    c1_challenge(good, 0, 1, &proof);
    copy[proof.parents[3].inclusion.root - image] ^= 1;
    ck_assert_msg(c1_from_bincode(copy, len, &bad, &err) == 0, "%s", err.text);
    ck_assert_int_eq(compact_make(w, bad, 0, NULL, &err), -EBADMSG);
    ck_assert_str_eq(err.text, "partition 0, challenge 1: the root of the path of a parent is not "
                               "the comm_c of the partition");
    ck_assert_int_eq(compact_make(w, good, 0, NULL, &err), 0);
    compact_destroy(w);
    circuit_destroy(c);
    c1_destroy(bad);
    c1_destroy(good);
}
END_TEST

START_TEST(compact_bytes_of_size__equals_the_circuits)
{
    const struct sector_size *size = &sector_sizes[_i];
    const struct circuit *c = NULL;
    struct errmsg e = {""};

    ck_assert_msg(circuit_of_size(size, &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(compact_bytes_of_size(size), compact_bytes(c));
}
END_TEST

START_TEST(compact_bytes__stay_below_96_MB)
{
    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        struct circuit *c = circuit_of(size);
        ck_assert_uint_lt(compact_bytes(c), 96 * 1000 * 1000);
        circuit_destroy(c);
    }
}
END_TEST

/* ---- 32 GiB ---- */

static struct c1 *large_c1;
static struct circuit *large_circuit;
static char *large_json;

struct large {
    uint32_t partition;
    int ret;
    struct errmsg err;
    char digest[R1CS_DIGEST_HEX];
};

static void *digest_large(void *arg)
{
    struct large *l = arg;
    struct compact *w = NULL;

    l->ret = compact_create(large_circuit, &w, &l->err);
    if (l->ret == 0)
        l->ret = compact_make(w, large_c1, l->partition, NULL, &l->err);
    if (l->ret == 0)
        digest_of(w, false, l->digest);
    compact_destroy(w);
    return NULL;
}

/* The partitions' entries are in order. */
static void wanted_digest(uint32_t partition, char out[128])
{
    const char *at = large_json;

    for (uint32_t i = 0; i <= partition; i++) {
        at = strstr(at, "\"aux_sha256\"");
        ck_assert_ptr_nonnull(at);
        vector_json_value(at++, "aux_sha256", out);
    }
}

/* Two partitions at once: 0 and 9, 1 and 8, ... */
START_TEST(compact_make__equals_the_reference_of_32GiB)
{
    struct large large[2] = {{.partition = (uint32_t)_i},
                             {.partition = LARGE_PARTITIONS - 1 - (uint32_t)_i}};
    pthread_t thread[2];
    char want[128];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, digest_large, &large[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) {
        wanted_digest(large[i].partition, want);
        ck_assert_msg(large[i].ret == 0, "%s", large[i].err.text);
        ck_assert_str_eq(large[i].digest, want);
    }
}
END_TEST

static bool open_large(void)
{
    char c1_path_[VECTOR_PATH_MAX], witness_path[VECTOR_PATH_MAX];
    struct errmsg err;
    struct c1_extra extra;

    if (getenv("PROOFD_QUICK")) {
        suite_skip("witnesses of 32GiB", "time (PROOFD_QUICK is set)");
        return false;
    }
    if (!vector_find(c1_path_, "c1/" LARGE "/bare.json.zst") ||
        !vector_find(witness_path, "c1/" LARGE "/witness.json")) {
        suite_skip("witnesses of 32GiB", "the 32 GiB vector ($PROOFD_SHARED)");
        return false;
    }
    if (c1_read_file(c1_path_, C1_CHECK_FORM, NULL, &large_c1, &extra, &err) < 0 ||
        circuit_create(c1_size(large_c1), &large_circuit, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    large_json = vector_read(witness_path, NULL);
    return true;
}

int main(void)
{
    Suite *s = suite_create("compact");
    TCase *tc = tcase_create("compact"), *one = tcase_create("one thread");
    int n_sizes = 0, n_names = 0;

    while (sector_sizes[n_sizes].name)
        n_sizes++;
    while (c1_names[n_names])
        n_names++;
    tcase_set_timeout(tc, 600);
    tcase_set_timeout(one, 600);
    tcase_set_tags(one, ONE_THREAD);
    tcase_add_loop_test(tc, compact_compute__equals_the_gadgets, 0,
                        getenv("PROOFD_QUICK") ? 2 : n_sizes);
    tcase_add_test(tc, compact_compute__is_the_same_on_any_number_of_threads);
    tcase_add_loop_test(one, compact_make__equals_the_reference, 0, n_names);
    tcase_add_loop_test(one, compact_make__takes_from_a_c1_what_the_gadgets_take, 0, 3);
    tcase_add_test(one, compact_expand__any_range_is_part_of_the_whole);
    tcase_add_test(one, compact_make__refuses_roots_that_differ);
    tcase_add_test(one, compact_bytes__stay_below_96_MB);
    tcase_add_loop_test(one, compact_bytes_of_size__equals_the_circuits, 0, 10);
    if (open_large())
        tcase_add_loop_test(tc, compact_make__equals_the_reference_of_32GiB, 0,
                            getenv("PROOFD_ALL") ? LARGE_PARTITIONS / 2 : 1);
    suite_add_tcase(s, tc);
    suite_add_tcase(s, one);
    int status = suite_run(s);
    c1_destroy(large_c1);
    circuit_destroy(large_circuit);
    free(large_json);
    return status;
}
