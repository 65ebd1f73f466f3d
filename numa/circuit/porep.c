/*
 * Three parts: counts by formula, decoding of a C1's values, and the circuit of porep-circuit 5 put
 * together from gadgets. Decoding comes first and can fail; synthesis cannot.
 */
#include "numa/circuit/porep.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "numa/circuit/poseidon_gadget.h"

/* Counters of a part of the circuit; `bits` of the aux are bits. */
struct counts {
    uint64_t rows, aux, bits;
};

/* porep-circuit 3.7: as many rows as variables. */
static uint64_t poseidon_rows(uint32_t arity)
{
    const struct poseidon *p = poseidon_constants(arity);
    const uint64_t sboxes = (uint64_t)p->width * POSEIDON_FULL_ROUNDS + p->partial_rounds;

    return 3 * (sboxes - 1) + (sboxes - arity);
}

/* One level of a Poseidon path: index bits, picks (and, at arity 8, two bits of logic), hash; the siblings have no
 * row (porep-circuit 4.10). */
static struct counts level_counts(uint32_t arity)
{
    const uint64_t emitted = poseidon_rows(arity) + (arity == 8   ? 3 + 22
                                                     : arity == 4 ? 2 + 8
                                                                  : 1 + 2);

    return (struct counts){.rows = emitted,
                           .aux = emitted + arity - 1,
                           .bits = arity == 8   ? 3 + 2
                                   : arity == 4 ? 2
                                                : 1};
}

/* An inclusion in tree C or R. */
static struct counts path_counts(const struct sector_size *size)
{
    struct counts sum = {.rows = 2};

    for (uint32_t level = 0; level < sector_path_levels(size); level++) {
        const struct counts c = level_counts(sector_path_arity(size, level));
        sum.rows += c.rows;
        sum.aux += c.aux;
        sum.bits += c.bits;
    }
    return sum;
}

/* porep-circuit 5.4 */
static struct counts challenge_counts(const struct sector_size *size)
{
    const struct counts path = path_counts(size);
    const uint64_t column = poseidon_rows(size->layers), upper = size->layers - 1;

    return (struct counts){
        .rows = (45382 * (uint64_t)size->log2_nodes + 2) + PARENTS * (column + path.rows) + 65 +
                (DRG_PARENTS * 256 + 522269) + upper * (PARENTS * 256 + 522269) + 1 + path.rows +
                column + path.rows,
        .aux = 1 + 45335 * (uint64_t)size->log2_nodes +
               PARENTS * (size->layers + column + path.aux) + 64 + (DRG_PARENTS * 255 + 521749) +
               upper * (PARENTS * 255 + 521749) + 1 + path.aux + column + path.aux,
        /* A level of tree D has four values, a label one. */
        .bits = 45331 * (uint64_t)size->log2_nodes + (PARENTS + 2) * path.bits + 64 +
                (DRG_PARENTS * 255 + 521748) + upper * (PARENTS * 255 + 521748),
    };
}

#define HEADER_ROWS 571
#define HEADER_AUX 571
#define HEADER_INPUTS 4
#define HEADER_BITS 255

void porep_challenge_start(const struct sector_size *size, uint32_t i, struct cs *at)
{
    const struct counts each = challenge_counts(size);

    at->n_inputs = HEADER_INPUTS + CHALLENGE_INPUTS * i;
    at->n_aux = (uint32_t)(HEADER_AUX + i * each.aux);
    at->n_rows = HEADER_ROWS + i * each.rows;
}

void porep_counts(const struct sector_size *size, struct porep_counts *out)
{
    struct cs end;

    porep_challenge_start(size, size->challenges, &end);
    out->inputs = end.n_inputs;
    out->aux = end.n_aux;
    out->values = (uint32_t)(end.n_inputs + end.n_aux - HEADER_BITS -
                             size->challenges * challenge_counts(size).bits);
    out->constraints = end.n_rows;
    out->rows = end.n_rows + end.n_inputs;
    out->log2_domain = 0;
    while (UINT64_C(1) << out->log2_domain < out->rows)
        out->log2_domain++;
}

static fr_t decode(const uint8_t *bytes)
{
    fr_t value;

    bool canonical = fr_from_bytes(&value, bytes);
    assert(canonical); /* a struct c1 holds nothing else */
    return value;
}

/* Also checks where the path leads. What differs is remembered, so that the code reads as a list of what
 * there is. */
static void decode_path(struct merkle_level *out, const struct merkle_proof *proof,
                        const fr_t *root, const char **differs, const char *what)
{
    for (uint32_t level = 0; level < proof->levels; level++) {
        const struct path_element el = c1_path_element(proof, level);
        out[level].arity = el.arity;
        out[level].index = el.index;
        for (uint32_t j = 0; j < el.arity - 1; j++)
            out[level].siblings[j] = decode(el.hashes + (size_t)j * DIGEST_BYTES);
    }
    const fr_t found = decode(proof->root);
    if (!*differs && !fr_equal(&found, root))
        *differs = what;
}

void porep_read_roots(const struct c1 *c1, uint32_t partition, struct porep_roots *out)
{
    struct challenge_proof first;

    c1_challenge(c1, partition, 0, &first);
    out->replica_id = decode(c1_replica_id(c1));
    out->comm_d = decode(c1_comm_d(c1));
    out->comm_r = decode(c1_comm_r(c1));
    out->comm_r_last = decode(first.comm_r_last.root);
    out->comm_c = decode(first.c_x.inclusion.root);
}

int porep_read_challenge(const struct c1 *c1, uint32_t partition, uint32_t i,
                         const struct porep_roots *roots, struct porep_challenge *out,
                         struct errmsg *err)
{
    const uint32_t layers = c1_size(c1)->layers;
    const char *differs = NULL;
    struct challenge_proof proof;

    c1_challenge(c1, partition, i, &proof);
    out->node = proof.labels[0].node;
    out->data_leaf = decode(proof.comm_d.leaf);
    decode_path(out->d_path, &proof.comm_d, &roots->comm_d, &differs, "tree D is not comm_d");
    for (uint32_t p = 0; p < PARENTS; p++) {
        const struct column_proof *column = &proof.parents[p];
        for (uint32_t layer = 0; layer < layers; layer++)
            out->parents[p].labels[layer] = decode(column->rows + (size_t)layer * DIGEST_BYTES);
        decode_path(out->parents[p].path, &column->inclusion, &roots->comm_c, &differs,
                    "a parent is not the comm_c of the partition");
    }
    decode_path(out->r_path, &proof.comm_r_last, &roots->comm_r_last, &differs,
                "tree R is not the comm_r_last of the partition");
    decode_path(out->c_path, &proof.c_x.inclusion, &roots->comm_c, &differs,
                "tree C is not the comm_c of the partition");
    if (differs)
        return errmsg_set(err, -EBADMSG, "partition %u, challenge %u: the root of the path of %s",
                          partition, i, differs);
    return 0;
}

/* porep-circuit 5.2 */
void porep_synthesize_header(struct cs *cs, const struct porep_roots *roots,
                             struct porep_header *out)
{
    const struct num replica_id = num_alloc(cs, &roots->replica_id);
    num_inputize(cs, &replica_id);
    /* cppcheck-suppress uninitvar ; an array that is written */
    num_to_byte_bits(cs, &replica_id, out->replica_id.bit);
    out->comm_d = num_alloc(cs, &roots->comm_d);
    num_inputize(cs, &out->comm_d);
    const struct num comm_r = num_alloc(cs, &roots->comm_r);
    num_inputize(cs, &comm_r);
    out->comm_r_last = num_alloc(cs, &roots->comm_r_last);
    out->comm_c = num_alloc(cs, &roots->comm_c);
    const struct num preimage[2] = {out->comm_c, out->comm_r_last};
    const struct num hash = poseidon_num(cs, preimage, 2);
    num_enforce_equal(cs, &comm_r, &hash);
}

/* Labels of the 14 parents, layer 1 first. */
struct columns {
    struct num label[PARENTS][MAX_LAYERS];
};

/* Step 2 of porep-circuit 5.3. */
static void synthesize_parents(struct cs *cs, const struct sector_size *size,
                               const struct porep_header *header,
                               const struct porep_challenge *challenge, struct columns *columns)
{
    for (uint32_t p = 0; p < PARENTS; p++) {
        cs_step(cs, "parent column");
        for (uint32_t layer = 0; layer < size->layers; layer++)
            columns->label[p][layer] = num_alloc(cs, &challenge->parents[p].labels[layer]);
        const struct num hash = poseidon_num(cs, columns->label[p], size->layers);
        cs_step(cs, "parent inclusion");
        merkle_inclusion(cs, MERKLE_POSEIDON, &hash, challenge->parents[p].path,
                         sector_path_levels(size), &header->comm_c);
    }
}

/* The label of the challenged node at `layer`, from 0: over the DRG parents' labels of that layer and, above the
 * first, the expander parents' of the layer below. */
static struct num synthesize_label(struct cs *cs, const struct porep_header *header,
                                   const struct columns *columns, const struct boolean *node,
                                   uint32_t layer)
{
    struct label_bits parents[PARENTS];
    const uint32_t n_parents = layer == 0 ? DRG_PARENTS : PARENTS;

    cs_step(cs, "parent bits");
    for (uint32_t p = 0; p < n_parents; p++)
        num_to_byte_bits(cs, &columns->label[p][p < DRG_PARENTS ? layer : layer - 1],
                         parents[p].bit);
    cs_step(cs, "label");
    return label_create(cs, &header->replica_id, layer + 1, node, parents, n_parents);
}

/* Steps 3 and 4. */
static void synthesize_labels(struct cs *cs, const struct sector_size *size,
                              const struct porep_header *header, const struct columns *columns,
                              uint64_t node, struct num label[MAX_LAYERS])
{
    struct boolean bits[LABEL_NODE_BITS];

    cs_step(cs, "challenge bits");
    for (uint32_t i = 0; i < LABEL_NODE_BITS; i++)
        bits[i] = boolean_alloc(cs, node >> i & 1);
    num_inputize_bits(cs, bits, LABEL_NODE_BITS);
    for (uint32_t layer = 0; layer < size->layers; layer++)
        label[layer] = synthesize_label(cs, header, columns, bits, layer);
}

void porep_synthesize_challenge(struct cs *cs, const struct sector_size *size,
                                const struct porep_header *header,
                                const struct porep_challenge *challenge)
{
    const uint32_t levels = sector_path_levels(size);
    struct columns columns;
    struct num label[MAX_LAYERS];

    cs_step(cs, "challenge");
    const struct num data = num_alloc(cs, &challenge->data_leaf);
    cs_step(cs, "tree D inclusion");
    merkle_inclusion(cs, MERKLE_SHA256, &data, challenge->d_path, size->log2_nodes,
                     &header->comm_d);
    synthesize_parents(cs, size, header, challenge, &columns);
    synthesize_labels(cs, size, header, &columns, challenge->node, label);
    cs_step(cs, "encoding");
    const struct num encoded = num_add(cs, &label[size->layers - 1], &data);
    cs_step(cs, "tree R inclusion");
    merkle_inclusion(cs, MERKLE_POSEIDON, &encoded, challenge->r_path, levels,
                     &header->comm_r_last);
    cs_step(cs, "column hash");
    const struct num hash = poseidon_num(cs, label, size->layers);
    cs_step(cs, "tree C inclusion");
    merkle_inclusion(cs, MERKLE_POSEIDON, &hash, challenge->c_path, levels, &header->comm_c);
}

int porep_synthesize(const struct c1 *c1, uint32_t partition, const struct cs_sink *sink,
                     struct errmsg *err)
{
    const struct sector_size *size = c1_size(c1);
    struct porep_challenge *challenge = malloc(sizeof(*challenge));
    struct porep_roots roots;
    struct porep_header header;
    struct cs cs;
    int ret = 0;

    if (!challenge)
        return errmsg_set(err, -ENOMEM, "no memory for a challenge");
    porep_read_roots(c1, partition, &roots);
    cs_init(&cs, sink);
    porep_synthesize_header(&cs, &roots, &header);
    for (uint32_t i = 0; i < size->challenges; i++) {
        ret = porep_read_challenge(c1, partition, i, &roots, challenge, err);
        if (ret < 0)
            goto out;
        porep_synthesize_challenge(&cs, size, &header, challenge);
    }
    cs_close(&cs);
out:
    free(challenge);
    return ret;
}

static void blank_path(const struct sector_size *size, struct merkle_level *out)
{
    for (uint32_t level = 0; level < sector_path_levels(size); level++)
        out[level].arity = sector_path_arity(size, level);
}

static void blank_challenge(const struct sector_size *size, struct porep_challenge *out)
{
    for (uint32_t level = 0; level < size->log2_nodes; level++)
        out->d_path[level].arity = 2;
    for (uint32_t p = 0; p < PARENTS; p++)
        blank_path(size, out->parents[p].path);
    blank_path(size, out->r_path);
    blank_path(size, out->c_path);
}

int porep_synthesize_blank(const struct sector_size *size, const struct cs_sink *sink,
                           struct errmsg *err)
{
    const struct porep_roots roots = {.replica_id = {{0}}};
    struct porep_challenge *challenge = calloc(1, sizeof(*challenge));
    struct porep_header header;
    struct cs cs;

    if (!challenge)
        return errmsg_set(err, -ENOMEM, "no memory for a challenge");
    blank_challenge(size, challenge);
    cs_init(&cs, sink);
    porep_synthesize_header(&cs, &roots, &header);
    for (uint32_t i = 0; i < size->challenges; i++)
        porep_synthesize_challenge(&cs, size, &header, challenge);
    cs_close(&cs);
    free(challenge);
    return 0;
}
