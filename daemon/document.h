/*
 * What an engine is given of a job, decoded: a C1, or with a simulated device a document of the test kind.
 *
 * A document is immutable and may be used by any thread.
 */
#ifndef DAEMON_DOCUMENT_H
#define DAEMON_DOCUMENT_H

#include "daemon/sim.h"
#include "gpu/proof.h"
#include "gpu/vk.h"
#include "numa/circuit/c1.h"
#include "numa/circuit/compact.h"
#include "numa/slots.h"

struct document;

/* From a descriptor that holds nothing else, the caller's to close. What the front has checked once is checked again as far as it is
 * cheap: it came over a file. `sim` (borrowed) is NULL where there is no simulated device; then the test kind is refused. 0 with *out
 * set (end it with document_destroy), or as c1_from_fd. */
int document_from_fd(int fd, struct sim *sim, struct document **out, struct errmsg *err);
void document_destroy(struct document *d);

/* NULL for the test kind, which belongs to no size. */
const struct sector_size *document_size(const struct document *d);
uint32_t document_partitions(const struct document *d);

/* Bytes of a slot's parts for partitions of a size, NULL for the test kind. */
void document_slot_bytes(const struct sector_size *size, const struct sim *sim,
                         struct slots_shape *out);

/* Makes the witness of a partition in a slot that is large enough, and *w lie over it. 0; -EBADMSG when the document cannot be
 * proved; -ENOMEM, -EIO. */
int document_synthesize(const struct document *d, uint32_t partition, struct workers *workers,
                        const struct slot *slot, struct assignment *w, struct errmsg *err);

/* The same in compact form, of a C1 of the circuit's size. */
int document_synthesize_compact(const struct document *d, uint32_t partition,
                                struct workers *workers, const struct slot *slot,
                                const struct circuit *circuit, struct compact *w,
                                struct errmsg *err);

/* Whether the bytes are a proof of the partition. `vk` is NULL for the test kind. 0 with *valid set, or -ENOMEM. */
int document_check(const struct document *d, uint32_t partition, const struct vk *vk,
                   const uint8_t proof[PROOF_BYTES], bool *valid, struct errmsg *err);

#endif
