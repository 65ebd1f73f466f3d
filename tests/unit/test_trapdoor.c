/*
 * The exact proofs of the vectors and the keys of their sizes, from the trapdoor: circuit, witness, row numbering and
 * public inputs are right where these bytes come out.
 */
#include "tests/lib/trapdoor.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/vk.h"
#include "numa/circuit/c1_reader.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

static const char *const names[] = {
    "2KiB-sealed", "2KiB-v1",       "2KiB-synthetic", "2KiB-sparse",
    "8MiB-sealed", "512MiB-sparse", "32GiB-sparse",   "64GiB-sparse",
};
#define SMALL_NAMES 6

/* The C1 of a vector; false when it is not at hand. */
static bool c1_find(char path[VECTOR_PATH_MAX], const char *name)
{
    char relative[128];

    snprintf(relative, sizeof(relative), "c1/%s/bare.json.zst", name);
    return vector_find(path, relative);
}

static struct c1 *c1_of(const char *name)
{
    char path[VECTOR_PATH_MAX];
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    struct errmsg err = {""};

    ck_assert(c1_find(path, name));
    ck_assert_msg(c1_read_file(path, C1_CHECK_FORM, NULL, &c1, &extra, &err) == 0, "%s", err.text);
    return c1;
}

static void expect_proof(const struct trapdoor *t, const char *name, uint32_t partition,
                         const char *file, const fr_t *r, const fr_t *s, size_t *compared)
{
    uint8_t want[PROOF_BYTES], got[PROOF_BYTES];

    if (!vector_proof(name, file, partition, want))
        return;
    trapdoor_proof(t, r, s, got);
    ck_assert_mem_eq(got, want, PROOF_BYTES);
    ++*compared;
}

static void expect_vk(const struct trapdoor *t, const struct sector_size *size)
{
    struct vk want;

    vector_vk(size, &want);
    uint8_t *got = malloc(vk_bytes(want.ic_len)), *bytes = malloc(vk_bytes(want.ic_len));
    trapdoor_vk(t, got);
    vk_write(bytes, &want);
    ck_assert_mem_eq(got, bytes, vk_bytes(want.ic_len));
    free(got);
    free(bytes);
    vk_fini(&want);
}

/* The first partition of which the vectors have a proof. */
static uint32_t known_partition(const char *name)
{
    uint8_t bytes[PROOF_BYTES];
    uint32_t partition = 0;

    while (partition < 10 && !vector_proof(name, "proof-r3-s5.txt", partition, bytes))
        partition++;
    ck_assert_uint_lt(partition, 10);
    return partition;
}

START_TEST(trapdoor__gives_proofs_and_key_of_the_vectors)
{
    const char *name = names[_i];
    struct c1 *c1 = c1_of(name);
    struct trapdoor *t = NULL;
    struct errmsg err = {""};
    uint32_t partition = known_partition(name);
    size_t inputs_len, compared = 0;
    fr_t zero = fr_from_u64(0), three = fr_from_u64(3), five = fr_from_u64(5);
    fr_t r = vector_label_scalar("proof test vector: r"), s = vector_label_scalar("proof test vector: s");

    ck_assert_msg(trapdoor_create(c1_size(c1), c1, partition, &t, &err) == 0, "%s", err.text);
    expect_proof(t, name, partition, "proof-r3-s5.txt", &three, &five, &compared);
    expect_proof(t, name, partition, "proof-r0-s0.txt", &zero, &zero, &compared);
    expect_proof(t, name, partition, "proof-labels.txt", &r, &s, &compared);
    ck_assert_uint_ge(compared, _i < SMALL_NAMES ? 3 : 1);
    expect_vk(t, c1_size(c1));

    fr_t *inputs = vector_inputs(name, partition, &inputs_len);
    ck_assert_mem_eq(trapdoor_inputs(t), inputs, inputs_len * sizeof(*inputs));
    free(inputs);
    trapdoor_destroy(t);
    c1_destroy(c1);
}
END_TEST

/* The key needs no witness. */
START_TEST(trapdoor__key_from_the_blank_circuit)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    struct trapdoor *t = NULL;

    ck_assert_int_eq(trapdoor_create(size, NULL, 0, &t, NULL), 0);
    expect_vk(t, size);
    trapdoor_destroy(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trapdoor");
    TCase *tc = tcase_create("trapdoor");
    char path[VECTOR_PATH_MAX];

    tcase_set_timeout(tc, 1800);
    tcase_add_test(tc, trapdoor__key_from_the_blank_circuit);
    for (int i = 0; i < (int)ARRAY_LEN(names); i++) {
        if (i >= SMALL_NAMES && !getenv("PROOFD_ALL"))
            continue; /* minutes and 5 GB: with PROOFD_ALL=1 */
        if (i > 0 && getenv("PROOFD_QUICK")) {
            suite_skip(names[i], "time (PROOFD_QUICK is set)");
            continue;
        }
        if (c1_find(path, names[i]))
            tcase_add_loop_test(tc, trapdoor__gives_proofs_and_key_of_the_vectors, i, i + 1);
        else
            suite_skip(names[i], "needs $PROOFD_SHARED with the large vectors");
    }
    suite_add_tcase(s, tc);
    return suite_run(s);
}
