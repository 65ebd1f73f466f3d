/*
 * Opens the shared object and never closes it: a backend's code must outlive it, and CUDA does not like to be unloaded.
 */
#include "gpu/backend_cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OBJECT "libproofd-cuda.so"
#ifndef PROOFD_LIBDIR
#define PROOFD_LIBDIR "/usr/local/lib/proofd"
#endif

/* The object's path beside the running program; false when that cannot be told. */
static bool beside_program(char out[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", out, PATH_MAX - sizeof(OBJECT));

    if (len <= 0 || len >= PATH_MAX - (ssize_t)sizeof(OBJECT))
        return false;
    out[len] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash)
        return false;
    memcpy(slash + 1, OBJECT, sizeof(OBJECT));
    return true;
}

/* The first of the two that is there; what dlopen says of one that is there but broken is worth more than of one that is not. */
static int open_object(void **out, struct errmsg *err)
{
    char beside[PATH_MAX];
    const char *path = PROOFD_LIBDIR "/" OBJECT;

    if (beside_program(beside) && access(beside, F_OK) == 0)
        path = beside;
    else if (access(path, F_OK) != 0)
        return errmsg_set(err, -ENOENT,
                          "no %s beside the program or in %s: proofd was built without nvcc",
                          OBJECT, PROOFD_LIBDIR);
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*out)
        return errmsg_set(err, -ENOENT, "%s", dlerror());
    return 0;
}

int backend_cuda_create(int device, struct workers *workers, struct backend **out,
                        struct errmsg *err)
{
    void *object;
    backend_cuda_open_fn *open_backend = NULL;
    int ret = open_object(&object, err);

    if (ret < 0)
        return ret;
    void *symbol = dlsym(object, "backend_cuda_open");
    if (!symbol)
        return errmsg_set(err, -EINVAL, "%s has no backend_cuda_open", OBJECT);
    memcpy(&open_backend, &symbol, sizeof(symbol)); /* C has no cast from object to function */
    ret = open_backend(BACKEND_CUDA_ABI, device, workers, out, err);
    if (ret < 0)
        errmsg_prefix(err, ret, "GPU %d", device);
    return ret;
}
