/*
 * References to points, as lists of pairs hold them (add_pairs.cuh).
 */
#ifndef GPU_CUDA_REFS_CUH
#define GPU_CUDA_REFS_CUH

#include <cstdint>

/* A reference to a point: an index into the inputs, or into the results, and a sign. */
static constexpr uint32_t REF_NEGATIVE = 1u << 31, REF_RESULT = 1u << 30,
                          REF_INDEX = REF_RESULT - 1;

#endif
