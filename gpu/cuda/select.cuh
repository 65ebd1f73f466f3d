/*
 * Which points of a query a witness asks for: those whose scalar is one, to be summed as they are, and those whose scalar is
 * neither zero nor one, for an MSM. Nearly all of a PoRep witness is bits.
 */
#ifndef GPU_CUDA_SELECT_CUH
#define GPU_CUDA_SELECT_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/fr.cuh"

/* Bit i of word i / 32 says something of variable i; the bits past the end are clear. */
static inline size_t bitmap_words(size_t len)
{
    return (len + 31) / 32;
}

/* Sets, of values in canonical Montgomery form, the bits of the ones and of the rest. Queued on the main stream, like all
 * here. */
int classify_values(gpu &g, const fr *values, uint32_t len, uint32_t *ones, uint32_t *rest,
                    struct errmsg *err);

/* rank[w] = the bits set in words before w. `space` of rank_scratch_bytes. */
int rank_bitmap(gpu &g, const uint32_t *bitmap, uint32_t len, uint32_t *rank, scratch space,
                struct errmsg *err);
size_t rank_scratch_bytes(uint32_t len);

/* Some variables of a query. Variable i has a point if its density bit is set (density NULL: always): the one at first_point
 * + the number of dense variables before i. Its value is the one at first_value + i. */
struct selection_part {
    uint32_t len;
    const uint32_t *ones, *rest; /* rest NULL: none */
    const uint32_t *density, *rank;
    uint32_t first_point, first_value;
};

/* Lists on the device, in no particular order, and how long they are. */
struct selection {
    uint32_t *one_points;                /* room for all variables and one more */
    uint32_t *rest_points, *rest_values; /* room for all variables */
    uint32_t *lens;                      /* [2]: ones, rest */
};

/* Appends a part's variables; lens must be zero before the first. */
int select_part(gpu &g, const selection_part &part, const selection &out, struct errmsg *err);

#endif
