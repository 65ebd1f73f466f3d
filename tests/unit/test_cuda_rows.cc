/*
 * The rows and the lists of points that the CUDA backend takes from a circuit, compiled for the host, against the circuit's own
 * functions.
 */
#include "gpu/cuda/circuit_extract.cuh"
#include "gpu/cuda/fixed_digits.cuh"
#include "gpu/cuda/qap_terms.cuh"

#include <check.h>
#include <cstdio>

extern "C" {
#include "numa/circuit/compact.h"
#include "tests/lib/circuit_qap.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"
}

static constexpr uint64_t SEED = 0x726f7773;
static struct errmsg err;

/* Of millions: an assertion of Check's writes to its parent each time, also where it holds. */
static void expect_at(bool holds, const char *what, size_t i)
{
    if (!holds)
        ck_abort_msg("%s %zu", what, i);
}

static fr as_fr(const fr_t &v)
{
    fr r;

    memcpy(&r, &v, sizeof(r));
    return r;
}

static struct circuit *circuit_of(const char *name)
{
    struct circuit *c = nullptr;

    ck_assert_msg(circuit_create(sector_size_by_name(name), &c, &err) == 0, "%s", err.text);
    return c;
}

/* Any bits and values do: nobody asks whether rows are satisfied. */
static struct compact *random_witness(const struct circuit *c)
{
    struct random rng = {SEED};
    struct compact *w = nullptr;

    ck_assert_msg(compact_create(c, &w, &err) == 0, "%s", err.text);
    for (uint32_t i = 0; i < c->aux_words; i++)
        w->bits[i] = random_u64(&rng);
    for (uint32_t i = 0; i < c->n_values - c->n_inputs; i++)
        w->bits[c->value_aux[i] / 64] &= ~(UINT64_C(1) << c->value_aux[i] % 64);
    for (uint32_t i = 0; i < c->n_values; i++)
        w->values[i] = i % 5 ? random_fr(&rng) : fr_from_u64(i % 3);
    w->values[0] = fr_from_u64(1);
    return w;
}

START_TEST(rows__equal_the_circuits)
{
    struct circuit *c = circuit_of("32KiB"); /* paths of all arities */
    struct compact *w = random_witness(c);
    const circuit_extract x = extract_circuit(c);
    const row_tables t = host_row_tables(c, x);
    const row_witness bits = {(const fr *)w->values, (const uint32_t *)w->bits};
    std::vector<fr_t> a(c->n_rows), b(c->n_rows);

    compact_rows(w, 0, c->n_rows, a.data(), b.data());
    for (uint32_t row = 0; row < c->n_rows; row++) {
        const row_place at = place_of_row(t, row);
        const fr got_a = row_value(t, t.sides[CIRCUIT_A], at, bits);
        const fr got_b = row_value(t, t.sides[CIRCUIT_B], at, bits);
        expect_at(memcmp(&got_a, &a[row], sizeof(got_a)) == 0, "A of row", row);
        expect_at(memcmp(&got_b, &b[row], sizeof(got_b)) == 0, "B of row", row);
    }
    compact_destroy(w);
    circuit_destroy(c);
}
END_TEST

/* Goes through the variables once, as the queries are defined. */
START_TEST(tails__list_what_is_no_bit)
{
    struct circuit *c = circuit_of("2KiB");
    const circuit_extract x = extract_circuit(c);
    uint32_t value = c->n_inputs, in_a = 0, in_b = 0, a_point = c->n_inputs, b_point = 1;

    ck_assert_uint_eq(x.l.points.size(), c->n_values - c->n_inputs);
    for (in_a = 0; in_a < c->n_inputs; in_a++) {
        ck_assert_uint_eq(x.a.points[in_a], in_a);
        ck_assert_uint_eq(x.a.values[in_a], in_a);
    }
    ck_assert_uint_eq(x.b.points[in_b], 0);
    ck_assert_uint_eq(x.b.values[in_b++], 0);
    for (uint32_t aux = 0; aux < c->n_aux; aux++) {
        const bool is_value = value < c->n_values && c->value_aux[value - c->n_inputs] == aux;
        const bool dense_a = c->a_density[aux / 64] >> aux % 64 & 1,
                   dense_b = c->b_density[aux / 64] >> aux % 64 & 1;
        if (is_value) {
            expect_at(x.l.points[value - c->n_inputs] == aux, "point in L of variable", aux);
            expect_at(x.l.values[value - c->n_inputs] == value, "value in L of variable", aux);
        }
        if (is_value && dense_a) {
            expect_at(x.a.points[in_a] == a_point, "point in A of variable", aux);
            expect_at(x.a.values[in_a++] == value, "value in A of variable", aux);
        }
        if (is_value && dense_b) {
            expect_at(x.b.points[in_b] == b_point, "point in B of variable", aux);
            expect_at(x.b.values[in_b++] == value, "value in B of variable", aux);
        }
        a_point += dense_a;
        b_point += dense_b;
        value += is_value;
    }
    ck_assert_uint_eq(value, c->n_values);
    ck_assert_uint_eq(in_a, x.a.points.size());
    ck_assert_uint_eq(in_b, x.b.points.size());
    ck_assert_uint_eq(a_point, circuit_a_len(c));
    ck_assert_uint_eq(b_point, circuit_b_len(c));
    circuit_destroy(c);
}
END_TEST

static void add_limbs(limb_sums &to, const fr &v)
{
    for (int k = 0; k < fr::LIMBS; k++)
        to.v[k] += v.v[k];
}

static const char *const side_names[CIRCUIT_SIDES] = {"A of variable", "B of variable",
                                                      "C of variable"};

/* The polynomials at a point of one side, as the device's kernel sums them up. */
static void expect_side(const struct circuit *c, int side, const fr_t *lagrange, const fr_t *want)
{
    const circuit_extract x = extract_circuit(c);
    const row_tables t = host_row_tables(c, x);
    std::vector<limb_sums> sums((size_t)c->n_inputs + c->n_aux);

    for (uint32_t row = 0; row < c->n_rows; row++) {
        const row_place at = place_of_row(t, row);
        const row_side &s = t.sides[side];
        for (uint32_t i = s.first[at.row]; i < s.first[at.row + 1]; i++)
            add_limbs(sums[variable_of(t, at.bases, s.terms[i].var)],
                      qap_term(t, s.terms[i].coeff, as_fr(lagrange[row])));
    }
    for (size_t v = 0; v < sums.size(); v++) {
        const fr got = fold_limbs(sums[v]);
        expect_at(memcmp(&got, &want[v], sizeof(got)) == 0, side_names[side], v);
    }
}

START_TEST(qap_terms__give_the_polynomials)
{
    struct circuit *c = circuit_of("2KiB");
    struct random rng = {SEED};
    const fr_t tau = random_fr(&rng);
    struct circuit_qap q;

    circuit_qap_make(c, &tau, &q);
    for (int side = 0; side < CIRCUIT_SIDES; side++)
        expect_side(c, side, q.lagrange, q.side[side]);
    circuit_qap_end(&q);
    circuit_destroy(c);
}
END_TEST

START_TEST(fold_limbs__of_the_largest_sums)
{
    limb_sums s;
    fr_t want = fr_from_u64(0), power = fr_from_u64(1), limb;

    for (int k = 0; k < fr::LIMBS; k++) {
        s.v[k] = 0xfffffffe00000001u - (unsigned)k; /* (2^32 - 1)^2 */
        limb = fr_from_u64(s.v[k]);
        fr_mul(&limb, &limb, &power);
        fr_add(&want, &want, &limb);
        limb = fr_from_u64(UINT64_C(1) << 32);
        fr_mul(&power, &power, &limb);
    }
    const fr got = fold_limbs(s); /* as it stands: `want` is in Montgomery form, so take it out */
    scalar_t integer;
    blst_scalar_from_fr(&integer, &want);
    ck_assert_mem_eq(&got, &integer, sizeof(got));
}
END_TEST

START_TEST(fixed_references__spell_the_scalar)
{
    struct random rng = {SEED};
    fr_t r_minus_1 = fr_from_u64(0), one = fr_from_u64(1);

    fr_sub(&r_minus_1, &r_minus_1, &one);
    for (int i = 0; i < 1000; i++) {
        fr_t scalar = i == 0   ? fr_from_u64(0)
                      : i == 1 ? one
                      : i == 2 ? r_minus_1
                      : i < 20
                          ? fr_from_u64((UINT64_C(0x8000) << (i % 3 * 16)) + (uint64_t)i % 4 - 1)
                          : random_fr(&rng);
        fr_t sum = fr_from_u64(0), power = one, radix = fr_from_u64(1u << FIXED_BITS);
        uint32_t refs[FIXED_WINDOWS];

        fixed_references(to_integer(as_fr(scalar)), refs);
        for (uint32_t w = 0; w < FIXED_WINDOWS; w++) {
            const uint32_t multiple = (refs[w] & REF_INDEX) - w * FIXED_ROW;
            fr_t term = fr_from_u64(multiple);
            ck_assert_uint_lt(multiple, FIXED_ROW);
            fr_mul(&term, &term, &power);
            if (refs[w] & REF_NEGATIVE)
                fr_sub(&sum, &sum, &term);
            else
                fr_add(&sum, &sum, &term);
            fr_mul(&power, &power, &radix);
        }
        ck_assert(fr_equal(&sum, &scalar));
    }
}
END_TEST

int main()
{
    Suite *s = suite_create("cuda rows");
    TCase *tc = tcase_create("host");

    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, rows__equal_the_circuits);
    tcase_add_test(tc, tails__list_what_is_no_bit);
    tcase_add_test(tc, qap_terms__give_the_polynomials);
    tcase_add_test(tc, fold_limbs__of_the_largest_sums);
    tcase_add_test(tc, fixed_references__spell_the_scalar);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
