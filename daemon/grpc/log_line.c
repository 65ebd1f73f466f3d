#include "daemon/grpc/log_line.h"

#include "daemon/log.h"

_Static_assert((int)LINE_ERR == (int)LOG_LEVEL_ERR && (int)LINE_WARN == (int)LOG_LEVEL_WARN &&
                   (int)LINE_INFO == (int)LOG_LEVEL_INFO && (int)LINE_DEBUG == (int)LOG_LEVEL_DEBUG,
               "levels are those of the log");

void line_put(enum line_level level, const struct line_field *fields, size_t len)
{
    struct log_field all[LOG_FIELDS_MAX];

    if (!log_wants(LOG_FRONT, (enum log_level)level))
        return;
    len = min_size(len, LOG_FIELDS_MAX);
    for (size_t i = 0; i < len; i++)
        all[i] = log_str(fields[i].key, fields[i].value);
    log_put((enum log_level)level, all, len);
}

int line_set_level(const char *name)
{
    enum log_level level;
    int ret = log_level_parse(name, &level);

    if (ret == 0)
        log_set_level(level);
    return ret;
}

int line_start(struct errmsg *err)
{
    log_choose_times();
    return log_start(err);
}

void line_stop(void)
{
    log_stop();
}
