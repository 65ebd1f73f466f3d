/*
 * Each gadget in a fresh system: counts and digest as recorded (porep-circuit 7.3), its honest values satisfy it,
 * and no variable can be changed alone.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/sha.h>

#include "numa/base.h"
#include "numa/circuit/label.h"
#include "numa/circuit/merkle.h"
#include "numa/circuit/poseidon_gadget.h"
#include "numa/circuit/sha256.h"
#include "tests/lib/r1cs.h"
#include "tests/lib/suite.h"

#define SEED 20240301u

static fr_t random_fr(void)
{
    uint8_t bytes[FR_BYTES];
    fr_t out;

    for (int i = 0; i < FR_BYTES; i++)
        bytes[i] = (uint8_t)(random() >> 7);
    bytes[31] &= 0x3f;
    fr_from_bytes(&out, bytes);
    return out;
}

static struct num new_num(struct cs *cs)
{
    const fr_t value = random_fr();

    return num_alloc(cs, &value);
}

static void new_bits(struct cs *cs, struct boolean *bits, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bits[i] = boolean_alloc(cs, random() >> 7 & 1);
}

static void build_to_bits(struct cs *cs, int arg)
{
    struct boolean bits[NUM_BITS];
    const struct num n = new_num(cs);

    (void)arg;
    num_to_bits(cs, &n, bits);
}

static void build_inputize(struct cs *cs, int arg)
{
    const struct num n = new_num(cs);

    (void)arg;
    num_inputize(cs, &n);
}

static void build_inputize_bits(struct cs *cs, int n_bits)
{
    struct boolean bits[NUM_PACK_BITS];

    new_bits(cs, bits, (size_t)n_bits);
    num_inputize_bits(cs, bits, (size_t)n_bits);
}

static void build_from_bits(struct cs *cs, int n_bits)
{
    struct boolean bits[NUM_BITS];

    new_bits(cs, bits, (size_t)n_bits);
    num_from_bits(cs, bits, (size_t)n_bits);
}

static void build_add(struct cs *cs, int arg)
{
    const struct num a = new_num(cs), b = new_num(cs);

    (void)arg;
    num_add(cs, &a, &b);
}

static uint32_t log2_of(int arity)
{
    return arity == 8 ? 3 : arity == 4 ? 2 : 1;
}

static void build_insert(struct cs *cs, int arity)
{
    struct num others[7], out[8];
    struct boolean bits[3];

    for (int i = 0; i < arity - 1; i++)
        others[i] = new_num(cs);
    const struct num el = new_num(cs);
    new_bits(cs, bits, log2_of(arity));
    merkle_insert(cs, &el, bits, others, (uint32_t)arity, out);
}

static void build_poseidon(struct cs *cs, int arity)
{
    struct num preimage[POSEIDON_MAX_ARITY];
    fr_t values[POSEIDON_MAX_ARITY], want;

    for (int i = 0; i < arity; i++) {
        preimage[i] = new_num(cs);
        values[i] = preimage[i].value;
    }
    const struct num digest = poseidon_num(cs, preimage, (uint32_t)arity);
    poseidon_hash((uint32_t)arity, values, &want);
    ck_assert(fr_equal(&digest.value, &want));
}

/* From the bytes that bits in hash order stand for. */
static void bytes_of(const struct boolean *bits, size_t len, uint8_t *out)
{
    memset(out, 0, len / 8);
    for (size_t i = 0; i < len; i++)
        out[i / 8] |= (uint8_t)(bits[i].value << (7 - i % 8));
}

static void new_state(struct cs *cs, struct sha256_word state[8])
{
    for (int i = 0; i < 8; i++)
        new_bits(cs, state[i].bit, 32);
}

static void build_compress(struct cs *cs, int with_state)
{
    struct boolean block[SHA256_BLOCK_BITS];
    struct sha256_word state[8];

    new_bits(cs, block, ARRAY_LEN(block));
    if (with_state)
        new_state(cs, state);
    else
        sha256_iv(state);
    sha256_compress(cs, block, state);
}

static void build_sha256(struct cs *cs, int len)
{
    struct boolean bits[1024] = {0}, digest[SHA256_DIGEST_BITS];
    uint8_t message[128], want[32], got[32];

    new_bits(cs, bits, (size_t)len);
    sha256_bits(cs, bits, (size_t)len, digest);
    bytes_of(bits, (size_t)len, message);
    bytes_of(digest, SHA256_DIGEST_BITS, got);
    SHA256(message, (size_t)len / 8, want);
    ck_assert_mem_eq(got, want, sizeof(want));
}

/* Nothing is variable, so nothing is emitted. */
static void build_sha256_const(struct cs *cs, int len)
{
    struct boolean bits[1024] = {0}, digest[SHA256_DIGEST_BITS];

    for (int i = 0; i < len; i++)
        bits[i] = boolean_const(i % 3 == 0);
    sha256_bits(cs, bits, (size_t)len, digest);
}

/* A node of tree D over leaves that are bits already. */
static void build_sha256_leaves(struct cs *cs, int arg)
{
    struct boolean bits[SHA256_BLOCK_BITS], digest[SHA256_DIGEST_BITS];

    (void)arg;
    new_bits(cs, bits, ARRAY_LEN(bits));
    sha256_bits(cs, bits, ARRAY_LEN(bits), digest);
    num_from_byte_bits(cs, digest);
}

static void build_sha256_node(struct cs *cs, int arg)
{
    const struct num nodes[2] = {new_num(cs), new_num(cs)};

    (void)arg;
    merkle_sha256_node(cs, nodes);
}

/* A tree's shape: base levels of arity 8 (or 2 for tree D), then sub and top. */
static uint32_t make_path(struct merkle_level *levels, const int *arities)
{
    uint32_t n = 0;

    for (; arities[n] > 0; n++) {
        levels[n].arity = (uint32_t)arities[n];
        levels[n].index = (uint32_t)random() % levels[n].arity;
        for (int i = 0; i < arities[n] - 1; i++)
            levels[n].siblings[i] = random_fr();
    }
    return n;
}

static const int path_d6[] = {2, 2, 2, 2, 2, 2, 0}, path_800[] = {8, 8, 0},
                 path_820[] = {8, 8, 2, 0}, path_880[] = {8, 8, 8, 0}, path_882[] = {8, 8, 8, 2, 0},
                 path_880_32[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0},
                 path_882_64[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 2, 0},
                 path_200[] = {2, 2, 2, 2, 2, 2, 0}, path_400[] = {4, 4, 4, 0},
                 path_842[] = {8, 8, 4, 2, 0}, path_824[] = {8, 8, 2, 4, 0};
static const int *const paths[] = {path_d6,     path_800, path_820, path_880, path_882, path_880_32,
                                   path_882_64, path_200, path_400, path_842, path_824};
enum { D6, P800, P820, P880, P882, P880_32, P882_64, P200, P400, P842, P824 };

/* Where the path leads, found in a system of its own. */
static fr_t root_of(enum merkle_hash hash, const fr_t *leaf, const struct merkle_level *levels,
                    uint32_t n)
{
    const struct cs_sink none = {0};
    struct cs cs;

    cs_init(&cs, &none);
    const struct num start = num_alloc(&cs, leaf);
    return merkle_path(&cs, hash, &start, levels, n).value;
}

static void build_inclusion(struct cs *cs, int path)
{
    const enum merkle_hash hash = path == D6 ? MERKLE_SHA256 : MERKLE_POSEIDON;
    struct merkle_level levels[11];
    const uint32_t n = make_path(levels, paths[path]);

    const struct num leaf = new_num(cs);
    const fr_t value = root_of(hash, &leaf.value, levels, n);
    const struct num root = num_alloc(cs, &value);
    merkle_inclusion(cs, hash, &leaf, levels, n, &root);
}

/* The stand-alone circuit of the reference's tests: the root is allocated late. */
static struct num build_late_root(struct cs *cs, int path)
{
    const enum merkle_hash hash = path == D6 ? MERKLE_SHA256 : MERKLE_POSEIDON;
    struct merkle_level levels[11];
    const uint32_t n = make_path(levels, paths[path]);

    const struct num leaf = new_num(cs);
    const struct num top = merkle_path(cs, hash, &leaf, levels, n);
    const struct num root = num_alloc(cs, &top.value);
    num_enforce_equal(cs, &top, &root);
    return root;
}

static void build_private_root(struct cs *cs, int path)
{
    build_late_root(cs, path);
}

static void build_public_root(struct cs *cs, int path)
{
    const struct num root = build_late_root(cs, path);

    num_inputize(cs, &root);
}

static void new_label_bits(struct cs *cs, struct label_bits *out)
{
    const struct num n = new_num(cs);

    num_to_byte_bits(cs, &n, out->bit);
}

static void build_label(struct cs *cs, int layer)
{
    struct label_bits replica_id, parents[PARENTS];
    struct boolean node[LABEL_NODE_BITS];
    const uint32_t n_parents = layer == 1 ? DRG_PARENTS : PARENTS;

    new_label_bits(cs, &replica_id);
    for (uint32_t i = 0; i < n_parents; i++)
        new_label_bits(cs, &parents[i]);
    new_bits(cs, node, ARRAY_LEN(node));
    label_create(cs, &replica_id, (uint32_t)layer, node, parents, n_parents);
}

static void build_label_all_bits(struct cs *cs, int arg)
{
    static struct label_bits parents[LABEL_PARENTS];
    struct label_bits replica_id;
    struct boolean node[LABEL_NODE_BITS];

    (void)arg;
    for (uint32_t i = 0; i < LABEL_PARENTS; i++)
        new_bits(cs, parents[i].bit, NUM_BYTE_BITS);
    new_bits(cs, replica_id.bit, NUM_BYTE_BITS);
    for (uint32_t i = 0; i < LABEL_NODE_BITS; i++)
        node[i] = boolean_const(UINT64_C(22) >> i & 1);
    label_create(cs, &replica_id, 3, node, parents, LABEL_PARENTS);
}

static const struct gadget {
    const char *name;
    void (*build)(struct cs *cs, int arg);
    int arg;
    uint32_t inputs, aux;
    uint64_t rows;
    const char *digest; /* NULL: only the counts are recorded */
} gadgets[] = {
    {"to_bits", build_to_bits, 0, 1, 256, 256,
     "5e0a85ae649ee0a518e2c434606b1d5805411ba5c3c684887a023ee1da8f002d"},
    {"inputize", build_inputize, 0, 2, 1, 1,
     "1619f9fb4df38ae5d5e6572f8fb70ad178d7e536c2aa0e1df7ba1741de041e8b"},
    {"inputize 30 bits", build_inputize_bits, 30, 2, 30, 31,
     "543d5b3114f54e060d012a89056760712f2fd32f79cea3355b3cad30f134128f"},
    {"inputize 64 bits", build_inputize_bits, 64, 2, 64, 65,
     "af5bacd0d3c66c2a7755edf6ae40bf1a4cdc15c17d8018016c5cca9bffdf6646"},
    {"from_bits 254", build_from_bits, 254, 1, 255, 255,
     "04134fcb040b657b9521a6d7bed0f6756a874d6a11fa3910935cc16be1a66381"},
    {"from_bits 255: the last unused", build_from_bits, 255, 1, 256, 256,
     "8489e373fb13066a8a945d2e3cdcc2bf51f45379058af7f21a7ebf8fa2bc7c00"},
    {"add", build_add, 0, 1, 3, 1,
     "3f2d48870011d3ab24f874f50828801c7fd5eb80a617dfb9a2d06722ffc2ebdb"},
    {"insert 2", build_insert, 2, 1, 5, 3,
     "2df7d630c19430cb3382bd0f99023db0e51e46ed855d9d4cbfa1bc591793ddc6"},
    {"insert 4", build_insert, 4, 1, 14, 10,
     "53ad6d044e60cd16b10e04a4aed0d9011d98fced07acfba415a552f3ee2fe71e"},
    {"insert 8", build_insert, 8, 1, 33, 25,
     "62f397c5821cfee192eb28e0caea5279ba302fb2f47907e3054c6fc28ef8980c"},
    {"poseidon 2", build_poseidon, 2, 1, 313, 311,
     "96942f92c0269f74b3448653a1ef9cfca5f678ea30347e503440b6bbe0e1f6eb"},
    {"poseidon 4", build_poseidon, 4, 1, 381, 377,
     "9ae40b141d3e75065f472dd0a7049a16e9baf05da8fc3c1ff80f8ba9c7b5dd8f"},
    {"poseidon 8", build_poseidon, 8, 1, 513, 505,
     "4430a9cd610b41182996e2ae73e99490d68bf3ce49dd4defe5fa7e1520e935cb"},
    {"poseidon 11", build_poseidon, 11, 1, 609, 598,
     "58dcdd37a7c08234236e1f373828747a5d388eb6bcc97af9cc9e399192e489bc"},
    {"compress, constant state", build_compress, 0, 1, 26326, 26352,
     "63280ae198f4f65ba94f9f03cbcab7b7df36fa3a7a01741f0a38dc1524926cad"},
    {"compress, variable state", build_compress, 1, 1, 26934, 26960,
     "098539efd2ede132409c258b1fb607e8c7809322d9af671b10bde17bd7fb4368"},
    {"sha256 of constants", build_sha256_const, 512, 1, 0, 0, NULL},
    {"sha256 of 8 bits", build_sha256, 8, 1, 24352, 24378,
     "a9f26b9cd54a1f8bbeb9c04c66b475d0748d8028503d2b5f0874c441b0b92407"},
    {"sha256 of 512 bits", build_sha256, 512, 1, 45340, 45386,
     "f524aedf263115c772840279ff4e2a25ba8cd8c4cecef3de33dce1aaf2d7d9f4"},
    {"sha256 node", build_sha256_node, 0, 1, 45333, 45379,
     "e771b56028f22b3451fcaab5ef6498fa9b8e427cb77395cdfab5ba082fe0b7fd"},
    {"sha256 of leaves in bits", build_sha256_leaves, 0, 1, 45341, 45387, NULL},
    {"inclusion tree D, 6", build_inclusion, D6, 2, 272012, 272294,
     "7f9a88423e8c4ba939e2300d6b03046fb5684b5db9731637b6c5c47df6e65d33"},
    {"inclusion 8-0-0, 2^6", build_inclusion, P800, 2, 1076, 1062,
     "8198f72e865fbf59003c0d0582018c2d547ea2cca869bd785dfa789fefc40c7c"},
    {"inclusion 8-2-0, 2^7", build_inclusion, P820, 2, 1391, 1376,
     "7a82970cd5ac2d2dae9066d962a475b90ec197c0ecdb2068226c186792427f97"},
    {"inclusion 8-8-0, 2^9", build_inclusion, P880, 2, 1613, 1592,
     "362d5c9aa383d8dbc617dca5257018c6e1c2ac6cd15e6a562b1811c048375439"},
    {"inclusion 8-8-2, 2^10", build_inclusion, P882, 2, 1928, 1906,
     "d7fea4a3cee728406cb0c061c04be1c27f3a6ae65966d6121bf0ab826840ae9f"},
    {"inclusion 8-8-0, 2^30", build_inclusion, P880_32, 2, 5372, 5302,
     "a1e0daf6bd54ae05d182ef26c405727021d92f75bd096638dfb1b412defe8564"},
    {"inclusion 8-8-2, 2^31", build_inclusion, P882_64, 2, 5687, 5616,
     "a6f7b68f853d599b1307562b90058e7b798038b01ab83d5a251ccfaf6233a7c8"},
    {"public root 8-0-0, 2^6", build_public_root, P800, 3, 1076, 1063, NULL},
    {"public root 8-2-0, 2^7", build_public_root, P820, 3, 1391, 1377, NULL},
    {"public root 8-8-0, 2^9", build_public_root, P880, 3, 1613, 1593, NULL},
    {"public root 8-8-2, 2^10", build_public_root, P882, 3, 1928, 1907, NULL},
    {"public root 2-0-0, 2^6", build_public_root, P200, 3, 1892, 1887, NULL},
    {"public root 4-0-0, 2^6", build_public_root, P400, 3, 1172, 1164, NULL},
    {"public root 8-4-2, 2^9", build_public_root, P842, 3, 1781, 1764, NULL},
    {"public root 8-2-4, 2^9", build_public_root, P824, 3, 1781, 1764, NULL},
    {"public root tree D, 2^6", build_public_root, D6, 3, 272012, 272295, NULL},
    {"private root 2-0-0, 2^6", build_private_root, P200, 2, 1892, 1886, NULL},
    {"private root 4-0-0, 2^6", build_private_root, P400, 2, 1172, 1163, NULL},
    {"private root 8-0-0, 2^6", build_private_root, P800, 2, 1076, 1062, NULL},
    {"label, layer 1", build_label, 1, 1, 523605, 524125,
     "0bd51ab9f2ecefae0f47748037b9f0c653d491fd6508edd87189982a373b4170"},
    {"label, layer 2", build_label, 2, 1, 525653, 526173,
     "f537a4b9f2ba2e3bad987b9dac57fae8e02329e6700edf06d97c61fdda46fd0d"},
    {"label, layer 11", build_label, 11, 1, 525653, 526173,
     "c9ebdff4a28dc8f674572b4af00c23581296b664d7f680a02c182930ecc30c78"},
    {"label, all bits allocated", build_label_all_bits, 0, 1, 531505, 532025,
     "3d3e53d36b04bb63f0b68fce08037ce04b7853bd06884fea147b7cfb891e1853"},
};

START_TEST(gadget__equals_the_recorded_structure)
{
    const struct gadget *g = &gadgets[_i];
    struct r1cs_digest *d = r1cs_digest_create();
    const struct cs_sink sink = r1cs_digest_sink(d);
    char digest[R1CS_DIGEST_HEX];
    struct cs cs;

    srandom(SEED);
    cs_init(&cs, &sink);
    g->build(&cs, g->arg);
    r1cs_digest_finish(d, &cs, digest);
    r1cs_digest_destroy(d);
    ck_assert_msg(cs.n_inputs == g->inputs && cs.n_aux == g->aux && cs.n_rows == g->rows,
                  "%s: %u/%u/%lu", g->name, cs.n_inputs, cs.n_aux, (unsigned long)cs.n_rows);
    if (g->digest)
        ck_assert_msg(strcmp(digest, g->digest) == 0, "%s: %s", g->name, digest);
}
END_TEST

/* Variables that can change without a row noticing. */
struct survivors {
    uint32_t n;
    cs_var first;
};

static void count_survivor(void *ctx, cs_var var)
{
    struct survivors *s = ctx;

    if (s->n++ == 0)
        s->first = var;
}

START_TEST(gadget__no_variable_can_change_alone)
{
    const struct gadget *g = &gadgets[_i];
    /* The one exception: of 255 bits a number takes 254, so the last is held to 0 or 1 and nothing else. */
    const uint32_t loose = g->build == build_from_bits && g->arg > NUM_PACK_BITS;
    struct r1cs *r1cs = r1cs_create();
    const struct cs_sink sink = r1cs_sink(r1cs);
    struct survivors survivors = {0};
    struct cs cs;

    srandom(SEED);
    cs_init(&cs, &sink);
    g->build(&cs, g->arg);
    ck_assert_int_eq(r1cs_first_unsatisfied(r1cs), -1);
    r1cs_tamper(r1cs, count_survivor, &survivors);
    ck_assert_msg(survivors.n == loose, "%s: %u variables, the first is aux %u", g->name,
                  survivors.n, survivors.first & ~CS_AUX);
    r1cs_destroy(r1cs);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gadgets");
    TCase *tc = tcase_create("gadgets");

    printf("seed %u\n", SEED);
    tcase_add_loop_test(tc, gadget__equals_the_recorded_structure, 0, ARRAY_LEN(gadgets));
    tcase_add_loop_test(tc, gadget__no_variable_can_change_alone, 0, ARRAY_LEN(gadgets));
    tcase_set_timeout(tc, 300);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
