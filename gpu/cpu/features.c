/*
 * The compiler's runtime asks CPUID, and XCR0 for whether the system saves the registers.
 */
#include "gpu/cpu/features.h"

static enum cpu_code most = CPU_IFMA;

const char *cpu_code_name(enum cpu_code code)
{
    static const char *const names[CPU_CODES] = {"plain", "AVX2", "IFMA"};

    return names[code];
}

bool cpu_has(enum cpu_code code)
{
    if (code > most)
        return false;
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool ifma = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512ifma");
    return code == CPU_PLAIN || (code == CPU_AVX2 && avx2) || (code == CPU_IFMA && ifma);
#else
    return code == CPU_PLAIN;
#endif
}

void cpu_use_at_most(enum cpu_code code)
{
    most = code;
}
