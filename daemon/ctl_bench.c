/*
 * proofctl bench: what the service does with many documents. Like the other commands about jobs it knows the files of the mount and
 * nothing else: a document is written into `jobs`, its proof appears there, NAME.report says where the time went; memory, permits and
 * the course of each partition are what the service itself has sampled (nodes/N/samples, nodes/N/partitions).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ctl_bench.h"
#include "numa/circuit/test_document.h"

#define COUNT_DEFAULT 10
#define LOOK_EVERY_MS \
    500 /* for what is new in the histories, and for a proof whose event was lost */
#define TEXT_MAX ((size_t)1 << 20)
#define MIB 1048576.0

/* What is submitted again and again. */
struct source {
    uint8_t *bytes;
    size_t len;
    size_t ticket; /* where it is */
    bool test;     /* a document of the test kind */
};

enum proof_state { PROOF_OPEN, PROOF_DONE, PROOF_FAILED };

struct proof {
    enum proof_state state;
    bool created;                  /* its file is this run's */
    double submit_ms;              /* until it was accepted */
    double wall_ms, queue_ms;      /* from there to its end; of this, before anything of it ran */
    double synthesis_ms, prove_ms; /* of all its partitions together */
    uint64_t job, same_as;         /* same_as: whose computation it shared, or 0 */
    unsigned partitions;
};

struct bench {
    const struct ctl_args *args;
    struct source sources[CTL_C1_MAX];
    struct proof *proofs;
    size_t count, submitted, ended;
    unsigned run; /* random, in the names of its jobs */
    bool refused; /* nothing more is submitted */
    bool cannot;  /* and not because a document is wrong */
    int watch;
    struct bench_history history;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
    (void)signal;
    interrupted = 1;
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- documents ---- */

/* A C1 is taken in its decoded form, which is a C1 file as well, and in which the ticket has a place. */
static int take_decoded(struct source *s, const char *path)
{
    struct c1 *c1;
    size_t len;

    int ret = ctl_read_c1(path, C1_CHECK_FORM, NULL, &c1);
    if (ret < 0)
        return ret;
    const uint8_t *bytes = c1_bincode(c1, &len);
    free(s->bytes);
    s->bytes = malloc(len);
    if (s->bytes) {
        memcpy(s->bytes, bytes, len);
        s->len = len;
        s->ticket = (size_t)(c1_ticket(c1) - bytes);
    }
    c1_destroy(c1);
    return s->bytes ? 0 : -ENOMEM;
}

static int check_test_document(const struct source *s, const char *path)
{
    struct test_document doc;
    struct errmsg err = {""};
    int ret = test_document_parse(s->bytes, s->len, &doc, &err);

    return ret < 0 ? ctl_fail(ret, "%s: %s", path, err.text) : 0;
}

/* A FIFO would be waited for, and has its document only once. */
static int load(struct source *s, const char *path, bool same)
{
    struct stat st;
    int ret = stat(path, &st) < 0 ? -errno : 0;

    if (ret == 0 && !S_ISREG(st.st_mode))
        return ctl_fail(-ENODEV, "%s: not a file", path);
    if (ret == 0)
        ret = ctl_read_file(path, C1_TEXT_MAX, &s->bytes, &s->len);
    if (ret < 0)
        return ctl_fail(ret, "%s: %s", path, strerror(-ret));
    s->test = test_document_match(s->bytes, s->len) == TEST_DOCUMENT_YES;
    if (same)
        return 0;
    return s->test ? check_test_document(s, path) : take_decoded(s, path);
}

/* Makes the source another document: a C1 with another ticket. No proof depends on it, and nothing that can be checked without the
 * miner's id, which the decoded form does not have; but it is content, and so the computation is another. */
static int vary(struct source *s)
{
    char text[TEST_DOCUMENT_BYTES_MAX];
    struct test_document doc;
    uint64_t seed;

    if (!s->test)
        return getrandom(s->bytes + s->ticket, DIGEST_BYTES, 0) == DIGEST_BYTES ? 0 : -EIO;
    int ret = test_document_parse(s->bytes, s->len, &doc, NULL);
    if (ret < 0)
        return ret;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return -EIO;
    doc.seed = seed >> 12;
    size_t len = test_document_format(&doc, text);
    uint8_t *bytes = realloc(s->bytes, len);
    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, text, len);
    s->bytes = bytes;
    s->len = len;
    return 0;
}

/* ---- jobs ---- */

static void job_path(const struct bench *b, size_t i, const char *suffix, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/jobs/bench-%08x-%zu%s", b->args->mount, b->run, i + 1, suffix);
}

static char *read_job_file(const struct bench *b, size_t i, const char *suffix)
{
    char path[PATH_MAX];
    uint8_t *text = NULL;
    size_t len;

    job_path(b, i, suffix, path);
    return ctl_read_file(path, TEXT_MAX, &text, &len) == 0 ? (char *)text : NULL;
}

static bool has_job_file(const struct bench *b, size_t i, const char *suffix)
{
    char path[PATH_MAX];

    job_path(b, i, suffix, path);
    return access(path, F_OK) == 0;
}

static int write_document(const char *path, const struct source *s, bool *created)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int ret = fd < 0 ? -errno : 0;

    *created = fd >= 0;
    for (size_t done = 0; ret == 0 && done < s->len;) {
        ssize_t n = write(fd, s->bytes + done, s->len - done);
        if (n < 0)
            ret = -errno;
        else
            done += (size_t)n;
    }
    if (fd >= 0 && close(fd) < 0 && ret == 0)
        ret = -errno;
    return ret;
}

/* Whatever signals come meanwhile. */
static void remove_job_file(const struct bench *b, size_t i, const char *suffix)
{
    char path[PATH_MAX];

    job_path(b, i, suffix, path);
    while (unlink(path) < 0 && errno == EINTR)
        ;
}

/* What becomes of the rest is waited for all the same. With its reason a refused file goes. Where the name was somebody's already, so
 * is the reason. */
static void refuse(struct bench *b, size_t i, int error)
{
    bool created = b->proofs[i].created;
    char *reason = created ? read_job_file(b, i, ".error") : NULL;
    const char *why = !created && error == -ECANCELED ? CTL_STOPPING : strerror(-error);

    if (reason)
        reason[strcspn(reason, "\n")] = '\0';
    if (!interrupted)
        ctl_fail(0, "proof %zu: not accepted: %s", i + 1, reason ? reason : why);
    free(reason);
    if (created)
        remove_job_file(b, i, ".error");
    b->refused = true;
    b->cannot = ctl_exit_of(error) == CTL_CANNOT;
}

static void submit(struct bench *b)
{
    struct source *s = &b->sources[b->submitted % b->args->c1_len];
    struct proof *p = &b->proofs[b->submitted];
    char path[PATH_MAX];

    int ret = b->args->same ? 0 : vary(s);
    double begin = now_ms();
    job_path(b, b->submitted, "", path);
    if (ret == 0)
        ret = write_document(path, s, &p->created);
    if (ret < 0) {
        refuse(b, b->submitted, ret);
        return;
    }
    p->submit_ms = now_ms() - begin;
    b->submitted++;
}

/* A number behind "key": in a report, which is ours, one member a line. *text moves behind it. 0 when there is none. */
static double number_after(const char **text, const char *key)
{
    char name[48];

    snprintf(name, sizeof(name), "\"%s\": ", key);
    const char *found = strstr(*text, name);
    if (!found)
        return 0;
    *text = found + strlen(name);
    return strtod(*text, NULL);
}

static double number_of(const char *text, const char *key)
{
    return number_after(&text, key);
}

static void read_report(const struct bench *b, size_t i)
{
    static const char *const proving[] = {"transform_ms", "msm_ms", "verify_ms"};
    struct proof *p = &b->proofs[i];
    char *text = read_job_file(b, i, ".report");

    if (!text)
        return;
    p->job = (uint64_t)number_of(text, "job");
    p->same_as = (uint64_t)number_of(text, "same_as");
    p->partitions = (unsigned)number_of(text, "partitions");
    p->queue_ms = number_of(text, "waited_ms");
    p->wall_ms = p->queue_ms + number_of(text, "ran_ms");
    const char *rest = strstr(text, "\"stages\": ");
    while (rest && !p->same_as && strstr(rest, "\"synthesis_ms\": ")) {
        p->synthesis_ms += number_after(&rest, "synthesis_ms");
        for (size_t k = 0; k < ARRAY_LEN(proving); k++)
            p->prove_ms += number_after(&rest, proving[k]);
    }
    free(text);
}

static void print_head(void)
{
    printf("%-24s %9s %9s %9s %9s %9s\n", "PROOF", "SUBMIT", "WALL", "QUEUE", "SYNTHESIS", "PROVE");
}

static void print_proof(const struct bench *b, size_t i)
{
    const struct proof *p = &b->proofs[i];
    char name[48];

    snprintf(name, sizeof(name), "bench-%08x-%zu", b->run, i + 1);
    if (b->args->json) {
        printf("{\"name\":\"%s\",\"job\":%" PRIu64 ",\"state\":\"%s\",\"partitions\":%u,"
               "\"submit_ms\":%.3f,\"wall_ms\":%.3f,\"queue_ms\":%.3f,\"synthesis_ms\":%.3f,"
               "\"prove_ms\":%.3f,\"same_as\":%" PRIu64 "}\n",
               name, p->job, p->state == PROOF_DONE ? "done" : "failed", p->partitions,
               p->submit_ms, p->wall_ms, p->queue_ms, p->synthesis_ms, p->prove_ms, p->same_as);
    } else {
        printf("%-24s %9.1f %9.1f %9.1f %9.1f %9.1f", name, p->submit_ms, p->wall_ms, p->queue_ms,
               p->synthesis_ms, p->prove_ms);
        if (p->same_as)
            printf(" shared");
        puts(p->state == PROOF_DONE ? "" : " FAILED");
    }
    fflush(stdout);
}

/* A job that is there no more was cancelled by somebody. */
static void look_at(struct bench *b, size_t i)
{
    struct proof *p = &b->proofs[i];

    if (has_job_file(b, i, ".proof"))
        p->state = PROOF_DONE;
    else if (has_job_file(b, i, ".error") || (!has_job_file(b, i, "") && errno == ENOENT))
        p->state = PROOF_FAILED;
    else
        return;
    read_report(b, i);
    b->ended++;
    print_proof(b, i);
}

static void look_at_all(struct bench *b)
{
    for (size_t i = 0; i < b->submitted; i++)
        if (b->proofs[i].state == PROOF_OPEN)
            look_at(b, i);
}

/* The number of a job of ours that has come to its end, by a file's name; SIZE_MAX: it is none. */
static size_t job_of_event(const struct bench *b, const char *file)
{
    char suffix[8];
    size_t number;
    unsigned run;

    if (sscanf(file, "bench-%8x-%zu.%7s", &run, &number, suffix) != 3 || run != b->run ||
        number < 1 || number > b->submitted)
        return SIZE_MAX;
    return strcmp(suffix, "proof") == 0 || strcmp(suffix, "error") == 0 ? number - 1 : SIZE_MAX;
}

static void read_events(struct bench *b)
{
    union {
        struct inotify_event align;
        char bytes[16384];
    } buf;
    ssize_t n;

    while ((n = read(b->watch, buf.bytes, sizeof(buf.bytes))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const void *)(buf.bytes + at);
            size_t i = e->len > 0 ? job_of_event(b, e->name) : SIZE_MAX;
            if (i != SIZE_MAX && b->proofs[i].state == PROOF_OPEN)
                look_at(b, i);
            at += (ssize_t)(sizeof(*e) + e->len);
        }
}

/* ---- the run ---- */

static bool may_submit(const struct bench *b)
{
    size_t most = b->args->concurrency ? b->args->concurrency : b->count;

    return !b->refused && b->submitted < b->count && b->submitted - b->ended < most;
}

static bool service_is_there(const struct bench *b)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/jobs", b->args->mount);
    return access(path, F_OK) == 0;
}

/* 0, -EINTR, -ENOTCONN when the service has gone, or -EIO when nobody reads what is printed. */
static int run(struct bench *b)
{
    struct pollfd p = {b->watch, POLLIN, 0};
    double look = now_ms();

    b->history.begin_ms = now_ms();
    while (!interrupted && !ferror(stdout) && (may_submit(b) || b->ended < b->submitted)) {
        if (may_submit(b)) {
            submit(b);
            p.revents = 0;
        } else {
            poll(&p, 1, LOOK_EVERY_MS);
        }
        read_events(b);
        if (now_ms() - look < LOOK_EVERY_MS)
            continue;
        look = now_ms();
        if (!service_is_there(b))
            return -ENOTCONN;
        look_at_all(b);
        bench_history_read(&b->history);
    }
    b->history.end_ms = now_ms();
    if (interrupted)
        return -EINTR;
    return ferror(stdout) ? -EIO : 0;
}

static void remove_jobs(const struct bench *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->proofs[i].created)
            remove_job_file(b, i, "");
}

/* ---- the answer ---- */

struct spread {
    double min, median, p90, p99, max, mean, sd;
};

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;

    return (d > 0) - (d < 0);
}

/* The smallest value that so much of all are not above. */
static double percentile(const double *sorted, size_t len, double share)
{
    size_t i = (size_t)ceil(share * (double)len);

    return sorted[i > 0 ? i - 1 : 0];
}

static double time_of(const struct proof *p, size_t offset)
{
    double value;

    memcpy(&value, (const char *)p + offset, sizeof(value));
    return value;
}

/* Of one of the times of those that were proved, `offset` being its place in struct proof. Returns how many. */
static size_t spread_of(const struct bench *b, size_t offset, struct spread *out)
{
    double *list = calloc(b->count, sizeof(*list)), sum = 0, squares = 0;
    size_t n = 0;

    *out = (struct spread){0};
    for (size_t i = 0; list && i < b->submitted; i++)
        if (b->proofs[i].state == PROOF_DONE)
            list[n++] = time_of(&b->proofs[i], offset);
    if (n > 0) {
        qsort(list, n, sizeof(*list), by_value);
        for (size_t i = 0; i < n; i++)
            sum += list[i];
        out->mean = sum / (double)n;
        for (size_t i = 0; i < n; i++)
            squares += (list[i] - out->mean) * (list[i] - out->mean);
        out->sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
        out->min = list[0];
        out->median = percentile(list, n, 0.5);
        out->p90 = percentile(list, n, 0.9);
        out->p99 = percentile(list, n, 0.99);
        out->max = list[n - 1];
    }
    free(list);
    return n;
}

struct totals {
    size_t done, failed, shared;
    unsigned partitions; /* that were proved: shared ones are not proved again */
    double seconds, per_minute, partitions_per_minute;
    struct spread submit, wall;
};

static void sum_up(const struct bench *b, struct totals *out)
{
    *out = (struct totals){.seconds = (b->history.end_ms - b->history.begin_ms) / 1e3};
    out->done = spread_of(b, offsetof(struct proof, wall_ms), &out->wall);
    spread_of(b, offsetof(struct proof, submit_ms), &out->submit);
    out->failed = b->submitted - out->done;
    for (size_t i = 0; i < b->submitted; i++) {
        const struct proof *p = &b->proofs[i];
        out->shared += p->state == PROOF_DONE && p->same_as;
        out->partitions += p->state == PROOF_DONE && !p->same_as ? p->partitions : 0;
    }
    if (out->seconds <= 0)
        return;
    out->per_minute = (double)out->done * 60 / out->seconds;
    out->partitions_per_minute = out->partitions * 60.0 / out->seconds;
}

static uint64_t missed(const struct bench *b)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < b->history.nodes_len; i++)
        sum += b->history.nodes[i].missed;
    return sum;
}

#define MOST(n, field) bench_most(n, offsetof(struct bench_sample, field))
#define MEAN(n, field) bench_mean(n, offsetof(struct bench_sample, field))

static void print_node(const struct bench_node *n)
{
    if (n->samples_len == 0)
        return;
    printf("node %-7d %zu samples; permits in use: %.2f on average, at most %.0f of %.0f; at most "
           "%.1f MiB of slots\n",
           n->node, n->samples_len, MEAN(n, in_use), MOST(n, in_use), MOST(n, permits),
           MOST(n, in_use_bytes) / MIB);
    printf("%12s memory at most: proofd %.1f MiB, engine %.1f MiB resident and %.1f MiB of a pool; "
           "%.1f of %.1f MiB for proofs in huge pages\n",
           "", MOST(n, front) / MIB, MOST(n, resident) / MIB, MOST(n, hugetlb) / MIB,
           MOST(n, huge) / MIB, MOST(n, arena) / MIB);
}

static void print_provers(const struct bench *b)
{
    struct bench_prover provers[BENCH_PROVERS_MAX];
    size_t len = bench_provers(&b->history, provers);
    const double all = b->history.end_ms - b->history.begin_ms;

    for (size_t i = 0; i < len; i++) {
        const struct bench_prover *p = &provers[i];
        char name[48];
        snprintf(name, sizeof(name), p->gpu < 0 ? "cpu" : "gpu %d", p->gpu);
        printf("prover       node %d, %s: %zu partitions, busy %.1f %% of the time, starting %.1f "
               "%%; %zu gaps of "
               "%.1f ms in all, the longest %.1f ms\n",
               p->node, name, p->proofs, 100 * p->busy_ms / all, 100 * p->starting_ms / all,
               p->gaps, p->gaps_ms, p->longest_gap_ms);
    }
}

static void print_spread(const char *what, const struct spread *s)
{
    printf("%-12s median %.1f, 90 %% within %.1f, 99 %% within %.1f; %.1f to %.1f, mean %.1f, "
           "standard "
           "deviation %.1f\n",
           what, s->median, s->p90, s->p99, s->min, s->max, s->mean, s->sd);
}

static void print_text(const struct bench *b, const struct totals *t)
{
    printf("\nproofs       %zu of %zu done, %zu of them shared, %zu failed; times in ms\n", t->done,
           b->count, t->shared, t->failed);
    printf("total        %.2f s: %.2f proofs a minute, %.1f partitions a minute\n", t->seconds,
           t->per_minute, t->partitions_per_minute);
    print_spread("submit", &t->submit);
    print_spread("wall", &t->wall);
    for (size_t i = 0; i < b->history.nodes_len; i++)
        print_node(&b->history.nodes[i]);
    print_provers(b);
    if (missed(b))
        printf("missing      %" PRIu64 " lines of nodes/*/ had gone before they could be read\n",
               missed(b));
    bench_draw_samples(&b->history, stdout);
    bench_draw_text(&b->history, stdout);
}

static void json_samples(const struct bench *b, const struct bench_node *n)
{
    for (size_t i = 0; i < n->samples_len; i++) {
        const struct bench_sample *s = &n->samples[i];
        printf("%s[%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f", i ? "," : "", s->ms - b->history.begin_ms,
               s->front, s->resident, s->hugetlb, s->huge, s->in_use, s->in_use_bytes);
        for (int k = 0; k < FLIGHT_STAGES; k++)
            printf(",%.0f", s->stages[k]);
        putchar(']');
    }
}

static void json_nodes(const struct bench *b)
{
    for (size_t i = 0; i < b->history.nodes_len; i++) {
        const struct bench_node *n = &b->history.nodes[i];
        printf("%s{\"node\":%d,\"permits\":%.0f,\"in_use_mean\":%.3f,\"in_use_peak\":%.0f,"
               "\"slot_bytes_peak\":%.0f,\"front_bytes_peak\":%.0f,\"resident_bytes_peak\":%.0f,"
               "\"hugetlb_bytes_peak\":%.0f,\"arena_bytes\":%.0f,\"huge_bytes\":%.0f,"
               "\"samples\":[",
               i ? "," : "", n->node, MOST(n, permits), MEAN(n, in_use), MOST(n, in_use),
               MOST(n, in_use_bytes), MOST(n, front), MOST(n, resident), MOST(n, hugetlb),
               MOST(n, arena), MOST(n, huge));
        json_samples(b, n);
        printf("]}");
    }
}

static void json_provers(const struct bench *b)
{
    struct bench_prover provers[BENCH_PROVERS_MAX];
    size_t len = bench_provers(&b->history, provers);
    const double all = b->history.end_ms - b->history.begin_ms;

    for (size_t i = 0; i < len; i++) {
        const struct bench_prover *p = &provers[i];
        printf("%s{\"node\":%d,\"gpu\":%d,\"partitions\":%zu,\"busy\":%.4f,\"starting\":%.4f,"
               "\"gaps\":%zu,\"gaps_ms\":%.3f,\"longest_gap_ms\":%.3f}",
               i ? "," : "", p->node, p->gpu, p->proofs, p->busy_ms / all, p->starting_ms / all,
               p->gaps, p->gaps_ms, p->longest_gap_ms);
    }
}

static void json_waterfall(const struct bench *b)
{
    bool first = true;

    for (size_t i = 0; i < b->history.courses_len; i++) {
        const struct bench_course *c = &b->history.courses[i];
        if (!c->proof)
            continue;
        printf("%s[%u,%u,%d,%d", first ? "" : ",", c->proof, c->partition, c->node, c->gpu);
        for (int k = 0; k <= FLIGHT_STAGES; k++)
            printf(",%.3f", c->ms[k] - b->history.begin_ms);
        putchar(']');
        first = false;
    }
}

static void json_spread(const char *key, const struct spread *s)
{
    printf("\"%s\":{\"min\":%.3f,\"median\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f,"
           "\"mean\":%.3f,\"sd\":%.3f},",
           key, s->min, s->median, s->p90, s->p99, s->max, s->mean, s->sd);
}

static void print_json(const struct bench *b, const struct totals *t)
{
    printf("{\"proofs\":%zu,\"done\":%zu,\"shared\":%zu,\"failed\":%zu,\"partitions\":%u,"
           "\"seconds\":%.3f,\"proofs_per_minute\":%.3f,\"partitions_per_minute\":%.3f,",
           b->count, t->done, t->shared, t->failed, t->partitions, t->seconds, t->per_minute,
           t->partitions_per_minute);
    json_spread("submit_ms", &t->submit);
    json_spread("wall_ms", &t->wall);
    printf("\"missed\":%" PRIu64 ",\"nodes\":[", missed(b));
    json_nodes(b);
    printf("],\"provers\":[");
    json_provers(b);
    printf("],\"waterfall\":[");
    json_waterfall(b);
    puts("]}");
}

struct owner {
    uint64_t job;
    unsigned proof;
};

static int by_job(const void *a, const void *b)
{
    const struct owner *x = a, *y = b;

    return (x->job > y->job) - (x->job < y->job);
}

/* Which partitions are the benchmark's. */
static void mark_courses(struct bench *b)
{
    struct owner *owners = calloc(b->submitted + 1, sizeof(*owners));

    if (!owners)
        return;
    for (size_t i = 0; i < b->submitted; i++)
        owners[i] = (struct owner){b->proofs[i].job, (unsigned)i + 1};
    qsort(owners, b->submitted, sizeof(*owners), by_job);
    for (size_t i = 0; i < b->history.courses_len; i++) {
        const struct owner key = {.job = b->history.courses[i].job};
        const struct owner *o = bsearch(&key, owners, b->submitted, sizeof(*owners), by_job);
        b->history.courses[i].proof = o ? o->proof : 0;
    }
    free(owners);
}

static int write_svg(const struct bench *b)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    int ret = -ENOMEM;

    if (out) {
        bench_draw_svg(&b->history, out);
        ret = fclose(out) == 0 ? ctl_write_file(b->args->svg, text, len) : -ENOMEM;
    }
    free(text);
    if (ret < 0)
        ctl_fail(0, "%s: %s", b->args->svg, strerror(-ret));
    return ret;
}

static int answer(struct bench *b)
{
    struct totals t;
    const int none = b->cannot ? CTL_CANNOT : CTL_NO;

    if (b->submitted == 0) /* why, has been said */
        return none;
    bench_history_read(&b->history);
    mark_courses(b);
    bench_history_sort(&b->history);
    sum_up(b, &t);
    if (b->args->json)
        print_json(b, &t);
    else
        print_text(b, &t);
    if (b->args->svg && write_svg(b) < 0)
        return CTL_CANNOT;
    return t.done == b->count ? CTL_OK : none;
}

/* ---- start and end ---- */

/* So that who interrupts it, or reads no further, leaves no jobs. A wait for a place in the queue ends as well: calls are not begun
 * anew. Under nohup a hangup is ignored, and stays so. */
static void catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int open_watch(struct bench *b)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/jobs", b->args->mount);
    b->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (b->watch < 0 || inotify_add_watch(b->watch, path, IN_CREATE | IN_DELETE) < 0)
        return ctl_fail(-errno, "%s: %s: is proofd running there?", path, strerror(errno));
    return 0;
}

static int prepare(struct bench *b)
{
    int ret = 0;

    for (size_t i = 0; i < b->args->c1_len && ret == 0; i++)
        ret = load(&b->sources[i], b->args->c1[i], b->args->same);
    if (ret < 0)
        return ret;
    if (getrandom(&b->run, sizeof(b->run), 0) != (ssize_t)sizeof(b->run))
        return ctl_fail(-EIO, "no random numbers");
    b->proofs = calloc(b->count, sizeof(*b->proofs));
    return b->proofs ? open_watch(b) : ctl_fail(-ENOMEM, "no memory");
}

static int measure(struct bench *b)
{
    catch_signals();
    bench_history_begin(&b->history, b->args->mount);
    if (!b->args->json)
        print_head();
    int ret = run(b);
    int code = ret == 0 ? answer(b) : CTL_CANNOT;
    remove_jobs(b);
    if (ret == 0 || ret == -EIO) /* that the answer cannot be written, main() says */
        return code;
    return ctl_fail(code, interrupted ? "interrupted" : "the service has gone");
}

static int check_usage(const struct ctl_args *args)
{
    if (args->c1_len == 0)
        return ctl_fail(-EINVAL, "bench: --c1 FILE says what to prove");
    if (args->same && args->distinct)
        return ctl_fail(-EINVAL, "bench: documents cannot be both the same and distinct");
    int ret = args->svg ? ctl_may_write(args->svg) : 0;
    return ret < 0 ? ctl_fail(ret, "%s: %s", args->svg, strerror(-ret)) : 0;
}

int ctl_bench(const struct ctl_args *args)
{
    struct bench *b = calloc(1, sizeof(*b));
    int code = CTL_CANNOT;

    if (!b)
        return ctl_fail(CTL_CANNOT, "no memory");
    b->args = args;
    b->count = args->count ? args->count : COUNT_DEFAULT;
    b->watch = -1;
    if (check_usage(args) == 0) {
        int ret = prepare(b);
        code = ret < 0 ? (int)ctl_exit_of(ret) : measure(b);
    }
    bench_history_fini(&b->history);
    for (size_t i = 0; i < args->c1_len; i++)
        free(b->sources[i].bytes);
    if (b->watch >= 0)
        close(b->watch);
    free(b->proofs);
    free(b);
    return code;
}
