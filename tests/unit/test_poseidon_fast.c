#include "numa/circuit/poseidon_fast.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "numa/circuit/fr_dot.h"
#include "numa/circuit/poseidon_gadget.h"
#include "tests/lib/suite.h"

#define SEED 4711

static uint64_t state = SEED;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* A random element; now and then one whose Montgomery form is at the edge. */
static fr_t random_element(void)
{
    static const fr_t edges[] = {
        {{0, 0, 0, 0}},
        {{1, 0, 0, 0}},
        {{0xffffffff00000000, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}}};
    uint64_t limbs[4];
    fr_t out;

    if (next_random() % 4 == 0)
        return edges[next_random() % 3];
    for (int i = 0; i < 4; i++)
        limbs[i] = next_random();
    limbs[3] >>= 2;
    blst_fr_from_uint64(&out, limbs);
    return out;
}

static fr_t dot_one_by_one(const fr_t *a, const fr_t *b, size_t len)
{
    fr_t sum = {{0}}, product;

    for (size_t i = 0; i < len; i++) {
        fr_mul(&product, &a[i], &b[i]);
        fr_add(&sum, &sum, &product);
    }
    return sum;
}

START_TEST(fr_dot__equals_products_one_by_one)
{
    fr_t a[FR_DOT_MAX], b[FR_DOT_MAX], found;

    for (int round = 0; round < 5000; round++) {
        size_t len = next_random() % (FR_DOT_MAX + 1);
        for (size_t i = 0; i < len; i++)
            a[i] = random_element(), b[i] = random_element();
        fr_t wanted = dot_one_by_one(a, b, len);
        fr_dot(&found, a, b, len);
        ck_assert(fr_equal(&found, &wanted));
    }
}
END_TEST

/* The largest sums there are: all factors r - 1. */
START_TEST(fr_dot__largest_operands)
{
    fr_t a[FR_DOT_MAX], found;

    for (size_t len = 0; len <= FR_DOT_MAX; len++) {
        for (size_t i = 0; i < len; i++)
            a[i] = (fr_t){
                {0xffffffff00000000, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}};
        fr_t wanted = dot_one_by_one(a, a, len);
        fr_dot(&found, a, a, len);
        ck_assert(fr_equal(&found, &wanted));
    }
}
END_TEST

static const uint32_t arities[] = {2, 4, 8, 11};

START_TEST(poseidon_fast_hash__equals_poseidon_hash)
{
    uint32_t arity = arities[_i];
    fr_t preimage[POSEIDON_MAX_ARITY], plain, fast;

    for (int round = 0; round < 300; round++) {
        for (uint32_t i = 0; i < arity; i++)
            preimage[i] = random_element();
        poseidon_hash(arity, preimage, &plain);
        poseidon_fast_hash(arity, preimage, &fast);
        ck_assert(fr_equal(&plain, &fast));
    }
}
END_TEST

/* Variables as the gadget allocates them. */
struct allocated {
    fr_t value[1024];
    uint32_t len;
};

static void take_aux(void *ctx, uint32_t index, const fr_t *value)
{
    struct allocated *a = ctx;

    ck_assert_uint_eq(index, a->len);
    a->value[a->len++] = *value;
}

START_TEST(poseidon_fast_trace__equals_what_the_gadget_allocates)
{
    uint32_t arity = arities[_i];
    struct num preimage[POSEIDON_MAX_ARITY] = {{0}};
    fr_t values[POSEIDON_MAX_ARITY], trace[1024];
    struct allocated allocated;
    const struct cs_sink sink = {.aux = take_aux, .ctx = &allocated};

    for (int round = 0; round < 50; round++) {
        struct cs cs = {.sink = &sink};
        allocated.len = 0;
        for (uint32_t i = 0; i < arity; i++)
            preimage[i].value = values[i] = random_element();
        poseidon_num(&cs, preimage, arity);
        ck_assert_uint_eq(poseidon_variables(arity), allocated.len);
        poseidon_fast_trace(arity, values, trace);
        ck_assert_mem_eq(trace, allocated.value, allocated.len * sizeof(fr_t));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("poseidon_fast");
    TCase *tc = tcase_create("poseidon_fast");

    printf("seed %d\n", SEED);
    tcase_add_test(tc, fr_dot__equals_products_one_by_one);
    tcase_add_test(tc, fr_dot__largest_operands);
    tcase_add_loop_test(tc, poseidon_fast_hash__equals_poseidon_hash, 0, 4);
    tcase_add_loop_test(tc, poseidon_fast_trace__equals_what_the_gadget_allocates, 0, 4);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
