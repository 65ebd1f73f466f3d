/*
 * The file is begun before the points are made, which takes minutes: so room for it is there when they are. Chunks are digested by the workers
 * as they copy points into a piece, the file and its digest follow beside (outflow.h).
 */
#include "gpu/transformed.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gpu/newfile.h"
#include "gpu/outflow.h"
#include "gpu/srs_file.h"

#define SUFFIX ".transformed"
#define PARAMS ".params"
#define MAGIC "proofdT1"
#define VK_AT 40 /* in the head */
#define DIGEST_AT (VK_AT + SRS_VK_DIGEST_BYTES)
#define HEAD_BYTES SRS_TRANSFORMED_HEAD_BYTES
#define PIECE_CHUNKS 64 /* 25 MB */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "points are written as they are in memory");

int transformed_path(const char *params, char out[4096])
{
    const size_t len = strlen(params), end = strlen(PARAMS);
    const bool named = len > end && strcmp(params + len - end, PARAMS) == 0;

    return snprintf(out, 4096, "%.*s%s", (int)(named ? len - end : len), params, SUFFIX) < 4096
               ? 0
               : -ENAMETOOLONG;
}

/* ---------------------------------------------------------------------------------------- whose it is */

static void put_head(uint8_t head[HEAD_BYTES], const struct transformed_owner *owner)
{
    const struct srs_counts *n = &owner->counts;

    memset(head, 0, HEAD_BYTES);
    memcpy(head, MAGIC, 8); /* NOLINT(bugprone-not-null-terminated-result): no string */
    store_le64(head + 8, srs_transformed_bytes(n));
    store_le32(head + 16, n->ic);
    store_le32(head + 20, (uint32_t)n->h + 1);
    store_le32(head + 24, (uint32_t)n->l);
    store_le64(head + 32, srs_file_bytes(n));
    memcpy(head + VK_AT, owner->vk_digest, SRS_VK_DIGEST_BYTES);
    memcpy(head + DIGEST_AT, owner->digest, SRS_DIGEST_BYTES);
}

bool transformed_whose(const uint8_t head[HEAD_BYTES], struct transformed_owner *owner)
{
    uint8_t want[HEAD_BYTES];

    memcpy(owner->vk_digest, head + VK_AT, SRS_VK_DIGEST_BYTES);
    memcpy(owner->digest, head + DIGEST_AT, SRS_DIGEST_BYTES);
    put_head(want, owner);
    return memcmp(head, want, HEAD_BYTES) == 0;
}

struct chunk_note transformed_note(const struct transformed_owner *owner)
{
    struct chunk_note note = {.file_bytes = srs_transformed_bytes(&owner->counts),
                              .chunk_points = SRS_CHUNK_POINTS,
                              .chunks = srs_transformed_chunks(&owner->counts)};
    uint8_t head[HEAD_BYTES];

    put_head(head, owner);
    SHA256(head, sizeof(head), note.vk_digest); /* another one than of any key */
    return note;
}

static int check_head(int fd, const char *path, const struct transformed_owner *owner,
                      struct errmsg *err)
{
    const uint64_t bytes = srs_transformed_bytes(&owner->counts);
    uint8_t head[HEAD_BYTES], want[HEAD_BYTES];
    struct stat st;

    if (fstat(fd, &st) < 0)
        return errmsg_set(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return errmsg_set(err, -EBADMSG, "%s: is not a regular file", path);
    int ret = pread_full(fd, head, sizeof(head), 0);
    if (ret == -ENODATA || (ret == 0 && memcmp(head, MAGIC, 8) != 0))
        return errmsg_set(err, -EBADMSG, "%s: is no file of transformed parameters", path);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: cannot read: %s", path, strerror(-ret));
    put_head(want, owner);
    if (memcmp(head, want, sizeof(head)) != 0)
        return errmsg_set(err, -EBADMSG, "%s: belongs to other parameters", path);
    if ((uint64_t)st.st_size != bytes)
        return errmsg_set(err, -EBADMSG, "%s: has %llu bytes of %llu", path,
                          (unsigned long long)st.st_size, (unsigned long long)bytes);
    return 0;
}

int transformed_open(const char *path, const struct transformed_owner *owner, int *fd,
                     struct errmsg *err)
{
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (opened < 0)
        return errmsg_set(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    int ret = check_head(opened, path, owner, err);
    if (ret < 0)
        close(opened);
    else
        *fd = opened;
    return ret;
}

/* -------------------------------------------------------------------------------------------- writing */

int transformed_check_room(const char *params, const struct srs_counts *counts, struct errmsg *err)
{
    const uint64_t want = srs_transformed_bytes(counts);
    char path[4096];
    struct statvfs st;

    if (transformed_path(params, path) < 0)
        return errmsg_set(err, -ENAMETOOLONG, "%s: name too long", params);
    const uint64_t left = newfile_left(path);
    const char *dir = dirname(path);
    if (statvfs(dir, &st) < 0)
        return errmsg_set(err, -errno, "%s: %s", dir, strerror(errno));
    if (access(dir, W_OK | X_OK) < 0)
        return errmsg_set(err, -errno, "%s: no file can be made here: %s", dir, strerror(errno));
    const uint64_t free_bytes = (uint64_t)st.f_bavail * st.f_frsize + left;
    if (free_bytes < want)
        return errmsg_set(err, -ENOSPC,
                          "%s: no room for transformed parameters: they take %llu bytes (%.1f GB), "
                          "%llu are free",
                          dir, (unsigned long long)want, (double)want / 1e9,
                          (unsigned long long)free_bytes);
    return 0;
}

struct writing {
    const struct transformed_options *opt;
    struct transformed_owner owner;
    char path[4096];
    struct outflow *file;
    struct chunk_note note;
    uint64_t done; /* points */
    uint32_t chunk;
    /* One piece. */
    const g1_affine_t *from;
    size_t len;
    uint8_t *to, *digests;
};

static void report(const struct writing *w, const char *stage, uint64_t done, uint64_t total)
{
    if (w->opt->progress)
        w->opt->progress(w->opt->progress_ctx, stage, done, total);
}

static void put_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct writing *w = ctx;
    const size_t first = item * SRS_CHUNK_POINTS;
    const size_t bytes = min_size(SRS_CHUNK_POINTS, w->len - first) * sizeof(*w->from);
    uint8_t *to = w->to + first * sizeof(*w->from);

    (void)thread;
    memcpy(to, w->from + first, bytes);
    SHA256(to, bytes, w->digests + item * CHUNK_DIGEST_BYTES);
}

static int write_section(struct writing *w, const g1_affine_t *points, size_t len,
                         struct errmsg *err)
{
    const size_t most = (size_t)PIECE_CHUNKS * SRS_CHUNK_POINTS;

    for (size_t first = 0; first < len; first += w->len) {
        w->from = points + first;
        w->len = min_size(most, len - first);
        w->digests = w->note.digests + (size_t)w->chunk * CHUNK_DIGEST_BYTES;
        int ret = outflow_room(w->file, &w->to, err);
        if (ret < 0)
            return ret;
        const size_t chunks = (w->len + SRS_CHUNK_POINTS - 1) / SRS_CHUNK_POINTS;
        workers_run(w->opt->backend->workers, chunks, put_chunk, w);
        outflow_put(w->file, w->len * sizeof(*points));
        w->chunk += (uint32_t)chunks;
        w->done += w->len;
        report(w, "write", w->done * G1_BYTES, w->note.file_bytes - HEAD_BYTES);
    }
    return 0;
}

static int write_head(struct writing *w, struct errmsg *err)
{
    uint8_t *room;
    int ret = outflow_room(w->file, &room, err);

    if (ret < 0)
        return ret;
    put_head(room, &w->owner);
    outflow_put(w->file, HEAD_BYTES);
    return 0;
}

static int write_points(struct writing *w, const struct srs *srs, struct errmsg *err)
{
    uint8_t digest[OUTFLOW_DIGEST_BYTES];
    int ret = write_head(w, err);

    if (ret == 0)
        ret = write_section(w, srs->input_l, srs->vk.ic_len, err);
    if (ret == 0)
        ret = write_section(w, srs->h, srs->h_len, err);
    if (ret == 0)
        ret = write_section(w, srs->l, srs->l_len, err);
    if (ret == 0)
        report(w, "sync", 0, w->note.file_bytes);
    if (ret == 0)
        ret = outflow_commit(w->file, digest, err);
    if (ret == 0) {
        memcpy(w->note.digest, digest, sizeof(w->note.digest));
        report(w, "sync", w->note.file_bytes, w->note.file_bytes);
    }
    return ret;
}

/* A load takes the file only where the parameters themselves are remembered. */
static int check_noted(const struct writing *w, const struct srs *srs, const char *memory,
                       struct errmsg *err)
{
    struct chunk_note note = {.file_bytes = srs_file_bytes(&w->owner.counts),
                              .chunk_points = SRS_CHUNK_POINTS,
                              .chunks = srs_chunks(&w->owner.counts)};

    memcpy(note.vk_digest, srs->vk_digest, sizeof(note.vk_digest));
    if (!chunk_note_read(memory, &note))
        return errmsg_set(err, -EIO, "%s: could not be remembered beside %s", srs->path, memory);
    free(note.digests);
    return 0;
}

/* Everything that may be missing shows before there is work. */
static int begin(struct writing *w, const struct srs *srs, const char *memory, struct errmsg *err)
{
    const size_t most = (size_t)PIECE_CHUNKS * SRS_CHUNK_POINTS * sizeof(g1_affine_t);

    w->owner.counts = (struct srs_counts){
        .ic = srs->vk.ic_len, .h = srs->h_len, .l = srs->l_len, .a = srs->a_len, .b = srs->b_len};
    memcpy(w->owner.vk_digest, srs->vk_digest, sizeof(w->owner.vk_digest));
    memcpy(w->owner.digest, srs->file_digest, sizeof(w->owner.digest));
    if (transformed_path(srs->path, w->path) < 0)
        return errmsg_set(err, -ENAMETOOLONG, "%s: name too long", srs->path);
    int ret = check_noted(w, srs, memory, err);
    if (ret < 0)
        return ret;
    w->note = transformed_note(&w->owner);
    w->note.digests = malloc((size_t)w->note.chunks * CHUNK_DIGEST_BYTES);
    if (!w->note.digests)
        return errmsg_set(err, -ENOMEM, "%s: no memory for digests", w->path);
    return outflow_open(w->path, w->note.file_bytes, most, &w->file, err);
}

static int find_memory(const char *given, char out[4096], struct errmsg *err)
{
    const int len = given ? snprintf(out, 4096, "%s", given) : 0;

    if (given ? *given && len < 4096 : trusted_default_path(out) == 0)
        return 0;
    return errmsg_set(err, -EINVAL,
                      "no place to remember transformed parameters in: neither XDG_CACHE_HOME nor "
                      "HOME is a path");
}

int transformed_make(struct srs *srs, const struct circuit *circuit,
                     const struct transformed_options *opt, struct errmsg *err)
{
    struct writing w = {.opt = opt};
    char memory[4096];
    int ret = find_memory(opt->memory, memory, err);

    if (ret == 0)
        ret = begin(&w, srs, memory, err);
    if (ret == 0)
        report(&w, "transform", 0, 1); /* the file has been begun */
    if (ret == 0)
        ret = transform_srs(srs, circuit, opt->backend, opt->progress, opt->progress_ctx, err);
    if (ret == 0)
        ret = write_points(&w, srs, err);
    if (ret == 0 && (ret = chunk_note_write(memory, &w.note, err)) < 0)
        (void)unlink(w.path); /* nobody would take it */
    outflow_close(w.file);
    free(w.note.digests);
    return ret;
}
