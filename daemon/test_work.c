#include "daemon/test_work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE 4096
#define MARK UINT64_C(0x747365742d64666f) /* of a page that test_work_fill wrote */

void test_work_proof(const struct test_document *doc, uint32_t partition, uint8_t out[PROOF_BYTES])
{
    memset(out, 0, PROOF_BYTES);
    snprintf((char *)out, PROOF_BYTES,
             "proofd-test seed=%" PRIu64 " partition=%" PRIu32 "/%" PRIu32, doc->seed, partition,
             doc->partitions);
}

struct page_mark {
    uint64_t mark, seed, page;
    uint32_t partition, partitions;
};

_Static_assert(sizeof(struct page_mark) == sizeof(fr_t), "a mark in place of an element");

void test_work_place(void *witness, size_t witness_bytes, void *evaluation, size_t evaluation_bytes,
                     struct assignment *out)
{
    *out = (struct assignment){.inputs = witness,
                               .n_inputs = (uint32_t)(witness_bytes / sizeof(fr_t)),
                               .a = evaluation,
                               .n_rows = evaluation_bytes / sizeof(fr_t)};
}

static void fill(const struct test_document *doc, uint32_t partition, fr_t *memory, size_t len)
{
    for (size_t i = 0; i * PAGE < len * sizeof(fr_t); i++) {
        const struct page_mark mark = {MARK, doc->seed, i, partition, doc->partitions};
        memcpy((char *)memory + i * PAGE, &mark, sizeof(mark));
    }
}

void test_work_fill(const struct test_document *doc, uint32_t partition, struct assignment *w)
{
    fill(doc, partition, w->inputs, w->n_inputs);
    fill(doc, partition, w->a, w->n_rows);
}

static int read_marks(const fr_t *memory, size_t len, struct test_document *doc,
                      uint32_t *partition, struct errmsg *err)
{
    struct page_mark first, mark;

    if (len == 0)
        return 0;
    memcpy(&first, memory, sizeof(first));
    for (size_t i = 0; i * PAGE < len * sizeof(fr_t); i++) {
        memcpy(&mark, (const char *)memory + i * PAGE, sizeof(mark));
        if (mark.mark != MARK || mark.seed != first.seed || mark.page != i ||
            mark.partition != first.partition || mark.partitions != first.partitions)
            return errmsg_set(err, -EIO, "page %zu is not of seed %" PRIu64 " partition %" PRIu32,
                              i, first.seed, first.partition);
    }
    *doc = (struct test_document){.partitions = first.partitions, .seed = first.seed};
    *partition = first.partition;
    return 0;
}

int test_work_read_witness(const struct assignment *w, struct test_document *doc,
                           uint32_t *partition, struct errmsg *err)
{
    int ret = read_marks(w->inputs, w->n_inputs, doc, partition, err);
    return ret < 0 ? errmsg_prefix(err, ret, "witness") : 0;
}

int test_work_read_evaluation(const struct assignment *w, struct test_document *doc,
                              uint32_t *partition, struct errmsg *err)
{
    int ret = read_marks(w->a, w->n_rows, doc, partition, err);
    return ret < 0 ? errmsg_prefix(err, ret, "evaluation") : 0;
}
