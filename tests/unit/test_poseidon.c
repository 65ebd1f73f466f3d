#include "numa/circuit/poseidon.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "numa/base.h"
#include "tests/lib/suite.h"

/* porep-circuit 3.6 */
static const struct known {
    uint32_t arity;
    const char *first, *last;                   /* of K, big-endian hex */
    const char *c_t, *c_last, *pre_sparse, *w1; /* big-endian hex */
    const char *all_k, *all_c, *all;            /* SHA-256 */
    const char *hash;                           /* of (0, 1, ...), big-endian hex */
} known[] = {
    {2, "669f064bfa3ae17a23bd51861dbb4a24501eac92a2758b36a7320a009d6ed3d8",
     "60dfbfa5d5dd06351a917a05466e5884ed12e38ec24d5bb80be0abe065395e5c",
     "0bfc421d38531805382624c9d2d2d02b1f2f5590316c401b2f5f56ca2f12a0d1",
     "1c84e3e9450113a4b5489decd8dcc8b25f057797f37899354931a0eea88d7d5d",
     "4d491a377113a8daccd13ab0066be558e27e6d5755543d54aaaaaaaa00000001",
     "59d39397f9b91a3745685546ac8e905f0374bec2c68a96278d2f73d4d6a692a2",
     "cf4dfb7448132022e22b32e3dce6b125cb06329448f9e8d8fe53a71c73cbe6d4",
     "b768b730ce5198394d948d76421ab53b08cc16ec1ac082cf503f370192253e16",
     "fc71c797c2fd445f511fce65625312bbcfd6cd6efb8e6f81d36be0317ed44727",
     "396508d75e76a56b739e0fd902efe161a6fba9339d05a69d2e203c369a02e7ff"},
    {4, "45c919736a0e5f2ef32c4c7d0a338eb1fed3d9e317b7580921072285c7e215ca",
     "34e974d8cb3be2818f7a6a121a5c6057ed5037226d29e56d20a5ff71a4bec6eb",
     "725ed083647390443e9c6d2deb5ad1984682815793b63dc1587b6496f954ec63",
     "107d3b9de9f95ada46df77005c3abfdbee812882bbb35c09d296572c2af30e2d",
     "458e97984c2b4b2b51ef819e6c2de803323e959b66656a65cccccccc33333334",
     "18a18e9e2b73eb891838d0c518c14e4b715d8027951518cb29645d4b7b04b314",
     "91e463d6553415b3901b9f26b2ad53e6298ac3e5ab0ef260d397bafe8bdde98e",
     "3e4ec19ded2c86a89f3d6bddc13d9571a0cc5473e7207cfbaf6a8169a69f5709",
     "cfb0245dfc2424697dc1038c47bfe6a9826e8777d380787b011ac38878110667",
     "58a54b10a9e5848a00db3c6579229399fb6b4605bf1327ec019814ff6662075d"},
    {8, "6ce90d12c4045fe08c3caddb776dd84ac52b4ae7e48cd49443984154f2f4c2f9",
     "3b3a75eb91b0f723bcc4ab7e449e4a011b8960063efe74670c05e545519d9a8c",
     "3d60b7f170f1dc97472bc3a15c1fdf425fd4d52c7d629a9c8e2c0447b6f38bc6",
     "1ef936f03c337433c2e5f3570555397ed790517b32bebaa823ab1c9d7f374cb3",
     "19c308bd25b13848eef068e557794c72f62a247271c6bf1c38e38e38aaaaaaab",
     "39d9d3927b2b34ec506369b9a21e54c10a98949af37d495ceaf45bc33bfec77d",
     "9a4a743575f0eaf285c93d73f8adaf4e7ef4042c2445b42bddaf1a64e5face72",
     "f5a94aea73a583d080abdf7d71259fab9107f5523a4a1eddc41468f94564dd16",
     "4a7eacdb40d5de8deea941af668547a3b4ad261f47bc3886deba3a0ad0ae8621",
     "2394611da3a5de5512010042116770774b682e9d9cc4aed92a9934f56d38a5e6"},
    {11, "1f6c9576e648b5047399bfc5f38902e0d506f18e0f3ab77de6de096bd089bce4",
     "4543ca937ff30a73db73c95cf11b2f641c744cc5d6a08d197c29ea4e2aab6a16",
     "70c6ae20bd1d18d3dbb95f5a9694b328e69dd419e6279ae116ac934a94aa7906",
     "09bb1cbe3152cbfb7eaccdd4be6a977e2b4985915f147b902f7c73bf6b0e4ca1",
     "6a44840c3b7b082cd99fb0b208d45b5a376dd6581553d4546aaaaaa9c0000001",
     "1fa69f776fa73b654f02951a71458cbdceadfa6add02fa453178e0f407bc1ce2",
     "479dc0d71d694cd50d853dec0c94aeb37df2a69929eaa23b545a52b1226aec06",
     "2d7c0e4e9b98eda82102b69f1a964ae59ccf98b0008b6d3d632d86f4fea79d1d",
     "0ec8f8f08d5d2e4721134043c6506446ae75ab01b14bcf8b19898ec1d942b150",
     "0c0fc1b2e5227f286ca537e232ebe87a09f3dcd8ccb08fc1cee3bbc32b693163"},
};

static void assert_fr(const fr_t *got, const char *want_be)
{
    uint8_t le[FR_BYTES], be[FR_BYTES];
    char hex[2 * FR_BYTES + 1];

    fr_to_bytes(le, got);
    for (int i = 0; i < FR_BYTES; i++)
        be[i] = le[FR_BYTES - 1 - i];
    hex_encode(hex, be, sizeof(be));
    ck_assert_str_eq(hex, want_be);
}

static void feed(EVP_MD_CTX *md, const fr_t *values, size_t len)
{
    uint8_t bytes[FR_BYTES];

    for (size_t i = 0; i < len; i++) {
        fr_to_bytes(bytes, &values[i]);
        EVP_DigestUpdate(md, bytes, sizeof(bytes));
    }
}

static EVP_MD_CTX *sha_begin(void)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();

    EVP_DigestInit_ex(md, EVP_sha256(), NULL);
    return md;
}

static void assert_sha(EVP_MD_CTX *md, const char *want)
{
    uint8_t digest[32];
    char hex[65];

    EVP_DigestFinal_ex(md, digest, NULL);
    EVP_MD_CTX_free(md);
    hex_encode(hex, digest, sizeof(digest));
    ck_assert_str_eq(hex, want);
}

START_TEST(poseidon_constants__equal_the_check_values)
{
    const struct known *k = &known[_i];
    const struct poseidon *p = poseidon_constants(k->arity);
    const uint32_t t = p->width, n_c = t * POSEIDON_FULL_ROUNDS + p->partial_rounds;

    assert_fr(&p->round_constants[0], k->first);
    assert_fr(&p->round_constants[t * poseidon_rounds(p) - 1], k->last);
    assert_fr(&p->compressed[t], k->c_t);
    assert_fr(&p->compressed[n_c - 1], k->c_last);
    assert_fr(&p->pre_sparse[0][0], k->pre_sparse);
    assert_fr(&p->sparse[0].w[1], k->w1);

    EVP_MD_CTX *md = sha_begin();
    feed(md, p->round_constants, (size_t)t * poseidon_rounds(p));
    assert_sha(md, k->all_k);
    md = sha_begin();
    feed(md, p->compressed, n_c);
    assert_sha(md, k->all_c);
    md = sha_begin();
    feed(md, p->compressed, n_c);
    for (uint32_t i = 0; i < t; i++)
        feed(md, p->mds[i], t);
    for (uint32_t i = 0; i < t; i++)
        feed(md, p->pre_sparse[i], t);
    for (uint32_t i = 0; i < p->partial_rounds; i++) {
        feed(md, p->sparse[i].w, t);
        feed(md, p->sparse[i].v, t - 1);
    }
    assert_sha(md, k->all);
}
END_TEST

START_TEST(poseidon_hash__equals_the_published_digest)
{
    fr_t preimage[POSEIDON_MAX_ARITY], out;

    for (uint32_t i = 0; i < known[_i].arity; i++)
        preimage[i] = fr_from_u64(i);
    poseidon_hash(known[_i].arity, preimage, &out);
    assert_fr(&out, known[_i].hash);
}
END_TEST

/* The oracle: porep-circuit 3.4 word for word, on blst alone. */
static void textbook_hash(uint32_t arity, const fr_t *preimage, fr_t *out)
{
    const struct poseidon *p = poseidon_constants(arity);
    fr_t s[POSEIDON_MAX_WIDTH], next[POSEIDON_MAX_WIDTH], t;

    s[0] = p->tag;
    memcpy(&s[1], preimage, arity * sizeof(fr_t));
    for (uint32_t round = 0; round < poseidon_rounds(p); round++) {
        for (uint32_t i = 0; i < p->width; i++)
            fr_add(&s[i], &s[i], &p->round_constants[round * p->width + i]);
        uint32_t powers = poseidon_round_is_full(p, round) ? p->width : 1;
        for (uint32_t i = 0; i < powers; i++) {
            fr_sqr(&t, &s[i]);
            fr_sqr(&t, &t);
            fr_mul(&s[i], &s[i], &t);
        }
        for (uint32_t j = 0; j < p->width; j++) {
            memset(&next[j], 0, sizeof(fr_t));
            for (uint32_t i = 0; i < p->width; i++) {
                fr_mul(&t, &s[i], &p->mds[i][j]);
                fr_add(&next[j], &next[j], &t);
            }
        }
        memcpy(s, next, sizeof(s));
    }
    *out = s[1];
}

static fr_t random_fr(void)
{
    uint8_t bytes[FR_BYTES];
    fr_t out;

    for (int i = 0; i < FR_BYTES; i++)
        bytes[i] = (uint8_t)(random() >> 7);
    bytes[31] &= 0x3f;
    if (!fr_from_bytes(&out, bytes))
        ck_abort();
    return out;
}

START_TEST(poseidon_hash__equals_the_textbook_permutation)
{
    const uint32_t arity = known[_i].arity;
    fr_t preimage[POSEIDON_MAX_ARITY], got, want, top;
    const unsigned seed = 20240229;

    printf("seed %u\n", seed);
    srandom(seed);
    top = fr_from_u64(1);
    fr_neg(&top, &top); /* r - 1: the largest value there is */
    for (int round = 0; round < 300; round++) {
        for (uint32_t i = 0; i < arity; i++)
            preimage[i] = round == 0   ? (fr_t){{0}}
                          : round == 1 ? top
                                       : (random() % 8 == 0 ? top : random_fr());
        textbook_hash(arity, preimage, &want);
        poseidon_hash(arity, preimage, &got);
        ck_assert(fr_equal(&got, &want));
    }
}
END_TEST

START_TEST(poseidon_constants__no_other_arity)
{
    ck_assert_ptr_null(poseidon_constants(0));
    ck_assert_ptr_null(poseidon_constants(3));
    ck_assert_ptr_null(poseidon_constants(12));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("poseidon");
    TCase *tc = tcase_create("poseidon");

    tcase_add_loop_test(tc, poseidon_constants__equal_the_check_values, 0, ARRAY_LEN(known));
    tcase_add_loop_test(tc, poseidon_hash__equals_the_published_digest, 0, ARRAY_LEN(known));
    tcase_add_loop_test(tc, poseidon_hash__equals_the_textbook_permutation, 0, ARRAY_LEN(known));
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, poseidon_constants__no_other_arity);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
