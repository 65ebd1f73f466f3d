/*
 * The log: one event a line on standard error, `<6>job=17 stage=synthesize node=1 ms=5120`, with
 * the priority in front as the journal reads it; before that the time, where it is not the journal that reads.
 *
 * A caller on a hot path pays a look at the level and, when the event is wanted, a copy of the
 * fields into a ring; a writer thread formats and writes. When the ring is full the event is dropped
 * and the next line that gets through says how many were lost. Before log_start and after log_stop
 * events are written by the caller itself, so that early errors are not lost.
 *
 * Everything may be called from any thread, but log_start and log_stop, which belong to main().
 * Keys are string literals: only the pointer is kept. Values are copied.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdatomic.h>

#include "numa/base.h"

/* The numbers are those of syslog, which the journal expects. */
enum log_level {
    LOG_LEVEL_OFF = 0, /* of no event */
    LOG_LEVEL_ERR = 3,
    LOG_LEVEL_WARN = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* Each has a level of its own. A file that logs defines LOG_MODULE as the one it speaks for. */
enum log_module {
    LOG_FRONT,  /* start, stop, options */
    LOG_JOBS,   /* jobs and their store */
    LOG_SCHED,  /* what engines are given, and what comes of it */
    LOG_ENGINE, /* engines, of themselves */
    LOG_PARAMS,
    LOG_FUSE, /* the mount and the device */
    LOG_MODULES
};

/* The levels of all modules are one word, so that a look at one is a load, and all change together. */
#define LOG_LEVEL_BITS 4
#define LOG_LEVEL_MASK ((UINT32_C(1) << LOG_LEVEL_BITS) - 1)
/* The word in which every module has this level. */
#define LOG_LEVELS(level)                                                                          \
    (((UINT32_C(1) << LOG_LEVEL_BITS * LOG_MODULES) - 1) / LOG_LEVEL_MASK * (uint32_t)(level))
#define LOG_LEVELS_TEXT 256 /* bytes of log_levels_text's longest and more than it, NUL included */

enum log_field_type { LOG_FIELD_U64, LOG_FIELD_I64, LOG_FIELD_STR };

struct log_field {
    const char *key;
    enum log_field_type type;
    union {
        uint64_t u64;
        int64_t i64;
        const char *str;
    } value;
};

#define LOG_FIELDS_MAX 12  /* fields of one event; more are dropped */
#define LOG_TEXT_BYTES 960 /* for all strings of one event; what does not fit is cut */

static inline struct log_field log_u64(const char *key, uint64_t value)
{
    return (struct log_field){key, LOG_FIELD_U64, {.u64 = value}};
}

static inline struct log_field log_i64(const char *key, int64_t value)
{
    return (struct log_field){key, LOG_FIELD_I64, {.i64 = value}};
}

/* NULL is written as an empty string. */
static inline struct log_field log_str(const char *key, const char *value)
{
    return (struct log_field){key, LOG_FIELD_STR, {.str = value}};
}

/* log_info(log_u64("job", id), log_str("stage", "prove")); nothing is evaluated when the level is
 * not wanted. LOG_AT is for what is of another module than the rest of its file. */
#define LOG_AT(module, level, ...)                                                                 \
    do {                                                                                           \
        if (log_wants(module, level)) {                                                            \
            const struct log_field log_fields_[] = {__VA_ARGS__};                                  \
            log_put(level, log_fields_, ARRAY_LEN(log_fields_));                                   \
        }                                                                                          \
    } while (0)
#define log_err(...) LOG_AT(LOG_MODULE, LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_MODULE, LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_MODULE, LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_MODULE, LOG_LEVEL_DEBUG, __VA_ARGS__)

extern atomic_uint log_thresholds; /* log_set_levels'; read by log_wants alone */

static inline enum log_level log_level_of(uint32_t levels, enum log_module module)
{
    return (enum log_level)(levels >> LOG_LEVEL_BITS * module & LOG_LEVEL_MASK);
}

static inline bool log_wants(enum log_module module, enum log_level level)
{
    return level <= log_level_of(atomic_load_explicit(&log_thresholds, memory_order_relaxed), module);
}

void log_put(enum log_level level, const struct log_field *fields, size_t len);

/* Take effect at once; LOG_LEVEL_INFO for all until they are called. */
void log_set_levels(uint32_t levels);
void log_set_level(enum log_level level); /* of all modules */
uint32_t log_get_levels(void);

/* "off" "err" "warn" "info" "debug". Returns 0, or -EINVAL for any other word. */
int log_level_parse(const char *name, enum log_level *out);
/* "info sched=debug fuse=off": words between blanks or newlines, a level for all modules first, if at all. Who is not named keeps the
 * level that *levels has. Returns 0, or -EINVAL with *levels as it was: all or nothing. */
int log_levels_parse(const char *text, uint32_t *levels, struct errmsg *err);
/* What log_levels_parse takes, the shortest: the level of most, and who differs. */
void log_levels_text(uint32_t levels, char out[LOG_LEVELS_TEXT]);
bool log_levels_are_valid(uint32_t levels);
/* log_levels_parse of the levels that hold now. */
int log_change_levels(const char *text, struct errmsg *err);

/* For main(), first of all: whether lines begin with the time. They do unless standard error is the journal's, which has its own
 * (JOURNAL_STREAM, its device and inode as DEV:INODE); never before this is called. */
void log_choose_times(void);

/* Starts the writer thread. Returns 0 or a negative errno; without it the log still works. */
int log_start(struct errmsg *err);
/* Writes what is in the ring and ends the writer thread. */
void log_stop(void);

/* Formats one event as it is written, newline included, cut to `size`. Returns its length. For
 * log_put and tests. */
size_t log_format(char *out, size_t size, enum log_level level, const struct log_field *fields,
                  size_t len);

#endif
