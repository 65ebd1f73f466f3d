#include "gpu/cpu/fr_vectors.h"

#include "gpu/cpu/features.h"

void fr_vectors_multiply(fr_t *out, const fr_t *x, const fr_t *y, size_t len)
{
    size_t done = cpu_has(CPU_IFMA) ? fr_vectors_multiply_ifma(out, x, y, len) : 0;

    for (size_t i = done; i < len; i++)
        fr_mul(&out[i], &x[i], &y[i]);
}

void fr_vectors_subtract_scale(fr_t *out, const fr_t *x, const fr_t *y, size_t len,
                               const fr_t *factor)
{
    size_t done = cpu_has(CPU_IFMA) ? fr_vectors_subtract_scale_ifma(out, x, y, len, factor) : 0;

    for (size_t i = done; i < len; i++) {
        fr_sub(&out[i], &x[i], &y[i]);
        fr_mul(&out[i], &out[i], factor);
    }
}
