/*
 * For test and bench programs on a GPU: one that skips where there is none, data on the device, points of known logarithm.
 */
#ifndef TESTS_GPU_DEVICE_TEST_CUH
#define TESTS_GPU_DEVICE_TEST_CUH

#include "gpu/cuda/c_headers.cuh"
#include "gpu/cuda/msm.cuh"
#include "gpu/cuda/ntt.cuh"

#include <cstdio>
#include <vector>

extern "C" {
#include "gpu/cpu/fixed_base.h"
#include "tests/lib/random_group.h"
}

/* Ends the program with a message if a call failed. */
#define MUST(call)                                                                        \
    do {                                                                                  \
        struct errmsg must_err = {};                                                      \
        struct errmsg *err = &must_err;                                                   \
        if ((call) < 0) {                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, must_err.text); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#define MUST_CUDA(call)                                                   \
    do {                                                                  \
        cudaError_t must_status = (call);                                 \
        if (must_status != cudaSuccess) {                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                    cudaGetErrorString(must_status));                     \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

/* Opens the first GPU; without one prints why and ends with 77. Prints its name. */
static inline void open_gpu_or_skip(gpu &g)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    cudaDeviceProp prop;

    if (status != cudaSuccess || count == 0) {
        printf("%s\nno GPU\n", cudaGetErrorString(status));
        exit(77);
    }
    MUST(g.open(0, RANK_FIRST, err));
    MUST(msm_prepare<fp>(g, err));
    MUST(msm_prepare<fp2>(g, err));
    MUST_CUDA(cudaGetDeviceProperties(&prop, 0));
    printf("%s, %d multiprocessors\n", prop.name, prop.multiProcessorCount);
}

template <class To, class From> To as(const From &from)
{
    static_assert(sizeof(To) == sizeof(From), "one layout");
    To to;

    memcpy(&to, &from, sizeof(to));
    return to;
}

template <class T> void to_device(device_buffer<T> &d, const std::vector<T> &v, gpu &g)
{
    MUST(d.allocate(v.size() + 1, err)); /* sum_points may write one more */
    MUST_CUDA(cudaMemcpy(d.ptr, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    MUST_CUDA(cudaDeviceSynchronize()); /* g's streams do not wait for the copy */
    (void)g;
}

template <class T> std::vector<T> from_device(const T *d, size_t len, gpu &g)
{
    std::vector<T> v(len);

    MUST_CUDA(cudaStreamSynchronize(g.main.handle));
    MUST_CUDA(cudaMemcpy(v.data(), d, len * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

/* generator * log, by groups */
static inline void points_of(const std::vector<fr_t> &logs, std::vector<g1_point> &out,
                             struct workers *w)
{
    struct fixed_base *table;

    out.resize(logs.size());
    g1_affine_t base = *blst_p1_affine_generator();
    MUST(fixed_base_g1_create(&base, 10, w, &table, err));
    MUST(fixed_base_g1_mul(table, w, logs.data(), logs.size(), (g1_affine_t *)out.data(), err));
    fixed_base_destroy(table);
}

static inline void points_of(const std::vector<fr_t> &logs, std::vector<g2_point> &out,
                             struct workers *w)
{
    struct fixed_base *table;

    out.resize(logs.size());
    g2_affine_t base = *blst_p2_affine_generator();
    MUST(fixed_base_g2_create(&base, 10, w, &table, err));
    MUST(fixed_base_g2_mul(table, w, logs.data(), logs.size(), (g2_affine_t *)out.data(), err));
    fixed_base_destroy(table);
}

static inline bool is_multiple(const g1_t &p, const fr_t &log)
{
    g1_t want = {};

    g1_mul_add(&want, blst_p1_generator(), &log);
    return blst_p1_is_equal(&p, &want);
}

static inline bool is_multiple(const g2_t &p, const fr_t &log)
{
    g2_t want = {};

    g2_mul_add(&want, blst_p2_generator(), &log);
    return blst_p2_is_equal(&p, &want);
}

#endif
