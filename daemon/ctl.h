/*
 * What the commands of proofctl share: their options, what they print, and how they end.
 *
 * Each command is a function of its own source, ctl_COMMAND.c or ctl_jobs.c, and an entry in the table of
 * ctl.c. A command prints its answer on standard output, or one JSON object a line with --json; what is
 * not the answer (progress, warnings, reasons) goes to standard error.
 *
 * One thread.
 */
#ifndef DAEMON_CTL_H
#define DAEMON_CTL_H

#include <stdio.h>

#include "numa/circuit/c1.h"
#include "numa/circuit/c1_reader.h"
#include "numa/workers.h"

/* Exit codes of all commands; each help text says what they mean there. */
enum ctl_exit { CTL_OK = 0, CTL_NO = 1, CTL_CANNOT = 2 };

struct ctl_args {
    const char *params, *mount, *output, *name; /* NULL: not given, but mount */
    unsigned threads;
    bool json, wait;
    const char *const *operands;
    size_t operands_len;
};

/* The options a command takes: a bit each of ctl_command.options. */
enum ctl_option_bit {
    CTL_PARAMS = 1 << 0,
    CTL_MOUNT = 1 << 1,
    CTL_OUTPUT = 1 << 2,
    CTL_NAME = 1 << 3,
    CTL_THREADS = 1 << 4,
    CTL_JSON = 1 << 5,
    CTL_WAIT = 1 << 6
};

struct ctl_command {
    const char *name;
    const char *usage;   /* operands, "C1 PROOF" */
    const char *summary; /* one line */
    const char *help;    /* the rest, exit codes included */
    unsigned options;
    size_t operands_min, operands_max;
    int (*run)(const struct ctl_args *args);
};

int ctl_setup(const struct ctl_args *args);
int ctl_prove(const struct ctl_args *args);
int ctl_verify(const struct ctl_args *args);
int ctl_inspect(const struct ctl_args *args);
int ctl_submit(const struct ctl_args *args);
int ctl_wait(const struct ctl_args *args);
int ctl_status(const struct ctl_args *args);
int ctl_cancel(const struct ctl_args *args);

/* Prints "proofctl: ..." on standard error. Returns `code`, so that failing is one line. */
int ctl_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "stage 43 %" on one line of a terminal, rewritten; nothing where standard error is none. ctl_progress_end
 * takes the line away. `ctx` is unused: the shape is that of setup and srs_open. */
void ctl_progress(void *ctx, const char *stage, uint64_t done, uint64_t total);
void ctl_progress_end(void);

/* A string in quotes, escaped as JSON has it. */
void ctl_json_string(FILE *out, const char *text);
/* `"key":"<hex>"`, lower case. */
void ctl_json_hex(FILE *out, const char *key, const void *bytes, size_t len);

/* Reads a C1 in any wrapping, with the checks asked for. Complains by itself; NULL on failure. */
struct c1 *ctl_read_c1(const char *path, enum c1_checks checks, struct workers *workers,
                       struct c1_extra *extra);

/* Reads at most `max` bytes of a file, "-" being standard input. malloc'ed, with a NUL after its end.
 * 0, a negative errno, -EFBIG for a longer one. */
int ctl_read_file(const char *path, size_t max, uint8_t **out, size_t *len);

/* Writes a file that appears whole: temporary name beside it, fsync, rename. What exists and is no
 * regular file (/dev/stdout, a FIFO) is written into. 0 or a negative errno. */
int ctl_write_file(const char *path, const void *bytes, size_t len);

/* Hex (white space may surround and divide it) or raw, found by content: in place, *len becomes that of
 * the decoded bytes. */
void ctl_proof_from_text(uint8_t *bytes, size_t *len);

#endif
