#include "tests/lib/random_challenge.h"

#include <stdio.h>
#include <stdlib.h>

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
