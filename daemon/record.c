/*
 * Fields are written one after another, little endian, by a cursor that knows its end; the reader
 * takes the same fields in the same order. Lengths are part of the format, so the checksum is looked
 * at before anything else is believed.
 */
#include "daemon/record.h"

#include <errno.h>
#include <openssl/sha.h>
#include <string.h>

#include "numa/circuit/sector.h"

static const uint8_t job_magic[8] = "proofdJ1";
static const uint8_t partition_magic[8] = "proofdP2";

struct cursor {
    uint8_t *out;      /* where a writer is */
    const uint8_t *in; /* where a reader is, and its end */
    const uint8_t *end;
    bool bad; /* the reader wanted more than there is, or met what cannot be */
};

static void put_bytes(struct cursor *c, const void *bytes, size_t len)
{
    memcpy(c->out, bytes, len);
    c->out += len;
}

static void put_u32(struct cursor *c, uint32_t v)
{
    store_le32(c->out, v);
    c->out += 4;
}

static void put_u64(struct cursor *c, uint64_t v)
{
    store_le64(c->out, v);
    c->out += 8;
}

static void put_double(struct cursor *c, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    put_u64(c, bits);
}

static void get_bytes(struct cursor *c, void *out, size_t len)
{
    if ((size_t)(c->end - c->in) < len) {
        c->bad = true;
        memset(out, 0, len);
        return;
    }
    memcpy(out, c->in, len);
    c->in += len;
}

static uint32_t get_u32(struct cursor *c)
{
    uint8_t b[4];

    get_bytes(c, b, sizeof(b));
    return load_le32(b);
}

static uint64_t get_u64(struct cursor *c)
{
    uint8_t b[8];

    get_bytes(c, b, sizeof(b));
    return load_le64(b);
}

static double get_double(struct cursor *c)
{
    uint64_t bits = get_u64(c);
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* A number that must be below `limit`. */
static uint32_t get_below(struct cursor *c, uint32_t limit)
{
    uint32_t v = get_u32(c);

    if (v < limit)
        return v;
    c->bad = true;
    return 0;
}

#define FLAG_INSECURE 1u
#define FLAG_SECTOR_NUMBER 2u
#define FLAG_PROVER_ID 4u
#define FLAG_TEST 8u
#define FLAGS_END 16u

static uint32_t record_flags(const struct job_record *r)
{
    return (r->insecure ? FLAG_INSECURE : 0) | (r->has_sector_number ? FLAG_SECTOR_NUMBER : 0) |
           (r->has_prover_id ? FLAG_PROVER_ID : 0) | (r->test ? FLAG_TEST : 0);
}

size_t job_record_encode(uint8_t out[JOB_RECORD_MAX], const struct job_record *r)
{
    struct cursor c = {.out = out};
    uint32_t name_len = (uint32_t)strlen(r->name);
    const uint64_t longs[] = {r->id,
                              r->named,
                              r->file_bytes,
                              r->decoded_bytes,
                              r->same_as,
                              (uint64_t)r->created_ns,
                              (uint64_t)r->accepted_ns,
                              (uint64_t)r->started_ns,
                              (uint64_t)r->ended_ns,
                              r->sector_number};
    const uint32_t words[] = {
        r->uid,          r->gid,      r->mode,       r->state,           r->priority,
        record_flags(r), r->proof_id, r->partitions, r->partitions_done, (uint32_t)r->node,
        name_len};
    const uint8_t *digests[] = {r->content_id, r->comm_r,        r->comm_d,
                                r->replica_id, r->public_inputs, r->prover_id};

    put_bytes(&c, job_magic, sizeof(job_magic));
    for (size_t i = 0; i < ARRAY_LEN(longs); i++)
        put_u64(&c, longs[i]);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        put_u32(&c, words[i]);
    for (size_t i = 0; i < ARRAY_LEN(digests); i++)
        put_bytes(&c, digests[i], DIGEST_BYTES);
    put_bytes(&c, r->name, name_len);
    SHA256(out, (size_t)(c.out - out), c.out);
    return (size_t)(c.out - out) + SHA256_DIGEST_LENGTH;
}

/* True when `len` bytes end in the SHA-256 of `prefix` and the rest. */
static bool checksum_holds(const uint8_t *bytes, size_t len, const uint8_t *magic)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];

    if (len < 8 + sizeof(digest) || memcmp(bytes, magic, 8) != 0)
        return false;
    SHA256(bytes, len - sizeof(digest), digest);
    return memcmp(digest, bytes + len - sizeof(digest), sizeof(digest)) == 0;
}

static void get_name(struct cursor *c, uint32_t len, char out[JOB_NAME_MAX + 1])
{
    get_bytes(c, out, len);
    out[len] = '\0';
    if (len == 0 || strlen(out) != len || strchr(out, '/'))
        c->bad = true;
}

static void get_longs(struct cursor *c, struct job_record *r)
{
    r->id = get_u64(c);
    r->named = get_u64(c);
    r->file_bytes = get_u64(c);
    r->decoded_bytes = get_u64(c);
    r->same_as = get_u64(c);
    r->created_ns = (int64_t)get_u64(c);
    r->accepted_ns = (int64_t)get_u64(c);
    r->started_ns = (int64_t)get_u64(c);
    r->ended_ns = (int64_t)get_u64(c);
    r->sector_number = get_u64(c);
}

static uint32_t get_words(struct cursor *c, struct job_record *r)
{
    r->uid = get_u32(c);
    r->gid = get_u32(c);
    r->mode = get_below(c, 010000);
    r->state = (enum job_state)get_below(c, JOB_STATES);
    r->priority = (enum job_priority)get_below(c, JOB_PRIORITIES);
    uint32_t flags = get_below(c, FLAGS_END);
    r->insecure = flags & FLAG_INSECURE;
    r->has_sector_number = flags & FLAG_SECTOR_NUMBER;
    r->has_prover_id = flags & FLAG_PROVER_ID;
    r->test = flags & FLAG_TEST;
    r->proof_id = get_below(c, SEAL_PROOFS);
    r->partitions = get_u32(c);
    r->partitions_done = get_u32(c);
    r->node = (int32_t)get_u32(c);
    return get_below(c, JOB_NAME_MAX + 1);
}

static bool partitions_make_sense(const struct job_record *r, const struct seal_proof *proof)
{
    if (r->test)
        return r->partitions > 0 && r->partitions <= TEST_DOCUMENT_PARTITIONS_MAX;
    return r->partitions == seal_proof_partitions(proof);
}

static bool record_makes_sense(const struct job_record *r)
{
    const struct seal_proof *proof = seal_proof_by_id(r->proof_id);

    if (r->state != JOB_QUEUED && r->state != JOB_DONE && r->state != JOB_FAILED)
        return false;
    if (r->id == 0 || r->id >= JOB_ID_END || r->named >= JOB_ID_END)
        return false;
    return proof && partitions_make_sense(r, proof) &&
           r->partitions_done <= r->partitions &&
           (r->state != JOB_DONE || r->partitions_done == r->partitions);
}

int job_record_decode(const uint8_t *bytes, size_t len, struct job_record *out)
{
    struct job_record r = {0};

    if (!checksum_holds(bytes, len, job_magic))
        return -EBADMSG;

    struct cursor c = {.in = bytes + sizeof(job_magic), .end = bytes + len - SHA256_DIGEST_LENGTH};
    get_longs(&c, &r);
    uint32_t name_len = get_words(&c, &r);
    uint8_t *digests[] = {r.content_id, r.comm_r,        r.comm_d,
                          r.replica_id, r.public_inputs, r.prover_id};
    for (size_t i = 0; i < ARRAY_LEN(digests); i++)
        get_bytes(&c, digests[i], DIGEST_BYTES);
    get_name(&c, name_len, r.name);
    if (c.bad || c.in != c.end || !record_makes_sense(&r))
        return -EBADMSG;
    *out = r;
    return 0;
}

/* The checksum of an entry covers the content id, which is not stored again. */
static void entry_digest(const uint8_t *bytes, const uint8_t *content_id,
                         uint8_t out[SHA256_DIGEST_LENGTH])
{
    uint8_t text[DIGEST_BYTES + PARTITION_ENTRY_BYTES - SHA256_DIGEST_LENGTH];

    memcpy(text, content_id, DIGEST_BYTES);
    memcpy(text + DIGEST_BYTES, bytes, sizeof(text) - DIGEST_BYTES);
    SHA256(text, sizeof(text), out);
}

void partition_entry_encode(uint8_t out[PARTITION_ENTRY_BYTES],
                            const uint8_t content_id[DIGEST_BYTES],
                            const struct partition_entry *entry)
{
    const struct partition_report *r = &entry->report;
    const double times[] = {r->synthesis_ms, r->transform_ms, r->msm_ms,
                            r->verify_ms,    r->total_ms,     r->params_ms};
    struct cursor c = {.out = out};

    put_bytes(&c, partition_magic, sizeof(partition_magic));
    put_u32(&c, entry->partition);
    put_u32(&c, (uint32_t)r->node);
    put_u32(&c, r->params);
    put_u32(&c, 0);
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        put_double(&c, times[i]);
    put_u64(&c, r->peak_bytes);
    put_bytes(&c, r->device, sizeof(r->device));
    put_bytes(&c, r->vk_digest, sizeof(r->vk_digest));
    put_bytes(&c, entry->proof, sizeof(entry->proof));
    entry_digest(out, content_id, c.out);
}

int partition_entry_decode(const uint8_t bytes[PARTITION_ENTRY_BYTES],
                           const uint8_t content_id[DIGEST_BYTES], struct partition_entry *out)
{
    struct cursor c = {.in = bytes, .end = bytes + PARTITION_ENTRY_BYTES - SHA256_DIGEST_LENGTH};
    uint8_t magic[8], digest[SHA256_DIGEST_LENGTH];
    struct partition_entry e = {0};
    struct partition_report *r = &e.report;
    double *times[] = {&r->synthesis_ms, &r->transform_ms, &r->msm_ms,
                       &r->verify_ms,    &r->total_ms,     &r->params_ms};

    entry_digest(bytes, content_id, digest);
    get_bytes(&c, magic, sizeof(magic));
    if (memcmp(magic, partition_magic, sizeof(magic)) != 0 ||
        memcmp(digest, c.end, sizeof(digest)) != 0)
        return -EBADMSG;
    e.partition = get_u32(&c);
    r->node = (int32_t)get_u32(&c);
    r->params = (enum srs_trust)get_below(&c, SRS_TRUSTS);
    get_u32(&c);
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        *times[i] = get_double(&c);
    r->peak_bytes = get_u64(&c);
    get_bytes(&c, r->device, sizeof(r->device));
    get_bytes(&c, r->vk_digest, sizeof(r->vk_digest));
    get_bytes(&c, e.proof, sizeof(e.proof));
    r->device[sizeof(r->device) - 1] = '\0';
    if (c.bad || r->params == SRS_UNCHECKED)
        return -EBADMSG;
    *out = e;
    return 0;
}
