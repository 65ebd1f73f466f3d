/*
 * The work that documents of the test kind ask for: "witnesses" and "proofs" of nothing, which say what they are, so that a mix-up is
 * noticed and nobody takes them for more.
 *
 * Any thread may call anything here.
 */
#ifndef DAEMON_TEST_WORK_H
#define DAEMON_TEST_WORK_H

#include "gpu/proof.h"
#include "numa/circuit/assignment.h"
#include "numa/circuit/test_document.h"

/* The "proof" of a partition. */
void test_work_proof(const struct test_document *doc, uint32_t partition, uint8_t out[PROOF_BYTES]);

/*
 * The "witness" of a partition: each page of both parts is marked with what it belongs to, so that memory that is handed to somebody
 * else too early is noticed.
 */

/* Lays an assignment of no circuit (size is NULL) out over two parts of a slot; evaluation_bytes may be 0. */
void test_work_place(void *witness, size_t witness_bytes, void *evaluation, size_t evaluation_bytes,
                     struct assignment *out);
void test_work_fill(const struct test_document *doc, uint32_t partition, struct assignment *w);
/* Whose witness, or evaluation, this is: 0 when all pages are one partition's, else -EIO with the page that is not. */
int test_work_read_witness(const struct assignment *w, struct test_document *doc,
                           uint32_t *partition, struct errmsg *err);
int test_work_read_evaluation(const struct assignment *w, struct test_document *doc,
                              uint32_t *partition, struct errmsg *err);

#endif
