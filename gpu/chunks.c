#include "gpu/chunks.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/newfile.h"

#define MAGIC "proofdC1"
#define HEAD_BYTES 80 /* before the chunks' digests; behind them is one over all before */

int chunk_note_path(const char *memory, const uint8_t vk_digest[SRS_VK_DIGEST_BYTES],
                    char out[4096])
{
    char key[2 * SRS_VK_DIGEST_BYTES + 1];

    hex_encode(key, vk_digest, SRS_VK_DIGEST_BYTES);
    return snprintf(out, 4096, "%s-chunks-%.32s", memory, key) < 4096 ? 0 : -ENAMETOOLONG;
}

static size_t note_bytes(const struct chunk_note *note)
{
    return HEAD_BYTES + ((size_t)note->chunks + 1) * CHUNK_DIGEST_BYTES;
}

static void put_head(uint8_t head[HEAD_BYTES], const struct chunk_note *note)
{
    memcpy(head, MAGIC, 8); /* NOLINT(bugprone-not-null-terminated-result): no string */
    store_le64(head + 8, note->file_bytes);
    store_le32(head + 16, note->chunk_points);
    store_le32(head + 20, note->chunks);
    memcpy(head + 24, note->vk_digest, SRS_VK_DIGEST_BYTES);
    store_le64(head + 56, note->published);
    memcpy(head + 64, note->digest, TRUSTED_DIGEST_BYTES);
}

/* What tells whose note it is must be what it should be. */
static bool take(struct chunk_note *note, const uint8_t *bytes, size_t len)
{
    uint8_t head[HEAD_BYTES], end[CHUNK_DIGEST_BYTES];
    const size_t digests = (size_t)note->chunks * CHUNK_DIGEST_BYTES;

    if (len != note_bytes(note))
        return false;
    note->published = load_le64(bytes + 56) != 0;
    memcpy(note->digest, bytes + 64, sizeof(note->digest));
    put_head(head, note);
    SHA256(bytes, len - sizeof(end), end);
    if (memcmp(bytes, head, sizeof(head)) != 0 ||
        memcmp(bytes + len - sizeof(end), end, sizeof(end)) != 0)
        return false;
    note->digests = malloc(digests);
    if (note->digests)
        memcpy(note->digests, bytes + HEAD_BYTES, digests);
    return note->digests != NULL;
}

bool chunk_note_read(const char *memory, struct chunk_note *note)
{
    char path[4096];
    size_t len = 0;

    note->digests = NULL;
    if (note->chunks > CHUNK_NOTE_MAX || chunk_note_path(memory, note->vk_digest, path) < 0)
        return false;
    char *bytes = trusted_read_own(path, note_bytes(note), &len);
    const bool good = bytes && take(note, (const uint8_t *)bytes, len);
    free(bytes);
    return good;
}

int chunk_note_write(const char *memory, const struct chunk_note *note, struct errmsg *err)
{
    const size_t len = note_bytes(note);
    char path[4096];

    int ret = chunk_note_path(memory, note->vk_digest, path);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: name too long", memory);
    uint8_t *bytes = malloc(len);
    if (!bytes)
        return errmsg_set(err, -ENOMEM, "%s: no memory", path);
    put_head(bytes, note);
    memcpy(bytes + HEAD_BYTES, note->digests, (size_t)note->chunks * CHUNK_DIGEST_BYTES);
    SHA256(bytes, len - CHUNK_DIGEST_BYTES, bytes + len - CHUNK_DIGEST_BYTES);
    ret = newfile_put(path, bytes, len, err);
    free(bytes);
    return ret;
}
