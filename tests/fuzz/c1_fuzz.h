/*
 * What the fuzz targets of the C1 reader share.
 *
 * The first bytes of an input say how it is used: its own bytes as a file, or its bytes put somewhere into a
 * real one, which leads the fuzzer deep into a document that it would not find by itself.
 */
#ifndef TESTS_FUZZ_C1_FUZZ_H
#define TESTS_FUZZ_C1_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_reader.h"
#include "tests/lib/c1_forms.h"
#include "tests/lib/files.h"

#define FUZZ_HEADER_BYTES 8

/* Reads `t` in chunks of `chunk` bytes. */
static inline int fuzz_read(const struct text *t, size_t chunk, enum c1_checks checks,
                            struct c1 **out)
{
    struct c1_reader *r = NULL;
    struct c1_extra extra;
    struct errmsg err;
    int ret = c1_reader_create(checks, NULL, &r);

    for (size_t at = 0; at < t->len && ret == 0; at += chunk)
        ret = c1_reader_feed(r, t->bytes + at, min_size(chunk, t->len - at), &err);
    if (ret == 0)
        ret = c1_reader_finish(r, out, &extra, &err);
    c1_reader_destroy(r);
    return ret;
}

static inline void fuzz_require(bool holds)
{
    if (!holds)
        abort();
}

/* What is accepted is the same content however it was cut, and stands the checks of the decoded form. */
static inline void fuzz_compare(struct c1 *a, struct c1 *b)
{
    struct c1 *again = NULL;
    size_t len_a, len_b;
    const uint8_t *bytes_a = c1_bincode(a, &len_a), *bytes_b = c1_bincode(b, &len_b);
    uint8_t *copy = malloc(len_a);

    fuzz_require(len_a == len_b && memcmp(bytes_a, bytes_b, len_a) == 0);
    memcpy(copy, bytes_a, len_a);
    fuzz_require(c1_from_bincode(copy, len_a, &again, NULL) == 0);
    c1_destroy(again);
}

/* Reads as a whole and in small chunks, and compares. */
static inline void fuzz_text(const struct text *t, size_t chunk, enum c1_checks checks)
{
    struct c1 *whole = NULL, *pieces = NULL;
    int ret = fuzz_read(t, t->len + 1, checks, &whole);

    fuzz_require(fuzz_read(t, chunk, checks, &pieces) == ret);
    if (ret == 0)
        fuzz_compare(whole, pieces);
    c1_destroy(whole);
    c1_destroy(pieces);
}

/* header: mode, chunk, checks (few are strict: they take long), 3 bytes of position, bytes to leave out, which file. */
static inline void fuzz_one(const struct text *real, const uint8_t *data, size_t len)
{
    struct text t = {0};

    if (len < FUZZ_HEADER_BYTES)
        return;
    const uint8_t *bytes = data + FUZZ_HEADER_BYTES;
    size_t bytes_len = len - FUZZ_HEADER_BYTES;
    if (data[0] % 2 == 0) {
        text_add(&t, bytes, bytes_len);
    } else {
        size_t at = ((size_t)data[3] << 16 | (size_t)data[4] << 8 | data[5]) % real->len;
        size_t skip = min_size(data[6], real->len - at);
        text_add(&t, real->bytes, at);
        text_add(&t, bytes, bytes_len);
        text_add(&t, real->bytes + at + skip, real->len - at - skip);
    }
    fuzz_text(&t, 1 + data[1] * (size_t)data[1],
              data[2] % 16 == 15 ? C1_CHECK_STRICT : C1_CHECK_FORM);
    free(t.bytes);
}

#endif
