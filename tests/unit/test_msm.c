/*
 * Sums over bases k_i * G, which must be (sum of s_i k_i) * G, in the shapes that a sum can go wrong at.
 */
#include "gpu/cpu/msm.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/bucket_sum.h"
#include "gpu/cpu/digits_pick.h"
#include "gpu/cpu/features.h"
#include "gpu/cpu/fixed_base.h"
#include "numa/circuit/circuit.h"
#include "tests/lib/naive_backend.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640004

/* Bases with known logarithms. */
struct bases {
    size_t len;
    fr_t *logs;
    g1_affine_t *g1;
    g2_affine_t *g2;
};

/* Fills in the points of the logarithms. */
static void bases_make(struct bases *b)
{
    struct fixed_base *t1 = NULL, *t2 = NULL;

    b->g1 = calloc(b->len + 1, sizeof(*b->g1));
    b->g2 = calloc(b->len + 1, sizeof(*b->g2));
    ck_assert_int_eq(fixed_base_g1_create(blst_p1_affine_generator(), 8, NULL, &t1, NULL), 0);
    ck_assert_int_eq(fixed_base_g2_create(blst_p2_affine_generator(), 8, NULL, &t2, NULL), 0);
    ck_assert_int_eq(fixed_base_g1_mul(t1, NULL, b->logs, b->len, b->g1, NULL), 0);
    ck_assert_int_eq(fixed_base_g2_mul(t2, NULL, b->logs, b->len, b->g2, NULL), 0);
    fixed_base_destroy(t1);
    fixed_base_destroy(t2);
}

/* Distinct ones, with a few of every oddity: infinity, equal neighbours, opposite neighbours. */
static void bases_random(struct bases *b, size_t len, struct random *rng)
{
    b->len = len;
    b->logs = calloc(len + 1, sizeof(*b->logs));
    for (size_t i = 0; i < len; i++) {
        uint64_t dice = random_u64(rng) % 32;
        b->logs[i] = random_fr(rng);
        if (dice == 0)
            b->logs[i] = fr_from_u64(0);
        else if (dice == 1 && i > 0)
            b->logs[i] = b->logs[i - 1];
        else if (dice == 2 && i > 0)
            fr_neg(&b->logs[i], &b->logs[i - 1]);
    }
    bases_make(b);
}

static void bases_free(struct bases *b)
{
    free(b->logs);
    free(b->g1);
    free(b->g2);
}

/* msm_run with exactly the scratch that it asks for. */
static void run(const struct group *group, struct workers *workers, union point *sum,
                const void *bases, const struct msm_terms *terms)
{
    const struct arena_options opt = {
        .bytes = msm_scratch_bytes(group, terms->len, workers_count(workers)),
        .node = ARENA_ANY_NODE,
        .largest = ARENA_4KIB};
    struct msm_task task = {.group = group, .workers = workers, .bases = bases, .terms = *terms};

    ck_assert_int_eq(arena_create(&opt, &task.scratch, NULL), 0);
    ck_assert_uint_eq(arena_get_info(task.scratch)->bytes, opt.bytes);
    ck_assert_int_eq(msm_run(&task, sum, NULL), 0);
    ck_assert_uint_eq(arena_mark(task.scratch), 0);
    arena_destroy(task.scratch);
}

/* Both groups' sums of these terms are `log` times the generators. */
static void check_terms(const struct bases *b, const struct msm_terms *terms, const fr_t *log,
                        struct workers *workers)
{
    union point sum;
    g1_affine_t p, p_want = g1_of(log);
    g2_affine_t q, q_want = g2_of(log);

    run(&group_g1, workers, &sum, b->g1, terms);
    blst_p1_to_affine(&p, &sum.g1);
    ck_assert_mem_eq(&p, &p_want, sizeof(p));
    run(&group_g2, workers, &sum, b->g2, terms);
    blst_p2_to_affine(&q, &sum.g2);
    ck_assert_mem_eq(&q, &q_want, sizeof(q));
}

static void add_product(fr_t *sum, const fr_t *x, const fr_t *y)
{
    fr_t term;

    fr_mul(&term, x, y);
    fr_add(sum, sum, &term);
}

static void check_sum(const struct bases *b, const fr_t *scalars, size_t len,
                      struct workers *workers)
{
    fr_t log = {0};

    for (size_t i = 0; i < len; i++)
        add_product(&log, &scalars[i], &b->logs[i]);
    check_terms(b, &(struct msm_terms){.scalars = scalars, .len = len}, &log, workers);
}

/* What the scalars of one sum look like. */
enum shape {
    SHAPE_RANDOM,
    SHAPE_WITNESS,
    SHAPE_SMALL,
    SHAPE_POWERS,
    SHAPE_EQUAL,
    SHAPE_ONES,
    SHAPE_MINUS_ONES,
    SHAPE_ZEROS,
    SHAPE_ONE_BUCKET,
    SHAPES
};

static fr_t draw(enum shape shape, struct random *rng)
{
    uint64_t v = random_u64(rng);
    fr_t out, two = fr_from_u64(2);

    switch (shape) {
    case SHAPE_RANDOM:
        return random_fr(rng);
    case SHAPE_WITNESS:
        if (v % 64 == 0)
            return random_fr(rng);
        out = fr_from_u64(v >> 8 & 1);
        return out;
    case SHAPE_SMALL:
        return fr_from_u64(v >> 32);
    case SHAPE_POWERS:
        out = fr_from_u64(1);
        for (uint64_t i = 0; i < v % 255; i++)
            fr_mul(&out, &out, &two);
        if (v >> 63)
            fr_neg(&out, &out);
        return out;
    case SHAPE_EQUAL:
        return fr_from_u64(0x123456789abcdef1);
    case SHAPE_ONES:
        return fr_from_u64(1);
    case SHAPE_MINUS_ONES:
        out = fr_from_u64(1);
        fr_neg(&out, &out);
        return out;
    case SHAPE_ZEROS:
        return fr_from_u64(0);
    case SHAPE_ONE_BUCKET: /* one window alone, and one bucket in it up to the sign */
        out = fr_from_u64(3);
        if (v & 1)
            fr_neg(&out, &out);
        return out;
    default:
        ck_abort_msg("no such shape");
    }
}

/* Makes `code` the best that the CPU has; false when it has not even that. */
static bool use(int code)
{
    cpu_use_at_most((enum cpu_code)code);
    return cpu_has((enum cpu_code)code);
}

START_TEST(digits_pick__finds_what_is_in_a_range)
{
    enum { LEN = 1003 };
    struct random rng = {SEED};
    int32_t digits[LEN];
    uint16_t got[LEN + DIGITS_PICK_SPARE];

    if (!use(_i))
        return;
    for (uint32_t first = 0; first < 64; first += 16)
        for (size_t len = 0; len <= LEN; len += len < 40 ? 1 : 107) {
            size_t n = 0;
            for (size_t i = 0; i < len; i++)
                digits[i] = (int32_t)(random_u64(&rng) % 129) - 64;
            const size_t found = digits_pick(digits, len, first, 16, got);
            for (size_t i = 0; i < len; i++) {
                const uint32_t d = (uint32_t)abs(digits[i]);
                if (d > first && d <= first + 16)
                    ck_assert_uint_eq(got[n++], i);
            }
            ck_assert_uint_eq(found, n);
        }
}
END_TEST

/* Every shape, on one to four threads, at lengths around those where something changes; with every kind of code, those that
 * are not the fastest at fewer lengths. */
START_TEST(msm__equals_the_sum_of_logarithms)
{
    static const size_t lens[] = {0, 1, 2, 3, 5, 31, 64, 257, 1023, 1024, 4095, 4097, 9000};
    struct random rng = {SEED};
    struct workers *workers = NULL;
    struct bases b;

    int code = _i / SHAPES;
    size_t count = ARRAY_LEN(lens) - (cpu_has((enum cpu_code)(code + 1)) ? 3 : 0);
    if (!use(code))
        return;
    ck_assert_int_eq(workers_create(1 + (unsigned)_i % 4, &workers, NULL), 0);
    bases_random(&b, lens[ARRAY_LEN(lens) - 1], &rng);
    fr_t *scalars = calloc(b.len, sizeof(*scalars));
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < lens[k]; i++)
            scalars[i] = draw((enum shape)(_i % SHAPES), &rng);
        check_sum(&b, scalars, lens[k], workers);
    }
    free(scalars);
    bases_free(&b);
    workers_destroy(workers);
}
END_TEST

/* More than fit a stretch, so that sums of buckets grow. A few bases take their turns. */
START_TEST(msm__of_several_stretches)
{
    enum { LEN = (1 << 19) + 70001, BASES = 1000 };
    struct random rng = {SEED};
    struct workers *workers = NULL;
    struct bases b;
    fr_t *scalars = calloc(LEN, sizeof(*scalars)), log = {0};
    g1_affine_t *bases = calloc(LEN, sizeof(*bases)), got, want;
    union point sum;

    bases_random(&b, BASES, &rng);
    for (size_t i = 0; i < LEN; i++) {
        scalars[i] = random_fr(&rng);
        bases[i] = b.g1[i % BASES];
        add_product(&log, &scalars[i], &b.logs[i % BASES]);
    }
    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    run(&group_g1, workers, &sum, bases, &(struct msm_terms){.scalars = scalars, .len = LEN});
    blst_p1_to_affine(&got, &sum.g1);
    want = g1_of(&log);
    ck_assert_mem_eq(&got, &want, sizeof(got));
    workers_destroy(workers);
    bases_free(&b);
    free(bases);
    free(scalars);
}
END_TEST

/* More than one chunk of scalars; all bases equal, so that every bucket doubles and cancels all the time. */
START_TEST(msm__equal_bases)
{
    struct random rng = {SEED};
    struct workers *workers = NULL;
    struct bases b = {.len = 40000};

    if (!use(_i / 2))
        return;
    ck_assert_int_eq(workers_create(2, &workers, NULL), 0);
    b.logs = calloc(b.len, sizeof(*b.logs));
    for (size_t i = 0; i < b.len; i++)
        b.logs[i] = fr_from_u64(77);
    bases_make(&b);
    fr_t *scalars = calloc(b.len, sizeof(*scalars));
    for (size_t i = 0; i < b.len; i++)
        scalars[i] = draw(_i % 2 ? SHAPE_WITNESS : SHAPE_RANDOM, &rng);
    check_sum(&b, scalars, b.len, workers);
    free(scalars);
    bases_free(&b);
    workers_destroy(workers);
}
END_TEST

/* Terms as a witness in compact form has them: bits, of which some have no base, and scalars with a base each. */
struct picked {
    struct msm_terms terms;
    uint64_t *ones, *dense;
    uint32_t *rank, *point_of;
    fr_t *scalars;
};

static bool get_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

/* One variable in `share` has no base. */
static void picked_init(struct picked *p, size_t variables, size_t scalars, uint32_t bases,
                        uint64_t share, struct random *rng)
{
    const size_t words = variables / 64 + 1;
    uint32_t n = 0;

    p->ones = calloc(words, sizeof(*p->ones));
    p->dense = calloc(words, sizeof(*p->dense));
    p->rank = calloc(words / CIRCUIT_RANK_WORDS + 1, sizeof(*p->rank));
    p->scalars = calloc(scalars + 1, sizeof(*p->scalars));
    p->point_of = calloc(scalars + 1, sizeof(*p->point_of));
    for (size_t i = 0; i < variables; i++) {
        if (i % (64 * CIRCUIT_RANK_WORDS) == 0)
            p->rank[i / 64 / CIRCUIT_RANK_WORDS] = n;
        p->ones[i / 64] |= (random_u64(rng) & 1) << i % 64;
        const bool dense = random_u64(rng) % share != 0;
        p->dense[i / 64] |= (uint64_t)dense << i % 64;
        n += dense;
    }
    for (size_t i = 0; i < scalars; i++) {
        p->scalars[i] = draw(SHAPE_WITNESS, rng);
        p->point_of[i] =
            random_u64(rng) % share ? (uint32_t)(random_u64(rng) % bases) : MSM_NO_POINT;
    }
    p->terms = (struct msm_terms){.scalars = p->scalars,
                                  .point_of = p->point_of,
                                  .len = scalars,
                                  .ones = p->ones,
                                  .dense = p->dense,
                                  .rank = p->rank,
                                  .ones_len = variables,
                                  .first = 7};
}

static void picked_fini(struct picked *p)
{
    free(p->ones);
    free(p->dense);
    free(p->rank);
    free(p->scalars);
    free(p->point_of);
}

static fr_t picked_log(const struct picked *p, const struct bases *b)
{
    const fr_t one = fr_from_u64(1);
    size_t point = p->terms.dense ? p->terms.first : 0;
    fr_t log = {0};

    for (size_t i = 0; i < p->terms.len; i++)
        if (p->point_of[i] != MSM_NO_POINT)
            add_product(&log, &p->scalars[i], &b->logs[p->point_of[i]]);
    for (size_t i = 0; i < p->terms.ones_len; i++) {
        const bool dense = !p->terms.dense || get_bit(p->dense, i);
        if (dense && get_bit(p->ones, i))
            add_product(&log, &one, &b->logs[point]);
        point += dense;
    }
    return log;
}

/* Of so many variables all have a base (share 0), most, or two of three. */
static void check_picked(const struct bases *b, size_t variables, size_t scalars, uint64_t share,
                         struct workers *workers, struct random *rng)
{
    struct picked p;

    picked_init(&p, variables, scalars, (uint32_t)b->len, share ? share : 10, rng);
    if (share == 0)
        p.terms.dense = NULL;
    const fr_t log = picked_log(&p, b);
    check_terms(b, &p.terms, &log, workers);
    picked_fini(&p);
}

START_TEST(msm__of_a_witness_in_compact_form)
{
    static const size_t variables[] = {0, 1, 63, 64, 65, 511, 513, 17000};
    static const uint64_t shares[] = {0, 3, 100};
    struct random rng = {SEED};
    struct workers *workers = NULL;
    struct bases b;

    ck_assert_int_eq(workers_create(3, &workers, NULL), 0);
    bases_random(&b, 17010, &rng);
    for (size_t i = 0; i < ARRAY_LEN(shares); i++)
        for (size_t k = 0; k < ARRAY_LEN(variables); k++)
            check_picked(&b, variables[k], k * 10, shares[i], i % 2 ? workers : NULL, &rng);
    bases_free(&b);
    workers_destroy(workers);
}
END_TEST

START_TEST(msm__of_a_witness_equals_the_naive_backend)
{
    struct random rng = {SEED};
    struct backend *cpu = NULL, *naive = NULL;
    struct picked p;
    struct bases b;
    g1_t g1, g1_want;
    g2_t g2, g2_want;

    bases_random(&b, 200, &rng);
    picked_init(&p, 190, 30, 200, 4, &rng);
    ck_assert_int_eq(backend_cpu_create(NULL, &cpu, NULL), 0);
    ck_assert_int_eq(backend_naive_create(&naive), 0);
    ck_assert_int_eq(cpu->ops->sum_g1(cpu, &g1, b.g1, &p.terms, NULL), 0);
    ck_assert_int_eq(naive->ops->sum_g1(naive, &g1_want, b.g1, &p.terms, NULL), 0);
    ck_assert(blst_p1_is_equal(&g1, &g1_want));
    ck_assert_int_eq(cpu->ops->sum_g2(cpu, &g2, b.g2, &p.terms, NULL), 0);
    ck_assert_int_eq(naive->ops->sum_g2(naive, &g2_want, b.g2, &p.terms, NULL), 0);
    ck_assert(blst_p2_is_equal(&g2, &g2_want));
    picked_fini(&p);
    bases_free(&b);
    backend_destroy(cpu);
    backend_destroy(naive);
}
END_TEST

START_TEST(msm__equals_the_naive_backend)
{
    enum { LEN = 100 };
    struct random rng = {SEED};
    struct backend *cpu = NULL, *naive = NULL;
    struct bases b;
    fr_t scalars[LEN];
    g1_t p, p_want;
    g2_t q, q_want;

    bases_random(&b, LEN, &rng);
    ck_assert_int_eq(backend_cpu_create(NULL, &cpu, NULL), 0);
    ck_assert_int_eq(backend_naive_create(&naive), 0);
    for (size_t i = 0; i < LEN; i++)
        scalars[i] = draw((enum shape)(i % SHAPES), &rng);
    ck_assert_int_eq(cpu->ops->msm_g1(cpu, &p, b.g1, scalars, LEN, NULL), 0);
    ck_assert_int_eq(naive->ops->msm_g1(naive, &p_want, b.g1, scalars, LEN, NULL), 0);
    ck_assert(blst_p1_is_equal(&p, &p_want));
    ck_assert_int_eq(cpu->ops->msm_g2(cpu, &q, b.g2, scalars, LEN, NULL), 0);
    ck_assert_int_eq(naive->ops->msm_g2(naive, &q_want, b.g2, scalars, LEN, NULL), 0);
    ck_assert(blst_p2_is_equal(&q, &q_want));
    bases_free(&b);
    backend_destroy(cpu);
    backend_destroy(naive);
}
END_TEST

START_TEST(msm__refuses_what_does_not_fit_its_indices)
{
    const struct msm_task task = {.group = &group_g1, .terms.len = MSM_LEN_MAX + 1};
    union point sum;
    struct errmsg err;

    ck_assert_int_eq(msm_run(&task, &sum, &err), -EINVAL);
}
END_TEST

/* Lists that end anywhere, empty ones among them, and one so long that its parts are in parts again; their sums, and what these grow to. */
START_TEST(summer_add_lists__any_division_into_lists)
{
    enum { LEN = 10000, LISTS = 60 };
    struct random rng = {SEED};
    struct bases b;
    if (!use(_i))
        return;
    struct summer *s = summer_create(&group_g1);
    base_ref *refs = calloc(LEN, sizeof(*refs));
    uint32_t start[LISTS + 1] = {0};
    g1_affine_t sums[LISTS]; /* whatever they hold */

    memset(sums, 0xa5, sizeof(sums));
    bases_random(&b, LEN, &rng);
    for (size_t i = 0; i < LEN; i++)
        refs[i] = base_ref_make(random_u64(&rng) % LEN, random_u64(&rng) & 1);
    for (size_t k = 1; k < LISTS; k++)
        start[k] = start[k - 1] + (uint32_t)(k % 3 ? random_u64(&rng) % 90 : 0);
    start[LISTS] = LEN; /* the last one: the rest */
    const struct lists lists = {b.g1, refs, start, LISTS};
    fr_t logs[LISTS] = {{{0}}};
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(summer_add_lists(s, &lists, round > 0, sums), 0);
        for (size_t k = 0; k < LISTS; k++) {
            for (uint32_t i = start[k]; i < start[k + 1]; i++)
                (refs[i] & 1 ? fr_sub : fr_add)(&logs[k], &logs[k], &b.logs[refs[i] >> 1]);
            g1_affine_t want = g1_of(&logs[k]);
            ck_assert_mem_eq(&sums[k], &want, sizeof(want));
        }
        for (size_t i = 0; i < LEN && round == 0; i++) /* then all become infinity, and come back */
            refs[i] ^= 1;
    }
    free(refs);
    bases_free(&b);
    summer_destroy(s);
}
END_TEST

START_TEST(summer_weigh__equals_the_weighted_sum)
{
    static const size_t lens[] = {0, 1, 2, 63, 64, 65, 511, 512, 513, 1500, 8193};
    struct random rng = {SEED};
    struct bases b;
    if (!use(_i))
        return;
    struct summer *s = summer_create(&group_g2);

    bases_random(&b, lens[ARRAY_LEN(lens) - 1], &rng);
    for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
        uint64_t first = 1 + random_u64(&rng) % 1000;
        fr_t log = {0}, term;
        union point sum;
        g2_affine_t got, want;

        for (size_t i = 0; i < lens[k]; i++) {
            fr_t weight = fr_from_u64(first + i);
            fr_mul(&term, &weight, &b.logs[i]);
            fr_add(&log, &log, &term);
        }
        summer_weigh(s, &sum, b.g2, lens[k], first);
        blst_p2_to_affine(&got, &sum.g2);
        want = g2_of(&log);
        ck_assert_mem_eq(&got, &want, sizeof(want));
    }
    bases_free(&b);
    summer_destroy(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("msm");
    TCase *tc = tcase_create("msm");

    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, msm__equals_the_sum_of_logarithms, 0, SHAPES * CPU_CODES);
    tcase_add_test(tc, msm__of_several_stretches);
    tcase_add_loop_test(tc, digits_pick__finds_what_is_in_a_range, 0, CPU_CODES);
    tcase_add_loop_test(tc, msm__equal_bases, 0, 2 * CPU_CODES);
    tcase_add_test(tc, msm__equals_the_naive_backend);
    tcase_add_test(tc, msm__of_a_witness_in_compact_form);
    tcase_add_test(tc, msm__of_a_witness_equals_the_naive_backend);
    tcase_add_test(tc, msm__refuses_what_does_not_fit_its_indices);
    tcase_add_loop_test(tc, summer_add_lists__any_division_into_lists, 0, CPU_CODES);
    tcase_add_loop_test(tc, summer_weigh__equals_the_weighted_sum, 0, CPU_CODES);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
