/*
 * The word-wise SHA-256 writes the very bits that the gadget allocates, whatever is constant or negated.
 */
#include "numa/circuit/sha256_trace.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "numa/circuit/sha256.h"
#include "tests/lib/suite.h"

#define SEED 99173u
#define BITS_MAX 32768 /* of one block */

/* What the gadget allocates. */
struct bits {
    uint8_t at[2 * BITS_MAX];
    size_t len;
};

static void take_bit(void *ctx, uint32_t index, bool value)
{
    struct bits *bits = ctx;

    /* An assertion is a system call, so failures alone make one. */
    if (index != bits->len)
        ck_abort_msg("bit %u", index);
    bits->at[bits->len++] = value;
}

/* How often a bit is constant or negated, of 16. */
struct mixture {
    long constant, negated;
};

/* Only variables; the padding of a message; few variables; everything. */
static const struct mixture mixtures[] = {{0, 0}, {16, 0}, {15, 8}, {8, 8}, {1, 0}, {0, 8}, {2, 1}};

static struct boolean random_bit(const struct mixture *m)
{
    const bool value = random() >> 7 & 1;
    struct boolean out = {.var = 1, .kind = BOOLEAN_IS, .value = value};

    if (random() % 16 < m->constant)
        return boolean_const(value);
    return random() % 16 < m->negated ? boolean_not(out) : out;
}

/* A word at random in both forms. A third of them are constant or variable as a whole. */
static void random_word(const struct mixture *m, struct boolean gadget[32],
                        struct trace_word *trace)
{
    static const struct mixture constant = {1000, 0}, variable = {0, 0};
    const long kind = random() % 6;
    const struct mixture *of = kind == 0 ? &constant : kind == 1 ? &variable : m;

    *trace = (struct trace_word){0};
    for (int i = 0; i < 32; i++) {
        gadget[i] = random_bit(of);
        trace->value |= (uint32_t)gadget[i].value << i;
        trace->constant |= (uint32_t)(gadget[i].kind == BOOLEAN_CONST) << i;
        trace->negated |= (uint32_t)(gadget[i].kind == BOOLEAN_NOT) << i;
    }
}

static void assert_bits(const struct bits *want, const struct bit_writer *w, const uint64_t *bitmap)
{
    ck_assert_uint_eq(bit_writer_tell(w, bitmap), want->len);
    for (size_t i = 0; i < want->len; i++)
        if ((bitmap[i / 64] >> (i % 64) & 1) != want->at[i])
            ck_abort_msg("bit %zu", i);
}

static void assert_words(const struct sha256_word gadget[8], const struct trace_word trace[8])
{
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 32; i++) {
            const struct boolean b = gadget[k].bit[i];
            if (b.value != (trace[k].value >> i & 1) ||
                (b.kind == BOOLEAN_CONST) != (trace[k].constant >> i & 1) ||
                (b.kind == BOOLEAN_NOT) != (trace[k].negated >> i & 1))
                ck_abort_msg("word %d, bit %d", k, i);
        }
}

static void check_block(const struct mixture *m, bool iv)
{
    static uint64_t bitmap[BITS_MAX / 64];
    static struct bits want;
    const struct cs_sink sink = {.bit = take_bit, .ctx = &want};
    struct cs cs = {.sink = &sink};
    struct boolean block[SHA256_BLOCK_BITS], word[32];
    struct sha256_word state[8];
    struct trace_word trace[16], trace_state[8];

    for (int k = 0; k < 8; k++)
        random_word(m, state[k].bit, &trace_state[k]);
    if (iv) {
        sha256_iv(state);
        sha256_trace_iv(trace_state);
    }
    for (int k = 0; k < 16; k++) {
        random_word(m, word, &trace[k]);
        for (int i = 0; i < 32; i++)
            block[32 * k + 31 - i] = word[i];
    }
    want.len = 0;
    memset(bitmap, 0, sizeof(bitmap));
    struct bit_writer w = bit_writer_at(bitmap, 0, NULL);
    sha256_compress(&cs, block, state);
    sha256_trace_block(&w, trace, trace_state);
    bit_writer_end(&w);
    assert_bits(&want, &w, bitmap);
    assert_words(state, trace_state);
}

START_TEST(sha256_trace_block__writes_what_the_gadget_allocates)
{
    for (int round = 0; round < 40; round++)
        check_block(&mixtures[_i], round % 3 == 0);
}
END_TEST

START_TEST(sha256_trace_finish__writes_what_the_gadget_allocates)
{
    static uint64_t bitmap[BITS_MAX / 64];
    static struct bits want;
    const struct cs_sink sink = {.bit = take_bit, .ctx = &want};
    struct boolean rest[SHA256_BLOCK_BITS], word[32], digest[SHA256_DIGEST_BITS];

    for (uint32_t n_rest = 0; n_rest < 14; n_rest++) {
        struct cs cs = {.sink = &sink};
        struct sha256_word state[8];
        struct trace_word trace[16], trace_state[8];
        const uint64_t len = 512 * (uint64_t)(random() % 100000000) + 32 * n_rest;
        sha256_iv(state);
        sha256_trace_iv(trace_state);
        for (uint32_t k = 0; k < n_rest; k++) {
            random_word(&mixtures[6], word, &trace[k]);
            for (int i = 0; i < 32; i++)
                rest[32 * k + 31 - (uint32_t)i] = word[i];
        }
        want.len = 0;
        memset(bitmap, 0, sizeof(bitmap));
        struct bit_writer w = bit_writer_at(bitmap, 0, NULL);
        sha256_finish(&cs, rest, 32 * n_rest, len, state, digest);
        sha256_trace_finish(&w, trace, n_rest, len, trace_state);
        bit_writer_end(&w);
        assert_bits(&want, &w, bitmap);
        assert_words(state, trace_state);
    }
}
END_TEST

/* Runs of every length from every place, and neighbours that share words. */
START_TEST(bit_writer__fills_ranges_side_by_side)
{
    static uint64_t bitmap[64], want[64];
    fr_t values[8], value = fr_from_u64(7);

    for (uint32_t cut = 100; cut < 1000; cut += 37) {
        memset(bitmap, 0, sizeof(bitmap));
        memset(want, 0, sizeof(want));
        struct bit_writer second = bit_writer_at(bitmap, cut, values),
                          first = bit_writer_at(bitmap, 3, values + 4);
        uint32_t at = cut;
        while (at < 3000) {
            const unsigned len = (unsigned)(random() % 64) + 1;
            const uint64_t bits = ((uint64_t)random() << 33 ^ (uint64_t)random()) >> (64 - len);
            bit_writer_put(&second, bits, len);
            for (unsigned i = 0; i < len; i++)
                want[(at + i) / 64] |= (bits >> i & 1) << (at + i) % 64;
            at += len;
            ck_assert_uint_eq(bit_writer_tell(&second, bitmap), at);
            const uint32_t skip = (uint32_t)(random() % 3 ? 0 : random() % 200);
            bit_writer_skip(&second, skip);
            at += skip;
        }
        for (at = 3; at + 1 < cut; at++) {
            bit_writer_put(&first, at & 1, 1);
            want[at / 64] |= (uint64_t)(at & 1) << at % 64;
        }
        ck_assert_ptr_eq(bit_writer_put_value(&first, &value), values + 4);
        bit_writer_end(&first);
        bit_writer_end(&second);
        ck_assert_mem_eq(bitmap, want, sizeof(want));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sha256_trace");
    TCase *tc = tcase_create("sha256_trace");

    printf("seed %u\n", SEED);
    srandom(SEED);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, sha256_trace_block__writes_what_the_gadget_allocates, 0,
                        ARRAY_LEN(mixtures));
    tcase_add_test(tc, sha256_trace_finish__writes_what_the_gadget_allocates);
    tcase_add_test(tc, bit_writer__fills_ranges_side_by_side);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
