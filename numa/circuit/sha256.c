/*
 * SHA-256 (FIPS 180-4 6.2.2) as bellperson lays it out. Additions are collected: each allocates the bits of
 * its result, and the equations "sum of operands = bits" of several additions share one row, at
 * different powers of two (struct multieq).
 */
#include "numa/circuit/sha256.h"

#include <assert.h>

#define OPERANDS_MAX 10
#define MULTIEQ_BITS 254 /* a row's equations together stay below this */

/* Equations waiting for their row. The largest part of this module's memory: about 110 kB on the stack. */
struct multieq {
    struct cs *cs;
    uint32_t used; /* bits */
    struct lc_powers left, right;
};

static void multieq_open(struct multieq *m, struct cs *cs)
{
    m->cs = cs;
    m->used = 0;
    lc_powers_init(&m->left);
    lc_powers_init(&m->right);
}

static void multieq_flush(struct multieq *m)
{
    struct cs_term left[LC_POWERS_TERMS + 1], right[MULTIEQ_BITS];

    if (!cs_skip_row(m->cs)) {
        const struct cs_lc a = lc_powers_expand(&m->left, left),
                           c = lc_powers_expand(&m->right, right);
        cs_enforce(m->cs, &a, &cs_lc_one, &c);
    }
    multieq_open(m, m->cs);
}

static void multieq_close(struct multieq *m)
{
    if (m->used > 0)
        multieq_flush(m);
}

/* Operands of one addition. */
struct operands {
    const struct sha256_word *word[OPERANDS_MAX];
    uint32_t len;
};

/* sum of the operands = sum of 2^i * bits[i] */
static void multieq_add(struct multieq *m, const struct operands *sum, const struct boolean *bits,
                        uint32_t n_bits)
{
    if (m->used + n_bits >= MULTIEQ_BITS)
        multieq_flush(m);
    if (m->cs->sink->row) {
        for (uint32_t k = 0; k < sum->len; k++)
            for (uint32_t i = 0; i < 32; i++)
                lc_powers_add_boolean(&m->left, sum->word[k]->bit[i], m->used + i);
        for (uint32_t i = 0; i < n_bits; i++)
            lc_powers_add_boolean(&m->right, bits[i], m->used + i);
    }
    m->used += n_bits;
}

static struct sha256_word word_const(uint32_t value)
{
    struct sha256_word w;

    for (uint32_t i = 0; i < 32; i++)
        w.bit[i] = boolean_const(value >> i & 1);
    return w;
}

static uint32_t word_value(const struct sha256_word *w)
{
    uint32_t value = 0;

    for (uint32_t i = 0; i < 32; i++)
        value |= (uint32_t)w->bit[i].value << i;
    return value;
}

static bool word_is_const(const struct sha256_word *w)
{
    for (uint32_t i = 0; i < 32; i++)
        if (!boolean_is_const(w->bit[i]))
            return false;
    return true;
}

static struct sha256_word word_rotr(const struct sha256_word *w, uint32_t n)
{
    struct sha256_word out;

    for (uint32_t i = 0; i < 32; i++)
        out.bit[i] = w->bit[(i + n) % 32];
    return out;
}

static struct sha256_word word_shr(const struct sha256_word *w, uint32_t n)
{
    struct sha256_word out;

    for (uint32_t i = 0; i < 32; i++)
        out.bit[i] = i + n < 32 ? w->bit[i + n] : boolean_const(false);
    return out;
}

static struct sha256_word word_xor(struct cs *cs, const struct sha256_word *a,
                                   const struct sha256_word *b)
{
    struct sha256_word out;

    for (uint32_t i = 0; i < 32; i++)
        out.bit[i] = boolean_xor(cs, a->bit[i], b->bit[i]);
    return out;
}

static struct sha256_word word_ch(struct cs *cs, const struct sha256_word *a,
                                  const struct sha256_word *b, const struct sha256_word *c)
{
    struct sha256_word out;

    for (uint32_t i = 0; i < 32; i++)
        out.bit[i] = boolean_ch(cs, a->bit[i], b->bit[i], c->bit[i]);
    return out;
}

static struct sha256_word word_maj(struct cs *cs, const struct sha256_word *a,
                                   const struct sha256_word *b, const struct sha256_word *c)
{
    struct sha256_word out;

    for (uint32_t i = 0; i < 32; i++)
        out.bit[i] = boolean_maj(cs, a->bit[i], b->bit[i], c->bit[i]);
    return out;
}

/* rotr(w, r1) ^ rotr(w, r2) ^ third */
static struct sha256_word word_sigma(struct cs *cs, const struct sha256_word *w, uint32_t r1,
                                     uint32_t r2, const struct sha256_word *third)
{
    const struct sha256_word a = word_rotr(w, r1), b = word_rotr(w, r2);
    const struct sha256_word ab = word_xor(cs, &a, &b);

    return word_xor(cs, &ab, third);
}

/* Small sigma: the third part shifted. */
static struct sha256_word word_sigma_shr(struct cs *cs, const struct sha256_word *w, uint32_t r1,
                                         uint32_t r2, uint32_t shift)
{
    const struct sha256_word third = word_shr(w, shift);

    return word_sigma(cs, w, r1, r2, &third);
}

/* Large sigma: all three rotated. */
static struct sha256_word word_sigma_rotr(struct cs *cs, const struct sha256_word *w, uint32_t r1,
                                          uint32_t r2, uint32_t r3)
{
    const struct sha256_word third = word_rotr(w, r3);

    return word_sigma(cs, w, r1, r2, &third);
}

/* Bits of operands * (2^32 - 1). */
static uint32_t sum_bits(uint32_t operands)
{
    const uint64_t largest = operands * (uint64_t)UINT32_MAX;
    uint32_t bits = 32;

    while (largest >> bits > 0)
        bits++;
    return bits;
}

/* The sum mod 2^32. */
static struct sha256_word add_words(struct multieq *m, const struct operands *sum)
{
    struct boolean bits[36];
    struct sha256_word out;
    uint64_t value = 0;
    bool constant = true;

    for (uint32_t k = 0; k < sum->len; k++) {
        value += word_value(sum->word[k]);
        constant = constant && word_is_const(sum->word[k]);
    }
    if (constant)
        return word_const((uint32_t)value);
    const uint32_t n_bits = sum_bits(sum->len);
    assert(n_bits <= 36);
    for (uint32_t i = 0; i < n_bits; i++)
        bits[i] = boolean_alloc(m->cs, value >> i & 1);
    multieq_add(m, sum, bits, n_bits);
    memcpy(out.bit, bits, sizeof(out.bit));
    return out;
}

static struct sha256_word add_two(struct multieq *m, const struct sha256_word *a,
                                  const struct sha256_word *b)
{
    return add_words(m, &(struct operands){.word = {a, b}, .len = 2});
}

const uint32_t sha256_round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void make_schedule(struct multieq *m, const struct boolean *block, struct sha256_word w[64])
{
    for (uint32_t j = 0; j < 16; j++)
        for (uint32_t i = 0; i < 32; i++)
            w[j].bit[i] = block[32 * j + 31 - i];
    for (uint32_t i = 16; i < 64; i++) {
        const struct sha256_word s0 = word_sigma_shr(m->cs, &w[i - 15], 7, 18, 3),
                                 s1 = word_sigma_shr(m->cs, &w[i - 2], 17, 19, 10);
        w[i] =
            add_words(m, &(struct operands){.word = {&w[i - 16], &s0, &w[i - 7], &s1}, .len = 4});
    }
}

/* A word that is either there or a sum not yet made. The sum keeps its operands by value, as the working
 * variables move on before it is needed. */
struct deferred {
    struct sha256_word operand[7];
    uint32_t len; /* 0: operand[0] is the word itself */
};

static struct sha256_word deferred_resolve(struct multieq *m, const struct deferred *d)
{
    struct operands sum = {.len = d->len};

    if (d->len == 0)
        return d->operand[0];
    for (uint32_t i = 0; i < d->len; i++)
        sum.word[i] = &d->operand[i];
    return add_words(m, &sum);
}

/* The sum with one more operand, for the end of a block. */
static struct sha256_word deferred_add(struct multieq *m, const struct deferred *d,
                                       const struct sha256_word *last)
{
    struct operands sum = {.len = d->len + 1};

    for (uint32_t i = 0; i < d->len; i++)
        sum.word[i] = &d->operand[i];
    sum.word[d->len] = last;
    return add_words(m, &sum);
}

/* The working variables. */
struct working {
    struct deferred a, e;
    struct sha256_word b, c, d, f, g, h;
};

static void sha256_round(struct multieq *m, struct working *v, uint32_t k,
                         const struct sha256_word *w)
{
    struct cs *cs = m->cs;

    /* Everything of e comes before anything of a. */
    const struct sha256_word e = deferred_resolve(m, &v->e);
    const struct sha256_word s1 = word_sigma_rotr(cs, &e, 6, 11, 25);
    const struct sha256_word ch = word_ch(cs, &e, &v->f, &v->g);
    const struct sha256_word a = deferred_resolve(m, &v->a);
    const struct sha256_word s0 = word_sigma_rotr(cs, &a, 2, 13, 22);
    const struct sha256_word maj = word_maj(cs, &a, &v->b, &v->c);

    v->e = (struct deferred){.operand = {v->h, s1, ch, word_const(k), *w, v->d}, .len = 6};
    v->a = (struct deferred){.operand = {v->h, s1, ch, word_const(k), *w, s0, maj}, .len = 7};
    v->h = v->g;
    v->g = v->f;
    v->f = e;
    v->d = v->c;
    v->c = v->b;
    v->b = a;
}

const uint32_t sha256_initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

void sha256_iv(struct sha256_word state[8])
{
    for (int i = 0; i < 8; i++)
        state[i] = word_const(sha256_initial[i]);
}

void sha256_compress(struct cs *cs, const struct boolean block[SHA256_BLOCK_BITS],
                     struct sha256_word state[8])
{
    struct multieq m;
    struct sha256_word w[64];

    multieq_open(&m, cs);
    make_schedule(&m, block, w);
    struct working v = {.a = {.operand = {state[0]}},
                        .b = state[1],
                        .c = state[2],
                        .d = state[3],
                        .e = {.operand = {state[4]}},
                        .f = state[5],
                        .g = state[6],
                        .h = state[7]};
    for (uint32_t i = 0; i < 64; i++)
        sha256_round(&m, &v, sha256_round_constants[i], &w[i]);
    state[0] = deferred_add(&m, &v.a, &state[0]);
    state[1] = add_two(&m, &state[1], &v.b);
    state[2] = add_two(&m, &state[2], &v.c);
    state[3] = add_two(&m, &state[3], &v.d);
    state[4] = deferred_add(&m, &v.e, &state[4]);
    state[5] = add_two(&m, &state[5], &v.f);
    state[6] = add_two(&m, &state[6], &v.g);
    state[7] = add_two(&m, &state[7], &v.h);
    multieq_close(&m);
}

/* Compresses what is left of the message with its padding: one block or two. */
void sha256_finish(struct cs *cs, const struct boolean *rest, size_t n_rest, uint64_t len,
                   struct sha256_word state[8], struct boolean digest[SHA256_DIGEST_BITS])
{
    struct boolean tail[2 * SHA256_BLOCK_BITS];
    const size_t total = n_rest + 65 <= SHA256_BLOCK_BITS ? SHA256_BLOCK_BITS : ARRAY_LEN(tail);

    if (n_rest > 0)
        memcpy(tail, rest, n_rest * sizeof(*rest));
    for (size_t i = n_rest; i < total - 64; i++)
        tail[i] = boolean_const(i == n_rest);
    for (size_t i = 0; i < 64; i++)
        tail[total - 64 + i] = boolean_const(len >> (63 - i) & 1);
    for (size_t i = 0; i < total; i += SHA256_BLOCK_BITS)
        sha256_compress(cs, &tail[i], state);
    for (size_t i = 0; i < SHA256_DIGEST_BITS; i++)
        digest[i] = state[i / 32].bit[31 - i % 32];
}

void sha256_bits(struct cs *cs, const struct boolean *bits, size_t len,
                 struct boolean digest[SHA256_DIGEST_BITS])
{
    struct sha256_word state[8];
    size_t done = 0;

    assert(len % 8 == 0);
    sha256_iv(state);
    for (; len - done >= SHA256_BLOCK_BITS; done += SHA256_BLOCK_BITS)
        sha256_compress(cs, &bits[done], state);
    sha256_finish(cs, &bits[done], len - done, len, state, digest);
}
