/*
 * A and B from the compact witness equal what the gadgets' rows give over the expanded one, term by term: for honest witnesses, made-up
 * ones, and bits and values that no gadget would ever leave.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_reader.h"
#include "numa/circuit/circuit_plan.h"
#include "numa/circuit/compact.h"
#include "numa/circuit/witness.h"
#include "tests/lib/files.h"
#include "tests/lib/random_challenge.h"
#include "tests/lib/suite.h"

#define SEED 55021u

static void *must(void *p)
{
    ck_assert_ptr_nonnull(p);
    return p;
}

/* A witness with room for its rows. */
struct setting {
    struct circuit *circuit;
    struct compact *w;
    fr_t *aux, *a, *b;
};

static void setting_init(struct setting *s, const struct sector_size *size)
{
    ck_assert_int_eq(circuit_create(size, &s->circuit, NULL), 0);
    ck_assert_int_eq(compact_create(s->circuit, &s->w, NULL), 0);
    const size_t domain = (size_t)1 << s->circuit->log2_domain;
    s->aux = must(malloc(s->circuit->n_aux * sizeof(fr_t)));
    s->a = must(malloc(domain * sizeof(fr_t)));
    s->b = must(malloc(domain * sizeof(fr_t)));
}

static void setting_fini(struct setting *s)
{
    free(s->aux);
    free(s->a);
    free(s->b);
    compact_destroy(s->w);
    circuit_destroy(s->circuit);
}

static fr_t evaluate(const struct setting *s, const struct cs_lc *lc)
{
    fr_t sum = {{0}}, t;

    for (size_t i = 0; i < lc->len; i++) {
        const cs_var var = lc->terms[i].var;
        fr_mul(&t, &lc->terms[i].coeff, var & CS_AUX ? &s->aux[var & ~CS_AUX] : &s->w->values[var]);
        fr_add(&sum, &sum, &t);
    }
    return sum;
}

static void check_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                      const struct cs_lc *c)
{
    const struct setting *s = ctx;
    const fr_t va = evaluate(s, a), vb = evaluate(s, b);

    (void)c;
    if (!fr_equal(&va, &s->a[row]) || !fr_equal(&vb, &s->b[row]))
        ck_abort_msg("row %lu", (unsigned long)row);
}

/* Compares all rows with those of the gadgets, evaluated over the expanded witness. */
static void check(struct setting *s, struct workers *workers)
{
    const size_t domain = (size_t)1 << s->circuit->log2_domain;
    const struct cs_sink sink = {.row = check_row, .ctx = s};

    memset(s->a, 0xa5, domain * sizeof(fr_t));
    memset(s->b, 0xa5, domain * sizeof(fr_t));
    compact_expand(s->w, 0, s->circuit->n_aux, s->aux);
    compact_all_rows(s->w, workers, s->a, s->b);
    ck_assert_int_eq(porep_synthesize_blank(s->circuit->size, &sink, NULL), 0);
    for (size_t i = s->circuit->n_rows; i < domain; i++)
        if (!fr_is_zero(&s->a[i]) || !fr_is_zero(&s->b[i]))
            ck_abort_msg("row %zu beyond the end", i);
}

/* A circuit of one challenge with all the templates of 32 GiB, and small ones. */
static struct sector_size size_of(int i)
{
    static const char *const names[] = {"2KiB", "32KiB", "16MiB", "32GiB"};
    struct sector_size size = *sector_size_by_name(names[i]);

    size.challenges = 1;
    return size;
}
#define SIZES 4
#define SIZES_QUICK 1

START_TEST(compact_all_rows__equal_the_gadgets)
{
    const struct sector_size size = size_of(_i);
    struct porep_challenge *challenges = random_challenges(&size, SEED);
    struct workers *workers = NULL;
    struct porep_roots roots;
    struct setting s;

    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    setting_init(&s, &size);
    random_roots(&roots, SEED);
    compact_compute(s.w, &roots, challenges, workers);
    check(&s, workers);
    free(challenges);
    setting_fini(&s);
    workers_destroy(workers);
}
END_TEST

static uint64_t random_word(void)
{
    return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

/* Any bits and any values, except where a place is not there to be used. */
static void fill_with_rubbish(struct compact *w)
{
    const struct circuit *c = w->circuit;

    for (uint32_t i = 0; i + 1 < c->aux_words; i++)
        w->bits[i] = random_word();
    w->bits[c->aux_words - 2] &= UINT64_MAX >> (63 - (c->n_aux - 1) % 64);
    w->bits[c->aux_words - 1] = 0;
    for (uint32_t i = 0; i < c->n_values; i++) {
        uint64_t limbs[4] = {random_word(), random_word(), random_word(), random_word() >> 2};
        blst_fr_from_uint64(&w->values[i], limbs);
        if (i >= c->n_inputs)
            w->bits[c->value_aux[i - c->n_inputs] / 64] &=
                ~(UINT64_C(1) << c->value_aux[i - c->n_inputs] % 64);
    }
    w->values[0] = fr_from_u64(1);
}

START_TEST(compact_all_rows__of_a_witness_that_satisfies_nothing)
{
    const struct sector_size size = size_of(_i);
    struct setting s;

    srandom(SEED);
    setting_init(&s, &size);
    fill_with_rubbish(s.w);
    check(&s, NULL);
    setting_fini(&s);
}
END_TEST

/* All bits 1: sums at their largest. */
START_TEST(compact_all_rows__of_a_witness_of_ones)
{
    const struct sector_size size = size_of(getenv("PROOFD_QUICK") ? 0 : SIZES - 1);
    struct setting s;

    setting_init(&s, &size);
    fill_with_rubbish(s.w);
    memset(s.w->bits, 0xff, (s.circuit->aux_words - 2) * sizeof(uint64_t));
    for (uint32_t i = s.circuit->n_inputs; i < s.circuit->n_values; i++)
        s.w->values[i] = fr_from_u64(1);
    check(&s, NULL);
    setting_fini(&s);
}
END_TEST

START_TEST(compact_all_rows__equal_the_assignment)
{
    static const char *const names[] = {"2KiB-synthetic", "512MiB-sparse"};
    struct assignment *w = NULL;
    struct errmsg err = {{0}};
    struct c1_extra extra;
    struct c1 *c1 = NULL;
    struct setting s;

    ck_assert_msg(c1_read_file(c1_path(names[_i], "bare.json.zst"), C1_CHECK_FORM, NULL, &c1,
                               &extra, &err) == 0,
                  "%s", err.text);
    ck_assert_int_eq(witness_assign(c1, 0, NULL, &w, &err), 0);
    setting_init(&s, c1_size(c1));
    ck_assert_int_eq(compact_make(s.w, c1, 0, NULL, &err), 0);
    compact_all_rows(s.w, NULL, s.a, s.b);
    ck_assert_int_eq(memcmp(w->a, s.a, sizeof(fr_t) << w->log2_domain), 0);
    ck_assert_int_eq(memcmp(w->b, s.b, sizeof(fr_t) << w->log2_domain), 0);
    const size_t words = s.circuit->aux_words - 1;
    ck_assert_mem_eq(w->a_aux_density, s.circuit->a_density, words * sizeof(uint64_t));
    ck_assert_mem_eq(w->b_aux_density, s.circuit->b_density, words * sizeof(uint64_t));
    ck_assert_uint_eq(w->b_input_total, CIRCUIT_B_INPUTS);
    assignment_destroy(w);
    setting_fini(&s);
    c1_destroy(c1);
}
END_TEST

/* Ranges that begin and end anywhere, in memory that is aligned to nothing in particular. */
START_TEST(compact_rows__any_range_is_part_of_the_whole)
{
    const struct sector_size size = size_of(0);
    struct setting s;
    const size_t room = 70000;
    uint64_t *memory = must(malloc((2 * 4 * room + 1) * sizeof(uint64_t)));

    srandom(SEED);
    setting_init(&s, &size);
    fill_with_rubbish(s.w);
    compact_all_rows(s.w, NULL, s.a, s.b);
    for (int i = 0; i < 500; i++) {
        fr_t *a = (fr_t *)(memory + i % 2), *b = a + room;
        const uint64_t first = random_word() % (s.circuit->n_rows + 1),
                       len = random_word() % (i % 5 ? 300 : room);
        const uint64_t end = min_size(first + len, s.circuit->n_rows);
        compact_rows(s.w, first, end, a, b);
        ck_assert_int_eq(memcmp(a, s.a + first, (end - first) * sizeof(fr_t)), 0);
        ck_assert_int_eq(memcmp(b, s.b + first, (end - first) * sizeof(fr_t)), 0);
    }
    setting_fini(&s);
    free(memory);
}
END_TEST

/* What makes evaluation fast: nearly no row is left to the general way. */
START_TEST(circuit_plan__knows_most_rows)
{
    struct circuit *c = NULL;
    uint64_t rows[4] = {0};

    ck_assert_int_eq(circuit_create(sector_size_by_name("32GiB"), &c, NULL), 0);
    for (uint32_t i = 0; i < c->n_instances; i++) {
        const struct circuit_plan_part *part = &c->plan->parts[c->instances[i].template_index];
        uint32_t next = 0;
        for (uint32_t k = part->first_run; k < part->first_run + part->n_runs; k++) {
            if (c->plan->runs[k].row != next)
                ck_abort_msg("run %u", k);
            next += c->plan->runs[k].n_rows;
            rows[c->plan->runs[k].kind] += c->plan->runs[k].n_rows;
        }
        if (next != c->templates[c->instances[i].template_index].n_rows)
            ck_abort_msg("instance %u", i);
    }
    ck_assert_uint_eq(rows[0] + rows[1] + rows[2] + rows[3], c->n_rows);
    ck_assert_uint_gt(rows[CIRCUIT_RUN_SMALL], c->n_rows / 100 * 98);
    ck_assert_uint_lt(rows[CIRCUIT_RUN_GENERAL], c->n_values);
    circuit_destroy(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compact_rows");
    TCase *tc = tcase_create("compact_rows"), *one = tcase_create("one thread");

    printf("seed %u\n", SEED);
    tcase_set_timeout(tc, 600);
    tcase_set_timeout(one, 600);
    tcase_set_tags(one, ONE_THREAD);
    int sizes = SIZES;
    if (getenv("PROOFD_QUICK")) {
        sizes = SIZES_QUICK;
        suite_skip("rows of sizes from 32KiB", "time (PROOFD_QUICK is set)");
    }
    tcase_add_loop_test(tc, compact_all_rows__equal_the_gadgets, 0, sizes);
    tcase_add_loop_test(one, compact_all_rows__of_a_witness_that_satisfies_nothing, 0, sizes);
    tcase_add_test(one, compact_all_rows__of_a_witness_of_ones);
    tcase_add_loop_test(one, compact_all_rows__equal_the_assignment, 0, 2);
    tcase_add_test(one, compact_rows__any_range_is_part_of_the_whole);
    tcase_add_test(one, circuit_plan__knows_most_rows);
    suite_add_tcase(s, tc);
    suite_add_tcase(s, one);
    return suite_run(s);
}
