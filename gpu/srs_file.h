/*
 * Reading a parameter file into memory, and checking its points there.
 *
 * Files are read, not mapped: a mapping that is truncated is a signal, a read is an error. Points go straight to
 * where they stay and are brought into Montgomery form in place.
 *
 * One call at a time on a set of workers.
 */
#ifndef GPU_SRS_FILE_H
#define GPU_SRS_FILE_H

#include "gpu/chunks.h"
#include "gpu/srs.h"
#include "gpu/srs_counts.h"
#include "gpu/subgroup.h"

/* How to read; every field may be zero. */
struct srs_reading {
    struct workers *workers;
    void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total); /* bytes */
    void *progress_ctx;
    uint8_t *digest; /* SRS_DIGEST_BYTES over all that was read; NULL: not wanted */
    uint8_t *chunks; /* CHUNK_DIGEST_BYTES for each chunk of what was read; NULL: not wanted */
    const uint8_t *expected; /* the same, which what is read must have; NULL: anything will do */
    bool without_h_and_l;    /* they are passed over: no digest of the whole file then */
};

/* The points of a file in chunks: SRS_CHUNK_POINTS of a section, at its end fewer. The head and the counts are in none, for they are
 * known before. */
#define SRS_CHUNK_POINTS SUBGROUP_PIECE
uint32_t srs_chunks(const struct srs_counts *counts);

/* Reads the file of `fd`, called `name` in messages, whose counts must be `want`: header, counts and size are looked
 * at before memory is taken. Fills vk, the lengths and the points of *out; end them with srs_fini. Every coordinate
 * is canonical and no point infinity then; the points of vk are fully checked, the others are not yet. Returns 0,
 * -EBADMSG (what, section, index; also a file that changed or ended while it was read), -ESTALE (a chunk is not as expected: which),
 * -ENOMEM, -EIO. The stage of progress is "digest" where one is wanted, else "read". */
int srs_read(int fd, const char *name, const struct srs_counts *want,
             const struct srs_reading *how, struct srs *out, struct errmsg *err);
void srs_fini(struct srs *srs);

/* The same of a file of transformed points (transformed.h), whose head is known to be right: fills input_l, h and l with their lengths, and nothing
 * else of *out. Progress counts as the first part of what srs_read of the parameters does without h and l. */
int srs_read_transformed(int fd, const char *name, const struct srs_counts *want,
                         const struct srs_reading *how, struct srs *out, struct errmsg *err);
uint32_t srs_transformed_chunks(const struct srs_counts *counts);

/* Whether it is a regular file with the counts and the length of `want`; reads no points. 0, -EBADMSG, or what reading says. */
int srs_check_layout(int fd, const char *name, const struct srs_counts *want, struct errmsg *err);

/* Every point on its curve and in the subgroup (subgroup.h)? Returns 0, -EBADMSG (section, index), -ENOMEM, -EIO. */
int srs_check_points(const struct srs *srs, const char *name, const struct srs_reading *how,
                     struct errmsg *err);

#endif
