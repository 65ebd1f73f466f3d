/*
 * A directory that stands for / with a /proc and /sys of a machine that is not there. Check programs.
 */
#ifndef TESTS_LIB_FAKE_ROOT_H
#define TESTS_LIB_FAKE_ROOT_H

/* Makes an empty one and returns its path, in a buffer that the next call reuses. */
const char *fake_root_make(void);
/* Writes the file ROOT/NAME, making its directories. */
void fake_root_put(const char *name, const char *text);
void fake_root_remove(void);

#endif
