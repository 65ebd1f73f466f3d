#include "numa/circuit/graph.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "numa/circuit/blake2b.h"
#include "numa/circuit/c1.h"
#include "numa/circuit/chacha.h"
#include "tests/lib/files.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

static void check_hex(const uint8_t *found, const char *wanted)
{
    char hex[129];

    hex_encode(hex, found, strlen(wanted) / 2);
    ck_assert_str_eq(hex, wanted);
}

static void registered_graph(struct graph *g, uint32_t id)
{
    const struct seal_proof *proof = seal_proof_by_id(id);
    uint8_t porep_id[32];

    seal_proof_porep_id(proof, porep_id);
    graph_init(g, proof->size->nodes, porep_id, proof->api);
}

/* ------------------------------------------------------------------------- the hashes themselves */

START_TEST(blake2b__equals_libcrypto)
{
    uint8_t message[BLAKE2B_BLOCK_BYTES], ours[64], theirs[64];

    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (uint8_t)(7 * i + 1);
    for (size_t len = 0; len <= sizeof(message); len++) {
        blake2b(ours, 64, &(struct blake2b_input){.message = message, .message_len = len});
        ck_assert_int_eq(EVP_Digest(message, len, theirs, NULL, EVP_blake2b512(), NULL), 1);
        ck_assert_mem_eq(ours, theirs, 64);
    }
}
END_TEST

static void mac_libcrypto(uint8_t out[32], const struct blake2b_input *in)
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "BLAKE2BMAC", NULL);
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
    size_t size = 32, len = 0;
    OSSL_PARAM params[] = {OSSL_PARAM_size_t("size", &size), OSSL_PARAM_END};

    ck_assert_int_eq(EVP_MAC_init(ctx, in->key, in->key_len, params), 1);
    ck_assert_int_eq(EVP_MAC_update(ctx, in->message, in->message_len), 1);
    ck_assert_int_eq(EVP_MAC_final(ctx, out, &len, 32), 1);
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
}

START_TEST(blake2b__with_key_equals_libcrypto)
{
    uint8_t message[BLAKE2B_BLOCK_BYTES] = {9, 8, 7}, key[64] = {1, 2, 3}, ours[32], theirs[32];

    for (size_t key_len = 1; key_len <= sizeof(key); key_len++) {
        struct blake2b_input in = {key, key_len, message, 2 * key_len};
        blake2b(ours, 32, &in);
        mac_libcrypto(theirs, &in);
        ck_assert_mem_eq(ours, theirs, 32);
    }
    struct blake2b_input empty = {key, 32, NULL, 0};
    blake2b(ours, 32, &empty);
    mac_libcrypto(theirs, &empty);
    ck_assert_mem_eq(ours, theirs, 32);
}
END_TEST

START_TEST(chacha_block__twenty_rounds_equal_libcrypto)
{
    uint8_t key[32], iv[16] = {0}, zero[1024] = {0}, stream[1024];
    struct chacha c = {.rounds = 20};
    int len = 0;

    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (uint8_t)(i * 11);
    memcpy(iv + 4, "synth-porep", 12);
    for (unsigned i = 0; i < 8; i++)
        c.key[i] = load_le32(key + 4 * i);
    for (unsigned i = 0; i < 4; i++)
        c.counter_nonce[i] = load_le32(iv + 4 * i);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    ck_assert_int_eq(EVP_EncryptInit_ex(ctx, EVP_chacha20(), NULL, key, iv), 1);
    ck_assert_int_eq(EVP_EncryptUpdate(ctx, stream, &len, zero, sizeof(zero)), 1);
    EVP_CIPHER_CTX_free(ctx);
    for (uint32_t block = 0; block < sizeof(zero) / CHACHA_BLOCK_BYTES; block++) {
        uint32_t words[CHACHA_BLOCK_WORDS];
        chacha_block(&c, block, words);
        for (unsigned i = 0; i < CHACHA_BLOCK_WORDS; i++)
            ck_assert_uint_eq(words[i], load_le32(stream + block * CHACHA_BLOCK_BYTES + 4 * i));
    }
}
END_TEST

/* ------------------------------------------------------------------------------------- the graph */

/* The label of the last node at the last layer, as the reference's tests make it. */
static void last_label(const struct graph *g, unsigned layers, uint8_t out[32])
{
    static uint8_t labels[2][128][32]; /* this layer and the one before */
    uint8_t message[64 + LABEL_PARENTS * 32];

    for (unsigned layer = 1; layer <= layers; layer++)
        for (uint64_t node = 0; node < g->nodes; node++) {
            uint8_t(*now)[32] = labels[layer % 2], (*before)[32] = labels[(layer + 1) % 2];
            uint64_t parents[PARENTS];
            unsigned used = layer == 1 ? DRG_PARENTS : PARENTS;
            graph_parents(g, node, parents);
            memset(message, 0, 64);
            memset(message, 9, 32);
            store_be32(message + 32, layer);
            store_be64(message + 36, node);
            for (unsigned i = 0; i < LABEL_PARENTS; i++) {
                unsigned k = i % used;
                memcpy(message + 64 + 32 * i,
                       k < DRG_PARENTS ? now[parents[k]] : before[parents[k]], 32);
            }
            SHA256(message, node == 0 ? 64 : sizeof(message), now[node]);
            now[node][31] &= 0x3f;
        }
    memcpy(out, labels[layers % 2][g->nodes - 1], 32);
}

START_TEST(graph_parents__give_the_labels_of_the_reference)
{
    static const struct {
        uint64_t nodes;
        uint8_t porep_id;
        enum api_version api;
        uint64_t limbs[4];
    } cases[] = {
        {64,
         0x00,
         API_1_0,
         {0xd3faa96b9a0fba04, 0xea81a283d106485e, 0xe3d51b9afa5ac2b3, 0x0462f4f4f1a68d37}},
        {128,
         0x00,
         API_1_0,
         {0x7e191e52c4a8da86, 0x5ae8a1c9e6fac148, 0xce239f3b88a894b8, 0x234c00d1dc1d53be}},
        {64,
         0x7b,
         API_1_1,
         {0xabb3f38bb70defcf, 0x777a2e4d7769119f, 0x3448959d495490bc, 0x06021188c7a71cb5}},
        {64,
         0x7b,
         API_1_2,
         {0xabb3f38bb70defcf, 0x777a2e4d7769119f, 0x3448959d495490bc, 0x06021188c7a71cb5}},
        {128,
         0x7b,
         API_1_1,
         {0x22ab81cf68c4676d, 0x7a77a82fc7c9c189, 0xc6c03d32c1e42d23, 0x0f777c18cc2c55bd}},
        {128,
         0x7b,
         API_1_2,
         {0x22ab81cf68c4676d, 0x7a77a82fc7c9c189, 0xc6c03d32c1e42d23, 0x0f777c18cc2c55bd}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t porep_id[32], label[32];
        struct graph g;
        memset(porep_id, cases[i].porep_id, 32);
        graph_init(&g, cases[i].nodes, porep_id, cases[i].api);
        last_label(&g, 11, label);
        for (int k = 0; k < 4; k++)
            ck_assert_uint_eq(load_le64(label + 8 * k), cases[i].limbs[k]);
    }
}
END_TEST

/* What the parent cache of the reference holds, hashed. PROOFD_QUICK: one of the two of 8 MiB, which take longest. */
#define CACHES_SMALL 4
static const struct {
    uint32_t id;
    const char *name, *digest; /* NULL: too large to compute in a test */
} caches[] = {
    {0, "3f0eef38bb48af1f48ad65e14eb85b4ebfc167cec18cd81764f6d998836c9899",
     "3da49221e2ed55371b86d0bf3d6526fcf128af61bed904f966428db1b531750d"},
    {5, "494d91dc80f2df5272c4b9e129bc7ade9405225993af9fe34e6542a39a47554b",
     "840057702eea7652cf97e04306c30fe57174714d90de156a25eddd6075c25b97"},
    {6, "5eed212119fd91aa6220a27f31a8966444a9381842bceb3a1ea61525bd47a5b5",
     "03cd13565ded97c240a5f52e54295ad127bd0461b57904cb3a4d79b097bbecab"},
    {1, "dcdabb0fbe4364bf0ac28b6a18c66de246409fa1a9020a00f33fb3e3053da6dc",
     "a76604f2f59f2744c7151653bbb1d8596b6b57d295e6fa6c1f0c41d725b502ce"},
    {2, "2aa9c77c3e58259481351cc4be2079cc71e1c9af39700866545c043bfa30fb42", NULL},
    {7, "7ba215a1d2345774ab90b8cb1158d296e409d6068819d7b8c7baf0b25d63dc34", NULL},
    {3, "e1fa5d5b811ddbd118be3412c4a8c329156b8b8acc72632bca459455b5a05a13", NULL},
    {8, "21981246c370f9d76c7a77ab273d94bde0ceb4e938292334960bce05585dc117", NULL},
    {4, "8a99e8d6b6be7ab87a56b632e6739ff201c23ea14e99737c74690f0e265574d6", NULL},
    {9, "4905486b7af19558ac3649bc6261411858b6add534438878c4ee3b29d8b9de0b", NULL},
};

START_TEST(graph_init__keys_give_the_cache_name_of_the_reference)
{
    char message[512];
    uint8_t digest[32];
    struct graph g;

    registered_graph(&g, caches[_i].id);
    int len = snprintf(message, sizeof(message),
                       "poseidon_hasherstacked_graph::StackedGraph{expansion_degree: 8 base_graph: "
                       "drgraph::BucketGraph{size: %llu; degree: 6; hasher: poseidon_hasher} }",
                       (unsigned long long)g.nodes);
    for (int i = 0; i < 4; i++, len += 8)
        store_le64((uint8_t *)message + len, g.feistel_keys[i]);
    store_le32((uint8_t *)message + len, (uint32_t)g.nodes);
    SHA256((uint8_t *)message, (size_t)len + 4, digest);
    check_hex(digest, caches[_i].name);
}
END_TEST

START_TEST(graph_parents__all_of_them_hash_to_the_cache_of_the_reference)
{
    uint8_t digest[32], record[4 * PARENTS];
    struct graph g;

    registered_graph(&g, caches[_i].id);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    ck_assert_int_eq(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL), 1);
    for (uint64_t node = 0; node < g.nodes; node++) {
        uint64_t parents[PARENTS];
        graph_parents(&g, node, parents);
        for (unsigned i = 0; i < PARENTS; i++)
            store_le32(record + 4 * i, (uint32_t)parents[i]);
        ck_assert_int_eq(EVP_DigestUpdate(ctx, record, sizeof(record)), 1);
    }
    ck_assert_int_eq(EVP_DigestFinal_ex(ctx, digest, NULL), 1);
    EVP_MD_CTX_free(ctx);
    check_hex(digest, caches[_i].digest);
}
END_TEST

START_TEST(graph_parents__large_graphs)
{
    static const struct {
        uint32_t id;
        uint64_t node, parents[PARENTS];
    } cases[] = {
        {8,
         2,
         {1, 1, 0, 1, 0, 0, 694934376, 792214855, 560882435, 923855168, 468160064, 444658509,
          700174899, 650486437}},
        {8,
         1000,
         {999, 999, 993, 999, 987, 994, 610880257, 52958456, 114467229, 442886740, 935021104,
          986163808, 486080124, 611062435}},
        {8,
         1073741823,
         {1073741822, 1073258530, 440642413, 663190843, 1073741654, 1073741786, 307718517,
          715446084, 558280128, 265147410, 110937796, 626719228, 201839602, 653041812}},
        {3,
         1000,
         {992, 999, 685, 999, 851, 999, 56765109, 142792959, 55421737, 123123914, 7049045,
          479267348, 532767812, 301615063}},
        {3,
         1073741823,
         {1073717791, 1073729651, 356271464, 1073741667, 1073518238, 1073741822, 195269793,
          55928625, 117716005, 370196974, 457529501, 256849605, 282938428, 400621728}},
        {9,
         2147483647,
         {2147483646, 2147483645, 2147473607, 2147483646, 2147483609, 1322413322, 319537050,
          259923117, 180788485, 1838730986, 786079656, 319786570, 1561782586, 1183784015}},
    };
    struct graph g;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t parents[PARENTS];
        registered_graph(&g, cases[i].id);
        graph_parents(&g, cases[i].node, parents);
        for (unsigned k = 0; k < PARENTS; k++)
            ck_assert_uint_eq(parents[k], cases[i].parents[k]);
    }
    registered_graph(&g, 8);
    check_hex(g.drg_seed, "ba0350183955dc9f07e73503f5c63ff1bd9c22501363983de241f74a");
    ck_assert_uint_eq(g.feistel_keys[0], 0x35a20d6c881b3e73);
    ck_assert_uint_eq(g.feistel_keys[3], 0xd299d840a5770469);
    registered_graph(&g, 3);
    check_hex(g.drg_seed, "a674e44e91e0af2c0d2406b8f0437a0832819d7568d3f7fe2f665a92");
}
END_TEST

/* -------------------------------------------------------------------------------- the challenges */

START_TEST(synthetic_challenge__equals_the_reference)
{
    static const uint64_t set[] = {178, 297, 869, 211, 875, 477, 94,  781, 124, 332, 856,
                                   801, 176, 692, 429, 691, 290, 204, 986, 210, 973};
    static const uint64_t selected[] = {176, 781, 801, 986, 290, 211, 692, 856, 986, 332};
    uint8_t replica_id[32] = {55}, comm_r[32] = {101}, seed[32];
    struct challenge_params p = {CHALLENGE_SYNTHETIC, 1024, replica_id, comm_r, seed};

    memset(seed, 1, sizeof(seed));
    for (uint32_t q = 0; q < ARRAY_LEN(set); q++)
        ck_assert_uint_eq(synthetic_challenge(&p, q), set[q]);
    for (uint32_t j = 0; j < ARRAY_LEN(selected); j++)
        ck_assert_uint_eq(set[synthetic_selection(&p, ARRAY_LEN(set), j)], selected[j]);
}
END_TEST

START_TEST(challenges_derive__large_sector)
{
    static const struct {
        enum challenge_kind kind;
        uint64_t first[3];
        uint32_t last_partition;
        uint64_t last[2];
    } cases[] = {
        {CHALLENGE_INTERACTIVE, {670038766, 115605571, 223827409}, 9, {255701430, 825430404}},
        {CHALLENGE_NON_INTERACTIVE,
         {459642162, 888833153, 380249979},
         125,
         {671871056, 1046563745}},
        {CHALLENGE_SYNTHETIC, {538712336, 416730142, 1006565455}, 9, {480558094, 809215147}},
    };
    uint8_t replica_id[32], comm_r[32], seed[32];

    memset(replica_id, 1, 31), replica_id[31] = 0;
    memset(comm_r, 2, 31), comm_r[31] = 0;
    memset(seed, 3, 32);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct challenge_params p = {cases[i].kind, UINT64_C(1) << 30, replica_id, comm_r, seed};
        uint64_t out[18];
        challenges_derive(&p, 18, 0, out);
        for (int k = 0; k < 3; k++)
            ck_assert_uint_eq(out[k], cases[i].first[k]);
        challenges_derive(&p, 18, cases[i].last_partition, out);
        ck_assert_uint_eq(out[16], cases[i].last[0]);
        ck_assert_uint_eq(out[17], cases[i].last[1]);
    }
}
END_TEST

/* The replicated test sectors of the circuit's specification. */
struct small_sector {
    const char *size;
    uint32_t proof_id;
    const char *replica_id, *comm_d, *comm_r;
    enum challenge_kind kind;
    uint32_t partition;
    uint64_t challenges[2];
};

#define SECTOR_2K                                                                  \
    "2KiB", 5, "e1b337ee8afb002cbb65c0c570bcbd10c0a9520ad9c64752165a3adb081b0933", \
        "3b8d86eb49cba4cdd343529b9950709bfe18b641a5e5e6fed30eb5be40542b12",        \
        "a985cd54d1104c316bd7fda7db9814887e2309bb7115ab1691794b653bc16c37"
#define SECTOR_2K_LEGACY                                                           \
    "2KiB", 0, "e346d277ca0b05ff05105693eb6970abb0c6eb558d7ab06a4ee017af5a37aa21", \
        "3b8d86eb49cba4cdd343529b9950709bfe18b641a5e5e6fed30eb5be40542b12",        \
        "ee6a37db76de6482fafba4f28646ef6e2898ee9f91d065b66e69be95b3ac6d6b"
#define SECTOR_16K                                                                  \
    "16KiB", 5, "abf89d29604c2dedbbac303b743b297bcf60e3bd977eca9094cfa2b4401f672e", \
        "156358697f37a22cb57b47554bd96e20b43d723bb499e4fc95274f6b8a500f34",         \
        "b15c4b8e5d7764d3dfd89d1f9ffc94dc23bd02e8e41b6697f236947fdc291b6c"
#define SECTOR_32K                                                                  \
    "32KiB", 5, "a75f51be81ecb10762b331aa8ac06e1190124b20759b5303356cfb1904153a0c", \
        "a06422a6e8c189914ead5e40610f54df5a67a618ff394897028a7c68f482f024",         \
        "a18106bfb7e2f184c9c570ec3d3a781e463d65e9d6cde7c056afb7cfd2f16269"

static const struct small_sector small_sectors[] = {
    {SECTOR_2K, CHALLENGE_INTERACTIVE, 0, {43, 60}},
    {SECTOR_2K, CHALLENGE_SYNTHETIC, 0, {20, 60}},
    {SECTOR_2K, CHALLENGE_NON_INTERACTIVE, 0, {24, 57}},
    {SECTOR_2K, CHALLENGE_NON_INTERACTIVE, 1, {62, 4}},
    {SECTOR_2K, CHALLENGE_NON_INTERACTIVE, 2, {15, 7}},
    {SECTOR_2K, CHALLENGE_NON_INTERACTIVE, 7, {6, 14}},
    {SECTOR_2K, CHALLENGE_NON_INTERACTIVE, 12, {10, 9}},
    {SECTOR_2K_LEGACY, CHALLENGE_INTERACTIVE, 0, {47, 20}},
    {SECTOR_16K, CHALLENGE_INTERACTIVE, 0, {216, 281}},
    {SECTOR_16K, CHALLENGE_SYNTHETIC, 0, {60, 259}},
    {SECTOR_16K, CHALLENGE_NON_INTERACTIVE, 0, {367, 159}},
    {SECTOR_32K, CHALLENGE_INTERACTIVE, 0, {344, 238}},
    {SECTOR_32K, CHALLENGE_SYNTHETIC, 0, {11, 792}},
    {SECTOR_32K, CHALLENGE_NON_INTERACTIVE, 0, {63, 758}},
};

START_TEST(small_sectors__replica_id_and_challenges)
{
    const struct small_sector *s = &small_sectors[_i];
    uint8_t prover_id[32], ticket[32], seed[32], comm_d[32], comm_r[32], porep_id[32],
        replica_id[32];
    uint64_t found[2];

    memset(prover_id, 1, 32);
    memset(ticket, 2, 32);
    memset(seed, 3, 32);
    hex_decode(comm_d, s->comm_d, 32);
    hex_decode(comm_r, s->comm_r, 32);
    seal_proof_porep_id(seal_proof_by_id(s->proof_id), porep_id);
    replica_id_compute(replica_id, prover_id, 7, ticket, comm_d, porep_id);
    check_hex(replica_id, s->replica_id);
    struct challenge_params p = {s->kind, sector_size_by_name(s->size)->nodes, replica_id, comm_r,
                                 seed};
    challenges_derive(&p, 2, s->partition, found);
    ck_assert_uint_eq(found[0], s->challenges[0]);
    ck_assert_uint_eq(found[1], s->challenges[1]);
}
END_TEST

START_TEST(prover_id_from_miner__leb128)
{
    static const struct {
        uint64_t miner;
        const char *hex;
    } cases[] = {{1000, "e80700"}, {1001, "e90700"},
                 {1006, "ee0700"}, {127, "7f0000"},
                 {128, "800100"},  {16384, "80800100"},
                 {0, "000000"},    {UINT64_MAX, "ffffffffffffffffff0100"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t out[32];
        prover_id_from_miner(out, cases[i].miner);
        check_hex(out, cases[i].hex);
        for (size_t k = strlen(cases[i].hex) / 2; k < 32; k++)
            ck_assert_uint_eq(out[k], 0);
    }
}
END_TEST

/* -------------------------------------------------------------------------------- public inputs */

static void check_public_inputs(const char *name, const char *witness)
{
    struct vector_meta meta;
    struct errmsg err = {""};
    const char *at = witness;
    uint8_t replica_id[32], porep_id[32];

    vector_meta(name, &meta);
    seal_proof_porep_id(meta.proof, porep_id);
    replica_id_compute(replica_id, meta.prover_id, meta.sector_number, meta.ticket, meta.comm_d,
                       porep_id);
    ck_assert_mem_eq(replica_id, meta.replica_id, 32);
    struct public_params p = {.proof = meta.proof,
                              .comm_r = meta.comm_r,
                              .comm_d = meta.comm_d,
                              .replica_id = replica_id,
                              .seed = meta.seed};
    size_t len = public_inputs_len(meta.proof->size);
    fr_t *inputs = malloc(len * sizeof(*inputs));
    for (uint32_t k = 0; (at = strstr(at, "\"public_inputs\":[")); k++) {
        at += strlen("\"public_inputs\":[");
        ck_assert_msg(public_inputs(&p, k, inputs, &err) == 0, "%s", err.text);
        for (size_t i = 0; i < len; i++) {
            uint8_t wanted[32], found[32];
            at += strspn(at, "\", \n");
            ck_assert_int_eq(hex_decode(wanted, at, 32), 0);
            at += 64;
            fr_to_bytes(found, &inputs[i]);
            ck_assert_mem_eq(found, wanted, 32);
        }
        ck_assert_uint_eq((uint8_t)at[strspn(at, "\" \n")], ']');
    }
    free(inputs);
}

START_TEST(public_inputs__equal_those_of_the_reference)
{
    size_t len;
    char *witness = (char *)file_read(c1_path(c1_names[_i], "witness.json"), &len);

    check_public_inputs(c1_names[_i], witness);
    free(witness);
}
END_TEST

START_TEST(public_inputs__not_below_the_modulus_names_the_value)
{
    uint8_t ones[32], zero[32] = {0};
    struct errmsg err = {""};
    fr_t inputs[64];

    memset(ones, 0xff, 32);
    struct public_params p = {.proof = seal_proof_by_id(5),
                              .comm_r = zero,
                              .comm_d = ones,
                              .replica_id = zero,
                              .seed = zero};
    ck_assert_int_eq(public_inputs(&p, 0, inputs, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "comm_d"));
}
END_TEST

static const struct {
    const char *name, *witness;
} large[] = {{"32GiB-sparse", "c1/32GiB-sparse/witness.json"},
             {"64GiB-sparse", "c1/64GiB-sparse/witness.json"}};

START_TEST(public_inputs__large_equal_those_of_the_reference)
{
    char path[VECTOR_PATH_MAX];
    size_t len;

    ck_assert(vector_find(path, large[_i].witness));
    char *witness = (char *)file_read(path, &len);
    check_public_inputs(large[_i].name, witness);
    free(witness);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph");
    TCase *tc = tcase_create("graph");

    const bool quick = getenv("PROOFD_QUICK");

    if (quick)
        suite_skip("parents of 8MiB by the older interface", "time (PROOFD_QUICK is set)");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, blake2b__equals_libcrypto);
    tcase_add_test(tc, blake2b__with_key_equals_libcrypto);
    tcase_add_test(tc, chacha_block__twenty_rounds_equal_libcrypto);
    tcase_add_test(tc, graph_parents__give_the_labels_of_the_reference);
    tcase_add_loop_test(tc, graph_init__keys_give_the_cache_name_of_the_reference, 0,
                        ARRAY_LEN(caches));
    tcase_add_loop_test(tc, graph_parents__all_of_them_hash_to_the_cache_of_the_reference, 0,
                        quick ? CACHES_SMALL - 1 : CACHES_SMALL);
    tcase_add_test(tc, graph_parents__large_graphs);
    tcase_add_test(tc, synthetic_challenge__equals_the_reference);
    tcase_add_test(tc, challenges_derive__large_sector);
    tcase_add_loop_test(tc, small_sectors__replica_id_and_challenges, 0, ARRAY_LEN(small_sectors));
    tcase_add_test(tc, prover_id_from_miner__leb128);
    tcase_add_loop_test(tc, public_inputs__equal_those_of_the_reference, 0, 6);
    tcase_add_test(tc, public_inputs__not_below_the_modulus_names_the_value);
    for (int i = 0; i < (int)ARRAY_LEN(large); i++) {
        char path[VECTOR_PATH_MAX];
        if (vector_find(path, large[i].witness))
            tcase_add_loop_test(tc, public_inputs__large_equal_those_of_the_reference, i, i + 1);
        else
            suite_skip(large[i].name, "needs $PROOFD_SHARED with the large vectors");
    }
    suite_add_tcase(s, tc);
    return suite_run(s);
}
