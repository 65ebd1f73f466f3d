/*
 * A thread that does one thing at a time for another.
 */
#ifndef GPU_CUDA_HELPER_CUH
#define GPU_CUDA_HELPER_CUH

#include "gpu/cuda/c_headers.cuh"

#include <pthread.h>

struct helper {
    helper() = default;
    helper(const helper &) = delete;
    helper &operator=(const helper &) = delete;
    ~helper();

    /* All signals are blocked in it. -EAGAIN. */
    int create(const char *name, struct errmsg *err);
    /* Calls body(ctx) there; the call before has been waited for. */
    void begin(void (*body)(void *ctx), void *ctx);
    void wait();

  private:
    static void *main(void *self);

    pthread_t thread;
    bool created = false;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    /* guarded by lock: */
    void (*body)(void *ctx) = nullptr; /* NULL: nothing to do */
    void *ctx = nullptr;
    bool stop = false;
};

#endif
