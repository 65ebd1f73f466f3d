/*
 * What this CPU has beyond the baseline, asked once for all vectorized code.
 *
 * Any thread may ask; cpu_use_plain_code is for tests, while nothing else runs.
 */
#ifndef GPU_CPU_FEATURES_H
#define GPU_CPU_FEATURES_H

#include <stdbool.h>

/* AVX2 and FMA. */
bool cpu_has_avx2(void);

/* Makes the CPU look as if it had the baseline alone, so that the plain code is tested wherever tests run. */
void cpu_use_plain_code(bool plain);

#endif
