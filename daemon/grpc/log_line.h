/*
 * The log of the service (daemon/log.h) for C++, which has no designated initializers in expressions: one event, of fields that are
 * text.
 *
 * Any thread.
 */
#ifndef GRPC_LOG_LINE_H
#define GRPC_LOG_LINE_H

#ifdef __cplusplus
extern "C" {
#endif

#include "numa/base.h"

/* As enum log_level. */
enum line_level { LINE_ERR = 3, LINE_WARN = 4, LINE_INFO = 6, LINE_DEBUG = 7 };

struct line_field {
    const char *key; /* a literal */
    const char *value;
};

void line_put(enum line_level level, const struct line_field *fields, size_t len);
/* 0, or -EINVAL: none of off, err, warn, info, debug. */
int line_set_level(const char *name);

/* log_start and log_stop. */
int line_start(struct errmsg *err);
void line_stop(void);

#ifdef __cplusplus
}

#include <initializer_list>

inline void log_line(line_level level, std::initializer_list<line_field> fields)
{
    line_put(level, fields.begin(), fields.size());
}
#endif

#endif
