/*
 * Arrays that grow while tables are made. Without memory nothing is appended and a flag is set, to be looked at once at the end.
 */
#ifndef CIRCUIT_GROWING_H
#define CIRCUIT_GROWING_H

#include <stdbool.h>
#include <stdlib.h>

/* Start from zeros; `len` elements are there. free() `at`. */
#define GROWING(type)     \
    struct {              \
        type *at;         \
        size_t len, room; \
    }

/* `at` with room for one more element, or as it is, with *failed set. */
static inline void *growing_reserve(void *at, size_t *room, size_t len, size_t bytes, bool *failed)
{
    const size_t wanted = *room + *room / 2 + 256;

    if (len < *room)
        return at;
    void *out = realloc(at, wanted * bytes);
    if (!out) {
        *failed = true;
        return at;
    }
    *room = wanted;
    return out;
}

#define GROWING_PUSH(failed, array, ...)                                                          \
    do {                                                                                          \
        (array).at = growing_reserve((array).at, &(array).room, (array).len, sizeof(*(array).at), \
                                     (failed));                                                   \
        if ((array).len < (array).room)                                                           \
            (array).at[(array).len++] = (__VA_ARGS__);                                            \
    } while (0)

/* Moves an array to `to`, without its spare room but one element. */
#define GROWING_TAKE(to, array)                                                        \
    do {                                                                               \
        void *fitting_ = realloc((array).at, ((array).len + 1) * sizeof(*(array).at)); \
        (to) = fitting_ ? fitting_ : (array).at;                                       \
        (array).at = NULL;                                                             \
    } while (0)

#endif
