/*
 * An engine that proves nothing: it knows the proofs of a few C1 files beforehand and gives them
 * after a delay, so that tests of the service's behaviour need not wait for mathematics. What it
 * gives are true proofs, and the tests check them at the end as they would any other.
 *
 * As an engine (proofd --engine): FAKE_ENGINE_DIR holds
 *   HASH.proof   raw proofs of the C1 whose decoded form has this SHA-256
 *   HASH.fail    (exists) that C1 fails instead
 *   busy         (exists) others have the memory: nothing can be proved at present
 *   key          hex: the digest of the key that it says it proves with, read at its start; without it: it says none
 *   delays       "SYNTHESIS_MS PROVING_MS", read for each partition anew; where they get shorter, who waits is let go
 * fake_engine learn C1 PROOFS DIR: writes HASH.proof; PROOFS has a line "INDEX HEX" for each
 * partition. fake_engine hash C1: prints HASH.
 */
#include <errno.h>
#include <limits.h>
#include <openssl/sha.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/link.h"
#include "daemon/supervise.h"
#include "numa/circuit/c1_reader.h"

#define ITEMS_MAX 2
#define LOOK_MS 20 /* at the delays, while there is work */
#define HASH_CHARS (2 * SHA256_DIGEST_LENGTH + 1)

struct item {
    struct link_work id;
    char hash[HASH_CHARS];
    bool proving;
    int64_t since_ms, until_ms; /* of the stage it is in */
    unsigned proving_ms;
};

static struct item items[ITEMS_MAX];
static size_t items_len;
static int node;
static uint8_t key[SRS_VK_DIGEST_BYTES];

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void hash_bytes(const void *bytes, size_t len, char out[HASH_CHARS])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];

    SHA256(bytes, len, digest);
    hex_encode(out, digest, sizeof(digest));
}

/* ---- what is known ---- */

static void path_of(char path[PATH_MAX], const char *name, const char *suffix)
{
    const char *dir = getenv("FAKE_ENGINE_DIR");

    snprintf(path, PATH_MAX, "%s/%s%s", dir ? dir : ".", name, suffix);
}

static bool read_proof(const char *hash, uint32_t partition, uint8_t proof[192])
{
    char path[PATH_MAX];

    path_of(path, hash, ".proof");
    FILE *f = fopen(path, "re");
    bool ok = f && fseek(f, 192 * (long)partition, SEEK_SET) == 0 && fread(proof, 192, 1, f) == 1;
    if (f)
        fclose(f);
    return ok;
}

static bool must_fail(const char *hash)
{
    char path[PATH_MAX];

    path_of(path, hash, ".fail");
    return access(path, F_OK) == 0;
}

static bool is_busy(void)
{
    char path[PATH_MAX];

    path_of(path, "busy", "");
    return access(path, F_OK) == 0;
}

static void read_key(void)
{
    char path[PATH_MAX], hex[2 * SRS_VK_DIGEST_BYTES + 1] = "";

    path_of(path, "key", "");
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (fscanf(f, "%64s", hex) != 1 || hex_decode(key, hex, sizeof(key)) < 0)
        exit(1);
    fclose(f);
}

static void read_delays(unsigned *synthesis_ms, unsigned *proving_ms)
{
    char path[PATH_MAX];

    path_of(path, "delays", "");
    *synthesis_ms = *proving_ms = 0;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%u %u", synthesis_ms, proving_ms) != 2)
        *synthesis_ms = *proving_ms = 0;
    if (f)
        fclose(f);
}

/* ---- speaking ---- */

static void say(struct link_message m)
{
    if (link_send(SUPERVISOR_ENGINE_FD, &m, -1) < 0)
        exit(0); /* nobody there */
}

static void say_failed(const struct item *it, int code, const char *text)
{
    struct link_message m = {
        .type = LINK_FAILED,
        .failed = {.job = it->id.job, .partition = it->id.partition, .code = code}};

    snprintf(m.failed.text, sizeof(m.failed.text), "%s", text);
    say(m);
}

static void say_stage(const struct item *it, enum partition_stage stage)
{
    say((struct link_message){
        .type = LINK_STAGE,
        .stage = {.job = it->id.job, .partition = it->id.partition, .stage = stage}});
}

static void say_done(const struct item *it)
{
    struct link_message m = {.type = LINK_DONE,
                             .done = {.job = it->id.job, .partition = it->id.partition}};
    struct partition_report *r = &m.done.report;

    if (must_fail(it->hash)) {
        say_failed(it, -EILSEQ, "the fake engine was told to fail");
        return;
    }
    if (!read_proof(it->hash, it->id.partition, m.done.proof)) {
        say_failed(it, -EILSEQ, "the fake engine has no such proof");
        return;
    }
    r->node = node;
    r->params = SRS_INSECURE;
    r->total_ms = 1;
    memcpy(r->vk_digest, key, sizeof(key));
    snprintf(r->device, sizeof(r->device), "fake");
    say(m);
}

/* ---- working ---- */

static void take_work(const struct link_work *w, int fd)
{
    unsigned synthesis_ms;
    struct stat st;

    if (items_len == ITEMS_MAX || fstat(fd, &st) < 0)
        exit(1);
    struct item *it = &items[items_len++];
    uint8_t *bytes = malloc((size_t)st.st_size);
    if (!bytes || pread_full(fd, bytes, (size_t)st.st_size, 0) < 0)
        exit(1);
    *it = (struct item){.id = *w};
    hash_bytes(bytes, (size_t)st.st_size, it->hash);
    free(bytes);
    close(fd);
    read_delays(&synthesis_ms, &it->proving_ms);
    it->since_ms = now_ms();
    it->until_ms = it->since_ms + synthesis_ms;
    if (is_busy()) {
        say_failed(it, -EBUSY, "others have the memory");
        items_len--;
        return;
    }
    say_stage(it, PARTITION_SYNTHESIZING);
}

static void drop(size_t i)
{
    items[i] = items[--items_len];
}

static void cancel(uint64_t job)
{
    for (size_t i = 0; i < items_len;) {
        if (items[i].id.job == job) {
            say_failed(&items[i], -ECANCELED, "cancelled");
            drop(i);
        } else {
            i++;
        }
    }
}

static void stop(void)
{
    for (size_t i = 0; i < items_len; i++)
        say_failed(&items[i], -EAGAIN, "stopped");
    exit(0);
}

static void let_go(struct item *it, unsigned synthesis_ms, unsigned proving_ms)
{
    int64_t until = it->since_ms + (it->proving ? proving_ms : synthesis_ms);

    if (proving_ms < it->proving_ms)
        it->proving_ms = proving_ms;
    if (until < it->until_ms)
        it->until_ms = until;
}

static void work_on(void)
{
    unsigned synthesis_ms, proving_ms;

    if (items_len > 0)
        read_delays(&synthesis_ms, &proving_ms);
    for (size_t i = 0; i < items_len; i++)
        let_go(&items[i], synthesis_ms, proving_ms);
    for (size_t i = 0; i < items_len;) {
        struct item *it = &items[i];
        if (it->until_ms > now_ms()) {
            i++;
        } else if (!it->proving) {
            it->proving = true;
            it->since_ms = now_ms();
            it->until_ms = it->since_ms + it->proving_ms;
            say_stage(it, PARTITION_PROVING);
        } else {
            say_done(it);
            drop(i);
        }
    }
}

static int wait_ms(int64_t status_at)
{
    int64_t look_at = now_ms() + LOOK_MS;
    int64_t until = items_len > 0 && look_at < status_at ? look_at : status_at;

    for (size_t i = 0; i < items_len; i++)
        until = items[i].until_ms < until ? items[i].until_ms : until;
    return until > now_ms() ? (int)(until - now_ms()) : 0;
}

static void take_message(void)
{
    struct link_message m;
    int fd = -1;

    if (link_receive(SUPERVISOR_ENGINE_FD, &m, &fd) < 0)
        exit(0);
    if (m.type == LINK_WORK)
        take_work(&m.work, fd);
    else if (m.type == LINK_CANCEL)
        cancel(m.cancel.job);
    else if (m.type == LINK_STOP)
        stop();
}

static void serve(void)
{
    struct link_message hello = {.type = LINK_HELLO,
                                 .hello = {.node = node, .threads = 1, .capacity = ITEMS_MAX}};
    struct pollfd p = {SUPERVISOR_ENGINE_FD, POLLIN, 0};
    int64_t status_at = now_ms();

    snprintf(hello.hello.device, sizeof(hello.hello.device), "fake");
    say(hello);
    for (;;) {
        if (now_ms() >= status_at) {
            struct link_message m = {.type = LINK_STATUS};
            m.status.node.memory.node = m.status.node.memory.misplaced_node = -1;
            say(m);
            status_at = now_ms() + 1000;
        }
        if (poll(&p, 1, wait_ms(status_at)) > 0)
            take_message();
        work_on();
    }
}

/* ---- learning ---- */

static void hash_c1(const char *path, char hash[HASH_CHARS], uint32_t *partitions)
{
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    struct errmsg err = {""};
    size_t len;

    if (c1_read_file(path, C1_CHECK_FORM, NULL, &c1, &extra, &err) < 0) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        exit(1);
    }
    const uint8_t *bytes = c1_bincode(c1, &len);
    hash_bytes(bytes, len, hash);
    *partitions = c1_partitions(c1);
    c1_destroy(c1);
}

static int learn(const char *c1_path, const char *proofs_path, const char *dir)
{
    char hash[HASH_CHARS], path[PATH_MAX], hex[2 * 192 + 1];
    uint8_t proof[192];
    uint32_t partitions;
    unsigned index;

    hash_c1(c1_path, hash, &partitions);
    snprintf(path, sizeof(path), "%s/%s.proof", dir, hash);
    FILE *in = fopen(proofs_path, "re"), *out = fopen(path, "we");
    if (!in || !out)
        return perror(in ? path : proofs_path), 1;
    for (uint32_t i = 0; i < partitions; i++)
        if (fscanf(in, "%u %384s", &index, hex) != 2 || index != i ||
            hex_decode(proof, hex, 192) < 0 || fwrite(proof, 192, 1, out) != 1)
            return fprintf(stderr, "%s: not the proofs\n", proofs_path), 1;
    fclose(in);
    return fclose(out) ? 1 : 0;
}

int main(int argc, char **argv)
{
    char hash[HASH_CHARS];
    uint32_t partitions;

    if (argc == 5 && strcmp(argv[1], "learn") == 0)
        return learn(argv[2], argv[3], argv[4]);
    if (argc == 3 && strcmp(argv[1], "hash") == 0) {
        hash_c1(argv[2], hash, &partitions);
        puts(hash);
        return 0;
    }
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--node") == 0)
            node = atoi(argv[i + 1]);
    signal(SIGPIPE, SIG_IGN);
    read_key();
    serve();
}
