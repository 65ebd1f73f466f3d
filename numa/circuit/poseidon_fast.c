/*
 * Two things make it fast. Sums of products are reduced once, not per product (fr_dot.h). And the partial
 * rounds go in blocks: within a block only x, the first element behind its S-box, is followed from round to
 * round; the others are brought up to date at the end of the block, each by one sum of products. In round r
 * of a block, with u the other elements as the block found them, C the table below and x_i what the S-box
 * gave in round i of the block, the sparse matrix gives as the next first element
 *
 *     w_0 x_r + sum_j w_j u_j + sum_(i<r) C_(r,i) x_i,    C_(r,i) = sum_j w_(j, round r) v_(j, round i)
 */
#include "numa/circuit/poseidon_fast.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "numa/circuit/fr_dot.h"

/* Rounds in a block. Longer blocks mean longer sums, shorter ones more updates. */
#define BLOCK 8
#define WIDTH POSEIDON_MAX_WIDTH
#define PARTIAL POSEIDON_MAX_PARTIAL
#define BLOCKS ((PARTIAL + BLOCK - 1) / BLOCK)

struct tables {
    const struct poseidon *p;
    fr_t mds[WIDTH][WIDTH], pre_sparse[WIDTH][WIDTH]; /* row j: what element j is summed from */
    fr_t first[PARTIAL][WIDTH - 1 + BLOCK];           /* coefficients of u_1.., x_0 .. x_r */
    fr_t others[BLOCKS][WIDTH - 1][BLOCK];            /* v, by element */
};

static void transpose(fr_t out[WIDTH][WIDTH], const fr_t in[WIDTH][WIDTH], uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        for (uint32_t j = 0; j < width; j++)
            out[j][i] = in[i][j];
}

/* The coefficients of round `round`, which is the `r`th of its block. */
static void make_first(struct tables *t, uint32_t round, uint32_t r)
{
    const struct poseidon_sparse *sparse = t->p->sparse;
    uint32_t others = t->p->width - 1;
    fr_t *row = t->first[round];

    memcpy(row, &sparse[round].w[1], others * sizeof(fr_t));
    for (uint32_t i = 0; i < r; i++)
        fr_dot(&row[others + i], &sparse[round].w[1], sparse[round - r + i].v, others);
    row[others + r] = sparse[round].w[0];
}

static void make_tables(struct tables *t, uint32_t arity)
{
    t->p = poseidon_constants(arity);
    transpose(t->mds, t->p->mds, t->p->width);
    transpose(t->pre_sparse, t->p->pre_sparse, t->p->width);
    for (uint32_t round = 0; round < t->p->partial_rounds; round++) {
        make_first(t, round, round % BLOCK);
        for (uint32_t j = 0; j < arity; j++)
            t->others[round / BLOCK][j][round % BLOCK] = t->p->sparse[round].v[j];
    }
}

static struct tables tables_2, tables_4, tables_8, tables_11;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_all(void)
{
    make_tables(&tables_2, 2);
    make_tables(&tables_4, 4);
    make_tables(&tables_8, 8);
    make_tables(&tables_11, 11);
}

static const struct tables *tables_of(uint32_t arity)
{
    pthread_once(&once, make_all);
    return arity == 2 ? &tables_2 : arity == 4 ? &tables_4 : arity == 8 ? &tables_8 : &tables_11;
}

/* Where the S-boxes write what the gadget allocates for them; NULL: nowhere. */
struct trace {
    fr_t *at;
};

/* x^5 + constant (NULL: none). `given`: the input is a variable already. */
static inline void sbox(fr_t *x, const fr_t *constant, struct trace *trace, bool given)
{
    fr_t x2, x4, x5;

    fr_sqr(&x2, x);
    fr_sqr(&x4, &x2);
    fr_mul(&x5, x, &x4);
    if (constant)
        fr_add(&x5, &x5, constant);
    if (trace->at) {
        if (!given)
            *trace->at++ = *x;
        *trace->at++ = x2;
        *trace->at++ = x4;
        *trace->at++ = x5;
    }
    *x = x5;
}

static void dense(fr_t *s, const fr_t rows[WIDTH][WIDTH], uint32_t width)
{
    fr_t old[WIDTH];

    memcpy(old, s, width * sizeof(fr_t));
    for (uint32_t j = 0; j < width; j++)
        fr_dot(&s[j], old, rows[j], width);
}

static const fr_t *full_sboxes(fr_t *s, const fr_t *constant, uint32_t width, struct trace *trace)
{
    for (uint32_t i = 0; i < width; i++)
        sbox(&s[i], constant++, trace, false);
    return constant;
}

/* Round 0, whose inputs are given. Element 0 is the same for all hashes: the gadget makes it a constant. */
static const fr_t *first_sboxes(fr_t *s, const fr_t *constant, uint32_t width, struct trace *trace)
{
    struct trace none = {NULL};

    sbox(&s[0], constant++, &none, true);
    for (uint32_t i = 1; i < width; i++)
        sbox(&s[i], constant++, trace, true);
    return constant;
}

/* `len` partial rounds that begin at `round`; round is the beginning of a block. */
static const fr_t *partial_block(const struct tables *t, fr_t *s, uint32_t round, uint32_t len,
                                 const fr_t *constant, struct trace *trace)
{
    uint32_t others = t->p->width - 1;
    fr_t operands[WIDTH - 1 + BLOCK], *x = operands + others;

    memcpy(operands, &s[1], others * sizeof(fr_t));
    for (uint32_t r = 0; r < len; r++) {
        sbox(&s[0], constant++, trace, false);
        x[r] = s[0];
        fr_dot(&s[0], operands, t->first[round + r], others + r + 1);
    }
    for (uint32_t j = 0; j < others; j++) {
        fr_t sum;
        fr_dot(&sum, x, t->others[round / BLOCK][j], len);
        fr_add(&s[1 + j], &s[1 + j], &sum);
    }
    return constant;
}

static const fr_t *partial_rounds(const struct tables *t, fr_t *s, const fr_t *constant,
                                  struct trace *trace)
{
    uint32_t rounds = t->p->partial_rounds;

    for (uint32_t round = 0; round < rounds; round += BLOCK) {
        uint32_t len = rounds - round < BLOCK ? rounds - round : BLOCK;
        constant = partial_block(t, s, round, len, constant, trace);
    }
    return constant;
}

static void permute(uint32_t arity, const fr_t *preimage, struct trace *trace, fr_t *out)
{
    const struct tables *t = tables_of(arity);
    const struct poseidon *p = t->p;
    const fr_t *constant = p->compressed;
    fr_t s[WIDTH];

    assert(p->arity == arity);
    fr_add(&s[0], &p->tag, constant++);
    for (uint32_t i = 1; i < p->width; i++)
        fr_add(&s[i], &preimage[i - 1], constant++);
    constant = first_sboxes(s, constant, p->width, trace);
    dense(s, t->mds, p->width);
    for (uint32_t round = 1; round < POSEIDON_HALF_FULL; round++) {
        constant = full_sboxes(s, constant, p->width, trace);
        dense(s, round == POSEIDON_HALF_FULL - 1 ? t->pre_sparse : t->mds, p->width);
    }
    constant = partial_rounds(t, s, constant, trace);
    for (uint32_t round = 0; round < POSEIDON_HALF_FULL - 1; round++) {
        constant = full_sboxes(s, constant, p->width, trace);
        dense(s, t->mds, p->width);
    }
    /* The last round adds no constants, and of its result one element is wanted. */
    for (uint32_t i = 0; i < p->width; i++)
        sbox(&s[i], NULL, trace, false);
    fr_dot(out, s, t->mds[1], p->width);
}

void poseidon_fast_hash(uint32_t arity, const fr_t *preimage, fr_t *out)
{
    permute(arity, preimage, &(struct trace){NULL}, out);
}

void poseidon_fast_trace(uint32_t arity, const fr_t *preimage, fr_t *variables)
{
    struct trace trace = {variables};

    permute(arity, preimage, &trace, &variables[poseidon_variables(arity) - 1]);
}
