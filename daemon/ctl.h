/*
 * What the commands of proofctl share: their options, what they print, and how they end.
 *
 * Each command is a function of its own source, ctl_COMMAND.c or ctl_jobs.c, and an entry in the table of
 * ctl.c. A command prints its answer on standard output, or one JSON object a line with --json, errors
 * included; what is not the answer (progress, warnings, errors without --json) goes to standard error.
 *
 * One thread.
 */
#ifndef DAEMON_CTL_H
#define DAEMON_CTL_H

#include <stdio.h>

#include "numa/circuit/c1.h"
#include "numa/circuit/c1_reader.h"
#include "numa/workers.h"

/* Exit codes of all commands; each help text says what they mean there. NO is an answer, and asking again gives the same;
 * CANNOT is none, because of wrong usage or something that is missing. */
enum ctl_exit { CTL_OK = 0, CTL_NO = 1, CTL_CANNOT = 2 };

#define CTL_C1_MAX 64 /* of --c1 */
#define CTL_STDIN_PATH "/dev/stdin"

/* What ECANCELED of an open for writing means. */
#define CTL_STOPPING "the service is stopping: ask again when it is back"

struct ctl_args {
    const char *params, *mount, *output,
        *name; /* NULL: not given, but mount; output: standard output too */
    const char *svg, *store;
    const char *c1[CTL_C1_MAX];
    size_t c1_len;
    unsigned threads, count, concurrency, gpu;
    bool json, wait, once, same, distinct, cpu;
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
    CTL_WAIT = 1 << 6,
    CTL_PARAMS_TO = 1 << 7, /* --params of setup */
    CTL_ONCE = 1 << 8,
    CTL_COUNT = 1 << 9,
    CTL_CONCURRENCY = 1 << 10,
    CTL_C1 = 1 << 11,
    CTL_SAME = 1 << 12,
    CTL_DISTINCT = 1 << 13,
    CTL_SVG = 1 << 14,
    CTL_GPU = 1 << 15,
    CTL_CPU = 1 << 16,
    CTL_STORE = 1 << 17,
    CTL_STDIN = 1 << 18 /* no option: one of the operands may be -, and is CTL_STDIN_PATH then. It is not opened, which a socket does not bear */
};

struct ctl_command {
    const char *name;
    const char *usage;    /* operands, "C1 PROOF" */
    const char *summary;  /* one line */
    const char *help;     /* the rest */
    const char *yes, *no; /* what exit codes 0 and 1 mean; NULL: never 1 */
    const char *cannot;   /* and 2, beside wrong usage */
    unsigned options;
    size_t operands_min, operands_max;
    int (*run)(const struct ctl_args *args);
};

int ctl_setup(const struct ctl_args *args);
int ctl_transform(const struct ctl_args *args);
int ctl_prove(const struct ctl_args *args);
int ctl_verify(const struct ctl_args *args);
int ctl_inspect(const struct ctl_args *args);
int ctl_submit(const struct ctl_args *args);
int ctl_wait(const struct ctl_args *args);
int ctl_status(const struct ctl_args *args);
int ctl_cancel(const struct ctl_args *args);
int ctl_top(const struct ctl_args *args);
int ctl_bench(const struct ctl_args *args);

/* Says why there is no answer: "proofctl: ..." on standard error, or after ctl_say_in_json {"error":"..."} on standard output.
 * Returns `code`, so that failing is one line. */
int ctl_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text of *err, else that of the negative errno. */
int ctl_fail_with(int code, int error, const struct errmsg *err);
/* Parameters or a key could not be opened: CTL_CANNOT. Says what to do where there are none; `dir` is that of --params, or NULL. */
int ctl_fail_params(const struct sector_size *size, const char *dir, int error,
                    const struct errmsg *err);
/* What was given is no sector size: CTL_CANNOT. */
int ctl_fail_size(const char *name);
void ctl_say_in_json(void);
bool ctl_says_json(void);

/* "stage 43 %" on one line of a terminal, rewritten. Where standard error is none: nothing, or after ctl_progress_lines a line
 * now and then. ctl_progress_end takes the terminal's line away. `ctx` is unused: the shape is that of setup and
 * srs_open. */
void ctl_progress(void *ctx, const char *stage, uint64_t done, uint64_t total);
void ctl_progress_lines(void);
void ctl_progress_end(void);

/* SIGINT, SIGTERM and SIGHUP remove `path`.tmp, where this process is writing it (gpu/newfile.h), and then end it as ever. */
void ctl_remove_when_interrupted(const char *path);

/* Text with names of others in it, for people: control characters and bytes that are no UTF-8 as \xNN. */
void ctl_put(FILE *out, const char *text);

/* A string in quotes, escaped as JSON has it; bytes that are no UTF-8 as \u00NN. */
void ctl_json_string(FILE *out, const char *text);
/* `"key":"<hex>"`, lower case. */
void ctl_json_hex(FILE *out, const char *key, const void *bytes, size_t len);

/* Reads a C1 in any wrapping, with the checks asked for. Complains by itself. 0, or as c1_read_file: -EBADMSG, -EINVAL and
 * -EFBIG judge the content, all others could not. */
int ctl_read_c1(const char *path, enum c1_checks checks, struct workers *workers, struct c1 **out);
/* Whether an error of reading or proving a C1 is a judgement on it: CTL_NO, else CTL_CANNOT. */
enum ctl_exit ctl_exit_of(int error);

/* Reads at most `max` bytes of a file, "-" being standard input. malloc'ed, with a NUL after its end.
 * 0, a negative errno, -EFBIG for a longer one. */
int ctl_read_file(const char *path, size_t max, uint8_t **out, size_t *len);

/* Writes a file that appears whole: temporary name beside it, fsync, rename. What exists and is no
 * regular file (/dev/stdout, a FIFO) is written into. 0 or a negative errno. */
int ctl_write_file(const char *path, const void *bytes, size_t len);

/* Whether ctl_write_file could now: 0 or a negative errno. For who has hours of work before it. */
int ctl_may_write(const char *path);

/* Hex (white space may surround and divide it) or raw, found by content: in place, *len becomes that of
 * the decoded bytes. Returns the number of digits, 0 for raw; an odd number of them is left as it is. */
size_t ctl_proof_from_text(uint8_t *bytes, size_t *len);

#endif
