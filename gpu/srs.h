/*
 * Groth16 parameter files (c2-formats 4): where they are, whether they are to be trusted, and their
 * points in memory as the prover wants them.
 *
 * An srs is immutable once opened and may be read by any thread.
 */
#ifndef GPU_SRS_H
#define GPU_SRS_H

#include <sys/stat.h>

#include "gpu/curve.h"
#include "gpu/srs_counts.h"
#include "gpu/trust.h"
#include "gpu/vk.h"
#include "numa/circuit/sector.h"
#include "numa/workers.h"

/* Where every Filecoin tool keeps them. */
#define SRS_DEFAULT_DIR "/var/tmp/filecoin-proof-parameters"

#define SRS_DIGEST_BYTES 16    /* of a BLAKE2b-512 over a whole file, as published (c2-formats 4.5) */

struct srs {
    const struct sector_size *size;
    struct vk vk; /* with ic */
    /* Lengths in points; what the file's counts said, checked against the circuit's. */
    size_t h_len, l_len, a_len, b_len;
    g1_affine_t *h, *l, *a, *b_g1;
    g2_affine_t *b_g2;
    /* h and l are those of transform.h, h one point longer, and input_l has a point for each input (vk.ic_len). Where this is false
     * input_l is NULL. */
    bool transformed;
    g1_affine_t *input_l;
    struct errmsg
        not_transformed; /* why a file of transformed points that is there was not taken; empty: none is there, or nobody asked */
    enum srs_trust trust; /* never SRS_UNCHECKED */
    bool remembered;      /* every chunk is what it was when the file was found good (chunks.h) */
    uint8_t vk_digest[SRS_VK_DIGEST_BYTES]; /* SHA-256 of the .vk that belongs to it: tells parameters apart */
    uint8_t file_digest
        [SRS_DIGEST_BYTES]; /* over the whole file, when it was read or when it was found good */
    char path[4096];
};

struct srs_options {
    const char *dir; /* NULL: the order of srs_find */
    /* File that remembers what was trusted (trusted.h), notes of chunks beside it (chunks.h); NULL: the user's own, "": none. */
    const char *memory;
    struct workers *workers;
    /* Progress in bytes of all the work that is expected (when a chunk is not as noted, more is: then it falls back),
     * or NULL. Called from the calling thread. Stages: "read" with a note, or "digest", and "check" where points are looked at. */
    void (*progress)(void *ctx, const char *stage, uint64_t done, uint64_t total);
    void *progress_ctx;
    bool plain; /* h and l of the file itself, whatever is beside it */
};

/* Opens the parameters of `size`, checks and loads them. Returns 0 with *out set (end it with
 * srs_close), -ENOENT (err names every directory that was searched), -EBADMSG (err: what, section,
 * index, and what to do about it; the chunk that is not as noted, where that is why all was checked anew; also a file that changed or ended
 * while it was read), -ENOMEM, -EIO. */
int srs_open(const struct sector_size *size, const struct srs_options *opt, struct srs **out,
             struct errmsg *err);
/*
 * Where transformed points are beside the file (transformed.h) h and l are theirs, and those of the file are not even read. That asks for notes of
 * both: of the parameters, who have been checked at an earlier load then and whose other sections are compared chunk by chunk, and of the
 * transformed points, which were made of parameters with the same digest. Where anything of that is missing or not as noted everything is taken
 * from the parameters, as if there were nothing else, and not_transformed says why.
 */
void srs_close(struct srs *srs);
/* Frees the points, key and counts stay: for parameters that a device holds now. */
void srs_drop_points(struct srs *srs);
static inline bool srs_has_points(const struct srs *srs)
{
    return srs->l != NULL;
}

/* A file whose place is known; what srs_open makes of size and directory. */
struct srs_source {
    const char *path;
    struct srs_counts counts;
    const char *digest; /* published, hex; NULL: there is none */
};

/* srs_open from there on. `size` may be NULL. */
int srs_load(const struct srs_source *source, const struct sector_size *size,
             const struct srs_options *opt, struct srs **out, struct errmsg *err);

/* Remembers the file at `path` as good, in the user's own memory: for who has just written every point of it from scalars
 * (setup). `digest` is over the whole file, as published ones are. 0 also where there is no such memory. */
int srs_remember(const struct sector_size *size, const char *path,
                 const uint8_t digest[SRS_DIGEST_BYTES], struct errmsg *err);

/* What can be said of the parameters of a size without reading their points. */
struct srs_look {
    char path[4096];
    struct stat st;
    enum srs_trust trust; /* SRS_UNCHECKED unless the memory knows it, or it is SRS_INSECURE */
    uint8_t vk_digest[SRS_VK_DIGEST_BYTES];
    /* There is no file and no path, devices make them (daemon/params_watch.h); vk_digest is that of those that they have made. */
    bool made_by_devices, has_been_made;
    /* A load would take transformed points; or why it would leave those that are there: empty, there are none. */
    bool transformed;
    struct errmsg not_transformed;
};

/* Looks at the head of the file, and of transformed points beside it, at its counts, its length, the marker, and the memory (as in srs_options). Returns 0 with *out
 * filled, -ENOENT, -EBADMSG (it cannot be loaded: err says why, and what to do), or what open and read say; with path and st where there is
 * a file. */
int srs_look(const struct sector_size *size, const char *dir, const char *memory, struct srs_look *out,
             struct errmsg *err);

/* Only the verifying key of `size`, that of the parameters which srs_open would take: from the .vk beside them, else from their head. Where
 * there are none, from the first .vk. */
int srs_open_vk(const struct sector_size *size, const char *dir, struct vk *out, bool *insecure,
                struct errmsg *err);

/* Writes into `out` the path of the file of `size` with `suffix` (".params", ".vk", ".insecure") in the first directory
 * that has it: `dir` if given, else $FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters, and then the
 * development directory ($XDG_DATA_HOME or ~/.local/share)/proofd/params-insecure. -ENOENT names them all, and of each
 * what hides a file there: no such directory, or no right to look into it. */
int srs_find(const struct sector_size *size, const char *dir, const char *suffix, char out[4096],
             struct errmsg *err);

/* These directories, "A nor in B (no such directory)". */
void srs_list_dirs(const char *dir, struct errmsg *out);

/* Adds to what srs_find said of a size that has no file what to do about it: a command, with a directory that `dir` makes srs_find look
 * into. Nothing where it can look into none. */
void srs_say_what_to_do(const struct sector_size *size, const char *dir, struct errmsg *err);

/* Is the marker of development parameters beside this file? */
bool srs_is_marked(const char *path);

/* The last of these. -ENOENT when neither variable is set to a path. */
int srs_development_dir(char out[4096], struct errmsg *err);

#endif
