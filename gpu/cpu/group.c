/*
 * The two tables of operations: blst's complete formulas behind one signature.
 */
#include "gpu/cpu/group.h"

static void g1_add_affine(union point *acc, const void *affine)
{
    blst_p1_add_or_double_affine(&acc->g1, &acc->g1, affine);
}

static void g1_add(union point *acc, const union point *p)
{
    blst_p1_add_or_double(&acc->g1, &acc->g1, &p->g1);
}

static void g1_twice(union point *acc)
{
    blst_p1_double(&acc->g1, &acc->g1);
}

static void g1_from_affine(union point *out, const void *affine)
{
    blst_p1_from_affine(&out->g1, affine);
}

static void g1_to_affine(void *out, const union point *p)
{
    blst_p1_to_affine(out, &p->g1);
}

static void g2_add_affine(union point *acc, const void *affine)
{
    blst_p2_add_or_double_affine(&acc->g2, &acc->g2, affine);
}

static void g2_add(union point *acc, const union point *p)
{
    blst_p2_add_or_double(&acc->g2, &acc->g2, &p->g2);
}

static void g2_twice(union point *acc)
{
    blst_p2_double(&acc->g2, &acc->g2);
}

static void g2_from_affine(union point *out, const void *affine)
{
    blst_p2_from_affine(&out->g2, affine);
}

static void g2_to_affine(void *out, const union point *p)
{
    blst_p2_to_affine(out, &p->g2);
}

const struct group group_g1 = {
    .affine_bytes = sizeof(g1_affine_t),
    .add_pairs = g1_add_pairs,
    .add_pairs_ahead = g1_add_pairs_ahead,
    .add_affine = g1_add_affine,
    .add = g1_add,
    .twice = g1_twice,
    .from_affine = g1_from_affine,
    .to_affine = g1_to_affine,
};

const struct group group_g2 = {
    .affine_bytes = sizeof(g2_affine_t),
    .add_pairs = g2_add_pairs,
    .add_pairs_ahead = g2_add_pairs_ahead,
    .add_affine = g2_add_affine,
    .add = g2_add,
    .twice = g2_twice,
    .from_affine = g2_from_affine,
    .to_affine = g2_to_affine,
};

void group_mul_u64(const struct group *g, union point *acc, uint64_t factor)
{
    union point base = *acc;

    memset(acc, 0, sizeof(*acc));
    for (int bit = 63; bit >= 0; bit--) {
        g->twice(acc);
        if (factor >> bit & 1)
            g->add(acc, &base);
    }
}
