/*
 * An inclusion goes up level by level: index bits, siblings, the node put among them, the hash.
 */
#include "numa/circuit/merkle.h"

#include <assert.h>

#include "numa/circuit/poseidon_gadget.h"
#include "numa/circuit/sha256.h"

struct num merkle_pick(struct cs *cs, struct boolean cond, const struct num *a, const struct num *b)
{
    const struct num c = num_alloc(cs, cond.value ? &a->value : &b->value);

    if (cs_skip_row(cs))
        return c;
    /* (b - a) * cond = b - c */
    struct lc x = lc_of(b->var, 1), y = {0}, z = lc_of(b->var, 1);
    lc_add(&x, a->var, -1);
    lc_add_boolean(&y, cond, 1);
    lc_add(&z, c.var, -1);
    lc_enforce(cs, &x, &y, &z);
    return c;
}

static void insert_2(struct cs *cs, const struct num *el, const struct boolean *bit,
                     const struct num *s, struct num *out)
{
    out[0] = merkle_pick(cs, bit[0], &s[0], el);
    out[1] = merkle_pick(cs, bit[0], el, &s[0]);
}

static void insert_4(struct cs *cs, const struct num *el, const struct boolean *bit,
                     const struct num *s, struct num *out)
{
    const struct num *b = &s[0], *c = &s[1], *d = &s[2];
    struct num t;

    t = merkle_pick(cs, bit[0], b, el);
    out[0] = merkle_pick(cs, bit[1], b, &t);
    t = merkle_pick(cs, bit[0], el, b);
    out[1] = merkle_pick(cs, bit[1], c, &t);
    t = merkle_pick(cs, bit[0], d, el);
    out[2] = merkle_pick(cs, bit[1], &t, c);
    t = merkle_pick(cs, bit[0], el, d);
    out[3] = merkle_pick(cs, bit[1], &t, d);
}

static void insert_8(struct cs *cs, const struct num *el, const struct boolean *bit,
                     const struct num *s, struct num *out)
{
    const struct num *b = &s[0], *c = &s[1], *d = &s[2], *e = &s[3], *f = &s[4], *g = &s[5],
                     *h = &s[6];
    const struct boolean nor = boolean_and(cs, boolean_not(bit[0]), boolean_not(bit[1]));
    const struct boolean both = boolean_and(cs, bit[0], bit[1]);
    struct num t;

    t = merkle_pick(cs, nor, el, b);
    out[0] = merkle_pick(cs, bit[2], b, &t);
    t = merkle_pick(cs, bit[0], el, b);
    t = merkle_pick(cs, bit[1], c, &t);
    out[1] = merkle_pick(cs, bit[2], c, &t);
    t = merkle_pick(cs, bit[0], d, el);
    t = merkle_pick(cs, bit[1], &t, c);
    out[2] = merkle_pick(cs, bit[2], d, &t);
    t = merkle_pick(cs, both, el, d);
    out[3] = merkle_pick(cs, bit[2], e, &t);
    t = merkle_pick(cs, nor, el, f);
    out[4] = merkle_pick(cs, bit[2], &t, e);
    t = merkle_pick(cs, bit[0], el, f);
    t = merkle_pick(cs, bit[1], g, &t);
    out[5] = merkle_pick(cs, bit[2], &t, f);
    t = merkle_pick(cs, bit[0], h, el);
    t = merkle_pick(cs, bit[1], &t, g);
    out[6] = merkle_pick(cs, bit[2], &t, g);
    t = merkle_pick(cs, both, el, h);
    out[7] = merkle_pick(cs, bit[2], &t, h);
}

void merkle_insert(struct cs *cs, const struct num *el, const struct boolean *bits,
                   const struct num *others, uint32_t arity, struct num *out)
{
    switch (arity) {
    case 2:
        insert_2(cs, el, bits, others, out);
        return;
    case 4:
        insert_4(cs, el, bits, others, out);
        return;
    default:
        assert(arity == 8);
        insert_8(cs, el, bits, others, out);
    }
}

struct num merkle_sha256_node(struct cs *cs, const struct num nodes[2])
{
    struct boolean bits[2 * NUM_BYTE_BITS], digest[SHA256_DIGEST_BITS];

    num_to_byte_bits(cs, &nodes[0], bits);
    num_to_byte_bits(cs, &nodes[1], bits + NUM_BYTE_BITS);
    sha256_bits(cs, bits, ARRAY_LEN(bits), digest);
    return num_from_byte_bits(cs, digest);
}

static uint32_t log2_arity(uint32_t arity)
{
    return arity == 8 ? 3 : arity == 4 ? 2 : 1;
}

struct num merkle_climb(struct cs *cs, enum merkle_hash hash, const struct num *node,
                        const struct merkle_level *level, struct boolean *bits)
{
    struct num siblings[MERKLE_MAX_ARITY - 1], children[MERKLE_MAX_ARITY];

    for (uint32_t i = 0; i < log2_arity(level->arity); i++)
        bits[i] = boolean_alloc(cs, level->index >> i & 1);
    for (uint32_t j = 0; j < level->arity - 1; j++)
        siblings[j] = num_alloc(cs, &level->siblings[j]);
    merkle_insert(cs, node, bits, siblings, level->arity, children);
    return hash == MERKLE_SHA256 ? merkle_sha256_node(cs, children)
                                 : poseidon_num(cs, children, level->arity);
}

struct num merkle_path(struct cs *cs, enum merkle_hash hash, const struct num *leaf,
                       const struct merkle_level *levels, uint32_t n_levels)
{
    struct boolean position[64];
    struct num node = *leaf;
    uint32_t n_bits = 0;

    for (uint32_t i = 0; i < n_levels; i++) {
        assert(n_bits + 3 <= ARRAY_LEN(position));
        node = merkle_climb(cs, hash, &node, &levels[i], &position[n_bits]);
        n_bits += log2_arity(levels[i].arity);
    }
    num_inputize_bits(cs, position, n_bits);
    return node;
}

void merkle_inclusion(struct cs *cs, enum merkle_hash hash, const struct num *leaf,
                      const struct merkle_level *levels, uint32_t n_levels, const struct num *root)
{
    const struct num top = merkle_path(cs, hash, leaf, levels, n_levels);

    num_enforce_equal(cs, &top, root);
}
