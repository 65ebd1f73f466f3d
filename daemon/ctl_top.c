/*
 * proofctl top: what the service does, now. All of it is read from the files of the mount: `metrics`, the names in `jobs`
 * and the status of the jobs that have not ended. Rates are between two looks; the first is against the service's start.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ctl.h"
#include "daemon/flight.h"

#define INTERVAL_S 2
#define TEXT_MAX ((size_t)1 << 20)
#define NAMES_MAX 200000
#define STATUSES_MAX 1000 /* jobs that are looked at each time */
#define ROWS_DEFAULT 24

struct sample {
    char *text;
    double uptime_s;
};

/* ---- metrics ---- */

/* The value of the line that begins with `name`, labels included; -1: there is none. */
static double value_of(const struct sample *s, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = s->text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == ' ')
            return strtod(line + n, NULL);
    }
    return -1;
}

static double node_value(const struct sample *s, const char *name, int node)
{
    char text[96];

    snprintf(text, sizeof(text), "proofd_%s{node=\"%d\"}", name, node);
    return value_of(s, text);
}

static double stage_value(const struct sample *s, const char *name, int node,
                          enum flight_stage stage)
{
    char text[96];

    snprintf(text, sizeof(text), "proofd_%s{node=\"%d\",stage=\"%s\"}", name, node,
             flight_stage_name(stage));
    return value_of(s, text);
}

static int take_sample(const struct ctl_args *args, struct sample *out)
{
    char path[PATH_MAX];
    uint8_t *text = NULL;
    size_t len;

    snprintf(path, sizeof(path), "%s/metrics", args->mount);
    int ret = ctl_read_file(path, TEXT_MAX, &text, &len);
    if (ret < 0) {
        ctl_fail(0, "%s: %s: is proofd running there?", path, strerror(-ret));
        return ret;
    }
    free(out->text);
    out->text = (char *)text;
    out->uptime_s = value_of(out, "proofd_uptime_seconds");
    return 0;
}

/* A counter's growth in a minute. A service that has started anew begins at nothing again. */
static double per_minute(const struct sample *before, const struct sample *now, double was,
                         double is)
{
    bool same = before->text && before->uptime_s < now->uptime_s && was >= 0 && was <= is;
    double seconds = same ? now->uptime_s - before->uptime_s : now->uptime_s;

    return seconds > 0 && is > 0 ? (is - (same ? was : 0)) * 60 / seconds : 0;
}

/* ---- lines ---- */

static void print_bytes(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    for (; bytes >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
        bytes /= 1024;
    printf("%.*f %s", unit < 2 ? 0 : 1, bytes < 0 ? 0 : bytes, units[unit]);
}

static void print_uptime(double seconds)
{
    uint64_t minutes = (uint64_t)(seconds < 0 ? 0 : seconds) / 60;

    if (minutes >= 24 * 60)
        printf("%" PRIu64 " d ", minutes / (24 * 60));
    printf("%" PRIu64 " h %02" PRIu64 " m", minutes / 60 % 24, minutes % 60);
}

static void print_service(const struct sample *before, const struct sample *now)
{
    static const char *const states[] = {"proving", "synthesizing", "queued", "receiving",
                                         "done",    "failed",       "refused"};
    static const char *const done = "proofd_partitions_done_total";
    char text[64];
    double was = before->text ? value_of(before, done) : -1;

    printf("proofd, up ");
    print_uptime(now->uptime_s);
    printf(", ");
    print_bytes(value_of(now, "proofd_resident_bytes"));
    printf(", %.1f partitions a minute\njobs:", per_minute(before, now, was, value_of(now, done)));
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        snprintf(text, sizeof(text), "proofd_jobs{state=\"%s\"}", states[i]);
        printf("%s %.0f %s", i ? "," : "", value_of(now, text), states[i]);
    }
    puts("");
}

static void print_node(const struct sample *before, const struct sample *now, int node)
{
    double was =
        before->text ? stage_value(before, "node_stage_entered_total", node, FLIGHT_FINISHING) : -1;
    double is = stage_value(now, "node_stage_entered_total", node, FLIGHT_FINISHING);

    printf("%4d  %-4s  %4.0f of %-4.0f", node,
           node_value(now, "engine_up", node) > 0 ? "up" : "down",
           node_value(now, "node_permits_in_use", node), node_value(now, "node_permits", node));
    for (int stage = 0; stage < FLIGHT_STAGES; stage++)
        printf(" %9.0f", stage_value(now, "node_partitions", node, (enum flight_stage)stage));
    printf(" %9.1f  ", per_minute(before, now, was, is));
    print_bytes(node_value(now, "engine_resident_bytes", node));
    puts("");
}

/* A line for each engine. Returns how many. */
static size_t print_nodes(const struct sample *before, const struct sample *now)
{
    static const char prefix[] = "proofd_engine_up{node=\"";
    size_t n = 0;

    printf("\nNODE  IS      PERMITS     WAITING   SYNTHES     READY   PROVING    FINISH   PER MIN  "
           "MEMORY\n");
    for (const char *line = now->text; (line = strstr(line, prefix)) != NULL; n++) {
        line += sizeof(prefix) - 1;
        print_node(before, now, atoi(line));
    }
    return n;
}

/* ---- jobs ---- */

struct job_line {
    char *name, *status;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t len)
{
    for (size_t i = 0; i < len; i++)
        free(names[i]);
    free(names);
}

/* Sorted. Negative errno: none. */
static int list_names(const struct ctl_args *args, char ***out, size_t *len)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    char **names = calloc(NAMES_MAX, sizeof(*names));
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/jobs", args->mount);
    DIR *dir = names ? opendir(path) : NULL;
    if (!dir) {
        int ret = names ? -errno : -ENOMEM;
        free(names);
        return ret;
    }
    while (n < NAMES_MAX && (entry = readdir(dir)) != NULL) {
        names[n] = strdup(entry->d_name);
        n += names[n] != NULL;
    }
    closedir(dir);
    qsort(names, n, sizeof(*names), by_text);
    *out = names;
    *len = n;
    return 0;
}

static bool has_result(char **names, size_t len, const char *name, const char *suffix)
{
    char text[NAME_MAX + 16];
    const char *key = text;

    snprintf(text, sizeof(text), "%s%s", name, suffix);
    return bsearch(&key, names, len, sizeof(*names), by_text) != NULL;
}

static char *read_status(const struct ctl_args *args, const char *name)
{
    char path[PATH_MAX];
    uint8_t *text = NULL;
    size_t len;

    snprintf(path, sizeof(path), "%s/jobs/%s.status", args->mount, name);
    if (ctl_read_file(path, TEXT_MAX, &text, &len) < 0)
        return NULL;
    text[strcspn((char *)text, "\n")] = '\0';
    return (char *)text;
}

/* What runs comes first, then what waits. */
static int rank(const struct job_line *j)
{
    static const char *const order[] = {"proving", "synthesizing", "queued", "receiving"};

    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (strncmp(j->status, order[i], strlen(order[i])) == 0)
            return (int)i;
    return ARRAY_LEN(order);
}

static int by_rank(const void *a, const void *b)
{
    const struct job_line *x = a, *y = b;
    int d = rank(x) - rank(y);

    return d ? d : strcmp(x->name, y->name);
}

static void print_lines(const struct job_line *lines, size_t n, size_t rows)
{
    char name[4 * NAME_MAX + 1];

    printf("\nJOB                              STATUS\n");
    for (size_t i = 0; i < n && i < rows; i++) {
        escape_name(name, sizeof(name), lines[i].name);
        printf("%-32.32s %.90s\n", name, lines[i].status);
    }
    if (n > rows)
        printf("and %zu more\n", n - rows);
}

/* Those that have not ended: a job with a proof or an error has. */
static void print_jobs(const struct ctl_args *args, size_t rows)
{
    static struct job_line lines[STATUSES_MAX];
    static const char suffix[] = ".status";
    char **names = NULL;
    size_t len = 0, n = 0;

    if (list_names(args, &names, &len) < 0)
        return; /* the service has gone; the next look says so */
    for (size_t i = 0; i < len && n < STATUSES_MAX; i++) {
        size_t k = strlen(names[i]);
        if (k < sizeof(suffix) || strcmp(names[i] + k - sizeof(suffix) + 1, suffix) != 0)
            continue;
        char *name = strndup(names[i], k - sizeof(suffix) + 1);
        bool open = name && !has_result(names, len, name, ".proof") &&
                    !has_result(names, len, name, ".error");
        char *status = open ? read_status(args, name) : NULL;
        if (status)
            lines[n++] = (struct job_line){name, status};
        else
            free(name);
    }
    qsort(lines, n, sizeof(*lines), by_rank);
    print_lines(lines, n, rows);
    for (size_t i = 0; i < n; i++) {
        free(lines[i].name);
        free(lines[i].status);
    }
    free_names(names, len);
}

/* ---- the screen ---- */

static size_t screen_rows(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : ROWS_DEFAULT;
}

static void print_all(const struct ctl_args *args, const struct sample *before,
                      const struct sample *now, bool screen)
{
    const size_t other_lines = 8; /* heads, blanks, and where the cursor stays */

    print_service(before, now);
    size_t used = print_nodes(before, now) + other_lines, rows = screen_rows();
    print_jobs(args, !screen ? SIZE_MAX : rows > used ? rows - used : 1);
}

int ctl_top(const struct ctl_args *args)
{
    struct sample before = {0}, now = {0};
    bool screen = !args->once && isatty(STDOUT_FILENO);
    int ret = take_sample(args, &now);

    while (ret == 0) {
        if (screen)
            fputs("\033[H\033[2J", stdout);
        print_all(args, &before, &now, screen);
        if (!screen || fflush(stdout) != 0)
            break;
        sleep(INTERVAL_S);
        free(before.text);
        before = now;
        now = (struct sample){0};
        ret = take_sample(args, &now);
    }
    free(before.text);
    free(now.text);
    return ret < 0 ? CTL_CANNOT : CTL_OK;
}
