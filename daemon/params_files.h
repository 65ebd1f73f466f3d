/*
 * What the directory params of the mount shows: a file for each size whose parameters are on disk, in an engine, or made by its devices. Its text says where
 * they are, made of a look at the file and of what the engines told last; what is written to it is a wish for the engines.
 *
 *     load | evict [node N]
 *
 * Any thread may do all of this; making and destroying belong to main().
 */
#ifndef DAEMON_PARAMS_FILES_H
#define DAEMON_PARAMS_FILES_H

#include "daemon/params_watch.h"
#include "daemon/sched.h"

struct params_files;

/* A file of the mount. */
struct params_file {
    const char *path; /* "params/32GiB" */
    bool (*present)(void *ctx);
    int (*render)(void *ctx, char **text, size_t *len); /* malloc'ed text; 0 or -ENOMEM */
    /* 0; -EINVAL for other words, or a node that is not there; -EBUSY: to be given up, and partitions that need them are in flight;
     * -ENOENT, -EBADMSG: to be loaded, and there is no file, or none that can be. */
    int (*write)(void *ctx, const char *text, struct errmsg *err);
    void *ctx;
};

/* For a scheduler with `engines` engines; all is borrowed. 0 or -ENOMEM. */
int params_files_create(struct sched *sched, size_t engines, struct params_watch *watch,
                        struct params_files **out);
void params_files_destroy(struct params_files *f);

const struct params_file *params_files_list(const struct params_files *f, size_t *len);

#endif
