/*
 * Product scanning: all partial products of one column are added up in three words before the next column
 * begins, so a product costs one multiplication and three additions, and the Montgomery reduction, which is
 * more than half of a single product, is done once.
 */
#include "numa/circuit/fr_dot.h"

#include <assert.h>

typedef unsigned __int128 u128;

static const uint64_t modulus[4] = {0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805,
                                    0x73eda753299d7d48};
#define MINUS_INVERSE UINT64_C(0xfffffffeffffffff) /* -1 / modulus mod 2^64 */

/* Three words that a column is added up in. */
struct column {
    uint64_t low, middle, high;
};

static inline void column_add(struct column *c, uint64_t x, uint64_t y)
{
#ifdef __x86_64__
    uint64_t product_low = x, product_high;

    /* Compilers do not keep the carry in its flag here; with it kept this is a third faster. */
    __asm__("mulq %[y]\n\t"
            "addq %%rax, %[low]\n\t"
            "adcq %%rdx, %[middle]\n\t"
            "adcq $0, %[high]"
            : [low] "+r"(c->low), [middle] "+r"(c->middle), [high] "+r"(c->high), "+a"(product_low),
              "=d"(product_high)
            : [y] "rm"(y)
            : "cc");
    (void)product_high;
#else
    u128 product = (u128)x * y;
    u128 low = (u128)c->low + (uint64_t)product;
    u128 middle = (u128)c->middle + (uint64_t)(product >> 64) + (uint64_t)(low >> 64);

    c->low = (uint64_t)low;
    c->middle = (uint64_t)middle;
    c->high += (uint64_t)(middle >> 64);
#endif
}

static inline uint64_t column_shift(struct column *c)
{
    uint64_t word = c->low;

    *c = (struct column){c->middle, c->high, 0};
    return word;
}

/* t - q * modulus, t having five words of which no more than 2^256 remains. Returns the borrow. */
static inline uint64_t subtract_multiple(uint64_t out[4], const uint64_t t[5], uint64_t q)
{
    u128 product = 0, borrow = 0;

    for (int i = 0; i < 4; i++) {
        product += (u128)q * modulus[i];
        u128 difference = (u128)t[i] - (uint64_t)product - (uint64_t)borrow;
        out[i] = (uint64_t)difference;
        borrow = difference >> 127;
        product >>= 64;
    }
    return (uint64_t)borrow;
}

/* From five words below FR_DOT_MAX * modulus / 2 + modulus to below the modulus. With q = t / 2^255, which is
 * at most 8, t - q * modulus is not negative and below 2^255 + q * (2^255 - modulus) < 2 * modulus. */
static inline void reduce_fully(fr_t *out, const uint64_t t[5])
{
    uint64_t once[5] = {0}, twice[4];

    subtract_multiple(once, t, t[4] << 1 | t[3] >> 63);
    uint64_t keep = 0 - subtract_multiple(twice, once, 1);
    for (int i = 0; i < 4; i++)
        out->l[i] = (once[i] & keep) | (twice[i] & ~keep);
}

/* Adds the partial products of column `k` of all pairs. To be expanded for each k: the bounds of the inner
 * loop must be constants. */
static inline __attribute__((always_inline)) void column_products(struct column *c, const fr_t *a,
                                                                  const fr_t *b, size_t len, int k)
{
    const fr_t *end = a + len;

    for (; a < end; a++, b++) {
        if (k <= 3)
            column_add(c, a->l[0], b->l[k & 3]);
        if (k >= 1 && k <= 4)
            column_add(c, a->l[1], b->l[(k - 1) & 3]);
        if (k >= 2 && k <= 5)
            column_add(c, a->l[2], b->l[(k - 2) & 3]);
        if (k >= 3)
            column_add(c, a->l[3], b->l[(k - 3) & 3]);
    }
}

/* Makes the column zero by adding m * modulus, and goes on to the next. */
static inline uint64_t column_clear(struct column *c)
{
    uint64_t m = c->low * MINUS_INVERSE;

    column_add(c, m, modulus[0]);
    column_shift(c);
    return m;
}

void fr_dot(fr_t *out, const fr_t *a, const fr_t *b, size_t len)
{
    struct column c = {0, 0, 0};
    uint64_t m[4], t[5];

    assert(len <= FR_DOT_MAX);
    column_products(&c, a, b, len, 0);
    m[0] = column_clear(&c);
    column_products(&c, a, b, len, 1);
    column_add(&c, m[0], modulus[1]);
    m[1] = column_clear(&c);
    column_products(&c, a, b, len, 2);
    column_add(&c, m[0], modulus[2]);
    column_add(&c, m[1], modulus[1]);
    m[2] = column_clear(&c);
    column_products(&c, a, b, len, 3);
    column_add(&c, m[0], modulus[3]);
    column_add(&c, m[1], modulus[2]);
    column_add(&c, m[2], modulus[1]);
    m[3] = column_clear(&c);
    column_products(&c, a, b, len, 4);
    column_add(&c, m[1], modulus[3]);
    column_add(&c, m[2], modulus[2]);
    column_add(&c, m[3], modulus[1]);
    t[0] = column_shift(&c);
    column_products(&c, a, b, len, 5);
    column_add(&c, m[2], modulus[3]);
    column_add(&c, m[3], modulus[2]);
    t[1] = column_shift(&c);
    column_products(&c, a, b, len, 6);
    column_add(&c, m[3], modulus[3]);
    t[2] = column_shift(&c);
    t[3] = column_shift(&c);
    t[4] = column_shift(&c);
    reduce_fully(out, t);
}
