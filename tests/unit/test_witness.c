/*
 * Assignments of real C1s: equal to those of the reference, true in every row, and the same whoever shares the work.
 */
#include "numa/circuit/witness.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "numa/circuit/c1_reader.h"
#include "tests/lib/files.h"
#include "tests/lib/r1cs.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

static struct c1 *read_c1(const char *name)
{
    struct errmsg err = {{0}};
    struct c1_extra extra;
    struct c1 *c1 = NULL;
    int ret =
        c1_read_file(c1_path(name, "bare.json.zst"), C1_CHECK_STRICT, NULL, &c1, &extra, &err);

    ck_assert_msg(ret == 0, "%s", err.text);
    return c1;
}

static struct assignment *assign(const struct c1 *c1, struct workers *workers)
{
    struct errmsg err = {{0}};
    struct assignment *w = NULL;

    ck_assert_msg(witness_assign(c1, 0, workers, &w, &err) == 0, "%s", err.text);
    return w;
}

static void assert_digest(const char *json, const char *key, const fr_t *inputs, size_t n_inputs,
                          const fr_t *aux, size_t n_aux)
{
    struct aux_digest *d = aux_digest_create();
    char got[R1CS_DIGEST_HEX], want[128];

    for (size_t i = 0; i < n_inputs; i++)
        aux_digest_value(d, 0, &inputs[i]);
    for (size_t i = 0; i < n_aux; i++)
        aux_digest_value(d, 0, &aux[i]);
    aux_digest_finish(d, got);
    aux_digest_destroy(d);
    ck_assert_str_eq(got, vector_json_value(json, key, want));
}

/* Where every row is looked at: the smallest circuit and the largest of these. */
static const char *const row_names[] = {"2KiB-synthetic", "512MiB-sparse"};

static int n_names(void)
{
    int n = 0;

    while (c1_names[n])
        n++;
    return n;
}

/* PROOFD_QUICK: of the smallest circuit and of the largest; what else a C1 may be is read by test_compact.c, too. */
START_TEST(witness_assign__equals_the_reference)
{
    const char *name = c1_names[getenv("PROOFD_QUICK") ? _i * (n_names() - 1) : _i];
    struct c1 *c1 = read_c1(name);
    struct workers *workers = NULL;
    size_t len;
    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    struct assignment *w = assign(c1, workers);

    char *json = (char *)file_read(c1_path(name, "witness.json"), &len);
    assert_digest(json, "aux_sha256", NULL, 0, w->aux, w->n_aux);
    assert_digest(json, "assignment_sha256", w->inputs, w->n_inputs, w->aux, w->n_aux);
    free(json);

    size_t n_public;
    fr_t *public = vector_inputs(name, 0, &n_public);
    ck_assert_uint_eq(w->n_inputs, n_public + 1);
    ck_assert(fr_equal(&w->inputs[0], fr_bit(true)));
    ck_assert_mem_eq(&w->inputs[1], public, n_public * sizeof(fr_t));
    free(public);
    assignment_destroy(w);
    workers_destroy(workers);
    c1_destroy(c1);
}
END_TEST

/* Evaluates rows once more, the plain way, and compares. */
struct checker {
    const struct assignment *w;
    uint64_t rows;
    uint8_t *a_aux, *b_aux, *b_input; /* a byte a variable */
};

static fr_t evaluate(const struct assignment *w, const struct cs_lc *lc)
{
    fr_t sum = {{0}}, t;

    for (size_t i = 0; i < lc->len; i++) {
        const cs_var var = lc->terms[i].var;
        fr_mul(&t, &lc->terms[i].coeff, var & CS_AUX ? &w->aux[var & ~CS_AUX] : &w->inputs[var]);
        fr_add(&sum, &sum, &t);
    }
    return sum;
}

static void check_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                      const struct cs_lc *c)
{
    struct checker *ch = ctx;
    const fr_t va = evaluate(ch->w, a), vb = evaluate(ch->w, b), vc = evaluate(ch->w, c);
    fr_t product;

    fr_mul(&product, &va, &vb);
    /* An assertion costs a system call, a million of them a minute. */
    if (row != ch->rows++ || !fr_equal(&product, &vc) || !fr_equal(&va, &ch->w->a[row]) ||
        !fr_equal(&vb, &ch->w->b[row]))
        ck_abort_msg("row %lu", (unsigned long)row);
    for (size_t i = 0; i < a->len; i++)
        if (a->terms[i].var & CS_AUX)
            ch->a_aux[a->terms[i].var & ~CS_AUX] = 1;
    for (size_t i = 0; i < b->len; i++)
        *(b->terms[i].var & CS_AUX ? &ch->b_aux[b->terms[i].var & ~CS_AUX]
                                   : &ch->b_input[b->terms[i].var]) = 1;
}

static void assert_density(const uint64_t *words, const uint8_t *bytes, uint32_t len,
                           uint32_t total)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < len; i++) {
        if ((words[i / 64] >> (i % 64) & 1) != bytes[i])
            ck_abort_msg("density of variable %u", i);
        n += bytes[i];
    }
    ck_assert_uint_eq(n, total);
}

START_TEST(witness_assign__satisfies_every_row)
{
    struct c1 *c1 = read_c1(row_names[_i]);
    struct assignment *w = assign(c1, NULL);
    struct checker ch = {.w = w,
                         .a_aux = calloc(w->n_aux, 1),
                         .b_aux = calloc(w->n_aux, 1),
                         .b_input = calloc(w->n_inputs, 1)};
    const struct cs_sink sink = {.row = check_row, .ctx = &ch};

    ck_assert_int_eq(porep_synthesize(c1, 0, &sink, NULL), 0);
    ck_assert_uint_eq(ch.rows, w->n_rows);
    for (uint64_t row = w->n_rows; row < UINT64_C(1) << w->log2_domain; row++)
        if (!fr_is_zero(&w->a[row]) || !fr_is_zero(&w->b[row]))
            ck_abort_msg("row %lu beyond the end", (unsigned long)row);
    assert_density(w->a_aux_density, ch.a_aux, w->n_aux, w->a_aux_total);
    assert_density(w->b_aux_density, ch.b_aux, w->n_aux, w->b_aux_total);
    assert_density(w->b_input_density, ch.b_input, w->n_inputs, w->b_input_total);
    free(ch.a_aux);
    free(ch.b_aux);
    free(ch.b_input);
    assignment_destroy(w);
    c1_destroy(c1);
}
END_TEST

START_TEST(witness_assign__is_the_same_on_any_number_of_threads)
{
    struct c1 *c1 = read_c1("2KiB-sealed");
    struct assignment *one = assign(c1, NULL);

    for (unsigned threads = 2; threads <= 4; threads += 2) {
        struct workers *workers = NULL;
        ck_assert_int_eq(workers_create(threads, &workers, NULL), 0);
        struct assignment *many = assign(c1, workers);
        ck_assert_mem_eq(one->aux, many->aux, one->n_aux * sizeof(fr_t));
        ck_assert_mem_eq(one->a, many->a, sizeof(fr_t) << one->log2_domain);
        ck_assert_mem_eq(one->b, many->b, sizeof(fr_t) << one->log2_domain);
        ck_assert_mem_eq(one->a_aux_density, many->a_aux_density, one->n_aux / 8);
        ck_assert_mem_eq(one->b_aux_density, many->b_aux_density, one->n_aux / 8);
        assignment_destroy(many);
        workers_destroy(workers);
    }
    assignment_destroy(one);
    c1_destroy(c1);
}
END_TEST

/* Which root to falsify. */
enum broken { OTHER_COMM_C, OTHER_COMM_C_OF_NODE, OTHER_COMM_D, OTHER_COMM_R_LAST };
static const char *const complaints[] = {
    [OTHER_COMM_C] =
        "challenge 1: the root of the path of a parent is not the comm_c of the partition",
    [OTHER_COMM_C_OF_NODE] =
        "challenge 1: the root of the path of tree C is not the comm_c of the partition",
    [OTHER_COMM_D] = "challenge 1: the root of the path of tree D is not comm_d",
    [OTHER_COMM_R_LAST] =
        "challenge 1: the root of the path of tree R is not the comm_r_last of the partition",
};

static const uint8_t *place_of(const struct c1 *c1, enum broken broken)
{
    struct challenge_proof proof;

    c1_challenge(c1, 0, 1, &proof);
    switch (broken) {
    case OTHER_COMM_C:
        return proof.parents[3].inclusion.root;
    case OTHER_COMM_C_OF_NODE:
        return proof.c_x.inclusion.root;
    case OTHER_COMM_D:
        return proof.comm_d.root;
    default:
        return proof.comm_r_last.root;
    }
}

/* A copy of `c1` with one root changed. */
static struct c1 *break_c1(const struct c1 *c1, enum broken broken)
{
    struct errmsg err = {{0}};
    struct c1 *out = NULL;
    size_t len;
    const uint8_t *image = c1_bincode(c1, &len);
    uint8_t *copy = malloc(len);

    memcpy(copy, image, len);
    copy[place_of(c1, broken) - image] ^= 1;
    ck_assert_msg(c1_from_bincode(copy, len, &out, &err) == 0, "%s", err.text);
    return out;
}

START_TEST(witness_assign__refuses_roots_that_differ)
{
    struct c1 *good = read_c1("2KiB-sealed"), *bad = break_c1(good, (enum broken)_i);
    const struct cs_sink none = {0};
    struct assignment *w = NULL;
    struct errmsg err = {{0}};

    ck_assert_int_eq(witness_assign(bad, 0, NULL, &w, &err), -EBADMSG);
    ck_assert_ptr_null(w);
    ck_assert_msg(strstr(err.text, complaints[_i]) != NULL, "%s", err.text);
    memset(&err, 0, sizeof(err));
    ck_assert_int_eq(porep_synthesize(bad, 0, &none, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, complaints[_i]) != NULL, "%s", err.text);
    c1_destroy(bad);
    c1_destroy(good);
}
END_TEST

/* A slot is used again and again: what was there before must not matter, and nothing is written beyond the parts. */
START_TEST(witness_fill__in_memory_that_was_used_before)
{
    struct c1 *c1 = read_c1("2KiB-sealed");
    struct assignment *wanted = assign(c1, NULL), found;
    struct assignment_parts parts;
    struct errmsg err;

    assignment_parts(c1_size(c1), &parts);
    uint8_t *witness = aligned_alloc(64, parts.witness_bytes + 64);
    uint8_t *evaluation = aligned_alloc(64, parts.evaluation_bytes + 64);
    memset(witness, 0xa5, parts.witness_bytes + 64);
    memset(evaluation, 0xa5, parts.evaluation_bytes + 64);
    assignment_place(c1_size(c1), witness, evaluation, &found);
    ck_assert_int_eq(witness_fill(c1, 0, NULL, &found, &err), 0);
    ck_assert_mem_eq(wanted->inputs, found.inputs, wanted->n_inputs * sizeof(fr_t));
    ck_assert_mem_eq(wanted->aux, found.aux, wanted->n_aux * sizeof(fr_t));
    ck_assert_mem_eq(wanted->a, found.a, sizeof(fr_t) << wanted->log2_domain);
    ck_assert_mem_eq(wanted->b, found.b, sizeof(fr_t) << wanted->log2_domain);
    ck_assert_mem_eq(wanted->a_aux_density, found.a_aux_density, (wanted->n_aux + 63) / 64 * 8);
    ck_assert_mem_eq(wanted->b_aux_density, found.b_aux_density, (wanted->n_aux + 63) / 64 * 8);
    ck_assert_uint_eq(wanted->a_aux_total, found.a_aux_total);
    ck_assert_uint_eq(wanted->b_aux_total, found.b_aux_total);
    ck_assert_uint_eq(wanted->b_input_total, found.b_input_total);
    for (size_t i = 0; i < 64; i++) {
        ck_assert_uint_eq(witness[parts.witness_bytes + i], 0xa5);
        ck_assert_uint_eq(evaluation[parts.evaluation_bytes + i], 0xa5);
    }
    free(witness);
    free(evaluation);
    assignment_destroy(wanted);
    c1_destroy(c1);
}
END_TEST

START_TEST(assignment_parts__of_the_largest_size)
{
    const struct sector_size *size = sector_size_by_name("64GiB");
    struct assignment_parts parts;

    assignment_parts(size, &parts);
    /* inputs, aux, three densities, each rounded up to 64 bytes */
    ck_assert_uint_eq(parts.witness_bytes, 328 * 32 + (UINT64_C(131076643) + 1) * 32 + 64 +
                                               2 * (UINT64_C(2048073) + 7) * 8);
    ck_assert_uint_eq(parts.evaluation_bytes, 2 * (UINT64_C(32) << 27));
    ck_assert_uint_eq(assignment_bytes(size),
                      sizeof(struct assignment) + parts.witness_bytes + parts.evaluation_bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("witness");
    TCase *tc = tcase_create("witness"), *one = tcase_create("one thread");
    const bool quick = getenv("PROOFD_QUICK");

    if (quick)
        suite_skip("assignments of four of six C1s", "time (PROOFD_QUICK is set)");
    tcase_set_timeout(tc, 300);
    tcase_set_timeout(one, 300);
    tcase_set_tags(one, ONE_THREAD);
    tcase_add_loop_test(tc, witness_assign__equals_the_reference, 0, quick ? 2 : n_names());
    tcase_add_loop_test(one, witness_assign__satisfies_every_row, 0, ARRAY_LEN(row_names));
    tcase_add_test(tc, witness_assign__is_the_same_on_any_number_of_threads);
    tcase_add_loop_test(one, witness_assign__refuses_roots_that_differ, 0, ARRAY_LEN(complaints));
    tcase_add_test(one, witness_fill__in_memory_that_was_used_before);
    tcase_add_test(one, assignment_parts__of_the_largest_size);
    suite_add_tcase(s, tc);
    suite_add_tcase(s, one);
    return suite_run(s);
}
