/*
 * Whole files for tests. A file that is missing or broken ends the test program with a message.
 */
#ifndef TESTS_LIB_FILES_H
#define TESTS_LIB_FILES_H

#include "numa/base.h"

/* Those of tests/vectors/c1, NULL at the end. */
extern const char *const c1_names[];

/* "tests/vectors/c1/NAME/FILE", in a buffer that the next call reuses. */
const char *c1_path(const char *name, const char *file);

/* A whole file, malloc'ed, decompressed if its name ends in .zst, with a NUL after its end. */
uint8_t *file_read(const char *path, size_t *len);

#endif
