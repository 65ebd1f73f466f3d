#include "gpu/cuda/msm_impl.cuh"

MSM_INSTANTIATE(fp2);
