/*
 * Constants in the order of porep-circuit 3.2, 3.3 and 3.5, then the permutation in its optimised
 * form: in a partial round one dot product and one row instead of a whole matrix.
 */
#include "numa/circuit/poseidon.h"

#include <assert.h>
#include <pthread.h>

#define WIDTH_MAX POSEIDON_MAX_WIDTH

typedef fr_t matrix[WIDTH_MAX][WIDTH_MAX];

/* The shift register of porep-circuit 3.2. */
struct grain {
    uint8_t bits[80]; /* a ring: `first` is b[0] */
    uint32_t first;
};

static uint8_t grain_step(struct grain *g)
{
    static const uint8_t taps[] = {62, 51, 38, 23, 13, 0};
    uint8_t next = 0;

    for (size_t i = 0; i < sizeof(taps); i++)
        next ^= g->bits[(g->first + taps[i]) % 80];
    g->bits[g->first] = next; /* b[0] goes, its place is the new end */
    g->first = (g->first + 1) % 80;
    return next;
}

static void grain_init(struct grain *g, uint32_t width, uint32_t partial_rounds)
{
    const struct {
        uint32_t bits, value;
    } fields[] = {{2, 1}, /* prime field */
                  {4, 1}, /* x^5 */
                  {12, FR_BITS},
                  {12, width},
                  {10, POSEIDON_FULL_ROUNDS},
                  {10, partial_rounds},
                  {30, (UINT32_C(1) << 30) - 1}};
    uint32_t at = 0;

    for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
        for (uint32_t i = fields[f].bits; i-- > 0;)
            g->bits[at++] = fields[f].value >> i & 1;
    g->first = 0;
    for (int i = 0; i < 160; i++)
        grain_step(g);
}

/* Self-shrinking: of a pair of steps the first says whether the second counts. */
static uint8_t grain_bit(struct grain *g)
{
    for (;;) {
        uint8_t counts = grain_step(g), bit = grain_step(g);
        if (counts)
            return bit;
    }
}

static void grain_fr(struct grain *g, fr_t *out)
{
    uint8_t bytes[FR_BYTES];

    do {
        memset(bytes, 0, sizeof(bytes));
        for (int i = FR_BITS; i-- > 0;)
            bytes[i / 8] |= (uint8_t)(grain_bit(g) << (i % 8));
    } while (!fr_from_bytes(out, bytes));
}

/* out = v * m for the leading n by n part of m. */
static void vector_times(fr_t *out, const fr_t *v, const matrix m, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        fr_t sum = {{0}}, t;
        for (uint32_t i = 0; i < n; i++) {
            fr_mul(&t, &v[i], &m[i][j]);
            fr_add(&sum, &sum, &t);
        }
        out[j] = sum;
    }
}

/* row[to] -= k * row[from] in an elimination. */
static void row_eliminate(fr_t *to, const fr_t *from, const fr_t *k, uint32_t n)
{
    fr_t t;

    for (uint32_t i = 0; i < n; i++) {
        fr_mul(&t, k, &from[i]);
        fr_sub(&to[i], &to[i], &t);
    }
}

/* Gauss-Jordan without a search for pivots: every leading minor of the matrices here (a Cauchy matrix and
 * powers of its minor) is regular, which the assertion watches. */
static void matrix_invert(matrix out, const matrix m, uint32_t n)
{
    matrix work;

    memcpy(work, m, sizeof(work));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            out[i][j] = fr_from_u64(i == j);
    for (uint32_t i = 0; i < n; i++) {
        fr_t inverse;
        assert(!fr_is_zero(&work[i][i]));
        fr_inverse(&inverse, &work[i][i]);
        for (uint32_t j = 0; j < n; j++) {
            fr_mul(&work[i][j], &work[i][j], &inverse);
            fr_mul(&out[i][j], &out[i][j], &inverse);
        }
        for (uint32_t row = 0; row < n; row++) {
            fr_t k = work[row][i];
            if (row == i || fr_is_zero(&k))
                continue;
            row_eliminate(work[row], work[i], &k, n);
            row_eliminate(out[row], out[i], &k, n);
        }
    }
}

static void make_mds(struct poseidon *p)
{
    for (uint32_t i = 0; i < p->width; i++)
        for (uint32_t j = 0; j < p->width; j++) {
            fr_t sum = fr_from_u64((uint64_t)i + p->width + j);
            fr_inverse(&p->mds[i][j], &sum);
        }
}

static void make_round_constants(struct poseidon *p)
{
    struct grain g;

    grain_init(&g, p->width, p->partial_rounds);
    for (uint32_t i = 0; i < p->width * poseidon_rounds(p); i++)
        grain_fr(&g, &p->round_constants[i]);
}

/* K(round) */
static const fr_t *round_constants(const struct poseidon *p, uint32_t round)
{
    return &p->round_constants[(size_t)round * p->width];
}

/* Pulls the constants of the partial rounds back through the matrices, so that one remains for each round
 * (steps 3 and 4 of porep-circuit 3.5). Returns where the output ends. */
static fr_t *compress_partial(const struct poseidon *p, const matrix mds_inverse, fr_t *out)
{
    const uint32_t t = p->width, middle = POSEIDON_HALF_FULL + p->partial_rounds;
    fr_t acc[WIDTH_MAX], y[WIDTH_MAX];

    memcpy(acc, round_constants(p, middle), t * sizeof(fr_t));
    for (uint32_t i = 0; i < p->partial_rounds; i++) {
        const fr_t *before = round_constants(p, middle - 1 - i);
        vector_times(y, acc, mds_inverse, t);
        out[t + p->partial_rounds - 1 - i] = y[0];
        acc[0] = before[0];
        for (uint32_t j = 1; j < t; j++)
            fr_add(&acc[j], &before[j], &y[j]);
    }
    vector_times(out, acc, mds_inverse, t);
    return out + t + p->partial_rounds;
}

static void make_compressed(struct poseidon *p)
{
    const uint32_t t = p->width;
    matrix mds_inverse;
    fr_t *out = p->compressed;

    matrix_invert(mds_inverse, p->mds, t);
    memcpy(out, p->round_constants, t * sizeof(fr_t));
    out += t;
    for (uint32_t round = 1; round < POSEIDON_HALF_FULL; round++, out += t)
        vector_times(out, round_constants(p, round), mds_inverse, t);
    out = compress_partial(p, mds_inverse, out);
    for (uint32_t round = POSEIDON_HALF_FULL + p->partial_rounds + 1; round < poseidon_rounds(p);
         round++, out += t)
        vector_times(out, round_constants(p, round), mds_inverse, t);
}

/* Factors `cur` = (1 + minor) * sparse; leaves the first factor in `dense` and returns the second. */
static struct poseidon_sparse factor_sparse(matrix dense, const matrix cur, uint32_t t)
{
    struct poseidon_sparse s = {.w[0] = cur[0][0]};
    matrix minor, inverse;
    fr_t column[WIDTH_MAX];

    memset(dense, 0, sizeof(matrix));
    dense[0][0] = fr_from_u64(1);
    for (uint32_t i = 1; i < t; i++) {
        s.v[i - 1] = cur[0][i];
        column[i - 1] = cur[i][0];
        for (uint32_t j = 1; j < t; j++)
            minor[i - 1][j - 1] = dense[i][j] = cur[i][j];
    }
    matrix_invert(inverse, minor, t - 1);
    /* The minor is symmetric, so its inverse times a column is a row times the inverse. */
    vector_times(&s.w[1], column, inverse, t - 1);
    return s;
}

static void make_sparse(struct poseidon *p)
{
    matrix cur, dense;

    memcpy(cur, p->mds, sizeof(cur));
    for (uint32_t i = p->partial_rounds; i-- > 0;) {
        p->sparse[i] = factor_sparse(dense, cur, p->width);
        for (uint32_t row = 0; row < p->width; row++)
            vector_times(cur[row], p->mds[row], dense, p->width);
    }
    memcpy(p->pre_sparse, cur, sizeof(cur));
}

static void make_constants(struct poseidon *p, uint32_t arity, uint32_t partial_rounds)
{
    p->arity = arity;
    p->width = arity + 1;
    p->partial_rounds = partial_rounds;
    p->tag = fr_from_u64((UINT64_C(1) << arity) - 1);
    make_mds(p);
    make_round_constants(p);
    make_compressed(p);
    make_sparse(p);
}

const uint32_t poseidon_arities[POSEIDON_ARITIES] = {2, 4, 8, 11};

static struct poseidon constants[POSEIDON_ARITIES];
static pthread_once_t constants_once = PTHREAD_ONCE_INIT;

static void make_all(void)
{
    static const uint32_t partial_rounds[POSEIDON_ARITIES] = {55, 56, 57,
                                                              57}; /* porep-circuit 3.1 */

    for (uint32_t i = 0; i < POSEIDON_ARITIES; i++) {
        constants[i].index = i;
        make_constants(&constants[i], poseidon_arities[i], partial_rounds[i]);
    }
}

const struct poseidon *poseidon_constants(uint32_t arity)
{
    pthread_once(&constants_once, make_all);
    for (uint32_t i = 0; i < POSEIDON_ARITIES; i++)
        if (poseidon_arities[i] == arity)
            return &constants[i];
    return NULL;
}

/* x^5 + constant */
static void sbox(fr_t *x, const fr_t *constant)
{
    fr_t x4;

    fr_sqr(&x4, x);
    fr_sqr(&x4, &x4);
    fr_mul(x, x, &x4);
    fr_add(x, x, constant);
}

static void sparse_times(fr_t *s, const struct poseidon_sparse *m, uint32_t width)
{
    fr_t sum, t;

    fr_mul(&sum, &s[0], &m->w[0]);
    for (uint32_t j = 1; j < width; j++) {
        fr_mul(&t, &s[j], &m->w[j]);
        fr_add(&sum, &sum, &t);
        fr_mul(&t, &s[0], &m->v[j - 1]);
        fr_add(&s[j], &s[j], &t);
    }
    s[0] = sum;
}

static void dense_times(fr_t *s, const matrix m, uint32_t width)
{
    fr_t product[WIDTH_MAX];

    vector_times(product, s, m, width);
    memcpy(s, product, width * sizeof(fr_t));
}

void poseidon_linear_layer(const struct poseidon *p, uint32_t round, fr_t *state)
{
    if (!poseidon_round_is_full(p, round))
        sparse_times(state, &p->sparse[round - POSEIDON_HALF_FULL], p->width);
    else
        dense_times(state, round == POSEIDON_HALF_FULL - 1 ? p->pre_sparse : p->mds, p->width);
}

void poseidon_hash(uint32_t arity, const fr_t *preimage, fr_t *out)
{
    const struct poseidon *p = poseidon_constants(arity);
    assert(p);
    const uint32_t rounds = poseidon_rounds(p);
    const fr_t zero = {{0}}, *constant = p->compressed;
    fr_t s[WIDTH_MAX];

    s[0] = p->tag;
    memcpy(&s[1], preimage, arity * sizeof(fr_t));
    for (uint32_t i = 0; i < p->width; i++)
        fr_add(&s[i], &s[i], constant++);
    for (uint32_t round = 0; round < rounds; round++) {
        const uint32_t powers = poseidon_round_is_full(p, round) ? p->width : 1;
        for (uint32_t i = 0; i < powers; i++)
            sbox(&s[i], round == rounds - 1 ? &zero : constant++);
        poseidon_linear_layer(p, round, s);
    }
    *out = s[1];
}
