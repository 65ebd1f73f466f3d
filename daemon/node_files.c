#include "daemon/node_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 48

struct entry {
    struct node_files *all;
    char path[PATH_BYTES];
    size_t node;  /* its place in the list */
    uint32_t gpu; /* of gpus/N */
    void (*put)(FILE *out, const struct entry *e, const struct engine_status *st);
    int (*put_history)(struct history *h, size_t engine, FILE *out); /* in place of put */
};

struct node_files {
    const struct nodes *nodes;
    struct sched *sched;
    struct history *history;
    struct entry *entries;
    struct node_file *files;
    size_t len;
};

/* ---- what they say ---- */

static const char *yes_no(bool b)
{
    return b ? "yes" : "no";
}

static void put_topology(FILE *out, const struct entry *e, const struct engine_status *st)
{
    const struct node *n = &e->all->nodes->list[e->node];
    char list[1024] = "all";

    if (n->bound)
        topology_format_list(n->where.cpus, list, sizeof(list));
    fprintf(out, "engine %s\n", engine_state_name(st->state));
    fprintf(out, "cpus %s\n", list);
    fprintf(out, "threads %" PRIu32 "\n", st->hello.threads);
    if (n->bound && n->where.memory_node >= 0)
        fprintf(out, "memory_node %d\n", n->where.memory_node);
    else
        fputs("memory_node none\n", out);
    fputs("gpus", out);
    for (size_t i = 0; i < n->gpus_len; i++)
        fprintf(out, " %" PRIu32, n->gpus[i]);
    fprintf(out, "\nprover %s\n", st->hello.device);
    if (n->bound && n->where.lost[0])
        fprintf(out, "lost %s\n", n->where.lost);
    for (size_t i = 0; sector_sizes[i].name; i++)
        if (st->hello.needed_bytes[i] > st->hello.limit_bytes)
            fprintf(out, "refused %s needs %" PRIu64 " bytes, there are %" PRIu64 "\n",
                    sector_sizes[i].name, st->hello.needed_bytes[i], st->hello.limit_bytes);
}

/* What the pools have now, of the node whose memory is used. */
static void put_pools(FILE *out, int memory_node)
{
    struct topology *t = NULL;

    if (topology_read(TOPOLOGY_SYSFS, &t, NULL) < 0)
        return;
    const struct topology_node *n = topology_find(t, memory_node);
    if (n) {
        fprintf(out, "node_bytes %" PRIu64 "\nnode_available_bytes %" PRIu64 "\n", n->total_bytes,
                n->available_bytes);
        fprintf(out, "pool_1gib %" PRIu64 " free %" PRIu64 "\n", n->huge_1g_total, n->huge_1g_free);
        fprintf(out, "pool_2mib %" PRIu64 " free %" PRIu64 "\n", n->huge_2m_total, n->huge_2m_free);
    }
    topology_destroy(t);
}

static void put_hugepages(FILE *out, const struct entry *e, const struct engine_status *st)
{
    const struct node_memory *m = &st->status.node.memory;

    (void)e;
    fprintf(out, "pages %s\n", m->mapped ? arena_pages_name((enum arena_pages)m->pages) : "none");
    fprintf(out, "arena_bytes %" PRIu64 "\nhuge_bytes %" PRIu64 "\n", m->arena_bytes,
            m->huge_bytes);
    fprintf(out, "bound %s\nlocked %s\n", yes_no(m->bound), yes_no(m->locked));
    fprintf(out, "misplaced_bytes %" PRIu64 "\n", m->misplaced_bytes);
    if (m->misplaced_bytes)
        fprintf(out, "misplaced_on %d\n", m->misplaced_node);
    fprintf(out,
            "scratch_bytes %" PRIu64 "\nparameter_bytes %" PRIu64 "\nlimit_bytes %" PRIu64 "\n",
            m->scratch_bytes, m->params_bytes, m->limit_bytes);
    put_pools(out, m->node);
}

static void put_permits(FILE *out, const struct entry *e, const struct engine_status *st)
{
    const struct node_memory *m = &st->status.node.memory;

    (void)e;
    fprintf(out, "permits %" PRIu32 "\nin_use %" PRIu32 "\npeak %" PRIu32 "\n", m->shape.witnesses,
            m->slots.witnesses, m->slots.witnesses_peak);
    fprintf(out, "evaluation_parts %" PRIu32 "\nevaluation_parts_in_use %" PRIu32 "\n",
            m->shape.evaluations, m->slots.evaluations);
    fprintf(out, "witness_bytes %zu\nevaluation_bytes %zu\n", m->shape.witness_bytes,
            m->shape.evaluation_bytes);
    fprintf(out,
            "bytes_in_use %" PRIu64 "\nbytes_peak %" PRIu64 "\nbytes_returned_total %" PRIu64 "\n",
            m->slots.bytes, m->slots.bytes_peak, m->slots.returned_bytes);
}

static void put_flight(FILE *out, const struct entry *e, const struct engine_status *st)
{
    static const char *const events[] = {"verified", "invalid", "failed", "cancelled"};
    const struct flight_counts *c = &st->status.node.flight;

    (void)e;
    fprintf(out, "%-13s %10s %15s %10s %10s\n", "stage", "partitions", "bytes", "ever", "ms_each");
    for (int i = 0; i < FLIGHT_STAGES; i++) {
        uint64_t left = c->entered[i] - c->now[i].partitions;
        fprintf(out, "%-13s %10" PRIu32 " %15" PRIu64 " %10" PRIu64 " %10.1f\n",
                flight_stage_name((enum flight_stage)i), c->now[i].partitions, c->now[i].bytes,
                c->entered[i], left ? (double)c->stage_us[i] * 1e-3 / (double)left : 0);
    }
    for (int i = 0; i < FLIGHT_EVENTS; i++)
        fprintf(out, "%s %" PRIu64 "\n", events[i], c->events[i]);
}

/* NULL: the engine has none of this number, or does not use it. */
static const struct node_prover *find_prover(const struct node_status *st, uint32_t gpu)
{
    for (uint32_t i = 0; i < st->provers_len; i++)
        if (st->provers[i].gpu == (int32_t)gpu)
            return &st->provers[i];
    return NULL;
}

static const char *describe(const struct node_prover *p)
{
    if (p->set_aside)
        return "set aside: too many wrong proofs";
    if (p->stalled)
        return "does not answer";
    if (p->proving)
        return "proving";
    return p->finishing ? "finishing" : "idle";
}

/* A line for each set that it holds: where it has them, whose they are. */
static void put_parameters(FILE *out, const struct node_status *st, const struct node_prover *p)
{
    const uint32_t bit = UINT32_C(1) << (p - st->provers);
    bool any = false;

    for (size_t i = 0; sector_sizes[i].name; i++) {
        const struct node_params *set = &st->params[i];
        if (!(set->devices & bit))
            continue;
        fprintf(out, "parameters %s %s %s%s\n", sector_sizes[i].name,
                set->streamed & bit ? "streamed" : "resident",
                srs_trust_text((enum srs_trust)set->trust),
                set->transformed ? ", transformed" : "");
        any = true;
    }
    if (!any)
        fputs("parameters none\n", out);
}

static void put_gpu(FILE *out, const struct entry *e, const struct engine_status *st)
{
    const struct node_prover *p = find_prover(&st->status.node, e->gpu);

    fprintf(out, "node %d\n", st->node);
    if (!p) {
        fputs("state not used\n", out);
        return;
    }
    fprintf(out, "kind %s\nstate %s\n", p->name, describe(p));
    fprintf(out, "proving %" PRIu32 "\nfinishing %" PRIu32 "\nstep_ms %" PRId64 "\n", p->proving,
            p->finishing, p->step_ms);
    fprintf(out, "proofs_total %" PRIu64 "\ninvalid_total %" PRIu64 "\n", p->proofs, p->invalid);
    put_parameters(out, &st->status.node, p);
    fprintf(out, "start_ms_total %" PRIu64 "\nfinish_ms_total %" PRIu64 "\n", p->start_us / 1000,
            p->finish_us / 1000);
}

static int render_history(void *ctx, char **text, size_t *len)
{
    const struct entry *e = ctx;
    FILE *out = open_memstream(text, len);

    if (!out)
        return -ENOMEM;
    int ret = e->put_history(e->all->history, e->node, out);
    if (fclose(out) != 0)
        return -ENOMEM;
    if (ret < 0)
        free(*text);
    return ret;
}

static int render(void *ctx, char **text, size_t *len)
{
    const struct entry *e = ctx;
    struct engine_status *st = malloc(sizeof(*st));
    FILE *out = st ? open_memstream(text, len) : NULL;

    if (!out) {
        free(st);
        return -ENOMEM;
    }
    sched_engine_status(e->all->sched, e->node, st);
    e->put(out, e, st);
    free(st);
    return fclose(out) == 0 ? 0 : -ENOMEM;
}

/* ---- which there are ---- */

static struct entry *add(struct node_files *f, size_t node)
{
    struct entry *e = &f->entries[f->len];

    *e = (struct entry){.all = f, .node = node};
    f->files[f->len] = (struct node_file){e->path, render, e};
    f->len++;
    return e;
}

static void add_node(struct node_files *f, size_t node)
{
    static const struct {
        const char *name;
        void (*put)(FILE *out, const struct entry *e, const struct engine_status *st);
    } kinds[] = {{"topology", put_topology},
                 {"hugepages", put_hugepages},
                 {"permits", put_permits},
                 {"flight", put_flight}};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct entry *e = add(f, node);
        snprintf(e->path, sizeof(e->path), "nodes/%d/%s", f->nodes->list[node].id, kinds[i].name);
        e->put = kinds[i].put;
    }
}

static void add_history(struct node_files *f, size_t node, const char *name,
                        int (*put)(struct history *h, size_t engine, FILE *out))
{
    struct entry *e = add(f, node);

    snprintf(e->path, sizeof(e->path), "nodes/%d/%s", f->nodes->list[node].id, name);
    e->put_history = put;
    f->files[f->len - 1].render = render_history;
}

static void add_gpu(struct node_files *f, size_t node, uint32_t gpu)
{
    struct entry *e = add(f, node);

    snprintf(e->path, sizeof(e->path), "gpus/%" PRIu32 "/status", gpu);
    e->put = put_gpu;
    e->gpu = gpu;
}

static size_t gpus_of(const struct node *n, unsigned simulated)
{
    return simulated ? simulated : n->gpus_len;
}

int node_files_create(const struct nodes *nodes, unsigned simulated, struct sched *sched,
                      struct history *history, struct node_files **out)
{
    struct node_files *f = calloc(1, sizeof(*f));
    size_t room = 6 * nodes->len;

    for (size_t i = 0; i < nodes->len; i++)
        room += gpus_of(&nodes->list[i], simulated);
    if (f) {
        f->entries = calloc(room, sizeof(*f->entries));
        f->files = calloc(room, sizeof(*f->files));
    }
    if (!f || !f->entries || !f->files) {
        node_files_destroy(f);
        return -ENOMEM;
    }
    f->nodes = nodes;
    f->sched = sched;
    f->history = history;
    for (size_t i = 0; i < nodes->len; i++) {
        add_node(f, i);
        add_history(f, i, "samples", history_put_samples);
        add_history(f, i, "partitions", history_put_partitions);
        for (uint32_t k = 0; k < gpus_of(&nodes->list[i], simulated); k++)
            add_gpu(f, i, simulated ? (uint32_t)i * simulated + k : nodes->list[i].gpus[k]);
    }
    *out = f;
    return 0;
}

void node_files_destroy(struct node_files *f)
{
    if (!f)
        return;
    free(f->entries);
    free(f->files);
    free(f);
}

const struct node_file *node_files_list(const struct node_files *f, size_t *len)
{
    *len = f->len;
    return f->files;
}
