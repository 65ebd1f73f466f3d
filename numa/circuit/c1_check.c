/*
 * Everything stays in bytes, as the C1 has it; field elements are made for the hash alone. So what is
 * compared is what was read, and an error can name the field by its place in the decoded form.
 */
#include "numa/circuit/c1_check.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "numa/circuit/c1_image.h"
#include "numa/circuit/graph.h"
#include "numa/circuit/poseidon_fast.h"

/* ----------------------------------------------------------------------------------------- errors */

static size_t place_of(const struct c1 *c1, const uint8_t *field, struct shape_trace *t)
{
    size_t offset = (size_t)(field - c1->bytes);

    *t = (struct shape_trace){.len = 0};
    shape_trace_offset(t, &c1->layout.root, offset);
    return offset;
}

/* The field at `field`, 32 bytes, is not what `wanted` says. */
static int digest_fault(const struct c1 *c1, const uint8_t *field, const uint8_t wanted[32],
                        const char *why, struct errmsg *err)
{
    char found_hex[65], wanted_hex[65];
    struct shape_trace t;
    size_t offset = place_of(c1, field, &t);

    hex_encode(found_hex, field, 32);
    hex_encode(wanted_hex, wanted, 32);
    return errmsg_set(err, -EBADMSG, "%s: found %s, wanted %s: %s (byte %zu of the decoded form)", t.text,
                      found_hex, wanted_hex, why, offset);
}

static int number_fault(const struct c1 *c1, const uint8_t *field, uint64_t found, uint64_t wanted,
                        const char *why, struct errmsg *err)
{
    struct shape_trace t;
    size_t offset = place_of(c1, field, &t);

    return errmsg_set(err, -EBADMSG,
                      "%s: found %" PRIu64 ", wanted %" PRIu64 ": %s (byte %zu of the decoded form)",
                      t.text, found, wanted, why, offset);
}

static int expect_digest(const struct c1 *c1, const uint8_t *field, const uint8_t wanted[32],
                         const char *why, struct errmsg *err)
{
    return memcmp(field, wanted, 32) == 0 ? 0 : digest_fault(c1, field, wanted, why, err);
}

/* ------------------------------------------------------------------------------- hashes seen before */

enum tree { TREE_C, TREE_R, TREE_C_COLUMN };

/* One Poseidon hash: its inputs are the siblings with `value` put in at `index`. */
struct path_hash {
    uint64_t key; /* tree, level and position, never 0; tells where to look, nothing else */
    const uint8_t *siblings;
    uint32_t arity, index; /* index == arity: the inputs are the siblings alone */
    uint8_t value[32];
    uint8_t out[32];
};

struct c1_paths {
    pthread_mutex_t lock;
    size_t mask;
    uint64_t computed, reused; /* guarded by lock */
    struct path_hash slots[];  /* guarded by lock: mask + 1 of them, at most half in use */
};

int c1_paths_create(const struct sector_size *size, struct c1_paths **out)
{
    size_t hashes = (size_t)size->partitions * size->challenges *
                    ((PARENTS + 2) * sector_path_levels(size) + PARENTS + 1);
    size_t slots = 1;

    while (slots < 2 * hashes)
        slots *= 2;
    struct c1_paths *paths = calloc(1, sizeof(*paths) + slots * sizeof(paths->slots[0]));
    if (!paths)
        return -ENOMEM;
    pthread_mutex_init(&paths->lock, NULL);
    paths->mask = slots - 1;
    *out = paths;
    return 0;
}

void c1_paths_destroy(struct c1_paths *paths)
{
    if (!paths)
        return;
    pthread_mutex_destroy(&paths->lock);
    free(paths);
}

void c1_paths_count(const struct c1_paths *paths, uint64_t *computed, uint64_t *reused)
{
    *computed = paths->computed;
    *reused = paths->reused;
}

static const uint8_t *hash_input(const struct path_hash *h, uint32_t k)
{
    if (k == h->index)
        return h->value;
    return h->siblings + 32 * (size_t)(k - (k > h->index));
}

static bool same_inputs(const struct path_hash *a, const struct path_hash *b)
{
    if (a->arity != b->arity)
        return false;
    for (uint32_t k = 0; k < a->arity; k++)
        if (memcmp(hash_input(a, k), hash_input(b, k), 32) != 0)
            return false;
    return true;
}

/* The slot of `key`, or the free one where it belongs. */
static struct path_hash *slot_of(struct c1_paths *paths, uint64_t key)
{
    size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & paths->mask;

    while (paths->slots[i].key != 0 && paths->slots[i].key != key)
        i = (i + 1) & paths->mask;
    return &paths->slots[i];
}

static bool recall(struct c1_paths *paths, struct path_hash *h)
{
    pthread_mutex_lock(&paths->lock);
    struct path_hash seen = *slot_of(paths, h->key);
    pthread_mutex_unlock(&paths->lock);
    if (seen.key == 0 || !same_inputs(&seen, h))
        return false;
    memcpy(h->out, seen.out, 32);
    return true;
}

static void remember(struct c1_paths *paths, const struct path_hash *h)
{
    pthread_mutex_lock(&paths->lock);
    struct path_hash *slot = slot_of(paths, h->key);
    if (slot->key == 0)
        *slot = *h;
    pthread_mutex_unlock(&paths->lock);
}

static void count(struct c1_paths *paths, bool reused)
{
    pthread_mutex_lock(&paths->lock);
    paths->computed += !reused;
    paths->reused += reused;
    pthread_mutex_unlock(&paths->lock);
}

/* Sets h->out. False when an input is not below the modulus. */
static bool path_hash_compute(struct path_hash *h)
{
    fr_t inputs[POSEIDON_MAX_ARITY], out;

    for (uint32_t k = 0; k < h->arity; k++)
        if (!fr_from_bytes(&inputs[k], hash_input(h, k)))
            return false;
    poseidon_fast_hash(h->arity, inputs, &out);
    fr_to_bytes(h->out, &out);
    return true;
}

static int path_hash(struct c1_paths *paths, const struct c1 *c1, struct path_hash *h,
                     struct errmsg *err)
{
    bool reused = recall(paths, h);

    count(paths, reused);
    if (reused)
        return 0;
    if (!path_hash_compute(h)) {
        struct shape_trace t;
        place_of(c1, h->siblings, &t);
        return errmsg_set(err, -EBADMSG, "%s: not below the scalar modulus, or its child is not", t.text);
    }
    remember(paths, h);
    return 0;
}

static uint64_t hash_key(enum tree tree, uint32_t level, uint64_t position)
{
    return position << 8 | level << 2 | (tree + 1);
}

/* ------------------------------------------------------------------------------------------ paths */

static int tree_d_path(const struct c1 *c1, const struct merkle_proof *p, struct errmsg *err)
{
    uint8_t pair[64], value[32];

    memcpy(value, p->leaf, 32);
    for (uint32_t level = 0; level < p->levels; level++) {
        struct path_element e = c1_path_element(p, level);
        memcpy(pair + (size_t)32 * e.index, value, 32);
        memcpy(pair + (size_t)32 * (1 - e.index), e.hashes, 32);
        SHA256(pair, sizeof(pair), value);
        value[31] &= 0x3f;
    }
    return expect_digest(c1, p->root, value, "where the path leads", err);
}

static int poseidon_path(struct c1_paths *paths, const struct c1 *c1, const struct merkle_proof *p,
                         enum tree tree, struct errmsg *err)
{
    uint64_t position = c1_path_position(p);
    struct path_hash h;

    memcpy(h.out, p->leaf, 32);
    for (uint32_t level = 0; level < p->levels; level++) {
        struct path_element e = c1_path_element(p, level);
        position /= e.arity;
        h.key = hash_key(tree, level, position);
        h.siblings = e.hashes;
        h.arity = e.arity;
        h.index = e.index;
        memcpy(h.value, h.out, 32);
        int ret = path_hash(paths, c1, &h, err);
        if (ret < 0)
            return ret;
    }
    return expect_digest(c1, p->root, h.out, "where the path leads", err);
}

static int column_path(struct c1_paths *paths, const struct c1 *c1, const struct column_proof *c,
                       struct errmsg *err)
{
    struct path_hash h = {
        .key = hash_key(TREE_C_COLUMN, 0, c->index),
        .siblings = c->rows,
        .arity = c1_size(c1)->layers,
        .index = c1_size(c1)->layers,
    };
    int ret = path_hash(paths, c1, &h, err);
    if (ret < 0)
        return ret;
    ret = expect_digest(c1, c->inclusion.leaf, h.out, "the hash of the column's rows", err);
    return ret < 0 ? ret : poseidon_path(paths, c1, &c->inclusion, TREE_C, err);
}

/* The leaf of tree R: label at the last layer plus data. */
static int encoding(const struct c1 *c1, const struct challenge_proof *p, struct errmsg *err)
{
    const uint8_t *label = p->c_x.rows + 32 * (size_t)(c1_size(c1)->layers - 1);
    const struct label_proof *last = &p->labels[c1_size(c1)->layers - 1];
    fr_t a, b, sum = {{0}};
    uint8_t wanted[32];

    if (fr_from_bytes(&a, label) && fr_from_bytes(&b, p->comm_d.leaf))
        fr_add(&sum, &a, &b);
    fr_to_bytes(wanted, &sum);
    int ret = expect_digest(c1, p->comm_r_last.leaf, wanted, "the last label plus the data", err);
    if (ret < 0)
        return ret;
    for (size_t k = 0; k < LABEL_PARENTS; k++) {
        ret = expect_digest(c1, p->encoding.parents + 32 * k, last->parents + 32 * k,
                            "as in the last labeling proof", err);
        if (ret < 0)
            return ret;
    }
    return 0;
}

static int challenge_paths(struct c1_paths *paths, const struct c1 *c1, uint32_t number,
                           struct errmsg *err)
{
    uint32_t per_partition = c1_size(c1)->challenges;
    struct challenge_proof p;

    c1_challenge(c1, number / per_partition, number % per_partition, &p);
    int ret = encoding(c1, &p, err);
    if (ret == 0)
        ret = tree_d_path(c1, &p.comm_d, err);
    if (ret == 0)
        ret = poseidon_path(paths, c1, &p.comm_r_last, TREE_R, err);
    if (ret == 0)
        ret = column_path(paths, c1, &p.c_x, err);
    for (unsigned k = 0; k < PARENTS && ret == 0; k++)
        ret = column_path(paths, c1, &p.parents[k], err);
    return ret;
}

struct paths_loop {
    struct c1_paths *paths;
    const struct c1 *c1;
    uint32_t first;
    pthread_mutex_t lock;
    size_t failed;     /* guarded by lock: the first item at fault so far */
    int ret;           /* guarded by lock: what it returned */
    struct errmsg err; /* guarded by lock: and said */
};

static void paths_item(void *ctx, size_t item, unsigned thread)
{
    struct paths_loop *loop = ctx;
    struct errmsg err;

    (void)thread;
    int ret = challenge_paths(loop->paths, loop->c1, loop->first + (uint32_t)item, &err);
    if (ret == 0)
        return;
    pthread_mutex_lock(&loop->lock);
    if (item < loop->failed) {
        loop->failed = item;
        loop->ret = ret;
        loop->err = err;
    }
    pthread_mutex_unlock(&loop->lock);
}

int c1_check_paths(struct c1_paths *paths, const struct c1 *c1, uint32_t first, uint32_t len,
                   struct workers *workers, struct errmsg *err)
{
    struct paths_loop loop = {.paths = paths, .c1 = c1, .first = first, .failed = SIZE_MAX};

    pthread_mutex_init(&loop.lock, NULL);
    workers_run(workers, len, paths_item, &loop);
    pthread_mutex_destroy(&loop.lock);
    if (loop.ret < 0 && err)
        *err = loop.err;
    return loop.ret;
}

/* ----------------------------------------------------------------------------------------- labels */

/* Where parent `k` of the label at `layer` (1 = first) is in the columns: DRG parents in the same layer,
 * expander parents in the one before; repeated cyclically. */
static const uint8_t *label_parent(const struct challenge_proof *p, uint32_t layer, uint32_t k)
{
    uint32_t parent = k % (layer == 1 ? DRG_PARENTS : PARENTS);
    uint32_t row = parent < DRG_PARENTS ? layer - 1 : layer - 2;

    return p->parents[parent].rows + 32 * (size_t)row;
}

static int label_check(const struct c1 *c1, const struct challenge_proof *p, uint32_t layer,
                       struct errmsg *err)
{
    const struct label_proof *label = &p->labels[layer - 1];
    uint8_t message[64 + (size_t)32 * LABEL_PARENTS] = {0}, digest[32];

    for (uint32_t k = 0; k < LABEL_PARENTS; k++) {
        int ret = expect_digest(c1, label->parents + 32 * (size_t)k, label_parent(p, layer, k),
                                "the row of that parent's column", err);
        if (ret < 0)
            return ret;
    }
    memcpy(message, c1_replica_id(c1), 32);
    store_be32(message + 32, layer);
    store_be64(message + 36, label->node);
    memcpy(message + 64, label->parents, (size_t)32 * LABEL_PARENTS);
    SHA256(message, sizeof(message), digest);
    digest[31] &= 0x3f;
    return expect_digest(c1, p->c_x.rows + 32 * (size_t)(layer - 1), digest,
                         "the label that follows from the parents", err);
}

int c1_check_labels(const struct c1 *c1, struct errmsg *err)
{
    struct challenge_proof p;
    int ret = 0;

    for (uint32_t k = 0; k < c1_partitions(c1); k++)
        for (uint32_t i = 0; i < c1_size(c1)->challenges; i++) {
            c1_challenge(c1, k, i, &p);
            for (uint32_t layer = 1; layer <= c1_size(c1)->layers && ret == 0; layer++)
                ret = label_check(c1, &p, layer, err);
        }
    return ret;
}

/* ------------------------------------------------------------------------------ the C1 as a whole */

static int challenge_roots(const struct c1 *c1, const struct challenge_proof *p, const uint8_t *comm_c,
                           const uint8_t *comm_r_last, struct errmsg *err)
{
    int ret = expect_digest(c1, p->comm_d.root, c1_comm_d(c1), "comm_d", err);
    if (ret == 0)
        ret = expect_digest(c1, p->comm_r_last.root, comm_r_last, "comm_r_last of the first challenge",
                            err);
    if (ret == 0)
        ret = expect_digest(c1, p->c_x.inclusion.root, comm_c, "comm_c of the first challenge", err);
    for (unsigned k = 0; k < PARENTS && ret == 0; k++)
        ret = expect_digest(c1, p->parents[k].inclusion.root, comm_c, "comm_c of the first challenge",
                            err);
    return ret;
}

static int comm_r_check(const struct c1 *c1, const uint8_t *comm_c, const uint8_t *comm_r_last,
                        struct errmsg *err)
{
    fr_t both[2], out;
    uint8_t wanted[32];

    if (!fr_from_bytes(&both[0], comm_c) || !fr_from_bytes(&both[1], comm_r_last))
        return errmsg_set(err, -EBADMSG, "comm_c or comm_r_last is not below the scalar modulus");
    poseidon_fast_hash(2, both, &out);
    fr_to_bytes(wanted, &out);
    return expect_digest(c1, c1_comm_r(c1), wanted, "the hash of comm_c and comm_r_last", err);
}

int c1_check_roots(const struct c1 *c1, struct errmsg *err)
{
    struct challenge_proof first, p;
    int ret = 0;

    c1_challenge(c1, 0, 0, &first);
    for (uint32_t k = 0; k < c1_partitions(c1) && ret == 0; k++)
        for (uint32_t i = 0; i < c1_size(c1)->challenges && ret == 0; i++) {
            c1_challenge(c1, k, i, &p);
            ret = challenge_roots(c1, &p, first.c_x.inclusion.root, first.comm_r_last.root, err);
        }
    return ret < 0 ? ret : comm_r_check(c1, first.c_x.inclusion.root, first.comm_r_last.root, err);
}

int c1_check_replica_id(const struct c1 *c1, const uint8_t prover_id[32], uint64_t sector_number,
                        struct errmsg *err)
{
    uint8_t porep_id[32], wanted[32];

    seal_proof_porep_id(c1_seal_proof(c1), porep_id);
    replica_id_compute(wanted, prover_id, sector_number, c1_ticket(c1), c1_comm_d(c1), porep_id);
    return expect_digest(c1, c1_replica_id(c1), wanted,
                         "that of the prover id and sector number beside it", err);
}

static int expect_node(const struct c1 *c1, const uint8_t *field, uint64_t found, uint64_t wanted,
                       const char *why, struct errmsg *err)
{
    return found == wanted ? 0 : number_fault(c1, field, found, wanted, why, err);
}

/* The place of a label proof's node: behind parents and layer. */
static const uint8_t *node_field(const struct label_proof *label)
{
    return label->parents + (size_t)32 * LABEL_PARENTS + 4;
}

static int column_node(const struct c1 *c1, const struct column_proof *c, uint64_t node,
                       const char *why, struct errmsg *err)
{
    int ret = expect_node(c1, c->rows - 12, c->index, node, why, err); /* index, count, rows */

    if (ret < 0)
        return ret;
    return expect_node(c1, c->inclusion.first, c1_path_position(&c->inclusion), node, why, err);
}

static int challenge_nodes(const struct c1 *c1, const struct challenge_proof *p, uint64_t node,
                           const uint64_t parents[PARENTS], struct errmsg *err)
{
    static const char why[] = "the challenge that follows from replica_id and seed";
    int ret = 0;

    for (uint32_t layer = 0; layer < c1_size(c1)->layers && ret == 0; layer++)
        ret = expect_node(c1, node_field(&p->labels[layer]), p->labels[layer].node, node, why, err);
    if (ret == 0)
        ret = expect_node(c1, node_field(&p->encoding), p->encoding.node, node, why, err);
    if (ret == 0)
        ret = expect_node(c1, p->comm_d.first, c1_path_position(&p->comm_d), node, why, err);
    if (ret == 0)
        ret = expect_node(c1, p->comm_r_last.first, c1_path_position(&p->comm_r_last), node, why, err);
    if (ret == 0)
        ret = column_node(c1, &p->c_x, node, why, err);
    for (unsigned k = 0; k < PARENTS && ret == 0; k++)
        ret = column_node(c1, &p->parents[k], parents[k], "the parent in the graph", err);
    return ret;
}

int c1_check_graph(const struct c1 *c1, const struct seal_proof *proof, struct errmsg *err)
{
    struct challenge_params params = {proof->kind, proof->size->nodes, c1_replica_id(c1), c1_comm_r(c1),
                                      c1_seed(c1)};
    uint8_t porep_id[32];
    struct graph g;
    int ret = 0;

    seal_proof_porep_id(proof, porep_id);
    graph_init(&g, proof->size->nodes, porep_id, proof->api);
    for (uint32_t k = 0; k < c1_partitions(c1) && ret == 0; k++)
        for (uint32_t i = 0; i < c1_size(c1)->challenges && ret == 0; i++) {
            struct challenge_proof p;
            uint64_t node, parents[PARENTS];
            c1_challenge(c1, k, i, &p);
            challenges_derive(&params, 1, k * c1_size(c1)->challenges + i, &node);
            graph_parents(&g, node, parents);
            ret = challenge_nodes(c1, &p, node, parents, err);
        }
    return ret;
}

int c1_check_all(const struct c1 *c1, struct workers *workers, struct errmsg *err)
{
    struct c1_paths *paths = NULL;

    int ret = c1_check_roots(c1, err);
    if (ret == 0)
        ret = c1_check_graph(c1, c1_seal_proof(c1), err);
    if (ret == 0)
        ret = c1_check_labels(c1, err);
    if (ret < 0)
        return ret;
    if (c1_paths_create(c1_size(c1), &paths) < 0)
        return errmsg_set(err, -ENOMEM, "no memory to check the paths");
    ret = c1_check_paths(paths, c1, 0, c1_partitions(c1) * c1_size(c1)->challenges, workers, err);
    c1_paths_destroy(paths);
    return ret;
}
