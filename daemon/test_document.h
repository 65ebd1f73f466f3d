/*
 * Jobs of the test kind: documents that ask for so many partitions of work that proves nothing. Only a test configuration takes them,
 * and only a simulated device (sim.h) works on them; pacing, fairness and faults are tested with them, without hardware.
 *
 *     {"proofd-test":{"partitions":10,"seed":1}}
 *
 * Their proofs are texts that say what they are, and no point of any curve.
 *
 * Any thread may call anything here.
 */
#ifndef DAEMON_TEST_DOCUMENT_H
#define DAEMON_TEST_DOCUMENT_H

#include "gpu/proof.h"
#include "numa/circuit/assignment.h"

#define TEST_DOCUMENT_BYTES_MAX 4096
#define TEST_DOCUMENT_PARTITIONS_MAX 1000

struct test_document {
    uint32_t partitions;
    uint64_t seed;
};

/* True for a text that begins like one: not for a JSON object with another first key. */
bool test_document_begins(const void *text, size_t len);
/* 0, or -EBADMSG with what is wrong. */
int test_document_parse(const void *text, size_t len, struct test_document *out,
                        struct errmsg *err);
/* The one way to write it, in `out` of TEST_DOCUMENT_BYTES_MAX bytes. Returns its length. */
size_t test_document_format(const struct test_document *doc, char *out);

/* The "proof" of a partition. */
void test_document_proof(const struct test_document *doc, uint32_t partition,
                         uint8_t out[PROOF_BYTES]);

/*
 * The "witness" of a partition: each page of both parts is marked with what it belongs to, so that memory that is handed to somebody
 * else too early is noticed.
 */

/* Lays an assignment of no circuit (size is NULL) out over two parts of a slot; evaluation_bytes may be 0. */
void test_document_place(void *witness, size_t witness_bytes, void *evaluation,
                         size_t evaluation_bytes, struct assignment *out);
void test_document_fill(const struct test_document *doc, uint32_t partition, struct assignment *w);
/* Whose witness, or evaluation, this is: 0 when all pages are one partition's, else -EIO with the page that is not. */
int test_document_read_witness(const struct assignment *w, struct test_document *doc,
                               uint32_t *partition, struct errmsg *err);
int test_document_read_evaluation(const struct assignment *w, struct test_document *doc,
                                  uint32_t *partition, struct errmsg *err);

#endif
