/*
 * The scheduler over a job table of a few lines (below) and engines that are this very program,
 * started again as `test_sched --engine MODE`.
 */
#include "daemon/sched.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PARTITIONS 12
#define WAIT_MS 120000

/* ---- the job table: one job, number 1, of PARTITIONS partitions ---- */

enum fate { WAITING, TAKEN, DONE, FAILED };

static struct {
    pthread_mutex_t lock;
    enum fate fate[PARTITIONS];
    uint32_t takes[PARTITIONS], returned, stages, write_refusals;
    bool cancelled;
    /* Partitions of even numbers are of the first size, of odd ones of the second. */
    enum job_lack held[2];
    uint32_t holds;
    uint8_t keys[PARTITIONS]; /* that proofs were made with: their digests' first bytes */
    unsigned percent;         /* the last */
    enum job_priority priority;
    bool hurry; /* the job becomes urgent when a partition has just been taken */
    bool no_files; /* a partition waits, but there is no descriptor for it */
    uint32_t asked;
    size_t len;
    int code;
    char text[512];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .priority = JOB_NORMAL};

static struct sched *sched;

int jobs_take_partition_but(struct jobs *jobs, int node, uint32_t refused,
                            struct partition_work *out)
{
    int ret = -EAGAIN;

    (void)jobs, (void)node;
    pthread_mutex_lock(&table.lock);
    table.asked++;
    if (table.no_files) { /* to give one back wakes the scheduler */
        pthread_mutex_unlock(&table.lock);
        sched_wake(sched);
        return -EMFILE;
    }
    for (uint32_t k = 0; k < table.len && ret < 0 && !table.cancelled; k++)
        if (table.fate[k] == WAITING && !table.held[k % 2] && !(refused >> k % 2 & 1)) {
            table.fate[k] = TAKEN;
            table.takes[k]++;
            *out = (struct partition_work){.job = 1,
                                           .partition = k,
                                           .priority = JOB_NORMAL,
                                           .own = table.priority,
                                           .size = &sector_sizes[k % 2],
                                           .c1_fd = memfd_create("c1", MFD_CLOEXEC)};
            if (table.hurry)
                table.priority = JOB_HIGH;
            ret = 0;
        }
    pthread_mutex_unlock(&table.lock);
    return ret;
}

void jobs_partition_stage(struct jobs *jobs, uint64_t job, uint32_t partition,
                          enum partition_stage stage, unsigned percent)
{
    (void)jobs, (void)job, (void)partition;
    pthread_mutex_lock(&table.lock);
    if (stage == PARTITION_LOADING)
        table.percent = percent;
    else
        table.stages++;
    pthread_mutex_unlock(&table.lock);
}

void jobs_hold_size(struct jobs *jobs, const struct sector_size *size, enum job_lack lacks)
{
    (void)jobs;
    ck_assert_uint_lt((size_t)(size - sector_sizes), 2);
    pthread_mutex_lock(&table.lock);
    table.holds += lacks != JOB_LACKS_NOTHING;
    table.held[size - sector_sizes] = lacks;
    pthread_mutex_unlock(&table.lock);
}

static void settle(uint32_t partition, enum fate fate)
{
    ck_assert_uint_lt(partition, table.len);
    ck_assert_int_eq(table.fate[partition], TAKEN); /* one end for each take */
    table.fate[partition] = fate;
}

void jobs_partitions_done(struct jobs *jobs, struct proof_result *results, size_t len)
{
    (void)jobs;
    pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < len; i++) {
        struct proof_result *r = &results[i];
        ck_assert_uint_eq(r->proof[0], r->partition);
        table.keys[r->partition] = r->report.vk_digest[0];
        r->ret = table.write_refusals > 0 ? -ENOSPC : 0;
        if (r->ret < 0)
            table.write_refusals--;
        else
            settle(r->partition, DONE);
    }
    pthread_mutex_unlock(&table.lock);
}

void jobs_partition_returned(struct jobs *jobs, uint64_t job, uint32_t partition)
{
    (void)jobs, (void)job;
    pthread_mutex_lock(&table.lock);
    settle(partition, WAITING);
    table.returned++;
    pthread_mutex_unlock(&table.lock);
}

void jobs_partition_failed(struct jobs *jobs, uint64_t job, uint32_t partition, int code,
                           const char *text)
{
    (void)jobs, (void)job;
    pthread_mutex_lock(&table.lock);
    settle(partition, FAILED);
    table.code = code;
    snprintf(table.text, sizeof(table.text), "%s", text);
    pthread_mutex_unlock(&table.lock);
}

int jobs_partition_priority(struct jobs *jobs, uint64_t job, enum job_priority *out)
{
    (void)jobs, (void)job;
    pthread_mutex_lock(&table.lock);
    *out = table.priority;
    pthread_mutex_unlock(&table.lock);
    return 0;
}

bool jobs_cancelled(struct jobs *jobs, uint64_t job)
{
    (void)jobs, (void)job;
    pthread_mutex_lock(&table.lock);
    bool cancelled = table.cancelled;
    pthread_mutex_unlock(&table.lock);
    return cancelled;
}

static size_t count(enum fate fate)
{
    size_t n = 0;

    pthread_mutex_lock(&table.lock);
    for (size_t k = 0; k < table.len; k++)
        n += table.fate[k] == fate;
    pthread_mutex_unlock(&table.lock);
    return n;
}

static bool all_done(void)
{
    return count(DONE) == table.len;
}

static bool all_but_one_done(void)
{
    return count(DONE) >= table.len - 1;
}

static bool odd_ones_are_done(void)
{
    return count(DONE) == table.len / 2;
}

static bool most_are_done(void)
{
    return count(DONE) >= table.len - 2;
}

static bool one_failed(void)
{
    return count(FAILED) == 1;
}

static bool one_taken(void)
{
    return count(TAKEN) == 1;
}

/* It may be done by now. */
static bool one_was_taken(void)
{
    pthread_mutex_lock(&table.lock);
    bool yes = table.takes[0] > 0;
    pthread_mutex_unlock(&table.lock);
    return yes;
}

static bool one_returned(void)
{
    pthread_mutex_lock(&table.lock);
    bool yes = table.returned == 1;
    pthread_mutex_unlock(&table.lock);
    return yes;
}

static void wait_until(bool (*condition)(void))
{
    for (int ms = 0; !condition(); ms += 2) {
        ck_assert_msg(ms < WAIT_MS, "waited in vain");
        usleep(2000);
    }
}

/* ---- engines ---- */

static const char *marker_path;
static int engine_node;

/* A small one has not the memory for the first size. */
static void send_hello(bool small)
{
    struct link_message m = {.type = LINK_HELLO,
                             .hello = {.node = engine_node,
                                       .threads = 1,
                                       .capacity = 2,
                                       .device = "made up",
                                       .limit_bytes = (uint64_t)8 << 30,
                                       .limit_from = "node 0"}};
    if (small)
        m.hello.needed_bytes[0] = (uint64_t)10 << 30;
    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

/* One prover, which is no GPU. */
static void send_status(void)
{
    struct link_message m = {.type = LINK_STATUS};

    m.status.node.memory.node = m.status.node.memory.misplaced_node = -1;
    m.status.node.provers_len = 1;
    m.status.node.provers[0].gpu = -1;
    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

/* Works, but the proofs of node 0, or of all ("wrong"), do not verify. */
static bool is_wrong(const char *mode)
{
    return strcmp(mode, "wrong") == 0 || (strncmp(mode, "wrong-on-0", 10) == 0 && engine_node == 0);
}

static void send_wrong(const struct link_work *w)
{
    struct link_message m = {.type = LINK_WRONG,
                             .wrong = {w->job, w->partition, -1, "does not verify"}};
    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

/* It has begun nothing. */
static void on_recall(const struct link_recall *r)
{
    struct link_message m = {.type = LINK_FAILED,
                             .failed = {.job = r->job, .partition = r->partition, .code = -EAGAIN}};
    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

static void on_cancel(const struct link_cancel *c)
{
    struct link_message m = {.type = LINK_FAILED,
                             .failed = {.job = c->job, .partition = 0, .code = -ECANCELED}};
    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

/* Several at once, so that there is always something to hear. */
static void chatter(void)
{
    const struct link_message m = {.type = LINK_STAGE, .stage.job = 99};

    for (int i = 0; i < 3 && fork() != 0; i++)
        ;
    while (link_send(SUPERVISOR_ENGINE_FD, &m, -1) == 0)
        ;
    _exit(0);
}

/* Node 1 takes nothing once it has said that it is there, and lives on for a while. Node 0 comes later. */
static int be_deaf_on_1(void)
{
    if (engine_node == 0) {
        usleep(100000);
        return 0;
    }
    send_hello(false);
    send_status();
    shutdown(SUPERVISOR_ENGINE_FD, SHUT_RD);
    usleep(500000);
    return 3;
}

/* Says that it is alive, but takes nothing any more. */
static void talk_but_hear_nothing(void)
{
    shutdown(SUPERVISOR_ENGINE_FD, SHUT_RD);
    send_hello(false);
    for (;;) {
        send_status();
        usleep(20000);
    }
}

/* "talk": says that it is alive until there is something to hear. */
static int hear(const char *mode, struct link_message *m, int *fd)
{
    struct pollfd p = {SUPERVISOR_ENGINE_FD, POLLIN, 0};

    while (strcmp(mode, "talk") == 0 && poll(&p, 1, 20) == 0)
        send_status();
    return link_receive(SUPERVISOR_ENGINE_FD, m, fd);
}

/* Dies at its first partition, but for a file that remembers: then it works. */
static bool is_second_life(const char *marker)
{
    if (access(marker, F_OK) == 0)
        return true;
    FILE *f = fopen(marker, "w");
    if (f)
        fclose(f);
    return false;
}

/* Loads all but the second size, which kills it; has no wish to give anything up. */
static void on_params(const struct link_params *p)
{
    struct link_message m = {.type = LINK_PARAMS_DONE, .params_done.asked = *p};

    if (p->size == 1 && !p->evict)
        raise(SIGKILL);
    if (p->evict) {
        m.params_done.code = -EBUSY;
        strcpy(m.params_done.text, "in use");
    }
    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

#define OLD_LIVES 4 /* more than a partition may see die */

/* How many engines there have been with this one: it adds itself to a file. */
static long lives(const char *marker)
{
    static long n;
    FILE *f = n ? NULL : fopen(marker, "a");

    if (f) {
        fputc('x', f);
        n = ftell(f);
        fclose(f);
    }
    return n;
}

/* Others have its memory, until a file says otherwise; or node 0's, for ever. */
static bool is_busy(const char *mode)
{
    if (strcmp(mode, "busy-on-0") == 0)
        return engine_node == 0;
    return strcmp(mode, "busy") == 0 && access(marker_path, F_OK) != 0;
}

static void answer(const char *mode, const struct link_work *w)
{
    struct link_message m = {.type = LINK_STAGE,
                             .stage = {w->job, w->partition, PARTITION_LOADING, 34}};
    bool no_params = strncmp(mode, "no-params", 9) == 0 && w->partition % 2 == 0 &&
                     access(marker_path, F_OK) != 0;

    if (strncmp(mode, "no-params", 9) == 0)
        link_send(SUPERVISOR_ENGINE_FD, &m, -1);
    m.stage = (struct link_stage){w->job, w->partition, PARTITION_PROVING, 0};
    if (!no_params && !is_busy(mode))
        link_send(SUPERVISOR_ENGINE_FD, &m, -1);
    memset(&m, 0, sizeof(m));
    if (strcmp(mode, "fail") == 0 || strcmp(mode, "no-memory") == 0 || no_params || is_busy(mode)) {
        m.type = LINK_FAILED;
        m.failed = (struct link_failed){w->job, w->partition, -EILSEQ, "made to fail"};
        if (strcmp(mode, "no-memory") == 0)
            m.failed.code = -ENOMEM;
        if (no_params)
            m.failed.code = -ENOKEY;
        if (is_busy(mode))
            m.failed.code = -EBUSY;
    } else {
        m.type = LINK_DONE;
        m.done = (struct link_done){
            .job = w->job, .partition = w->partition, .report.params = SRS_CHECKED};
        m.done.report.node = engine_node;
        if (strcmp(mode, "old-params") == 0)
            m.done.report.vk_digest[0] = lives(marker_path) > OLD_LIVES ? 2 : 1;
        m.done.proof[0] = (uint8_t)w->partition;
        if (strcmp(mode, "nan") == 0 && !is_second_life(marker_path))
            m.done.report.msm_ms = nan("");
        if (strcmp(mode, "other-node") == 0 && !is_second_life(marker_path))
            m.done.report.node = 1;
    }
    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
    if (strcmp(mode, "twice") == 0)
        link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

static void say_stage(uint32_t partition, enum partition_stage stage)
{
    struct link_message m = {.type = LINK_STAGE, .stage = {1, partition, stage, 0}};

    link_send(SUPERVISOR_ENGINE_FD, &m, -1);
}

/* Partition 0 kills engines, but not before another one is there too: while it is proved, or while its document is read. */
static void die_of_0(enum partition_stage stage, const struct link_work *w)
{
    static bool there;

    if (there) { /* and another's document has been read, which waits */
        say_stage(w->partition, PARTITION_READING);
        say_stage(w->partition, PARTITION_READ);
        raise(SIGKILL);
    }
    there = w->partition == 0;
    if (there)
        say_stage(0, stage);
    else
        answer("work", w);
}

/* The first lives end while they bring parameters. */
static void die_loading(const struct link_work *w)
{
    if (lives(marker_path) > OLD_LIVES) {
        answer("work", w);
        return;
    }
    say_stage(w->partition, PARTITION_READING);
    say_stage(w->partition, PARTITION_READ);
    say_stage(w->partition, PARTITION_LOADING);
    raise(SIGKILL);
}

static bool without_gpu_5;

static int engine_main(const char *mode, const char *marker)
{
    struct link_message m;
    int fd;

    if (strcmp(mode, "die-at-start") == 0 && !is_second_life(marker))
        return 3;
    marker_path = marker;
    if (strcmp(mode, "wrong-on-0-deaf-on-1") == 0 &&
        (engine_node == 0 || !is_second_life(marker)) && be_deaf_on_1() != 0)
        return 3;
    if (strcmp(mode, "hears-nothing") == 0 && !is_second_life(marker))
        talk_but_hear_nothing();
    if (strcmp(mode, "mute") != 0)
        send_hello(strcmp(mode, "small") == 0);
    send_status();
    if (strcmp(mode, "hello-twice") == 0 && !is_second_life(marker))
        send_hello(false);
    if (strcmp(mode, "rubbish") == 0 && !is_second_life(marker))
        return write(SUPERVISOR_ENGINE_FD, "rubbish", 7) == 7 ? (pause(), 1) : 1;
    if (strcmp(mode, "chatter-on-0") == 0 && engine_node == 0)
        chatter();
    while (hear(mode, &m, &fd) == 0) {
        if (fd >= 0)
            close(fd);
        if (m.type == LINK_STOP)
            return 0;
        if (m.type == LINK_CANCEL)
            on_cancel(&m.cancel);
        if (m.type == LINK_RECALL)
            on_recall(&m.recall);
        if (m.type == LINK_PARAMS)
            on_params(&m.params);
        if (m.type == LINK_PRIORITY && m.priority.job == 1 && m.priority.priority == JOB_HIGH)
            answer("work", &(struct link_work){.job = 1}); /* partition 0 was held until now */
        if (m.type != LINK_WORK)
            continue;
        if (strcmp(mode, "die") == 0)
            raise(SIGKILL);
        if (strcmp(mode, "gpu-5-breaks") == 0 && !without_gpu_5)
            return ENGINE_EXIT_GPU + 5;
        if (strcmp(mode, "die-once") == 0 && !is_second_life(marker))
            raise(SIGKILL);
        if (is_wrong(mode))
            send_wrong(&m.work);
        else if (strcmp(mode, "die-proving-0") == 0)
            die_of_0(PARTITION_PROVING, &m.work);
        else if (strcmp(mode, "die-loading") == 0)
            die_loading(&m.work);
        else if (strcmp(mode, "die-reading-0") == 0)
            die_of_0(PARTITION_READING, &m.work);
        else if (strcmp(mode, "hold") != 0 && (strcmp(mode, "hold-on-0") != 0 || engine_node != 0))
            answer(mode, &m.work);
    }
    return 0;
}

/* ---- tests ---- */

static struct supervisor *sup;
static char marker[64];
static char self[1024];
static const char *argv[5];
static char events[4096];
static useconds_t start_of_1_takes_us; /* to be told of */

static void note_event(void *ctx, const char *text)
{
    (void)ctx;
    if (strcmp(text, "engine node=1 started") == 0)
        usleep(start_of_1_takes_us);
    strncat(events, text, sizeof(events) - strlen(events) - 2);
    strcat(events, "\n");
}

static void setup(void)
{
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    ck_assert_int_gt(n, 0);
    snprintf(marker, sizeof(marker), "/tmp/proofd-sched-%d", (int)getpid());
    unlink(marker);
    log_set_level(0); /* the scheduler says much when engines die */
    ck_assert_int_eq(supervisor_create(&sup, NULL), 0);
}

static uint32_t params_retry_ms = 20;
static uint64_t say_stamp(void *ctx, const struct sector_size *size);

static uint8_t key_of_files; /* 0: nobody knows */
static int say_key(void *ctx, const struct sector_size *size, int64_t since_ms,
                   uint8_t vk_digest[SRS_VK_DIGEST_BYTES])
{
    (void)ctx, (void)size;
    ck_assert_int_gt(since_ms, 0);
    memset(vk_digest, 0, SRS_VK_DIGEST_BYTES);
    vk_digest[0] = key_of_files;
    return key_of_files ? 0 : -EAGAIN;
}

static size_t nodes_len = 1;

static void begin(const char *mode, size_t partitions, uint32_t silence_ms)
{
    static const int nodes[] = {0, 1};
    struct sched_options opt = {.supervisor = sup,
                                .engine_argv = argv,
                                .nodes = nodes,
                                .nodes_len = nodes_len,
                                .silence_ms = silence_ms,
                                .journal_retry_ms = 20,
                                .params_retry_ms = params_retry_ms,
                                .params_stamp = say_stamp,
                                .params_key = say_key,
                                .event = note_event};

    argv[0] = self;
    argv[1] = "--engine";
    argv[2] = mode;
    argv[3] = marker;
    table.len = partitions;
    ck_assert_int_eq(sched_create(&opt, &sched, NULL), 0);
    ck_assert_int_eq(sched_start(sched, NULL), 0);
}

static void end(void)
{
    sched_stop(sched);
    ck_assert_uint_eq(count(TAKEN), 0); /* nothing is left in an engine */
}

static void teardown(void)
{
    sched_destroy(sched);
    supervisor_destroy(sup);
    unlink(marker);
}

START_TEST(sched__all_partitions_come_back_done)
{
    static struct sched_status st;

    begin("work", PARTITIONS, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.partitions_done, PARTITIONS);
    ck_assert_uint_eq(st.partitions_returned, 0);
    ck_assert_uint_eq(st.engines[0].starts, 1);
    ck_assert_uint_eq(st.engines[0].in_flight_len, 0);
    ck_assert_uint_eq(table.stages, PARTITIONS);
    ck_assert_str_eq(events, "engine node=0 started\n");
}
END_TEST

START_TEST(sched__work_that_comes_later_is_found_after_a_wake)
{
    begin("work", 0, 0);
    usleep(100000);
    pthread_mutex_lock(&table.lock);
    table.len = 3;
    pthread_mutex_unlock(&table.lock);
    sched_wake(sched);
    wait_until(all_done);
    end();
}
END_TEST

START_TEST(sched__a_dead_engine_is_replaced_and_its_work_redone)
{
    static struct sched_status st;

    begin("die-once", PARTITIONS, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_ge(st.partitions_returned, 1);
    ck_assert_uint_eq(st.engines[0].starts, 2);
    ck_assert_uint_eq(st.engines[0].deaths, 1);
    ck_assert_str_eq(st.engines[0].last_end, "exit status 0"); /* of the second, at the stop */
    ck_assert_ptr_nonnull(strstr(events, "engine node=0 ended: killed by signal 9 (Killed)\n"));
}
END_TEST

START_TEST(sched__an_engine_that_dies_at_start_is_started_again)
{
    begin("die-at-start", 2, 0);
    wait_until(all_done);
    end();
}
END_TEST

/* Nor is it the partition's fault, however often. */
START_TEST(sched__a_gpu_that_breaks_three_times_is_done_without)
{
    static struct sched_status st;

    begin("gpu-5-breaks", 2, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.engines[0].deaths, 3);
    ck_assert_uint_ge(st.partitions_returned, 3);
}
END_TEST

/* Three tries, then its job fails; three wrong proofs, then the prover is set aside, and the rest waits for somebody. */
START_TEST(sched__wrong_proofs_fail_the_job_and_set_the_prover_aside)
{
    static struct sched_status st;

    begin("wrong", 1, 0);
    wait_until(one_failed);
    ck_assert_int_eq(table.code, -EILSEQ);
    ck_assert_ptr_nonnull(strstr(table.text, "partition 0: 3 proofs in a row do not verify"));
    ck_assert_uint_eq(table.takes[0], 3);
    pthread_mutex_lock(&table.lock);
    table.len = 3;
    pthread_mutex_unlock(&table.lock);
    sched_wake(sched);
    usleep(30000);
    ck_assert_uint_eq(count(WAITING), 2);
    ck_assert_uint_eq(table.takes[1] + table.takes[2], 0);
    sched_status(sched, &st);
    ck_assert(st.no_prover && st.engines[0].set_aside);
    ck_assert_uint_eq(st.engines[0].wrong, 3);
    ck_assert_uint_eq(st.engines[0].starts, 1);
    ck_assert_ptr_nonnull(
        strstr(events, "engine node=0 its prover is set aside after 3 wrong proofs\n"));
    ck_assert_ptr_nonnull(strstr(events, "no prover is left"));
    end();
}
END_TEST

/* Whatever node 0 gets wrong node 1 gets right: no partition is tried twice by the one that lies. */
START_TEST(sched__what_one_node_got_wrong_another_proves)
{
    static struct sched_status st;

    nodes_len = 2;
    begin("wrong-on-0", PARTITIONS, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_le(st.engines[0].wrong, 2 + SCHED_WRONG_MAX); /* it had room for two */
    ck_assert_uint_eq(st.engines[1].wrong, 0);
    ck_assert(!st.no_prover);
    for (size_t k = 0; k < PARTITIONS; k++)
        ck_assert_uint_le(table.takes[k], 2);
}
END_TEST

/* The one that it should go to instead takes nothing, and has not been heard to end. */
START_TEST(sched__what_one_node_got_wrong_waits_for_a_deaf_one)
{
    static struct sched_status st;

    nodes_len = 2;
    begin("wrong-on-0-deaf-on-1", PARTITIONS, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.engines[1].starts, 2);
}
END_TEST

START_TEST(sched__is_silent_itself_and_kills_nobody_for_that)
{
    static struct sched_status st;

    nodes_len = 2;
    start_of_1_takes_us = 900000;
    begin("talk", 0, 300);
    usleep(1300000);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.engines[0].starts, 1);
    ck_assert_uint_eq(st.engines[1].starts, 1);
}
END_TEST

START_TEST(sched__an_engine_that_hears_nothing_is_replaced)
{
    begin("hears-nothing", PARTITIONS, 300);
    wait_until(all_done);
    end();
}
END_TEST

START_TEST(sched__without_descriptors_nothing_is_taken_for_a_while)
{
    table.no_files = true;
    begin("work", PARTITIONS, 0);
    usleep(700000);
    pthread_mutex_lock(&table.lock);
    ck_assert_uint_ge(table.asked, 1);
    ck_assert_uint_le(table.asked, 2);
    table.no_files = false;
    pthread_mutex_unlock(&table.lock);
    wait_until(all_done);
    end();
}
END_TEST

static struct sched_wish_status wish_of(size_t engine, size_t size)
{
    struct sched_wish_status w;

    sched_wish_status(sched, engine, &sector_sizes[size], &w);
    return w;
}

static bool wishes_settled(void)
{
    for (size_t e = 0; e < nodes_len; e++)
        for (size_t i = 0; i < SCHED_SIZES; i++)
            if (wish_of(e, i).state != WISH_NONE && wish_of(e, i).state != WISH_FAILED)
                return false;
    return true;
}

START_TEST(sched_wish__is_told_to_engines_and_its_end_is_known)
{
    struct errmsg err = {""};

    nodes_len = 2;
    begin("work", 0, 0);
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[0], 7, false, &err), -EINVAL);
    ck_assert_str_eq(err.text, "there is no node 7");
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[0], SCHED_ALL_NODES, false, &err), 0);
    wait_until(wishes_settled);
    ck_assert_int_eq(wish_of(0, 0).state, WISH_NONE);
    ck_assert_ptr_nonnull(strstr(events, "engine node=0 loaded parameters of 2KiB\n"));
    ck_assert_ptr_nonnull(strstr(events, "engine node=1 loaded parameters of 2KiB\n"));
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[0], 1, true, &err), 0);
    wait_until(wishes_settled);
    ck_assert_int_eq(wish_of(0, 0).state, WISH_NONE);
    ck_assert_int_eq(wish_of(1, 0).state, WISH_FAILED);
    ck_assert_str_eq(wish_of(1, 0).why, "in use");
    /* What kills an engine is not asked of the next one. */
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[1], 0, false, &err), 0);
    wait_until(wishes_settled);
    ck_assert_int_eq(wish_of(0, 1).state, WISH_FAILED);
    ck_assert_ptr_nonnull(strstr(wish_of(0, 1).why, "the engine ended: "));
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[2], 0, false, &err),
                     0); /* for when it is there again */
    wait_until(wishes_settled);
    ck_assert_int_eq(wish_of(0, 2).state, WISH_NONE);
    end();
}
END_TEST

START_TEST(sched_wish__what_is_in_flight_keeps_its_parameters)
{
    static struct engine_status st;
    struct errmsg err = {""};

    begin("hold", 1, 0);
    wait_until(one_taken);
    do
        sched_engine_status(sched, 0, &st);
    while (st.in_flight_len == 0);
    ck_assert_ptr_eq(st.in_flight[0].size, &sector_sizes[0]);
    ck_assert(!st.in_flight[0].begun); /* a stage that nobody spoke of is none */
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[0], SCHED_ALL_NODES, true, &err), -EBUSY);
    ck_assert_str_eq(err.text, "partitions of 2KiB are in flight on node 0");
    ck_assert_int_eq(wish_of(0, 0).state, WISH_NONE);
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[0], 0, false, &err), 0);
    ck_assert_int_eq(sched_wish(sched, &sector_sizes[2], 0, true, &err), 0); /* others may go */
    wait_until(wishes_settled);
    end();
}
END_TEST

/* An engine without work takes what another one has not begun. */
START_TEST(sched__an_idle_engine_steals)
{
    static struct sched_status st;

    nodes_len = 2;
    begin("hold-on-0", PARTITIONS, 0);
    wait_until(all_but_one_done); /* one is no queue */
    end();
    sched_status(sched, &st);
    ck_assert_uint_ge(st.partitions_done, PARTITIONS - 1);
    ck_assert_uint_eq(st.engines[0].deaths, 0);
}
END_TEST

START_TEST(sched__a_partition_that_kills_engines_fails_its_job)
{
    begin("die", 1, 0);
    wait_until(one_failed);
    end();
    ck_assert_uint_eq(table.takes[0], SCHED_STRIKES);
    ck_assert_int_eq(table.code, -EIO);
    ck_assert_str_eq(table.text, "partition 0: given up after 3 tries, the last: the engine ended: "
                                 "killed by signal 9 (Killed)");
}
END_TEST

/* What only waits in these engines has nothing to do with it. */
START_TEST(sched__what_waits_beside_a_partition_that_kills_is_not_to_blame)
{
    static const char *const modes[] = {"die-proving-0", "die-reading-0"};

    begin(modes[_i], 5, 0);
    wait_until(one_failed);
    wait_until(all_but_one_done);
    end();
    ck_assert_uint_eq(table.takes[0], SCHED_STRIKES);
    ck_assert_uint_eq(table.takes[1], SCHED_STRIKES + 1);
    ck_assert_ptr_nonnull(strstr(table.text, "partition 0: given up after 3 tries"));
}
END_TEST

/* The memory may not do, or the disk: the next life may have it. */
START_TEST(sched__who_dies_of_parameters_fails_no_partition)
{
    begin("die-loading", 3, 0);
    wait_until(all_done);
    end();
    ck_assert_uint_gt(table.takes[0], SCHED_STRIKES);
}
END_TEST

START_TEST(sched__trouble_of_the_engine_is_retried_then_given_up)
{
    begin("no-memory", 1, 0);
    wait_until(one_failed);
    end();
    ck_assert_uint_eq(table.takes[0], SCHED_STRIKES);
}
END_TEST

/* Sizes that an engine has not the memory for stay where they are; who asks hears both numbers. */
START_TEST(sched__gives_no_engine_what_it_has_no_memory_for)
{
    struct errmsg err = {""};

    begin("small", 4, 0);
    wait_until(odd_ones_are_done);
    usleep(20000);
    ck_assert_uint_eq(table.takes[0] + table.takes[2], 0);
    ck_assert(sched_refuses(sched, &sector_sizes[0], &err));
    ck_assert_str_eq(err.text,
                     "a sector of 2KiB needs 10.0 GiB of memory to be proved, node 0 has 8.0 GiB");
    ck_assert(!sched_refuses(sched, &sector_sizes[1], &err));
    end();
}
END_TEST

/* The engine holds its partition until it hears that it is urgent. */
START_TEST(sched__tells_of_a_new_priority)
{
    begin("hold", 1, 0);
    wait_until(one_taken);
    pthread_mutex_lock(&table.lock);
    table.priority = JOB_HIGH;
    pthread_mutex_unlock(&table.lock);
    sched_wake(sched);
    wait_until(all_done);
    end();
}
END_TEST

/* What changed between the taking and the giving is news to the engine. */
START_TEST(sched__tells_of_a_priority_that_changed_while_it_gave)
{
    table.hurry = true;
    begin("hold", 1, 0);
    wait_until(one_was_taken);
    sched_wake(sched); /* as after every change */
    wait_until(all_done);
    end();
}
END_TEST

START_TEST(sched__a_partition_that_cannot_be_proved_fails_at_once)
{
    begin("fail", 1, 0);
    wait_until(one_failed);
    end();
    ck_assert_uint_eq(table.takes[0], 1);
    ck_assert_int_eq(table.code, -EILSEQ);
    ck_assert_str_eq(table.text, "made to fail");
}
END_TEST

static _Atomic uint64_t stamp;

static uint64_t say_stamp(void *ctx, const struct sector_size *size)
{
    (void)ctx, (void)size;
    return stamp;
}

static bool held_again(void)
{
    pthread_mutex_lock(&table.lock);
    bool yes = table.holds >= 2 && table.held[0];
    pthread_mutex_unlock(&table.lock);
    return yes;
}

static void touch_marker(void)
{
    FILE *f = fopen(marker, "w");

    ck_assert_ptr_nonnull(f);
    fclose(f);
}

/* They hold up the partitions of their size, and nothing else, however long it takes. */
START_TEST(sched__missing_parameters_are_waited_for)
{
    static struct sched_status st;

    begin("no-params", PARTITIONS, 0);
    wait_until(odd_ones_are_done);
    wait_until(held_again); /* after a pause it is tried again */
    for (int ms = 0; ms < WAIT_MS; ms++) {
        sched_status(sched, &st);
        if (st.holds_len > 0)
            break;
        usleep(1000);
    }
    ck_assert_uint_eq(st.holds_len, 1);
    ck_assert_str_eq(st.holds[0].size->name, "2KiB");
    ck_assert_str_eq(st.holds[0].why, "made to fail");
    ck_assert_int_eq(st.holds[0].lacks, JOB_LACKS_PARAMS);
    ck_assert_ptr_nonnull(
        strstr(events, "engine node=0 waits for parameters of 2KiB: made to fail\n"));
    ck_assert_uint_eq(count(FAILED), 0);
    touch_marker();
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.holds_len, 0);
    ck_assert_uint_eq(table.percent, 34);
}
END_TEST

/* After they were tried five times. */
static bool both_sizes_wait(void)
{
    static struct sched_status st;

    sched_status(sched, &st);
    pthread_mutex_lock(&table.lock);
    bool often = table.takes[0] + table.takes[1] >= 10;
    pthread_mutex_unlock(&table.lock);
    return often && st.holds_len == 2;
}

/* However often there was none: that is no partition's fault. */
START_TEST(sched__memory_that_others_have_is_waited_for)
{
    static struct sched_status st;

    begin("busy", 4, 0);
    wait_until(both_sizes_wait);
    sched_status(sched, &st);
    ck_assert_uint_eq(count(FAILED), 0);
    ck_assert_int_eq(st.holds[0].lacks, JOB_LACKS_MEMORY);
    ck_assert(st.holds[0].all);
    ck_assert_ptr_nonnull(
        strstr(events, "engine node=0 waits for memory for 2KiB: made to fail\n"));
    touch_marker();
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.holds_len, 0);
}
END_TEST

static bool both_are_ready(void)
{
    static struct sched_status st;

    sched_status(sched, &st);
    return st.engines[0].state == ENGINE_READY && st.engines[1].state == ENGINE_READY;
}

/* What one engine has not the memory for, or no parameters, goes to the other, and neither waits for the first one. */
START_TEST(sched__an_engine_that_cannot_load_leaves_it_to_another)
{
    static struct sched_status st;

    nodes_len = 2;
    params_retry_ms = 60000;
    begin("busy-on-0", 0, 0);
    wait_until(both_are_ready);
    pthread_mutex_lock(&table.lock);
    table.len = 1;
    pthread_mutex_unlock(&table.lock);
    sched_wake(sched);
    wait_until(all_done);
    sched_status(sched, &st);
    end();
    ck_assert_uint_eq(table.takes[0], 2); /* the first time by the first */
    ck_assert_uint_eq(table.holds, 0);    /* no job says that it waits */
    ck_assert_uint_eq(st.holds_len, 1);
    ck_assert(!st.holds[0].all);
    ck_assert_int_eq(st.holds[0].node, 0);
}
END_TEST

/* The pause of a minute ends when the files change. */
START_TEST(sched__changed_parameters_are_tried_at_once)
{
    params_retry_ms = 60000;
    begin("no-params", 2, 0);
    wait_until(odd_ones_are_done);
    touch_marker();
    stamp = 1;
    wait_until(all_done);
    end();
    ck_assert_uint_eq(table.holds, 1);
}
END_TEST

/* Until an engine has read the new ones, however often; nor is that the fault of what was there with them. */
START_TEST(sched__what_replaced_parameters_proved_is_proved_again)
{
    static struct sched_status st;

    key_of_files = 2;
    begin("old-params", PARTITIONS, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.engines[0].deaths, OLD_LIVES);
    for (size_t k = 0; k < PARTITIONS; k++)
        ck_assert_uint_eq(table.keys[k], 2);
}
END_TEST

START_TEST(sched__where_nobody_knows_the_files_what_is_proved_is_good)
{
    static struct sched_status st;

    begin("old-params", PARTITIONS, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.engines[0].deaths, 0);
    ck_assert_uint_eq(table.keys[0], 1);
}
END_TEST

START_TEST(sched__a_full_disk_delays_the_result_and_loses_nothing)
{
    table.write_refusals = 5;
    begin("work", 2, 0);
    wait_until(all_done);
    end();
    ck_assert_uint_eq(table.takes[0] + table.takes[1], 2);
}
END_TEST

START_TEST(sched__a_cancelled_job_leaves_the_engine)
{
    begin("hold", 1, 0);
    wait_until(one_taken);
    pthread_mutex_lock(&table.lock);
    table.cancelled = true;
    pthread_mutex_unlock(&table.lock);
    sched_wake(sched);
    wait_until(one_returned);
    end();
}
END_TEST

START_TEST(sched__a_silent_engine_is_killed)
{
    static struct sched_status st;
    static const char *const modes[] = {"mute", "hold"};

    begin(modes[_i], 1, 200);
    for (int ms = 0; ms < WAIT_MS; ms += 10) {
        sched_status(sched, &st);
        if (st.engines[0].deaths > 0)
            break;
        usleep(10000);
    }
    ck_assert_uint_gt(st.engines[0].deaths, 0);
    end();
}
END_TEST

START_TEST(sched__an_engine_that_talks_rubbish_is_replaced)
{
    static const char *const modes[] = {"rubbish", "nan", "other-node", "hello-twice"};
    static struct sched_status st;

    begin(modes[_i], 3, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.engines[0].deaths, 1);
}
END_TEST

START_TEST(sched__a_result_given_twice_counts_once)
{
    static struct sched_status st;

    begin("twice", PARTITIONS, 0);
    wait_until(all_done);
    end();
    sched_status(sched, &st);
    ck_assert_uint_eq(st.partitions_done, PARTITIONS);
}
END_TEST

static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%*d (%*[^)]) %*c %d", &parent), 1);
    fclose(f);
    ck_assert_int_gt(parent, 1);
    return parent;
}

/* A stopped spawner kills nothing. What the engine held goes back, it may say what it likes, and nobody is to blame. */
START_TEST(sched__what_an_engine_holds_that_cannot_be_killed_goes_back)
{
    static struct engine_status st;

    begin("hold", 1, 300);
    wait_until(one_taken);
    do
        sched_engine_status(sched, 0, &st);
    while (st.in_flight_len == 0);
    const pid_t spawner = parent_of(st.pid);
    ck_assert_int_eq(kill(spawner, SIGSTOP), 0);
    wait_until(one_returned);
    sched_engine_status(sched, 0, &st);
    ck_assert_int_eq(st.deaths, 0);
    ck_assert_int_eq(kill(spawner, SIGCONT), 0);
    wait_until(one_failed); /* the next engines die as they should */
    end();
    ck_assert_uint_eq(table.takes[0], 1 + SCHED_STRIKES);
}
END_TEST

/* Its start will be told, sometime: nothing to look after until then. */
START_TEST(sched__sleeps_while_the_spawner_does_not_answer)
{
    struct timespec before, after;
    pid_t spawner = 0;
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    if (!f)
        return; /* a kernel that does not tell */
    ck_assert_int_eq(fscanf(f, "%d", &spawner), 1);
    fclose(f);
    ck_assert_int_eq(kill(spawner, SIGSTOP), 0);
    begin("work", 1, 50);
    usleep(100000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(400000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    ck_assert_int_eq(kill(spawner, SIGCONT), 0);
    ck_assert_int_lt(
        (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000, 20);
    wait_until(all_done);
    end();
}
END_TEST

/* One that does not stop talking keeps neither the others waiting nor the service from its end. */
START_TEST(sched__an_engine_that_never_pauses_is_heard_in_pieces)
{
    nodes_len = 2;
    begin("chatter-on-0", PARTITIONS, 0);
    wait_until(most_are_done);
    end();
}
END_TEST

START_TEST(sched_stop__returns_what_an_engine_holds)
{
    begin("hold", 1, 0);
    wait_until(one_taken);
    end();
    ck_assert_uint_eq(table.returned, 1);
}
END_TEST

START_TEST(sched__a_missing_engine_program_is_reported)
{
    static struct sched_status st;

    strcpy(self, "/nonexistent/proofd-engine");
    begin("work", 1, 0);
    /* Between the end of one attempt and the next; the next ones start in growing intervals. */
    for (int ms = 0; ms < WAIT_MS; ms += 10) {
        sched_status(sched, &st);
        if (st.engines[0].last_end[0] && st.engines[0].state == ENGINE_DOWN)
            break;
        usleep(10000);
    }
    ck_assert_int_eq(st.engines[0].state, ENGINE_DOWN);
    ck_assert_str_eq(st.engines[0].last_end,
                     "/nonexistent/proofd-engine: cannot be started: No such file or directory");
    end();
    ck_assert_uint_eq(count(WAITING), 1);
}
END_TEST

int main(int argc, char **args)
{
    for (int i = 4; i + 1 < argc; i++) {
        if (strcmp(args[i], "--node") == 0)
            engine_node = atoi(args[i + 1]);
        without_gpu_5 |= strcmp(args[i], "--without") == 0 && strcmp(args[i + 1], "5") == 0;
    }
    if (argc >= 4 && strcmp(args[1], "--engine") == 0)
        return engine_main(args[2], args[3]);
    Suite *s = suite_create("sched");
    TCase *tc = tcase_create("sched");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, sched__all_partitions_come_back_done);
    tcase_add_test(tc, sched__work_that_comes_later_is_found_after_a_wake);
    tcase_add_test(tc, sched__a_dead_engine_is_replaced_and_its_work_redone);
    tcase_add_test(tc, sched__an_engine_that_dies_at_start_is_started_again);
    tcase_add_test(tc, sched__a_gpu_that_breaks_three_times_is_done_without);
    tcase_add_test(tc, sched__wrong_proofs_fail_the_job_and_set_the_prover_aside);
    tcase_add_test(tc, sched__what_one_node_got_wrong_another_proves);
    tcase_add_test(tc, sched__what_one_node_got_wrong_waits_for_a_deaf_one);
    tcase_add_test(tc, sched__is_silent_itself_and_kills_nobody_for_that);
    tcase_add_test(tc, sched__an_engine_that_hears_nothing_is_replaced);
    tcase_add_test(tc, sched__without_descriptors_nothing_is_taken_for_a_while);
    tcase_add_test(tc, sched_wish__is_told_to_engines_and_its_end_is_known);
    tcase_add_test(tc, sched_wish__what_is_in_flight_keeps_its_parameters);
    tcase_add_test(tc, sched__an_idle_engine_steals);
    tcase_add_test(tc, sched__a_partition_that_kills_engines_fails_its_job);
    tcase_add_loop_test(tc, sched__what_waits_beside_a_partition_that_kills_is_not_to_blame, 0, 2);
    tcase_add_test(tc, sched__who_dies_of_parameters_fails_no_partition);
    tcase_add_test(tc, sched__trouble_of_the_engine_is_retried_then_given_up);
    tcase_add_test(tc, sched__gives_no_engine_what_it_has_no_memory_for);
    tcase_add_test(tc, sched__tells_of_a_new_priority);
    tcase_add_test(tc, sched__tells_of_a_priority_that_changed_while_it_gave);
    tcase_add_test(tc, sched__a_partition_that_cannot_be_proved_fails_at_once);
    tcase_add_test(tc, sched__missing_parameters_are_waited_for);
    tcase_add_test(tc, sched__changed_parameters_are_tried_at_once);
    tcase_add_test(tc, sched__memory_that_others_have_is_waited_for);
    tcase_add_test(tc, sched__an_engine_that_cannot_load_leaves_it_to_another);
    tcase_add_test(tc, sched__what_replaced_parameters_proved_is_proved_again);
    tcase_add_test(tc, sched__where_nobody_knows_the_files_what_is_proved_is_good);
    tcase_add_test(tc, sched__a_full_disk_delays_the_result_and_loses_nothing);
    tcase_add_test(tc, sched__a_cancelled_job_leaves_the_engine);
    tcase_add_loop_test(tc, sched__a_silent_engine_is_killed, 0, 2);
    tcase_add_loop_test(tc, sched__an_engine_that_talks_rubbish_is_replaced, 0, 4);
    tcase_add_test(tc, sched__a_result_given_twice_counts_once);
    tcase_add_test(tc, sched__what_an_engine_holds_that_cannot_be_killed_goes_back);
    tcase_add_test(tc, sched__sleeps_while_the_spawner_does_not_answer);
    tcase_add_test(tc, sched__an_engine_that_never_pauses_is_heard_in_pieces);
    tcase_add_test(tc, sched_stop__returns_what_an_engine_holds);
    tcase_add_test(tc, sched__a_missing_engine_program_is_reported);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
