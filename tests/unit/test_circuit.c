/*
 * The circuit as tables gives the rows that are recorded of it, every size and the odd shapes, made anew each time. The two large sizes
 * take half a minute of two cores; PROOFD_QUICK=1 leaves them out.
 */
#include "numa/circuit/circuit.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "numa/circuit/porep.h"
#include "tests/lib/porep_totals.h"
#include "tests/lib/r1cs.h"
#include "tests/lib/suite.h"

static struct circuit *create(const struct sector_size *size)
{
    struct errmsg err = {{0}};
    struct circuit *c = NULL;

    ck_assert_msg(circuit_create(size, &c, &err) == 0, "%s", err.text);
    return c;
}

/* Digests rows, and notes which variables are in them. */
struct recorder {
    struct r1cs_digest *digest;
    uint64_t constraints, rows;
    uint64_t *a_aux, *b_aux;
    uint32_t others; /* inputs in B that are not ONE */
};

static void mark(uint64_t *bitmap, const struct cs_lc *lc)
{
    for (size_t i = 0; i < lc->len; i++)
        if (lc->terms[i].var & CS_AUX)
            bitmap[(lc->terms[i].var & ~CS_AUX) / 64] |= UINT64_C(1) << lc->terms[i].var % 64;
}

static void record_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                       const struct cs_lc *c)
{
    struct recorder *r = ctx;

    r->rows++;
    if (row >= r->constraints)
        return;
    r1cs_digest_row(r->digest, row, a, b, c);
    mark(r->a_aux, a);
    mark(r->b_aux, b);
    for (size_t i = 0; i < b->len; i++)
        r->others += !(b->terms[i].var & CS_AUX) && b->terms[i].var != CS_ONE;
}

/* What a circuit's rows say. Safe in any thread: asserts nothing. */
struct found {
    char digest[R1CS_DIGEST_HEX];
    uint64_t rows;
    uint32_t others;
    bool densities;
    int ret;
};

static void look(const struct circuit *c, struct found *out)
{
    const size_t bytes = c->aux_words * sizeof(uint64_t);
    struct recorder r = {.digest = r1cs_digest_create(),
                         .constraints = c->n_rows - c->n_inputs,
                         .a_aux = calloc(1, bytes),
                         .b_aux = calloc(1, bytes)};
    const struct cs_sink sink = {.row = record_row, .ctx = &r};
    const struct cs counts = {.n_inputs = c->n_inputs, .n_aux = c->n_aux, .n_rows = r.constraints};

    out->ret = circuit_rows(c, &sink, NULL);
    r1cs_digest_finish(r.digest, &counts, out->digest);
    out->rows = r.rows;
    out->others = r.others;
    out->densities =
        memcmp(r.a_aux, c->a_density, bytes) == 0 && memcmp(r.b_aux, c->b_density, bytes) == 0;
    r1cs_digest_destroy(r.digest);
    free(r.a_aux);
    free(r.b_aux);
}

static void assert_found(const struct circuit *c, const struct found *found, const char *digest)
{
    ck_assert_int_eq(found->ret, 0);
    ck_assert_uint_eq(found->rows, c->n_rows);
    ck_assert_uint_eq(found->others, 0);
    ck_assert(found->densities);
    ck_assert_str_eq(found->digest, digest);
}

/* The rank of every variable, and of all of them. */
static void assert_ranks(const uint64_t *density, const uint32_t *rank, uint32_t len,
                         uint32_t total, uint32_t words)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < len; i++) {
        if (circuit_density_rank(density, rank, i) != n)
            ck_abort_msg("rank of variable %u", i);
        n += density[i / 64] >> (i % 64) & 1;
    }
    ck_assert_uint_eq(n, total);
    ck_assert_uint_eq(rank[(words + CIRCUIT_RANK_WORDS - 1) / CIRCUIT_RANK_WORDS], total);
}

static void assert_totals(const struct circuit *c, const struct porep_totals *t)
{
    ck_assert_uint_eq(c->n_inputs, t->inputs);
    ck_assert_uint_eq(c->n_aux, t->aux);
    ck_assert_uint_eq(c->n_rows, t->rows);
    ck_assert_uint_eq(c->log2_domain, t->log2_domain);
    assert_ranks(c->a_density, c->a_rank, c->n_aux, t->a_aux, c->aux_words);
    assert_ranks(c->b_density, c->b_rank, c->n_aux, t->b_aux, c->aux_words);
}

START_TEST(circuit_rows__equal_the_recorded_ones)
{
    const struct porep_totals *t = &porep_totals[_i];
    struct circuit *c = create(sector_size_by_name(t->name));
    struct found found;

    look(c, &found);
    assert_found(c, &found, t->digest);
    assert_totals(c, t);
    circuit_destroy(c);
}
END_TEST

START_TEST(circuit_rows__equal_the_recorded_ones_of_odd_shapes)
{
    struct circuit *c = create(&porep_odd[_i].size);
    struct found found;

    look(c, &found);
    ck_assert_uint_eq(c->n_rows - c->n_inputs, porep_odd[_i].constraints);
    assert_found(c, &found, porep_odd[_i].digest);
    circuit_destroy(c);
}
END_TEST

struct large {
    struct circuit *circuit;
    struct found found;
};

static void *look_large(void *arg)
{
    struct large *l = arg;

    look(l->circuit, &l->found);
    return NULL;
}

/* A digest has no parallelism in it, so both are made at once. */
START_TEST(circuit_rows__equal_the_recorded_ones_of_large_sizes)
{
    struct large large[POREP_TOTALS - POREP_TOTALS_SMALL];
    pthread_t thread[ARRAY_LEN(large)];

    for (size_t i = 0; i < ARRAY_LEN(large); i++) {
        large[i].circuit = create(sector_size_by_name(porep_totals[POREP_TOTALS_SMALL + i].name));
        ck_assert_int_eq(pthread_create(&thread[i], NULL, look_large, &large[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(large); i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < ARRAY_LEN(large); i++) {
        const struct porep_totals *t = &porep_totals[POREP_TOTALS_SMALL + i];
        assert_found(large[i].circuit, &large[i].found, t->digest);
        assert_totals(large[i].circuit, t);
        circuit_destroy(large[i].circuit);
    }
}
END_TEST

/* Takes the variables that the gadgets call values, one after another. */
struct kinds {
    const struct circuit *circuit;
    uint32_t n_values;
};

static void take_value(void *ctx, uint32_t index, const fr_t *value)
{
    struct kinds *k = ctx;
    const uint32_t at = k->n_values++;

    (void)value;
    if (at >= k->circuit->n_values - k->circuit->n_inputs || k->circuit->value_aux[at] != index)
        ck_abort_msg("value %u is not aux variable %u", at, index);
}

static void take_bit(void *ctx, uint32_t index, bool value)
{
    (void)ctx, (void)index, (void)value;
}

START_TEST(circuit_create__calls_bits_what_the_gadgets_call_so)
{
    static const char *const names[] = {"2KiB", "32KiB", "512MiB", "32GiB"};
    const struct sector_size *size = sector_size_by_name(names[_i]);
    struct kinds kinds = {.circuit = create(size)};
    const struct cs_sink sink = {.aux = take_value, .bit = take_bit, .ctx = &kinds};

    ck_assert_int_eq(porep_synthesize_blank(size, &sink, NULL), 0);
    ck_assert_uint_eq(kinds.n_values, kinds.circuit->n_values - kinds.circuit->n_inputs);
    circuit_destroy((struct circuit *)kinds.circuit);
}
END_TEST

/* Nobody may read past an array, or take a zero for a term. */
START_TEST(circuit_create__leaves_nothing_out_of_range)
{
    struct circuit *c = create(sector_size_by_name("2KiB"));

    for (int side = 0; side < CIRCUIT_SIDES; side++)
        for (uint32_t i = 0; i < c->sides[side].first[c->template_rows]; i++) {
            const uint32_t coeff = c->sides[side].terms[i].coeff;
            if (coeff >= c->n_coeffs || coeff == CIRCUIT_SMALL)
                ck_abort_msg("coefficient %u", coeff);
        }
    for (uint32_t i = 0; i < c->n_coeffs; i++)
        for (uint32_t k = 0; k < i; k++)
            if (fr_equal(&c->coeffs[i], &c->coeffs[k]))
                ck_abort_msg("coefficient %u is there twice", i);
    for (int i = -CIRCUIT_SMALL; i <= CIRCUIT_SMALL; i++) {
        fr_t sum = fr_from_u64(CIRCUIT_SMALL), want = fr_from_u64((uint64_t)(i + CIRCUIT_SMALL));
        fr_add(&sum, &sum, &c->coeffs[i + CIRCUIT_SMALL]);
        ck_assert(fr_equal(&sum, &want));
    }
    circuit_destroy(c);
}
END_TEST

/* Counted anew from the densities, which are those of the rows. */
static void assert_points(const struct circuit *c, const uint32_t *points, const uint64_t *density,
                          uint32_t n_inputs)
{
    uint32_t next = n_inputs, value = 0;

    for (; value < c->n_inputs; value++)
        ck_assert_uint_eq(points[value], value < n_inputs ? value : CIRCUIT_NO_POINT);
    for (uint32_t i = 0; i < c->n_aux; i++) {
        const bool dense = density[i / 64] >> (i % 64) & 1;
        if (value < c->n_values && c->value_aux[value - c->n_inputs] == i) {
            if (points[value] != (dense ? next : CIRCUIT_NO_POINT))
                ck_abort_msg("point of value %u", value);
            value++;
        }
        next += dense;
    }
    ck_assert_uint_eq(value, c->n_values);
}

START_TEST(circuit_create__says_which_points_a_value_has)
{
    static const char *const names[] = {"2KiB", "1GiB", "64GiB"};
    struct circuit *c = create(sector_size_by_name(names[_i]));

    assert_points(c, c->a_points, c->a_density, c->n_inputs);
    assert_points(c, c->b_points, c->b_density, CIRCUIT_B_INPUTS);
    circuit_destroy(c);
}
END_TEST

static void *ask(void *out)
{
    if (circuit_of_size(sector_size_by_name("4KiB"), out, NULL) < 0)
        *(const struct circuit **)out = NULL;
    return NULL;
}

START_TEST(circuit_of_size__is_one_for_all_who_ask)
{
    const struct circuit *got[4];
    pthread_t thread[ARRAY_LEN(got)];

    for (size_t i = 0; i < ARRAY_LEN(got); i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, ask, &got[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(got); i++)
        pthread_join(thread[i], NULL);
    ck_assert_ptr_nonnull(got[0]);
    ck_assert_str_eq(got[0]->size->name, "4KiB");
    for (size_t i = 1; i < ARRAY_LEN(got); i++)
        ck_assert_ptr_eq(got[i], got[0]);
}
END_TEST

START_TEST(circuit_bytes__stay_below_96_MB)
{
    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        struct circuit *c = create(size);
        ck_assert_uint_lt(circuit_bytes(c), 96 * 1000 * 1000);
        circuit_destroy(c);
    }
}
END_TEST

int main(void)
{
    const bool quick = getenv("PROOFD_QUICK");
    Suite *s = suite_create("circuit");
    TCase *tc = tcase_create("circuit"), *one = tcase_create("one thread");

    tcase_set_timeout(tc, 1800);
    tcase_set_timeout(one, 1800);
    tcase_set_tags(one, ONE_THREAD);
    tcase_add_loop_test(one, circuit_rows__equal_the_recorded_ones, 0,
                        quick ? 2 : POREP_TOTALS_SMALL);
    tcase_add_loop_test(one, circuit_rows__equal_the_recorded_ones_of_odd_shapes, 0, POREP_ODD);
    tcase_add_loop_test(one, circuit_create__calls_bits_what_the_gadgets_call_so, 0, quick ? 2 : 4);
    tcase_add_test(one, circuit_create__leaves_nothing_out_of_range);
    tcase_add_loop_test(one, circuit_create__says_which_points_a_value_has, 0, 3);
    tcase_add_test(tc, circuit_of_size__is_one_for_all_who_ask);
    tcase_add_test(one, circuit_bytes__stay_below_96_MB);
    if (quick)
        suite_skip("rows of sizes from 16KiB", "time (PROOFD_QUICK is set)");
    else
        tcase_add_test(tc, circuit_rows__equal_the_recorded_ones_of_large_sizes);
    suite_add_tcase(s, tc);
    suite_add_tcase(s, one);
    return suite_run(s);
}
