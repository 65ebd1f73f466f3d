/*
 * The circuit's values without its rows: each function writes what the gadget of the same purpose allocates (merkle.c,
 * label.c, porep.c), in its order. The parts of a challenge are independent but for two: the path of the encoded node and the
 * hash of the node's column want the labels, and so come in a second round.
 */
#include "numa/circuit/compact.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/porep.h"
#include "numa/circuit/poseidon_fast.h"
#include "numa/circuit/sha256_trace.h"

#define PAGE_BYTES 4096
#define NODE_WORDS 8 /* of 32 bits, of a field element's bytes */

size_t compact_bytes(const struct circuit *c)
{
    return c->n_values * sizeof(fr_t) + c->aux_words * sizeof(uint64_t);
}

/* How many variables are no bits has no closed form; a test makes every circuit and counts. */
static const struct {
    const char *size;
    uint32_t n_values;
} values[] = {{"2KiB", 43846},    {"4KiB", 53902},   {"16KiB", 60894},   {"32KiB", 70950},
              {"8MiB", 112038},   {"16MiB", 122094}, {"512MiB", 146134}, {"1GiB", 156190},
              {"32GiB", 1699430}, {"64GiB", 1789934}};

size_t compact_bytes_of_size(const struct sector_size *size)
{
    struct porep_counts counts;

    porep_counts(size, &counts);
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (strcmp(values[i].size, size->name) == 0)
            return values[i].n_values * sizeof(fr_t) +
                   circuit_aux_words(counts.aux) * sizeof(uint64_t);
    return 0;
}

void compact_place(struct compact *w, const struct circuit *c, void *memory)
{
    *w = (struct compact){.circuit = c, .values = memory, .bytes = compact_bytes(c)};
    w->bits = (uint64_t *)(w->values + c->n_values);
}

int compact_create(const struct circuit *c, struct compact **out, struct errmsg *err)
{
    const size_t bytes = (compact_bytes(c) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    struct compact *w = malloc(sizeof(*w));
    void *memory = aligned_alloc(PAGE_BYTES, bytes);

    if (!w || !memory) {
        free(w);
        free(memory);
        return errmsg_set(err, -ENOMEM, "no memory for a witness of %zu bytes", bytes);
    }
    compact_place(w, c, memory);
    *out = w;
    return 0;
}

void compact_destroy(struct compact *w)
{
    if (w)
        free(w->values);
    free(w);
}

/* ---- numbers ---- */

static void put_value_bits(struct bit_writer *w, const fr_t *value)
{
    uint64_t limbs[4];

    blst_uint64_from_fr(limbs, value);
    for (int i = 0; i < 3; i++)
        bit_writer_put(w, limbs[i], 64);
    bit_writer_put(w, limbs[3], FR_BITS - 192);
}

/* The words that a hash reads of a field element's bytes: all bits variables but the topmost, which is always 0. */
static void value_words(struct trace_word out[NODE_WORDS], const fr_t *value)
{
    uint8_t bytes[FR_BYTES];

    fr_to_bytes(bytes, value);
    for (int i = 0; i < NODE_WORDS; i++)
        out[i] = (struct trace_word){.value = load_be32(bytes + 4 * i)};
    out[NODE_WORDS - 1].constant = 0x80;
}

/* The number that a digest's first 254 bits spell. */
static const fr_t *put_digest(struct bit_writer *w, const struct trace_word state[8])
{
    uint8_t bytes[FR_BYTES];
    fr_t value = {{0}};

    for (int i = 0; i < 8; i++)
        store_be32(bytes + 4 * i, state[i].value);
    bytes[FR_BYTES - 1] &= 0x3f;
    fr_from_bytes(&value, bytes); /* below 2^254: always below r */
    return bit_writer_put_value(w, &value);
}

/* ---- Merkle paths ---- */

static const fr_t *pick(struct bit_writer *w, bool condition, const fr_t *a, const fr_t *b)
{
    return bit_writer_put_value(w, condition ? a : b);
}

static void insert_2(struct bit_writer *w, const fr_t *el, uint32_t index, const fr_t *s, fr_t *out)
{
    const bool b0 = index & 1;

    out[0] = *pick(w, b0, &s[0], el);
    out[1] = *pick(w, b0, el, &s[0]);
}

static void insert_4(struct bit_writer *w, const fr_t *el, uint32_t index, const fr_t *s, fr_t *out)
{
    const bool b0 = index & 1, b1 = index >> 1 & 1;
    const fr_t *t;

    t = pick(w, b0, &s[0], el);
    out[0] = *pick(w, b1, &s[0], t);
    t = pick(w, b0, el, &s[0]);
    out[1] = *pick(w, b1, &s[1], t);
    t = pick(w, b0, &s[2], el);
    out[2] = *pick(w, b1, t, &s[1]);
    t = pick(w, b0, el, &s[2]);
    out[3] = *pick(w, b1, t, &s[2]);
}

static void insert_8(struct bit_writer *w, const fr_t *el, uint32_t index, const fr_t *s, fr_t *out)
{
    const bool b0 = index & 1, b1 = index >> 1 & 1, b2 = index >> 2 & 1, nor = !b0 && !b1,
               both = b0 && b1;
    const fr_t *b = &s[0], *c = &s[1], *d = &s[2], *e = &s[3], *f = &s[4], *g = &s[5], *h = &s[6],
               *t;

    bit_writer_put(w, nor | (uint64_t)both << 1, 2);
    t = pick(w, nor, el, b);
    out[0] = *pick(w, b2, b, t);
    t = pick(w, b0, el, b);
    t = pick(w, b1, c, t);
    out[1] = *pick(w, b2, c, t);
    t = pick(w, b0, d, el);
    t = pick(w, b1, t, c);
    out[2] = *pick(w, b2, d, t);
    t = pick(w, both, el, d);
    out[3] = *pick(w, b2, e, t);
    t = pick(w, nor, el, f);
    out[4] = *pick(w, b2, t, e);
    t = pick(w, b0, el, f);
    t = pick(w, b1, g, t);
    out[5] = *pick(w, b2, t, f);
    t = pick(w, b0, h, el);
    t = pick(w, b1, t, g);
    out[6] = *pick(w, b2, t, g);
    t = pick(w, both, el, h);
    out[7] = *pick(w, b2, t, h);
}

static uint32_t log2_arity(uint32_t arity)
{
    return arity == 8 ? 3 : arity == 4 ? 2 : 1;
}

static void put_level(struct bit_writer *w, const struct merkle_level *level, const fr_t *node,
                      fr_t children[MERKLE_MAX_ARITY])
{
    bit_writer_put(w, level->index, log2_arity(level->arity));
    for (uint32_t j = 0; j < level->arity - 1; j++)
        bit_writer_put_value(w, &level->siblings[j]);
    if (level->arity == 2)
        insert_2(w, node, level->index, level->siblings, children);
    else if (level->arity == 4)
        insert_4(w, node, level->index, level->siblings, children);
    else
        insert_8(w, node, level->index, level->siblings, children);
}

static const fr_t *put_poseidon(struct bit_writer *w, const fr_t *preimage, uint32_t arity)
{
    const uint32_t n = poseidon_variables(arity);

    poseidon_fast_trace(arity, preimage, w->value);
    w->value += n;
    bit_writer_skip(w, n);
    return w->value - 1;
}

static const fr_t *put_tree_d_node(struct bit_writer *w, const fr_t children[2])
{
    struct trace_word block[2 * NODE_WORDS], state[8];

    put_value_bits(w, &children[0]);
    put_value_bits(w, &children[1]);
    value_words(block, &children[0]);
    value_words(block + NODE_WORDS, &children[1]);
    sha256_trace_iv(state);
    sha256_trace_block(w, block, state);
    sha256_trace_finish(w, NULL, 0, 32 * ARRAY_LEN(block), state);
    return put_digest(w, state);
}

/* A path's variables; `input` becomes the position of its leaf. */
static void put_path(struct bit_writer *w, enum merkle_hash hash, const fr_t *leaf,
                     const struct merkle_level *levels, uint32_t n_levels, fr_t *input)
{
    fr_t children[MERKLE_MAX_ARITY];
    uint64_t position = 0;
    uint32_t n_bits = 0;

    for (uint32_t i = 0; i < n_levels; i++) {
        put_level(w, &levels[i], leaf, children);
        leaf = hash == MERKLE_SHA256 ? put_tree_d_node(w, children)
                                     : put_poseidon(w, children, levels[i].arity);
        position |= (uint64_t)levels[i].index << n_bits;
        n_bits += log2_arity(levels[i].arity);
    }
    *input = fr_from_u64(position);
}

/* ---- the parts ---- */

/* The work that is shared out. */
struct work {
    struct compact *w;
    const struct porep_roots *roots;
    const struct porep_challenge *challenges;
    struct trace_word replica_id[NODE_WORDS];
};

/* The inputs of a challenge in their order. */
enum {
    INPUT_TREE_D,
    INPUT_PARENTS,
    INPUT_NODE = INPUT_PARENTS + PARENTS,
    INPUT_TREE_R,
    INPUT_TREE_C
};
#define HEADER_INPUTS 4

static fr_t *input_of(const struct work *work, uint32_t challenge, uint32_t input)
{
    return &work->w->values[HEADER_INPUTS + CHALLENGE_INPUTS * challenge + input];
}

static struct circuit_base advance(const struct circuit *c, struct circuit_base base,
                                   uint32_t challenge)
{
    return (struct circuit_base){base.aux + challenge * c->offsets.stride.aux,
                                 base.value + challenge * c->offsets.stride.value};
}

static struct bit_writer writer_at(const struct work *work, struct circuit_base base)
{
    return bit_writer_at(work->w->bits, base.aux, work->w->values + base.value);
}

/* A part ends where the next begins. */
static void end_part(const struct work *work, struct bit_writer *w, struct circuit_base next)
{
    assert(bit_writer_tell(w, work->w->bits) == next.aux);
    assert(w->value == work->w->values + next.value);
    (void)work, (void)next;
    bit_writer_end(w);
}

static void compute_header(struct work *work)
{
    const struct circuit *c = work->w->circuit;
    const struct porep_roots *roots = work->roots;
    const fr_t preimage[2] = {roots->comm_c, roots->comm_r_last};
    struct bit_writer w = writer_at(work, c->offsets.header);

    work->w->values[0] = fr_from_u64(1);
    work->w->values[1] = roots->replica_id;
    work->w->values[2] = roots->comm_d;
    work->w->values[3] = roots->comm_r;
    bit_writer_put_value(&w, &roots->replica_id);
    put_value_bits(&w, &roots->replica_id);
    bit_writer_put_value(&w, &roots->comm_d);
    bit_writer_put_value(&w, &roots->comm_r);
    bit_writer_put_value(&w, &roots->comm_r_last);
    bit_writer_put_value(&w, &roots->comm_c);
    put_poseidon(&w, preimage, 2);
    end_part(work, &w, c->offsets.data);
    value_words(work->replica_id, &roots->replica_id);
}

static void compute_tree_d(const struct work *work, uint32_t i)
{
    const struct circuit *c = work->w->circuit;
    const struct porep_challenge *challenge = &work->challenges[i];
    struct bit_writer w = writer_at(work, advance(c, c->offsets.data, i));

    bit_writer_put_value(&w, &challenge->data_leaf);
    put_path(&w, MERKLE_SHA256, &challenge->data_leaf, challenge->d_path, c->size->log2_nodes,
             input_of(work, i, INPUT_TREE_D));
    end_part(work, &w, advance(c, c->offsets.parents[0], i));
}

static void compute_parent(const struct work *work, uint32_t i, uint32_t parent)
{
    const struct circuit *c = work->w->circuit;
    const struct porep_challenge *challenge = &work->challenges[i];
    const fr_t *labels = challenge->parents[parent].labels;
    struct bit_writer w = writer_at(work, advance(c, c->offsets.parents[parent], i));

    for (uint32_t layer = 0; layer < c->size->layers; layer++)
        bit_writer_put_value(&w, &labels[layer]);
    const fr_t *hash = put_poseidon(&w, labels, c->size->layers);
    put_path(&w, MERKLE_POSEIDON, hash, challenge->parents[parent].path,
             sector_path_levels(c->size), input_of(work, i, INPUT_PARENTS + parent));
    end_part(work, &w,
             advance(c,
                     parent + 1 < PARENTS ? c->offsets.parents[parent + 1] : c->offsets.node_bits,
                     i));
}

/* The blocks of a label, whose parents have these words. */
static void put_label(const struct work *work, struct bit_writer *w, uint32_t layer, uint64_t node,
                      struct trace_word (*parents)[NODE_WORDS], uint32_t n_parents)
{
    struct trace_word block[2 * NODE_WORDS], state[8];

    memcpy(block, work->replica_id, sizeof(work->replica_id));
    block[8] = trace_const(layer + 1);
    block[9] = (struct trace_word){.value = (uint32_t)(node >> 32)};
    block[10] = (struct trace_word){.value = (uint32_t)node};
    for (int k = 11; k < 16; k++)
        block[k] = trace_const(0);
    sha256_trace_iv(state);
    sha256_trace_block(w, block, state);
    for (uint32_t p = 0; p + 1 < LABEL_PARENTS; p += 2) {
        memcpy(block, parents[p % n_parents], sizeof(*parents));
        memcpy(block + NODE_WORDS, parents[(p + 1) % n_parents], sizeof(*parents));
        sha256_trace_block(w, block, state);
    }
    sha256_trace_finish(w, parents[(LABEL_PARENTS - 1) % n_parents], NODE_WORDS, LABEL_BITS, state);
    put_digest(w, state);
}

static struct circuit_base label_end(const struct circuit *c, uint32_t layer)
{
    return layer + 1 < c->size->layers ? c->offsets.labels[layer + 1] : c->offsets.encoding;
}

static void compute_label(const struct work *work, uint32_t i, uint32_t layer)
{
    const struct circuit *c = work->w->circuit;
    const struct porep_challenge *challenge = &work->challenges[i];
    const uint32_t n_parents = layer == 0 ? DRG_PARENTS : PARENTS;
    struct trace_word parents[PARENTS][NODE_WORDS];
    struct bit_writer w = writer_at(work, advance(c, c->offsets.labels[layer], i));

    for (uint32_t p = 0; p < n_parents; p++) {
        const fr_t *label = &challenge->parents[p].labels[p < DRG_PARENTS ? layer : layer - 1];
        put_value_bits(&w, label);
        value_words(parents[p], label);
    }
    put_label(work, &w, layer, challenge->node, parents, n_parents);
    end_part(work, &w, advance(c, label_end(c, layer), i));
}

/* The challenged node's number, which comes before its labels. */
static void compute_node_bits(const struct work *work, uint32_t i)
{
    const struct circuit *c = work->w->circuit;
    const uint64_t node = work->challenges[i].node;
    struct bit_writer w = writer_at(work, advance(c, c->offsets.node_bits, i));

    bit_writer_put(&w, node, 64);
    *input_of(work, i, INPUT_NODE) = fr_from_u64(node);
    end_part(work, &w, advance(c, c->offsets.labels[0], i));
}

/* A label of the challenged node: the last value of its part. */
static const fr_t *label_of(const struct work *work, uint32_t i, uint32_t layer)
{
    const struct circuit *c = work->w->circuit;

    return &work->w->values[advance(c, label_end(c, layer), i).value - 1];
}

static void compute_tree_r(const struct work *work, uint32_t i)
{
    const struct circuit *c = work->w->circuit;
    const struct porep_challenge *challenge = &work->challenges[i];
    struct bit_writer w = writer_at(work, advance(c, c->offsets.encoding, i));
    fr_t encoded;

    fr_add(&encoded, label_of(work, i, c->size->layers - 1), &challenge->data_leaf);
    bit_writer_put_value(&w, &encoded);
    put_path(&w, MERKLE_POSEIDON, &encoded, challenge->r_path, sector_path_levels(c->size),
             input_of(work, i, INPUT_TREE_R));
    end_part(work, &w, advance(c, c->offsets.column, i));
}

static void compute_column(const struct work *work, uint32_t i)
{
    const struct circuit *c = work->w->circuit;
    const struct porep_challenge *challenge = &work->challenges[i];
    struct bit_writer w = writer_at(work, advance(c, c->offsets.column, i));
    fr_t labels[MAX_LAYERS];

    for (uint32_t layer = 0; layer < c->size->layers; layer++)
        labels[layer] = *label_of(work, i, layer);
    const fr_t *hash = put_poseidon(&w, labels, c->size->layers);
    put_path(&w, MERKLE_POSEIDON, hash, challenge->c_path, sector_path_levels(c->size),
             input_of(work, i, INPUT_TREE_C));
    end_part(work, &w, advance(c, c->offsets.data, i + 1));
}

/* First round: tree D's path and the node's number, parents, labels of each challenge. The path is the longest of the parts and
 * comes first. */
static void compute_first(void *ctx, size_t item, unsigned thread)
{
    const struct work *work = ctx;
    const uint32_t challenges = work->w->circuit->size->challenges;
    const uint32_t i = (uint32_t)(item % challenges), part = (uint32_t)(item / challenges);

    (void)thread;
    if (part == 0) {
        compute_tree_d(work, i);
        compute_node_bits(work, i);
    } else if (part <= PARENTS) {
        compute_parent(work, i, part - 1);
    } else {
        compute_label(work, i, part - 1 - PARENTS);
    }
}

static void compute_second(void *ctx, size_t item, unsigned thread)
{
    const struct work *work = ctx;

    (void)thread;
    if (item % 2 == 0)
        compute_tree_r(work, (uint32_t)item / 2);
    else
        compute_column(work, (uint32_t)item / 2);
}

void compact_compute(struct compact *w, const struct porep_roots *roots,
                     const struct porep_challenge *challenges, struct workers *workers)
{
    const struct sector_size *size = w->circuit->size;
    struct work work = {.w = w, .roots = roots, .challenges = challenges};

    memset(w->bits, 0, w->circuit->aux_words * sizeof(*w->bits));
    compute_header(&work);
    workers_run(workers, (size_t)size->challenges * (1 + PARENTS + size->layers), compute_first,
                &work);
    workers_run(workers, 2 * (size_t)size->challenges, compute_second, &work);
}

/* ---- from a C1 ---- */

struct reading {
    const struct c1 *c1;
    uint32_t partition;
    struct porep_roots roots;
    struct porep_challenge *challenges;
    struct errmsg *errs; /* one for each challenge */
    atomic_int ret;      /* 0 or an error */
};

static void read_challenge(void *ctx, size_t item, unsigned thread)
{
    struct reading *r = ctx;

    (void)thread;
    const int ret = porep_read_challenge(r->c1, r->partition, (uint32_t)item, &r->roots,
                                         &r->challenges[item], &r->errs[item]);
    if (ret < 0)
        atomic_store(&r->ret, ret);
}

/* Reads all; of several errors the first challenge's is told. */
static int read_challenges(struct reading *r, uint32_t len, struct workers *workers,
                           struct errmsg *err)
{
    porep_read_roots(r->c1, r->partition, &r->roots);
    workers_run(workers, len, read_challenge, r);
    const int ret = atomic_load(&r->ret);
    for (uint32_t i = 0; ret < 0 && i < len; i++)
        if (r->errs[i].text[0])
            return errmsg_set(err, ret, "%s", r->errs[i].text);
    return ret;
}

int compact_make(struct compact *w, const struct c1 *c1, uint32_t partition,
                 struct workers *workers, struct errmsg *err)
{
    const uint32_t len = w->circuit->size->challenges;
    struct reading r = {.c1 = c1, .partition = partition};
    int ret;

    assert(c1_size(c1) == w->circuit->size);
    r.challenges = malloc(len * sizeof(*r.challenges));
    r.errs = calloc(len, sizeof(*r.errs));
    ret = r.challenges && r.errs ? read_challenges(&r, len, workers, err)
                                 : errmsg_set(err, -ENOMEM, "no memory for %u challenges", len);
    if (ret == 0)
        compact_compute(w, &r.roots, r.challenges, workers);
    free(r.challenges);
    free(r.errs);
    return ret;
}

/* ---- expansion ---- */

/* Index of the first value at or after aux variable `aux`. */
static uint32_t first_value(const struct circuit *c, uint32_t aux)
{
    uint32_t low = 0, high = c->n_values - c->n_inputs;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->value_aux[middle] < aux)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void compact_expand(const struct compact *w, uint32_t first, uint32_t end, fr_t *out)
{
    const struct circuit *c = w->circuit;
    const fr_t bit[2] = {{{0}}, FR_ONE};

    for (uint32_t i = first; i < end; i++)
        out[i - first] = bit[w->bits[i / 64] >> (i % 64) & 1];
    for (uint32_t k = first_value(c, first); k < c->n_values - c->n_inputs && c->value_aux[k] < end;
         k++)
        out[c->value_aux[k] - first] = w->values[c->n_inputs + k];
}
