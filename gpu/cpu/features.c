#include "gpu/cpu/features.h"

static bool plain_code;

bool cpu_has_avx2(void)
{
#if defined(__x86_64__)
    return !plain_code && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

void cpu_use_plain_code(bool plain)
{
    plain_code = plain;
}
