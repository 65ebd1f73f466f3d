/*
 * The structure of the PoRep circuit for the sizes up to 1 GiB and for odd shapes: porep-circuit 7.1 to 7.4. The two
 * big sizes are in test_porep_large.c.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/porep_digest.h"
#include "tests/lib/suite.h"

/* porep-circuit 7.2 */
static const struct totals {
    const char *name;
    uint32_t inputs, aux;
    uint64_t constraints, rows;
    uint32_t log2_domain, a_aux, b_aux;
    const char *digest; /* porep-circuit 7.3; NULL: not computed here */
} totals[] = {
    {"2KiB", 40, 2685673, 2687921, 2687961, 22, 2674908, 685521,
     "dc15b615135b87fca8169bb29ec71946ee7d5652ac57adfe0ffb789af6d81000"},
    {"4KiB", 40, 2786423, 2788733, 2788773, 22, 2773158, 716039,
     "ac582070844434c66b146669b377daec8ffb10211a2b489ab47481e4db885a5a"},
    {"16KiB", 40, 2974867, 2977173, 2977213, 22, 2959930, 766963,
     "aefe88588dd428d674464bb475623ca2807cb1359ee458a1990c8271dc060454"},
    {"32KiB", 40, 3075617, 3077985, 3078025, 22, 3058180, 797481,
     "c6d6b7ffdd842cf3ef9466a280b77c7d90d7faead2a4827f6eb2076a879ccdfd"},
    {"8MiB", 40, 3842449, 3844929, 3844969, 22, 3814996, 1011289,
     "c81064f99ce13c72ce24cde7bcdb792f10fae18587a68d8937615c7b5937bb43"},
    {"16MiB", 40, 3943199, 3945741, 3945781, 22, 3913246, 1041807,
     "1164b030fa9d43f527c39f42c9d49d35c00637c72985fd55c60a62e19f889074"},
    {"512MiB", 40, 4420837, 4423433, 4423473, 23, 4385040, 1174173,
     "b4e1a81021ecec4a659994eeb1086236522aa58217a16577c4056e0b2e20dc17"},
    {"1GiB", 40, 4521587, 4524245, 4524285, 23, 4483290, 1204691,
     "76c36f2514caf23e0a529a5b346111ebdda9da15ef7b631da30b94dfa4387def"},
    {"32GiB", 328, 130169893, 130278541, 130278869, 27, 129753292, 33112281, NULL},
    {"64GiB", 328, 131076643, 131185849, 131186177, 27, 130637542, 33386943, NULL},
};

START_TEST(porep_counts__equal_the_recorded_totals)
{
    const struct totals *t = &totals[_i];
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
    const struct totals *t = &totals[_i];
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

/* Circuits that no sector has: porep-circuit 7.1, 7.2 and 7.3. */
static const struct odd {
    struct sector_size size;
    uint64_t constraints;
    const char *digest;
} odd[] = {
    {{.name = "2-0-0",
      .nodes = 8,
      .log2_nodes = 3,
      .layers = 2,
      .base_levels = 3,
      .base_arity = 2,
      .challenges = 1},
     1206212,
     "ab1240fec0a41f27e46b9bc73ed777b94c99e67cee337418085b282768b3b9e2"},
    {{.name = "8-0-0",
      .nodes = 8,
      .log2_nodes = 3,
      .layers = 2,
      .base_levels = 1,
      .base_arity = 8,
      .challenges = 1},
     1199620,
     "1802615e5784fc96683732869bdaf20e2dcbfc8bff706739e35890d9056edb7e"},
    {{.name = "8-4-0",
      .nodes = 32,
      .log2_nodes = 5,
      .layers = 2,
      .base_levels = 1,
      .base_arity = 8,
      .sub_arity = 4,
      .challenges = 1},
     1296576,
     "d107a54ee183d0eb6b11e0e6a4b3cbe07f9bd8eeaf8d57cc102e32154b8d075c"},
    {{.name = "8-4-2",
      .nodes = 64,
      .log2_nodes = 6,
      .layers = 2,
      .base_levels = 1,
      .base_arity = 8,
      .sub_arity = 4,
      .top_arity = 2,
      .challenges = 1},
     1346982,
     "3db4c903fea0f0b937891da4c622365a13d8bd08b36d5b96ffe035cf888413af"},
    {{.name = "32GiB, one challenge",
      .nodes = 1 << 30,
      .log2_nodes = 30,
      .layers = 11,
      .base_levels = 9,
      .base_arity = 8,
      .sub_arity = 8,
      .challenges = 1},
     7238236,
     "c778141740d7705bd5c5e9c437232a77e7b9480e54bc5ed2bc44cbb9d18d45a5"},
};

START_TEST(porep_synthesize_blank__odd_shapes)
{
    struct porep_structure got;

    porep_structure(&odd[_i].size, NULL, NULL, &got);
    ck_assert_uint_eq(got.inputs, 22);
    ck_assert_uint_eq(got.constraints, odd[_i].constraints);
    ck_assert_str_eq(got.digest, odd[_i].digest);
    if (odd[_i].size.layers == 11) {
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
    tcase_add_loop_test(tc, porep_counts__equal_the_recorded_totals, 0, ARRAY_LEN(totals));
    int sizes = 8;
    if (getenv("PROOFD_QUICK")) {
        sizes = 2;
        suite_skip("structure of sizes from 16KiB", "time (PROOFD_QUICK is set)");
    }
    tcase_add_loop_test(tc, porep_synthesize_blank__equals_the_recorded_structure, 0, sizes);
    tcase_add_loop_test(tc, porep_synthesize_blank__odd_shapes, 0, ARRAY_LEN(odd));
    tcase_add_loop_test(tc, porep_synthesize_blank__passes_the_landmarks, 0, 2);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
