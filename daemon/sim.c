#include "daemon/sim.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <openssl/sha.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/paths.h"
#include "daemon/test_work.h"
#include "gpu/groth16.h"
#include "gpu/srs.h"
#include "gpu/srs_counts.h"

#define PAGE 4096
#define SUFFIX ".proof"

/* What a call of a stage comes to; probabilities, tried in this order. */
enum fate { FATE_DIE, FATE_HANG, FATE_ERROR, FATE_WRONG, FATES };

struct behaviour {
    double ms, jitter_ms;
    double fates[FATES];
};

struct known_proof {
    uint8_t name[SHA256_DIGEST_LENGTH], bytes[PROOF_BYTES];
};

struct sim {
    struct behaviour stages[SIM_STAGES];
    double seed, devices, tickets, stall_ms;
    double witness_bytes, evaluation_bytes, device_bytes;
    double memory_bytes, load_ms;
    char proofs_dir[PATH_MAX];
    struct known_proof *proofs;
    size_t proofs_len;
    _Atomic uint64_t draws;
};

/* ---- the file ---- */

enum value_type { VALUE_NUMBER, VALUE_BYTES, VALUE_PROBABILITY, VALUE_PATH };

struct key {
    const char *name;
    enum value_type type;
    size_t offset;
};

#define FIELD(name, type, field)                \
    {                                           \
        name, type, offsetof(struct sim, field) \
    }
#define STAGE(name, i)                                                      \
    FIELD(name "_ms", VALUE_NUMBER, stages[i].ms),                          \
        FIELD(name "_jitter_ms", VALUE_NUMBER, stages[i].jitter_ms),        \
        FIELD(name "_die", VALUE_PROBABILITY, stages[i].fates[FATE_DIE]),   \
        FIELD(name "_hang", VALUE_PROBABILITY, stages[i].fates[FATE_HANG]), \
        FIELD(name "_error", VALUE_PROBABILITY, stages[i].fates[FATE_ERROR])

static const struct key keys[] = {
    STAGE("synthesis", SIM_SYNTHESIS),
    STAGE("start", SIM_START),
    STAGE("finish", SIM_FINISH),
    FIELD("finish_wrong", VALUE_PROBABILITY, stages[SIM_FINISH].fates[FATE_WRONG]),
    FIELD("seed", VALUE_NUMBER, seed),
    FIELD("devices", VALUE_NUMBER, devices),
    FIELD("tickets", VALUE_NUMBER, tickets),
    FIELD("stall_ms", VALUE_NUMBER, stall_ms),
    FIELD("witness", VALUE_BYTES, witness_bytes),
    FIELD("evaluation", VALUE_BYTES, evaluation_bytes),
    FIELD("device", VALUE_BYTES, device_bytes),
    FIELD("memory", VALUE_BYTES, memory_bytes),
    FIELD("load_ms", VALUE_NUMBER, load_ms),
    FIELD("proofs", VALUE_PATH, proofs_dir),
};

static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
    return s;
}

static bool parse_number(enum value_type type, const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || !isfinite(value) || value < 0)
        return false;
    if (type == VALUE_BYTES && *end) {
        const char *units = "KMG", *unit = strchr(units, *end++);
        if (!unit)
            return false;
        value = ldexp(value, 10 * (int)(unit - units + 1));
    }
    if (*end || (type == VALUE_PROBABILITY && value > 1))
        return false;
    *out = value;
    return true;
}

static int set(struct sim *sim, const struct key *k, const char *value, struct errmsg *err)
{
    void *field = (char *)sim + k->offset;

    if (k->type == VALUE_PATH) {
        snprintf(field, sizeof(sim->proofs_dir), "%s", value);
        return 0;
    }
    if (parse_number(k->type, value, field))
        return 0;
    return errmsg_set(err, -EINVAL, "%s: '%s' is not a number%s", k->name, value,
                      k->type == VALUE_PROBABILITY ? " from 0 to 1" : "");
}

static int read_line(struct sim *sim, char *line, struct errmsg *err)
{
    line = trim(line);
    if (!*line || *line == '#')
        return 0;
    char *equals = strchr(line, '=');
    if (!equals)
        return errmsg_set(err, -EINVAL, "'%s' is not of the form key = value", line);
    *equals = '\0';
    const char *name = trim(line);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return set(sim, &keys[i], trim(equals + 1), err);
    return errmsg_set(err, -EINVAL, "unknown key '%s'", name);
}

static int read_file(struct sim *sim, const char *path, struct errmsg *err)
{
    char line[PATH_MAX + 64];
    FILE *f;

    int ret = path_open_text(path, &f, err);
    if (ret < 0)
        return ret;
    for (unsigned n = 1; ret == 0 && fgets(line, sizeof(line), f); n++) {
        ret = read_line(sim, line, err);
        if (ret < 0)
            errmsg_prefix(err, ret, "%s:%u", path, n);
    }
    fclose(f);
    return ret;
}

/* ---- true proofs ---- */

void sim_proof_name(const fr_t *inputs, size_t len, char out[SIM_NAME_BYTES])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];

    SHA256((const uint8_t *)inputs, len * sizeof(*inputs), digest);
    hex_encode(out, digest, sizeof(digest));
    memcpy(out + 2 * sizeof(digest), SUFFIX, sizeof(SUFFIX));
}

static int read_proof(int dir, const char *name, struct known_proof *out)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int ret = pread_full(fd, out->bytes, PROOF_BYTES, 0);
    close(fd);
    return ret;
}

static bool parse_name(const char *name, uint8_t digest[SHA256_DIGEST_LENGTH])
{
    char hex[SIM_NAME_BYTES];

    if (strlen(name) != 2 * SHA256_DIGEST_LENGTH + strlen(SUFFIX) ||
        strcmp(name + 2 * SHA256_DIGEST_LENGTH, SUFFIX) != 0)
        return false;
    memcpy(hex, name, 2 * SHA256_DIGEST_LENGTH);
    return hex_decode(digest, hex, SHA256_DIGEST_LENGTH) == 0;
}

static int add_proof(struct sim *sim, int dir, const char *name)
{
    struct known_proof proof;

    if (!parse_name(name, proof.name))
        return 0;
    int ret = read_proof(dir, name, &proof);
    if (ret < 0)
        return ret;
    struct known_proof *more = realloc(sim->proofs, (sim->proofs_len + 1) * sizeof(*more));
    if (!more)
        return -ENOMEM;
    sim->proofs = more;
    sim->proofs[sim->proofs_len++] = proof;
    return 0;
}

static int read_proofs(struct sim *sim, struct errmsg *err)
{
    struct dirent *e;
    int ret = 0;

    DIR *dir = opendir(sim->proofs_dir);
    if (!dir)
        return errmsg_set(err, -errno, "%s: %s", sim->proofs_dir, strerror(errno));
    while (ret == 0 && (e = readdir(dir))) {
        ret = add_proof(sim, dirfd(dir), e->d_name);
        if (ret < 0)
            errmsg_set(err, ret, "%s/%s: %s", sim->proofs_dir, e->d_name, strerror(-ret));
    }
    closedir(dir);
    return ret;
}

static const struct known_proof *find_proof(const struct sim *sim, const struct assignment *w)
{
    char name[SIM_NAME_BYTES];
    uint8_t digest[SHA256_DIGEST_LENGTH];

    sim_proof_name(w->inputs + 1, w->n_inputs - 1, name);
    if (!parse_name(name, digest))
        return NULL;
    for (size_t i = 0; i < sim->proofs_len; i++)
        if (memcmp(sim->proofs[i].name, digest, sizeof(digest)) == 0)
            return &sim->proofs[i];
    return NULL;
}

/* ---- time and fate ---- */

/* Uniform in [0, 1): splitmix64 of the draw's number. */
static double draw(struct sim *sim)
{
    uint64_t x = (uint64_t)sim->seed + atomic_fetch_add(&sim->draws, 1) * 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return ldexp((double)((x ^ x >> 31) >> 11), -53);
}

static void sleep_ms(double ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1e3), .tv_nsec = (long)(fmod(ms, 1e3) * 1e6)};

    if (ms <= 0) /* which the kernel would make some 50 us of */
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}

static void __attribute__((noreturn)) hang(void)
{
    for (;;)
        pause();
}

/* The stage's time, then its fate; FATES: nothing happens. */
static enum fate spend(struct sim *sim, enum sim_stage stage)
{
    const struct behaviour *b = &sim->stages[stage];

    sleep_ms(b->ms + b->jitter_ms * draw(sim));
    for (int i = 0; i < FATES; i++) {
        if (draw(sim) >= b->fates[i])
            continue;
        if (i == FATE_DIE)
            raise(SIGKILL);
        if (i == FATE_HANG)
            hang();
        return (enum fate)i;
    }
    return FATES;
}

static int refuse(enum sim_stage stage, struct errmsg *err)
{
    static const char *const names[] = {"synthesis", "start", "finish"};

    return errmsg_set(err, -EIO, "the simulated device was told to fail in its %s", names[stage]);
}

int sim_spend(struct sim *sim, enum sim_stage stage, struct errmsg *err)
{
    return spend(sim, stage) == FATE_ERROR ? refuse(stage, err) : 0;
}

/* ---- the device ---- */

#define SIZES 10 /* of sector_sizes */

struct backend_sim {
    struct backend base;
    struct sim *sim;
    struct arena *memory; /* of the device; NULL: none */
    char *bytes;
    uint64_t sets[SIZES]; /* bytes of parameters that it keeps */
};

/* Two words of each page: any other content gives another sum, but for great bad luck. */
static uint64_t checksum(const fr_t *memory, size_t len)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < len; i += PAGE / sizeof(fr_t))
        sum = (sum ^ memory[i].l[0] ^ memory[i].l[3]) * 0x9e3779b97f4a7c15;
    return sum;
}

/* As much of the rows' values as the device holds. */
static void upload(struct backend_sim *be, const struct assignment *w)
{
    size_t room = be->memory ? arena_get_info(be->memory)->bytes : 0;

    for (size_t i = 0; i < min_size(room, w->n_rows * sizeof(fr_t)); i += PAGE)
        memcpy(be->bytes + i, (const char *)w->a + i, sizeof(fr_t));
}

/* Whose rows they are has to be the same before and after, and what the witness says. */
static int check_rows(const struct assignment *w, struct errmsg *err)
{
    struct test_document rows = {0}, witness = {0};
    uint32_t rows_partition = 0, witness_partition = 0;

    if (w->size || w->n_rows == 0)
        return 0;
    int ret = test_work_read_evaluation(w, &rows, &rows_partition, err);
    if (ret == 0)
        ret = test_work_read_witness(w, &witness, &witness_partition, err);
    if (ret == 0 && (rows.seed != witness.seed || rows_partition != witness_partition))
        ret = errmsg_set(err, -EIO, "a witness and rows of different partitions");
    return ret;
}

static int sim_start(struct backend *backend, struct groth16_ticket *t, struct errmsg *err)
{
    struct backend_sim *be = (struct backend_sim *)backend;
    uint64_t before = checksum(t->w->a, t->w->n_rows);
    int ret = check_rows(t->w, err);

    upload(be, t->w);
    if (ret == 0)
        ret = sim_spend(be->sim, SIM_START, err);
    if (ret == 0 && checksum(t->w->a, t->w->n_rows) != before)
        ret = errmsg_set(err, -EIO, "the rows changed while the device worked on them");
    return ret;
}

static int make_proof(struct backend_sim *be, const struct assignment *w,
                      uint8_t proof[PROOF_BYTES], struct errmsg *err)
{
    struct test_document doc;
    uint32_t partition;

    if (w->size) {
        const struct known_proof *known = find_proof(be->sim, w);
        if (!known)
            return errmsg_set(err, -EIO, "the simulated device was not given this proof");
        memcpy(proof, known->bytes, PROOF_BYTES);
        return 0;
    }
    int ret = test_work_read_witness(w, &doc, &partition, err);
    if (ret == 0)
        test_work_proof(&doc, partition, proof);
    return ret;
}

static int sim_finish_proof(struct backend *backend, struct groth16_ticket *t,
                            uint8_t proof[PROOF_BYTES], struct errmsg *err)
{
    struct backend_sim *be = (struct backend_sim *)backend;
    enum fate fate = spend(be->sim, SIM_FINISH);

    if (fate == FATE_ERROR)
        return refuse(SIM_FINISH, err);
    int ret = make_proof(be, t->w, proof, err);
    if (ret == 0 && fate == FATE_WRONG)
        proof[0] ^= 0x20; /* of a point the sign, of a text the case */
    return ret;
}

/* ---- parameters in its memory: what a device does, told by numbers alone ---- */

static uint64_t *set_of(const struct backend *backend, const struct srs *srs)
{
    return &((struct backend_sim *)backend)->sets[srs->size - sector_sizes];
}

/* What has no room in the whole of it is streamed, by way of all of it. */
static int sim_load(struct backend *backend, const struct srs *srs, const struct circuit *circuit,
                    backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    struct backend_sim *be = (struct backend_sim *)backend;
    const uint64_t memory = (uint64_t)be->sim->memory_bytes;
    uint64_t *set = set_of(backend, srs), taken = 0;
    struct srs_counts counts;

    (void)circuit;
    if (*set > 0)
        return 0;
    srs_counts(srs->size, &counts);
    uint64_t bytes = srs_file_bytes(&counts);
    if (bytes > memory)
        bytes = memory;
    for (size_t i = 0; i < SIZES; i++)
        taken += be->sets[i];
    if (bytes > memory - taken) {
        backend->lacks = bytes - (memory - taken);
        return errmsg_set(err, -ENOSPC, "the simulated device holds other parameters");
    }
    sleep_ms(bytes > 0 ? be->sim->load_ms : 0);
    *set = bytes;
    if (progress)
        progress(progress_ctx, "device", bytes, bytes);
    return 0;
}

static uint64_t sim_holds(const struct backend *backend, const struct srs *srs, bool *streamed)
{
    const struct backend_sim *be = (const struct backend_sim *)backend;
    const uint64_t bytes = *set_of(backend, srs);

    *streamed = bytes > 0 && bytes == (uint64_t)be->sim->memory_bytes;
    return bytes;
}

static void sim_evict(struct backend *backend, const struct srs *srs)
{
    *set_of(backend, srs) = 0;
}

static void sim_device_destroy(struct backend *backend)
{
    struct backend_sim *be = (struct backend_sim *)backend;

    arena_destroy(be->memory);
    free(be);
}

static const struct backend_ops sim_ops = {.name = "simulated",
                                           .start = sim_start,
                                           .finish_proof = sim_finish_proof,
                                           .load = sim_load,
                                           .holds = sim_holds,
                                           .evict = sim_evict,
                                           .destroy = sim_device_destroy};

int backend_sim_create(struct sim *sim, struct backend **out, struct errmsg *err)
{
    const struct arena_options opt = {
        .bytes = (size_t)sim->device_bytes, .node = ARENA_ANY_NODE, .largest = ARENA_THP};
    struct backend_sim *be = calloc(1, sizeof(*be));

    if (!be)
        return errmsg_set(err, -ENOMEM, "no memory for a backend");
    be->base = (struct backend){
        .ops = &sim_ops, .tickets = (unsigned)sim->tickets, .stall_ms = (uint32_t)sim->stall_ms};
    be->sim = sim;
    int ret = opt.bytes ? arena_create(&opt, &be->memory, err) : 0;
    if (ret < 0) {
        free(be);
        return errmsg_prefix(err, ret, "memory of the simulated device");
    }
    if (be->memory)
        be->bytes = arena_carve(be->memory, opt.bytes);
    *out = &be->base;
    return 0;
}

/* ---- the outside ---- */

unsigned sim_devices(const struct sim *sim)
{
    return (unsigned)sim->devices;
}

size_t sim_witness_bytes(const struct sim *sim)
{
    return (size_t)sim->witness_bytes;
}

size_t sim_evaluation_bytes(const struct sim *sim)
{
    return (size_t)sim->evaluation_bytes;
}

static int check(const struct sim *sim, struct errmsg *err)
{
    if (sim->witness_bytes < PAGE)
        return errmsg_set(err, -EINVAL, "witness: a page at least");
    if (sim->tickets < 1 || sim->tickets > 16 || sim->devices < 1 || sim->devices > 16)
        return errmsg_set(err, -EINVAL, "tickets, devices: 1 to 16");
    return 0;
}

int sim_create(const char *path, struct sim **out, struct errmsg *err)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    if (!sim)
        return errmsg_set(err, -ENOMEM, "no memory for a simulated device");
    sim->witness_bytes = 1 << 16;
    sim->evaluation_bytes = 1 << 18;
    sim->tickets = 2;
    sim->devices = 1;
    int ret = read_file(sim, path, err);
    if (sim->seed == 0)
        sim->seed = (double)((uint32_t)time(NULL) ^ (uint32_t)getpid() << 8);
    if (ret == 0) {
        ret = check(sim, err);
        if (ret < 0)
            errmsg_prefix(err, ret, "%s", path);
    }
    if (ret == 0 && sim->proofs_dir[0])
        ret = read_proofs(sim, err);
    if (ret < 0) {
        sim_destroy(sim);
        return ret;
    }
    *out = sim;
    return 0;
}

void sim_destroy(struct sim *sim)
{
    if (!sim)
        return;
    free(sim->proofs);
    free(sim);
}
