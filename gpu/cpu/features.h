/*
 * What this CPU has beyond the baseline, asked once for all vectorized code.
 *
 * Any thread may ask; cpu_use_at_most is for tests and benches, while nothing else runs.
 */
#ifndef GPU_CPU_FEATURES_H
#define GPU_CPU_FEATURES_H

#include <stdbool.h>

/* Ways of doing the same arithmetic; each includes those before it. */
enum cpu_code {
    CPU_PLAIN,
    CPU_AVX2, /* with FMA */
    CPU_IFMA, /* AVX-512 F, BW, DQ, VL and IFMA */
    CPU_CODES
};

/* "plain" and the like. */
const char *cpu_code_name(enum cpu_code code);

/* Whether the CPU and the system can do it, and nobody asked for less. */
bool cpu_has(enum cpu_code code);

/* Makes the CPU look as if it had no more than this, so that what is meant for other CPUs can be tested here. */
void cpu_use_at_most(enum cpu_code code);

#endif
