/*
 * The two records of the job store as bytes (doc/formats.md, "Job store"): what a job is, and what
 * one finished partition gave. Each ends in a SHA-256, for a disk may give back anything.
 *
 * Pure functions; any thread may call them.
 */
#ifndef DAEMON_RECORD_H
#define DAEMON_RECORD_H

#include "daemon/job.h"
#include "daemon/jobs.h"

/* Ids and name serials are below this: an inode number is an id with some bits of kind behind. */
#define JOB_ID_END ((uint64_t)1 << 57)

struct job_record {
    uint64_t id;
    uint64_t
        named; /* from the same counter as the id: of two jobs with one name, the later has it */
    char name[JOB_NAME_MAX + 1];
    uint32_t uid, gid, mode;
    enum job_state state; /* JOB_QUEUED, JOB_DONE or JOB_FAILED */
    enum job_priority priority;
    bool insecure;
    uint32_t proof_id; /* struct seal_proof */
    uint32_t partitions, partitions_done;
    int32_t node;
    uint64_t file_bytes, decoded_bytes;
    uint64_t same_as; /* of an ended job: whose computation it shared, or 0 */
    int64_t created_ns, accepted_ns, started_ns, ended_ns;
    uint8_t content_id[DIGEST_BYTES];
    uint8_t comm_r[DIGEST_BYTES], comm_d[DIGEST_BYTES], replica_id[DIGEST_BYTES];
    uint8_t public_inputs[DIGEST_BYTES]; /* SHA-256 over those of all partitions */
    bool test; /* of the test kind: it has no more partitions than it asks for, and proves nothing */
    bool has_sector_number, has_prover_id;
    uint64_t sector_number;
    uint8_t prover_id[DIGEST_BYTES];
};

#define JOB_RECORD_MAX 1024

/* Returns the length. */
size_t job_record_encode(uint8_t out[JOB_RECORD_MAX], const struct job_record *record);
/* -EBADMSG when it is none, or damaged. */
int job_record_decode(const uint8_t *bytes, size_t len, struct job_record *out);

/* One entry of the journal of partitions; all are of one length. */
struct partition_entry {
    uint32_t partition;
    uint8_t proof[192];
    struct partition_report report;
};

#define PARTITION_ENTRY_BYTES 400

/* `content_id` goes into the checksum, so that an entry of another job is no entry of this one. */
void partition_entry_encode(uint8_t out[PARTITION_ENTRY_BYTES],
                            const uint8_t content_id[DIGEST_BYTES],
                            const struct partition_entry *entry);
/* -EBADMSG when it is none, or damaged. */
int partition_entry_decode(const uint8_t bytes[PARTITION_ENTRY_BYTES],
                           const uint8_t content_id[DIGEST_BYTES], struct partition_entry *out);

#endif
