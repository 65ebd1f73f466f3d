/*
 * The project's C headers for CUDA sources and C++ tests. They are included here, in one place, with C linkage; the system
 * headers that they pull in come first, so that none of those is read inside the extern "C" block.
 */
#ifndef GPU_CUDA_C_HEADERS_CUH
#define GPU_CUDA_C_HEADERS_CUH

#include <cerrno>
#include <cstdarg>
#include <cstdbool>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <blst.h>

extern "C" {
#include "gpu/curve.h"
#include "numa/workers.h"
}

#endif
