/*
 * The arithmetic of the CUDA backend, compiled for the host, against blst.
 */
#include "gpu/cuda/c_headers.cuh"
#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/fr.cuh"
#include "tests/lib/layout.cuh"

#include <check.h>
#include <cstdio>
#include <initializer_list>

extern "C" {
#include "tests/lib/random_group.h"
}

static_assert(sizeof(fp) == sizeof(fp_t) && sizeof(fp2) == sizeof(fp2_t) &&
                  sizeof(fr) == sizeof(fr_t) && sizeof(g1_point) == sizeof(g1_affine_t) &&
                  sizeof(g2_point) == sizeof(g2_affine_t),
              "one layout");

static constexpr uint64_t SEED = 0x5eed0381;
static constexpr int ROUNDS = 300;

/* Canonical values: the edges first, then random ones. */
static fp_t fp_value(int i, struct random *rng)
{
    fp_t one = as<fp_t>(fp_one()), zero = {}, out;
    uint8_t bytes[96];

    switch (i) {
    case 0:
        return zero;
    case 1:
        return one;
    case 2:
        blst_fp_sub(&out, &zero, &one);
        return out;
    case 3: { /* limbs of p - 1 themselves */
        fp p = fp_modulus();
        p.v[0]--;
        return as<fp_t>(p);
    }
    default:
        for (size_t k = 0; k < sizeof(bytes); k += 8)
            store_le64(bytes + k, random_u64(rng));
        blst_fp_from_lendian(&out, bytes); /* 48 bytes; reduces nothing below the top */
        blst_fp_mul(&out, &out, &one);
        return out;
    }
}

static fp2_t fp2_value(int i, struct random *rng)
{
    fp2_t out;

    out.fp[0] = fp_value(i % 5, rng);
    out.fp[1] = fp_value(i / 5 % 5, rng);
    return out;
}

/* Every pair of the first values, of which the last is random, then random pairs. */
template <class T, class Make, class Test> static void for_pairs(int edges, Make make, Test test)
{
    struct random rng = {SEED};

    printf("seed %llx\n", (unsigned long long)SEED);
    for (int i = 0; i < edges; i++)
        for (int j = 0; j < edges; j++)
            test(make(i, &rng), make(j, &rng));
    for (int i = 0; i < ROUNDS; i++)
        test(make(edges - 1, &rng), make(edges - 1, &rng));
}

START_TEST(fp__equals_blst)
{
    for_pairs<fp_t>(5, fp_value, [](const fp_t &a, const fp_t &b) {
        fp x = as<fp>(a), y = as<fp>(b);
        fp_t want;

        blst_fp_mul(&want, &a, &b);
        ck_assert(same(as<fp_t>(reduce_2p(mul(x, y))), want));
        blst_fp_sqr(&want, &a);
        ck_assert(same(as<fp_t>(reduce_2p(sqr(x))), want));
        blst_fp_add(&want, &a, &b);
        ck_assert(same(as<fp_t>(add(x, y)), want));
        blst_fp_sub(&want, &a, &b);
        ck_assert(same(as<fp_t>(sub(x, y)), want));
        ck_assert(same(as<fp_t>(reduce_4p(sub_lazy_doubled(x, y))), want));
        blst_fp_cneg(&want, &a, true);
        ck_assert(same(as<fp_t>(reduce_2p(negate_lazy_if(x, true))), want));
        ck_assert(same(as<fp_t>(negate_lazy_if(x, false)), a));
        blst_fp_inverse(&want, &a);
        ck_assert(same(as<fp_t>(reduce_2p(inverse(x))), want));
    });
}
END_TEST

START_TEST(fp_mul__takes_unreduced_operands)
{
    for_pairs<fp_t>(5, fp_value, [](const fp_t &a, const fp_t &b) {
        const fp p = fp_modulus();
        fp x = add_raw(add_raw(as<fp>(a), p), p), y = add_raw(add_raw(as<fp>(b), p), p); /* < 3p */
        fp r = mul(x, y);
        fp_t want;

        blst_fp_mul(&want, &a, &b);
        ck_assert(same(as<fp_t>(reduce_2p(r)), want));
    });
}
END_TEST

START_TEST(fp2__equals_blst)
{
    for_pairs<fp2_t>(25, fp2_value, [](const fp2_t &a, const fp2_t &b) {
        fp2 x = as<fp2>(a), y = as<fp2>(b);
        fp2_t want;

        blst_fp2_mul(&want, &a, &b);
        ck_assert(same(as<fp2_t>(reduce_2p(mul(x, y))), want));
        const fp p = fp_modulus();
        fp2 x_lazy = {add_raw(x.c0, p), add_raw(x.c1, p)}, y_lazy = {add_raw(y.c0, p), y.c1};
        ck_assert(same(as<fp2_t>(reduce_2p(mul(x_lazy, y_lazy))), want));
        blst_fp2_sqr(&want, &a);
        ck_assert(same(as<fp2_t>(reduce_2p(sqr(x))), want));
        blst_fp2_add(&want, &a, &b);
        ck_assert(same(as<fp2_t>(add(x, y)), want));
        blst_fp2_sub(&want, &a, &b);
        ck_assert(same(as<fp2_t>(sub(x, y)), want));
        blst_fp2_inverse(&want, &a);
        ck_assert(same(as<fp2_t>(reduce_2p(inverse(x))), want));
    });
}
END_TEST

static fr_t fr_value(int i, struct random *rng)
{
    fr_t zero = {}, one = fr_from_u64(1), out;

    switch (i) {
    case 0:
        return zero;
    case 1:
        return one;
    case 2:
        fr_neg(&out, &one);
        return out;
    case 3: {
        fr r = fr_modulus();
        r.v[0]--;
        return as<fr_t>(r);
    }
    default:
        return random_fr(rng);
    }
}

START_TEST(fr__equals_blst)
{
    for_pairs<fr_t>(5, fr_value, [](const fr_t &a, const fr_t &b) {
        /* loose representatives, too */
        fr x = as<fr>(a), y = as<fr>(b), x2, y2;
        limbs_add<8>(x2.v, x.v, fr_modulus().v);
        limbs_add<8>(y2.v, y.v, fr_modulus().v);
        fr_t want;

        fr_mul(&want, &a, &b);
        for (const fr &u : {x, x2}) {
            ck_assert(same(as<fr_t>(canonical(mul(u, y))), want));
            ck_assert(same(as<fr_t>(canonical(mul(u, y2))), want));
            ck_assert(same(as<fr_t>(canonical(mul_constant(u, make_constant(y)))), want));
        }
        fr_add(&want, &a, &b);
        ck_assert(same(as<fr_t>(canonical(add(x, y))), want));
        ck_assert(same(as<fr_t>(canonical(add(x2, y2))), want));
        fr_sub(&want, &a, &b);
        ck_assert(same(as<fr_t>(canonical(sub(x, y))), want));
        ck_assert(same(as<fr_t>(canonical(sub(x2, y))), want));
        ck_assert(same(as<fr_t>(canonical(sub(x, y2))), want));
        fr_inverse(&want, &a);
        ck_assert(same(as<fr_t>(inverse(x)), want));
        scalar_t integer;
        blst_scalar_from_fr(&integer, &a);
        ck_assert(same(as<scalar_t>(to_integer(x)), integer));
    });
}
END_TEST

START_TEST(fr_power__of_small_numbers)
{
    fr_t seven = fr_from_u64(7), want = fr_from_u64(1);

    ck_assert(same(as<fr_t>(canonical(fr_from_u32(7))), seven));
    for (uint64_t e = 0; e < 40; e++) {
        ck_assert(same(as<fr_t>(canonical(power(as<fr>(seven), e))), want));
        fr_mul(&want, &want, &seven);
    }
}
END_TEST

template <class A> struct group;
template <> struct group<g1_affine_t> {
    typedef g1_point point;
    static g1_affine_t of(const fr_t &k)
    {
        return fr_is_zero(&k) ? g1_affine_t{} : g1_of(&k);
    }
};
template <> struct group<g2_affine_t> {
    typedef g2_point point;
    static g2_affine_t of(const fr_t &k)
    {
        return fr_is_zero(&k) ? g2_affine_t{} : g2_of(&k);
    }
};

/* By known logarithms: infinity, equal, opposite and ordinary points. */
template <class A> static void additions()
{
    typedef typename group<A>::point point;
    struct random rng = {SEED};
    fr_t k[8] = {fr_from_u64(0), fr_from_u64(1), fr_from_u64(2), random_fr(&rng), random_fr(&rng)};

    fr_neg(&k[5], &k[1]);
    fr_neg(&k[6], &k[3]);
    fr_add(&k[7], &k[3], &k[3]);
    for (const fr_t &a : k)
        for (const fr_t &b : k) {
            fr_t c;
            fr_add(&c, &a, &b);
            point p = as<point>(group<A>::of(a)), q = as<point>(group<A>::of(b));
            ck_assert(same(as<A>(add_complete(p, q)), group<A>::of(c)));
            fr_sub(&c, &a, &b);
            ck_assert(same(as<A>(add_complete(p, negate(q))), group<A>::of(c)));
        }
}

START_TEST(g1_add__by_logarithms)
{
    additions<g1_affine_t>();
}
END_TEST

START_TEST(g2_add__by_logarithms)
{
    additions<g2_affine_t>();
}
END_TEST

int main()
{
    Suite *s = suite_create("cuda arithmetic");
    TCase *tc = tcase_create("host");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, fp__equals_blst);
    tcase_add_test(tc, fp_mul__takes_unreduced_operands);
    tcase_add_test(tc, fp2__equals_blst);
    tcase_add_test(tc, fr__equals_blst);
    tcase_add_test(tc, fr_power__of_small_numbers);
    tcase_add_test(tc, g1_add__by_logarithms);
    tcase_add_test(tc, g2_add__by_logarithms);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
