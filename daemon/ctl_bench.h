/*
 * What the parts of proofctl bench share: what the service showed of itself while the benchmark ran (ctl_bench_history.c), and how it
 * is drawn (ctl_bench_draw.c). ctl_bench.c is the command.
 *
 * One thread.
 */
#ifndef DAEMON_CTL_BENCH_H
#define DAEMON_CTL_BENCH_H

#include "daemon/ctl.h"
#include "daemon/flight.h"

#define BENCH_NODES_MAX 64
#define BENCH_PROVERS_MAX 256

/* A line of nodes/N/samples: milliseconds, bytes and numbers as there. */
struct bench_sample {
    double ms;
    double front, resident, hugetlb, arena, huge;
    double permits, in_use, evaluations, in_use_bytes;
    double stages[FLIGHT_STAGES];
};

/* A line of nodes/N/partitions. */
struct bench_course {
    int node, gpu;
    uint64_t job;
    unsigned partition;
    double ms[FLIGHT_STAGES + 1]; /* when it came to each stage, and when it was done */
    unsigned proof;               /* the benchmark's, from 1; 0: somebody else's */
};

struct bench_node {
    int node;
    uint64_t next_sample, next_course; /* numbers that have not been read */
    uint64_t missed;                   /* lines that were gone before they could be read */
    struct bench_sample *samples;
    size_t samples_len, samples_room;
};

struct bench_history {
    const char *mount;
    double begin_ms, end_ms; /* of the run */
    size_t nodes_len;
    struct bench_node nodes[BENCH_NODES_MAX];
    struct bench_course *courses; /* of all nodes */
    size_t courses_len, courses_room;
};

/* Finds the nodes of the mount; what they showed before is left out. A service without histories has none. */
void bench_history_begin(struct bench_history *h, const char *mount);
/* What is new since the last time. */
void bench_history_read(struct bench_history *h);
/* The courses in the order in which they came to a prover. */
void bench_history_sort(struct bench_history *h);
void bench_history_fini(struct bench_history *h);

/* How busy a prover was in the run. */
struct bench_prover {
    int node, gpu;
    size_t proofs;
    double starting_ms, busy_ms; /* a start was on its way; a start or a finish was */
    size_t gaps;                 /* between its first start and its last end it had nothing to do */
    double gaps_ms, longest_gap_ms;
};

/* Needs the courses sorted. Returns how many. */
size_t bench_provers(const struct bench_history *h, struct bench_prover out[BENCH_PROVERS_MAX]);

/* A column of a sample, `offset` being its place in the struct; the most and the mean that samples of a node have of it. */
double bench_column(const struct bench_sample *s, size_t offset);
double bench_most(const struct bench_node *n, size_t offset);
double bench_mean(const struct bench_node *n, size_t offset);

/* A line for each of the benchmark's partitions. */
void bench_draw_text(const struct bench_history *h, FILE *out);
/* A line for each of some of the samples. */
void bench_draw_samples(const struct bench_history *h, FILE *out);
/* The same with all of them, as a picture. */
void bench_draw_svg(const struct bench_history *h, FILE *out);

#endif
