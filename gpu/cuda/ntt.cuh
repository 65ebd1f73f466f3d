/*
 * Number-theoretic transforms over F_r in device memory, 2^1 to 2^27 elements.
 *
 * A plan is for one length, one direction, one shift s and one factor f. Its matrix W has W[i][k] = f * w^(i k) * s^k, k the
 * index on the side that is in bit-reversed order:
 *   ntt_to_reversed: out[rev(k)] = sum over i of W[i][k] in[i]     (values, or coefficients, in natural order come in)
 *   ntt_to_natural:  out[i]      = sum over k of W[i][k] in[rev(k)]
 * The two undo each other but for n, with plans of opposite direction. Pairing them saves every reordering: pointwise steps do
 * not care.
 *
 * Elements may be in Montgomery form or not, results are canonical. In place or not.
 */
#ifndef GPU_CUDA_NTT_CUH
#define GPU_CUDA_NTT_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/fr.cuh"

static constexpr uint32_t NTT_LOG2_MAX = 27, NTT_PASSES = 3;

/* Constants of the radix-8 butterfly, w8 = a primitive 8th root: w8^2, (w8 + w8^3) / 2, (w8 - w8^3) / 2. */
struct ntt_radix8 {
    fr_constant i, half_sum, half_difference;
};

struct ntt_plan {
    uint32_t log2_len = 0, passes = 0; /* passes 0: the plain transform */
    uint32_t width[NTT_PASSES];        /* log2 of a pass's sub-transforms */
    uint32_t stride[NTT_PASSES];       /* log2 of the distance of their elements */
    bool shifted = false, small = false;
    fr root, shift, factor;
    ntt_radix8 radix8;
    /* Factors inside a pass, by output position and by output index; those between a pass and the next; and of the last
     * pass's last round. See ntt.cu. */
    device_buffer<uint4> by_position[NTT_PASSES], by_index[NTT_PASSES], between[NTT_PASSES - 1],
        between_low, tail;
    device_buffer<fr> room; /* of the plain transform */

    /* Gives the memory back. */
    void release();
};

/* inverse: w = 1 / root of unity. shift and factor in Montgomery form. The tables take 64 bytes an element from 2^12 on; those of a
 * small plan 70 MB at most, for which transforms take some more products. */
int ntt_plan_create(gpu &g, uint32_t log2_len, bool inverse, const fr &shift, const fr &factor,
                    bool small, ntt_plan *out, struct errmsg *err);
/* No less than the device memory that a plan takes. */
size_t ntt_plan_bytes(uint32_t log2_len, bool small);

int ntt_to_reversed(gpu &g, const ntt_plan &plan, const fr *in, fr *out, struct errmsg *err);
/* The same, minus sub[] (in reversed order as well). */
int ntt_to_reversed_minus(gpu &g, const ntt_plan &plan, const fr *in, fr *out, const fr *sub,
                          struct errmsg *err);
int ntt_to_natural(gpu &g, const ntt_plan &plan, const fr *in, fr *out, struct errmsg *err);

/* The transform by its plainest kernels, radix 2 and one launch a level: for short lengths, and the oracle of the others. */
int ntt_plain_to_reversed(gpu &g, const ntt_plan &plan, const fr *in, fr *out, struct errmsg *err);
int ntt_plain_to_natural(gpu &g, const ntt_plan &plan, const fr *in, fr *out, struct errmsg *err);

/* out[i] = in[rev(i)], not in place. */
int ntt_reverse(gpu &g, uint32_t log2_len, const fr *in, fr *out, struct errmsg *err);
/* out[i] = a[i] * b[i], all in Montgomery form, canonical; any may be the same. */
int ntt_multiply(gpu &g, size_t len, const fr *a, const fr *b, fr *out, struct errmsg *err);

/* A primitive 2^log2_len-th root of unity, in Montgomery form: c2-formats 6.2's. */
fr ntt_root(uint32_t log2_len);

#endif
