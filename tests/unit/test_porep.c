/*
 * The structure of the PoRep circuit for the sizes up to 1 GiB and for odd shapes: porep-circuit 7.1 to 7.4. The two
 * big sizes are in test_porep_large.c.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/porep_digest.h"
#include "tests/lib/porep_totals.h"
#include "tests/lib/suite.h"

START_TEST(porep_counts__equal_the_recorded_totals)
{
    const struct porep_totals *t = &porep_totals[_i];
    struct porep_counts n;

    porep_counts(sector_size_by_name(t->name), &n);
    ck_assert_uint_eq(n.inputs, t->inputs);
    ck_assert_uint_eq(n.aux, t->aux);
    ck_assert_uint_eq(n.constraints, t->constraints);
    ck_assert_uint_eq(n.rows, t->rows);
    ck_assert_uint_eq(n.log2_domain, t->log2_domain);
}
END_TEST

START_TEST(porep_synthesize_blank__equals_the_recorded_structure)
{
    const struct porep_totals *t = &porep_totals[_i];
    struct porep_structure got;

    porep_structure(sector_size_by_name(t->name), NULL, NULL, &got);
    ck_assert_uint_eq(got.inputs, t->inputs);
    ck_assert_uint_eq(got.aux, t->aux);
    ck_assert_uint_eq(got.constraints, t->constraints);
    ck_assert_uint_eq(got.a_aux_density, t->a_aux);
    ck_assert_uint_eq(got.b_aux_density, t->b_aux);
    ck_assert_uint_eq(got.b_input_density, 1);
    ck_assert_str_eq(got.digest, t->digest);
}
END_TEST

START_TEST(porep_synthesize_blank__odd_shapes)
{
    const struct porep_odd *odd = &porep_odd[_i];
    struct porep_structure got;

    porep_structure(&odd->size, NULL, NULL, &got);
    ck_assert_uint_eq(got.inputs, 22);
    ck_assert_uint_eq(got.constraints, odd->constraints);
    ck_assert_str_eq(got.digest, odd->digest);
    if (odd->size.layers == 11) {
        ck_assert_uint_eq(got.aux, 7232200);
        ck_assert_uint_eq(got.a_aux_density, 7208979);
        ck_assert_uint_eq(got.b_aux_density, 1840033);
    }
}
END_TEST

/* porep-circuit 7.4: the first time that a step is met, unless `nth` says which. */
static const struct landmark {
    const char *step;
    uint32_t nth;
    struct {
        uint64_t rows;
        uint32_t aux, inputs;
    } at[2]; /* 2 KiB, 32 GiB */
} landmarks[] = {
    {"challenge", 0, {{571, 571, 4}, {571, 571, 4}}},
    {"tree D inclusion", 0, {{571, 572, 4}, {571, 572, 4}}},
    {"parent column", 0, {{272865, 272582, 5}, {1362033, 1360622, 5}}},
    {"parent inclusion", 0, {{273176, 272895, 5}, {1362631, 1361231, 5}}},
    {"parent column", 1, {{274238, 273969, 6}, {1367933, 1366601, 6}}},
    {"parent column", 6, {{281103, 280904, 11}, {1397433, 1396496, 11}}},
    {"challenge bits", 0, {{292087, 292000, 19}, {1444633, 1444328, 19}}},
    {"parent bits", 0, {{292152, 292064, 20}, {1444698, 1444392, 20}}},
    {"label", 0, {{293688, 293594, 20}, {1446234, 1445922, 20}}},
    {"parent bits", 1, {{815957, 815343, 20}, {1968503, 1967671, 20}}},
    {"label", 1, {{819541, 818913, 20}, {1972087, 1971241, 20}}},
    {"encoding", 0, {{1341810, 1340662, 20}, {7227033, 7220861, 20}}},
    {"tree R inclusion", 0, {{1341811, 1340663, 20}, {7227034, 7220862, 20}}},
    {"column hash", 0, {{1342873, 1341737, 21}, {7232336, 7226232, 21}}},
    {"tree C inclusion", 0, {{1343184, 1342048, 21}, {7232934, 7226830, 21}}},
    {"challenge", 1, {{1344246, 1343122, 22}, {7238236, 7232200, 22}}},
};

struct steps {
    int size;                           /* index into landmark.at */
    uint32_t met[ARRAY_LEN(landmarks)]; /* how often the step of each landmark was met */
    uint32_t checked;
};

static void check_step(void *ctx, const char *name, const struct cs *cs)
{
    struct steps *s = ctx;

    for (size_t i = 0; i < ARRAY_LEN(landmarks); i++)
        if (strcmp(landmarks[i].step, name) == 0 && s->met[i]++ == landmarks[i].nth) {
            ck_assert_uint_eq(cs->n_rows, landmarks[i].at[s->size].rows);
            ck_assert_uint_eq(cs->n_aux, landmarks[i].at[s->size].aux);
            ck_assert_uint_eq(cs->n_inputs, landmarks[i].at[s->size].inputs);
            s->checked++;
        }
}

START_TEST(porep_synthesize_blank__passes_the_landmarks)
{
    struct steps steps = {.size = _i};
    struct sector_size size = *sector_size_by_name(_i == 0 ? "2KiB" : "32GiB");
    const struct cs_sink sink = {.step = check_step, .ctx = &steps};

    size.challenges = 2;
    ck_assert_int_eq(porep_synthesize_blank(&size, &sink, NULL), 0);
    ck_assert_uint_eq(steps.checked, ARRAY_LEN(landmarks));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("porep");
    TCase *tc = tcase_create("porep");

    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, porep_counts__equal_the_recorded_totals, 0, POREP_TOTALS);
    int sizes = POREP_TOTALS_SMALL;
    if (getenv("PROOFD_QUICK")) {
        sizes = 2;
        suite_skip("structure of sizes from 16KiB", "time (PROOFD_QUICK is set)");
    }
    tcase_add_loop_test(tc, porep_synthesize_blank__equals_the_recorded_structure, 0, sizes);
    tcase_add_loop_test(tc, porep_synthesize_blank__odd_shapes, 0, POREP_ODD);
    tcase_add_loop_test(tc, porep_synthesize_blank__passes_the_landmarks, 0, 2);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
