/*
 * NAME.transformed beside NAME.params: a file of transformed points (transform.h), in place of which a load takes no h and l from the parameters.
 *
 * Points lie in it as they are in memory, and nobody can tell by looking at them that they are the right ones. So a file is believed for one reason
 * alone: the memory of trusted files (trusted.h) has a note of its chunks (chunks.h), made when it was written here, out of parameters that
 * were trusted. Its head says which those are, down to the digest of their file.
 *
 * One call of transformed_make at a time on a set of workers; of the others, any thread.
 */
#ifndef GPU_TRANSFORMED_H
#define GPU_TRANSFORMED_H

#include "gpu/chunks.h"
#include "gpu/srs.h"
#include "gpu/transform.h"

/* The parameters that a file belongs to. */
struct transformed_owner {
    struct srs_counts counts;
    uint8_t vk_digest[SRS_VK_DIGEST_BYTES];
    uint8_t digest[SRS_DIGEST_BYTES]; /* over their whole file */
};

/* The path beside that of parameters. -ENAMETOOLONG. */
int transformed_path(const char *params, char out[4096]);

/* Opens the file, looks at its head and its length. Returns 0 with *fd set, -ENOENT, -EBADMSG (it is none, or other parameters'), or what open
 * and read say. */
int transformed_open(const char *path, const struct transformed_owner *owner, int *fd,
                     struct errmsg *err);

/* Whose a file says it is, if of parameters with these counts: fills in the rest of *owner. True; false where its head says otherwise. */
bool transformed_whose(const uint8_t head[SRS_TRANSFORMED_HEAD_BYTES],
                       struct transformed_owner *owner);

/* What the note of the file is known by: for chunk_note_read. */
struct chunk_note transformed_note(const struct transformed_owner *owner);

/* Whether there is room for the file, and a directory for it: 0, -ENOSPC (err: bytes wanted and free), -EACCES, or what statvfs says. */
int transformed_check_room(const char *params, const struct srs_counts *counts, struct errmsg *err);

struct transformed_options {
    const char *memory; /* as in srs_options; there must be one */
    struct backend *backend;
    backend_progress
        progress; /* or NULL. Stages: those of transform_srs once the file has been begun, "write", "sync" */
    void *progress_ctx;
};

/* Makes *srs (whole, of a file, with its points) a transformed one, and writes the file, which appears whole or not at all, in place of the one that
 * there was; then remembers it. What transform_srs says of *srs counts here too. -EBUSY: another process writes it; -ENOSPC; -EINVAL: no memory
 * of trusted files; -EIO. */
int transformed_make(struct srs *srs, const struct circuit *circuit,
                     const struct transformed_options *opt, struct errmsg *err);

#endif
