/*
 * The note of a parameter file that was found good: a digest of each of its chunks. A later load compares what it reads with that, chunk
 * by chunk and by all workers, in place of a digest over the whole file, which is one stream, or a look at every point.
 *
 * There is a note for each verifying key, beside the memory of trusted files (trusted.h). One that others could have written, that is
 * damaged, or of another file is as none.
 *
 * Any thread may call anything here.
 */
#ifndef GPU_CHUNKS_H
#define GPU_CHUNKS_H

#include "gpu/trust.h"
#include "gpu/trusted.h"

#define CHUNK_DIGEST_BYTES 32 /* SHA-256 */

struct chunk_note {
    /* Whose note it is. */
    uint64_t file_bytes;
    uint32_t chunk_points; /* of a chunk; the last of each section may have fewer */
    uint32_t chunks;       /* at most CHUNK_NOTE_MAX */
    uint8_t vk_digest[SRS_VK_DIGEST_BYTES];
    /* What it says. */
    bool published; /* the file was believed for its digest; its points were not looked at */
    uint8_t digest[TRUSTED_DIGEST_BYTES]; /* over the whole file */
    uint8_t *digests;                     /* CHUNK_DIGEST_BYTES for each chunk */
};

#define CHUNK_NOTE_MAX (UINT32_C(1) << 20)

/* Fills what the note of this file says; free() digests. False when there is none to be believed. */
bool chunk_note_read(const char *memory, struct chunk_note *note);

/* In place of the one that there was. The directory is there. */
int chunk_note_write(const char *memory, const struct chunk_note *note, struct errmsg *err);

/* Where it is. -ENAMETOOLONG. */
int chunk_note_path(const char *memory, const uint8_t vk_digest[SRS_VK_DIGEST_BYTES],
                    char out[4096]);

#endif
