/*
 * The parameters that an engine holds: loaded when a partition first needs them, kept for each size,
 * thrown out, the longest unused first, when another size or a proof needs the memory.
 *
 * params_get belongs to the pipeline's thread; params_describe may be called from any thread, while
 * parameters are being loaded too.
 */
#ifndef DAEMON_PARAMS_H
#define DAEMON_PARAMS_H

#include "gpu/srs.h"

struct params;

/* `dir` (NULL: the search order of srs_find), `trusted` (the file of srs_options.memory, NULL: the
 * user's own) and `workers` are borrowed. 0 or -ENOMEM. */
int params_create(const char *dir, const char *trusted, struct workers *workers,
                  struct params **out);
void params_destroy(struct params *p);

/* The parameters of `size`, for use until the next call. *load_ms is what loading took, 0 when they were
 * there. -ENOMEM (err: what it needs and what there is), or as srs_open. */
int params_get(struct params *p, const struct sector_size *size, const struct srs **out,
               double *load_ms, struct errmsg *err);

/* For people, empty when nothing is loaded: "2KiB (insecure development parameters)",
 * "loading 32GiB 43 %". */
void params_describe(struct params *p, char *out, size_t size);

#endif
