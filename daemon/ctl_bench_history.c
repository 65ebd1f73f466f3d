#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl_bench.h"

#define TEXT_MAX ((size_t)4 << 20)
#define COLUMNS_MAX 24

/* ---- reading ---- */

static char *read_text(const struct bench_history *h, int node, const char *file)
{
    char path[PATH_MAX];
    uint8_t *text = NULL;
    size_t len;

    snprintf(path, sizeof(path), "%s/nodes/%d/%s", h->mount, node, file);
    return ctl_read_file(path, TEXT_MAX, &text, &len) == 0 ? (char *)text : NULL;
}

/* The next line as numbers, its own number apart. False at the end. */
static bool next_line(char **text, uint64_t *number, double columns[COLUMNS_MAX])
{
    char *line = strsep(text, "\n"), *end;

    if (!line || !*line)
        return false;
    *number = strtoull(line, &end, 10);
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        columns[i] = strtod(end, &end); /* 0 where there is none */
    return true;
}

/* Room for one more. */
static void *grown(void *list, size_t len, size_t *room, size_t size)
{
    if (len < *room)
        return list;
    void *more = realloc(list, (*room ? 2 * *room : 256) * size);
    if (more)
        *room = *room ? 2 * *room : 256;
    return more;
}

static void take_sample(struct bench_history *h, struct bench_node *n, const double *c)
{
    struct bench_sample *list = grown(n->samples, n->samples_len, &n->samples_room, sizeof(*list));

    (void)h;
    if (!list)
        return;
    n->samples = list;
    struct bench_sample *s = &list[n->samples_len++];
    *s = (struct bench_sample){c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], {0}};
    memcpy(s->stages, c + 10, sizeof(s->stages));
}

static void take_course(struct bench_history *h, struct bench_node *n, const double *c)
{
    struct bench_course *list = grown(h->courses, h->courses_len, &h->courses_room, sizeof(*list));

    if (!list)
        return;
    h->courses = list;
    struct bench_course *to = &list[h->courses_len++];
    *to = (struct bench_course){
        .node = n->node, .gpu = (int)c[2], .job = (uint64_t)c[0], .partition = (unsigned)c[1]};
    memcpy(to->ms, c + 3, sizeof(to->ms));
}

/* Lines from *next on; with `take` NULL they are only counted. */
static void read_lines(struct bench_history *h, struct bench_node *n, const char *file,
                       uint64_t *next,
                       void (*take)(struct bench_history *h, struct bench_node *n, const double *c))
{
    char *text = read_text(h, n->node, file), *rest = text;
    double columns[COLUMNS_MAX];
    uint64_t number;

    strsep(&rest, "\n"); /* the columns' names */
    while (next_line(&rest, &number, columns)) {
        if (number < *next)
            continue;
        if (take) {
            n->missed += number - *next;
            take(h, n, columns);
        }
        *next = number + 1;
    }
    free(text);
}

void bench_history_begin(struct bench_history *h, const char *mount)
{
    char path[PATH_MAX];
    const struct dirent *entry;

    *h = (struct bench_history){.mount = mount};
    snprintf(path, sizeof(path), "%s/nodes", mount);
    DIR *dir = opendir(path);
    while (dir && h->nodes_len < BENCH_NODES_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        struct bench_node *n = &h->nodes[h->nodes_len++];
        n->node = atoi(entry->d_name);
        read_lines(h, n, "samples", &n->next_sample, NULL);
        read_lines(h, n, "partitions", &n->next_course, NULL);
    }
    if (dir)
        closedir(dir);
}

void bench_history_read(struct bench_history *h)
{
    for (size_t i = 0; i < h->nodes_len; i++) {
        struct bench_node *n = &h->nodes[i];
        read_lines(h, n, "samples", &n->next_sample, take_sample);
        read_lines(h, n, "partitions", &n->next_course, take_course);
    }
}

static int by_proving(const void *a, const void *b)
{
    const struct bench_course *x = a, *y = b;
    double d = x->ms[FLIGHT_PROVING] - y->ms[FLIGHT_PROVING];

    return (d > 0) - (d < 0);
}

void bench_history_sort(struct bench_history *h)
{
    if (h->courses_len > 0)
        qsort(h->courses, h->courses_len, sizeof(*h->courses), by_proving);
}

void bench_history_fini(struct bench_history *h)
{
    for (size_t i = 0; i < h->nodes_len; i++)
        free(h->nodes[i].samples);
    free(h->courses);
}

/* ---- sums ---- */

double bench_column(const struct bench_sample *s, size_t offset)
{
    double value;

    memcpy(&value, (const char *)s + offset, sizeof(value));
    return value;
}

double bench_most(const struct bench_node *n, size_t offset)
{
    double most = 0;

    for (size_t i = 0; i < n->samples_len; i++)
        if (bench_column(&n->samples[i], offset) > most)
            most = bench_column(&n->samples[i], offset);
    return most;
}

double bench_mean(const struct bench_node *n, size_t offset)
{
    double sum = 0;

    for (size_t i = 0; i < n->samples_len; i++)
        sum += bench_column(&n->samples[i], offset);
    return n->samples_len ? sum / (double)n->samples_len : 0;
}

/* Where the prover is in what has been seen of it. */
struct sweep {
    double starting_until, busy_until;
};

/* How much of [from, to] lies behind *until, which moves on. */
static double add_span(double *until, double from, double to)
{
    double begin = from > *until ? from : *until;

    if (to <= begin)
        return 0;
    *until = to;
    return to - begin;
}

static void add_course(struct bench_prover *p, struct sweep *s, const struct bench_course *c)
{
    const double start = c->ms[FLIGHT_PROVING], end = c->ms[FLIGHT_STAGES];

    if (p->proofs++ > 0 && start > s->busy_until) {
        double gap = start - s->busy_until;
        p->gaps++;
        p->gaps_ms += gap;
        if (gap > p->longest_gap_ms)
            p->longest_gap_ms = gap;
    }
    p->starting_ms += add_span(&s->starting_until, start, c->ms[FLIGHT_FINISHING]);
    p->busy_ms += add_span(&s->busy_until, start, end);
}

size_t bench_provers(const struct bench_history *h, struct bench_prover out[BENCH_PROVERS_MAX])
{
    struct sweep sweeps[BENCH_PROVERS_MAX] = {{0}};
    size_t len = 0;

    for (size_t i = 0; i < h->courses_len; i++) {
        const struct bench_course *c = &h->courses[i];
        size_t k = 0;
        while (k < len && (out[k].node != c->node || out[k].gpu != c->gpu))
            k++;
        if (k == BENCH_PROVERS_MAX)
            continue;
        if (k == len)
            out[len++] = (struct bench_prover){.node = c->node, .gpu = c->gpu};
        add_course(&out[k], &sweeps[k], c);
    }
    return len;
}
