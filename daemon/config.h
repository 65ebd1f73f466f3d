/*
 * The options of proofd: defaults, overruled by one INI file, overruled by the command line. All
 * three, the help text and the manual follow one table.
 *
 * The file has lines `key = value`; blank lines and lines that begin with # or ; are skipped; the
 * one section is [proofd], and may be left out. An option `max_unfinished` reads --max-unfinished on
 * the command line. Unknown keys, values out of bounds and keys given twice in the file are errors.
 * A value may stand in quotes of either kind, which are no part of it; without quotes it has no # or ; at its
 * begin or behind a blank.
 *
 * Belongs to main(), before any thread.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdio.h>
#include <sys/types.h>

#include "daemon/log.h"

#define CONFIG_PATH_MAX 1024                   /* bytes of a path option, NUL included */
#define CONFIG_DEVICE_MAX 32                   /* bytes of a device name */
#define CONFIG_FILE_DEFAULT "/etc/proofd.conf" /* read when it is there and --config is not given */

#define CONFIG_OPTIONS_MAX 64
#define CONFIG_LINE_COMMAND UINT32_MAX /* in place of a line's number: the command line */

struct config {
    char mount[CONFIG_PATH_MAX];
    char store[CONFIG_PATH_MAX];
    char device[CONFIG_PATH_MAX];   /* name in /dev, or none */
    char params[CONFIG_PATH_MAX];   /* empty: the search order of srs_find */
    char development_parameters[CONFIG_PATH_MAX]; /* none or device */
    char engine[CONFIG_PATH_MAX];   /* empty: proofd-engine beside proofd */
    char nodes[CONFIG_PATH_MAX];    /* as nodes.h has it; empty: every NUMA node with CPUs */
    uint64_t threads;               /* of an engine; 0: as many as its CPUs */
    uint64_t memory_bytes;          /* of an engine; 0: what its node has */
    uint64_t permits;               /* of an engine; 0: as suits its prover */
    char gpus[CONFIG_PATH_MAX];     /* auto or none */
    uint64_t gpu_memory_bytes;      /* of each; 0: what is free */
    char confine[CONFIG_PATH_MAX];  /* engines: auto, on or off */
    char simulate[CONFIG_PATH_MAX]; /* file of a simulated device; empty: none */
    uint32_t log_levels;            /* LOG_LEVELS */
    uint64_t max_unfinished;
    uint64_t max_store_bytes; /* 0: as much as the disk has */
    uint64_t max_unsubmitted, max_unsubmitted_user;
    uint64_t max_unsubmitted_bytes, max_unsubmitted_bytes_user; /* 0: by the disk */
    uint64_t unsubmitted_age_s;                                 /* 0: for ever */
    uint64_t keep_finished;
    uint64_t keep_finished_age_s; /* 0: for ever */
    uint64_t aging_s;             /* 0: classes may starve */
    char critical_group[CONFIG_PATH_MAX]; /* name or number; empty: the service's own */
    char shared_group[CONFIG_PATH_MAX];   /* likewise; empty: none */
    uint64_t tries;               /* of a partition, until engines have died over it */
    uint64_t silence_s;           /* of an engine, then it is killed */
    uint64_t keep_finished_bytes; /* 0: no limit */
    uint64_t stop_wait_s;         /* for what is in flight at a stop */

    const char *file;                   /* that was read, borrowed; NULL: none */
    uint32_t lines[CONFIG_OPTIONS_MAX]; /* where in it each option is from; 0: the default */
};

/* What the command line asks for. */
enum config_action { CONFIG_RUN, CONFIG_HELP, CONFIG_VERSION, CONFIG_CHECK };

/* The group of shared_group, CONFIG_NO_GROUP: none. -EINVAL: there is no such group. */
#define CONFIG_NO_GROUP ((gid_t)-1)
int config_shared_gid(const struct config *cfg, gid_t *out, struct errmsg *err);
/* The group of critical_group. -EINVAL: there is no such group. */
int config_critical_gid(const struct config *cfg, gid_t *out, struct errmsg *err);

/* May devices make insecure development parameters of which there is no file? */
bool config_makes_parameters(const struct config *cfg);

void config_defaults(struct config *cfg);

/* What is wrong with a value that was read without trouble: puts before the text of *err where the value of `option` (as in the
 * file) is from, "FILE:LINE" or "command line"; nothing before that of a default. Returns `code`. */
int config_blame(const struct config *cfg, const char *option, int code, struct errmsg *err);

/* Reads `path`, which is borrowed for as long as *cfg lives, into *cfg. Returns 0, a negative errno of the file, or -EINVAL (err: file, line, key,
 * what is wrong and what would be right); then *cfg is half changed. */
int config_read_file(const char *path, struct config *cfg, struct errmsg *err);

/* Defaults, then the file that the command line or CONFIG_FILE_DEFAULT names, then the command line.
 * Returns 0 with *cfg and *action set, or as config_read_file. */
int config_load(int argc, char **argv, struct config *cfg, enum config_action *action,
                struct errmsg *err);

/* The same again, in the main thread of a service that runs: all or nothing. -EINVAL, too, where an option has changed that needs
 * a restart; err names it. */
int config_load_again(int argc, char **argv, struct config *cfg, struct errmsg *err);

/* The help text of proofd, and the options in effect as a file that config_read_file takes. */
void config_print_help(FILE *out);
void config_print(const struct config *cfg, FILE *out);

#endif
