/*
 * Eight elements at a time. They are transposed into lanes and back by shuffles alone, which is why a product of two vectors costs little
 * more than reading them.
 */
#include "gpu/cpu/fr_vectors.h"

#if defined(__x86_64__)

#include "gpu/cpu/fr8.h"

#define LANES 8

static struct fr8 load(const fr_t *in)
{
    struct fr8_words words = fr8_words_load(in);

    return fr8_of_words(&words);
}

/* Loose becomes eight elements. */
static void store(fr_t *out, struct fr8 *x)
{
    fr8_canonical(x);
    fr8_store(out, x);
}

size_t fr_vectors_multiply_ifma(fr_t *out, const fr_t *x, const fr_t *y, size_t len)
{
    const size_t whole = len / LANES * LANES;

    for (size_t i = 0; i < whole; i += LANES) {
        struct fr8_words words = fr8_words_load(y + i);
        struct fr8 a = load(x + i), b = fr8_factor_of_words(&words), product;
        fr8_mul(&product, &a, &b);
        store(out + i, &product);
    }
    _mm_sfence();
    return whole;
}

size_t fr_vectors_subtract_scale_ifma(fr_t *out, const fr_t *x, const fr_t *y, size_t len,
                                      const fr_t *factor)
{
    const size_t whole = len / LANES * LANES;
    const struct fr_factor52 one = fr_factor52_make(factor);
    const struct fr8 by = fr8_broadcast(&one);

    for (size_t i = 0; i < whole; i += LANES) {
        struct fr8 a = load(x + i), b = load(y + i), difference, product;
        fr8_sub(&difference, &a, &b);
        fr8_carry(&difference);
        fr8_mul(&product, &difference, &by);
        store(out + i, &product);
    }
    _mm_sfence();
    return whole;
}

#else

size_t fr_vectors_multiply_ifma(fr_t *out, const fr_t *x, const fr_t *y, size_t len)
{
    (void)out, (void)x, (void)y, (void)len;
    return 0;
}

size_t fr_vectors_subtract_scale_ifma(fr_t *out, const fr_t *x, const fr_t *y, size_t len,
                                      const fr_t *factor)
{
    (void)out, (void)x, (void)y, (void)len, (void)factor;
    return 0;
}

#endif
