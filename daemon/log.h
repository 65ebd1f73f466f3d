/*
 * The log: one event a line on standard error, `<6>job=17 stage=synthesize node=1 ms=5120`, with
 * the priority in front as the journal reads it.
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
enum log_level { LOG_LEVEL_ERR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

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
 * not wanted. */
#define LOG_AT(level, ...)                                                                         \
    do {                                                                                           \
        if (log_wants(level)) {                                                                    \
            const struct log_field log_fields_[] = {__VA_ARGS__};                                  \
            log_put(level, log_fields_, ARRAY_LEN(log_fields_));                                   \
        }                                                                                          \
    } while (0)
#define log_err(...) LOG_AT(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)

extern atomic_int log_threshold; /* log_set_level's; read by log_wants alone */

static inline bool log_wants(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

void log_put(enum log_level level, const struct log_field *fields, size_t len);

/* Takes effect at once; LOG_LEVEL_INFO until it is called. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* "err" "warn" "info" "debug". log_level_parse returns 0, or -EINVAL for any other word. */
const char *log_level_name(enum log_level level);
int log_level_parse(const char *name, enum log_level *out);

/* Starts the writer thread. Returns 0 or a negative errno; without it the log still works. */
int log_start(struct errmsg *err);
/* Writes what is in the ring and ends the writer thread. */
void log_stop(void);

/* Formats one event as it is written, newline included, cut to `size`. Returns its length. For
 * log_put and tests. */
size_t log_format(char *out, size_t size, enum log_level level, const struct log_field *fields,
                  size_t len);

#endif
