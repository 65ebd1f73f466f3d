/*
 * Every kind of code against blst, element by element.
 */
#include "gpu/cpu/fr_vectors.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/cpu/features.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define SEED 0x70726f6f66640077
#define LEN 200

static fr_t vectors[3][LEN], want[LEN];

/* Every pair of extremes, then what comes. */
static void fill(fr_t *x, fr_t *y, struct random *rng)
{
    fr_t odd[4] = {fr_from_u64(0), fr_from_u64(1), {{0}}, {{1}}}; /* also what is 2^-256 */

    fr_neg(&odd[2], &odd[1]);
    for (size_t i = 0; i < LEN; i++) {
        x[i] = i < 16 ? odd[i / 4] : random_fr(rng);
        y[i] = i < 16 ? odd[i % 4] : random_fr(rng);
    }
    fr_neg(&x[16], &odd[3]); /* the greatest number there is */
    y[16] = x[16];
}

static void expect(const fr_t *got, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!fr_equal(&got[i], &want[i]))
            ck_abort_msg("element %zu of %zu", i, len);
    for (size_t i = len; i < LEN; i++)
        if (!fr_is_zero(&got[i]))
            ck_abort_msg("element %zu was written, of %zu", i, len);
}

START_TEST(fr_vectors__equal_what_blst_makes)
{
    struct random rng = {SEED};
    fr_t *x = vectors[0], *y = vectors[1], *out = vectors[2], factor = random_fr(&rng);

    cpu_use_at_most((enum cpu_code)_i);
    fill(x, y, &rng);
    for (size_t len = 0; len <= LEN; len += len < 40 ? 1 : 53) {
        memset(out, 0, sizeof(vectors[2]));
        fr_vectors_multiply(out, x, y, len);
        for (size_t i = 0; i < len; i++)
            fr_mul(&want[i], &x[i], &y[i]);
        expect(out, len);
        memset(out, 0, sizeof(vectors[2]));
        fr_vectors_subtract_scale(out, x, y, len, &factor);
        for (size_t i = 0; i < len; i++) {
            fr_sub(&want[i], &x[i], &y[i]);
            fr_mul(&want[i], &want[i], &factor);
        }
        expect(out, len);
    }
}
END_TEST

/* As the prover has them; also from where no line begins. */
START_TEST(fr_vectors__in_place)
{
    struct random rng = {SEED};
    fr_t *x = vectors[0], *y = vectors[1];

    cpu_use_at_most((enum cpu_code)_i);
    fill(x, y, &rng);
    for (size_t i = 0; i < LEN; i++)
        fr_mul(&want[i], &x[i], &y[i]);
    fr_vectors_multiply(x, x, y, LEN / 2 + 1);
    fr_vectors_multiply(y + LEN / 2 + 1, x + LEN / 2 + 1, y + LEN / 2 + 1, LEN / 2 - 1);
    memcpy(x + LEN / 2 + 1, y + LEN / 2 + 1, (LEN / 2 - 1) * sizeof(*x));
    expect(x, LEN);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fr_vectors");
    TCase *tc = tcase_create("fr_vectors");

    printf("seed %llx\n", (unsigned long long)SEED);
    tcase_add_loop_test(tc, fr_vectors__equal_what_blst_makes, 0, CPU_CODES);
    tcase_add_loop_test(tc, fr_vectors__in_place, 0, CPU_CODES);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
