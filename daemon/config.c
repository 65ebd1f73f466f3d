#include "daemon/config.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/paths.h"
#include "numa/slots.h"

enum option_type {
    OPTION_PATH,
    OPTION_WORDS, /* any text, checked by who uses it */
    OPTION_NUMBER,
    OPTION_BYTES,    /* number with K M G T for powers of 1024 */
    OPTION_DURATION, /* seconds, or a number with s m h d */
    OPTION_LEVELS
};

struct option {
    const char *name; /* as in the file; dashes for underscores on the command line */
    enum option_type type;
    size_t offset;
    const char *preset; /* as it would be written in the file */
    int64_t min, max;   /* numbers alone */
    const char *value_name, *help;
};

static const struct option options[] = {
    {"mount", OPTION_PATH, offsetof(struct config, mount), "/proof", 0, 0, "DIR",
     "where the mount goes; made if absent"},
    {"store", OPTION_PATH, offsetof(struct config, store), "/var/lib/proofd", 0, 0, "DIR",
     "jobs on disk; made if absent, outside the mount"},
    {"device", OPTION_WORDS, offsetof(struct config, device), "proof", 0, 0, "NAME|none",
     "the character device, in /dev, where the kernel has CUSE and lets us; none: without one"},
    {"params", OPTION_PATH, offsetof(struct config, params), "", 0, 0, "DIR",
     "Groth16 parameters; empty: $FIL_PROOFS_PARAMETER_CACHE or "
     "/var/tmp/filecoin-proof-parameters,\n"
     "then the development parameters of proofctl setup"},
    {"development_parameters", OPTION_WORDS, offsetof(struct config, development_parameters), "none", 0,
     0, "none|device",
     "device: where there is no file, GPUs make INSECURE parameters in their memory, for tests: proofs\n"
     "that anybody can forge; none: jobs that need a file wait for it"},
    {"engine", OPTION_PATH, offsetof(struct config, engine), "", 0, 0, "FILE",
     "the engine program; empty: proofd-engine beside proofd"},
    {"nodes", OPTION_WORDS, offsetof(struct config, nodes), "", 0, 0, "NODES",
     "where proofs are made: empty: an engine for each NUMA node with CPUs; \"0 2\": for these;\n"
     "\"cpus:0-3 cpus:4-7\": for each of these sets; all: one on the whole machine"},
    {"threads", OPTION_NUMBER, offsetof(struct config, threads), "0", 0, 4096, "N",
     "threads of an engine; 0: one for each of its CPUs"},
    {"memory", OPTION_BYTES, offsetof(struct config, memory_bytes), "0", 0, INT64_MAX, "BYTES",
     "memory of an engine (K, M, G, T); 0: what its node has"},
    {"permits", OPTION_NUMBER, offsetof(struct config, permits), "0", 0, SLOTS_MAX, "N",
     "partitions in an engine; 0: two on CPUs, four on devices; fewer where memory is short"},
    {"gpus", OPTION_WORDS, offsetof(struct config, gpus), "auto", 0, 0, "auto|none",
     "auto: GPUs prove where there are some; none: CPUs do"},
    {"gpu_memory", OPTION_BYTES, offsetof(struct config, gpu_memory_bytes), "0", 0, INT64_MAX, "BYTES",
     "what a prover takes of its GPU's memory (K, M, G, T); 0: what is free. Parameters that do not fit\n"
     "stay in host memory and are streamed for every proof"},
    {"confine", OPTION_WORDS, offsetof(struct config, confine), "auto", 0, 0, "auto|on|off",
     "whether engines give up what proving does not need: capabilities, starting programs, networks;\n"
     "auto: yes, unless a driver of GPUs has yet to make its devices"},
    {"simulate", OPTION_PATH, offsetof(struct config, simulate), "", 0, 0, "FILE",
     "for tests: a simulated device in place of a prover, and jobs that prove nothing"},
    {"log_level", OPTION_LEVELS, offsetof(struct config, log_levels), "info", 0, 0, "LEVELS",
     "off, err, warn, info or debug, and others for some modules: \"info sched=debug fuse=off\", of\n"
     "front, jobs, sched, engine, params, fuse; the mount's file log_level changes it meanwhile"},
    {"max_unfinished", OPTION_NUMBER, offsetof(struct config, max_unfinished), "1000", 1, 1000000,
     "N", "jobs queued, running and being received; at more, cp waits"},
    {"max_store", OPTION_BYTES, offsetof(struct config, max_store_bytes), "0", 0, INT64_MAX,
     "BYTES", "bytes of the store (K, M, G, T); 0: as much as the disk has"},
    {"max_unsubmitted", OPTION_NUMBER, offsetof(struct config, max_unsubmitted), "10000", 1, 10000000, "N",
     "files that are no jobs: of temporary names, or being received; at more, making one fails"},
    {"max_unsubmitted_user", OPTION_NUMBER, offsetof(struct config, max_unsubmitted_user), "2500", 1, 10000000,
     "N", "of these, one user's"},
    {"max_unsubmitted_bytes", OPTION_BYTES, offsetof(struct config, max_unsubmitted_bytes), "0", 0, INT64_MAX,
     "BYTES", "their bytes; 0: a quarter of the store's disk"},
    {"max_unsubmitted_bytes_user", OPTION_BYTES, offsetof(struct config, max_unsubmitted_bytes_user), "0", 0,
     INT64_MAX, "BYTES", "of these, one user's; 0: half of all"},
    {"unsubmitted_age", OPTION_DURATION, offsetof(struct config, unsubmitted_age_s), "1d", 0, (int64_t)1 << 32,
     "TIME", "how long they are kept after they were last written; 0: for ever"},
    {"keep_finished", OPTION_NUMBER, offsetof(struct config, keep_finished), "1000", 0, 1000000, "N",
     "ended jobs kept; the oldest go first; 0: all"},
    {"keep_finished_age", OPTION_DURATION, offsetof(struct config, keep_finished_age_s), "7d", 0,
     (int64_t)1 << 32, "TIME", "how long ended jobs are kept (s, m, h, d); 0: for ever"},
    {"aging", OPTION_DURATION, offsetof(struct config, aging_s), "5m", 0, (int64_t)1 << 32, "TIME",
     "a priority that has waited for so long gets one partition proved before higher ones; 0: never"},
    {"critical_group", OPTION_WORDS, offsetof(struct config, critical_group), "", 0, 0, "GROUP",
     "who is in it may make a job critical, as root and the service's user may;\n"
     "empty: the service's own group"},
    {"shared_group", OPTION_WORDS, offsetof(struct config, shared_group), "", 0, 0, "GROUP",
     "who is in it may read and cancel the jobs of others in it; empty: everybody's are his own"},
    {"tries", OPTION_NUMBER, offsetof(struct config, tries), "3", 1, 1000, "N",
     "engines that may die over a partition before its job fails"},
    {"silence", OPTION_DURATION, offsetof(struct config, silence_s), "1m", 2, 86400, "TIME",
     "an engine that says nothing for so long is killed; it speaks once a second"},
    {"keep_finished_bytes", OPTION_BYTES, offsetof(struct config, keep_finished_bytes), "0", 0, INT64_MAX,
     "BYTES", "bytes of ended jobs that are kept (K, M, G, T); 0: no limit"},
    {"stop_wait", OPTION_DURATION, offsetof(struct config, stop_wait_s), "20s", 0, 86400, "TIME",
     "at a stop, how long partitions that have been begun may take to finish"},
};

_Static_assert(ARRAY_LEN(options) <= CONFIG_OPTIONS_MAX, "a line's number for each option");

/* May change while proofd runs. */
static bool is_live(const struct option *o)
{
    static const char *const live[] = {"log_level", "max_", "unsubmitted_", "keep_", "stop_wait"};

    for (size_t i = 0; i < ARRAY_LEN(live); i++)
        if (strncmp(o->name, live[i], strlen(live[i])) == 0)
            return true;
    return false;
}

static const struct option *find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0)
            return &options[i];
    return NULL;
}

static void *field_of(struct config *cfg, const struct option *o)
{
    return (char *)cfg + o->offset;
}

/* How much one unit stands for: 0 for a suffix that is none of the type's. */
static int64_t unit_factor(enum option_type type, const char *suffix)
{
    static const struct {
        enum option_type type;
        char suffix;
        int64_t factor;
    } units[] = {
        {OPTION_BYTES, 'K', (int64_t)1 << 10},
        {OPTION_BYTES, 'M', (int64_t)1 << 20},
        {OPTION_BYTES, 'G', (int64_t)1 << 30},
        {OPTION_BYTES, 'T', (int64_t)1 << 40},
        {OPTION_DURATION, 's', 1},
        {OPTION_DURATION, 'm', 60},
        {OPTION_DURATION, 'h', 3600},
        {OPTION_DURATION, 'd', 86400},
    };

    if (!*suffix)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (units[i].type == type && suffix[0] == units[i].suffix && !suffix[1])
            return units[i].factor;
    return 0;
}

static int parse_number(const struct option *o, const char *value, int64_t *out, struct errmsg *err)
{
    char *end;
    int64_t product = 0;

    errno = 0;
    long long n = strtoll(value, &end, 10);
    bool digits = isdigit((unsigned char)value[0]) || (value[0] == '-' && end > value + 1);
    int64_t factor = digits ? unit_factor(o->type, end) : 0;
    if (errno == 0 && factor > 0 && !__builtin_mul_overflow((int64_t)n, factor, &product) &&
        product >= o->min && product <= o->max) {
        *out = product;
        return 0;
    }
    return errmsg_set(err, -EINVAL, "%s: '%s' is not a number from %" PRId64 " to %" PRId64 "%s",
                      o->name, value, o->min, o->max,
                      o->type == OPTION_BYTES      ? " (K, M, G or T may follow)"
                      : o->type == OPTION_DURATION ? " seconds (s, m, h or d may follow)"
                                                   : "");
}

static int parse_text(const struct option *o, const char *value, char *out, struct errmsg *err)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): errmsg_set returns what it is given */
    if (strlen(value) >= CONFIG_PATH_MAX)
        return errmsg_set(err, -EINVAL, "%s: %zu bytes, at most %d are allowed", o->name,
                          strlen(value), CONFIG_PATH_MAX - 1);
    if (!*value && *o->preset)
        return errmsg_set(err, -EINVAL, "%s: must not be empty", o->name);
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < ' ')
            return errmsg_set(err, -EINVAL, "%s: a control character in a path", o->name);
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

/* Modules that are not named have the preset. */
static int parse_levels(const struct option *o, const char *value, uint32_t *out, struct errmsg *err)
{
    uint32_t levels = LOG_LEVELS(LOG_LEVEL_INFO);
    int ret = log_levels_parse(value, &levels, err);

    if (ret < 0)
        return errmsg_prefix(err, ret, "%s", o->name);
    *out = levels;
    return 0;
}

static int set_option(struct config *cfg, const struct option *o, const char *value,
                      struct errmsg *err)
{
    void *field = field_of(cfg, o);

    switch (o->type) {
    case OPTION_PATH:
    case OPTION_WORDS:
        return parse_text(o, value, field, err);
    case OPTION_NUMBER:
    case OPTION_BYTES:
    case OPTION_DURATION:
        return parse_number(o, value, field, err);
    case OPTION_LEVELS:
        return parse_levels(o, value, field, err);
    }
    return -EINVAL;
}

bool config_makes_parameters(const struct config *cfg)
{
    return strcmp(cfg->development_parameters, "device") == 0;
}

void config_defaults(struct config *cfg)
{
    memset(cfg, 0, sizeof(*cfg));
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        set_option(cfg, &options[i], options[i].preset, NULL);
}

int config_blame(const struct config *cfg, const char *option, int code, struct errmsg *err)
{
    const struct option *o = find_option(option, strlen(option));
    uint32_t line = o ? cfg->lines[o - options] : 0;

    if (line == CONFIG_LINE_COMMAND)
        return errmsg_prefix(err, code, "command line");
    return line ? errmsg_prefix(err, code, "%s:%" PRIu32, cfg->file, line) : code;
}

static int parse_group(const char *option, const char *text, gid_t *out, struct errmsg *err)
{
    char *end;

    errno = 0;
    unsigned long gid = strtoul(text, &end, 10);
    const struct group *group = getgrnam(text);
    if (group)
        *out = group->gr_gid;
    else if (isdigit((unsigned char)*text) && !*end && errno == 0 && gid < UINT32_MAX)
        *out = (gid_t)gid;
    else
        return errmsg_set(err, -EINVAL, "%s: there is no group '%s'", option, text);
    return 0;
}

int config_critical_gid(const struct config *cfg, gid_t *out, struct errmsg *err)
{
    if (*cfg->critical_group)
        return parse_group("critical_group", cfg->critical_group, out, err);
    *out = getegid();
    return 0;
}

int config_shared_gid(const struct config *cfg, gid_t *out, struct errmsg *err)
{
    if (*cfg->shared_group)
        return parse_group("shared_group", cfg->shared_group, out, err);
    *out = CONFIG_NO_GROUP;
    return 0;
}

static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
    return s;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

/* Whether somebody wrote a comment behind a value, who would get it into the value. */
static bool ends_in_comment(const char *value)
{
    for (const char *c = value; *c; c++)
        if ((*c == '#' || *c == ';') && (c == value || isspace((unsigned char)c[-1])))
            return true;
    return false;
}

/* Quotes around a value keep blanks at its ends; they are no part of it. */
static int unquote(char **value, struct errmsg *err)
{
    char *s = *value;
    size_t n = strlen(s);

    if (n == 0)
        return 0;
    if (!is_quote(s[0]) && !is_quote(s[n - 1]))
        return ends_in_comment(s)
                   ? errmsg_set(err, -EINVAL, "%s: a comment needs a line of its own, or the value quotes", s)
                   : 0;
    if (n < 2 || s[0] != s[n - 1] || strchr(s + 1, s[0]) != s + n - 1)
        return errmsg_set(err, -EINVAL, "%s: quotes that do not belong together", s);
    s[n - 1] = '\0';
    *value = s + 1;
    return 0;
}

/* Line numbers of the options seen, to tell of the second mention of a key. */
struct seen {
    unsigned line[ARRAY_LEN(options)];
};

/* Who copies an option of the command line writes gpu-memory. */
static int unknown_key(const char *key, struct errmsg *err)
{
    char name[64];

    snprintf(name, sizeof(name), "%s", key);
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
    return find_option(name, strlen(name))
               ? errmsg_set(err, -EINVAL, "unknown key '%s', in a file it is %s", key, name)
               : errmsg_set(err, -EINVAL, "unknown key '%s'", key);
}

static int read_assignment(char *text, unsigned line, struct seen *seen, struct config *cfg,
                           struct errmsg *err)
{
    char *equals = strchr(text, '=');

    if (!equals)
        return errmsg_set(err, -EINVAL, "'%s' is not of the form key = value", text);
    *equals = '\0';
    char *key = trim(text), *value = trim(equals + 1);
    const struct option *o = find_option(key, strlen(key));
    if (!o)
        return unknown_key(key, err);
    unsigned *first = &seen->line[o - options];
    if (*first)
        return errmsg_set(err, -EINVAL, "%s: already given on line %u", key, *first);
    *first = line;
    int ret = unquote(&value, err);
    if (ret < 0)
        return errmsg_prefix(err, ret, "%s", key);
    cfg->lines[o - options] = line;
    return set_option(cfg, o, value, err);
}

static int read_line(char *text, unsigned line, struct seen *seen, struct config *cfg,
                     struct errmsg *err)
{
    text = trim(text);
    if (!*text || *text == '#' || *text == ';')
        return 0;
    if (*text == '[') {
        if (strcmp(text, "[proofd]") == 0)
            return 0;
        return errmsg_set(err, -EINVAL, "unknown section %s, the only one is [proofd]", text);
    }
    return read_assignment(text, line, seen, cfg, err);
}

int config_read_file(const char *path, struct config *cfg, struct errmsg *err)
{
    struct seen seen = {{0}};
    char *text = NULL;
    size_t size = 0;
    ssize_t n;
    FILE *file;

    int ret = path_open_text(path, &file, err);
    if (ret < 0)
        return ret;
    cfg->file = path;
    for (unsigned line = 1; ret == 0 && (n = getline(&text, &size, file)) >= 0; line++) {
        if (strlen(text) != (size_t)n)
            ret = errmsg_set(err, -EINVAL, "a byte 0 in the line");
        else
            ret = read_line(text, line, &seen, cfg, err);
        if (ret < 0)
            errmsg_prefix(err, ret, "%s:%u", path, line);
    }
    if (ret == 0 && ferror(file))
        ret = errmsg_set(err, -EIO, "%s: cannot read", path);
    free(text);
    fclose(file);
    return ret;
}

/* One argument of the command line, split at its '='. */
struct argument {
    char name[64]; /* dashes made underscores, without the leading two */
    const char *value;
};

static int split_argument(const char *arg, struct argument *out, struct errmsg *err)
{
    if (strncmp(arg, "--", 2) != 0)
        return errmsg_set(err, -EINVAL, "unexpected argument '%s' (see --help)", arg);
    const char *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) - 2 : strlen(arg) - 2;
    if (len >= sizeof(out->name))
        return errmsg_set(err, -EINVAL, "unknown option '%s' (see --help)", arg);
    for (size_t i = 0; i < len; i++)
        out->name[i] = arg[2 + i] == '-' ? '_' : arg[2 + i];
    out->name[len] = '\0';
    out->value = equals ? equals + 1 : NULL;
    return 0;
}

static bool action_of(const char *name, enum config_action *action)
{
    static const struct {
        const char *name;
        enum config_action action;
    } actions[] = {
        {"help", CONFIG_HELP}, {"version", CONFIG_VERSION}, {"check_config", CONFIG_CHECK}};

    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (strcmp(actions[i].name, name) == 0) {
            *action = actions[i].action;
            return true;
        }
    return false;
}

/* The command line is walked twice: for --config alone, and once the file is read for the rest. */
struct command_line {
    int argc;
    char **argv;
    struct config *cfg;
    const char *file;
    enum config_action action;
    bool values; /* second pass: set the options */
};

static int take_value(struct command_line *cl, int *i, struct argument *a, struct errmsg *err)
{
    if (a->value)
        return 0;
    a->value = *i + 1 < cl->argc ? cl->argv[*i + 1] : NULL;
    if (!a->value)
        return errmsg_set(err, -EINVAL, "option '%s' needs a value", cl->argv[*i]);
    /* It was forgotten: none is called like an option. */
    if (strncmp(a->value, "--", 2) == 0)
        return errmsg_set(err, -EINVAL, "option '%s' needs a value, and '%s' is an option (%s=%s would be one)", cl->argv[*i], a->value, cl->argv[*i], a->value);
    ++*i;
    return 0;
}

static int walk_argument(struct command_line *cl, int *i, struct errmsg *err)
{
    const char *arg = cl->argv[*i];
    struct argument a = {"", NULL};

    if (strcmp(arg, "-h") == 0 || strcmp(arg, "help") == 0) {
        cl->action = CONFIG_HELP;
        return 0;
    }
    int ret = split_argument(arg, &a, err);
    if (ret < 0)
        return ret;
    if (!a.value && action_of(a.name, &cl->action))
        return 0;
    if (strcmp(a.name, "config") == 0) {
        ret = take_value(cl, i, &a, err);
        cl->file = a.value;
        return ret;
    }
    const struct option *o = find_option(a.name, strlen(a.name));
    if (!o)
        return errmsg_set(err, -EINVAL, "unknown option '%s' (see --help)", arg);
    ret = take_value(cl, i, &a, err);
    if (ret < 0 || !cl->values)
        return ret;
    cl->cfg->lines[o - options] = CONFIG_LINE_COMMAND;
    ret = set_option(cl->cfg, o, a.value, err);
    return ret < 0 ? errmsg_prefix(err, ret, "command line") : 0;
}

static int walk(struct command_line *cl, struct errmsg *err)
{
    int ret = 0;

    for (int i = 1; i < cl->argc && ret == 0; i++)
        ret = walk_argument(cl, &i, err);
    return ret;
}

static int read_default_file(struct config *cfg, struct errmsg *err)
{
    int ret = config_read_file(CONFIG_FILE_DEFAULT, cfg, err);
    return ret == -ENOENT ? 0 : ret;
}

int config_load(int argc, char **argv, struct config *cfg, enum config_action *action,
                struct errmsg *err)
{
    struct command_line cl = {argc, argv, cfg, NULL, CONFIG_RUN, false};

    config_defaults(cfg);
    int ret = walk(&cl, err);
    if (ret < 0)
        return ret;
    *action = cl.action;
    if (cl.action == CONFIG_HELP || cl.action == CONFIG_VERSION)
        return 0;
    ret = cl.file ? config_read_file(cl.file, cfg, err) : read_default_file(cfg, err);
    if (ret < 0)
        return ret;
    cl.values = true;
    return walk(&cl, err);
}

static bool is_equal(const struct option *o, const struct config *a, const struct config *b)
{
    const void *of_a = (const char *)a + o->offset, *of_b = (const char *)b + o->offset;

    if (o->type == OPTION_PATH || o->type == OPTION_WORDS)
        return strcmp(of_a, of_b) == 0;
    if (o->type == OPTION_LEVELS)
        return *(const uint32_t *)of_a == *(const uint32_t *)of_b;
    return *(const int64_t *)of_a == *(const int64_t *)of_b;
}

/* Live options are numbers and levels; others may be in other threads' use. */
static void take_over(const struct option *o, struct config *cfg, const struct config *from)
{
    const void *value = (const char *)from + o->offset;

    memcpy(field_of(cfg, o), value, o->type == OPTION_LEVELS ? sizeof(uint32_t) : sizeof(int64_t));
}

int config_load_again(int argc, char **argv, struct config *cfg, struct errmsg *err)
{
    struct config *again = malloc(sizeof(*again));
    enum config_action action;
    int ret = again ? 0 : errmsg_set(err, -ENOMEM, "no memory");

    if (ret == 0)
        ret = config_load(argc, argv, again, &action, err);
    for (size_t i = 0; ret == 0 && i < ARRAY_LEN(options); i++)
        if (!is_live(&options[i]) && !is_equal(&options[i], cfg, again))
            ret = errmsg_set(err, -EINVAL, "%s has changed, which needs a restart", options[i].name);
    for (size_t i = 0; ret == 0 && i < ARRAY_LEN(options); i++)
        if (is_live(&options[i]))
            take_over(&options[i], cfg, again);
    free(again);
    return ret;
}

static void print_option_name(FILE *out, const struct option *o)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "--%s %s", o->name, o->value_name);

    for (int i = 0; i < n && text[i] != ' '; i++)
        if (text[i] == '_')
            text[i] = '-';
    fprintf(out, "  %-28s ", text);
}

static void print_help_lines(FILE *out, const char *help)
{
    for (; *help; help++) {
        fputc(*help, out);
        if (*help == '\n')
            fprintf(out, "%31s", "");
    }
}

void config_print_help(FILE *out)
{
    fputs("Usage: proofd [OPTION]...\n"
          "Proves Filecoin PoRep C2: a C1 file copied into jobs/ of the mount gives a proof beside "
          "it.\n"
          "Runs in the foreground until SIGTERM or SIGINT.\n\n",
          out);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        print_option_name(out, &options[i]);
        print_help_lines(out, options[i].help);
        fprintf(out, "\n%31s[%s]\n", "", *options[i].preset ? options[i].preset : "empty");
    }
    fprintf(out,
            "  %-28s read options from FILE (see proofd.conf(5))\n%31s[%s, where it is there]\n"
            "  %-28s print the options in effect, check them against this machine, and exit\n"
            "  %-28s print the version and exit\n"
            "  %-28s print this help and exit\n\n",
            "--config FILE", "", CONFIG_FILE_DEFAULT, "--check-config", "--version", "--help");
    fputs("The command line overrules the file, the file the defaults in brackets.\n"
          "Exit status: 0 stopped as asked, 1 a fault, 2 wrong options.\n",
          out);
}

/* In quotes where it would not be read back as it is. */
static void print_text(const char *text, FILE *out)
{
    size_t n = strlen(text);
    bool plain = n == 0 || (text[0] != ' ' && text[n - 1] != ' ' && !is_quote(text[0]) &&
                            !is_quote(text[n - 1]) && !ends_in_comment(text));
    const char *quote = plain ? "" : strchr(text, '"') ? "'" : "\"";

    fprintf(out, "%s%s%s\n", quote, text, quote);
}

static void print_levels(uint32_t levels, FILE *out)
{
    char text[LOG_LEVELS_TEXT];

    log_levels_text(levels, text);
    fprintf(out, "%s\n", text);
}

void config_print(const struct config *cfg, FILE *out)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const struct option *o = &options[i];
        const void *field = (const char *)cfg + o->offset;
        fprintf(out, "%s = ", o->name);
        if (o->type == OPTION_PATH || o->type == OPTION_WORDS)
            print_text(field, out);
        else if (o->type == OPTION_LEVELS)
            print_levels(*(const uint32_t *)field, out);
        else
            fprintf(out, "%" PRId64 "\n", *(const int64_t *)field);
    }
}
