/*
 * Products of points and steps of their transform, compiled for the host, against blst and the textbook.
 */
#include "gpu/cuda/c_headers.cuh"
#include "gpu/cuda/point_multiply.cuh"
#include "tests/lib/layout.cuh"

#include <check.h>
#include <cstdio>
#include <vector>

extern "C" {
#include "gpu/domain.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"
}

static constexpr uint64_t SEED = 0x9017;
static constexpr int RANDOM_ONES = 50;

static fr_t negative(fr_t a)
{
    fr_neg(&a, &a);
    return a;
}

static fr_t sum_of(fr_t a, const fr_t &b)
{
    fr_add(&a, &a, &b);
    return a;
}

static fr_t product_of(fr_t a, const fr_t &b)
{
    fr_mul(&a, &a, &b);
    return a;
}

static fr_t lambda()
{
    const fr integer = {{LAMBDA_LIMBS}};

    return as<fr_t>(canonical(mul(integer, fr_r_squared())));
}

static g1_affine_t point_of(const fr_t &log)
{
    return fr_is_zero(&log) ? g1_affine_t{} : g1_of(&log);
}

/* Small ones, those around what splits them and around powers of two, their opposites; then random ones. */
static std::vector<fr_t> scalars()
{
    struct random rng = {SEED};
    std::vector<fr_t> v;
    fr_t power_of_two = fr_from_u64(1), half = lambda(), two = fr_from_u64(2);

    printf("seed %llx\n", (unsigned long long)SEED);
    fr_inverse(&two, &two);
    for (uint64_t k = 0; k <= 20; k++) {
        v.push_back(fr_from_u64(k));
        v.push_back(sum_of(lambda(), negative(fr_from_u64(k))));
        v.push_back(sum_of(lambda(), fr_from_u64(k)));
        v.push_back(product_of(lambda(), fr_from_u64(k)));
    }
    half = product_of(sum_of(half, fr_from_u64(1)), two);
    for (int bit = 0; bit < 255; bit++) {
        if (bit % 31 == 0 || (bit > 120 && bit < 132))
            for (const fr_t &near : {power_of_two, sum_of(power_of_two, half)}) {
                v.push_back(near);
                v.push_back(sum_of(near, negative(fr_from_u64(1))));
            }
        power_of_two = sum_of(power_of_two, power_of_two);
    }
    for (int i = 0; i < RANDOM_ONES; i++)
        v.push_back(random_fr(&rng));
    for (size_t i = v.size(); i-- > 0;)
        v.push_back(negative(v[i]));
    return v;
}

START_TEST(lambda__is_a_cube_root_of_one)
{
    const fr_t l = lambda();

    ck_assert(same(product_of(l, product_of(l, l)), fr_from_u64(1)));
    ck_assert(!same(l, fr_from_u64(1)));
}
END_TEST

START_TEST(split__halves_make_up_the_scalar)
{
    for (const fr_t &k : scalars()) {
        const split_scalar s = split(to_integer(as<fr>(k)));
        fr_t halves[2] = {};

        for (int half = 0; half < 2; half++)
            for (int i = SPLIT_DIGITS - 1; i >= 0; i--) {
                const int digit = split_digit(s, half, i);
                const fr_t d = fr_from_u64((uint64_t)(digit < 0 ? -digit : digit));
                ck_assert_int_ge(digit, -MULTIPLES);
                ck_assert_int_le(digit, MULTIPLES);
                halves[half] = product_of(halves[half], fr_from_u64(16));
                halves[half] = sum_of(halves[half], digit < 0 ? negative(d) : d);
            }
        ck_assert(same(sum_of(halves[0], product_of(halves[1], lambda())), k));
    }
}
END_TEST

START_TEST(turned_point__equals_blst)
{
    struct random rng = {SEED};
    const fr_t logs[] = {fr_from_u64(1), random_fr(&rng)};

    for (const fr_t &k : scalars())
        for (const fr_t &log : logs) {
            g1_affine_t base = g1_of(&log), want;
            g1_t sum = {}, p;
            blst_p1_from_affine(&p, &base);
            g1_mul_add(&sum, &p, &k);
            blst_p1_to_affine(&want, &sum);
            ck_assert(same(as<g1_affine_t>(to_affine(turned_point(as<g1_point>(base), as<fr>(k)))),
                           want));
        }
}
END_TEST

START_TEST(turned_point__of_infinity_is_infinity)
{
    for (const fr_t &k : scalars())
        ck_assert(is_infinity(to_affine(turned_point(infinity<fp>(), as<fr>(k)))));
}
END_TEST

/* Infinity, equal and opposite points once multiplied, and others. */
START_TEST(point_butterfly__by_logarithms)
{
    struct random rng = {SEED};
    const fr_t one = fr_from_u64(1), k = random_fr(&rng), b = random_fr(&rng);

    for (const fr_t &factor : {one, negative(one), fr_from_u64(2), lambda(), k, fr_from_u64(0)})
        for (const fr_t &second : {fr_from_u64(0), one, b})
            for (const fr_t &first :
                 {fr_from_u64(0), one, k, product_of(factor, second),
                  negative(product_of(factor, second)), second, negative(second)}) {
                g1_point p = as<g1_point>(point_of(first)), q = as<g1_point>(point_of(second));
                const fr_t turned = product_of(factor, second);
                point_butterfly(turned_point(q, as<fr>(factor)), p, q);
                ck_assert(same(as<g1_affine_t>(p), point_of(sum_of(first, turned))));
                ck_assert(same(as<g1_affine_t>(q), point_of(sum_of(first, negative(turned)))));
            }
}
END_TEST

/* out[j] = the sum of root^(j k) in[k], by blst. */
static std::vector<g1_affine_t> textbook(const std::vector<g1_affine_t> &in, const fr_t &root)
{
    std::vector<g1_affine_t> out;

    for (size_t j = 0; j < in.size(); j++) {
        g1_t sum = {}, p;
        g1_affine_t point;
        for (size_t k = 0; k < in.size(); k++) {
            const fr_t factor = fr_power(&root, j * k);
            blst_p1_from_affine(&p, &in[k]);
            g1_mul_add(&sum, &p, &factor);
        }
        blst_p1_to_affine(&point, &sum);
        out.push_back(point);
    }
    return out;
}

static size_t reversed(size_t i, uint32_t bits)
{
    size_t r = 0;

    for (uint32_t k = 0; k < bits; k++)
        r |= (i >> k & 1) << (bits - 1 - k);
    return r;
}

START_TEST(levels_of_butterflies__are_the_textbooks_transform)
{
    const uint32_t log2_len = (uint32_t)_i;
    const size_t len = (size_t)1 << log2_len;
    const fr_t root = domain_root(log2_len);
    struct random rng = {SEED};
    std::vector<g1_affine_t> in;
    std::vector<g1_point> v(len);

    for (size_t k = 0; k < len; k++)
        in.push_back(point_of(k % 5 == 3 ? fr_from_u64(0) : random_fr(&rng)));
    for (size_t k = 0; k < len; k++)
        v[k] = as<g1_point>(in[reversed(k, log2_len)]);
    for (uint32_t level = 0; level < log2_len; level++) {
        const fr_t level_root = fr_power(&root, len >> (level + 1));
        for (uint32_t i = 0; i < len / 2; i++) {
            const butterfly_place at = place_of_butterfly(log2_len, level, i);
            g1_point &second = v[at.first + (1u << level)];
            point_butterfly(turned_point(second, power(as<fr>(level_root), at.power)), v[at.first],
                            second);
        }
    }
    const std::vector<g1_affine_t> want = textbook(in, root);
    for (size_t k = 0; k < len; k++)
        ck_assert(same(as<g1_affine_t>(v[k]), want[k]));
}
END_TEST

int main()
{
    Suite *s = suite_create("cuda points");
    TCase *tc = tcase_create("host");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, lambda__is_a_cube_root_of_one);
    tcase_add_test(tc, split__halves_make_up_the_scalar);
    tcase_add_test(tc, turned_point__equals_blst);
    tcase_add_test(tc, turned_point__of_infinity_is_infinity);
    tcase_add_test(tc, point_butterfly__by_logarithms);
    tcase_add_loop_test(tc, levels_of_butterflies__are_the_textbooks_transform, 0, 6);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
