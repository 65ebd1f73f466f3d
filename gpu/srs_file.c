/*
 * The file is cut into pieces of some thousand points, and the workers go through them in rounds: they read the
 * pieces of one round while the round before is digested, in order and by one of them, and the one before that is
 * converted in place. So the digest is over the very bytes that were converted, and costs no second read. A chunk is a piece: who has read
 * it digests it at once, from the cache.
 */
#include "gpu/srs_file.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "gpu/point.h"
#include "numa/memory.h"

#define SECTIONS 5
#define PIECE SRS_CHUNK_POINTS
#define ROUND 64             /* pieces: 25 MB of G1, enough for the workers to share */

struct section {
    const char *name;
    bool g2;
    bool raw; /* points lie in the file as in memory, and no count is before them */
    size_t len;
    char *points; /* encoded, then decoded: both take the same room; NULL: they are passed over */
};

_Static_assert(sizeof(g1_affine_t) == G1_BYTES && sizeof(g2_affine_t) == G2_BYTES,
               "points are converted in place");

static size_t point_bytes(const struct section *s)
{
    return s->g2 ? G2_BYTES : G1_BYTES;
}

static size_t section_pieces(const struct section *s)
{
    return (s->len + PIECE - 1) / PIECE;
}

/* The sections of *srs in the order of the file. */
static void sections_of(const struct srs *srs, struct section out[SECTIONS])
{
    out[0] = (struct section){"h", false, false, srs->h_len, (char *)srs->h};
    out[1] = (struct section){"l", false, false, srs->l_len, (char *)srs->l};
    out[2] = (struct section){"a", false, false, srs->a_len, (char *)srs->a};
    out[3] = (struct section){"b_g1", false, false, srs->b_len, (char *)srs->b_g1};
    out[4] = (struct section){"b_g2", true, false, srs->b_len, (char *)srs->b_g2};
}

/* The same of a file of transformed points; those that it has not are empty. */
static void transformed_sections_of(const struct srs *srs, uint32_t inputs,
                                    struct section out[SECTIONS])
{
    memset(out, 0, SECTIONS * sizeof(*out));
    out[0] = (struct section){"input_l", false, true, inputs, (char *)srs->input_l};
    out[1] = (struct section){"h", false, true, srs->h_len, (char *)srs->h};
    out[2] = (struct section){"l", false, true, srs->l_len, (char *)srs->l};
}

/* Bytes before the points. */
static size_t count_bytes(const struct section *s)
{
    return s->raw ? 0 : 4;
}

struct piece {
    const struct section *section;
    size_t first, len; /* points */
    uint64_t offset;   /* of the section, its count, in the file */
};

/* Piece number `index` of all. `start` is where the first section is. */
static struct piece piece_at(const struct section sections[SECTIONS], size_t index, uint64_t start)
{
    const struct section *s = sections;

    while (index >= section_pieces(s)) {
        index -= section_pieces(s);
        start += count_bytes(s) + s->len * point_bytes(s);
        s++;
    }
    return (struct piece){s, index * PIECE, min_size(PIECE, s->len - index * PIECE), start};
}

static size_t all_pieces(const struct section sections[SECTIONS])
{
    size_t total = 0;

    for (size_t i = 0; i < SECTIONS; i++)
        total += section_pieces(&sections[i]);
    return total;
}

uint32_t srs_chunks(const struct srs_counts *counts)
{
    struct section sections[SECTIONS];

    sections_of(
        &(struct srs){
            .h_len = counts->h, .l_len = counts->l, .a_len = counts->a, .b_len = counts->b},
        sections);
    return (uint32_t)all_pieces(sections);
}

uint32_t srs_transformed_chunks(const struct srs_counts *counts)
{
    struct section sections[SECTIONS];

    transformed_sections_of(&(struct srs){.h_len = counts->h + 1, .l_len = counts->l}, counts->ic,
                            sections);
    return (uint32_t)all_pieces(sections);
}

static char *piece_points(const struct piece *p)
{
    return p->section->points + p->first * point_bytes(p->section);
}

/* Where they are in the file. */
static uint64_t piece_offset(const struct piece *p)
{
    return p->offset + count_bytes(p->section) + p->first * point_bytes(p->section);
}

/* ------------------------------------------------------------------------------- header and counts */

static int read_error(const char *name, const char *what, int code, struct errmsg *err)
{
    if (code == -ENODATA)
        return errmsg_set(err, -EBADMSG, "%s: ends inside %s", name, what);
    return errmsg_set(err, code, "%s: cannot read %s: %s", name, what, strerror(-code));
}

/* -ENODATA: the file ends before that, and *err is as it was. */
static int check_count(int fd, const char *name, const char *section, uint64_t offset, size_t want,
                       struct errmsg *err)
{
    uint8_t bytes[4];
    char what[32];

    snprintf(what, sizeof(what), "the count of %s", section);
    int ret = pread_full(fd, bytes, sizeof(bytes), offset);
    if (ret == -ENODATA)
        return ret;
    if (ret < 0)
        return read_error(name, what, ret, err);
    if (load_be32(bytes) != want)
        return errmsg_set(err, -EBADMSG, "%s: %s has %u points, the circuit wants %zu", name, section,
                          load_be32(bytes), want);
    return 0;
}

/* A file at all, counts at their places, then the size: whatever is wrong with the file's length shows before memory is taken. */
int srs_check_layout(int fd, const char *name, const struct srs_counts *want, struct errmsg *err)
{
    const struct {
        const char *name;
        size_t len, bytes;
    } sections[] = {
        {"ic", want->ic, G1_BYTES}, {"h", want->h, G1_BYTES},    {"l", want->l, G1_BYTES},
        {"a", want->a, G1_BYTES},   {"b_g1", want->b, G1_BYTES}, {"b_g2", want->b, G2_BYTES},
    };
    uint64_t offset = VK_HEAD_BYTES - 4, bytes = srs_file_bytes(want);
    struct stat st;

    if (fstat(fd, &st) < 0)
        return errmsg_set(err, -errno, "%s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return errmsg_set(err, -EBADMSG, "%s: is not a regular file", name);
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        int ret = check_count(fd, name, sections[i].name, offset, sections[i].len, err);
        if (ret == -ENODATA)
            return errmsg_set(err, -EBADMSG,
                              "%s: ends inside the count of %s: has %llu bytes, the circuit wants "
                              "%llu",
                              name, sections[i].name, (unsigned long long)st.st_size,
                              (unsigned long long)bytes);
        if (ret < 0)
            return ret;
        offset += 4 + (uint64_t)sections[i].len * sections[i].bytes;
    }
    if ((uint64_t)st.st_size != bytes)
        return errmsg_set(err, -EBADMSG, "%s: has %llu bytes, the circuit wants %llu", name,
                          (unsigned long long)st.st_size, (unsigned long long)bytes);
    return 0;
}

/* ------------------------------------------------------------------------------------------ memory */

static int no_memory(const char *name, uint64_t bytes, struct errmsg *err)
{
    return errmsg_set(err, -ENOMEM, "%s: no memory for %llu bytes", name,
                      (unsigned long long)bytes);
}

static int take_memory(const char *name, const struct srs_counts *counts, bool h_and_l,
                       struct srs *srs, struct errmsg *err)
{
    srs->h_len = counts->h;
    srs->l_len = counts->l;
    srs->a_len = counts->a;
    srs->b_len = counts->b;
    if (h_and_l) {
        srs->h = memory_alloc(srs->h_len, sizeof(*srs->h));
        srs->l = memory_alloc(srs->l_len, sizeof(*srs->l));
    }
    srs->a = memory_alloc(srs->a_len, sizeof(*srs->a));
    srs->b_g1 = memory_alloc(srs->b_len, sizeof(*srs->b_g1));
    srs->b_g2 = memory_alloc(srs->b_len, sizeof(*srs->b_g2));
    if ((h_and_l && (!srs->h || !srs->l)) || !srs->a || !srs->b_g1 || !srs->b_g2)
        return no_memory(name, srs_file_bytes(counts), err);
    return 0;
}

static int take_transformed_memory(const char *name, const struct srs_counts *counts,
                                   struct srs *srs, struct errmsg *err)
{
    srs->transformed = true;
    srs->h_len = counts->h + 1;
    srs->l_len = counts->l;
    srs->h = memory_alloc(srs->h_len, sizeof(*srs->h));
    srs->l = memory_alloc(srs->l_len, sizeof(*srs->l));
    srs->input_l = memory_alloc(counts->ic, sizeof(*srs->input_l));
    if (!srs->h || !srs->l || !srs->input_l)
        return no_memory(name, srs_transformed_bytes(counts), err);
    return 0;
}

void srs_fini(struct srs *srs)
{
    if (!srs)
        return;
    vk_fini(&srs->vk);
    free(srs->h);
    free(srs->l);
    free(srs->a);
    free(srs->b_g1);
    free(srs->b_g2);
    free(srs->input_l);
    srs->h = srs->l = srs->a = srs->b_g1 = srs->input_l = NULL;
    srs->b_g2 = NULL;
}

/* --------------------------------------------------------------------------------- what went wrong */

/* The first fault in the order of the file, whichever worker met it. */
struct fault {
    pthread_mutex_t lock;
    size_t piece; /* guarded by lock, as the rest */
    int code;     /* 0: none */
    struct errmsg err;
};

static void fault_set(struct fault *f, size_t piece, int code, const struct errmsg *err)
{
    pthread_mutex_lock(&f->lock);
    if (f->code == 0 || piece < f->piece) {
        f->piece = piece;
        f->code = code;
        f->err = *err;
    }
    pthread_mutex_unlock(&f->lock);
}

static void fault_set_point(struct fault *f, size_t index, const char *name, const struct piece *p,
                            size_t at, enum point_fault fault)
{
    struct errmsg err;

    errmsg_set(&err, 0, "%s: %s[%zu] %s", name, p->section->name, p->first + at,
               point_fault_text(fault));
    fault_set(f, index, -EBADMSG, &err);
}

/* ----------------------------------------------------------------------------------------- reading */

struct loading {
    int fd;
    const char *name;
    struct section sections[SECTIONS];
    uint64_t start; /* of the first section's count */
    size_t pieces;
    const struct srs_reading *how;
    EVP_MD_CTX *digest; /* NULL: not wanted */
    size_t round;       /* that is read; the one before is digested, the one before that converted */
    struct fault fault;
};

static void compare_piece(struct loading *l, size_t index, const struct piece *p)
{
    const size_t bytes = p->len * point_bytes(p->section), at = index * CHUNK_DIGEST_BYTES;
    uint8_t digest[CHUNK_DIGEST_BYTES];
    struct errmsg err;

    SHA256((const uint8_t *)piece_points(p), bytes, digest);
    if (l->how->chunks)
        memcpy(l->how->chunks + at, digest, sizeof(digest));
    if (!l->how->expected || memcmp(l->how->expected + at, digest, sizeof(digest)) == 0)
        return;
    errmsg_set(&err, 0,
               "%s: the chunk at byte %llu (%zu bytes of %s) is not the one that was found good",
               l->name, (unsigned long long)piece_offset(p), bytes, p->section->name);
    fault_set(&l->fault, index, -ESTALE, &err);
}

static void read_piece(struct loading *l, size_t index)
{
    struct piece p = piece_at(l->sections, index, l->start);
    struct errmsg err;

    if (!p.section->points)
        return;
    int ret = pread_full(l->fd, piece_points(&p), p.len * point_bytes(p.section), piece_offset(&p));
    if (ret < 0)
        fault_set(&l->fault, index, read_error(l->name, p.section->name, ret, &err), &err);
    else if (l->how->chunks || l->how->expected)
        compare_piece(l, index, &p);
}

/* In place. Raw points are looked at alone. */
static enum point_fault convert_point(const struct section *s, void *point)
{
    uint8_t encoded[G2_BYTES];

    if (s->raw)
        return g1_affine_fault(point);
    memcpy(encoded, point, point_bytes(s));
    return s->g2 ? g2_decode(point, encoded) : g1_decode(point, encoded);
}

static void convert_piece(struct loading *l, size_t index)
{
    struct piece p = piece_at(l->sections, index, l->start);

    for (size_t i = 0; p.section->points && i < p.len; i++) {
        enum point_fault fault =
            convert_point(p.section, piece_points(&p) + i * point_bytes(p.section));
        if (fault) {
            fault_set_point(&l->fault, index, l->name, &p, i, fault);
            return;
        }
    }
}

/* The counts were compared with what is known, so their bytes are known too. */
static void digest_piece(struct loading *l, size_t index)
{
    struct piece p = piece_at(l->sections, index, l->start);
    uint8_t count[4];

    if (p.first == 0) {
        store_be32(count, (uint32_t)p.section->len);
        EVP_DigestUpdate(l->digest, count, sizeof(count));
    }
    EVP_DigestUpdate(l->digest, piece_points(&p), p.len * point_bytes(p.section));
}

static void digest_round(struct loading *l, size_t round)
{
    for (size_t i = round * ROUND; i < (round + 1) * ROUND && i < l->pieces; i++)
        digest_piece(l, i);
}

/* Item 0 digests, then come the pieces that are read, then those that are converted. */
static void round_item(void *ctx, size_t item, unsigned thread)
{
    struct loading *l = ctx;
    size_t at = (item - 1) % ROUND;

    (void)thread;
    if (item == 0) {
        if (l->digest && l->round >= 1)
            digest_round(l, l->round - 1);
    } else if (item <= ROUND) {
        if (l->round * ROUND + at < l->pieces)
            read_piece(l, l->round * ROUND + at);
    } else if (l->round >= 2 && (l->round - 2) * ROUND + at < l->pieces) {
        convert_piece(l, (l->round - 2) * ROUND + at);
    }
}

/* Nothing of this round is read. */
static bool is_passed_over(const struct loading *l)
{
    const size_t last = min_size((l->round + 1) * ROUND, l->pieces) - 1;

    return !piece_at(l->sections, last, l->start).section->points;
}

/* Of `total` bytes the points are `bytes`. */
static int read_points(struct loading *l, uint64_t bytes, uint64_t total, struct errmsg *err)
{
    const struct srs_reading *how = l->how;
    size_t rounds = (l->pieces + ROUND - 1) / ROUND + 2;

    for (l->round = 0; l->round < rounds; l->round++) {
        workers_run(how->workers, 1 + 2 * ROUND, round_item, l);
        if (l->fault.code < 0)
            return errmsg_set(err, l->fault.code, "%s", l->fault.err.text);
        if (how->progress && !is_passed_over(l))
            how->progress(how->progress_ctx, l->digest ? "digest" : "read",
                          bytes * (l->round + 1) / rounds, total);
    }
    return 0;
}

/* vk and ic, checked; the head's bytes go into the digest. */
static int read_head(struct loading *l, uint32_t ic, struct vk *vk, struct errmsg *err)
{
    size_t bytes = vk_bytes(ic);
    uint8_t *head = malloc(bytes);

    if (!head)
        return errmsg_set(err, -ENOMEM, "%s: no memory for its head", l->name);
    int ret = pread_full(l->fd, head, bytes, 0);
    if (ret < 0)
        ret = read_error(l->name, "the verifying key", ret, err);
    else if ((ret = vk_read(head, bytes, vk, err)) < 0)
        errmsg_prefix(err, ret, "%s", l->name);
    else if (vk->ic_len != ic) /* it was right a moment ago */
        ret = errmsg_set(err, -EBADMSG, "%s: changed while it was read", l->name);
    else if (l->digest)
        EVP_DigestUpdate(l->digest, head, bytes);
    free(head);
    return ret;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int check_unchanged(int fd, const char *name, const struct stat *before, struct errmsg *err)
{
    struct stat now;

    if (fstat(fd, &now) < 0)
        return errmsg_set(err, -errno, "%s: %s", name, strerror(errno));
    if (now.st_size != before->st_size || !same_time(&now.st_mtim, &before->st_mtim))
        return errmsg_set(err, -EBADMSG, "%s: changed while it was read", name);
    return 0;
}

static int digest_start(struct loading *l, struct errmsg *err)
{
    l->digest = EVP_MD_CTX_new();
    if (!l->digest || EVP_DigestInit_ex(l->digest, EVP_blake2b512(), NULL) != 1)
        return errmsg_set(err, -ENOMEM, "%s: cannot start a digest", l->name);
    return 0;
}

static void digest_end(struct loading *l, uint8_t out[SRS_DIGEST_BYTES])
{
    uint8_t whole[64];

    EVP_DigestFinal_ex(l->digest, whole, NULL);
    memcpy(out, whole, SRS_DIGEST_BYTES);
}

/* A file that changed is no wonder to be wrong: that is said first. */
static int read_and_watch(struct loading *l, uint64_t bytes, uint64_t total,
                          const struct stat *before, struct errmsg *err)
{
    l->pieces = all_pieces(l->sections);
    int ret = read_points(l, bytes, total, err);
    if (ret == 0 || ret == -EBADMSG || ret == -ESTALE) {
        int changed = check_unchanged(l->fd, l->name, before, err);
        ret = changed < 0 ? changed : ret;
    }
    return ret;
}

int srs_read(int fd, const char *name, const struct srs_counts *want,
             const struct srs_reading *how, struct srs *out, struct errmsg *err)
{
    struct loading l = {
        .fd = fd,
        .name = name,
        .start = vk_bytes(want->ic),
        .how = how,
        .fault = {.lock = PTHREAD_MUTEX_INITIALIZER},
    };
    struct stat before;
    int ret;

    memset(out, 0, sizeof(*out));
    if (fstat(fd, &before) < 0)
        return errmsg_set(err, -errno, "%s: %s", name, strerror(errno));
    if ((ret = srs_check_layout(fd, name, want, err)) < 0 ||
        (how->digest && (ret = digest_start(&l, err)) < 0) ||
        (ret = read_head(&l, want->ic, &out->vk, err)) < 0 ||
        (ret = take_memory(name, want, !how->without_h_and_l, out, err)) < 0)
        goto out;
    sections_of(out, l.sections);
    ret = read_and_watch(&l, srs_file_bytes(want), srs_file_bytes(want), &before, err);
    if (ret == 0 && how->digest)
        digest_end(&l, how->digest);
out:
    EVP_MD_CTX_free(l.digest);
    if (ret < 0)
        srs_fini(out);
    return ret;
}

int srs_read_transformed(int fd, const char *name, const struct srs_counts *want,
                         const struct srs_reading *how, struct srs *out, struct errmsg *err)
{
    struct loading l = {
        .fd = fd,
        .name = name,
        .start = SRS_TRANSFORMED_HEAD_BYTES,
        .how = how,
        .fault = {.lock = PTHREAD_MUTEX_INITIALIZER},
    };
    const uint64_t bytes = srs_transformed_bytes(want);
    struct stat before;

    memset(out, 0, sizeof(*out));
    if (fstat(fd, &before) < 0)
        return errmsg_set(err, -errno, "%s: %s", name, strerror(errno));
    if (!S_ISREG(before.st_mode) || (uint64_t)before.st_size != bytes)
        return errmsg_set(err, -EBADMSG, "%s: has %llu bytes, the circuit wants %llu", name,
                          (unsigned long long)before.st_size, (unsigned long long)bytes);
    int ret = take_transformed_memory(name, want, out, err);
    if (ret == 0) {
        transformed_sections_of(out, want->ic, l.sections);
        ret = read_and_watch(&l, bytes, srs_file_bytes(want), &before, err);
    }
    if (ret < 0)
        srs_fini(out);
    return ret;
}

/* ---------------------------------------------------------------------------------------- checking */

struct checking {
    const char *name;
    struct section sections[SECTIONS];
    struct subgroup_check *g1, *g2;
    size_t round;
    size_t pieces;
    struct fault fault;
};

static bool on_curve(const struct section *s, const void *point)
{
    return s->g2 ? blst_p2_affine_on_curve(point) : blst_p1_affine_on_curve(point);
}

static void check_piece(void *ctx, size_t item, unsigned thread)
{
    struct checking *c = ctx;
    size_t index = c->round * ROUND + item;

    if (index >= c->pieces)
        return;
    struct piece p = piece_at(c->sections, index, 0);
    for (size_t i = 0; i < p.len; i++)
        if (!on_curve(p.section, piece_points(&p) + i * point_bytes(p.section))) {
            fault_set_point(&c->fault, index, c->name, &p, i, POINT_OFF_CURVE);
            return;
        }
    subgroup_check_add(p.section->g2 ? c->g2 : c->g1, index, piece_points(&p), p.len, thread);
}

/* Names the point that made a sum of the group fall outside. */
static int report_outside(const struct checking *c, bool g2, const struct subgroup_fault *fault,
                          struct errmsg *err)
{
    const struct subgroup_check *check = g2 ? c->g2 : c->g1;

    for (size_t index = 0; index < c->pieces; index++) {
        struct piece p = piece_at(c->sections, index, 0);
        if (p.section->g2 != g2)
            continue;
        size_t at = subgroup_check_find(check, fault, index, piece_points(&p), p.len);
        if (at < p.len)
            return errmsg_set(err, -EBADMSG, "%s: %s[%zu] %s", c->name, p.section->name, p.first + at,
                              point_fault_text(POINT_OUTSIDE_SUBGROUP));
    }
    return errmsg_set(err, -EBADMSG, "%s: a point of %s is outside the subgroup", c->name,
                      g2 ? "G2" : "G1");
}

static int check_sums(struct checking *c, bool g2, struct workers *workers, struct errmsg *err)
{
    struct subgroup_fault fault;
    bool good;

    int ret = subgroup_check_finish(g2 ? c->g2 : c->g1, workers, &good, &fault, err);
    if (ret < 0)
        return errmsg_prefix(err, ret, "%s", c->name);
    return good ? 0 : report_outside(c, g2, &fault, err);
}

static int check_all(struct checking *c, const struct srs_reading *how, struct errmsg *err)
{
    size_t rounds = (c->pieces + ROUND - 1) / ROUND;
    uint64_t total = 0;

    for (size_t i = 0; i < SECTIONS; i++)
        total += c->sections[i].len * point_bytes(&c->sections[i]);
    for (c->round = 0; c->round < rounds; c->round++) {
        workers_run(how->workers, ROUND, check_piece, c);
        if (c->fault.code < 0)
            return errmsg_set(err, c->fault.code, "%s", c->fault.err.text);
        if (how->progress)
            how->progress(how->progress_ctx, "check", total * (c->round + 1) / rounds, total);
    }
    int ret = check_sums(c, false, how->workers, err);
    return ret < 0 ? ret : check_sums(c, true, how->workers, err);
}

int srs_check_points(const struct srs *srs, const char *name, const struct srs_reading *how,
                     struct errmsg *err)
{
    struct checking c = {.name = name, .fault = {.lock = PTHREAD_MUTEX_INITIALIZER}};
    unsigned threads = workers_count(how->workers);

    sections_of(srs, c.sections);
    c.pieces = all_pieces(c.sections);
    int ret = subgroup_check_create(&group_g1, threads, &c.g1, err);
    if (ret == 0)
        ret = subgroup_check_create(&group_g2, threads, &c.g2, err);
    if (ret == 0)
        ret = check_all(&c, how, err);
    subgroup_check_destroy(c.g1);
    subgroup_check_destroy(c.g2);
    return ret;
}
