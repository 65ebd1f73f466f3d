#include "tests/lib/random_challenge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_image.h"

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static fr_t value(uint64_t *state)
{
    const uint64_t kind = next(state) % 64;
    uint8_t bytes[FR_BYTES];
    fr_t out = fr_from_u64(kind == 1);

    if (kind == 2)
        fr_neg(&out, fr_bit(true));
    if (kind < 3)
        return out;
    do {
        for (int i = 0; i < FR_BYTES; i += 8)
            store_le64(bytes + i, next(state));
        bytes[31] &= 0x7f;
    } while (!fr_from_bytes(&out, bytes));
    return out;
}

void random_roots(struct porep_roots *out, uint64_t seed)
{
    out->replica_id = value(&seed);
    out->comm_d = value(&seed);
    out->comm_r = value(&seed);
    out->comm_r_last = value(&seed);
    out->comm_c = value(&seed);
}

static void fill_level(struct merkle_level *level, uint32_t arity, uint64_t *state)
{
    level->arity = arity;
    level->index = (uint32_t)(next(state) % arity);
    for (uint32_t i = 0; i < arity - 1; i++)
        level->siblings[i] = value(state);
}

static void fill_path(const struct sector_size *size, struct merkle_level *levels, uint64_t *state)
{
    for (uint32_t i = 0; i < sector_path_levels(size); i++)
        fill_level(&levels[i], sector_path_arity(size, i), state);
}

static void fill_challenge(const struct sector_size *size, struct porep_challenge *out,
                           uint64_t *state)
{
    out->node = next(state) % size->nodes;
    out->data_leaf = value(state);
    for (uint32_t i = 0; i < size->log2_nodes; i++)
        fill_level(&out->d_path[i], 2, state);
    for (uint32_t p = 0; p < PARENTS; p++) {
        for (uint32_t layer = 0; layer < size->layers; layer++)
            out->parents[p].labels[layer] = value(state);
        fill_path(size, out->parents[p].path, state);
    }
    fill_path(size, out->r_path, state);
    fill_path(size, out->c_path, state);
}

struct porep_challenge *random_challenges(const struct sector_size *size, uint64_t seed)
{
    struct porep_challenge *out = calloc(size->challenges, sizeof(*out));

    if (!out) {
        fprintf(stderr, "out of memory\n");
        abort();
    }
    for (uint32_t i = 0; i < size->challenges; i++)
        fill_challenge(size, &out[i], &seed);
    return out;
}

/* Fields of a C1 in the making are written through the pointers that its readers use. */
static void write_digest(const uint8_t *field, uint64_t *state)
{
    uint8_t *out = (uint8_t *)field;

    for (int i = 0; i < DIGEST_BYTES; i += 8)
        store_le64(out + i, next(state));
    out[31] &= 0x3f; /* below 2^254, as tree D wants it */
}

static void write_path(const struct merkle_proof *proof, const uint8_t root[DIGEST_BYTES],
                       uint64_t *state)
{
    memcpy((uint8_t *)proof->root, root, DIGEST_BYTES);
    write_digest(proof->leaf, state);
    for (uint32_t level = 0; level < proof->levels; level++) {
        const struct path_element el = c1_path_element(proof, level);
        for (uint32_t i = 0; i + 1 < el.arity; i++)
            write_digest(el.hashes + (size_t)i * DIGEST_BYTES, state);
        /* The index follows the hashes. */
        store_le64((uint8_t *)el.hashes + (size_t)(el.arity - 1) * DIGEST_BYTES,
                   next(state) % el.arity);
    }
}

struct c1_roots {
    uint8_t d[DIGEST_BYTES], r_last[DIGEST_BYTES], c[DIGEST_BYTES];
};

static void write_challenge(const struct c1 *c1, uint32_t partition, uint32_t i,
                            const struct c1_roots *roots, uint64_t *state)
{
    const struct sector_size *size = c1_size(c1);
    const uint64_t node = next(state) % size->nodes;
    struct challenge_proof proof;

    c1_challenge(c1, partition, i, &proof);
    write_path(&proof.comm_d, roots->d, state);
    write_path(&proof.comm_r_last, roots->r_last, state);
    write_path(&proof.c_x.inclusion, roots->c, state);
    for (uint32_t p = 0; p < PARENTS; p++) {
        write_path(&proof.parents[p].inclusion, roots->c, state);
        for (uint32_t layer = 0; layer < size->layers; layer++)
            write_digest(proof.parents[p].rows + (size_t)layer * DIGEST_BYTES, state);
    }
    /* A label proof ends with its node; that of layer 1 is the one that is read. */
    store_le64((uint8_t *)proof.labels[0].parents + LABEL_PARENTS * DIGEST_BYTES + 4, node);
}

static const struct seal_proof *proof_of(const struct sector_size *size)
{
    for (uint32_t id = 0; id < SEAL_PROOFS; id++)
        if (seal_proof_by_id(id)->size == size)
            return seal_proof_by_id(id);
    return NULL;
}

struct c1 *random_c1(const struct sector_size *size, uint64_t seed)
{
    struct c1_roots roots;
    struct c1 *c1 = NULL;

    if (c1_image_create(size, &c1, NULL) < 0) {
        fprintf(stderr, "out of memory\n");
        abort();
    }
    c1_image_set_proof(c1, proof_of(size));
    write_digest(roots.r_last, &seed);
    write_digest(roots.c, &seed);
    write_digest(c1_comm_d(c1), &seed);
    write_digest(c1_comm_r(c1), &seed);
    write_digest(c1_replica_id(c1), &seed);
    memcpy(roots.d, c1_comm_d(c1), DIGEST_BYTES);
    for (uint32_t partition = 0; partition < c1_partitions(c1); partition++)
        for (uint32_t i = 0; i < size->challenges; i++)
            write_challenge(c1, partition, i, &roots, &seed);
    return c1;
}
