/*
 * Numbers as little-endian 32-bit limbs, for host and device alike: addition and subtraction with carry, selection,
 * and the multiply-add steps from which the fields build their products.
 *
 * The carry flag of the device lives from one asm statement to the next; `volatile` keeps their order. Where no device
 * compiles (__CUDA_ARCH__ unset) the same functions are plain C++, which g++ takes without CUDA.
 */
#ifndef GPU_CUDA_LIMBS_CUH
#define GPU_CUDA_LIMBS_CUH

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__ __forceinline__
#define DEVICE __device__ __forceinline__
/* For rare paths: keeps their code out of the kernels. */
#define HOST_DEVICE_CALL static __host__ __device__ __noinline__ __attribute__((unused))
#define UNROLL _Pragma("unroll")
#else
#define HOST_DEVICE inline
#define HOST_DEVICE_CALL inline
#define UNROLL
#endif

#ifdef __CUDA_ARCH__
DEVICE uint32_t add_cc(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm volatile("add.cc.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

DEVICE uint32_t addc_cc(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm volatile("addc.cc.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

DEVICE uint32_t addc(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm volatile("addc.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

DEVICE uint32_t sub_cc(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm volatile("sub.cc.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

DEVICE uint32_t subc_cc(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm volatile("subc.cc.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

DEVICE uint32_t subc(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm volatile("subc.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

DEVICE uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r;
    asm volatile("mad.lo.cc.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

DEVICE uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r;
    asm volatile("madc.lo.cc.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

DEVICE uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r;
    asm volatile("madc.hi.cc.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

DEVICE uint32_t madc_hi(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r;
    asm volatile("madc.hi.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

DEVICE void mul_wide(uint32_t &lo, uint32_t &hi, uint32_t a, uint32_t b)
{
    uint64_t t = (uint64_t)a * b;

    lo = (uint32_t)t;
    hi = (uint32_t)(t >> 32);
}

/* acc[0..N) = b * (a[0], a[2], ..), each product on an aligned pair of limbs. */
template <int N> DEVICE void mul_row(uint32_t *acc, const uint32_t *a, uint32_t b)
{
    UNROLL
    for (int j = 0; j < N; j += 2)
        mul_wide(acc[j], acc[j + 1], a[j], b);
}

/* acc[0..N) += the same, but for the upper half of the last product; the carry flag is set after it. */
template <int N> DEVICE void mad_row_open(uint32_t *acc, const uint32_t *a, uint32_t b)
{
    acc[0] = mad_lo_cc(a[0], b, acc[0]);
    UNROLL
    for (int j = 2; j < N; j += 2) {
        acc[j - 1] = madc_hi_cc(a[j - 2], b, acc[j - 1]);
        acc[j] = madc_lo_cc(a[j], b, acc[j]);
    }
}

/* acc[0..N) += the row; its carry makes acc[N]. */
template <int N> DEVICE void mad_row_carry(uint32_t *acc, const uint32_t *a, uint32_t b)
{
    mad_row_open<N>(acc, a, b);
    acc[N - 1] = madc_hi_cc(a[N - 2], b, acc[N - 1]);
    acc[N] = addc(0, 0);
}

/* The same where acc[N - 1] is made by this row: nothing can be carried out of it. */
template <int N> DEVICE void mad_row_new(uint32_t *acc, const uint32_t *a, uint32_t b)
{
    mad_row_open<N>(acc, a, b);
    acc[N - 1] = madc_hi(a[N - 2], b, 0);
}
#endif

/* r = a + b; returns the carry. r may be a or b, here and below. */
template <int N> HOST_DEVICE uint32_t limbs_add(uint32_t *r, const uint32_t *a, const uint32_t *b)
{
#ifdef __CUDA_ARCH__
    r[0] = add_cc(a[0], b[0]);
    UNROLL
    for (int k = 1; k < N; k++)
        r[k] = addc_cc(a[k], b[k]);
    return addc(0, 0);
#else
    uint64_t t = 0;

    for (int k = 0; k < N; k++) {
        t += (uint64_t)a[k] + b[k];
        r[k] = (uint32_t)t;
        t >>= 32;
    }
    return (uint32_t)t;
#endif
}

/* r = a - b; returns all ones when it borrowed, else 0. */
template <int N> HOST_DEVICE uint32_t limbs_sub(uint32_t *r, const uint32_t *a, const uint32_t *b)
{
#ifdef __CUDA_ARCH__
    r[0] = sub_cc(a[0], b[0]);
    UNROLL
    for (int k = 1; k < N; k++)
        r[k] = subc_cc(a[k], b[k]);
    return subc(0, 0);
#else
    int64_t t = 0;

    for (int k = 0; k < N; k++) {
        t += (int64_t)a[k] - b[k];
        r[k] = (uint32_t)t;
        t >>= 32;
    }
    return (uint32_t)t;
#endif
}

/* r = a >= m ? a - m : a */
template <int N> HOST_DEVICE void limbs_reduce(uint32_t *r, const uint32_t *a, const uint32_t *m)
{
    uint32_t t[N];
    uint32_t borrow = limbs_sub<N>(t, a, m);

    UNROLL
    for (int k = 0; k < N; k++)
        r[k] = borrow ? a[k] : t[k];
}

template <int N> HOST_DEVICE bool limbs_equal(const uint32_t *a, const uint32_t *b)
{
    uint32_t t = 0;

    UNROLL
    for (int k = 0; k < N; k++)
        t |= a[k] ^ b[k];
    return t == 0;
}

template <int N> HOST_DEVICE bool limbs_are_zero(const uint32_t *a)
{
    uint32_t t = 0;

    UNROLL
    for (int k = 0; k < N; k++)
        t |= a[k];
    return t == 0;
}

/* r[2N] = a[N] * b[N]. On the device even and odd products go to two accumulators, so that no carry chain crosses
 * another and each pair of multiply-adds becomes one instruction. N is even. */
template <int N> HOST_DEVICE void limbs_mul(uint32_t *r, const uint32_t *a, const uint32_t *b)
{
#ifdef __CUDA_ARCH__
    uint32_t even[2 * N], odd[2 * N]; /* odd[k] has the weight of limb k + 1 */

    mul_row<N>(even, a, b[0]);
    mul_row<N>(odd, a + 1, b[0]);
    even[N] = 0;
    UNROLL
    for (int i = 1; i < N; i++) {
        if (i & 1) {
            mad_row_carry<N>(odd + i - 1, a, b[i]);
            mad_row_new<N>(even + i + 1, a + 1, b[i]);
        } else {
            mad_row_carry<N>(even + i, a, b[i]);
            mad_row_new<N>(odd + i, a + 1, b[i]);
        }
    }
    r[0] = even[0];
    r[1] = add_cc(even[1], odd[0]);
    UNROLL
    for (int k = 2; k < 2 * N - 1; k++)
        r[k] = addc_cc(even[k], odd[k - 1]);
    r[2 * N - 1] = addc(even[2 * N - 1], odd[2 * N - 2]);
#else
    for (int k = 0; k < N; k++)
        r[k] = 0;
    for (int i = 0; i < N; i++) {
        uint64_t t = 0;
        for (int j = 0; j < N; j++) {
            t += (uint64_t)a[j] * b[i] + r[i + j];
            r[i + j] = (uint32_t)t;
            t >>= 32;
        }
        r[i + N] = (uint32_t)t;
    }
#endif
}

#endif
