/*
 * The optimised permutation with few reductions. Each element of a dense layer is one dot product. Partial
 * rounds go in groups: in a group the elements 1.. stay as they were, and a round's element 0 is a dot
 * product over them and over the S-boxes of the group so far,
 *
 *     s'[0] = w[0] x + sum of w[j] s[j] + sum of cross[e] x_e,
 *
 * so that each of the other elements is reduced once a group, not once a round.
 */
#include "numa/circuit/poseidon_adx.h"

#include "numa/circuit/fr_wide.h"

bool poseidon_adx_available(void)
{
    return fr_wide_available();
}

static void sbox(fr_t *x, const fr_t *constant)
{
    fr_t x4;

    fr_sqr(&x4, x);
    fr_sqr(&x4, &x4);
    fr_mul(x, x, &x4);
    fr_add(x, x, constant);
}

/* s * m, for m given by columns. */
static void dense_times(fr_t *s, const fr_t columns[][POSEIDON_MAX_WIDTH], uint32_t width)
{
    fr_t product[POSEIDON_MAX_WIDTH];

    for (uint32_t j = 0; j < width; j++) {
        struct fr_wide sum = {{0}};
        fr_wide_add_dot(&sum, s, columns[j], width, sizeof(fr_t));
        fr_wide_reduce(&product[j], &sum);
    }
    memcpy(s, product, width * sizeof(fr_t));
}

/* Partial rounds `first` to `first` + `len` - 1, counted among the partial rounds. */
static void partial_group(const struct poseidon *p, fr_t *s, uint32_t first, uint32_t len,
                          const fr_t *constants)
{
    fr_t x[POSEIDON_GROUP]; /* results of the S-boxes */

    for (uint32_t i = 0; i < len; i++) {
        const struct poseidon_sparse *m = &p->sparse[first + i];
        struct fr_wide sum = {{0}};
        fr_wide_add_dot(&sum, &s[1], &m->w[1], p->width - 1, sizeof(fr_t));
        fr_wide_add_dot(&sum, x, p->cross[first + i], i, sizeof(fr_t));
        x[i] = s[0];
        sbox(&x[i], &constants[i]);
        fr_wide_add_dot(&sum, &x[i], &m->w[0], 1, sizeof(fr_t));
        fr_wide_reduce(&s[0], &sum);
    }
    for (uint32_t j = 1; j < p->width; j++) {
        struct fr_wide sum = {{0}};
        fr_wide_add(&sum, &s[j]);
        fr_wide_add_dot(&sum, x, &p->sparse[first].v[j - 1], len, sizeof(p->sparse[0]));
        fr_wide_reduce(&s[j], &sum);
    }
}

static const fr_t *full_round(const struct poseidon *p, fr_t *s, const fr_t *constants,
                              const fr_t columns[][POSEIDON_MAX_WIDTH])
{
    for (uint32_t i = 0; i < p->width; i++)
        sbox(&s[i], &constants[i]);
    dense_times(s, columns, p->width);
    return constants + p->width;
}

void poseidon_hash_adx(const struct poseidon *p, const fr_t *preimage, fr_t *out)
{
    static const fr_t zeros[POSEIDON_MAX_WIDTH];
    const fr_t *constants = p->compressed;
    fr_t s[POSEIDON_MAX_WIDTH];

    s[0] = p->tag;
    memcpy(&s[1], preimage, p->arity * sizeof(fr_t));
    for (uint32_t i = 0; i < p->width; i++)
        fr_add(&s[i], &s[i], constants++);
    /* The dense matrix is symmetric: its rows are its columns. */
    for (uint32_t round = 0; round < POSEIDON_HALF_FULL; round++)
        constants = full_round(p, s, constants,
                               round == POSEIDON_HALF_FULL - 1 ? p->pre_sparse_columns : p->mds);
    for (uint32_t first = 0; first < p->partial_rounds; first += POSEIDON_GROUP) {
        const uint32_t left = p->partial_rounds - first;
        const uint32_t len = left < POSEIDON_GROUP ? left : POSEIDON_GROUP;
        partial_group(p, s, first, len, constants);
        constants += len;
    }
    for (uint32_t round = 1; round < POSEIDON_HALF_FULL; round++)
        constants = full_round(p, s, constants, p->mds);
    full_round(p, s, zeros, p->mds);
    *out = s[1];
}

_Static_assert(POSEIDON_MAX_WIDTH + POSEIDON_GROUP - 1 <= FR_WIDE_TERMS,
               "sums fit the accumulator");
