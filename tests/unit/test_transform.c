/*
 * Transformed parameters against what defines them, by logarithms: over a small circuit that is made up of every kind of term, and the fold
 * over the circuit of 2 KiB too.
 */
#include "gpu/transform.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "gpu/domain.h"
#include "gpu/qap.h"
#include "gpu/transform_check.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640032

/* ---- a circuit of two templates: the first has an input, the second variables of the instance before ---- */

#define INSTANCES 5
#define AUX_OF 8    /* each instance allocates, */
#define VALUES_OF 2 /* of which these are values: the third and the last */
#define ROWS_OF 12  /* of each template */
#define TERMS_OF 14 /* of a row, at most */
#define FOREIGN_SEGMENT CIRCUIT_FOREIGN
#define SEGMENTS (CIRCUIT_FOREIGN + 1)
#define INPUTS 2
#define LOG2_DOMAIN 6
#define COEFFS (CIRCUIT_SMALL_COEFFS + 40)

struct small {
    struct circuit c;
    fr_t coeffs[COEFFS];
    struct circuit_template templates[2];
    struct circuit_instance instances[INSTANCES];
    struct circuit_base bases[INSTANCES * SEGMENTS];
    uint32_t value_aux[INSTANCES * VALUES_OF];
    uint32_t none[2 * ROWS_OF + 1], first[2 * ROWS_OF + 1];
    struct circuit_term terms[2 * ROWS_OF * TERMS_OF];
};

/* The integers, powers of two and their negatives, and what is neither. */
static void make_coeffs(struct small *s, struct random *rng)
{
    for (int i = 0; i < CIRCUIT_SMALL_COEFFS; i++) {
        s->coeffs[i] = fr_from_u64((uint64_t)abs(i - CIRCUIT_SMALL));
        if (i < CIRCUIT_SMALL)
            fr_neg(&s->coeffs[i], &s->coeffs[i]);
    }
    for (int i = CIRCUIT_SMALL_COEFFS; i < COEFFS; i++) {
        fr_t two = fr_from_u64(2);
        s->coeffs[i] = i % 4 ? fr_power(&two, random_u64(rng) % 255) : random_fr(rng);
        if (i % 3 == 0)
            fr_neg(&s->coeffs[i], &s->coeffs[i]);
    }
}

/* Every variable that a row of the template may name. */
static uint32_t variable(int template, uint32_t i)
{
    const uint32_t own = CIRCUIT_OWN << 24, foreign = FOREIGN_SEGMENT << 24;

    if (i == 0)
        return CIRCUIT_ONE;
    if (i == 1)
        return template == 0 ? CIRCUIT_VALUE | CIRCUIT_OWN_INPUTS << 24 : foreign | 1;
    if (i == 2)
        return template == 0 ? own | 3 : CIRCUIT_VALUE | foreign;
    if (i < 5)
        return CIRCUIT_VALUE | own | (i - 3);
    return own | (uint32_t[]){0, 1, 4, 5, 6}[i - 5];
}
#define VARIABLES 10

static void make_rows(struct small *s, struct random *rng)
{
    uint32_t len = 0;

    for (uint32_t r = 0; r < 2 * ROWS_OF; r++) {
        s->first[r] = len;
        for (uint32_t i = 0; i < VARIABLES; i++) {
            uint32_t coeff = (uint32_t)(random_u64(rng) % COEFFS);
            if (random_u64(rng) % 3 == 0)
                continue;
            if (coeff == CIRCUIT_SMALL || random_u64(rng) % 2) /* 1 and -1 are most of them */
                coeff = CIRCUIT_SMALL + (random_u64(rng) & 1 ? 1 : -1);
            s->terms[len++] = (struct circuit_term){variable(r >= ROWS_OF, i), coeff};
        }
    }
    s->first[2 * ROWS_OF] = len;
}

/* Instance 0 is of the first template, all others of the second. */
static void make_instances(struct small *s)
{
    for (uint32_t k = 0; k < INSTANCES; k++) {
        struct circuit_base *b = &s->bases[k * SEGMENTS];
        s->instances[k] = (struct circuit_instance){k > 0, k * ROWS_OF, k * SEGMENTS};
        b[CIRCUIT_OWN] = (struct circuit_base){k * AUX_OF, INPUTS + k * VALUES_OF};
        b[CIRCUIT_OWN_INPUTS] = (struct circuit_base){0, 1};
        if (k > 0)
            b[FOREIGN_SEGMENT] = b[(int)CIRCUIT_OWN - SEGMENTS];
        s->value_aux[k * VALUES_OF] = k * AUX_OF + 2;
        s->value_aux[k * VALUES_OF + 1] = k * AUX_OF + AUX_OF - 1;
    }
}

static struct small *small_create(struct random *rng)
{
    struct small *s = calloc(1, sizeof(*s));

    make_coeffs(s, rng);
    make_rows(s, rng);
    make_instances(s);
    for (uint32_t i = 0; i < 2; i++)
        s->templates[i] = (struct circuit_template){.first_row = i * ROWS_OF,
                                                    .n_rows = ROWS_OF,
                                                    .n_aux = AUX_OF,
                                                    .n_values = VALUES_OF,
                                                    .n_inputs = i == 0,
                                                    .n_segments = SEGMENTS};
    s->c =
        (struct circuit){.n_inputs = INPUTS,
                         .n_aux = INSTANCES * AUX_OF,
                         .n_values = INPUTS + INSTANCES * VALUES_OF,
                         .log2_domain = LOG2_DOMAIN,
                         .n_rows = INSTANCES * ROWS_OF,
                         .n_coeffs = COEFFS,
                         .n_templates = 2,
                         .n_instances = INSTANCES,
                         .n_bases = INSTANCES * SEGMENTS,
                         .template_rows = 2 * ROWS_OF,
                         .coeffs = s->coeffs,
                         .templates = s->templates,
                         .sides = {{s->none, s->terms}, {s->none, s->terms}, {s->first, s->terms}},
                         .instances = s->instances,
                         .bases = s->bases,
                         .value_aux = s->value_aux};
    return s;
}

/* ---- logarithms ---- */

/* What the fold takes from each variable, inputs first: row j counts rows[j]. */
static fr_t *fold_logs(const struct circuit *c, const fr_t *rows)
{
    const struct porep_counts counts = {
        .inputs = c->n_inputs, .aux = c->n_aux, .rows = c->n_rows, .log2_domain = c->log2_domain};
    const fr_t tau = fr_from_u64(3);
    struct qap *q = NULL;

    ck_assert_int_eq(qap_create(&counts, &tau, NULL, &q, NULL), 0);
    memcpy(q->lagrange, rows, c->n_rows * sizeof(*rows));
    ck_assert_int_eq(qap_take_circuit(q, c, NULL, NULL), 0);
    fr_t *out = q->w;
    q->w = NULL;
    qap_destroy(q);
    return out;
}

/* sum over k < len of factor (shift w^-j)^k logs[k] */
static fr_t transformed(const fr_t *logs, size_t len, size_t j, const fr_t *shift,
                        const fr_t *factor)
{
    fr_t x = domain_root(LOG2_DOMAIN), sum = {0};

    fr_inverse(&x, &x);
    x = fr_power(&x, j);
    fr_mul(&x, &x, shift);
    for (size_t k = len; k-- > 0;) {
        fr_mul(&sum, &sum, &x);
        fr_add(&sum, &sum, &logs[k]);
    }
    fr_mul(&sum, &sum, factor);
    return sum;
}

static void expect_log(const g1_affine_t *point, const fr_t *log)
{
    const g1_affine_t want = g1_of(log);

    ck_assert_mem_eq(point, &want, sizeof(want));
}

/* ---- parameters of the small circuit ---- */

#define H_LEN ((1 << LOG2_DOMAIN) - 1)

struct setting {
    struct small *small;
    struct workers *workers;
    struct backend *be;
    struct srs srs;
    fr_t h[H_LEN], l[INSTANCES * AUX_OF];
};

static void setting_init(struct setting *t, int seed)
{
    struct random rng = {SEED + (uint64_t)seed};

    memset(t, 0, sizeof(*t));
    t->small = small_create(&rng);
    ck_assert_int_eq(workers_create(1 + (unsigned)seed % 3, &t->workers, NULL), 0);
    ck_assert_int_eq(backend_cpu_create(t->workers, &t->be, NULL), 0);
    t->srs = (struct srs){
        .h_len = H_LEN, .l_len = t->small->c.n_aux, .vk = {.ic_len = INPUTS}, .path = "small"};
    t->srs.h = malloc(H_LEN * sizeof(*t->srs.h));
    t->srs.l = malloc(t->srs.l_len * sizeof(*t->srs.l));
    for (size_t i = 0; i < H_LEN; i++) {
        t->h[i] = random_fr(&rng);
        t->srs.h[i] = g1_of(&t->h[i]);
    }
    for (size_t i = 0; i < t->srs.l_len; i++) {
        t->l[i] = random_fr(&rng);
        t->srs.l[i] = g1_of(&t->l[i]);
    }
}

static void setting_fini(struct setting *t)
{
    free(t->srs.h);
    free(t->srs.l);
    free(t->srs.input_l);
    backend_destroy(t->be);
    workers_destroy(t->workers);
    free(t->small);
}

/* What progress said, in order: the first letters of stages. */
struct heard {
    char stages[8];
    uint64_t done, total;
};

static void hear(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    struct heard *h = ctx;
    size_t len = strlen(h->stages);

    ck_assert(done <= total);
    if (len == 0 || h->stages[len - 1] != stage[0] || h->done == h->total) {
        ck_assert(len + 1 < sizeof(h->stages));
        ck_assert(h->done == h->total); /* the stage before is done */
        h->stages[len] = stage[0];
    }
    h->done = done;
    h->total = total;
}

START_TEST(transform_srs__equals_the_definition)
{
    const uint64_t m = (uint64_t)1 << LOG2_DOMAIN;
    fr_t g = fr_from_u64(7), factor = fr_power(&g, m), one = fr_from_u64(1), len = fr_from_u64(m);
    fr_t rows[1 << LOG2_DOMAIN], log;
    struct setting t;
    struct heard heard = {.done = 0};
    struct errmsg err = {""};

    setting_init(&t, _i);
    ck_assert_msg(transform_srs(&t.srs, &t.small->c, t.be, hear, &heard, &err) == 0, "%s",
                  err.text);
    ck_assert_str_eq(heard.stages, "ctftc");
    ck_assert(heard.done == heard.total);
    ck_assert(t.srs.transformed);
    ck_assert_uint_eq(t.srs.h_len, m);
    fr_sub(&factor, &factor, &one);
    fr_mul(&factor, &factor, &len);
    fr_inverse(&factor, &factor); /* 1 / (m (g^m - 1)) */
    fr_inverse(&g, &g);
    for (size_t j = 0; j < m; j++) {
        log = transformed(t.h, H_LEN, j, &g, &factor);
        expect_log(&t.srs.h[j], &log);
        rows[j] = transformed(t.h, H_LEN, j, &one, &factor);
    }
    fr_t *folded = fold_logs(&t.small->c, rows), zero = {0};
    for (uint32_t i = 0; i < INPUTS; i++) {
        fr_sub(&log, &zero, &folded[i]);
        expect_log(&t.srs.input_l[i], &log);
    }
    for (uint32_t i = 0; i < t.srs.l_len; i++) {
        fr_sub(&log, &t.l[i], &folded[INPUTS + i]);
        expect_log(&t.srs.l[i], &log);
    }
    free(folded);
    setting_fini(&t);
}
END_TEST

static int fall_off(struct backend *be, g1_affine_t *points, uint32_t log2_len, const fr_t *shift,
                    const fr_t *factor, backend_progress progress, void *progress_ctx,
                    struct errmsg *err)
{
    (void)be;
    (void)shift;
    (void)factor;
    (void)progress;
    (void)progress_ctx;
    memset(points, 0x55, sizeof(*points) << log2_len);
    return errmsg_set(err, -EIO, "the device fell off");
}

START_TEST(transform_srs__refuses_what_it_cannot_do)
{
    struct setting t;
    struct errmsg err;

    setting_init(&t, 0);
    struct backend_ops ops = *t.be->ops;
    struct backend other = {.ops = &ops, .workers = t.workers};
    ops.transform_points = NULL;
    ck_assert_int_eq(transform_srs(&t.srs, &t.small->c, &other, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "cpu transforms no parameters");
    ops.transform_points = fall_off;
    ck_assert_int_eq(transform_srs(&t.srs, &t.small->c, &other, NULL, NULL, &err), -EIO);
    ck_assert(!t.srs.transformed && t.srs.h_len == H_LEN && !t.srs.input_l);
    for (size_t i = 0; i < H_LEN; i++)
        expect_log(&t.srs.h[i], &t.h[i]);
    t.srs.l_len--;
    ck_assert_int_eq(transform_srs(&t.srs, &t.small->c, t.be, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "small: not the points of this circuit");
    t.srs.l_len++;
    t.srs.transformed = true;
    ck_assert_int_eq(transform_srs(&t.srs, &t.small->c, t.be, NULL, NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "small: transformed already");
    setting_fini(&t);
}
END_TEST

/* One point after another is another's. */
START_TEST(transform_check__sees_any_wrong_point)
{
    struct transform_check k;
    struct setting t;
    struct errmsg err = {""};

    setting_init(&t, _i);
    ck_assert_int_eq(transform_check_begin(&k, &t.srs, &t.small->c, t.workers, &err), 0);
    ck_assert_int_eq(transform_srs(&t.srs, &t.small->c, t.be, NULL, NULL, &err), 0);
    ck_assert_int_eq(transform_check_end(&k, &t.srs, &t.small->c, t.workers, &err), 0);
    const struct {
        g1_affine_t *points;
        size_t len;
    } all[] = {{t.srs.h, t.srs.h_len}, {t.srs.l, t.srs.l_len}, {t.srs.input_l, INPUTS}};
    for (size_t k_of = 0; k_of < ARRAY_LEN(all); k_of++)
        for (size_t i = 0; i < all[k_of].len; i++) {
            const g1_affine_t kept = all[k_of].points[i];
            all[k_of].points[i] = all[(k_of + 1) % 3].points[0];
            ck_assert_int_eq(transform_check_end(&k, &t.srs, &t.small->c, t.workers, &err),
                             -EBADMSG);
            all[k_of].points[i] = kept;
        }
    ck_assert_ptr_nonnull(strstr(err.text, "transformed points came out wrong"));
    ck_assert_int_eq(transform_check_end(&k, &t.srs, &t.small->c, t.workers, &err), 0);
    setting_fini(&t);
}
END_TEST

/* A device that errs in one point of many. */
static int (*right)(struct backend *be, g1_affine_t *points, uint32_t log2_len, const fr_t *shift,
                    const fr_t *factor, backend_progress progress, void *progress_ctx,
                    struct errmsg *err);
static int good_calls;

static int err_once(struct backend *be, g1_affine_t *points, uint32_t log2_len, const fr_t *shift,
                    const fr_t *factor, backend_progress progress, void *progress_ctx,
                    struct errmsg *err)
{
    int ret = right(be, points, log2_len, shift, factor, progress, progress_ctx, err);

    if (good_calls-- == 0)
        points[5] = points[6];
    return ret;
}

START_TEST(transform_srs__refuses_what_came_out_wrong)
{
    struct setting t;
    struct errmsg err = {""};

    setting_init(&t, 1);
    struct backend_ops ops = *t.be->ops;
    const struct backend_ops *cpu = t.be->ops;
    right = ops.transform_points;
    ops.transform_points = err_once;
    t.be->ops = &ops;
    good_calls = _i;
    ck_assert_int_eq(transform_srs(&t.srs, &t.small->c, t.be, NULL, NULL, &err), -EBADMSG);
    t.be->ops = cpu;
    setting_fini(&t);
}
END_TEST

/* ---- 2 KiB ---- */

#define POINTS 1000 /* different ones: sums meet themselves, their opposites and infinity too */

/* Points of all variables and rows out of a few, and infinity. */
struct many {
    fr_t logs[POINTS];
    g1_affine_t points[POINTS];
};

static void make_many(struct many *p, struct random *rng)
{
    memset(p, 0, sizeof(*p)); /* the first is infinity */
    for (size_t i = 1; i < POINTS; i++) {
        p->logs[i] = random_fr(rng);
        p->points[i] = g1_of(&p->logs[i]);
    }
}

/* Compares points with logarithms, all at once: sums with random factors are the same. */
static void expect_logs(struct backend *be, const g1_affine_t *points, const fr_t *logs, size_t len,
                        struct random *rng)
{
    fr_t *factors = malloc(len * sizeof(*factors)), sum = {0}, term;
    g1_affine_t got;
    g1_t total;

    for (size_t i = 0; i < len; i++) {
        factors[i] = fr_from_u64(random_u64(rng));
        fr_mul(&term, &factors[i], &logs[i]);
        fr_add(&sum, &sum, &term);
    }
    ck_assert_int_eq(backend_reserve(be, be->ops->msm_scratch_bytes(be, len), NULL), 0);
    ck_assert_int_eq(be->ops->msm_g1(be, &total, points, factors, len, NULL), 0);
    blst_p1_to_affine(&got, &total);
    expect_log(&got, &sum);
    free(factors);
}

START_TEST(transform_fold__of_2KiB_takes_every_term)
{
    struct random rng = {SEED};
    struct many *p = malloc(sizeof(*p));
    const struct circuit *c = NULL;
    struct workers *workers = NULL;
    struct backend *be = NULL;

    make_many(p, &rng);
    ck_assert_int_eq(circuit_of_size(sector_size_by_name("2KiB"), &c, NULL), 0);
    ck_assert_int_eq(workers_create(0, &workers, NULL), 0);
    ck_assert_int_eq(backend_cpu_create(workers, &be, NULL), 0);
    g1_affine_t *rows = malloc(c->n_rows * sizeof(*rows)), *l = malloc(c->n_aux * sizeof(*l));
    g1_affine_t *input_l = malloc(c->n_inputs * sizeof(*input_l));
    fr_t *row_logs = malloc(c->n_rows * sizeof(*row_logs));
    fr_t *logs = malloc(((size_t)c->n_inputs + c->n_aux) * sizeof(*logs));
    for (size_t i = 0; i < c->n_rows; i++) {
        const size_t k = random_u64(&rng) % POINTS;
        rows[i] = p->points[k];
        row_logs[i] = p->logs[k];
    }
    for (size_t i = 0; i < (size_t)c->n_inputs + c->n_aux; i++) {
        const size_t k = random_u64(&rng) % POINTS;
        *(i < c->n_inputs ? &input_l[i] : &l[i - c->n_inputs]) = p->points[k];
        logs[i] = p->logs[k];
    }
    ck_assert_int_eq(transform_fold(c, rows, l, input_l, workers, NULL, NULL, NULL), 0);
    fr_t *folded = fold_logs(c, row_logs);
    for (size_t i = 0; i < (size_t)c->n_inputs + c->n_aux; i++)
        fr_sub(&logs[i], &logs[i], &folded[i]);
    expect_logs(be, input_l, logs, c->n_inputs, &rng);
    expect_logs(be, l, logs + c->n_inputs, c->n_aux, &rng);
    free(folded);
    free(logs);
    free(row_logs);
    free(input_l);
    free(l);
    free(rows);
    free(p);
    backend_destroy(be);
    workers_destroy(workers);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("transform");
    TCase *tc = tcase_create("transform");

    tcase_add_loop_test(tc, transform_srs__equals_the_definition, 0, 6);
    tcase_add_test(tc, transform_srs__refuses_what_it_cannot_do);
    tcase_add_loop_test(tc, transform_check__sees_any_wrong_point, 0, 2);
    tcase_add_loop_test(tc, transform_srs__refuses_what_came_out_wrong, 0, 2);
    tcase_add_test(tc, transform_fold__of_2KiB_takes_every_term);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
