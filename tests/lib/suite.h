/*
 * The end of a Check program's main().
 */
#ifndef TESTS_LIB_SUITE_H
#define TESTS_LIB_SUITE_H

#include <check.h>

/* The tag of cases in which there is one thread: a sanitizer of threads sees nothing in them (make check-threads). */
#define ONE_THREAD "one-thread"

/* Says that a test is left out, and what the machine lacks. */
void suite_skip(const char *test, const char *lacks);

/* A test without a time-out of its own has one of five minutes. Runs `s`, prints "N passed, N failed, N skipped" and returns the exit status of the program. */
int suite_run(Suite *s);

#endif
