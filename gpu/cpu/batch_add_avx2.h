/*
 * Batches of chord additions in G1, four side by side: part of batch_add.c, for CPUs with AVX2 and FMA.
 */
#ifndef GPU_CPU_BATCH_ADD_AVX2_H
#define GPU_CPU_BATCH_ADD_AVX2_H

#include "gpu/cpu/batch_add.h"

/* Adds pairs of points with different x, none at infinity; len is a multiple of four, at most BATCH_ADD_LEN_G1. */
void g1_add_chords_avx2(const struct add_pair *const *pairs, size_t len,
                        struct batch_scratch *scratch);

#endif
