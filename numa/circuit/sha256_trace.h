/*
 * The variables of the SHA-256 gadget (sha256.h), computed a word at a time: what it allocates, in its order, is what is
 * written here. Which bits are constant decides what there is to write, as it does there.
 *
 * Any thread may call anything here.
 */
#ifndef CIRCUIT_SHA256_TRACE_H
#define CIRCUIT_SHA256_TRACE_H

#include "numa/circuit/bit_writer.h"

/* 32 bits of the kinds of boolean.h: bit i is constant, or a variable, or a variable negated. `value` has the negation
 * applied; a constant bit is not negated. */
struct trace_word {
    uint32_t value, constant, negated;
};

static inline struct trace_word trace_const(uint32_t value)
{
    return (struct trace_word){.value = value, .constant = UINT32_MAX};
}

/* The initial value. */
void sha256_trace_iv(struct trace_word state[8]);

/* One block of 16 words. */
void sha256_trace_block(struct bit_writer *w, const struct trace_word block[16],
                        struct trace_word state[8]);

/* The end of a message of `len` bits, of which n_rest < 14 words (whole words only) are left over. */
void sha256_trace_finish(struct bit_writer *w, const struct trace_word *rest, uint32_t n_rest,
                         uint64_t len, struct trace_word state[8]);

#endif
