/*
 * A circuit's polynomials at one point, term by term, for host and device alike: what gpu/qap.c does row by row.
 *
 * Rows are taken in any order by many threads, so a variable's sum is kept as eight sums of limbs, which are added to without
 * carries: 2^32 terms fit.
 */
#ifndef GPU_CUDA_QAP_TERMS_CUH
#define GPU_CUDA_QAP_TERMS_CUH

#include "gpu/cuda/rows.cuh"

struct limb_sums {
    unsigned long long v[fr::LIMBS];
};

/* coeff * x, canonical */
HOST_DEVICE fr qap_term(const row_tables &t, uint32_t coeff, const fr &x)
{
    return canonical(add_product(t, fr_zero(), coeff, x));
}

/* The sums modulo r, canonical. */
HOST_DEVICE fr fold_limbs(const limb_sums &s)
{
    fr low, high = fr_zero();
    unsigned long long carry = 0;

    UNROLL
    for (int k = 0; k < fr::LIMBS; k++) {
        const unsigned long long sum = s.v[k] + carry; /* no overflow: fewer than 2^32 terms */
        low.v[k] = (uint32_t)sum;
        carry = sum >> 32;
    }
    high.v[0] = (uint32_t)carry;
    return canonical(add(mul(low, fr_one()), mul(high, fr_r_squared())));
}

#endif
