/*
 * Documents of the test kind: they ask for so many partitions of work that proves nothing. Only a test configuration takes them, and
 * only a simulated device works on them; pacing, fairness and faults are tested with them, without hardware.
 *
 *     {"proofd-test":{"partitions":10,"seed":1}}
 *
 * Any thread may call anything here but test_documents_allow.
 */
#ifndef CIRCUIT_TEST_DOCUMENT_H
#define CIRCUIT_TEST_DOCUMENT_H

#include "numa/base.h"

#define TEST_DOCUMENT_BYTES_MAX 4096
#define TEST_DOCUMENT_PARTITIONS_MAX 100

struct test_document {
    uint32_t partitions;
    uint64_t seed;
};

/* From now on c1_reader takes them: for main(), before there are threads. */
void test_documents_allow(void);
bool test_documents_allowed(void);

/* Whether a text that begins like this is one, going by its first key. */
enum test_document_match { TEST_DOCUMENT_NO, TEST_DOCUMENT_YES, TEST_DOCUMENT_TOO_SHORT };
enum test_document_match test_document_match(const void *text, size_t len);
/* 0, or -EBADMSG with what is wrong. */
int test_document_parse(const void *text, size_t len, struct test_document *out,
                        struct errmsg *err);
/* The one way to write it, in `out` of TEST_DOCUMENT_BYTES_MAX bytes. Returns its length. */
size_t test_document_format(const struct test_document *doc, char *out);

#endif
