#include "numa/circuit/c1.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/sha.h>

#include "numa/circuit/c1_image.h"

#define HEADER_BYTES 8 /* registered proof, size variant */
#define COUNT_BYTES 8
#define INDEX_BYTES 8

int c1_proof_supported(uint32_t id, const struct seal_proof **out, struct errmsg *err)
{
    const struct seal_proof *proof = seal_proof_by_id(id);

    if (!proof)
        return errmsg_set(err, -EBADMSG, "found number %" PRIu32 ", wanted one below %d", id,
                          SEAL_PROOFS);
    if (proof->kind == CHALLENGE_NON_INTERACTIVE)
        return errmsg_set(err, -EINVAL,
                          "%s: non-interactive proofs are not supported by this version",
                          proof->name);
    *out = proof;
    return 0;
}

int c1_image_create(const struct sector_size *size, struct c1 **out, struct errmsg *err)
{
    struct c1 *c1 = calloc(1, sizeof(*c1));

    if (!c1)
        return errmsg_set(err, -ENOMEM, "no memory for a C1");
    c1_layout_init(&c1->layout, size);
    c1->len = c1->layout.root.bytes;
    c1->bytes = calloc(1, c1->len);
    if (!c1->bytes) {
        size_t len = c1->len;
        c1_destroy(c1);
        return errmsg_set(err, -ENOMEM, "no memory for a decoded C1 of %zu bytes", len);
    }
    shape_write_fixed(&c1->layout.root, c1->bytes);
    *out = c1;
    return 0;
}

void c1_image_set_proof(struct c1 *c1, const struct seal_proof *proof)
{
    c1->proof = proof;
    store_le32(c1->bytes + c1->layout.root.fields[C1_PROOF_ID].offset, proof->id);
}

static bool all_zero(const uint8_t digest[DIGEST_BYTES])
{
    static const uint8_t zero[DIGEST_BYTES];

    return memcmp(digest, zero, DIGEST_BYTES) == 0;
}

int c1_image_check_globals(const struct c1 *c1, struct errmsg *err)
{
    static const int non_zero[] = {C1_COMM_R, C1_COMM_D, C1_SEED};
    const struct shape *root = &c1->layout.root;

    for (size_t i = C1_COMM_R; i < root->fields_len; i++) {
        const struct shape_field *f = &root->fields[i];
        int ret = shape_check(&c1->layout, f->shape, c1->bytes, f->offset, err);
        if (ret < 0)
            return ret;
    }
    for (size_t i = 0; i < ARRAY_LEN(non_zero); i++)
        if (all_zero(c1->bytes + root->fields[non_zero[i]].offset))
            return errmsg_set(err, -EBADMSG, "%s: all bytes are zero",
                              root->fields[non_zero[i]].name);
    return 0;
}

/* Finds the proof type in the header of an API form and checks the length that follows from it. */
static int header_check(const uint8_t *bytes, size_t len, const struct seal_proof **out,
                        struct errmsg *err)
{
    if (len < HEADER_BYTES)
        return errmsg_set(err, -EBADMSG, "%zu bytes are no decoded C1", len);
    int ret = c1_proof_supported(load_le32(bytes), out, err);
    if (ret < 0) {
        errmsg_prefix(err, ret, "registered_proof");
        return ret;
    }
    size_t wanted = c1_bincode_bytes(*out);
    if (len != wanted)
        return errmsg_set(err, -EBADMSG, "found %zu bytes, wanted %zu for %s", len, wanted,
                          (*out)->name);
    return 0;
}

int c1_from_bincode(uint8_t *bytes, size_t len, struct c1 **out, struct errmsg *err)
{
    const struct seal_proof *proof = NULL;
    struct c1 *c1 = NULL;

    int ret = header_check(bytes, len, &proof, err);
    if (ret < 0)
        goto out;
    c1 = calloc(1, sizeof(*c1));
    if (!c1) {
        ret = errmsg_set(err, -ENOMEM, "no memory for a C1");
        goto out;
    }
    c1_layout_init(&c1->layout, proof->size);
    c1->proof = proof;
    c1->bytes = bytes;
    c1->len = len;
    bytes = NULL; /* now the C1's */
    ret = shape_check(&c1->layout, &c1->layout.root, c1->bytes, 0, err);
    if (ret == 0)
        ret = c1_image_check_globals(c1, err);
    if (ret < 0)
        goto out;
    *out = c1;
    c1 = NULL;
out:
    c1_destroy(c1);
    free(bytes);
    return ret;
}

int c1_from_fd(int fd, struct c1 **out, struct errmsg *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return errmsg_set(err, -errno, "decoded C1: cannot stat");
    if (st.st_size > (off_t)C1_DECODED_MAX)
        return errmsg_set(err, -EFBIG, "decoded C1: %" PRId64 " bytes, at most %zu are read",
                          (int64_t)st.st_size, C1_DECODED_MAX);
    size_t len = (size_t)st.st_size;
    uint8_t *bytes = malloc(len + 1); /* malloc(0) may give NULL */
    if (!bytes)
        return errmsg_set(err, -ENOMEM, "no memory for a decoded C1 of %zu bytes", len);
    int ret = pread_full(fd, bytes, len, 0);
    if (ret < 0) {
        free(bytes);
        return errmsg_set(err, ret, "decoded C1: cannot read %zu bytes", len);
    }
    return c1_from_bincode(bytes, len, out, err);
}

/* ---- the test kind ---- */

struct test_text {
    struct test_document document;
    size_t len;
    char text[TEST_DOCUMENT_BYTES_MAX];
};

int c1_from_test(const struct test_document *doc, struct c1 **out, struct errmsg *err)
{
    const struct seal_proof *proof = seal_proof_by_name("StackedDrg2KiBV1_1");
    struct c1 *c1 = NULL;
    int ret = c1_image_create(proof->size, &c1, err);

    if (ret < 0)
        return ret;
    c1_image_set_proof(c1, proof);
    c1->test = calloc(1, sizeof(*c1->test));
    if (!c1->test) {
        c1_destroy(c1);
        return errmsg_set(err, -ENOMEM, "no memory for a test document");
    }
    c1->test->document = *doc;
    c1->test->len = test_document_format(doc, c1->test->text);
    *out = c1;
    return 0;
}

const struct test_document *c1_test_document(const struct c1 *c1)
{
    return c1->test ? &c1->test->document : NULL;
}

void c1_destroy(struct c1 *c1)
{
    if (!c1)
        return;
    free(c1->test);
    free(c1->bytes);
    free(c1);
}

size_t c1_bincode_bytes(const struct seal_proof *proof)
{
    struct c1_layout layout;

    c1_layout_init(&layout, proof->size);
    return layout.root.bytes;
}

const uint8_t *c1_bincode(const struct c1 *c1, size_t *len)
{
    *len = c1->test ? c1->test->len : c1->len;
    return c1->test ? (const uint8_t *)c1->test->text : c1->bytes;
}

void c1_content_id(const struct c1 *c1, uint8_t id[DIGEST_BYTES])
{
    size_t len;
    const uint8_t *bytes = c1_bincode(c1, &len);

    SHA256(bytes, len, id);
}

const struct seal_proof *c1_seal_proof(const struct c1 *c1)
{
    return c1->proof;
}

const struct sector_size *c1_size(const struct c1 *c1)
{
    return c1->layout.size;
}

uint32_t c1_partitions(const struct c1 *c1)
{
    return c1->test ? c1->test->document.partitions : c1->layout.size->partitions;
}

static const uint8_t *global(const struct c1 *c1, int field)
{
    return c1->bytes + c1->layout.root.fields[field].offset;
}

const uint8_t *c1_comm_r(const struct c1 *c1)
{
    return global(c1, C1_COMM_R);
}

const uint8_t *c1_comm_d(const struct c1 *c1)
{
    return global(c1, C1_COMM_D);
}

const uint8_t *c1_replica_id(const struct c1 *c1)
{
    return global(c1, C1_REPLICA_ID);
}

const uint8_t *c1_seed(const struct c1 *c1)
{
    return global(c1, C1_SEED);
}

const uint8_t *c1_ticket(const struct c1 *c1)
{
    return global(c1, C1_TICKET);
}

static size_t element_bytes(uint32_t arity)
{
    return COUNT_BYTES + (size_t)(arity - 1) * DIGEST_BYTES + INDEX_BYTES;
}

static uint32_t level_arity(const struct merkle_proof *proof, uint32_t level)
{
    return proof->tree_d ? 2 : sector_path_arity(proof->size, level);
}

struct path_element c1_path_element(const struct merkle_proof *proof, uint32_t level)
{
    uint32_t arity = level_arity(proof, level);
    const uint8_t *at = proof->first;

    for (uint32_t l = 0; l < level; l++) {
        at += element_bytes(level_arity(proof, l));
        if (!proof->tree_d && l + 1 >= proof->size->base_levels)
            at += COUNT_BYTES; /* the next stretch is a path of its own */
    }
    const uint8_t *hashes = at + COUNT_BYTES;
    uint64_t index = load_le64(hashes + (size_t)(arity - 1) * DIGEST_BYTES);
    return (struct path_element){hashes, arity, (uint32_t)index};
}

uint64_t c1_path_position(const struct merkle_proof *proof)
{
    uint64_t position = 0, weight = 1;

    for (uint32_t level = 0; level < proof->levels; level++) {
        struct path_element e = c1_path_element(proof, level);
        position += e.index * weight;
        weight *= e.arity;
    }
    return position;
}

/* The fields of a tree are found by name: their order depends on the number of stretches. */
static size_t tree_field(const struct shape *tree, const char *name)
{
    for (size_t i = 0; i < tree->fields_len; i++)
        if (strcmp(tree->fields[i].name, name) == 0)
            return tree->fields[i].offset;
    abort(); /* a name that no tree has: a slip of ours */
}

static struct merkle_proof merkle_at(const struct c1_layout *l, const uint8_t *at, bool tree_d)
{
    const struct shape *variant = tree_d ? &l->enum_d : &l->tree_enum;
    const struct shape *tree = variant->fields[0].shape;
    const uint8_t *payload = at + variant->fields[0].offset;
    bool stretches = tree->fields_len > 3;

    return (struct merkle_proof){
        .root = payload + tree_field(tree, "root"),
        .leaf = payload + tree_field(tree, "leaf"),
        .first = payload + tree_field(tree, stretches ? "base_proof" : "path") + COUNT_BYTES,
        .size = l->size,
        .levels = tree_d ? l->size->log2_nodes : sector_path_levels(l->size),
        .tree_d = tree_d,
    };
}

static struct column_proof column_at(const struct c1_layout *l, const uint8_t *at)
{
    return (struct column_proof){
        .index = load_le32(at + l->column.fields[0].offset),
        .rows = at + l->column.fields[1].offset + COUNT_BYTES,
        .inclusion = merkle_at(l, at + l->column_proof.fields[1].offset, false),
    };
}

static struct label_proof label_at(const struct c1_layout *l, const uint8_t *at)
{
    const struct shape *label = &l->label[0];

    return (struct label_proof){
        .parents = at + label->fields[0].offset + COUNT_BYTES,
        .layer_index = load_le32(at + label->fields[1].offset),
        .node = load_le64(at + label->fields[2].offset),
    };
}

void c1_challenge(const struct c1 *c1, uint32_t partition, uint32_t i, struct challenge_proof *out)
{
    const struct c1_layout *l = &c1->layout;
    const uint8_t *proof = c1->bytes + c1_layout_proof(l, partition, i);
    const uint8_t *columns = proof + l->proof.fields[PROOF_COLUMNS].offset;
    const uint8_t *labels = proof + l->proof.fields[PROOF_LABELS].offset + COUNT_BYTES;

    out->comm_d = merkle_at(l, proof + l->proof.fields[PROOF_COMM_D].offset, true);
    out->comm_r_last = merkle_at(l, proof + l->proof.fields[PROOF_COMM_R_LAST].offset, false);
    out->c_x = column_at(l, columns + l->columns.fields[COLUMNS_C_X].offset);
    for (unsigned k = 0; k < PARENTS; k++) {
        bool drg = k < DRG_PARENTS;
        size_t list = l->columns.fields[drg ? COLUMNS_DRG : COLUMNS_EXP].offset + COUNT_BYTES;
        size_t index = drg ? k : k - DRG_PARENTS;
        out->parents[k] = column_at(l, columns + list + index * l->column_proof.bytes);
    }
    for (uint32_t k = 0; k < l->size->layers; k++)
        out->labels[k] = label_at(l, labels + k * l->label[0].bytes);
    out->encoding = label_at(l, proof + l->proof.fields[PROOF_ENCODING].offset);
}
