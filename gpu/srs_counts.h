/*
 * How many points the parameters of a size have, section by section (c2-formats 4.1): known before any file is
 * opened, from the circuit.
 *
 * Constant; any thread may use it.
 */
#ifndef GPU_SRS_COUNTS_H
#define GPU_SRS_COUNTS_H

#include "numa/base.h"
#include "numa/circuit/sector.h"

struct srs_counts {
    uint32_t ic; /* inputs with ONE */
    size_t h, l, a, b; /* b: in b_g1 and again in b_g2 */
};

void srs_counts(const struct sector_size *size, struct srs_counts *out);

/* Bytes of a parameter file with these counts. */
uint64_t srs_file_bytes(const struct srs_counts *counts);

/* The same of a file of their transformed points (transformed.h). */
#define SRS_TRANSFORMED_HEAD_BYTES 128
uint64_t srs_transformed_bytes(const struct srs_counts *counts);

#endif
