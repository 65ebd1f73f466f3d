#include "daemon/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/partition.h"
#include "daemon/test_work.h"
#include "numa/circuit/c1_check.h"
#include "numa/circuit/witness.h"

struct document {
    struct c1 *c1; /* NULL: the test kind */
    struct test_document test;
    struct sim *sim;
};

static int read_test(const char *text, size_t len, struct document *d, struct errmsg *err)
{
    if (!d->sim)
        return errmsg_set(err, -EBADMSG, "a test document, and no simulated device to work on it");
    return test_document_parse(text, len, &d->test, err);
}

static int read_c1(int fd, struct document *d, struct errmsg *err)
{
    int ret = c1_from_fd(fd, &d->c1, err);

    if (ret == 0)
        ret = c1_check_roots(d->c1, err);
    if (ret == 0)
        ret = c1_check_graph(d->c1, c1_seal_proof(d->c1), err);
    return ret;
}

int document_from_fd(int fd, struct sim *sim, struct document **out, struct errmsg *err)
{
    char text[TEST_DOCUMENT_BYTES_MAX];
    ssize_t len = pread(fd, text, sizeof(text), 0);

    if (len < 0)
        return errmsg_set(err, -errno, "cannot read the document: %s", strerror(errno));
    struct document *d = calloc(1, sizeof(*d));
    if (!d)
        return errmsg_set(err, -ENOMEM, "no memory for a document");
    d->sim = sim;
    int ret = test_document_match(text, (size_t)len) == TEST_DOCUMENT_YES ? read_test(text, (size_t)len, d, err)
                                                      : read_c1(fd, d, err);
    if (ret < 0) {
        document_destroy(d);
        return ret;
    }
    *out = d;
    return 0;
}

void document_destroy(struct document *d)
{
    if (!d)
        return;
    c1_destroy(d->c1);
    free(d);
}

const struct sector_size *document_size(const struct document *d)
{
    return d->c1 ? c1_size(d->c1) : NULL;
}

uint32_t document_partitions(const struct document *d)
{
    return d->c1 ? c1_partitions(d->c1) : d->test.partitions;
}

void document_slot_bytes(const struct sector_size *size, const struct sim *sim,
                         struct slots_shape *out)
{
    struct assignment_parts parts;

    if (!size) {
        out->witness_bytes = sim_witness_bytes(sim);
        out->evaluation_bytes = sim_evaluation_bytes(sim);
        return;
    }
    assignment_parts(size, &parts);
    out->witness_bytes = parts.witness_bytes;
    out->evaluation_bytes = parts.evaluation_bytes;
}

static int synthesize_test(const struct document *d, uint32_t partition, const struct slot *slot,
                           struct assignment *w, struct errmsg *err)
{
    test_work_place(slot->witness, sim_witness_bytes(d->sim), slot->evaluation,
                        slot->evaluation ? sim_evaluation_bytes(d->sim) : 0, w);
    test_work_fill(&d->test, partition, w);
    return sim_spend(d->sim, SIM_SYNTHESIS, err);
}

int document_synthesize(const struct document *d, uint32_t partition, struct workers *workers,
                        const struct slot *slot, struct assignment *w, struct errmsg *err)
{
    if (!d->c1)
        return synthesize_test(d, partition, slot, w, err);
    assignment_place(c1_size(d->c1), slot->witness, slot->evaluation, w);
    return witness_fill(d->c1, partition, workers, w, err);
}

int document_synthesize_compact(const struct document *d, uint32_t partition,
                                struct workers *workers, const struct slot *slot,
                                const struct circuit *circuit, struct compact *w,
                                struct errmsg *err)
{
    compact_place(w, circuit, slot->witness);
    return compact_make(w, d->c1, partition, workers, err);
}

int document_check(const struct document *d, uint32_t partition, const struct vk *vk,
                   const uint8_t proof[PROOF_BYTES], bool *valid, struct errmsg *err)
{
    uint8_t expected[PROOF_BYTES];

    if (d->c1)
        return partition_check(d->c1, partition, vk, proof, valid, err);
    test_work_proof(&d->test, partition, expected);
    *valid = memcmp(proof, expected, PROOF_BYTES) == 0;
    return 0;
}
