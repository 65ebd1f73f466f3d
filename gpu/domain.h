/*
 * The domain that a circuit's rows live on: 2^log2_len roots of unity in F_r, and the coset beside it (c2-formats 6.2).
 *
 * Any thread may call anything here.
 */
#ifndef GPU_DOMAIN_H
#define GPU_DOMAIN_H

#include "numa/circuit/fr.h"

#define DOMAIN_LOG2_LEN_MAX 32 /* 2^32 divides r - 1 */

/* The generator of the 2^log2_len-th roots of unity that the parameters are made for. */
fr_t domain_root(uint32_t log2_len);

/* 7, which generates the multiplicative group: the domain times it is the coset. */
fr_t domain_coset_shift(void);

/* base^exponent */
fr_t fr_power(const fr_t *base, uint64_t exponent);

#endif
