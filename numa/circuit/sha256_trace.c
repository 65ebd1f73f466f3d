/*
 * Each function is the gadget of the same name in boolean.c and sha256.c for 32 bits at once: the rules, in their order, as
 * masks. A variable's own value is that of its literal with the negation taken off.
 */
#include "numa/circuit/sha256_trace.h"

#include "numa/circuit/sha256.h"

/* The bits of `bits` under `mask`, moved together. */
static uint64_t compress(uint64_t bits, uint64_t mask)
{
    uint64_t out = 0;

    for (unsigned at = 0; mask; mask &= mask - 1)
        out |= (bits >> __builtin_ctzll(mask) & 1) << at++;
    return out;
}

/* Writes the variables among 32 bits, or 64. */
static inline void put_some(struct bit_writer *w, uint64_t bits, uint64_t mask, unsigned len)
{
    const uint64_t all = len == 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1;

    if (mask == all)
        bit_writer_put(w, bits, len);
    else if (mask)
        bit_writer_put(w, compress(bits, mask), (unsigned)__builtin_popcountll(mask));
}

static inline struct trace_word word_not(struct trace_word a, uint32_t where)
{
    return (struct trace_word){a.value ^ where, a.constant, a.negated ^ (where & ~a.constant)};
}

static inline struct trace_word word_xor(struct bit_writer *w, struct trace_word a,
                                         struct trace_word b)
{
    put_some(w, a.value ^ a.negated ^ b.value ^ b.negated, ~(a.constant | b.constant), 32);
    /* A constant 1 negates the other. */
    return (struct trace_word){
        .value = a.value ^ b.value,
        .constant = a.constant & b.constant,
        .negated = a.negated ^ b.negated ^ (a.constant & ~b.constant & a.value) ^
                   (b.constant & ~a.constant & b.value),
    };
}

/* Rules 1 and 2 of `and` decide what is constant; where both are variables there is a new one. */
static inline struct trace_word word_and(struct trace_word a, struct trace_word b)
{
    return (struct trace_word){
        .value = a.value & b.value,
        .constant = (a.constant & ~a.value) | (b.constant & ~b.value) | (a.constant & b.constant),
        .negated = (a.constant & a.value & b.negated) | (b.constant & b.value & a.negated),
    };
}

static inline struct trace_word choose(uint32_t mask, struct trace_word a, struct trace_word b)
{
    return (struct trace_word){
        .value = (a.value & mask) | (b.value & ~mask),
        .constant = (a.constant & mask) | (b.constant & ~mask),
        .negated = (a.negated & mask) | (b.negated & ~mask),
    };
}

static inline uint32_t is_false(struct trace_word a)
{
    return a.constant & ~a.value;
}

static inline uint32_t is_true(struct trace_word a)
{
    return a.constant & a.value;
}

/* Takes from `left` the bits that a rule applies to. */
static inline uint32_t take(uint32_t *left, uint32_t rule)
{
    const uint32_t taken = *left & rule;

    *left &= ~rule;
    return taken;
}

static struct trace_word word_ch_mixed(struct bit_writer *w, struct trace_word a,
                                       struct trace_word b, struct trace_word c)
{
    const uint32_t value = (a.value & b.value) | (~a.value & c.value);
    uint32_t left = UINT32_MAX;
    const uint32_t all = take(&left, a.constant & b.constant & c.constant),
                   a_false = take(&left, is_false(a)), b_false = take(&left, is_false(b)),
                   c_false = take(&left, is_false(c)), c_true = take(&left, is_true(c)),
                   b_true = take(&left, is_true(b));
    /* and(x, y), negated where c or b is true */
    const struct trace_word x = word_not(a, b_false | b_true),
                            y = word_not(choose(b_false | b_true, c, b), c_true | b_true),
                            xy = word_and(x, y);
    const uint32_t ands = b_false | c_false | c_true | b_true,
                   new_ands = ands & ~(x.constant | y.constant);
    put_some(w, (xy.value & new_ands) | (value & left), new_ands | left, 32);
    const struct trace_word variable = {.value = value}, of_and = word_not(xy, c_true | b_true);
    return choose(all, trace_const(value), choose(a_false, c, choose(ands, of_and, variable)));
}

/* Bit i to bit 2 i. */
static inline uint64_t spread(uint32_t bits)
{
    uint64_t x = bits;

    x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
    x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    x = (x | x << 2) & UINT64_C(0x3333333333333333);
    return (x | x << 1) & UINT64_C(0x5555555555555555);
}

static struct trace_word word_maj_mixed(struct bit_writer *w, struct trace_word a,
                                        struct trace_word b, struct trace_word c)
{
    const uint32_t value = (a.value & b.value) | (a.value & c.value) | (b.value & c.value);
    uint32_t left = UINT32_MAX;
    const uint32_t all = take(&left, a.constant & b.constant & c.constant),
                   a_false = take(&left, is_false(a)), b_false = take(&left, is_false(b)),
                   c_false = take(&left, is_false(c)), c_true = take(&left, is_true(c)),
                   b_true = take(&left, is_true(b)), a_true = take(&left, is_true(a));
    const uint32_t negate = a_true | b_true | c_true;
    /* The two that are not decided by the rule; negated before and after where the third is true. */
    const struct trace_word x = word_not(choose(a_false | a_true, b, a), negate),
                            y = word_not(choose(c_false | c_true, b, c), negate),
                            xy = word_and(x, y);
    const uint32_t ands = a_false | b_false | c_false | negate,
                   new_ands = ands & ~(x.constant | y.constant);
    put_some(w,
             spread((xy.value & new_ands) | (value & left)) | spread(b.value & c.value & left) << 1,
             spread(new_ands | left) | spread(left) << 1, 64);
    const struct trace_word variable = {.value = value};
    return choose(all, trace_const(value), choose(ands, word_not(xy, negate), variable));
}

static inline struct trace_word word_ch(struct bit_writer *w, struct trace_word a,
                                        struct trace_word b, struct trace_word c)
{
    if (a.constant | b.constant | c.constant)
        return word_ch_mixed(w, a, b, c);
    const struct trace_word out = {.value = (a.value & b.value) | (~a.value & c.value)};
    bit_writer_put(w, out.value, 32);
    return out;
}

static inline struct trace_word word_maj(struct bit_writer *w, struct trace_word a,
                                         struct trace_word b, struct trace_word c)
{
    if (a.constant | b.constant | c.constant)
        return word_maj_mixed(w, a, b, c);
    const uint32_t bc = b.value & c.value;
    const struct trace_word out = {.value = (a.value & (b.value | c.value)) | bc};
    bit_writer_put(w, spread(out.value) | spread(bc) << 1, 64);
    return out;
}

static inline uint32_t rotr(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static inline struct trace_word word_rotr(struct trace_word a, unsigned n)
{
    return (struct trace_word){rotr(a.value, n), rotr(a.constant, n), rotr(a.negated, n)};
}

static inline struct trace_word word_shr(struct trace_word a, unsigned n)
{
    return (struct trace_word){a.value >> n, a.constant >> n | ~(UINT32_MAX >> n), a.negated >> n};
}

static inline struct trace_word sigma_rotr(struct bit_writer *w, struct trace_word a, unsigned r1,
                                           unsigned r2, unsigned r3)
{
    return word_xor(w, word_xor(w, word_rotr(a, r1), word_rotr(a, r2)), word_rotr(a, r3));
}

static inline struct trace_word sigma_shr(struct bit_writer *w, struct trace_word a, unsigned r1,
                                          unsigned r2, unsigned shift)
{
    return word_xor(w, word_xor(w, word_rotr(a, r1), word_rotr(a, r2)), word_shr(a, shift));
}

/* A sum of up to eight words that is being collected. */
struct sum {
    uint64_t value;
    uint32_t constant; /* in all of them */
    unsigned len;
};

static inline struct sum sum_of(struct trace_word a, struct trace_word b)
{
    return (struct sum){(uint64_t)a.value + b.value, a.constant & b.constant, 2};
}

static inline struct sum sum_add(struct sum s, struct trace_word a)
{
    return (struct sum){s.value + a.value, s.constant & a.constant, s.len + 1};
}

static inline struct trace_word sum_end(struct bit_writer *w, struct sum s)
{
    if (s.constant == UINT32_MAX)
        return trace_const((uint32_t)s.value);
    bit_writer_put(w, s.value, s.len == 2 ? 33 : s.len <= 4 ? 34 : 35);
    return (struct trace_word){.value = (uint32_t)s.value};
}

/* A word that is there (len 0), or a sum that is not yet made. */
struct deferred {
    struct trace_word word;
    struct sum sum;
};

static inline struct trace_word deferred_resolve(struct bit_writer *w, const struct deferred *d)
{
    return d->sum.len == 0 ? d->word : sum_end(w, d->sum);
}

static void make_schedule(struct bit_writer *w, const struct trace_word block[16],
                          struct trace_word k[64])
{
    for (int i = 0; i < 16; i++)
        k[i] = block[i];
    for (int i = 16; i < 64; i++) {
        const struct trace_word s0 = sigma_shr(w, k[i - 15], 7, 18, 3),
                                s1 = sigma_shr(w, k[i - 2], 17, 19, 10);
        k[i] = sum_end(w, sum_add(sum_add(sum_of(k[i - 16], s0), k[i - 7]), s1));
    }
}

/* The working variables. */
struct working {
    struct deferred a, e;
    struct trace_word b, c, d, f, g, h;
};

static inline void trace_round(struct bit_writer *w, struct working *v, uint32_t constant,
                               struct trace_word k)
{
    const struct trace_word e = deferred_resolve(w, &v->e), s1 = sigma_rotr(w, e, 6, 11, 25),
                            ch = word_ch(w, e, v->f, v->g), a = deferred_resolve(w, &v->a),
                            s0 = sigma_rotr(w, a, 2, 13, 22), maj = word_maj(w, a, v->b, v->c);
    const struct sum t1 = sum_add(sum_add(sum_add(sum_of(v->h, s1), ch), trace_const(constant)), k);

    v->e.sum = sum_add(t1, v->d);
    v->a.sum = sum_add(sum_add(t1, s0), maj);
    v->h = v->g;
    v->g = v->f;
    v->f = e;
    v->d = v->c;
    v->c = v->b;
    v->b = a;
}

void sha256_trace_iv(struct trace_word state[8])
{
    for (int i = 0; i < 8; i++)
        state[i] = trace_const(sha256_initial[i]);
}

void sha256_trace_block(struct bit_writer *w, const struct trace_word block[16],
                        struct trace_word state[8])
{
    struct trace_word k[64];
    struct bit_writer local = *w; /* in registers */

    make_schedule(&local, block, k);
    struct working v = {.a = {.word = state[0]},
                        .b = state[1],
                        .c = state[2],
                        .d = state[3],
                        .e = {.word = state[4]},
                        .f = state[5],
                        .g = state[6],
                        .h = state[7]};
    for (int i = 0; i < 64; i++)
        trace_round(&local, &v, sha256_round_constants[i], k[i]);
    state[0] = sum_end(&local, sum_add(v.a.sum, state[0]));
    state[1] = sum_end(&local, sum_of(state[1], v.b));
    state[2] = sum_end(&local, sum_of(state[2], v.c));
    state[3] = sum_end(&local, sum_of(state[3], v.d));
    state[4] = sum_end(&local, sum_add(v.e.sum, state[4]));
    state[5] = sum_end(&local, sum_of(state[5], v.f));
    state[6] = sum_end(&local, sum_of(state[6], v.g));
    state[7] = sum_end(&local, sum_of(state[7], v.h));
    *w = local;
}

void sha256_trace_finish(struct bit_writer *w, const struct trace_word *rest, uint32_t n_rest,
                         uint64_t len, struct trace_word state[8])
{
    struct trace_word block[16];

    for (uint32_t i = 0; i < 14; i++)
        block[i] = i < n_rest ? rest[i] : trace_const(i == n_rest ? UINT32_C(1) << 31 : 0);
    block[14] = trace_const((uint32_t)(len >> 32));
    block[15] = trace_const((uint32_t)len);
    sha256_trace_block(w, block, state);
}
