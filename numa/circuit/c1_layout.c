/*
 * Shapes are built bottom up, once for each layout; offsets fall out of the order in which fields are
 * added. The walks over a shape are recursive: their depth is that of the table (below 20), whatever
 * the input.
 */
#include "numa/circuit/c1_layout.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT_BYTES 8
#define TAG_BYTES 4

static void leaf_init(struct shape *s, enum shape_kind kind, size_t bytes, uint64_t limit)
{
    *s = (struct shape){.kind = kind, .bytes = bytes, .limit = limit};
}

static void array_init(struct shape *s, uint64_t count, const struct shape *items, size_t step)
{
    *s = (struct shape){.kind = SHAPE_ARRAY, .limit = count, .items = items, .items_step = step};
    s->bytes = COUNT_BYTES + count * items->bytes;
}

static void object_init(struct shape *s)
{
    *s = (struct shape){.kind = SHAPE_OBJECT};
}

static void field_add(struct shape *s, const char *name, const struct shape *field)
{
    assert(s->fields_len < SHAPE_FIELDS_MAX);
    s->fields[s->fields_len++] = (struct shape_field){name, field, s->bytes};
    s->bytes += field->bytes;
}

static void enum_init(struct shape *s, uint32_t tag, const char *variant,
                      const struct shape *payload)
{
    *s = (struct shape){.kind = SHAPE_ENUM, .limit = tag, .bytes = TAG_BYTES};
    field_add(s, variant, payload);
}

static void leaves_init(struct c1_layout *l)
{
    leaf_init(&l->fr, SHAPE_FR, 32, 0);
    leaf_init(&l->tree_d, SHAPE_TREE_D, 32, 0);
    leaf_init(&l->bytes, SHAPE_BYTES, 32, 0);
    leaf_init(&l->u32, SHAPE_U32, 4, 0);
    leaf_init(&l->u64, SHAPE_U64, 8, 0);
    leaf_init(&l->proof_id, SHAPE_PROOF_ID, 4, 0);
    leaf_init(&l->absent, SHAPE_ABSENT, 0, 0);
}

static void tree_d_init(struct c1_layout *l)
{
    leaf_init(&l->index_d, SHAPE_INDEX, 8, 2);
    array_init(&l->hashes_d, 1, &l->tree_d, 0);
    object_init(&l->element_d);
    field_add(&l->element_d, "hashes", &l->hashes_d);
    field_add(&l->element_d, "index", &l->index_d);
    array_init(&l->elements_d, l->size->log2_nodes, &l->element_d, 0);
    object_init(&l->path_d);
    field_add(&l->path_d, "path", &l->elements_d);
    object_init(&l->single_d);
    field_add(&l->single_d, "root", &l->tree_d);
    field_add(&l->single_d, "leaf", &l->tree_d);
    field_add(&l->single_d, "path", &l->path_d);
    enum_init(&l->enum_d, 0, "Single", &l->single_d);
    object_init(&l->merkle_d);
    field_add(&l->merkle_d, "data", &l->enum_d);
}

/* One of the up to three stretches of a tree C or R path. */
static void stretch_init(struct c1_layout *l, unsigned k, uint32_t arity, uint32_t levels)
{
    leaf_init(&l->index[k], SHAPE_INDEX, 8, arity);
    array_init(&l->hashes[k], arity - 1, &l->fr, 0);
    object_init(&l->element[k]);
    field_add(&l->element[k], "hashes", &l->hashes[k]);
    field_add(&l->element[k], "index", &l->index[k]);
    array_init(&l->elements[k], levels, &l->element[k], 0);
    object_init(&l->path[k]);
    field_add(&l->path[k], "path", &l->elements[k]);
}

static void tree_init(struct c1_layout *l)
{
    static const char *const variants[] = {"Single", "Sub", "Top"};
    static const char *const stretches[] = {"base_proof", "sub_proof", "top_proof"};
    uint32_t arities[] = {l->size->base_arity, l->size->sub_arity, l->size->top_arity};
    uint32_t levels[] = {l->size->base_levels, 1, 1};
    unsigned tag = arities[2] ? 2 : arities[1] ? 1 : 0;

    object_init(&l->tree);
    for (unsigned k = 0; k <= tag; k++) {
        stretch_init(l, k, arities[k], levels[k]);
        if (tag > 0)
            field_add(&l->tree, stretches[k], &l->path[k]);
    }
    field_add(&l->tree, "root", &l->fr);
    field_add(&l->tree, "leaf", &l->fr);
    if (tag == 0)
        field_add(&l->tree, "path", &l->path[0]);
    enum_init(&l->tree_enum, tag, variants[tag], &l->tree);
    object_init(&l->merkle);
    field_add(&l->merkle, "data", &l->tree_enum);
}

static void columns_init(struct c1_layout *l)
{
    array_init(&l->rows, l->size->layers, &l->fr, 0);
    object_init(&l->column);
    field_add(&l->column, "index", &l->u32);
    field_add(&l->column, "rows", &l->rows);
    field_add(&l->column, "_h", &l->absent);
    object_init(&l->column_proof);
    field_add(&l->column_proof, "column", &l->column);
    field_add(&l->column_proof, "inclusion_proof", &l->merkle);
    array_init(&l->drg, DRG_PARENTS, &l->column_proof, 0);
    array_init(&l->exp, EXP_PARENTS, &l->column_proof, 0);
    object_init(&l->columns);
    field_add(&l->columns, "c_x", &l->column_proof);
    field_add(&l->columns, "drg_parents", &l->drg);
    field_add(&l->columns, "exp_parents", &l->exp);
}

static void labels_init(struct c1_layout *l)
{
    array_init(&l->parents, LABEL_PARENTS, &l->fr, 0);
    for (uint32_t i = 0; i < l->size->layers; i++) {
        leaf_init(&l->layer[i], SHAPE_LAYER, 4, i + 1);
        object_init(&l->label[i]);
        field_add(&l->label[i], "parents", &l->parents);
        field_add(&l->label[i], "layer_index", &l->layer[i]);
        field_add(&l->label[i], "node", &l->u64);
    }
    array_init(&l->labels, l->size->layers, l->label, 1);
}

static void proof_init(struct c1_layout *l)
{
    object_init(&l->proof);
    field_add(&l->proof, "comm_d_proofs", &l->merkle_d);
    field_add(&l->proof, "comm_r_last_proof", &l->merkle);
    field_add(&l->proof, "replica_column_proofs", &l->columns);
    field_add(&l->proof, "labeling_proofs", &l->labels);
    field_add(&l->proof, "encoding_proof", &l->label[l->size->layers - 1]);
}

/* The size variant's number is the id of the first registered proof of that size. */
static uint32_t size_variant(const struct sector_size *size)
{
    uint32_t id = 0;

    while (seal_proof_by_id(id)->size != size)
        id++;
    return id;
}

void c1_layout_init(struct c1_layout *l, const struct sector_size *size)
{
    memset(l, 0, sizeof(*l));
    l->size = size;
    leaves_init(l);
    tree_d_init(l);
    tree_init(l);
    columns_init(l);
    labels_init(l);
    proof_init(l);
    array_init(&l->challenges, size->challenges, &l->proof, 0);
    array_init(&l->partitions, size->partitions, &l->challenges, 0);
    enum_init(&l->vanilla, size_variant(size), sector_variant_name(size), &l->partitions);
    object_init(&l->root);
    field_add(&l->root, "registered_proof", &l->proof_id);
    field_add(&l->root, "vanilla_proofs", &l->vanilla);
    field_add(&l->root, "comm_r", &l->fr);
    field_add(&l->root, "comm_d", &l->tree_d);
    field_add(&l->root, "replica_id", &l->fr);
    field_add(&l->root, "seed", &l->bytes);
    field_add(&l->root, "ticket", &l->bytes);
    l->proofs_offset = l->root.fields[C1_VANILLA].offset + TAG_BYTES + COUNT_BYTES;
    l->partition_stride = l->challenges.bytes;
}

size_t c1_layout_proof(const struct c1_layout *l, uint32_t partition, uint32_t i)
{
    return l->proofs_offset + partition * l->partition_stride + COUNT_BYTES + i * l->proof.bytes;
}

void shape_write_fixed(const struct shape *s, uint8_t *image)
{
    if (s->kind == SHAPE_ARRAY) {
        store_le64(image, s->limit);
        for (uint64_t i = 0; i < s->limit; i++)
            shape_write_fixed(s->items + i * s->items_step,
                              image + COUNT_BYTES + i * s->items->bytes);
    }
    if (s->kind == SHAPE_ENUM)
        store_le32(image, (uint32_t)s->limit);
    for (size_t i = 0; i < s->fields_len; i++)
        shape_write_fixed(s->fields[i].shape, image + s->fields[i].offset);
}

static void trace_add(struct shape_trace *t, const char *text)
{
    int n = snprintf(t->text + t->len, sizeof(t->text) - t->len, "%s", text);
    t->len = min_size(t->len + (size_t)n, sizeof(t->text) - 1);
}

void shape_trace_key(struct shape_trace *t, const char *name)
{
    if (t->len > 0)
        trace_add(t, ".");
    trace_add(t, name);
}

void shape_trace_index(struct shape_trace *t, uint64_t index)
{
    char text[32];

    snprintf(text, sizeof(text), "[%" PRIu64 "]", index);
    trace_add(t, text);
}

static const struct shape_field *field_at(const struct shape *s, size_t offset)
{
    const struct shape_field *found = NULL;

    for (size_t i = 0; i < s->fields_len; i++)
        if (s->fields[i].offset <= offset && s->fields[i].shape->bytes > 0)
            found = &s->fields[i];
    return found;
}

void shape_trace_offset(struct shape_trace *t, const struct shape *s, size_t offset)
{
    for (;;) {
        if (s->kind == SHAPE_ARRAY && offset >= COUNT_BYTES) {
            uint64_t i = (offset - COUNT_BYTES) / s->items->bytes;
            shape_trace_index(t, i);
            offset -= COUNT_BYTES + i * s->items->bytes;
            s = s->items + i * s->items_step;
            continue;
        }
        const struct shape_field *f = field_at(s, offset);
        if (!f)
            return;
        shape_trace_key(t, f->name);
        offset -= f->offset;
        s = f->shape;
    }
}

/* The scalar modulus, least significant limb first. */
static const uint64_t modulus[4] = {0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805,
                                    0x73eda753299d7d48};

static bool below_modulus(const uint8_t digest[32])
{
    for (int i = 3; i >= 0; i--) {
        uint64_t limb = load_le64(digest + (size_t)8 * i);
        if (limb != modulus[i])
            return limb < modulus[i];
    }
    return false;
}

const char *shape_digest_wants(enum shape_kind kind, const uint8_t digest[32])
{
    if (kind == SHAPE_FR && !below_modulus(digest))
        return "a value below the scalar modulus";
    if (kind == SHAPE_TREE_D && (digest[31] & 0xc0))
        return "a digest with the top two bits clear";
    return NULL;
}

static int mismatch(const struct c1_layout *l, size_t offset, struct errmsg *err, const char *found,
                    const char *wanted)
{
    struct shape_trace t = {.len = 0};

    shape_trace_offset(&t, &l->root, offset);
    return errmsg_set(err, -EBADMSG, "%s: found %s, wanted %s (byte %zu of the decoded form)",
                      t.text, found, wanted, offset);
}

static int number_mismatch(const struct c1_layout *l, size_t offset, struct errmsg *err,
                           const char *what, uint64_t found, const char *relation, uint64_t wanted)
{
    char found_text[48], wanted_text[48];

    snprintf(found_text, sizeof(found_text), "%s %" PRIu64, what, found);
    snprintf(wanted_text, sizeof(wanted_text), "%s%" PRIu64, relation, wanted);
    return mismatch(l, offset, err, found_text, wanted_text);
}

static int digest_check(const struct c1_layout *l, const struct shape *s, const uint8_t *image,
                        size_t offset, struct errmsg *err)
{
    const char *wants = shape_digest_wants(s->kind, image + offset);
    char hex[65];

    if (!wants)
        return 0;
    hex_encode(hex, image + offset, 32);
    return mismatch(l, offset, err, hex, wants);
}

static int array_check(const struct c1_layout *l, const struct shape *s, const uint8_t *image,
                       size_t offset, struct errmsg *err)
{
    uint64_t count = load_le64(image + offset);

    if (count != s->limit)
        return number_mismatch(l, offset, err, "a count of", count, "", s->limit);
    for (uint64_t i = 0; i < s->limit; i++) {
        int ret = shape_check(l, s->items + i * s->items_step, image,
                              offset + COUNT_BYTES + i * s->items->bytes, err);
        if (ret < 0)
            return ret;
    }
    return 0;
}

static int fields_check(const struct c1_layout *l, const struct shape *s, const uint8_t *image,
                        size_t offset, struct errmsg *err)
{
    for (size_t i = 0; i < s->fields_len; i++) {
        const struct shape_field *f = &s->fields[i];
        int ret = shape_check(l, f->shape, image, offset + f->offset, err);
        if (ret < 0)
            return ret;
    }
    return 0;
}

int shape_check(const struct c1_layout *l, const struct shape *s, const uint8_t *image,
                size_t offset, struct errmsg *err)
{
    const uint8_t *at = image + offset;

    switch (s->kind) {
    case SHAPE_FR:
    case SHAPE_TREE_D:
        return digest_check(l, s, image, offset, err);
    case SHAPE_INDEX:
        if (load_le64(at) >= s->limit)
            return number_mismatch(l, offset, err, "value", load_le64(at), "below ", s->limit);
        return 0;
    case SHAPE_LAYER:
        if (load_le32(at) != s->limit)
            return number_mismatch(l, offset, err, "value", load_le32(at), "", s->limit);
        return 0;
    case SHAPE_ENUM:
        if (load_le32(at) != s->limit)
            return number_mismatch(l, offset, err, "variant", load_le32(at), "", s->limit);
        return fields_check(l, s, image, offset, err);
    case SHAPE_ARRAY:
        return array_check(l, s, image, offset, err);
    case SHAPE_OBJECT:
        return fields_check(l, s, image, offset, err);
    case SHAPE_BYTES:
    case SHAPE_U32:
    case SHAPE_U64:
    case SHAPE_PROOF_ID: /* decides which layout applies: checked by who chose the layout */
    case SHAPE_ABSENT:
        break;
    }
    return 0;
}
