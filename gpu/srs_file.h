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

#include "gpu/srs.h"
#include "gpu/srs_counts.h"

/* How to read; every field may be zero. */
struct srs_reading {
    struct workers *workers;
    void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total); /* bytes */
    void *progress_ctx;
    uint8_t *digest; /* SRS_DIGEST_BYTES over all that was read; NULL: not wanted */
};

/* Reads the file of `fd`, called `name` in messages, whose counts must be `want`: header, counts and size are looked
 * at before memory is taken. Fills vk, the lengths and the points of *out; end them with srs_fini. Every coordinate
 * is canonical and no point infinity then; the points of vk are fully checked, the others are not yet. Returns 0,
 * -EBADMSG (what, section, index; also a file that changed or ended while it was read), -ENOMEM, -EIO. */
int srs_read(int fd, const char *name, const struct srs_counts *want,
             const struct srs_reading *how, struct srs *out, struct errmsg *err);
void srs_fini(struct srs *srs);

/* Compares the counts and the length of a file with `want`, reading no points. 0, -EBADMSG, or what reading says. */
int srs_check_layout(int fd, const char *name, const struct srs_counts *want, struct errmsg *err);

/* Every point on its curve and in the subgroup (subgroup.h)? Returns 0, -EBADMSG (section, index), -ENOMEM, -EIO. */
int srs_check_points(const struct srs *srs, const char *name, const struct srs_reading *how,
                     struct errmsg *err);

#endif
