#include "gpu/qap.h"

#include <errno.h>
#include <stdio.h>

#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

/* A system of a few rows with every kind of coefficient. */
#define INPUTS 2
#define AUX 3
#define VARIABLES (INPUTS + AUX)
#define MAX_ROWS 8

struct matrix {
    fr_t at[MAX_ROWS][VARIABLES];
};

static cs_var variable(size_t i)
{
    return i < INPUTS ? (cs_var)i : CS_AUX | (cs_var)(i - INPUTS);
}

/* Coefficients 0, 1, -1 and others, by chance. */
static fr_t random_coefficient(struct random *rng)
{
    fr_t out = fr_from_u64(1);

    switch (random_u64(rng) % 4) {
    case 0:
        return fr_from_u64(0);
    case 1:
        return out;
    case 2:
        fr_neg(&out, &out);
        return out;
    default:
        return random_fr(rng);
    }
}

static struct cs_lc row_of(const struct matrix *m, size_t row, struct cs_term terms[VARIABLES])
{
    struct cs_lc lc = {terms, 0};

    for (size_t i = 0; i < VARIABLES; i++)
        if (!fr_is_zero(&m->at[row][i]))
            terms[lc.len++] = (struct cs_term){variable(i), m->at[row][i]};
    return lc;
}

/* Lagrange's formula, factor by factor. */
static fr_t naive_lagrange(const fr_t *domain, size_t m, size_t i, const fr_t *tau)
{
    fr_t out = fr_from_u64(1), over = out, factor;

    for (size_t k = 0; k < m; k++) {
        if (k == i)
            continue;
        fr_sub(&factor, tau, &domain[k]);
        fr_mul(&out, &out, &factor);
        fr_sub(&factor, &domain[i], &domain[k]);
        fr_mul(&over, &over, &factor);
    }
    fr_inverse(&over, &over);
    fr_mul(&out, &out, &over);
    return out;
}

/* The powers of a primitive root: squaring the 2^32-th root that c2-formats 6.2 gives, limb by limb. */
static void domain_fill(fr_t *domain, uint32_t log2_len)
{
    fr_t root = {{0xb9b58d8c5f0e466a, 0x5b1b4c801819d7ec, 0x0af53ae352a31e64, 0x5bf3adda19e9b27b}};

    for (uint32_t k = 32; k > log2_len; k--)
        fr_sqr(&root, &root);
    domain[0] = fr_from_u64(1);
    for (size_t i = 1; i < (size_t)1 << log2_len; i++)
        fr_mul(&domain[i], &domain[i - 1], &root);
}

static void expect_column(const fr_t *value, const struct matrix *m, size_t column, size_t rows,
                          const fr_t *lagrange)
{
    fr_t sum = fr_from_u64(0), term;

    for (size_t row = 0; row < rows; row++) {
        fr_mul(&term, &m->at[row][column], &lagrange[row]);
        fr_add(&sum, &sum, &term);
    }
    ck_assert(fr_equal(value, &sum));
}

START_TEST(qap__equals_interpolation_row_by_row)
{
    const uint64_t seed = 20240001 + (uint64_t)_i;
    struct random rng = {seed};
    struct porep_counts counts = {.inputs = INPUTS, .aux = AUX, .rows = 5 + (uint64_t)_i % 4, .log2_domain = 3};
    static struct matrix a, b, c;
    fr_t tau = random_fr(&rng), domain[8], lagrange[8];
    struct qap *q = NULL;

    printf("seed %llu\n", (unsigned long long)seed);
    ck_assert_int_eq(qap_create(&counts, &tau, NULL, &q, NULL), 0);
    struct cs_sink sink = qap_sink(q);
    for (size_t row = 0; row < counts.rows; row++) {
        struct cs_term ta[VARIABLES], tb[VARIABLES], tc[VARIABLES];
        for (size_t i = 0; i < VARIABLES; i++) {
            a.at[row][i] = random_coefficient(&rng);
            b.at[row][i] = random_coefficient(&rng);
            c.at[row][i] = random_coefficient(&rng);
        }
        struct cs_lc la = row_of(&a, row, ta), lb = row_of(&b, row, tb), lc = row_of(&c, row, tc);
        sink.row(sink.ctx, row, &la, &lb, &lc);
    }

    domain_fill(domain, 3);
    fr_t vanishing = fr_from_u64(1), factor;
    for (size_t i = 0; i < 8; i++) {
        lagrange[i] = naive_lagrange(domain, 8, i, &tau);
        fr_sub(&factor, &tau, &domain[i]);
        fr_mul(&vanishing, &vanishing, &factor);
    }
    ck_assert(fr_equal(&q->vanishing, &vanishing));
    for (size_t i = 0; i < VARIABLES; i++) {
        expect_column(&q->u[i], &a, i, counts.rows, lagrange);
        expect_column(&q->v[i], &b, i, counts.rows, lagrange);
        expect_column(&q->w[i], &c, i, counts.rows, lagrange);
    }
    qap_destroy(q);
}
END_TEST

/* More rows than one chunk of inversions holds, with and without threads: the Lagrange values add up to 1. */
START_TEST(qap__lagrange_values_of_a_full_domain_sum_to_one)
{
    struct porep_counts counts = {.inputs = 1, .aux = 1, .rows = 1 << 14, .log2_domain = 14};
    struct random rng = {5};
    struct workers *workers = NULL;
    struct qap *q = NULL;
    fr_t tau = random_fr(&rng), sum = fr_from_u64(0), one = fr_from_u64(1);

    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    ck_assert_int_eq(qap_create(&counts, &tau, workers, &q, NULL), 0);
    for (size_t i = 0; i < counts.rows; i++)
        fr_add(&sum, &sum, &q->lagrange[i]);
    ck_assert(fr_equal(&sum, &one));
    qap_drop_lagrange(q);
    qap_destroy(q);
    workers_destroy(workers);
}
END_TEST

static struct qap *qap_of(const struct sector_size *size, const fr_t *tau, struct workers *workers)
{
    struct porep_counts counts;
    struct qap *q = NULL;

    porep_counts(size, &counts);
    ck_assert_int_eq(qap_create(&counts, tau, workers, &q, NULL), 0);
    return q;
}

static void expect_same(const struct qap *x, const struct qap *y)
{
    const size_t bytes = ((size_t)x->n_inputs + x->n_aux) * sizeof(fr_t);

    ck_assert(memcmp(x->u, y->u, bytes) == 0);
    ck_assert(memcmp(x->v, y->v, bytes) == 0);
    ck_assert(memcmp(x->w, y->w, bytes) == 0);
}

START_TEST(qap_take_circuit__equals_the_gadgets)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    const struct circuit *circuit;
    struct workers *workers = NULL;
    struct random rng = {7};
    const fr_t tau = random_fr(&rng);
    struct qap *expected = qap_of(size, &tau, NULL);
    const struct cs_sink sink = qap_sink(expected);

    ck_assert_int_eq(porep_synthesize_blank(size, &sink, NULL), 0);
    ck_assert_int_eq(circuit_of_size(size, &circuit, NULL), 0);
    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    struct workers *const either[] = {NULL, workers};
    for (size_t i = 0; i < ARRAY_LEN(either); i++) {
        struct qap *q = qap_of(size, &tau, either[i]);
        ck_assert_int_eq(qap_take_circuit(q, circuit, either[i], NULL), 0);
        expect_same(q, expected);
        qap_destroy(q);
    }
    qap_destroy(expected);
    workers_destroy(workers);
}
END_TEST

START_TEST(qap_create__refuses_what_has_no_domain)
{
    struct porep_counts counts = {.inputs = 1, .aux = 1, .rows = 9, .log2_domain = 3};
    struct qap *q = NULL;
    fr_t tau = fr_from_u64(12345), in_domain = fr_from_u64(1);

    ck_assert_int_eq(qap_create(&counts, &tau, NULL, &q, NULL), -EINVAL);
    counts.rows = 8;
    ck_assert_int_eq(qap_create(&counts, &in_domain, NULL, &q, NULL), -EINVAL);
    counts.log2_domain = 32;
    ck_assert_int_eq(qap_create(&counts, &tau, NULL, &q, NULL), -EINVAL);
    ck_assert_ptr_null(q);
    qap_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("qap");
    TCase *tc = tcase_create("qap");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, qap__equals_interpolation_row_by_row, 0, 20);
    tcase_add_test(tc, qap__lagrange_values_of_a_full_domain_sum_to_one);
    tcase_add_test(tc, qap_take_circuit__equals_the_gadgets);
    tcase_add_test(tc, qap_create__refuses_what_has_no_domain);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
