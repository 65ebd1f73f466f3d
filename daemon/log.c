/*
 * The ring is a bounded queue of many producers and one consumer: each slot carries the turn in
 * which it may be written or read, a producer claims a turn by compare-and-swap, and nobody waits
 * for anybody but the writer, for the one producer that has claimed a slot and not filled it yet.
 */
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 512 /* a power of two; 0.6 MB, touched only as far as it is used */
#define LINE_BYTES 4096

static bool with_times; /* log_choose_times' */

struct slot {
    struct timespec when;
    atomic_size_t turn; /* = position: free for that position; = position + 1: filled */
    enum log_level level;
    size_t len;
    struct log_field fields[LOG_FIELDS_MAX]; /* strings point into text */
    char text[LOG_TEXT_BYTES];
};

atomic_uint log_thresholds = LOG_LEVELS(LOG_LEVEL_INFO);

_Static_assert(LOG_LEVEL_BITS * LOG_MODULES < 32, "levels are one word");

static struct {
    struct slot slots[SLOTS];
    atomic_size_t head;   /* next position to claim */
    size_t tail;          /* the writer's alone */
    atomic_uint_fast64_t lost;
    atomic_bool running;  /* events go into the ring */
    atomic_bool stop;
    sem_t filled; /* one post for each filled slot, and one to stop: no system call unless the writer
                     sleeps */
    pthread_t writer;
} ring;

static const struct {
    const char *name;
    enum log_level level;
} level_names[] = {
    {"off", LOG_LEVEL_OFF},
    {"err", LOG_LEVEL_ERR},
    {"warn", LOG_LEVEL_WARN},
    {"info", LOG_LEVEL_INFO},
    {"debug", LOG_LEVEL_DEBUG},
};

static const char *const module_names[LOG_MODULES] = {
    [LOG_FRONT] = "front",   [LOG_JOBS] = "jobs",     [LOG_SCHED] = "sched",
    [LOG_ENGINE] = "engine", [LOG_PARAMS] = "params", [LOG_FUSE] = "fuse",
};

/* NULL: it is none. */
static const char *level_name(enum log_level level)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (level_names[i].level == level)
            return level_names[i].name;
    return NULL;
}

int log_level_parse(const char *name, enum log_level *out)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (strcmp(level_names[i].name, name) == 0) {
            *out = level_names[i].level;
            return 0;
        }
    return -EINVAL;
}

/* LOG_MODULES: it is none. */
static unsigned find_module(const char *name)
{
    unsigned m = 0;

    while (m < LOG_MODULES && strcmp(module_names[m], name) != 0)
        m++;
    return m;
}

/* "debug" or "sched=debug"; the modules named so far are bits of *named. */
static int parse_word(char *word, bool first, uint32_t *levels, uint32_t *named, struct errmsg *err)
{
    char *equals = strchr(word, '=');
    const char *name = equals ? equals + 1 : word;
    enum log_level level;

    if (log_level_parse(name, &level) < 0)
        return errmsg_set(err, -EINVAL, "'%s' is none of off, err, warn, info, debug", name);
    if (!equals) {
        *levels = LOG_LEVELS(level);
        return first ? 0 : errmsg_set(err, -EINVAL, "'%s' comes first, being for all modules", name);
    }
    *equals = '\0';
    unsigned m = find_module(word);
    if (m == LOG_MODULES)
        return errmsg_set(err, -EINVAL, "'%s' is none of front, jobs, sched, engine, params, fuse", word);
    if (*named & UINT32_C(1) << m)
        return errmsg_set(err, -EINVAL, "'%s' is named twice", word);
    *named |= UINT32_C(1) << m;
    *levels &= ~(LOG_LEVEL_MASK << LOG_LEVEL_BITS * m);
    *levels |= (uint32_t)level << LOG_LEVEL_BITS * m;
    return 0;
}

int log_levels_parse(const char *text, uint32_t *levels, struct errmsg *err)
{
    static const char blanks[] = " \t\n";
    char copy[LOG_LEVELS_TEXT], *rest = NULL;
    uint32_t next = *levels, named = 0;
    size_t len = strlen(text);

    if (len >= sizeof(copy))
        return errmsg_set(err, -EINVAL, "%zu bytes are too many", len);
    memcpy(copy, text, len + 1);
    char *word = strtok_r(copy, blanks, &rest);
    if (!word)
        return errmsg_set(err, -EINVAL, "'' is none of off, err, warn, info, debug");
    for (bool first = true; word; word = strtok_r(NULL, blanks, &rest), first = false) {
        int ret = parse_word(word, first, &next, &named, err);
        if (ret < 0)
            return ret;
    }
    *levels = next;
    return 0;
}

static enum log_level level_of_most(uint32_t levels)
{
    enum log_level best = LOG_LEVEL_INFO;
    unsigned most = 0;

    for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
        unsigned n = 0;
        for (unsigned m = 0; m < LOG_MODULES; m++)
            n += log_level_of(levels, m) == level_names[i].level;
        if (n > most) {
            most = n;
            best = level_names[i].level;
        }
    }
    return best;
}

void log_levels_text(uint32_t levels, char out[LOG_LEVELS_TEXT])
{
    enum log_level most = level_of_most(levels);
    size_t n = (size_t)snprintf(out, LOG_LEVELS_TEXT, "%s", level_name(most));

    for (unsigned m = 0; m < LOG_MODULES; m++)
        if (log_level_of(levels, m) != most)
            n += (size_t)snprintf(out + n, LOG_LEVELS_TEXT - n, " %s=%s", module_names[m],
                                  level_name(log_level_of(levels, m)));
}

bool log_levels_are_valid(uint32_t levels)
{
    for (unsigned m = 0; m < LOG_MODULES; m++)
        if (!level_name(log_level_of(levels, m)))
            return false;
    return levels >> LOG_LEVEL_BITS * LOG_MODULES == 0;
}

void log_set_levels(uint32_t levels)
{
    atomic_store_explicit(&log_thresholds, levels, memory_order_relaxed);
}

void log_set_level(enum log_level level)
{
    log_set_levels(LOG_LEVELS(level));
}

uint32_t log_get_levels(void)
{
    return atomic_load_explicit(&log_thresholds, memory_order_relaxed);
}

int log_change_levels(const char *text, struct errmsg *err)
{
    uint32_t was = log_get_levels(), levels;

    do {
        levels = was;
        int ret = log_levels_parse(text, &levels, err);
        if (ret < 0)
            return ret;
    } while (!atomic_compare_exchange_weak(&log_thresholds, &was, levels));
    return 0;
}

/* A line under construction; what does not fit is cut, with room kept for the newline. */
struct line {
    char *out;
    size_t len, size;
};

static void put_bytes(struct line *l, const char *bytes, size_t n)
{
    n = min_size(n, l->size - 1 - l->len);
    memcpy(l->out + l->len, bytes, n);
    l->len += n;
}

static void put_text(struct line *l, const char *text)
{
    put_bytes(l, text, strlen(text));
}

static void put_quoted(struct line *l, const char *s)
{
    put_text(l, "\"");
    for (; *s; s++) {
        if (*s == '"')
            put_text(l, "\\");
        put_bytes(l, s, 1);
    }
    put_text(l, "\"");
}

/* As it is where no reader could mistake it, else escaped and in quotes. */
static void put_string(struct line *l, const char *s)
{
    char shown[LINE_BYTES];

    escape_name(shown, sizeof(shown), s);
    if (*s && strcmp(shown, s) == 0 && !strpbrk(s, " \"="))
        put_text(l, s);
    else
        put_quoted(l, shown);
}

static void put_value(struct line *l, const struct log_field *f)
{
    char number[24];

    if (f->type == LOG_FIELD_STR) {
        put_string(l, f->value.str ? f->value.str : "");
        return;
    }
    if (f->type == LOG_FIELD_U64)
        snprintf(number, sizeof(number), "%" PRIu64, f->value.u64);
    else
        snprintf(number, sizeof(number), "%" PRId64, f->value.i64);
    put_text(l, number);
}

size_t log_format(char *out, size_t size, enum log_level level, const struct log_field *fields,
                  size_t len)
{
    struct line l = {out, 0, size};
    char priority[8];

    snprintf(priority, sizeof(priority), "<%d>", (int)level);
    put_text(&l, priority);
    for (size_t i = 0; i < len; i++) {
        if (i > 0)
            put_text(&l, " ");
        put_text(&l, fields[i].key);
        put_text(&l, "=");
        put_value(&l, &fields[i]);
    }
    l.out[l.len++] = '\n';
    return l.len;
}

void log_choose_times(void)
{
    const char *journal = getenv("JOURNAL_STREAM");
    uint64_t device, inode;
    struct stat st;

    with_times = !journal || sscanf(journal, "%" SCNu64 ":%" SCNu64, &device, &inode) != 2 ||
                 fstat(STDERR_FILENO, &st) < 0 || st.st_dev != device || st.st_ino != inode;
}

static struct timespec time_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t;
}

/* "2026-11-30T12:00:00.123Z ", or nothing. */
static size_t format_time(char *out, size_t size, const struct timespec *when)
{
    struct tm utc;

    if (!with_times || !gmtime_r(&when->tv_sec, &utc))
        return 0;
    size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &utc);
    return n + (size_t)snprintf(out + n, size - n, ".%03ldZ ", when->tv_nsec / 1000000);
}

/* One write for a line, so that lines of several processes do not mix. A log that cannot be written
 * has nobody to tell. */
static void write_event(const struct timespec *when, enum log_level level,
                        const struct log_field *fields, size_t len)
{
    char line[LINE_BYTES];
    size_t n = format_time(line, sizeof(line), when);

    n += log_format(line + n, sizeof(line) - n, level, fields, len);

    for (size_t done = 0; done < n;) {
        ssize_t ret = write(STDERR_FILENO, line + done, n - done);
        if (ret < 0 && errno == EINTR)
            continue;
        if (ret <= 0)
            return;
        done += (size_t)ret;
    }
}

/* Claims a free slot, or returns NULL when the ring is full. */
static struct slot *claim(size_t *position)
{
    size_t pos = atomic_load_explicit(&ring.head, memory_order_relaxed);

    for (;;) {
        struct slot *slot = &ring.slots[pos % SLOTS];
        size_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn == pos) {
            if (atomic_compare_exchange_weak_explicit(&ring.head, &pos, pos + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
                *position = pos;
                return slot;
            }
        } else if (turn < pos) {
            return NULL;
        } else {
            pos = atomic_load_explicit(&ring.head, memory_order_relaxed);
        }
    }
}

static void fill(struct slot *slot, enum log_level level, const struct log_field *fields, size_t len)
{
    size_t used = 0;

    slot->level = level;
    slot->len = min_size(len, LOG_FIELDS_MAX);
    for (size_t i = 0; i < slot->len; i++) {
        slot->fields[i] = fields[i];
        if (fields[i].type != LOG_FIELD_STR)
            continue;
        const char *s = fields[i].value.str ? fields[i].value.str : "";
        if (used >= LOG_TEXT_BYTES) {
            slot->fields[i].value.str = "";
            continue;
        }
        size_t n = strnlen(s, LOG_TEXT_BYTES - 1 - used);
        memcpy(slot->text + used, s, n);
        slot->text[used + n] = '\0';
        slot->fields[i].value.str = slot->text + used;
        used += n + 1;
    }
}

void log_put(enum log_level level, const struct log_field *fields, size_t len)
{
    const struct timespec now = time_now();
    size_t pos;

    if (!atomic_load_explicit(&ring.running, memory_order_acquire)) {
        write_event(&now, level, fields, len);
        return;
    }
    struct slot *slot = claim(&pos);
    if (!slot) {
        atomic_fetch_add_explicit(&ring.lost, 1, memory_order_relaxed);
        return;
    }
    slot->when = now;
    fill(slot, level, fields, len);
    atomic_store_explicit(&slot->turn, pos + 1, memory_order_release);
    sem_post(&ring.filled);
}

static void report_lost(void)
{
    uint64_t lost = atomic_exchange_explicit(&ring.lost, 0, memory_order_relaxed);
    struct log_field fields[] = {log_str("msg", "log events lost: the ring was full"),
                                 log_u64("lost", lost)};

    const struct timespec now = time_now();

    if (lost > 0)
        write_event(&now, LOG_LEVEL_WARN, fields, ARRAY_LEN(fields));
}

/* Writes the next event. False when there is none. */
static bool drain_one(void)
{
    struct slot *slot = &ring.slots[ring.tail % SLOTS];

    if (ring.tail == atomic_load_explicit(&ring.head, memory_order_relaxed))
        return false;
    while (atomic_load_explicit(&slot->turn, memory_order_acquire) != ring.tail + 1)
        sched_yield(); /* its producer is between claim and fill: a few hundred nanoseconds */
    write_event(&slot->when, slot->level, slot->fields, slot->len);
    atomic_store_explicit(&slot->turn, ring.tail + SLOTS, memory_order_release);
    ring.tail++;
    return true;
}

static void *writer_main(void *arg)
{
    (void)arg;
    for (;;) {
        while (sem_wait(&ring.filled) < 0 && errno == EINTR)
            ;
        drain_one();
        report_lost();
        if (atomic_load(&ring.stop)) {
            while (drain_one())
                ;
            report_lost();
            return NULL;
        }
    }
}

int log_start(struct errmsg *err)
{
    sigset_t all, old;

    for (size_t i = 0; i < SLOTS; i++)
        atomic_store(&ring.slots[i].turn, i);
    atomic_store(&ring.head, 0);
    ring.tail = 0;
    atomic_store(&ring.stop, false);
    if (sem_init(&ring.filled, 0, 0) < 0)
        return errmsg_set(err, -errno, "log: cannot make a semaphore");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = pthread_create(&ring.writer, NULL, writer_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        sem_destroy(&ring.filled);
        return errmsg_set(err, -ret, "log: cannot start the writer thread");
    }
    pthread_setname_np(ring.writer, "log");
    atomic_store_explicit(&ring.running, true, memory_order_release);
    return 0;
}

void log_stop(void)
{
    if (!atomic_exchange(&ring.running, false))
        return;
    atomic_store(&ring.stop, true);
    sem_post(&ring.filled);
    pthread_join(ring.writer, NULL);
    sem_destroy(&ring.filled);
}
