/*
 * The pipeline on simulated devices. What must hold at every instant is looked at from a thread of its own; what must hold at the
 * end is looked at after every test: each partition had one answer, and nothing is in flight.
 */
#include "daemon/pipeline.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/partition.h"
#include "daemon/test_work.h"
#include "tests/lib/suite.h"

#define JOBS_MAX 40
#define PARTITIONS_MAX 40

static struct sim *sim;
static struct backend *backends[4];
static size_t backends_len;
static struct arena *arena;
static struct slots *slots;
static struct slots_shape shape;
static struct flight flight;
static struct pipeline *pipeline;
static struct errmsg err;

/* What was said; guarded by lock. */
static pthread_mutex_t lock;
static pthread_cond_t changed;
static struct answer {
    unsigned given, done, failed;
    int code;
    bool wrong; /* the proof */
    char text[256];
    struct partition_report report;
} answers[JOBS_MAX][PARTITIONS_MAX];
static unsigned given, answered;
static struct {
    uint64_t job;
    uint32_t partition;
    enum partition_stage stage;
} stages[4 * JOBS_MAX * PARTITIONS_MAX];
static size_t stages_len, read_len;
static uint32_t partitions = 10; /* of a job */
static unsigned prepared;        /* how often ground was brought */
static bool ground_missing;
static bool hold_prepare, at_prepare; /* guarded by lock */
static unsigned chores[2]; /* loads, evictions */
static const struct sector_size *chore_size;

/* ---- the outside of the pipeline ---- */

static bool get_ground(void *ctx, const struct sector_size *size, struct pipeline_ground *out)
{
    (void)ctx, (void)size;
    *out = (struct pipeline_ground){.slots = slots};
    return !ground_missing;
}

static int prepare(void *ctx, const struct link_work *work, const struct sector_size *size, uint32_t waiting, double *ms,
                   struct errmsg *e)
{
    struct flight_counts c;

    (void)ctx, (void)work, (void)size;
    ck_assert_uint_eq(waiting, 0); /* documents of the test kind have no size */
    flight_read(&flight, &c);
    for (int i = FLIGHT_SYNTHESIZING; i < FLIGHT_STAGES; i++)
        ck_assert_uint_eq(c.now[i].partitions, 0);
    pthread_mutex_lock(&lock);
    at_prepare = true;
    pthread_cond_broadcast(&changed);
    while (hold_prepare)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    prepared++;
    *ms = 1;
    if (prepared > 5)
        return errmsg_set(e, -ENOKEY, "no parameters");
    ground_missing = false;
    return 0;
}

static void on_chore(void *ctx, const struct sector_size *size, bool evict, uint32_t waiting)
{
    struct flight_counts c;

    (void)ctx;
    flight_read(&flight, &c);
    for (int i = FLIGHT_SYNTHESIZING; i < FLIGHT_STAGES; i++)
        ck_assert_uint_eq(c.now[i].partitions, 0);
    ck_assert_uint_eq(waiting, 0); /* documents of the test kind have no size */
    pthread_mutex_lock(&lock);
    chores[evict]++;
    chore_size = size;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_stage(void *ctx, const struct link_work *w, enum partition_stage stage)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    if (stage == PARTITION_READING || stage == PARTITION_READ) { /* of a few, and before all else */
        read_len += stage == PARTITION_READ;
        pthread_mutex_unlock(&lock);
        return;
    }
    stages[stages_len].job = w->job;
    stages[stages_len].partition = w->partition;
    stages[stages_len++].stage = stage;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_done(void *ctx, const struct link_work *w, const uint8_t proof[PROOF_BYTES],
                    const struct partition_report *report, const struct flight_course *course)
{
    const struct test_document doc = {.partitions = partitions, .seed = w->job};
    uint8_t want[PROOF_BYTES];

    (void)ctx;
    for (int i = 0; i < FLIGHT_STAGES; i++)
        ck_assert_int_le(course->us[i], course->us[i + 1]);
    ck_assert_int_gt(course->us[0], 0);
    ck_assert_uint_lt((unsigned)course->prover, backends_len);
    test_work_proof(&doc, w->partition, want);
    pthread_mutex_lock(&lock);
    struct answer *a = &answers[w->job][w->partition];
    a->done++;
    a->report = *report;
    a->wrong = memcmp(proof, want, PROOF_BYTES) != 0;
    answered++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_failed(void *ctx, const struct link_work *w, int code, const char *text)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    struct answer *a = &answers[w->job][w->partition];
    a->failed++;
    a->code = code;
    snprintf(a->text, sizeof(a->text), "%s", text);
    answered++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* As a failure; the code says who made it. */
static void on_wrong(void *ctx, const struct link_work *w, size_t backend, const char *text)
{
    on_failed(ctx, w, (int)backend, text);
}

static unsigned broken_calls;

/* An engine would end here. */
static void on_broken(void *ctx, const struct backend *be, const char *text)
{
    (void)ctx;
    ck_assert_ptr_eq(be, backends[0]);
    ck_assert_int_gt(strlen(text), 0);
    broken_calls++;
}

static void wait_answers(unsigned count)
{
    pthread_mutex_lock(&lock);
    while (answered < count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void wait_stages(size_t count)
{
    pthread_mutex_lock(&lock);
    while (stages_len < count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- making one ---- */

static void make_devices(const char *config, size_t len)
{
    char path[] = "/tmp/proofd-sim-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    dprintf(fd, "%s", config);
    close(fd);
    ck_assert_msg(sim_create(path, &sim, &err) == 0, "%s", err.text);
    unlink(path);
    for (backends_len = 0; backends_len < len; backends_len++)
        ck_assert_int_eq(backend_sim_create(sim, &backends[backends_len], &err), 0);
}

static void make(const char *config, size_t devices, uint32_t witnesses, uint32_t evaluations,
                 uint32_t capacity)
{
    make_devices(config, devices);
    shape = (struct slots_shape){.witnesses = witnesses, .evaluations = evaluations};
    document_slot_bytes(NULL, sim, &shape);
    const struct arena_options opt = {
        .bytes = slots_bytes(&shape), .node = ARENA_ANY_NODE, .largest = ARENA_THP};
    ck_assert_int_eq(arena_create(&opt, &arena, &err), 0);
    ck_assert_int_eq(slots_create(arena, &shape, &slots, &err), 0);
    const struct pipeline_options p = {.node = 3,
                                       .capacity = capacity,
                                       .backends = backends,
                                       .backends_len = backends_len,
                                       .sim = sim,
                                       .flight = &flight,
                                       .ground = get_ground,
                                       .prepare = prepare,
                                       .chore = on_chore,
                                       .stage = on_stage,
                                       .done = on_done,
                                       .failed = on_failed,
                                       .wrong = on_wrong,
                                       .broken = on_broken};
    ck_assert_int_eq(pipeline_create(&p, &pipeline, &err), 0);
}

static int document(uint64_t job)
{
    const struct test_document doc = {.partitions = partitions, .seed = job};
    char text[TEST_DOCUMENT_BYTES_MAX];
    size_t len = test_document_format(&doc, text);
    int fd = memfd_create("document", MFD_CLOEXEC);

    ck_assert_int_eq(pwrite_full(fd, text, len, 0), 0);
    return fd;
}

static size_t avoid = SIZE_MAX; /* backend of what is given next */

static int give_only(uint64_t job, uint32_t partition, uint32_t priority, int fd)
{
    const struct link_work w = {.job = job, .partition = partition, .priority = priority};
    int ret = pipeline_give(pipeline, &w, avoid, fd);

    if (ret == 0) {
        given++;
        answers[job][partition].given++;
    }
    return ret;
}

static void give(uint64_t job, uint32_t partition, uint32_t priority)
{
    ck_assert_int_eq(give_only(job, partition, priority, document(job)), 0);
}

/* Every answer that is due, then the idle state. */
static void finish(void)
{
    struct flight_counts c;
    struct slots_counts s;

    wait_answers(given);
    pipeline_destroy(pipeline);
    for (size_t j = 0; j < JOBS_MAX; j++)
        for (size_t i = 0; i < PARTITIONS_MAX; i++) {
            const struct answer *a = &answers[j][i];
            ck_assert_uint_eq(a->done + a->failed, a->given);
            ck_assert(!a->wrong);
        }
    flight_read(&flight, &c);
    ck_assert(flight_is_idle(&c));
    slots_counts(slots, &s);
    ck_assert_uint_eq(s.bytes, 0);
    ck_assert_uint_eq(s.witnesses + s.evaluations, 0);
    slots_destroy(slots);
    arena_destroy(arena);
    while (backends_len > 0)
        backend_destroy(backends[--backends_len]);
    sim_destroy(sim);
}

/* ---- watching ---- */

struct watch {
    pthread_t thread;
    atomic_bool stop;
    uint64_t seen; /* largest number of partitions with a slot */
    bool broken;
};

static void *watch_main(void *arg)
{
    struct watch *w = arg;
    struct slots_counts s;

    while (!atomic_load(&w->stop)) {
        slots_counts(slots, &s);
        uint64_t bytes = (uint64_t)s.witnesses * shape.witness_bytes +
                         (uint64_t)s.evaluations * shape.evaluation_bytes;
        if (s.witnesses > shape.witnesses || s.evaluations > shape.evaluations || s.bytes != bytes)
            w->broken = true;
        struct node_prover provers[NODE_PROVERS_MAX];
        for (size_t i = pipeline_provers(pipeline, provers); i-- > 0;)
            if (provers[i].proving > 1 || provers[i].proving + provers[i].finishing > 2)
                w->broken = true; /* one start at a time, two tickets */
        w->seen = s.witnesses > w->seen ? s.witnesses : w->seen;
        sched_yield();
    }
    return NULL;
}

static void watch_start(struct watch *w)
{
    *w = (struct watch){.seen = 0};
    ck_assert_int_eq(pthread_create(&w->thread, NULL, watch_main, w), 0);
}

static void watch_stop(struct watch *w)
{
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    ck_assert(!w->broken);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static struct node_prover prover(size_t i)
{
    struct node_prover out[NODE_PROVERS_MAX];

    ck_assert_uint_eq(pipeline_provers(pipeline, out), backends_len);
    return out[i];
}

/* ---- tests ---- */

START_TEST(pipeline__every_partition_once)
{
    struct watch watch;

    make("synthesis_jitter_ms = 2\nstart_jitter_ms = 3\nfinish_jitter_ms = 3\ndevice = 1M\n", 2, 4,
         3, 64);
    watch_start(&watch);
    for (uint32_t job = 1; job <= 6; job++)
        for (uint32_t i = 0; i < partitions; i++)
            give(job, i, 1);
    wait_answers(given);
    watch_stop(&watch);
    ck_assert_uint_ge(watch.seen, 2); /* it has seen something */
    struct flight_counts c;
    flight_read(&flight, &c);
    ck_assert_uint_eq(c.events[FLIGHT_VERIFIED], 60);
    ck_assert_uint_eq(c.entered[FLIGHT_FINISHING], 60);
    ck_assert_uint_eq(prover(0).proofs + prover(1).proofs, 60);
    ck_assert_uint_eq(prover(0).proving + prover(0).finishing, 0);
    struct slots_counts s;
    slots_counts(slots, &s);
    ck_assert_uint_eq(s.returned_bytes, 60 * (shape.witness_bytes + shape.evaluation_bytes));
    ck_assert_uint_le(s.witnesses_peak, 4);
    const struct partition_report *r = &answers[1][0].report;
    ck_assert_int_eq(r->node, 3);
    ck_assert_str_eq(r->device, "simulated");
    ck_assert(r->total_ms > 0 && r->synthesis_ms >= 0 && r->verify_ms >= 0);
    ck_assert_uint_eq(r->peak_bytes, shape.witness_bytes + shape.evaluation_bytes);
    finish();
}
END_TEST

/* Where the device evaluates, a slot has no second part. */
START_TEST(pipeline__without_evaluation_parts)
{
    make("evaluation = 0\nstart_ms = 1\n", 1, 2, 0, 16);
    for (uint32_t i = 0; i < partitions; i++)
        give(1, i, 1);
    finish();
}
END_TEST

/* Memory in flight is the slots', whatever waits. */
START_TEST(pipeline__memory_does_not_depend_on_the_queue)
{
    struct slots_counts s;

    partitions = 40;
    make("start_ms = 1\n", 1, 3, 2, 256);
    for (uint32_t job = 1; job <= 5; job++)
        for (uint32_t i = 0; i < partitions; i++)
            give(job, i, 1);
    wait_answers(given);
    slots_counts(slots, &s);
    ck_assert_uint_eq(s.bytes_peak, 3 * shape.witness_bytes + 2 * shape.evaluation_bytes);
    finish();
}
END_TEST

/* One slot, all given at once: the order of synthesis is that of priority, age, partition, but for the first, which found an idle
 * pipeline. */
START_TEST(pipeline__order_at_synthesis)
{
    static const struct {
        uint64_t job;
        uint32_t partition, priority;
    } work[] = {{9, 0, 0}, {5, 1, 1}, {5, 0, 1}, {7, 0, 3}, {4, 2, 1}, {8, 0, 2}, {3, 0, 0}},
      order[] = {{9, 0, 0}, {7, 0, 3}, {8, 0, 2}, {4, 2, 1}, {5, 0, 1}, {5, 1, 1}, {3, 0, 0}};
    size_t n = 0;

    make("start_ms = 30\n", 1, 1, 1, 16);
    give(work[0].job, work[0].partition, work[0].priority);
    wait_stages(1);
    for (size_t i = 1; i < ARRAY_LEN(work); i++)
        give(work[i].job, work[i].partition, work[i].priority);
    wait_answers(given);
    for (size_t i = 0; i < stages_len; i++) {
        if (stages[i].stage != PARTITION_SYNTHESIZING)
            continue;
        ck_assert_uint_eq(stages[i].job, order[n].job);
        ck_assert_uint_eq(stages[i].partition, order[n++].partition);
    }
    ck_assert_uint_eq(n, ARRAY_LEN(order));
    finish();
}
END_TEST

/* An urgent partition that was synthesized last is proved next: it waits for one partition, not for the queue. */
START_TEST(pipeline__order_again_at_the_prover)
{
    make("start_ms = 600\ntickets = 1\n", 1, 5, 5, 16);
    for (uint32_t i = 0; i < 4; i++)
        give(1, i, 1);
    wait_stages(5); /* four synthesized, one at the prover */
    give(2, 0, 3);
    wait_answers(given);
    size_t n = 0;
    for (size_t i = 0; i < stages_len; i++)
        if (stages[i].stage == PARTITION_PROVING && n++ == 1)
            ck_assert_uint_eq(stages[i].job, 2);
    ck_assert_uint_eq(n, 5);
    finish();
}
END_TEST

START_TEST(pipeline_set_priority__counts_from_then_on)
{
    make("start_ms = 600\ntickets = 1\n", 1, 4, 4, 16);
    for (uint32_t job = 1; job <= 4; job++)
        give(job, 0, 1);
    wait_stages(5);
    pipeline_set_priority(pipeline, 4, 2);
    wait_answers(given);
    size_t n = 0;
    for (size_t i = 0; i < stages_len; i++)
        if (stages[i].stage == PARTITION_PROVING && n++ == 1)
            ck_assert_uint_eq(stages[i].job, 4);
    finish();
}
END_TEST

/* How long ten proofs take, of 40 ms to start and 40 ms to finish; with one evaluation part: more could not be begun if it stayed. */
static double ten_proofs_ms(uint32_t tickets, double *alone)
{
    char config[64];
    double start = now_ms();

    snprintf(config, sizeof(config), "start_ms = 40\nfinish_ms = 40\ntickets = %u\n", tickets);
    make(config, 1, 3, 1, 16);
    for (uint32_t i = 0; i < 10; i++)
        give(1, i, 1);
    wait_answers(given);
    double ms = now_ms() - start;
    *alone = (double)(prover(0).start_us + prover(0).finish_us) * 1e-3;
    finish();
    return ms;
}

/* While one proof is finished the next is started; evaluation parts go back in between. The best of a few runs, as below. */
START_TEST(pipeline__finish_beside_the_next_start)
{
    double best = 1, alone;

    for (int tries = 0; tries < 10 && best >= 0.9; tries++) {
        double share = ten_proofs_ms(2, &alone) / alone;
        if (share < best)
            best = share;
    }
    ck_assert_msg(best < 0.9, "%.2f of one after the other at best", best);
}
END_TEST

START_TEST(pipeline__with_one_ticket_nothing_overlaps)
{
    double alone;

    ck_assert(ten_proofs_ms(1, &alone) >= 800);
}
END_TEST

/* With enough slots the device never waits. The best of a few runs: on a busy machine every hand-over may wait for a CPU. */
START_TEST(pipeline__keeps_a_device_busy)
{
    double best = 0;

    for (int tries = 0; tries < 10 && best <= 0.9; tries++) {
        double start = now_ms();
        partitions = 40;
        make("synthesis_ms = 2\nstart_ms = 20\nfinish_ms = 10\n", 1, 4, 3, 64);
        for (uint32_t i = 0; i < 40; i++)
            give(1, i, 1);
        wait_answers(given);
        double busy = (double)prover(0).start_us * 1e-3 / (now_ms() - start);
        if (busy > best)
            best = busy;
        finish();
    }
    ck_assert_msg(best > 0.9, "busy %.2f at best", best);
}
END_TEST

/* Faults at random places: every partition comes to one end, right proofs alone come out, and nothing is left. */
START_TEST(pipeline__random_faults)
{
    char config[512];
    unsigned done = 0, failed = 0;

    partitions = 20;
    snprintf(config, sizeof(config),
             "seed = %d\nsynthesis_jitter_ms = 1\nstart_jitter_ms = 2\nfinish_jitter_ms = 2\n"
             "synthesis_error = 0.1\nstart_error = 0.1\nfinish_error = 0.1\nfinish_wrong = 0.3\n",
             _i + 1);
    make(config, 1 + (size_t)_i % 3, 4, 2, 128);
    for (uint32_t job = 1; job <= 5; job++)
        for (uint32_t i = 0; i < partitions; i++)
            give(job, i, job % 3);
    wait_answers(given);
    for (uint32_t job = 1; job <= 5; job++)
        for (uint32_t i = 0; i < partitions; i++) {
            const struct answer *a = &answers[job][i];
            done += a->done;
            failed += a->failed;
            ck_assert(a->done || a->code == -EIO || a->code >= 0);
        }
    ck_assert_uint_eq(done + failed, 100);
    ck_assert(done > 20 && failed > 10); /* half of them, give or take: draws depend on the order of calls */
    struct flight_counts c;
    flight_read(&flight, &c);
    ck_assert_uint_eq(c.events[FLIGHT_VERIFIED], done);
    ck_assert_uint_eq(c.events[FLIGHT_FAILED] + c.events[FLIGHT_INVALID], failed);
    ck_assert_uint_gt(c.events[FLIGHT_INVALID], 0);
    finish();
}
END_TEST

START_TEST(pipeline__tells_who_made_a_wrong_proof)
{
    make("finish_wrong = 1\n", 1, 2, 1, 8);
    give(1, 0, 1);
    wait_answers(given);
    ck_assert_int_eq(answers[1][0].code, 0);
    ck_assert_str_eq(answers[1][0].text, "it does not verify");
    ck_assert_uint_eq(prover(0).invalid, 1);
    ck_assert_uint_eq(prover(0).proofs, 0);
    finish();
}
END_TEST

/* The engine ends, so nobody is told that the partition failed: here, where it does not, it goes back. */
START_TEST(pipeline__tells_of_a_broken_device)
{
    make("finish_error = 1\n", 1, 2, 1, 8);
    broken_calls = 0;
    give(1, 0, 1);
    wait_answers(given);
    ck_assert_uint_eq(broken_calls, 0); /* an error alone is the partition's */
    ck_assert_int_ne(answers[1][0].code, -EAGAIN);
    backends[0]->broken = true;
    give(2, 0, 1);
    wait_answers(given);
    ck_assert_uint_eq(broken_calls, 1);
    ck_assert_int_eq(answers[2][0].code, -EAGAIN);
    finish();
}
END_TEST

/* What one device got wrong another one gets, as long as there is one. */
START_TEST(pipeline_give__avoids_a_device)
{
    make("finish_wrong = 1\n", 2, 2, 1, 8);
    for (avoid = 0; avoid < 2; avoid++)
        for (uint32_t i = 0; i < 3; i++)
            give(1 + avoid, i, 1);
    wait_answers(given);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(answers[1][i].code, 1);
        ck_assert_int_eq(answers[2][i].code, 0);
    }
    ck_assert(pipeline_set_aside(pipeline, 1));
    avoid = 0;
    give(3, 0, 1);
    wait_answers(given);
    ck_assert_int_eq(answers[3][0].code, 0);
    finish();
}
END_TEST

START_TEST(pipeline_set_aside__gives_it_nothing_more)
{
    make("start_ms = 1\n", 2, 2, 2, 16);
    ck_assert(pipeline_set_aside(pipeline, 0));
    for (uint32_t i = 0; i < 6; i++)
        give(1, i, 1);
    wait_answers(given);
    ck_assert_uint_eq(prover(0).proofs, 0);
    ck_assert_uint_eq(prover(1).proofs, 6);
    ck_assert(prover(0).set_aside && !prover(1).set_aside);
    ck_assert(!pipeline_set_aside(pipeline, 1));
    ck_assert_int_eq(give_only(2, 0, 1, document(2)), -EAGAIN);
    finish();
}
END_TEST

/* What has not been begun goes back, all else stays. */
START_TEST(pipeline_recall__gives_back_what_has_not_been_begun)
{
    make("synthesis_ms = 30\n", 1, 1, 1, 8);
    for (uint32_t i = 0; i < 3; i++)
        give(1, i, 1);
    wait_stages(1);
    pipeline_recall(pipeline, 1, 0);
    pipeline_recall(pipeline, 1, 2);
    pipeline_recall(pipeline, 9, 2);
    wait_answers(1);
    ck_assert_uint_eq(answers[1][2].failed, 1);
    ck_assert_int_eq(answers[1][2].code, -EAGAIN);
    wait_answers(given);
    ck_assert_uint_eq(answers[1][0].done + answers[1][1].done, 2);
    finish();
}
END_TEST

/* What is in a step before its synthesis, of reading or of waiting for its ground, has not been begun either. */
START_TEST(pipeline_recall__reaches_what_waits_for_its_ground)
{
    ground_missing = true;
    hold_prepare = true;
    make("", 1, 1, 1, 8);
    give(1, 0, 1);
    pthread_mutex_lock(&lock);
    while (!at_prepare)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    pipeline_recall(pipeline, 1, 0);
    pipeline_recall(pipeline, 1, 0); /* it has had its answer */
    ck_assert_uint_eq(answered, 1);
    ck_assert_int_eq(answers[1][0].code, -EAGAIN);
    pthread_mutex_lock(&lock);
    hold_prepare = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    finish();
}
END_TEST

/* Cancelled in every stage: answered at once, gone when its step ends. */
START_TEST(pipeline_cancel__in_every_stage)
{
    struct flight_counts c;

    make("synthesis_ms = 20\nstart_ms = 60\nfinish_ms = 40\n", 1, 4, 4, 16);
    for (uint32_t i = 0; i < 10; i++)
        give(1, i, 1);
    give(2, 0, 0);
    const struct timespec pause = {.tv_nsec = (long)_i * 30 * 1000000};
    nanosleep(&pause, NULL);
    pipeline_cancel(pipeline, 1, -ECANCELED, "cancelled");
    uint32_t failed = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < 10; i++) {
        /* Now, unless its answer was on its way already. */
        while (answers[1][i].failed + answers[1][i].done == 0)
            pthread_cond_wait(&changed, &lock);
        ck_assert_uint_eq(answers[1][i].failed + answers[1][i].done, 1);
        failed += answers[1][i].failed;
        if (answers[1][i].failed)
            ck_assert_str_eq(answers[1][i].text, "cancelled");
    }
    pthread_mutex_unlock(&lock);
    wait_answers(given);
    ck_assert_uint_eq(answers[2][0].done, 1);
    flight_read(&flight, &c);
    ck_assert_uint_eq(c.events[FLIGHT_CANCELLED], failed);
    finish();
}
END_TEST

/* What was cancelled while it was started is not finished. */
START_TEST(pipeline_cancel__aborts)
{
    make("start_ms = 50\nfinish_ms = 20000\n", 1, 1, 1, 4);
    give(1, 0, 1);
    wait_stages(2);
    double begin = now_ms();
    pipeline_cancel(pipeline, 1, -ECANCELED, "cancelled");
    finish();
    ck_assert(now_ms() - begin < 10000);
}
END_TEST

/* There is room for `capacity` partitions again although cancelled ones are still in their steps. */
START_TEST(pipeline_cancel__makes_room_at_once)
{
    make("start_ms = 200\n", 1, 2, 2, 2);
    give(1, 0, 1);
    give(1, 1, 1);
    wait_stages(3);
    pipeline_cancel_all(pipeline, -EAGAIN, "stopping");
    give(2, 0, 1);
    give(2, 1, 1);
    finish();
    ck_assert_int_eq(answers[1][0].code, -EAGAIN);
}
END_TEST

START_TEST(pipeline_give__refuses_more_than_its_capacity)
{
    unsigned taken = 0;

    partitions = 40;
    make("start_ms = 50\n", 1, 1, 1, 4);
    for (uint32_t i = 0; i < 40; i++) {
        int fd = document(1);
        if (give_only(1, i, 1, fd) < 0)
            ck_assert_int_eq(write(fd, "", 0), -1); /* closed */
        else
            taken++;
    }
    ck_assert(taken >= 4 && taken < 10);
    finish();
}
END_TEST

START_TEST(pipeline_destroy__in_the_midst_of_it)
{
    make("synthesis_ms = 5\nstart_ms = 20\nfinish_ms = 20\n", 2, 4, 2, 64);
    for (uint32_t i = 0; i < partitions; i++)
        give(1, i, 1);
    const struct timespec pause = {.tv_nsec = (long)_i * 15 * 1000000};
    nanosleep(&pause, NULL);
    pipeline_destroy(pipeline); /* nothing is said any more; finish() would wait for it */
    struct flight_counts c;
    struct slots_counts s;
    flight_read(&flight, &c);
    ck_assert(flight_is_idle(&c));
    slots_counts(slots, &s);
    ck_assert_uint_eq(s.bytes, 0);
    slots_destroy(slots);
    arena_destroy(arena);
    while (backends_len > 0)
        backend_destroy(backends[--backends_len]);
    sim_destroy(sim);
}
END_TEST

START_TEST(pipeline__ground_is_brought_when_nothing_is_in_flight)
{
    make("start_ms = 10\n", 1, 2, 2, 16);
    ground_missing = true;
    give(1, 0, 1);
    give(1, 1, 1);
    wait_answers(2);
    ck_assert_uint_eq(prepared, 1);
    give(2, 0, 1);
    wait_stages(6);
    ground_missing = true; /* another circuit's turn while one is proved: prepare() looks */
    give(3, 0, 1);
    wait_answers(given);
    ck_assert_uint_eq(prepared, 2);
    prepared = 5;
    ground_missing = true;
    give(4, 0, 1);
    wait_answers(given);
    ck_assert_int_eq(answers[4][0].code, -ENOKEY);
    ck_assert_str_eq(answers[4][0].text, "no parameters");
    ck_assert(answers[1][0].report.params_ms + answers[1][1].report.params_ms >= 1);
    finish();
}
END_TEST

static void wait_chores(unsigned loads, unsigned evictions)
{
    pthread_mutex_lock(&lock);
    while (chores[0] < loads || chores[1] < evictions)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

START_TEST(pipeline_ask__is_done_when_nothing_is_in_flight)
{
    make("start_ms = 5\n", 1, 3, 2, 40);
    pipeline_ask(pipeline, &sector_sizes[8], false); /* nothing is here */
    wait_chores(1, 0);
    ck_assert_ptr_eq(chore_size, &sector_sizes[8]);
    for (uint32_t i = 0; i < 30; i++) {
        give(1 + i / 10, i % 10, 1);
        if (i == 10)
            pipeline_ask(pipeline, &sector_sizes[3], true);
    }
    wait_chores(1, 1);
    ck_assert_uint_lt(answered, 30); /* between partitions, not behind them */
    wait_answers(30);
    ck_assert_uint_eq(chores[0], 1);
    ck_assert_uint_eq(chores[1], 1);
    finish();
}
END_TEST

static bool no_memory; /* to read documents with (the Makefile wraps this) */
int __real_document_from_fd(int fd, struct sim *device, struct document **out, struct errmsg *why);
int __wrap_document_from_fd(int fd, struct sim *device, struct document **out, struct errmsg *why);

int __wrap_document_from_fd(int fd, struct sim *device, struct document **out, struct errmsg *why)
{
    return no_memory ? errmsg_set(why, -ENOMEM, "no memory for a document")
                     : __real_document_from_fd(fd, device, out, why);
}

/* Nor is it its fault. */
START_TEST(pipeline__a_document_that_finds_no_memory_may_come_again)
{
    make("", 1, 1, 1, 4);
    no_memory = true;
    ck_assert_int_eq(give_only(1, 0, 1, document(2)), 0);
    wait_answers(1);
    ck_assert_int_eq(answers[1][0].code, -EBUSY);
    no_memory = false;
    ck_assert_int_eq(give_only(2, 0, 1, document(2)), 0);
    wait_answers(2);
    finish();
}
END_TEST

START_TEST(pipeline__refuses_what_is_no_document)
{
    int fd = memfd_create("document", MFD_CLOEXEC);

    make("", 1, 1, 1, 4);
    ck_assert_int_eq(give_only(1, 0, 1, fd), 0);
    wait_answers(1);
    ck_assert_int_eq(answers[1][0].code, -EBADMSG);
    ck_assert_uint_eq(read_len, 1); /* told before it is known how it ends */
    ck_assert_int_eq(give_only(2, 10, 1, document(2)), 0);
    wait_answers(2);
    ck_assert_int_eq(answers[2][10].code, -EINVAL);
    ck_assert_ptr_nonnull(strstr(answers[2][10].text, "partition 10 of a document of 10"));
    finish();
}
END_TEST

START_TEST(pipeline_provers__tell_of_a_step_that_never_ends)
{
    make("start_ms = 3000\nstall_ms = 1500\n", 1, 1, 1, 4);
    give(1, 0, 1);
    wait_stages(2);
    ck_assert(!prover(0).stalled);
    ck_assert_uint_eq(prover(0).proving, 1);
    const struct timespec pause = {.tv_nsec = 20 * 1000000};
    while (!prover(0).stalled && !answered)
        nanosleep(&pause, NULL);
    ck_assert(!answered);
    wait_answers(1);
    ck_assert(!prover(0).stalled);
    finish();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pipeline");
    TCase *tc = tcase_create("pipeline");

    log_set_level(0);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, pipeline__every_partition_once);
    tcase_add_test(tc, pipeline__without_evaluation_parts);
    tcase_add_test(tc, pipeline__memory_does_not_depend_on_the_queue);
    tcase_add_test(tc, pipeline__order_at_synthesis);
    tcase_add_test(tc, pipeline__order_again_at_the_prover);
    tcase_add_test(tc, pipeline_set_priority__counts_from_then_on);
    tcase_add_test(tc, pipeline__finish_beside_the_next_start);
    tcase_add_test(tc, pipeline__with_one_ticket_nothing_overlaps);
    tcase_add_test(tc, pipeline__keeps_a_device_busy);
    tcase_add_loop_test(tc, pipeline__random_faults, 0, 12);
    tcase_add_test(tc, pipeline__tells_who_made_a_wrong_proof);
    tcase_add_test(tc, pipeline__tells_of_a_broken_device);
    tcase_add_test(tc, pipeline_give__avoids_a_device);
    tcase_add_test(tc, pipeline_set_aside__gives_it_nothing_more);
    tcase_add_test(tc, pipeline_recall__gives_back_what_has_not_been_begun);
    tcase_add_test(tc, pipeline_recall__reaches_what_waits_for_its_ground);
    tcase_add_loop_test(tc, pipeline_cancel__in_every_stage, 0, 8);
    tcase_add_test(tc, pipeline_cancel__aborts);
    tcase_add_test(tc, pipeline_cancel__makes_room_at_once);
    tcase_add_test(tc, pipeline_give__refuses_more_than_its_capacity);
    tcase_add_loop_test(tc, pipeline_destroy__in_the_midst_of_it, 0, 8);
    tcase_add_test(tc, pipeline__ground_is_brought_when_nothing_is_in_flight);
    tcase_add_test(tc, pipeline_ask__is_done_when_nothing_is_in_flight);
    tcase_add_test(tc, pipeline__a_document_that_finds_no_memory_may_come_again);
    tcase_add_test(tc, pipeline__refuses_what_is_no_document);
    tcase_add_test(tc, pipeline_provers__tell_of_a_step_that_never_ends);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
