#include "gpu/domain.h"

fr_t fr_power(const fr_t *base, uint64_t exponent)
{
    fr_t out = fr_from_u64(1);

    for (int bit = 63; bit >= 0; bit--) {
        fr_sqr(&out, &out);
        if (exponent >> bit & 1)
            fr_mul(&out, &out, base);
    }
    return out;
}

fr_t domain_coset_shift(void)
{
    return fr_from_u64(7);
}

fr_t domain_root(uint32_t log2_len)
{
    /* 7^((r-1) / 2^32), in Montgomery form. */
    fr_t root = {{0xb9b58d8c5f0e466a, 0x5b1b4c801819d7ec, 0x0af53ae352a31e64, 0x5bf3adda19e9b27b}};

    for (uint32_t i = log2_len; i < DOMAIN_LOG2_LEN_MAX; i++)
        fr_sqr(&root, &root);
    return root;
}
