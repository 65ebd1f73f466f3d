/*
 * The shape of a C1: which fields there are, in which order, how often, and where each lies in the
 * decoded form.
 *
 * One description serves all who read or check a C1: its names are the keys of the JSON (c2-formats
 * 1.1), its order and widths are the bincode (1.3). Counts are fixed by the sector size, so a field's
 * offset is known before the first byte arrives and a JSON reader can write straight into place.
 *
 * A layout is constant once initialised and may be read by any thread; it points into itself, so it
 * must not be copied.
 */
#ifndef CIRCUIT_C1_LAYOUT_H
#define CIRCUIT_C1_LAYOUT_H

#include "numa/base.h"
#include "numa/circuit/sector.h"

enum shape_kind {
    SHAPE_FR,       /* 32 bytes, below the scalar modulus */
    SHAPE_TREE_D,   /* 32 bytes, top two bits clear: a truncated SHA-256 */
    SHAPE_BYTES,    /* 32 bytes, any */
    SHAPE_U32,      /* any value */
    SHAPE_U64,      /* any value */
    SHAPE_INDEX,    /* u64 below `limit` */
    SHAPE_LAYER,    /* u32 equal to `limit` */
    SHAPE_PROOF_ID, /* u32; its registered name in JSON */
    SHAPE_ABSENT,   /* no bytes; null or nothing in JSON */
    SHAPE_ARRAY,    /* u64 count equal to `limit`, then as many items */
    SHAPE_OBJECT,   /* its fields one after another */
    SHAPE_ENUM      /* u32 tag equal to `limit`, then fields[0], whose name is the variant's */
};

#define SHAPE_FIELDS_MAX 7

struct shape;

struct shape_field {
    const char *name;
    const struct shape *shape;
    size_t offset; /* from the beginning of what the field is in */
};

struct shape {
    enum shape_kind kind;
    size_t bytes; /* in the decoded form, counts and tags included */
    uint64_t limit;
    const struct shape *items; /* SHAPE_ARRAY: the shape of item i is items[i * items_step] */
    size_t items_step;
    size_t fields_len;
    struct shape_field fields[SHAPE_FIELDS_MAX];
};

/* Names for positions in the field tables. */
enum { C1_PROOF_ID, C1_VANILLA, C1_COMM_R, C1_COMM_D, C1_REPLICA_ID, C1_SEED, C1_TICKET };
enum { PROOF_COMM_D, PROOF_COMM_R_LAST, PROOF_COLUMNS, PROOF_LABELS, PROOF_ENCODING };
enum { COLUMNS_C_X, COLUMNS_DRG, COLUMNS_EXP };

struct c1_layout {
    const struct sector_size *size;
    size_t proofs_offset;    /* of the first partition's count */
    size_t partition_stride; /* from one partition's count to the next one's */
    struct shape root;       /* the API form as a whole */
    struct shape vanilla, partitions, challenges, proof;
    struct shape fr, tree_d, bytes, u32, u64, proof_id, absent;
    struct shape index_d, hashes_d, element_d, elements_d, path_d, single_d, enum_d, merkle_d;
    struct shape index[3], hashes[3], element[3], elements[3], path[3]; /* base, sub, top */
    struct shape tree, tree_enum, merkle;
    struct shape rows, column, column_proof, drg, exp, columns;
    struct shape parents, layer[MAX_LAYERS], label[MAX_LAYERS], labels;
};

/* For a size that has registered proofs. */
void c1_layout_init(struct c1_layout *l, const struct sector_size *size);

/* Where the vanilla proof of a challenge begins in the decoded form. */
size_t c1_layout_proof(const struct c1_layout *l, uint32_t partition, uint32_t i);

/* Writes every count and tag of `s` at `image`: what a reader of values alone leaves out. */
void shape_write_fixed(const struct shape *s, uint8_t *image);

/* Where a field is in a document, as people write it: a.b[3].c */
struct shape_trace {
    char text[256];
    size_t len;
};

void shape_trace_key(struct shape_trace *t, const char *name);
void shape_trace_index(struct shape_trace *t, uint64_t index);
/* Puts "a.b[3].c" for the field of `root` at `offset` of the decoded form at the end of *t. */
void shape_trace_offset(struct shape_trace *t, const struct shape *root, size_t offset);

/* Checks every count, tag, index, layer and digest of `s`, a part of `l` that lies at `offset` of
 * `image`, the decoded form. Returns 0 or -EBADMSG. */
int shape_check(const struct c1_layout *l, const struct shape *s, const uint8_t *image,
                size_t offset, struct errmsg *err);

/* Checks 32 bytes against a digest shape. Returns NULL, or what is wanted of it, in words. */
const char *shape_digest_wants(enum shape_kind kind, const uint8_t digest[32]);

#endif
