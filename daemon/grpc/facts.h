/*
 * What proofd-grpc has to know of a document before it is a job: which content it is, and whose sector.
 *
 * The document is read as it passes by, by the reader of the service itself (c1_reader.h), for its form alone: what can be proved the
 * service says. C, for the headers of the reader are.
 *
 * A struct facts_reader belongs to one thread at a time.
 */
#ifndef GRPC_FACTS_H
#define GRPC_FACTS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "numa/base.h"

struct facts {
    uint8_t content_id[32]; /* SHA-256 of the decoded form, as in NAME.report */
    bool test;              /* a document of the test kind: it is of no sector */
    uint64_t sector_bytes;
    uint8_t replica_id[32], ticket[32], comm_d[32], porep_id[32];
};

struct facts_reader;

/* Documents of the test kind are read, too: whether they are welcome the service says. For main(), before there are threads. */
void facts_init(void);

/* 0 or -ENOMEM. */
int facts_create(struct facts_reader **out);
void facts_destroy(struct facts_reader *r);
/* As c1_reader_feed and c1_reader_finish. */
int facts_feed(struct facts_reader *r, const void *bytes, size_t len, struct errmsg *err);
int facts_finish(struct facts_reader *r, struct facts *out, struct errmsg *err);

/* Whether replica_id is that of the miner and the sector; -EINVAL with both in err where it is not. A document of the test kind is
 * anybody's. */
int facts_check_sector(const struct facts *facts, uint64_t miner, uint64_t sector,
                       struct errmsg *err);

#ifdef __cplusplus
}
#endif

#endif
