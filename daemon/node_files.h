/*
 * What the directories nodes/N and gpus/N of the mount show: text for people and scripts, a line for each thing, made of what the
 * engines told last.
 *
 * Any thread may render; making and destroying belong to main().
 */
#ifndef DAEMON_NODE_FILES_H
#define DAEMON_NODE_FILES_H

#include "daemon/history.h"
#include "daemon/nodes.h"

struct node_files;

/* A file of the mount. */
struct node_file {
    const char *path;                                   /* "nodes/0/flight" */
    int (*render)(void *ctx, char **text, size_t *len); /* malloc'ed text; 0 or -ENOMEM */
    void *ctx;
};

/* For the nodes that `sched` has engines for, in the same order; all are borrowed. A node has its GPUs, or, where `simulated` is not
 * 0, so many simulated ones. 0 or -ENOMEM. */
int node_files_create(const struct nodes *nodes, unsigned simulated, struct sched *sched,
                      struct history *history, struct node_files **out);
void node_files_destroy(struct node_files *f);

const struct node_file *node_files_list(const struct node_files *f, size_t *len);

#endif
