#include "daemon/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/version.h"
#include "numa/limits.h"

#define QUEUE_SHOWN 20 /* jobs listed one by one */
#define LIST_CHUNK 32

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- for people ---- */

static void put_duration(FILE *out, int64_t ms)
{
    int64_t s = ms / 1000;

    if (s >= 86400)
        fprintf(out, "%" PRId64 " d %" PRId64 " h", s / 86400, s % 86400 / 3600);
    else if (s >= 3600)
        fprintf(out, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        fprintf(out, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    else
        fprintf(out, "%" PRId64 " s", s);
}

static void put_bytes(FILE *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    fprintf(out, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void put_in_flight(FILE *out, const struct engine_status *e, size_t i)
{
    const enum partition_stage stage = e->in_flight[i].stage;

    fprintf(out, "            job %" PRIu64 " partition %" PRIu32 ": ", e->in_flight[i].job,
            e->in_flight[i].partition);
    if (!e->in_flight[i].begun)
        fputs("waiting", out);
    else if (stage == PARTITION_LOADING)
        fprintf(out, "waiting for parameters %u%%", e->in_flight[i].percent);
    else
        fputs(stage == PARTITION_PROVING ? "proving" : "synthesizing", out);
    fprintf(out, ", %.0f s\n", (double)e->in_flight[i].ms / 1e3);
}

static void put_memory(FILE *out, const struct engine_status *e)
{
    const struct node_memory *m = &e->status.node.memory;

    if (!m->mapped) {
        fputs(e->status.params[0]
                  ? "\n            has no memory for proofs at present"
                  : "\n            no parameters are loaded, and no memory is taken for proofs",
              out);
        return;
    }
    fprintf(out, "\n            %" PRIu32 " of %" PRIu32 " permits in use, memory ", m->slots.witnesses,
            m->shape.witnesses);
    put_bytes(out, m->arena_bytes);
    fprintf(out, " in pages of %s, %s, %s", arena_pages_name((enum arena_pages)m->pages),
            m->bound ? "bound" : "not bound", m->locked ? "locked" : "not locked");
    if (m->misplaced_bytes == 0)
        return;
    fputs("\n            WRONG: ", out);
    put_bytes(out, m->misplaced_bytes);
    fprintf(out, " of it lie on node %d", m->misplaced_node);
}

static void put_engine(FILE *out, const struct engine_status *e)
{
    fprintf(out, "engine      node %d: %s", e->node, engine_state_name(e->state));
    if (e->state == ENGINE_READY) {
        fprintf(out, ", %s, %" PRIu32 " threads, pid %d, ", e->hello.device, e->hello.threads,
                (int)e->pid);
        put_bytes(out, e->status.resident_bytes);
        fputs(" resident", out);
    }
    if (e->state == ENGINE_DOWN && e->last_end[0])
        fprintf(out, ", %s, started again in %.1f s", e->last_end, (double)e->retry_in_ms / 1e3);
    if (e->deaths > 0)
        fprintf(out, ", ended %" PRIu32 " times", e->deaths);
    if (e->wrong > 0)
        fprintf(out, ", %" PRIu64 " wrong proofs", e->wrong);
    if (e->set_aside)
        fputs(", SET ASIDE until the service is started again", out);
    if (e->pace_ms > 0)
        fprintf(out, ", a partition in %.3g s", e->pace_ms / 1e3);
    if (e->status.params[0])
        fprintf(out, "\n            holds parameters: %s", e->status.params);
    if (e->state == ENGINE_READY)
        put_memory(out, e);
    fputc('\n', out);
    for (size_t i = 0; i < e->in_flight_len; i++)
        put_in_flight(out, e, i);
}

static void put_hold(FILE *out, const struct sched_hold *h)
{
    const char *lacks = h->lacks == JOB_LACKS_MEMORY ? "memory" : "parameters";

    fprintf(out, "%-11s %s: ", lacks, h->size->name);
    if (h->all)
        fprintf(out, "jobs wait for %s", lacks);
    else
        fprintf(out, "node %d waits for %s", h->node, lacks);
    fprintf(out, ", next try in %.0f s: %s\n", (double)h->retry_in_ms / 1e3, h->why);
}

static void put_engines(FILE *out, struct sched *sched)
{
    struct sched_status *st = malloc(sizeof(*st));

    if (!st)
        return;
    sched_status(sched, st);
    for (size_t i = 0; i < st->engines_len; i++)
        put_engine(out, &st->engines[i]);
    if (st->no_prover)
        fputs("waiting     NO PROVER IS LEFT: all made wrong proofs and were set aside. Look at this machine and its "
              "parameters, then start the service again; jobs wait\n",
              out);
    for (size_t i = 0; i < st->holds_len; i++)
        put_hold(out, &st->holds[i]);
    if (st->unwritten > 0)
        fprintf(out, "store       cannot be written: %" PRIu32 " verified proofs wait in memory\n",
                st->unwritten);
    free(st);
}

static void put_params(FILE *out, struct params_watch *params)
{
    struct srs_look look;
    struct errmsg err = {""};
    bool any = false, others = false;

    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        int ret = params_watch_last(params, size, &look, &err);
        others |= ret == 0 && look.made_by_devices;
        if (ret == -ENOENT || (ret == 0 && look.made_by_devices))
            continue;
        any = true;
        if (ret < 0)
            fprintf(out, "parameters  %s: cannot be used: %s\n", size->name, err.text);
        else
            fprintf(out, "parameters  %s: %s (%s%s)\n", size->name, look.path,
                    srs_trust_text(look.trust), look.transformed ? ", transformed" : "");
    }
    if (others) {
        fprintf(out, "parameters  %s: made on devices (%s)\n", any ? "others" : "all sizes",
                srs_trust_text(SRS_INSECURE));
    } else if (!any) {
        params_watch_dirs(params, &err);
        fprintf(out, "parameters  none in %s\n", err.text);
    }
}

static void put_files(FILE *out, const struct jobs_totals *t)
{
    fprintf(out, "\nfiles       %" PRIu32 " that are no jobs, ", t->unsubmitted);
    put_bytes(out, t->unsubmitted_bytes);
    if (!t->refused_ms)
        return;
    fputs("; a limit was met ", out);
    put_duration(out, now_ms() - t->refused_ms);
    fprintf(out, " ago: %s", t->refusal);
}

/* Of a disk that refuses what users write; until it has taken something. */
static void put_disk(FILE *out, const struct jobs_totals *t)
{
    bool full = t->disk_error == -ENOSPC || t->disk_error == -EDQUOT;

    if (!t->disk_refused_ms)
        return;
    fprintf(out, "\n            %s ",
            full ? "ITS DISK IS FULL: it refused a write"
                 : "CANNOT BE WRITTEN: its disk refused a write");
    put_duration(out, now_ms() - t->disk_refused_ms);
    fprintf(out, " ago: %s", strerror(-t->disk_error));
    if (full)
        fputs("; remove ended jobs, or keep fewer (keep_finished, keep_finished_bytes, max_store)",
              out);
}

static void put_places(FILE *out, const struct jobs_totals *t)
{
    bool full = t->places && t->places_taken >= t->places;

    fprintf(out, "places      %" PRIu32 " of %" PRIu32 " taken%s\n", t->places_taken, t->places,
            full ? ": the queue is full, who opens another file to write waits (max_unfinished)"
                 : "");
}

static void put_kept(FILE *out, const struct jobs_totals *t)
{
    fputs("kept        ended jobs: ", out);
    if (t->keep_finished)
        fprintf(out, "at most %" PRIu32, t->keep_finished);
    else
        fputs("all", out);
    if (t->keep_finished_bytes) {
        fputs(", at most ", out);
        put_bytes(out, t->keep_finished_bytes);
    }
    if (t->keep_finished_s) {
        fputs(", for ", out);
        put_duration(out, t->keep_finished_s * 1000);
    }
    fputc('\n', out);
}

static void put_totals(FILE *out, const struct status_source *src)
{
    struct jobs_totals totals;

    jobs_totals(src->jobs, &totals);
    if (totals.closing)
        fputs("stopping    no file can be opened for writing any more, what engines have begun may end\n",
              out);
    fprintf(out, "store       %s, ", src->config->store);
    put_bytes(out, totals.store_bytes);
    put_disk(out, &totals);
    if (totals.set_aside > 0)
        fprintf(out, "\n            %" PRIu32 " entries cannot be read as jobs: *.damaged, set aside",
                totals.set_aside);
    if (totals.repaired > 0)
        fprintf(out, "\n            %" PRIu64 " damaged files made again since the start",
                totals.repaired);
    put_files(out, &totals);
    fprintf(out,
            "\njobs        done %" PRIu64 ", failed %" PRIu64 ", refused %" PRIu64
            ", cancelled %" PRIu64 " since the start; there now:",
            totals.done_ever, totals.failed_ever, totals.refused_ever, totals.cancelled_ever);
    for (int state = 0; state < JOB_STATES; state++)
        fprintf(out, " %s %" PRIu32, job_state_name((enum job_state)state), totals.by_state[state]);
    fputc('\n', out);
    put_places(out, &totals);
    put_kept(out, &totals);
}

static bool is_in_queue(const struct job_info *info)
{
    return info->state == JOB_QUEUED || info->state == JOB_SYNTHESIZING ||
           info->state == JOB_PROVING;
}

static void put_job(FILE *out, const struct job_info *info)
{
    char name[4 * JOB_NAME_MAX + 1];

    escape_name(name, sizeof(name), info->name);
    fprintf(out, "            %" PRIu64 " %s: %s %" PRIu32 "/%" PRIu32 ", priority %s%s\n", info->id,
            name, job_state_name(info->state), info->partitions_done, info->partitions,
            job_priority_name(info->priority),
            info->waits_for_params   ? ", waiting for parameters"
            : info->waits_for_memory ? ", waiting for memory"
                                     : "");
}

/* The oldest first; priority decides among them, which the line shows. */
static void put_queue(FILE *out, struct jobs *jobs)
{
    struct job_info *list = malloc(LIST_CHUNK * sizeof(*list));
    uint64_t after = 0;
    size_t n, shown = 0;

    while (list && shown < QUEUE_SHOWN && (n = jobs_list(jobs, after, list, LIST_CHUNK)) > 0) {
        after = list[n - 1].id;
        for (size_t i = 0; i < n && shown < QUEUE_SHOWN; i++) {
            if (!is_in_queue(&list[i]))
                continue;
            put_job(out, &list[i]);
            shown++;
        }
    }
    if (shown == QUEUE_SHOWN)
        fputs("            ...\n", out);
    free(list);
}

static int finish(FILE *out)
{
    return fclose(out) == 0 ? 0 : -ENOMEM;
}

int status_render(const struct status_source *src, char **text, size_t *len)
{
    FILE *out = open_memstream(text, len);
    char levels[LOG_LEVELS_TEXT];

    if (!out)
        return -ENOMEM;
    fprintf(out, "proofd      %s, up ", PROOFD_VERSION);
    put_duration(out, now_ms() - src->started_ms);
    fputs(", ", out);
    put_bytes(out, resident_bytes(getpid()));
    log_levels_text(log_get_levels(), levels);
    fprintf(out, " resident, log level %s\n", levels);
    put_engines(out, src->sched);
    put_params(out, src->params);
    put_totals(out, src);
    put_queue(out, src->jobs);
    return finish(out);
}

/* ---- Prometheus ---- */

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP proofd_%s %s\n# TYPE proofd_%s %s\n", name, help, name, type);
}

static void put_job_metrics(FILE *out, struct jobs *jobs)
{
    struct jobs_totals t;

    jobs_totals(jobs, &t);
    head(out, "jobs", "gauge", "Jobs in the table, by state.");
    for (int state = 0; state < JOB_STATES; state++)
        fprintf(out, "proofd_jobs{state=\"%s\"} %" PRIu32 "\n",
                job_state_name((enum job_state)state), t.by_state[state]);
    head(out, "jobs_done_total", "counter", "Jobs that ended with a proof since the start.");
    fprintf(out, "proofd_jobs_done_total %" PRIu64 "\n", t.done_ever);
    head(out, "jobs_failed_total", "counter", "Jobs that failed since the start.");
    fprintf(out, "proofd_jobs_failed_total %" PRIu64 "\n", t.failed_ever);
    head(out, "jobs_refused_total", "counter", "Files that were refused since the start.");
    fprintf(out, "proofd_jobs_refused_total %" PRIu64 "\n", t.refused_ever);
    head(out, "jobs_cancelled_total", "counter",
         "Jobs that were removed before their end since the start.");
    fprintf(out, "proofd_jobs_cancelled_total %" PRIu64 "\n", t.cancelled_ever);
    head(out, "store_bytes", "gauge", "Bytes in the job store.");
    fprintf(out, "proofd_store_bytes %" PRIu64 "\n", t.store_bytes);
    head(out, "unsubmitted_files", "gauge", "Files that are no jobs.");
    fprintf(out, "proofd_unsubmitted_files %" PRIu32 "\n", t.unsubmitted);
    head(out, "unsubmitted_bytes", "gauge", "Bytes of files that are no jobs.");
    fprintf(out, "proofd_unsubmitted_bytes %" PRIu64 "\n", t.unsubmitted_bytes);
    head(out, "store_set_aside", "gauge", "Entries of the store that cannot be read as jobs.");
    fprintf(out, "proofd_store_set_aside %" PRIu32 "\n", t.set_aside);
    head(out, "store_repaired_total", "counter",
         "Files that the disk had damaged and that were made again.");
    fprintf(out, "proofd_store_repaired_total %" PRIu64 "\n", t.repaired);
}

static size_t count_held(const struct sched_status *st)
{
    size_t n = 0;

    for (size_t i = 0; i < st->holds_len; i++)
        n += st->holds[i].all;
    return n;
}

static void put_partition_metrics(FILE *out, const struct sched_status *st)
{
    head(out, "partitions_done_total", "counter", "Partition proofs verified and journalled.");
    fprintf(out, "proofd_partitions_done_total %" PRIu64 "\n", st->partitions_done);
    head(out, "partitions_failed_total", "counter", "Partitions that failed their job.");
    fprintf(out, "proofd_partitions_failed_total %" PRIu64 "\n", st->partitions_failed);
    head(out, "partitions_returned_total", "counter", "Partitions that went back to the queue.");
    fprintf(out, "proofd_partitions_returned_total %" PRIu64 "\n", st->partitions_returned);
    head(out, "partitions_stolen_total", "counter",
         "Of these, those that an idle engine took from another's queue.");
    fprintf(out, "proofd_partitions_stolen_total %" PRIu64 "\n", st->partitions_stolen);
    head(out, "no_prover", "gauge", "1: every prover has been set aside for wrong proofs, jobs wait.");
    fprintf(out, "proofd_no_prover %d\n", st->no_prover);
    head(out, "sizes_held", "gauge",
         "Sector sizes that lack parameters or memory everywhere: jobs wait.");
    fprintf(out, "proofd_sizes_held %zu\n", count_held(st));
    head(out, "proofs_unwritten", "gauge", "Verified proofs that wait for room on the disk.");
    fprintf(out, "proofd_proofs_unwritten %" PRIu32 "\n", st->unwritten);
}

/* One metric, a line for each engine. */
static void put_per_engine(FILE *out, const struct sched_status *st, const char *name,
                           const char *type, const char *help,
                           uint64_t (*value)(const struct engine_status *e))
{
    head(out, name, type, help);
    for (size_t i = 0; i < st->engines_len; i++)
        fprintf(out, "proofd_%s{node=\"%d\"} %" PRIu64 "\n", name, st->engines[i].node,
                value(&st->engines[i]));
}

static uint64_t engine_up(const struct engine_status *e)
{
    return e->state == ENGINE_READY;
}

static uint64_t engine_in_flight(const struct engine_status *e)
{
    return e->in_flight_len;
}

static uint64_t engine_resident(const struct engine_status *e)
{
    return e->status.resident_bytes;
}

static uint64_t engine_starts(const struct engine_status *e)
{
    return e->starts;
}

static uint64_t engine_deaths(const struct engine_status *e)
{
    return e->deaths;
}

static uint64_t engine_wrong(const struct engine_status *e)
{
    return e->wrong;
}

static uint64_t engine_set_aside(const struct engine_status *e)
{
    return e->set_aside;
}

static void put_engine_metrics(FILE *out, const struct sched_status *st)
{
    put_per_engine(out, st, "engine_up", "gauge", "1: the engine is ready.", engine_up);
    put_per_engine(out, st, "engine_partitions_in_flight", "gauge", "Partitions in the engine.",
                   engine_in_flight);
    put_per_engine(out, st, "engine_resident_bytes", "gauge", "Resident memory of the engine.",
                   engine_resident);
    put_per_engine(out, st, "engine_starts_total", "counter", "Starts of the engine.",
                   engine_starts);
    put_per_engine(out, st, "engine_deaths_total", "counter", "Unwanted ends of the engine.",
                   engine_deaths);
    put_per_engine(out, st, "engine_wrong_proofs_total", "counter",
                   "Proofs of the engine that did not verify.", engine_wrong);
    put_per_engine(out, st, "engine_set_aside", "gauge",
                   "1: all its provers made too many of them and are not used.", engine_set_aside);
}

/* One metric, a line for each stage of each engine. */
static void put_per_stage(FILE *out, const struct sched_status *st, const char *name, const char *type,
                          const char *help,
                          uint64_t (*value)(const struct flight_counts *c, enum flight_stage stage))
{
    head(out, name, type, help);
    for (size_t i = 0; i < st->engines_len; i++)
        for (int stage = 0; stage < FLIGHT_STAGES; stage++)
            fprintf(out, "proofd_%s{node=\"%d\",stage=\"%s\"} %" PRIu64 "\n", name,
                    st->engines[i].node, flight_stage_name((enum flight_stage)stage),
                    value(&st->engines[i].status.node.flight, (enum flight_stage)stage));
}

static uint64_t stage_partitions(const struct flight_counts *c, enum flight_stage stage)
{
    return c->now[stage].partitions;
}

static uint64_t stage_bytes(const struct flight_counts *c, enum flight_stage stage)
{
    return c->now[stage].bytes;
}

static uint64_t stage_entered(const struct flight_counts *c, enum flight_stage stage)
{
    return c->entered[stage];
}

static uint64_t stage_ms(const struct flight_counts *c, enum flight_stage stage)
{
    return c->stage_us[stage] / 1000;
}

static uint64_t node_permits(const struct engine_status *e)
{
    return e->status.node.memory.shape.witnesses;
}

static uint64_t node_permits_used(const struct engine_status *e)
{
    return e->status.node.memory.slots.witnesses;
}

static uint64_t node_evaluations_used(const struct engine_status *e)
{
    return e->status.node.memory.slots.evaluations;
}

static uint64_t node_returned(const struct engine_status *e)
{
    return e->status.node.memory.slots.returned_bytes;
}

static uint64_t node_arena(const struct engine_status *e)
{
    return e->status.node.memory.arena_bytes;
}

static uint64_t node_huge(const struct engine_status *e)
{
    return e->status.node.memory.huge_bytes;
}

static uint64_t node_misplaced(const struct engine_status *e)
{
    return e->status.node.memory.misplaced_bytes;
}

static uint64_t node_invalid(const struct engine_status *e)
{
    return e->status.node.flight.events[FLIGHT_INVALID];
}

static void put_node_metrics(FILE *out, const struct sched_status *st)
{
    put_per_stage(out, st, "node_partitions", "gauge", "Partitions in each stage.", stage_partitions);
    put_per_stage(out, st, "node_stage_bytes", "gauge", "Bytes of their slots.", stage_bytes);
    put_per_stage(out, st, "node_stage_entered_total", "counter",
                  "Partitions that came to the stage since the engine's start.", stage_entered);
    put_per_stage(out, st, "node_stage_milliseconds_total", "counter",
                  "Time that partitions spent in the stage.", stage_ms);
    head(out, "stage_seconds", "histogram",
         "How long the partitions that were proved were in the stage, since the service's start.");
    for (size_t i = 0; i < st->engines_len; i++)
        stage_times_print(&st->engines[i].times, "proofd_stage_seconds", st->engines[i].node, out);
    put_per_engine(out, st, "node_permits", "gauge", "Slots for partitions.", node_permits);
    put_per_engine(out, st, "node_permits_in_use", "gauge", "Slots in use.", node_permits_used);
    put_per_engine(out, st, "node_evaluation_parts_in_use", "gauge", "Of these with their larger part.",
                   node_evaluations_used);
    put_per_engine(out, st, "node_returned_bytes_total", "counter",
                   "Bytes of slots given back since the engine's start.", node_returned);
    put_per_engine(out, st, "node_arena_bytes", "gauge", "Memory mapped for proofs.", node_arena);
    put_per_engine(out, st, "node_huge_bytes", "gauge", "Of this in pages of 2 MiB or more.", node_huge);
    put_per_engine(out, st, "node_misplaced_bytes", "gauge", "Of this on another node than it should be.",
                   node_misplaced);
    put_per_engine(out, st, "node_invalid_proofs_total", "counter",
                   "Proofs thrown away since the engine's start, for they did not verify.", node_invalid);
}

static void put_params_metrics(FILE *out, struct params_watch *params)
{
    struct srs_look look;

    head(out, "parameters", "gauge",
         "1 for each size that has parameters, with what is known of them.");
    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        int ret = params_watch_last(params, size, &look, NULL);
        if (ret != -ENOENT)
            fprintf(out, "proofd_parameters{size=\"%s\",trust=\"%s\"} 1\n", size->name,
                    ret == 0 ? srs_trust_word(look.trust) : "unusable");
    }
}

int metrics_render(const struct status_source *src, char **text, size_t *len)
{
    struct sched_status *st = malloc(sizeof(*st));
    FILE *out = st ? open_memstream(text, len) : NULL;

    if (!out) {
        free(st);
        return -ENOMEM;
    }
    sched_status(src->sched, st);
    head(out, "info", "gauge", "The version.");
    fprintf(out, "proofd_info{version=\"%s\"} 1\n", PROOFD_VERSION);
    head(out, "uptime_seconds", "gauge", "Seconds since the start.");
    fprintf(out, "proofd_uptime_seconds %" PRId64 "\n", (now_ms() - src->started_ms) / 1000);
    head(out, "resident_bytes", "gauge", "Resident memory of the front.");
    fprintf(out, "proofd_resident_bytes %" PRIu64 "\n", resident_bytes(getpid()));
    put_job_metrics(out, src->jobs);
    put_partition_metrics(out, st);
    put_engine_metrics(out, st);
    put_node_metrics(out, st);
    put_params_metrics(out, src->params);
    free(st);
    return finish(out);
}
