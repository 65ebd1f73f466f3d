#include "daemon/grpc/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_reader.h"
#include "numa/circuit/graph.h"

struct facts_reader {
    struct c1_reader *c1;
};

void facts_init(void)
{
    test_documents_allow();
}

int facts_create(struct facts_reader **out)
{
    struct facts_reader *r = calloc(1, sizeof(*r));

    if (!r || c1_reader_create(C1_CHECK_FORM, NULL, &r->c1) < 0) {
        free(r);
        return -ENOMEM;
    }
    *out = r;
    return 0;
}

void facts_destroy(struct facts_reader *r)
{
    if (!r)
        return;
    c1_reader_destroy(r->c1);
    free(r);
}

int facts_feed(struct facts_reader *r, const void *bytes, size_t len, struct errmsg *err)
{
    return c1_reader_feed(r->c1, bytes, len, err);
}

int facts_finish(struct facts_reader *r, struct facts *out, struct errmsg *err)
{
    struct c1_extra extra;
    struct c1 *c1 = NULL;
    int ret = c1_reader_finish(r->c1, &c1, &extra, err);

    if (ret < 0)
        return ret;
    memset(out, 0, sizeof(*out));
    c1_content_id(c1, out->content_id);
    out->test = c1_test_document(c1) != NULL;
    out->sector_bytes = c1_size(c1)->bytes;
    if (!out->test) {
        memcpy(out->replica_id, c1_replica_id(c1), DIGEST_BYTES);
        memcpy(out->ticket, c1_ticket(c1), DIGEST_BYTES);
        memcpy(out->comm_d, c1_comm_d(c1), DIGEST_BYTES);
        seal_proof_porep_id(c1_seal_proof(c1), out->porep_id);
    }
    c1_destroy(c1);
    return 0;
}

/* c2-formats 3: the LEB128 of the actor id, zero filled. */
static void prover_of_miner(uint8_t out[DIGEST_BYTES], uint64_t miner)
{
    size_t i = 0;

    memset(out, 0, DIGEST_BYTES);
    for (; miner >= 0x80; miner >>= 7)
        out[i++] = (uint8_t)(miner | 0x80);
    out[i] = (uint8_t)miner;
}

int facts_check_sector(const struct facts *facts, uint64_t miner, uint64_t sector,
                       struct errmsg *err)
{
    uint8_t prover[DIGEST_BYTES], wanted[DIGEST_BYTES];
    char found_hex[2 * DIGEST_BYTES + 1], wanted_hex[2 * DIGEST_BYTES + 1];

    if (facts->test)
        return 0;
    prover_of_miner(prover, miner);
    replica_id_compute(wanted, prover, sector, facts->ticket, facts->comm_d, facts->porep_id);
    if (memcmp(wanted, facts->replica_id, DIGEST_BYTES) == 0)
        return 0;
    hex_encode(found_hex, facts->replica_id, DIGEST_BYTES);
    hex_encode(wanted_hex, wanted, DIGEST_BYTES);
    return errmsg_set(err, -EINVAL,
                      "replica_id is %s, but that of miner f0%" PRIu64 ", sector %" PRIu64 " is %s",
                      found_hex, miner, sector, wanted_hex);
}
