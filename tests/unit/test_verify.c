#include "gpu/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/odd_points.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

static const char *const names[] = {
    "2KiB-sealed",  "2KiB-v1",       "2KiB-synthetic", "2KiB-sparse",
    "8MiB-sealed",  "512MiB-sparse", "32GiB-sparse",   "64GiB-sparse",
};
#define SAMPLE "public/rust-fil-proofs-seal-regression-sample.jsonl"
static const char *const files[] = {"proof-r3-s5.txt", "proof-r0-s0.txt", "proof-labels.txt"};

/* Partition 0 of a vector: key, inputs, and the proof where there is one of it. */
struct sample {
    struct vk vk;
    fr_t *inputs;
    size_t inputs_len;
    uint8_t bytes[PROOF_BYTES];
    struct proof proof;
};

static void sample_init(struct sample *s, const char *name)
{
    struct vector_meta meta;

    vector_meta(name, &meta);
    vector_vk(meta.proof->size, &s->vk);
    s->inputs = vector_inputs(name, 0, &s->inputs_len);
    if (vector_proof(name, "proof-r3-s5.txt", 0, s->bytes))
        ck_assert_int_eq(proof_decode(&s->proof, s->bytes, NULL), 0);
}

static void sample_fini(struct sample *s)
{
    free(s->inputs);
    vk_fini(&s->vk);
}

static bool valid(const struct sample *s)
{
    bool answer = false;

    ck_assert_int_eq(groth16_verify(&s->vk, s->inputs, s->inputs_len, &s->proof, &answer, NULL), 0);
    return answer;
}

/* Every proof of every vector: three pairs of r and s, each partition that is there. */
START_TEST(groth16_verify__accepts_the_vectors)
{
    struct sample s;
    size_t proofs = 0;

    sample_init(&s, names[_i]);
    for (uint32_t partition = 0; partition < 10; partition++)
        for (size_t f = 0; f < ARRAY_LEN(files); f++) {
            if (!vector_proof(names[_i], files[f], partition, s.bytes))
                continue;
            uint8_t again[PROOF_BYTES];
            ck_assert_int_eq(proof_decode(&s.proof, s.bytes, NULL), 0);
            proof_encode(again, &s.proof);
            ck_assert_mem_eq(again, s.bytes, PROOF_BYTES);
            free(s.inputs);
            s.inputs = vector_inputs(names[_i], partition, &s.inputs_len);
            ck_assert_msg(valid(&s), "%s %s partition %u", names[_i], files[f], partition);
            proofs++;
        }
    ck_assert_uint_ge(proofs, 1);
    sample_fini(&s);
}
END_TEST

START_TEST(groth16_verify__rejects_any_flipped_bit)
{
    struct sample s;
    size_t undecodable = 0, invalid = 0;

    sample_init(&s, "2KiB-sealed");
    for (int bit = 0; bit < 8 * PROOF_BYTES; bit++) {
        s.bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
        if (proof_decode(&s.proof, s.bytes, NULL) < 0)
            undecodable++;
        else if (!valid(&s))
            invalid++;
        s.bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
    }
    ck_assert_uint_eq(undecodable + invalid, 8 * PROOF_BYTES);
    /* The three signs alone turn a point of the subgroup into another. */
    ck_assert_uint_ge(invalid, 3);
    sample_fini(&s);
}
END_TEST

START_TEST(groth16_verify__rejects_any_other_input)
{
    struct sample s;
    fr_t one = fr_from_u64(1);

    sample_init(&s, "2KiB-sealed");
    for (size_t i = 0; i < s.inputs_len; i++) {
        fr_t right = s.inputs[i];
        fr_add(&s.inputs[i], &right, &one);
        ck_assert_msg(!valid(&s), "input %zu", i);
        s.inputs[i] = right;
    }
    ck_assert(valid(&s));
    sample_fini(&s);
}
END_TEST

START_TEST(groth16_verify__rejects_the_key_of_another_size)
{
    struct sample s;

    sample_init(&s, "2KiB-sealed");
    vk_fini(&s.vk);
    vector_vk(sector_size_by_name("8MiB"), &s.vk);
    ck_assert(!valid(&s));
    sample_fini(&s);
}
END_TEST

START_TEST(groth16_verify__wrong_number_of_inputs_is_an_error)
{
    struct sample s;
    struct errmsg err;
    bool answer;

    sample_init(&s, "2KiB-sealed");
    ck_assert_int_eq(groth16_verify(&s.vk, s.inputs, 38, &s.proof, &answer, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "38 public inputs, the key takes 39"));
    ck_assert_int_eq(groth16_verify_batch(&s.vk, s.inputs, 38, &s.proof, 1, &answer, &err), -EINVAL);
    ck_assert_int_eq(groth16_verify_batch(&s.vk, s.inputs, 39, &s.proof, 0, &answer, &err), -EINVAL);
    sample_fini(&s);
}
END_TEST

/* Ten partitions of 32 GiB. */
struct batch {
    struct vk vk;
    fr_t *inputs;
    size_t inputs_len;
    struct proof proofs[10];
};

static void batch_init(struct batch *b)
{
    const char *name = "32GiB-sparse";

    vector_vk(sector_size_by_name("32GiB"), &b->vk);
    b->inputs_len = b->vk.ic_len - 1;
    b->inputs = malloc(10 * b->inputs_len * sizeof(*b->inputs));
    for (uint32_t k = 0; k < 10; k++) {
        uint8_t bytes[PROOF_BYTES];
        size_t len;
        fr_t *inputs = vector_inputs(name, k, &len);
        ck_assert_uint_eq(len, b->inputs_len);
        memcpy(b->inputs + k * len, inputs, len * sizeof(*inputs));
        free(inputs);
        ck_assert(vector_proof(name, "proof-r3-s5.txt", k, bytes));
        ck_assert_int_eq(proof_decode(&b->proofs[k], bytes, NULL), 0);
    }
}

static void batch_fini(struct batch *b)
{
    free(b->inputs);
    vk_fini(&b->vk);
}

static bool batch_valid(const struct batch *b, size_t count)
{
    bool answer = false;

    ck_assert_int_eq(groth16_verify_batch(&b->vk, b->inputs, b->inputs_len, b->proofs, count, &answer,
                                          NULL),
                     0);
    return answer;
}

START_TEST(groth16_verify_batch__accepts_ten_partitions)
{
    struct batch b;

    batch_init(&b);
    for (size_t count = 1; count <= 10; count++)
        ck_assert(batch_valid(&b, count));
    batch_fini(&b);
}
END_TEST

START_TEST(groth16_verify_batch__one_bad_proof_fails_all)
{
    struct batch b;

    batch_init(&b);
    for (size_t k = 0; k < 10; k++) {
        g1_affine_t right = b.proofs[k].c;
        b.proofs[k].c = b.proofs[k].a;
        ck_assert(!batch_valid(&b, 10));
        b.proofs[k].c = right;
    }
    /* Two wrongs that cancel out without weights: C of one down, C of the other up by the same. */
    g1_t up, down;
    blst_p1_from_affine(&up, &b.proofs[3].c);
    blst_p1_from_affine(&down, &b.proofs[7].c);
    g1_t generator = *blst_p1_generator();
    blst_p1_add_or_double(&up, &up, &generator);
    blst_p1_cneg(&generator, true);
    blst_p1_add_or_double(&down, &down, &generator);
    blst_p1_to_affine(&b.proofs[3].c, &up);
    blst_p1_to_affine(&b.proofs[7].c, &down);
    ck_assert(!batch_valid(&b, 10));
    batch_fini(&b);
}
END_TEST

START_TEST(groth16_verify_batch__partitions_may_not_change_places)
{
    struct batch b;

    batch_init(&b);
    struct proof first = b.proofs[0];
    b.proofs[0] = b.proofs[1];
    b.proofs[1] = first;
    ck_assert(!batch_valid(&b, 10));
    batch_fini(&b);
}
END_TEST

static void expect_undecodable(const uint8_t bytes[PROOF_BYTES], const char *says)
{
    struct proof p;
    struct errmsg err = {""};

    ck_assert_int_eq(proof_decode(&p, bytes, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, says), "'%s' does not say '%s'", err.text, says);
}

START_TEST(proof_decode__refuses_infinity)
{
    struct sample s;
    static const struct {
        size_t at, len;
        const char *says;
    } parts[] = {{0, 48, "A is infinity"}, {48, 96, "B is infinity"}, {144, 48, "C is infinity"}};

    sample_init(&s, "2KiB-sealed");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        uint8_t bytes[PROOF_BYTES];
        memcpy(bytes, s.bytes, sizeof(bytes));
        memset(bytes + parts[i].at, 0, parts[i].len);
        bytes[parts[i].at] = 0xc0;
        expect_undecodable(bytes, parts[i].says);
        bytes[parts[i].at + 1] = 1;
        expect_undecodable(bytes, "is not a compressed point");
    }
    sample_fini(&s);
}
END_TEST

START_TEST(proof_decode__refuses_points_outside_the_subgroup)
{
    struct sample s;
    g1_affine_t g1 = odd_g1(1), order_3 = odd_g1_of_order(3);
    g2_affine_t g2 = odd_g2(1);

    sample_init(&s, "2KiB-sealed");
    struct proof bad = s.proof;
    bad.a = g1;
    proof_encode(s.bytes, &bad);
    expect_undecodable(s.bytes, "A is outside the subgroup");
    bad = s.proof;
    bad.b = g2;
    proof_encode(s.bytes, &bad);
    expect_undecodable(s.bytes, "B is outside the subgroup");
    bad = s.proof;
    bad.c = order_3;
    proof_encode(s.bytes, &bad);
    expect_undecodable(s.bytes, "C is outside the subgroup");
    sample_fini(&s);
}
END_TEST

/* Parses the array of byte values behind `"key":[`. */
static size_t byte_array(const char *line, const char *key, uint8_t *out, size_t max)
{
    size_t len = 0;
    char quoted[32];

    snprintf(quoted, sizeof(quoted), "\"%s\":[", key);
    const char *at = strstr(line, quoted);
    ck_assert_ptr_nonnull(at);
    for (at += strlen(quoted); *at && *at != ']';) {
        char *end;
        unsigned long v = strtoul(at, &end, 10);
        ck_assert(end != at && v < 256 && len < max);
        out[len++] = (uint8_t)v;
        at = *end == ',' ? end + 1 : end;
    }
    return len;
}

/* Real proofs, made by others with the published parameters: 192 bytes a partition; aggregates have another length. */
START_TEST(proof_decode__real_proofs_of_others)
{
    char path[VECTOR_PATH_MAX];
    static uint8_t bytes[1 << 16];
    size_t decoded = 0;

    ck_assert(vector_find(path, SAMPLE));
    char *text = vector_read(path, NULL), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t len = byte_array(line, "proof", bytes, sizeof(bytes));
        if (strstr(line, "NonInteractive"))
            continue;
        ck_assert(len == PROOF_BYTES || len == 10 * PROOF_BYTES);
        for (size_t at = 0; at < len; at += PROOF_BYTES) {
            struct proof p;
            uint8_t again[PROOF_BYTES];
            ck_assert_int_eq(proof_decode(&p, bytes + at, NULL), 0);
            proof_encode(again, &p);
            ck_assert_mem_eq(again, bytes + at, PROOF_BYTES);
            decoded++;
        }
    }
    free(text);
    ck_assert_uint_ge(decoded, 36);
}
END_TEST

/* Those proofs belong to other parameters: under the development key they are well-formed and false. */
START_TEST(groth16_verify__rejects_a_real_proof_under_the_wrong_key)
{
    char path[VECTOR_PATH_MAX];
    static uint8_t bytes[1 << 16];
    struct sample s;

    ck_assert(vector_find(path, SAMPLE));
    char *text = vector_read(path, NULL);
    sample_init(&s, "2KiB-sealed");
    ck_assert_uint_eq(byte_array(text, "proof", bytes, sizeof(bytes)), PROOF_BYTES);
    ck_assert_int_eq(proof_decode(&s.proof, bytes, NULL), 0);
    ck_assert(!valid(&s));
    sample_fini(&s);
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("verify");
    TCase *tc = tcase_create("verify");
    char path[VECTOR_PATH_MAX];

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, groth16_verify__accepts_the_vectors, 0, ARRAY_LEN(names));
    tcase_add_test(tc, groth16_verify__rejects_any_flipped_bit);
    tcase_add_test(tc, groth16_verify__rejects_any_other_input);
    tcase_add_test(tc, groth16_verify__rejects_the_key_of_another_size);
    tcase_add_test(tc, groth16_verify__wrong_number_of_inputs_is_an_error);
    tcase_add_test(tc, groth16_verify_batch__accepts_ten_partitions);
    tcase_add_test(tc, groth16_verify_batch__one_bad_proof_fails_all);
    tcase_add_test(tc, groth16_verify_batch__partitions_may_not_change_places);
    tcase_add_test(tc, proof_decode__refuses_infinity);
    tcase_add_test(tc, proof_decode__refuses_points_outside_the_subgroup);
    if (vector_find(path, SAMPLE)) {
        tcase_add_test(tc, proof_decode__real_proofs_of_others);
        tcase_add_test(tc, groth16_verify__rejects_a_real_proof_under_the_wrong_key);
    } else {
        suite_skip("proofs of others", "needs $PROOFD_SHARED with the public samples");
    }
    suite_add_tcase(s, tc);
    return suite_run(s);
}
