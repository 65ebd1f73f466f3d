/*
 * proofctl inspect: what a file is, by its content, and whether it is right.
 *
 * The order of guesses: a parameter file (it has an exact length), transformed parameters (they have a head), a verifying key (exact length
 * again), a proof (any hex, or a whole number of raw ones), and else a C1, whose reader says best what is wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ctl.h"
#include "gpu/setup.h"
#include "gpu/srs.h"
#include "gpu/transformed.h"
#include "gpu/verify.h"

#define PARTITIONS_MAX 126 /* of a non-interactive proof */
#define VK_IC_OFFSET 864
#define VK_BYTES_MAX ((size_t)1 << 20)

/* ---- printing: a line `key: value`, or a member of one JSON object ---- */

struct sheet {
    bool json, first;
};

static void begin_sheet(struct sheet *s, const struct ctl_args *args, const char *what)
{
    *s = (struct sheet){args->json, true};
    if (s->json)
        fputs("{\"file\":", stdout), ctl_json_string(stdout, args->operands[0]),
            fputs(",\"what\":", stdout), ctl_json_string(stdout, what);
    else
        printf("%s: %s\n", args->operands[0], what);
}

static void put(const struct sheet *s, const char *key, const char *value)
{
    if (!s->json) {
        printf("  %-16s %s\n", key, value);
        return;
    }
    fputc(',', stdout);
    ctl_json_string(stdout, key);
    fputc(':', stdout);
    ctl_json_string(stdout, value);
}

static void put_number(const struct sheet *s, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (!s->json)
        put(s, key, text);
    else
        printf(",\"%s\":%s", key, text);
}

static void put_digest(const struct sheet *s, const char *key, const uint8_t *digest)
{
    char hex[2 * DIGEST_BYTES + 1];

    hex_encode(hex, digest, DIGEST_BYTES);
    put(s, key, hex);
}

/* "ok" or what is wrong, or why that cannot be told; the exit code follows from it. */
static int end_sheet(const struct sheet *s, int ret, const struct errmsg *err)
{
    put(s, "checks", ret == 0 ? "ok" : err->text[0] ? err->text : strerror(-ret));
    if (s->json)
        puts("}");
    return ret == 0 ? CTL_OK : ctl_exit_of(ret);
}

/* ---- C1 ---- */

static void put_c1(const struct sheet *s, const struct c1 *c1, const struct c1_extra *extra)
{
    uint8_t id[DIGEST_BYTES];

    put(s, "proof_type", c1_seal_proof(c1)->name);
    put(s, "sector_size", c1_size(c1)->name);
    put_number(s, "partitions", c1_partitions(c1));
    put_number(s, "challenges", (uint64_t)c1_partitions(c1) * c1_size(c1)->challenges);
    put_digest(s, "comm_r", c1_comm_r(c1));
    put_digest(s, "comm_d", c1_comm_d(c1));
    put_digest(s, "replica_id", c1_replica_id(c1));
    put_digest(s, "seed", c1_seed(c1));
    put_digest(s, "ticket", c1_ticket(c1));
    if (extra->has_sector_number)
        put_number(s, "sector_number", extra->sector_number);
    if (extra->has_prover_id)
        put_digest(s, "prover_id", extra->prover_id);
    c1_content_id(c1, id);
    put_digest(s, "content_id", id);
}

static int inspect_c1(const struct ctl_args *args)
{
    struct workers *workers = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra = {.has_sector_number = false};
    struct errmsg err = {""};
    struct sheet sheet;

    if (workers_create(args->threads, &workers, &err) < 0)
        return ctl_fail(CTL_CANNOT, "%s", err.text);
    int ret = c1_read_file(args->operands[0], C1_CHECK_STRICT, workers, &c1, &extra, &err);
    workers_destroy(workers);
    if (ret == 0) {
        begin_sheet(&sheet, args, "commit phase 1 output (C1)");
        put_c1(&sheet, c1, &extra);
    } else {
        begin_sheet(&sheet, args, "not a right C1, and nothing else that is known");
    }
    c1_destroy(c1);
    return end_sheet(&sheet, ret, &err);
}

/* ---- keys and parameters ---- */

/* The size whose files have this length exactly; NULL: none. */
static const struct sector_size *size_of_params(uint64_t bytes)
{
    struct srs_counts counts;

    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        srs_counts(size, &counts);
        if (srs_file_bytes(&counts) == bytes)
            return size;
    }
    return NULL;
}

/* The size whose parameters have this name; NULL: none. */
static const struct sector_size *size_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char id[SECTOR_CACHE_ID_MAX];

    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        sector_cache_id(size, id);
        if (strncmp(name, id, strlen(id)) == 0 && strcmp(name + strlen(id), ".params") == 0)
            return size;
    }
    return NULL;
}

/* What a download leaves that was broken off: known by its name alone. */
static int inspect_cut_params(const struct ctl_args *args, const struct sector_size *size,
                              uint64_t file_bytes)
{
    struct errmsg err = {""};
    struct sheet sheet;
    struct srs_counts counts;

    srs_counts(size, &counts);
    begin_sheet(&sheet, args, "Groth16 parameters");
    put(&sheet, "sector_size", size->name);
    errmsg_write(&err, "%" PRIu64 " bytes, wanted %" PRIu64, file_bytes, srs_file_bytes(&counts));
    return end_sheet(&sheet, -EBADMSG, &err);
}

static int inspect_params(const struct ctl_args *args, const struct sector_size *size)
{
    struct workers *workers = NULL;
    struct srs *srs = NULL;
    struct errmsg err = {""};
    struct sheet sheet;
    struct srs_source source = {.path = args->operands[0], .digest = sector_params_digest(size)};

    srs_counts(size, &source.counts);
    begin_sheet(&sheet, args, "Groth16 parameters");
    put(&sheet, "sector_size", size->name);
    put_number(&sheet, "inputs", source.counts.ic);
    put_number(&sheet, "h", source.counts.h);
    put_number(&sheet, "l", source.counts.l);
    put_number(&sheet, "a", source.counts.a);
    put_number(&sheet, "b", source.counts.b);
    int ret = workers_create(args->threads, &workers, &err);
    const struct srs_options opt = {
        .memory = "", .workers = workers, .progress = ctl_progress, .plain = true};
    if (ret == 0)
        ret = srs_load(&source, size, &opt, &srs, &err);
    ctl_progress_end();
    if (ret == 0)
        put(&sheet, "origin",
            srs->trust == SRS_INSECURE ? "insecure development parameters"
            : srs->trust == SRS_DIGEST ? "official, the published digest"
                                       : "unknown, every point checked");
    srs_close(srs);
    workers_destroy(workers);
    return end_sheet(&sheet, ret, &err);
}

/* Only where it was made can be told whether its points are the right ones: transformed.h says why. Returns -1 when it is no such file. */
static int inspect_transformed(const struct ctl_args *args, uint64_t file_bytes)
{
    uint8_t head[SRS_TRANSFORMED_HEAD_BYTES];
    struct transformed_owner owner;
    struct errmsg err = {""};
    struct sheet sheet;
    const struct sector_size *size;
    const int fd = open(args->operands[0], O_RDONLY | O_CLOEXEC);
    int ret = fd < 0 ? -errno : pread_full(fd, head, sizeof(head), 0);

    if (fd >= 0)
        close(fd);
    if (ret < 0)
        return -1;
    for (size = sector_sizes; size->name; size++) {
        srs_counts(size, &owner.counts);
        if (transformed_whose(head, &owner))
            break;
    }
    if (!size->name)
        return -1;
    begin_sheet(&sheet, args, "transformed Groth16 parameters");
    put(&sheet, "sector_size", size->name);
    put_number(&sheet, "h", owner.counts.h + 1);
    put_number(&sheet, "l", owner.counts.l);
    char digest[2 * SRS_DIGEST_BYTES + 1];
    hex_encode(digest, owner.digest, SRS_DIGEST_BYTES);
    put(&sheet, "parameters", digest);
    put(&sheet, "origin", "made by proofctl transform; taken by whom and where it was made, alone");
    if (file_bytes != srs_transformed_bytes(&owner.counts))
        ret = errmsg_set(&err, -EBADMSG, "%" PRIu64 " bytes, wanted %" PRIu64, file_bytes,
                         srs_transformed_bytes(&owner.counts));
    return end_sheet(&sheet, ret, &err);
}

static int inspect_vk(const struct ctl_args *args, const uint8_t *bytes, size_t len)
{
    struct errmsg err = {""};
    struct sheet sheet;
    struct vk vk;

    begin_sheet(&sheet, args, "Groth16 verifying key");
    put_number(&sheet, "inputs", load_be32(bytes + VK_IC_OFFSET));
    int ret = vk_read(bytes, len, &vk, &err);
    if (ret == 0) {
        put(&sheet, "origin",
            setup_made(&vk) ? "insecure development parameters" : "not the development parameters");
        vk_fini(&vk);
    }
    return end_sheet(&sheet, ret, &err);
}

static bool is_vk(const uint8_t *bytes, uint64_t len)
{
    return len >= VK_IC_OFFSET + 4 &&
           len == VK_IC_OFFSET + 4 + (uint64_t)G1_BYTES * load_be32(bytes + VK_IC_OFFSET);
}

/* ---- proofs ---- */

static int check_proof(const uint8_t *bytes, size_t len, struct errmsg *err)
{
    struct proof proof;
    int ret = 0;

    for (size_t at = 0; at < len && ret == 0; at += PROOF_BYTES) {
        ret = proof_decode(&proof, bytes + at, err);
        if (ret < 0)
            errmsg_prefix(err, ret, "partition %zu", at / PROOF_BYTES);
    }
    return ret;
}

static bool is_proof_length(size_t len)
{
    return len > 0 && len % PROOF_BYTES == 0 && len / PROOF_BYTES <= PARTITIONS_MAX;
}

/* `digits`: of hex that the bytes were; 0: none. */
static int inspect_proof(const struct ctl_args *args, const uint8_t *bytes, size_t len,
                         size_t digits)
{
    struct errmsg err = {""};
    struct sheet sheet;
    int ret;

    begin_sheet(&sheet, args, "proof");
    if (digits % 2 != 0) {
        ret = errmsg_set(&err, -EBADMSG, "%zu hex digits, which is half a byte too many", digits);
    } else if (!is_proof_length(len)) {
        ret = errmsg_set(&err, -EBADMSG, "%zu bytes, wanted %d for each of 1 to %d partitions", len,
                         PROOF_BYTES, PARTITIONS_MAX);
    } else {
        put_number(&sheet, "partitions", len / PROOF_BYTES);
        ret = check_proof(bytes, len, &err);
    }
    return end_sheet(&sheet, ret, &err);
}

/* Only compressed points have the top bit of their first byte set; JSON, base64, gzip, zstd and bincode of
 * a C1 have not. */
static bool is_proof(const uint8_t *bytes, size_t len)
{
    return is_proof_length(len) && (bytes[0] & 0x80);
}

/* A small file is read whole: a key or a proof. Returns -1 when it is neither. */
static int inspect_small(const struct ctl_args *args, uint64_t file_bytes)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    int code = -1;

    if (file_bytes > VK_BYTES_MAX)
        return -1;
    int ret = ctl_read_file(args->operands[0], VK_BYTES_MAX, &bytes, &len);
    if (ret < 0)
        return ctl_fail(CTL_CANNOT, "%s: %s", args->operands[0], strerror(-ret));
    if (is_vk(bytes, len)) {
        code = inspect_vk(args, bytes, len);
    } else {
        size_t digits = ctl_proof_from_text(bytes, &len);
        if (digits > 0 || is_proof(bytes, len)) /* no form of a C1 is hex */
            code = inspect_proof(args, bytes, len, digits);
    }
    free(bytes);
    return code;
}

int ctl_inspect(const struct ctl_args *args)
{
    const char *path = args->operands[0];
    struct stat st;

    if (stat(path, &st) < 0 || access(path, R_OK) < 0)
        return ctl_fail(CTL_CANNOT, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return ctl_fail(CTL_CANNOT, "%s: not a file", path);
    const struct sector_size *size = size_of_params((uint64_t)st.st_size);
    if (size)
        return inspect_params(args, size);
    size = size_of_name(path);
    if (size)
        return inspect_cut_params(args, size, (uint64_t)st.st_size);
    int code = inspect_transformed(args, (uint64_t)st.st_size);
    if (code < 0)
        code = inspect_small(args, (uint64_t)st.st_size);
    return code >= 0 ? code : inspect_c1(args);
}
