/*
 * The PoRep circuit put together from templates, in the order of porep.c: here what porep.c synthesizes is recorded once for each
 * kind of part and placed as often as it occurs. That both give the same rows is tested against the digests of
 * porep-circuit 7.3.
 *
 * A label's first block has its layer number among its constants, so there is a template for each layer.
 */
#include "numa/circuit/circuit.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/circuit_builder.h"
#include "numa/circuit/circuit_plan.h"
#include "numa/circuit/merkle.h"
#include "numa/circuit/porep.h"
#include "numa/circuit/poseidon_gadget.h"

/* Segments of others' variables. */
enum { FIRST = CIRCUIT_FOREIGN, SECOND, THIRD };

/* A template, and the variables of its own that others use. */
struct part {
    uint32_t index;
    uint32_t result;
};

struct parts {
    struct part header, data, d_level, d_end, column, path, node_bits, bits,
        label_first[MAX_LAYERS], label_middle, label_last, encoding, node_column;
    uint32_t replica_bits, comm_d, comm_r_last, comm_c; /* the header's */
    uint32_t column_labels;                             /* the first of a column's */
    uint32_t d_level_aux;
};

/* ---- recording ---- */

static struct part end(struct builder *b, cs_var result)
{
    struct part part = {.result = builder_own(b, result)};

    part.index = builder_end(b);
    return part;
}

static void record_header(struct builder *b, struct parts *p)
{
    const struct porep_roots roots = {.replica_id = {{0}}};
    struct porep_header header;
    struct boolean bits[NUM_BYTE_BITS];

    porep_synthesize_header(builder_record(b), &roots, &header);
    memcpy(bits, header.replica_id.bit, sizeof(bits));
    bits_reverse_in_bytes(bits, NUM_BYTE_BITS);
    p->replica_bits = builder_own(b, bits[0].var);
    p->comm_d = builder_own(b, header.comm_d.var);
    p->comm_r_last = builder_own(b, header.comm_r_last.var);
    p->comm_c = builder_own(b, header.comm_c.var);
    p->header = end(b, header.comm_d.var);
}

/* A level of tree D: leads from FIRST to the parent. The index bit comes first of all. */
static struct part record_d_level(struct builder *b, uint32_t *n_aux)
{
    const struct merkle_level level = {.arity = 2};
    struct cs *cs = builder_record(b);
    const struct num node = builder_foreign_num(b, FIRST, 0);
    const uint32_t begin = cs->n_aux;
    struct boolean bit;

    const struct num parent = merkle_climb(cs, MERKLE_SHA256, &node, &level, &bit);
    assert(bit.var == (CS_AUX | begin));
    *n_aux = cs->n_aux - begin;
    return end(b, parent.var);
}

/* Ends a path in tree D: FIRST is where the path begins, SECOND where it led, THIRD where it should. */
static uint32_t record_d_end(struct builder *b, uint32_t levels, uint32_t d_level_aux)
{
    struct cs *cs = builder_record(b);
    const struct num top = builder_foreign_num(b, SECOND, 0),
                     root = builder_foreign_num(b, THIRD, 0);
    struct boolean bits[POREP_MAX_D_LEVELS];

    for (uint32_t i = 0; i < levels; i++)
        bits[i] = builder_foreign_bit(b, FIRST, i * d_level_aux);
    num_inputize_bits(cs, bits, levels);
    num_enforce_equal(cs, &top, &root);
    return builder_end(b);
}

/* A path in tree C or R from FIRST to SECOND. */
static uint32_t record_path(struct builder *b, const struct sector_size *size)
{
    struct merkle_level levels[POREP_MAX_LEVELS] = {{0}};
    struct cs *cs = builder_record(b);
    const struct num leaf = builder_foreign_num(b, FIRST, 0),
                     root = builder_foreign_num(b, SECOND, 0);

    for (uint32_t i = 0; i < sector_path_levels(size); i++)
        levels[i].arity = sector_path_arity(size, i);
    merkle_inclusion(cs, MERKLE_POSEIDON, &leaf, levels, sector_path_levels(size), &root);
    return builder_end(b);
}

/* A parent's column and its hash. */
static void record_column(struct builder *b, uint32_t layers, struct parts *p)
{
    const fr_t zero = {{0}};
    struct cs *cs = builder_record(b);
    struct num labels[MAX_LAYERS];

    for (uint32_t i = 0; i < layers; i++)
        labels[i] = num_alloc(cs, &zero);
    const struct num hash = poseidon_num(cs, labels, layers);
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): there is a layer */
    p->column_labels = builder_own(b, labels[0].var);
    p->column = end(b, hash.var);
}

/* The hash of the challenged node's column: each label is in a segment of its own. */
static struct part record_node_column(struct builder *b, uint32_t layers)
{
    struct cs *cs = builder_record(b);
    struct num labels[MAX_LAYERS];

    for (uint32_t i = 0; i < layers; i++)
        labels[i] = builder_foreign_num(b, CIRCUIT_FOREIGN + i, 0);
    const struct num hash = poseidon_num(cs, labels, layers);
    return end(b, hash.var);
}

static struct part record_data(struct builder *b)
{
    const fr_t zero = {{0}};
    const struct num data = num_alloc(builder_record(b), &zero);

    return end(b, data.var);
}

static struct part record_node_bits(struct builder *b)
{
    struct cs *cs = builder_record(b);
    struct boolean bits[LABEL_NODE_BITS];

    for (uint32_t i = 0; i < LABEL_NODE_BITS; i++)
        bits[i] = boolean_alloc(cs, false);
    num_inputize_bits(cs, bits, LABEL_NODE_BITS);
    return end(b, bits[0].var);
}

/* The bits of FIRST. */
static struct part record_bits(struct builder *b)
{
    struct cs *cs = builder_record(b);
    const struct num n = builder_foreign_num(b, FIRST, 0);
    struct boolean bits[NUM_BITS];

    num_to_bits(cs, &n, bits);
    return end(b, bits[0].var);
}

static struct part record_encoding(struct builder *b)
{
    struct cs *cs = builder_record(b);
    const struct num label = builder_foreign_num(b, FIRST, 0),
                     data = builder_foreign_num(b, SECOND, 0);
    const struct num encoded = num_add(cs, &label, &data);

    return end(b, encoded.var);
}

/* ---- the blocks of a label ---- */

/* The eight words that a block passes on are the last variables that it allocates, so the words of any block have the same
 * places from the first bit of the first word on. */
static uint32_t chain_place(const struct sha256_word state[8], uint32_t word, uint32_t bit)
{
    return state[word].bit[bit].var - state[0].bit[0].var;
}

static void foreign_chain(struct builder *b, uint32_t segment, const struct sha256_word from[8],
                          struct sha256_word out[8])
{
    for (uint32_t word = 0; word < 8; word++)
        for (uint32_t bit = 0; bit < 32; bit++)
            out[word].bit[bit] = builder_foreign_bit(b, segment, chain_place(from, word, bit));
}

static void assert_same_chain(const struct sha256_word x[8], const struct sha256_word y[8])
{
    for (uint32_t word = 0; word < 8; word++)
        for (uint32_t bit = 0; bit < 32; bit++)
            assert(chain_place(x, word, bit) == chain_place(y, word, bit));
    (void)x, (void)y;
}

/* FIRST: the replica id's bits, SECOND: those of the node. */
static struct part record_label_first(struct builder *b, uint32_t layer,
                                      struct sha256_word chain[8])
{
    struct cs *cs = builder_record(b);
    struct label_bits replica_id;
    struct boolean node[LABEL_NODE_BITS], head[LABEL_HEAD_BITS];

    builder_foreign_bytes(b, FIRST, replica_id.bit);
    for (uint32_t i = 0; i < LABEL_NODE_BITS; i++)
        node[i] = builder_foreign_bit(b, SECOND, i);
    label_head(&replica_id, layer, node, head);
    sha256_iv(chain);
    sha256_compress(cs, head, chain);
    return end(b, chain[0].bit[0].var);
}

/* FIRST: the words of the block before, SECOND and THIRD: the bits of two parents. */
static struct part record_label_middle(struct builder *b, struct sha256_word chain[8])
{
    struct cs *cs = builder_record(b);
    struct sha256_word state[8];
    struct boolean block[SHA256_BLOCK_BITS];

    foreign_chain(b, FIRST, chain, state);
    builder_foreign_bytes(b, SECOND, block);
    builder_foreign_bytes(b, THIRD, block + NUM_BYTE_BITS);
    sha256_compress(cs, block, state);
    assert_same_chain(state, chain);
    return end(b, state[0].bit[0].var);
}

/* The same with one parent and the padding; gives the label. */
static struct part record_label_last(struct builder *b, const struct sha256_word chain[8])
{
    struct cs *cs = builder_record(b);
    struct sha256_word state[8];
    struct boolean rest[NUM_BYTE_BITS], digest[SHA256_DIGEST_BITS];

    foreign_chain(b, FIRST, chain, state);
    builder_foreign_bytes(b, SECOND, rest);
    sha256_finish(cs, rest, NUM_BYTE_BITS, LABEL_BITS, state, digest);
    const struct num label = num_from_byte_bits(cs, digest);
    return end(b, label.var);
}

static void record_labels(struct builder *b, uint32_t layers, struct parts *p)
{
    struct sha256_word chain[8], first[8];

    p->label_first[0] = record_label_first(b, 1, chain);
    for (uint32_t layer = 1; layer < layers; layer++) {
        p->label_first[layer] = record_label_first(b, layer + 1, first);
        assert_same_chain(first, chain);
    }
    p->label_middle = record_label_middle(b, chain);
    p->label_last = record_label_last(b, chain);
}

static void record_all(struct builder *b, const struct sector_size *size, struct parts *p)
{
    record_header(b, p);
    p->data = record_data(b);
    p->d_level = record_d_level(b, &p->d_level_aux);
    p->d_end.index = record_d_end(b, size->log2_nodes, p->d_level_aux);
    record_column(b, size->layers, p);
    p->path.index = record_path(b, size);
    p->node_bits = record_node_bits(b);
    p->bits = record_bits(b);
    record_labels(b, size->layers, p);
    p->encoding = record_encoding(b);
    p->node_column = record_node_column(b, size->layers);
}

/* ---- placing ---- */

/* What is being put together. */
struct placing {
    struct builder *b;
    const struct sector_size *size;
    const struct parts *parts;
    struct circuit_offsets *offsets; /* to fill in; NULL after the first challenge */
    struct circuit_base header;      /* the header's own variables */
    struct circuit_base data, node_bits, columns[PARENTS], labels[MAX_LAYERS];
};

/* Places a part; returns where its result is. */
static struct circuit_base place(struct placing *p, const struct part *part,
                                 const struct circuit_base *foreign)
{
    return builder_at(builder_place(p->b, part->index, foreign), part->result, 0);
}

static void place_path(struct placing *p, struct circuit_base leaf, uint32_t root)
{
    const struct circuit_base foreign[] = {leaf, builder_at(p->header, root, 0)};

    builder_place(p->b, p->parts->path.index, foreign);
}

static void place_d_path(struct placing *p)
{
    const struct circuit_base begin = builder_here(p->b);
    struct circuit_base node = p->data;

    for (uint32_t i = 0; i < p->size->log2_nodes; i++)
        node = place(p, &p->parts->d_level, &node);
    const struct circuit_base foreign[] = {begin, node, builder_at(p->header, p->parts->comm_d, 0)};
    builder_place(p->b, p->parts->d_end.index, foreign);
}

static void place_parents(struct placing *p)
{
    for (uint32_t i = 0; i < PARENTS; i++) {
        if (p->offsets)
            p->offsets->parents[i] = builder_here(p->b);
        p->columns[i] = builder_place(p->b, p->parts->column.index, NULL);
        place_path(p, builder_at(p->columns[i], p->parts->column.result, 0), p->parts->comm_c);
    }
}

/* The bits of parent `i`'s label at `layer`, from 0. */
static struct circuit_base place_parent_bits(struct placing *p, uint32_t i, uint32_t layer)
{
    const struct circuit_base label = builder_at(p->columns[i], p->parts->column_labels, layer);

    return place(p, &p->parts->bits, &label);
}

static struct circuit_base place_label(struct placing *p, uint32_t layer)
{
    const struct parts *parts = p->parts;
    const uint32_t n_parents = layer == 0 ? DRG_PARENTS : PARENTS;
    struct circuit_base bits[PARENTS] = {0}; /* gcc -fanalyzer loses track of n_parents */

    for (uint32_t i = 0; i < n_parents; i++)
        bits[i] = place_parent_bits(p, i, i < DRG_PARENTS ? layer : layer - 1);
    const struct circuit_base head[] = {builder_at(p->header, parts->replica_bits, 0),
                                        p->node_bits};
    struct circuit_base chain = place(p, &parts->label_first[layer], head);
    for (uint32_t i = 0; i + 1 < LABEL_PARENTS; i += 2) {
        const struct circuit_base block[] = {chain, bits[i % n_parents], bits[(i + 1) % n_parents]};
        chain = place(p, &parts->label_middle, block);
    }
    const struct circuit_base last[] = {chain, bits[(LABEL_PARENTS - 1) % n_parents]};
    return place(p, &parts->label_last, last);
}

static void place_labels(struct placing *p)
{
    if (p->offsets)
        p->offsets->node_bits = builder_here(p->b);
    p->node_bits = place(p, &p->parts->node_bits, NULL);
    for (uint32_t layer = 0; layer < p->size->layers; layer++) {
        if (p->offsets)
            p->offsets->labels[layer] = builder_here(p->b);
        p->labels[layer] = place_label(p, layer);
    }
}

/* porep-circuit 5.3 */
static void place_challenge(struct placing *p)
{
    if (p->offsets)
        p->offsets->data = builder_here(p->b);
    p->data = place(p, &p->parts->data, NULL);
    place_d_path(p);
    place_parents(p);
    place_labels(p);
    if (p->offsets)
        p->offsets->encoding = builder_here(p->b);
    const struct circuit_base encoded[] = {p->labels[p->size->layers - 1], p->data};
    place_path(p, place(p, &p->parts->encoding, encoded), p->parts->comm_r_last);
    if (p->offsets)
        p->offsets->column = builder_here(p->b);
    place_path(p, place(p, &p->parts->node_column, p->labels), p->parts->comm_c);
}

static void place_all(struct builder *b, const struct sector_size *size, const struct parts *parts,
                      struct circuit_offsets *offsets)
{
    struct placing p = {.b = b, .size = size, .parts = parts, .offsets = offsets};

    offsets->header = builder_here(b);
    p.header = builder_place(b, parts->header.index, NULL);
    for (uint32_t i = 0; i < size->challenges; i++) {
        place_challenge(&p);
        if (p.offsets) {
            const struct circuit_base next = builder_here(b);
            offsets->stride = (struct circuit_base){next.aux - offsets->data.aux,
                                                    next.value - offsets->data.value};
        }
        p.offsets = NULL;
    }
}

int circuit_create(const struct sector_size *size, struct circuit **out, struct errmsg *err)
{
    struct circuit_offsets offsets;
    struct parts parts;
    struct builder *b = NULL;

    int ret = builder_create(size, &b);
    if (ret == 0) {
        record_all(b, size, &parts);
        place_all(b, size, &parts, &offsets);
        ret = builder_finish(b, &offsets, out);
    }
    builder_destroy(b);
    return ret < 0 ? errmsg_set(err, ret, "no memory for the circuit of %s", size->name) : 0;
}

#define SIZES_MAX 16

static struct {
    pthread_mutex_t lock;
    struct circuit *by_size[SIZES_MAX]; /* guarded by lock; set once */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

int circuit_of_size(const struct sector_size *size, const struct circuit **out, struct errmsg *err)
{
    const size_t index = (size_t)(size - sector_sizes);
    int ret = 0;

    assert(index < SIZES_MAX);
    pthread_mutex_lock(&shared.lock);
    if (!shared.by_size[index])
        ret = circuit_create(size, &shared.by_size[index], err);
    if (ret == 0)
        *out = shared.by_size[index];
    pthread_mutex_unlock(&shared.lock);
    return ret;
}

void circuit_destroy(struct circuit *c)
{
    if (!c)
        return;
    free(c->coeffs);
    free(c->templates);
    for (int side = 0; side < CIRCUIT_SIDES; side++) {
        free(c->sides[side].first);
        free(c->sides[side].terms);
    }
    free(c->instances);
    free(c->bases);
    free(c->value_aux);
    free(c->a_density);
    free(c->b_density);
    free(c->a_rank);
    free(c->b_rank);
    free(c->a_points);
    free(c->b_points);
    circuit_plan_destroy(c->plan);
    free(c);
}

size_t circuit_bytes(const struct circuit *c)
{
    const uint32_t blocks = (c->aux_words + CIRCUIT_RANK_WORDS - 1) / CIRCUIT_RANK_WORDS;
    size_t bytes =
        sizeof(*c) + c->n_coeffs * sizeof(fr_t) + c->n_templates * sizeof(struct circuit_template) +
        c->n_instances * sizeof(struct circuit_instance) +
        c->n_bases * sizeof(struct circuit_base) +
        (3 * (size_t)c->n_values - c->n_inputs) * sizeof(uint32_t) +
        2 * (c->aux_words * sizeof(uint64_t) + (blocks + 1) * sizeof(uint32_t));

    for (int side = 0; side < CIRCUIT_SIDES; side++)
        bytes += (c->template_rows + 1) * sizeof(uint32_t) +
                 c->sides[side].first[c->template_rows] * sizeof(struct circuit_term);
    return bytes + circuit_plan_bytes(c, c->plan);
}
