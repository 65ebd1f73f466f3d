/*
 * JSON is printed into a memory stream, one member a line, so that the file reads well in a terminal
 * too. Names are bytes that may be no UTF-8; such bytes are shown as \u00XX.
 */
#include "daemon/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "numa/circuit/sector.h"

static void print_string(FILE *f, const char *text)
{
    putc('"', f);
    for (const char *s = text; *s;) {
        size_t n = utf8_length(s);
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if (n == 0 || (uint8_t)*s < 0x20)
            fprintf(f, "\\u%04x", (uint8_t)*s);
        else
            fwrite(s, 1, n, f);
        s += n ? n : 1;
    }
    putc('"', f);
}

static void print_member(FILE *f, const char *name, const char *text)
{
    fprintf(f, "  \"%s\": ", name);
    print_string(f, text);
    fputs(",\n", f);
}

static void print_digest(FILE *f, const char *name, const uint8_t digest[DIGEST_BYTES])
{
    char hex[2 * DIGEST_BYTES + 1];

    hex_encode(hex, digest, DIGEST_BYTES);
    print_member(f, name, hex);
}

/* As 2025-06-01T12:00:00.000Z; null for what has not been. */
static void print_time(FILE *f, const char *name, int64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;
    char text[32];

    if (ns <= 0) {
        fprintf(f, "  \"%s\": null,\n", name);
        return;
    }
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    fprintf(f, "  \"%s\": \"%s.%03dZ\",\n", name, text, (int)(ns / 1000000 % 1000));
}

/* c2-formats: a prover id is the LEB128 of the miner's actor id, zero filled. */
static bool miner_of_prover(const uint8_t id[DIGEST_BYTES], uint64_t *out)
{
    uint64_t miner = 0;
    unsigned i = 0;

    for (;; i++) {
        if (i == 9) /* 63 bits: more is no actor id */
            return false;
        miner |= (uint64_t)(id[i] & 0x7f) << (7 * i);
        if (!(id[i] & 0x80))
            break;
    }
    for (i++; i < DIGEST_BYTES; i++) {
        if (id[i])
            return false;
    }
    *out = miner;
    return true;
}

static void print_sector(FILE *f, const struct job_record *r)
{
    uint64_t miner;

    if (r->has_sector_number)
        fprintf(f, "  \"sector_number\": %" PRIu64 ",\n", r->sector_number);
    if (r->has_prover_id)
        print_digest(f, "prover_id", r->prover_id);
    if (r->has_prover_id && miner_of_prover(r->prover_id, &miner))
        fprintf(f, "  \"miner\": \"f0%" PRIu64 "\",\n", miner);
}

static void print_what(FILE *f, const struct job_record *r)
{
    const struct seal_proof *proof = seal_proof_by_id(r->proof_id);

    print_member(f, "name", r->name);
    fprintf(f, "  \"job\": %" PRIu64 ",\n", r->id);
    print_member(f, "state", job_state_name(r->state));
    print_member(f, "proof_type", r->test ? "proofd-test" : proof ? proof->name : "unknown");
    print_sector(f, r);
    print_digest(f, "replica_id", r->replica_id);
    print_digest(f, "comm_r", r->comm_r);
    print_digest(f, "comm_d", r->comm_d);
    print_digest(f, "public_inputs_sha256", r->public_inputs);
    print_digest(f, "content_sha256", r->content_id);
    if (r->same_as)
        fprintf(f, "  \"same_as\": %" PRIu64 ",\n", r->same_as);
}

static double ms_between(int64_t from, int64_t to)
{
    return from > 0 && to >= from ? (double)(to - from) / 1e6 : 0;
}

static void print_course(FILE *f, const struct job_record *r)
{
    fprintf(f, "  \"file_bytes\": %" PRIu64 ",\n  \"decoded_bytes\": %" PRIu64 ",\n", r->file_bytes,
            r->decoded_bytes);
    print_time(f, "created", r->created_ns);
    print_time(f, "accepted", r->accepted_ns);
    print_time(f, "started", r->started_ns);
    print_time(f, "ended", r->ended_ns);
    fprintf(f, "  \"waited_ms\": %.3f,\n  \"ran_ms\": %.3f,\n",
            ms_between(r->accepted_ns, r->started_ns), ms_between(r->started_ns, r->ended_ns));
}

enum srs_trust entries_params(const struct partition_entry *entries, size_t len)
{
    enum srs_trust least = len > 0 ? SRS_DIGEST : SRS_UNCHECKED;

    for (size_t i = 0; i < len; i++) {
        if (entries[i].report.params < least)
            least = entries[i].report.params;
    }
    return least;
}

static void print_partition(FILE *f, const struct partition_entry *e, bool last)
{
    const struct partition_report *p = &e->report;

    fprintf(f, "    {\"partition\": %" PRIu32 ", \"node\": %d, \"device\": ", e->partition,
            p->node);
    print_string(f, p->device);
    fprintf(
        f,
        ", \"params_ms\": %.3f, \"synthesis_ms\": %.3f, \"transform_ms\": %.3f, \"msm_ms\": %.3f"
        ", \"verify_ms\": %.3f, \"total_ms\": %.3f, \"peak_bytes\": %" PRIu64 "}%s\n",
        p->params_ms, p->synthesis_ms, p->transform_ms, p->msm_ms, p->verify_ms, p->total_ms,
        p->peak_bytes, last ? "" : ",");
}

/* Work, not time: partitions are proved side by side. What the job took is waited_ms and ran_ms. */
static void print_sums(FILE *f, const struct partition_entry *entries, size_t len)
{
    double synthesis = 0, prove = 0, verify = 0;

    for (size_t i = 0; i < len; i++) {
        synthesis += entries[i].report.synthesis_ms;
        prove += entries[i].report.transform_ms + entries[i].report.msm_ms;
        verify += entries[i].report.verify_ms;
    }
    fprintf(f,
            "  \"sum_synthesis_ms\": %.3f,\n  \"sum_prove_ms\": %.3f,\n"
            "  \"sum_verify_ms\": %.3f,\n",
            synthesis, prove, verify);
}

static void print_partitions(FILE *f, const struct job_record *r,
                             const struct partition_entry *entries, size_t len)
{
    fprintf(f, "  \"partitions\": %" PRIu32 ",\n  \"partitions_done\": %" PRIu32 ",\n",
            r->partitions, r->partitions_done);
    if (r->node >= 0)
        fprintf(f, "  \"node\": %d,\n", r->node);
    if (len > 0)
        print_member(f, "device", entries[len - 1].report.device);
    fputs("  \"stages\": [\n", f);
    for (size_t i = 0; i < len; i++)
        print_partition(f, &entries[i], i + 1 == len);
    fputs("  ],\n", f);
    print_sums(f, entries, len);
}

/* All partitions of a job are proved with the same ones. */
static void print_parameters(FILE *f, const struct partition_entry *entries, size_t len)
{
    if (len == 0)
        return;
    print_member(f, "parameters", srs_trust_text(entries_params(entries, len)));
    print_digest(f, "verifying_key_sha256", entries[0].report.vk_digest);
}

int report_make(const struct job_record *r, const struct partition_entry *entries,
                size_t entries_len, const char *failure, char **json)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        return -ENOMEM;
    fputs("{\n", f);
    print_what(f, r);
    if (failure)
        print_member(f, "error", failure);
    print_parameters(f, entries, entries_len);
    print_course(f, r);
    print_partitions(f, r, entries, entries_len);
    fprintf(f, "  \"insecure\": %s\n}\n", r->insecure ? "true" : "false");
    bool bad = ferror(f);
    if (fclose(f) != 0 || bad) {
        free(text);
        return -ENOMEM;
    }
    *json = text;
    return 0;
}
