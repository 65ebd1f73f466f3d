/*
 * A C1 that is a line of text, "C1 ... END", with thirteen partitions, and a reader for it. A test program that includes this
 * defines the reader for itself, before the library's is looked for: what is tested is what happens to jobs.
 */
#ifndef TESTS_LIB_FAKE_C1_H
#define TESTS_LIB_FAKE_C1_H

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_reader.h"

#define FAKE_PARTITIONS 13
#define FAKE_PROOF_ID 15 /* of 2 KiB, with thirteen partitions */
#define FAKE_DOCUMENT_BYTES 160

/* Document `number`; no two are alike. */
static void fake_document(char out[FAKE_DOCUMENT_BYTES], int number)
{
    snprintf(out, FAKE_DOCUMENT_BYTES,
             "C1 document %d, %d partitions, and some more bytes so that it can be torn END",
             number, FAKE_PARTITIONS);
}

struct c1 {
    uint8_t bytes[512];
    size_t len;
};

struct c1_reader {
    struct c1 c1;
};

int c1_reader_create(enum c1_checks checks, struct workers *workers, struct c1_reader **out)
{
    (void)checks;
    (void)workers;
    *out = calloc(1, sizeof(**out));
    return *out ? 0 : -ENOMEM;
}

void c1_reader_destroy(struct c1_reader *r)
{
    free(r);
}

int c1_reader_feed(struct c1_reader *r, const void *bytes, size_t len, struct errmsg *err)
{
    if (len > sizeof(r->c1.bytes) - r->c1.len)
        return errmsg_set(err, -EFBIG, "too long");
    memcpy(r->c1.bytes + r->c1.len, bytes, len);
    r->c1.len += len;
    if (memcmp(r->c1.bytes, "C1", min_size(2, r->c1.len)) != 0)
        return errmsg_set(err, -EBADMSG, "does not begin with C1");
    return 0;
}

int c1_reader_finish(struct c1_reader *r, struct c1 **out, struct c1_extra *extra,
                     struct errmsg *err)
{
    memset(extra, 0, sizeof(*extra));
    if (r->c1.len < 5 || memcmp(r->c1.bytes + r->c1.len - 3, "END", 3) != 0)
        return errmsg_set(err, -EBADMSG, "does not end with END");
    *out = malloc(sizeof(**out));
    **out = r->c1;
    return 0;
}

void c1_destroy(struct c1 *c1)
{
    free(c1);
}

const uint8_t *c1_bincode(const struct c1 *c1, size_t *len)
{
    *len = c1->len;
    return c1->bytes;
}

void c1_content_id(const struct c1 *c1, uint8_t id[DIGEST_BYTES])
{
    SHA256(c1->bytes, c1->len, id);
}

const struct seal_proof *c1_seal_proof(const struct c1 *c1)
{
    (void)c1;
    return seal_proof_by_id(FAKE_PROOF_ID);
}

const struct sector_size *c1_size(const struct c1 *c1)
{
    return c1_seal_proof(c1)->size;
}

uint32_t c1_partitions(const struct c1 *c1)
{
    (void)c1;
    return FAKE_PARTITIONS;
}

static const uint8_t zeros[DIGEST_BYTES];

const uint8_t *c1_comm_r(const struct c1 *c1)
{
    (void)c1;
    return zeros;
}

const uint8_t *c1_comm_d(const struct c1 *c1)
{
    (void)c1;
    return zeros;
}

const uint8_t *c1_replica_id(const struct c1 *c1)
{
    (void)c1;
    return zeros;
}

const uint8_t *c1_seed(const struct c1 *c1)
{
    (void)c1;
    return zeros;
}


const struct test_document *c1_test_document(const struct c1 *c1)
{
    (void)c1;
    return NULL;
}

#endif
