#include "numa/circuit/c1.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <openssl/sha.h>

#include "tests/lib/files.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

static const char *const sealed[] = {"2KiB-sealed", "8MiB-sealed"};

static struct c1 *load(const char *name)
{
    struct errmsg err = {""};
    struct c1 *c1 = NULL;
    size_t len;
    uint8_t *bytes = file_read(c1_path(name, "c1.bincode"), &len);

    ck_assert_msg(c1_from_bincode(bytes, len, &c1, &err) == 0, "%s: %s", name, err.text);
    return c1;
}

START_TEST(c1_from_bincode__globals_are_those_of_the_sector)
{
    struct c1 *c1 = load(sealed[_i]);
    struct vector_meta meta;

    vector_meta(sealed[_i], &meta);
    ck_assert_ptr_eq(c1_seal_proof(c1), meta.proof);
    ck_assert_ptr_eq(c1_size(c1), meta.proof->size);
    ck_assert_uint_eq(c1_partitions(c1), 1);
    ck_assert_mem_eq(c1_comm_r(c1), meta.comm_r, 32);
    ck_assert_mem_eq(c1_comm_d(c1), meta.comm_d, 32);
    ck_assert_mem_eq(c1_replica_id(c1), meta.replica_id, 32);
    ck_assert_mem_eq(c1_seed(c1), meta.seed, 32);
    ck_assert_mem_eq(c1_ticket(c1), meta.ticket, 32);
    c1_destroy(c1);
}
END_TEST

/* SHA-256 with the top two bits cleared: a node of tree D. */
static void tree_d_node(uint8_t out[32], const uint8_t left[32], const uint8_t right[32])
{
    uint8_t both[64];

    memcpy(both, left, 32);
    memcpy(both + 32, right, 32);
    SHA256(both, sizeof(both), out);
    out[31] &= 0x3f;
}

START_TEST(c1_challenge__tree_d_path_leads_to_comm_d)
{
    struct c1 *c1 = load(sealed[_i]);

    for (uint32_t i = 0; i < c1_size(c1)->challenges; i++) {
        struct challenge_proof p;
        uint8_t value[32];
        c1_challenge(c1, 0, i, &p);
        ck_assert_uint_eq(p.comm_d.levels, c1_size(c1)->log2_nodes);
        memcpy(value, p.comm_d.leaf, 32);
        for (uint32_t level = 0; level < p.comm_d.levels; level++) {
            struct path_element e = c1_path_element(&p.comm_d, level);
            ck_assert_uint_eq(e.arity, 2);
            tree_d_node(value, e.index == 0 ? value : e.hashes, e.index == 0 ? e.hashes : value);
        }
        ck_assert_mem_eq(value, p.comm_d.root, 32);
        ck_assert_mem_eq(value, c1_comm_d(c1), 32);
    }
    c1_destroy(c1);
}
END_TEST

START_TEST(c1_challenge__every_field_speaks_of_the_same_node)
{
    struct c1 *c1 = load(sealed[_i]);
    const struct sector_size *size = c1_size(c1);

    for (uint32_t i = 0; i < size->challenges; i++) {
        struct challenge_proof p;
        c1_challenge(c1, 0, i, &p);
        uint64_t node = p.labels[0].node;
        ck_assert_uint_eq(c1_path_position(&p.comm_d), node);
        ck_assert_uint_eq(c1_path_position(&p.comm_r_last), node);
        ck_assert_uint_eq(p.c_x.index, node);
        ck_assert_uint_eq(c1_path_position(&p.c_x.inclusion), node);
        ck_assert_uint_eq(p.encoding.node, node);
        for (uint32_t layer = 0; layer < size->layers; layer++)
            ck_assert_uint_eq(p.labels[layer].layer_index, layer + 1);
        for (unsigned k = 0; k < PARENTS; k++) {
            ck_assert_uint_eq(p.parents[k].index, c1_path_position(&p.parents[k].inclusion));
            ck_assert_mem_eq(p.parents[k].inclusion.root, p.c_x.inclusion.root, 32);
        }
        /* The first parent of layer 1 is the first row of the first DRG parent. */
        ck_assert_mem_eq(p.labels[0].parents, p.parents[0].rows, 32);
        ck_assert_mem_eq(p.labels[1].parents + 6 * 32, p.parents[DRG_PARENTS].rows, 32);
    }
    c1_destroy(c1);
}
END_TEST

START_TEST(c1_bincode_bytes__are_those_of_the_specification)
{
    static const struct {
        const char *name;
        size_t inner;
    } sizes[] = {{"StackedDrg2KiBV1_1", 28248},
                 {"StackedDrg8MiBV1", 60120},
                 {"StackedDrg512MiBV1_1_Feat_SyntheticPoRep", 76056},
                 {"StackedDrg32GiBV1_1", 11014808},
                 {"StackedDrg64GiBV1_1", 11184728}};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        ck_assert_uint_eq(c1_bincode_bytes(seal_proof_by_name(sizes[i].name)), sizes[i].inner + 8);
    for (uint32_t id = 0; id < SEAL_PROOFS; id++)
        ck_assert_uint_lt(c1_bincode_bytes(seal_proof_by_id(id)), C1_DECODED_MAX);
}
END_TEST

START_TEST(c1_from_fd__equals_from_bincode)
{
    struct c1 *a = load("2KiB-sealed"), *b = NULL;
    struct errmsg err = {""};
    uint8_t id_a[32], id_b[32];
    int fd = memfd_create("c1", MFD_CLOEXEC);
    size_t len;
    const uint8_t *bytes = c1_bincode(a, &len);

    ck_assert_int_eq(pwrite_full(fd, bytes, len, 0), 0);
    ck_assert_msg(c1_from_fd(fd, &b, &err) == 0, "%s", err.text);
    c1_content_id(a, id_a);
    c1_content_id(b, id_b);
    ck_assert_mem_eq(id_a, id_b, 32);
    c1_destroy(b);
    ck_assert_int_eq(ftruncate(fd, (off_t)C1_DECODED_MAX + 1), 0);
    ck_assert_int_eq(c1_from_fd(fd, &b, &err), -EFBIG);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(c1_from_fd(fd, &b, &err), -EBADMSG);
    close(fd);
    c1_destroy(a);
}
END_TEST

/* Decodes the 2 KiB vector with `len` bytes of it, and those at `offset` changed to `patch`. */
static int decode_patched(size_t len_change, size_t offset, uint64_t patch, size_t patch_len,
                          struct errmsg *err)
{
    struct c1 *c1 = NULL;
    size_t len;
    uint8_t le[8], *bytes = file_read(c1_path("2KiB-sealed", "c1.bincode"), &len);

    store_le64(le, patch);
    memcpy(bytes + offset, le, patch_len);
    int ret = c1_from_bincode(bytes, len + len_change, &c1, err);
    c1_destroy(c1);
    return ret;
}

START_TEST(c1_from_bincode__wrong_form_names_the_field)
{
    /* Offsets in the API form: proof id 0, variant 4, partitions 8, challenges 16, tag 24, root 28, leaf
     * 60, path length 92, hashes 100, hash 108, index 140. */
    static const struct {
        size_t offset;
        uint64_t value;
        size_t len;
        int code;
        const char *says;
    } cases[] = {
        {0, 99, 4, -EBADMSG, "registered_proof"},
        {0, 15, 4, -EINVAL, "not supported"},
        {0, 8, 4, -EBADMSG, "wanted 11014816"},
        {4, 1, 4, -EBADMSG, "vanilla_proofs: found variant 1, wanted 0"},
        {8, 2, 8, -EBADMSG, "vanilla_proofs.StackedDrg2KiBV1: found a count of 2, wanted 1"},
        {16, 3, 8, -EBADMSG, "vanilla_proofs.StackedDrg2KiBV1[0]: found a count of 3"},
        {24, 1, 4, -EBADMSG,
         "vanilla_proofs.StackedDrg2KiBV1[0][0].comm_d_proofs.data: found variant"},
        {28 + 31, 0x40, 1, -EBADMSG, "data.Single.root: found"},
        {92, 7, 8, -EBADMSG, "comm_d_proofs.data.Single.path.path: found a count of 7, wanted 6"},
        {140, 2, 8, -EBADMSG, "path.path[0].index: found value 2, wanted below 2 (byte 140 "},
    };
    struct errmsg err = {""};

    ck_assert_int_eq(decode_patched(0, 0, 5, 4, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int ret = decode_patched(0, cases[i].offset, cases[i].value, cases[i].len, &err);
        ck_assert_msg(ret == cases[i].code && strstr(err.text, cases[i].says), "%zu: %d %s", i, ret,
                      err.text);
    }
    ck_assert_int_eq(decode_patched((size_t)-1, 0, 5, 4, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "found 28255 bytes, wanted 28256"));
}
END_TEST

START_TEST(c1_from_bincode__zero_commitments_are_refused)
{
    struct errmsg err = {""};
    size_t comm_r = 28256 - 5 * 32;

    for (int field = 0; field < 5; field++) {
        struct c1 *c1 = NULL;
        size_t len;
        uint8_t *bytes = file_read(c1_path("2KiB-sealed", "c1.bincode"), &len);
        memset(bytes + comm_r + 32 * field, 0, 32);
        int ret = c1_from_bincode(bytes, len, &c1, &err);
        bool refused = field == 0 || field == 1 || field == 3; /* comm_r, comm_d, seed */
        ck_assert_int_eq(ret, refused ? -EBADMSG : 0);
        c1_destroy(c1);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("c1");
    TCase *tc = tcase_create("c1");

    tcase_add_loop_test(tc, c1_from_bincode__globals_are_those_of_the_sector, 0, 2);
    tcase_add_loop_test(tc, c1_challenge__tree_d_path_leads_to_comm_d, 0, 2);
    tcase_add_loop_test(tc, c1_challenge__every_field_speaks_of_the_same_node, 0, 2);
    tcase_add_test(tc, c1_bincode_bytes__are_those_of_the_specification);
    tcase_add_test(tc, c1_from_fd__equals_from_bincode);
    tcase_add_test(tc, c1_from_bincode__wrong_form_names_the_field);
    tcase_add_test(tc, c1_from_bincode__zero_commitments_are_refused);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
