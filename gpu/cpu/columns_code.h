/*
 * The inside of columns.c: what a way of keeping columns consists of.
 */
#ifndef GPU_CPU_COLUMNS_CODE_H
#define GPU_CPU_COLUMNS_CODE_H

#include "gpu/cpu/columns.h"

/* As the functions of columns.h, on columns that `create` made. */
struct columns_code {
    size_t batch;
    struct columns *(*create)(const struct group *group, size_t len);
    void (*destroy)(struct columns *c);
    void (*clear)(struct columns *c, size_t at, size_t len);
    void (*add)(struct columns *c, size_t at, const struct addends *add,
                const struct addends *next);
    void (*add_columns)(struct columns *c, size_t to, size_t from, size_t len);
    void (*store)(struct columns *c, size_t at, size_t len, void *out);
};

/* First member of every way's own struct. */
struct columns {
    const struct columns_code *code;
    const struct group *group;
};

/* Eight columns to a vector, for CPUs with AVX-512 IFMA; NULL on others. */
const struct columns_code *columns_ifma(const struct group *group);

#endif
