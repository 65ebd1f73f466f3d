/*
 * Everything the files hold is a known scalar times a generator. So the scalars are made first: the circuit's
 * polynomials at tau (qap.h), turned in place into the scalars of ic, l, a and b. Then the sections are
 * written one after another, some ten thousand points at a time: scalars, products, encoding, file. What has been encoded is
 * digested and written while the next points are made (outflow.h). What is in memory is the scalars and a few such pieces, never a
 * section.
 *
 * The marker is on disk before the parameters get their name, so no crash leaves them without it.
 */
#include "gpu/setup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/cpu/fixed_base.h"
#include "gpu/domain.h"
#include "gpu/newfile.h"
#include "gpu/outflow.h"
#include "gpu/point.h"
#include "gpu/qap.h"
#include "gpu/secrets.h"
#include "gpu/srs.h"
#include "gpu/srs_counts.h"
#include "gpu/srs_file.h"
#include "gpu/vk.h"
#include "numa/circuit/circuit.h"
#include "numa/memory.h"

/* Points: enough for workers to share evenly, 13 MB in G2. */
#define PIECE ((size_t)65536)
/* That a device hands over at a time. */
#define DEVICE_PIECE ((size_t)1 << 18)
/* Of these, that a worker takes where it has little to do for each. */
#define STEP 1024

struct setup {
    const struct sector_size *size;
    const struct setup_options *opt;
    struct backend *device; /* NULL: the workers make the points */
    struct secrets secrets;
    struct qap *qap;
    struct vk vk;
    size_t h_len, l_len, a_len, b_len;
    struct fixed_base *g1, *g2;
    struct outflow *file;
    uint64_t written; /* bytes of points */
    uint8_t file_digest[OUTFLOW_DIGEST_BYTES];
    /* One piece. */
    size_t piece; /* how many points */
    fr_t *scalars;
    void *points;
};

static void report(const struct setup *s, const char *stage, uint64_t done, uint64_t total)
{
    if (s->opt->progress)
        s->opt->progress(s->opt->progress_ctx, stage, done, total);
}

/* ------------------------------------------------------------------------------------- scalars */

struct combine {
    const struct qap *q;
    const struct secrets *t;
    fr_t input_scale, aux_scale; /* 1/gamma, 1/delta */
};

/* w = (beta u + alpha v + w) / gamma for inputs, / delta for aux: the scalars of ic and l, in place. */
static void combine_step(void *ctx, size_t item, unsigned thread)
{
    const struct combine *c = ctx;
    size_t total = (size_t)c->q->n_inputs + c->q->n_aux;
    size_t end = min_size(total, (item + 1) * PIECE);
    fr_t beta_u, alpha_v;

    (void)thread;
    for (size_t i = item * PIECE; i < end; i++) {
        fr_mul(&beta_u, &c->t->beta, &c->q->u[i]);
        fr_mul(&alpha_v, &c->t->alpha, &c->q->v[i]);
        fr_add(&beta_u, &beta_u, &alpha_v);
        fr_add(&c->q->w[i], &c->q->w[i], &beta_u);
        fr_mul(&c->q->w[i], &c->q->w[i], i < c->q->n_inputs ? &c->input_scale : &c->aux_scale);
    }
}

/* Keeps what is not zero, in order: such a variable has no point in a and b. Returns how many. */
static size_t compact(fr_t *values, size_t len)
{
    size_t kept = 0;

    for (size_t i = 0; i < len; i++)
        if (!fr_is_zero(&values[i]))
            values[kept++] = values[i];
    return kept;
}

static int check_constrained(const struct qap *q, struct errmsg *err)
{
    size_t total = (size_t)q->n_inputs + q->n_aux;

    for (size_t i = 0; i < total; i++)
        if (fr_is_zero(&q->w[i]))
            return errmsg_set(err, -EINVAL, "setup: variable %zu is in no row", i);
    return 0;
}

/* u, v, w of every variable. */
static int evaluate_circuit(struct setup *s, struct errmsg *err)
{
    struct porep_counts counts;
    struct circuit *circuit = NULL;

    porep_counts(s->size, &counts);
    report(s, "circuit", 0, counts.rows);
    int ret = circuit_create(s->size, &circuit, err);
    if (ret == 0)
        ret = qap_create(&counts, &s->secrets.tau, s->opt->workers, &s->qap, err);
    if (ret == 0)
        ret = qap_take_circuit(s->qap, circuit, s->opt->workers, err);
    circuit_destroy(circuit);
    if (ret < 0)
        return ret;
    qap_drop_lagrange(s->qap);
    report(s, "circuit", counts.rows, counts.rows);
    return 0;
}

/* From u, v, w the scalars of all sections but h, where they are. */
static int make_scalars(struct setup *s, struct errmsg *err)
{
    struct qap *q = s->qap;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): evaluate_circuit has made it */
    size_t total = (size_t)q->n_inputs + q->n_aux;
    struct combine c = {.q = q, .t = &s->secrets};

    fr_inverse(&c.input_scale, &s->secrets.gamma);
    fr_inverse(&c.aux_scale, &s->secrets.delta);
    workers_run(s->opt->workers, (total + PIECE - 1) / PIECE, combine_step, &c);
    s->h_len = ((size_t)1 << q->log2_domain) - 1;
    s->l_len = q->n_aux;
    s->a_len = compact(q->u, total);
    s->b_len = compact(q->v, total);
    return check_constrained(q, err);
}

/* -------------------------------------------------------------------------------------- points */

static int make_tables(struct setup *s, struct errmsg *err)
{
    struct workers *workers = s->opt->workers;
    int ret =
        fixed_base_g1_create(blst_p1_affine_generator(), FIXED_BASE_G1_BITS, workers, &s->g1, err);

    if (ret == 0)
        ret = fixed_base_g2_create(blst_p2_affine_generator(), FIXED_BASE_G2_BITS, workers, &s->g2,
                                   err);
    return ret;
}

static int make_room(struct setup *s, size_t piece, struct errmsg *err)
{
    s->piece = piece;
    s->scalars = memory_alloc(piece, sizeof(*s->scalars));
    s->points = memory_alloc(piece, sizeof(g2_affine_t));
    if (!s->scalars || !s->points)
        return errmsg_set(err, -ENOMEM, "setup: no memory for pieces of %zu points", piece);
    return 0;
}

/* All that comes before the file. */
static int make_points(struct setup *s, struct errmsg *err)
{
    int ret = evaluate_circuit(s, err);

    if (ret == 0)
        ret = make_scalars(s, err);
    if (ret == 0)
        ret = make_room(s, PIECE, err);
    if (ret == 0)
        ret = make_tables(s, err);
    if (ret == 0)
        ret = secrets_key(&s->secrets, s->qap->w, s->qap->n_inputs, &s->vk, err);
    return ret;
}

/* The same, in a device's memory. */
static int make_points_on_device(struct setup *s, struct errmsg *err)
{
    struct backend *be = s->device;
    struct srs_counts counts;
    struct circuit *circuit = NULL;
    int ret = circuit_create(s->size, &circuit, err);

    if (ret < 0)
        return ret;
    fr_t *ic = malloc(circuit->n_inputs * sizeof(*ic));
    if (!ic)
        ret = errmsg_set(err, -ENOMEM, "setup: no memory for %u scalars", circuit->n_inputs);
    if (ret == 0)
        ret = be->ops->develop(be, circuit, &s->secrets, ic, s->opt->progress, s->opt->progress_ctx,
                               err);
    if (ret == 0)
        ret = secrets_key(&s->secrets, ic, circuit->n_inputs, &s->vk, err);
    free(ic);
    circuit_destroy(circuit);
    srs_counts(s->size, &counts);
    s->h_len = counts.h;
    s->l_len = counts.l;
    s->a_len = counts.a;
    s->b_len = counts.b;
    return ret == 0 ? make_room(s, DEVICE_PIECE, err) : ret;
}

/* ---------------------------------------------------------------------------------------- file */

/* A vector of the file. `scalars` NULL: h, whose scalars are powers of tau and made piece by piece, or made by a device. */
struct section {
    bool g2;
    enum srs_section id;
    size_t len;
    const fr_t *scalars;
};

/* Scalars of h: tau^i (tau^m - 1) / delta for `len` of i from `first`. */
struct powers {
    const fr_t *tau;
    fr_t scale; /* (tau^m - 1) / delta */
    size_t first, len;
    fr_t *out;
};

static void powers_step(void *ctx, size_t item, unsigned thread)
{
    const struct powers *p = ctx;
    size_t i = item * STEP, end = min_size(p->len, i + STEP);
    fr_t power = fr_power(p->tau, p->first + i);

    (void)thread;
    fr_mul(&power, &power, &p->scale);
    for (; i < end; i++) {
        p->out[i] = power;
        fr_mul(&power, &power, p->tau);
    }
}

static void h_scalars(const struct setup *s, size_t first, size_t n, fr_t *out)
{
    struct powers p = {.tau = &s->secrets.tau, .first = first, .len = n, .out = out};

    fr_inverse(&p.scale, &s->secrets.delta);
    fr_mul(&p.scale, &p.scale, &s->qap->vanishing);
    workers_run(s->opt->workers, (n + STEP - 1) / STEP, powers_step, &p);
}

struct encoding {
    const struct setup *s;
    size_t len;
    bool g2;
    uint8_t *to;
};

static void encode_step(void *ctx, size_t item, unsigned thread)
{
    const struct encoding *e = ctx;
    const g1_affine_t *g1 = e->s->points;
    const g2_affine_t *g2 = e->s->points;
    size_t end = min_size(e->len, (item + 1) * STEP);

    (void)thread;
    for (size_t i = item * STEP; i < end; i++) {
        if (e->g2)
            g2_encode(e->to + i * G2_BYTES, &g2[i]);
        else
            g1_encode(e->to + i * G1_BYTES, &g1[i]);
    }
}

/* A few bytes. */
static int put_bytes(struct setup *s, const void *bytes, size_t len, struct errmsg *err)
{
    uint8_t *room;
    int ret = outflow_room(s->file, &room, err);

    assert(len <= s->piece * G2_BYTES);
    if (ret < 0)
        return ret;
    memcpy(room, bytes, len);
    outflow_put(s->file, len);
    return 0;
}

/* Points [first, first + n) of a section come to stand in s->points. */
static int get_piece(struct setup *s, const struct section *section, size_t first, size_t n,
                     struct errmsg *err)
{
    struct workers *workers = s->opt->workers;
    const fr_t *scalars = section->scalars ? section->scalars + first : s->scalars;

    if (s->device)
        return s->device->ops->fetch(s->device, section->id, first, n, s->points, err);
    if (!section->scalars)
        h_scalars(s, first, n, s->scalars);
    return section->g2 ? fixed_base_g2_mul(s->g2, workers, scalars, n, s->points, err)
                       : fixed_base_g1_mul(s->g1, workers, scalars, n, s->points, err);
}

static int write_piece(struct setup *s, const struct section *section, size_t first, size_t n,
                       struct errmsg *err)
{
    struct encoding e = {.s = s, .len = n, .g2 = section->g2};

    int ret = get_piece(s, section, first, n, err);
    if (ret == 0)
        ret = outflow_room(s->file, &e.to, err);
    if (ret < 0)
        return ret;
    workers_run(s->opt->workers, (n + STEP - 1) / STEP, encode_step, &e);
    outflow_put(s->file, n * (section->g2 ? G2_BYTES : G1_BYTES));
    s->written += n * (section->g2 ? G2_BYTES : G1_BYTES);
    return 0;
}

static uint64_t params_bytes(const struct setup *s)
{
    return vk_bytes(s->vk.ic_len) + (uint64_t)5 * 4 +
           (uint64_t)G1_BYTES * (s->h_len + s->l_len + s->a_len + s->b_len) +
           (uint64_t)G2_BYTES * s->b_len;
}

static void report_written(struct setup *s, uint64_t bytes)
{
    report(s, s->device ? "write" : "points", bytes, params_bytes(s));
}

static int write_section(struct setup *s, const struct section *section, struct errmsg *err)
{
    uint8_t count[4];

    store_be32(count, (uint32_t)section->len);
    int ret = put_bytes(s, count, sizeof(count), err);
    for (size_t first = 0; ret == 0 && first < section->len; first += s->piece) {
        size_t n = min_size(s->piece, section->len - first);
        ret = write_piece(s, section, first, n, err);
        report_written(s, s->written);
    }
    return ret;
}

static int write_params(struct setup *s, const char *path, const uint8_t *key, size_t key_bytes,
                        struct errmsg *err)
{
    const struct qap *q = s->qap;
    const struct section sections[] = {
        {false, SRS_H, s->h_len, NULL},
        {false, SRS_L, s->l_len, q ? q->w + q->n_inputs : NULL},
        {false, SRS_A, s->a_len, q ? q->u : NULL},
        {false, SRS_B_G1, s->b_len, q ? q->v : NULL},
        {true, SRS_B_G2, s->b_len, q ? q->v : NULL},
    };

    int ret = outflow_open(path, params_bytes(s), s->piece * G2_BYTES, &s->file, err);
    if (ret == 0)
        ret = put_bytes(s, key, key_bytes, err);
    for (size_t i = 0; ret == 0 && i < ARRAY_LEN(sections); i++)
        ret = write_section(s, &sections[i], err);
    if (ret == 0) {
        report_written(s, params_bytes(s));
        report(s, "sync", 0, params_bytes(s));
    }
    if (ret == 0)
        ret = outflow_commit(s->file, s->file_digest, err);
    if (ret == 0)
        report(s, "sync", params_bytes(s), params_bytes(s));
    outflow_close(s->file);
    return ret;
}

/* --------------------------------------------------------------------------------------- names */

/* The four files of a size in a directory. */
struct names {
    char params[4096], vk[4096], meta[4096], marker[4096];
};

static int names_make(struct names *n, const struct sector_size *size, const char *dir,
                      struct errmsg *err)
{
    char id[SECTOR_CACHE_ID_MAX];

    sector_cache_id(size, id);
    if (strlen(dir) + sizeof(id) + 16 > sizeof(n->params))
        return errmsg_set(err, -ENAMETOOLONG, "%s: name too long", dir);
    snprintf(n->params, sizeof(n->params), "%s/%s.params", dir, id);
    snprintf(n->vk, sizeof(n->vk), "%s/%s.vk", dir, id);
    snprintf(n->meta, sizeof(n->meta), "%s/%s.meta", dir, id);
    snprintf(n->marker, sizeof(n->marker), "%s/%s.insecure", dir, id);
    return 0;
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* What a rename puts a file in the place of: one, or a link that leads nowhere. */
static int check_kind(const char *path, struct errmsg *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : errmsg_set(err, -errno, "%s: %s", path, strerror(errno));
    return S_ISREG(st.st_mode)
               ? 0
               : errmsg_set(err, -EBADMSG, "%s: is not a regular file; remove it", path);
}

static int read_whose(const uint8_t *key, size_t len, bool *ours, struct errmsg *err)
{
    struct vk vk;
    int ret = vk_read(key, len, &vk, err);

    if (ret < 0)
        return ret;
    *ours = setup_made(&vk);
    vk_fini(&vk);
    return 0;
}

/* Everything beside a marker is ours, but that whoever fetched published parameters into this directory put them beside it. -ENODATA: the
 * file ends inside its key. */
static int check_ours(int fd, const struct names *n, uint8_t *key, size_t len, struct errmsg *err)
{
    bool ours = false;
    int ret = pread_full(fd, key, len, 0);

    if (ret == -ENODATA)
        return ret;
    if (ret < 0)
        return errmsg_set(err, ret, "%s: cannot read: %s", n->params, strerror(-ret));
    ret = read_whose(key, len, &ours, err);
    if (ret < 0)
        return errmsg_prefix(err, ret, "%s: is damaged; remove it", n->params);
    return ours ? 0
                : errmsg_set(
                      err, -EEXIST,
                      "%s: are not the development parameters that the marker beside it tells "
                      "of (%s); remove what is wrong, or choose another directory",
                      n->params, n->marker);
}

/* Whether a file holds just these bytes. */
static bool holds(const char *path, const void *bytes, size_t len)
{
    uint8_t *there = malloc(len);
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool same = there && fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size == len &&
                pread_full(fd, there, len, 0) == 0 && memcmp(there, bytes, len) == 0;

    if (fd >= 0)
        close(fd);
    free(there);
    return same;
}

/* *damage says what is wrong with files that are ours, as far as their heads and lengths tell. */
static int look_at_open(int fd, const struct sector_size *size, const struct names *n,
                        struct errmsg *damage, struct errmsg *err)
{
    struct srs_counts counts;

    srs_counts(size, &counts);
    size_t len = vk_bytes(counts.ic);
    uint8_t *key = malloc(len);
    int ret = key ? check_ours(fd, n, key, len, err) : errmsg_set(err, -ENOMEM, "no memory for a key");
    if (ret == 0 || ret == -ENODATA) {
        ret = srs_check_layout(fd, n->params, &counts, damage);
        if (ret == 0 && exists(n->vk) && !holds(n->vk, key, len))
            errmsg_write(damage, "%s: is not the key of the parameters beside it", n->vk);
        if (ret == -EBADMSG)
            ret = 0;
        else if (ret < 0)
            *err = *damage;
    }
    free(key);
    return ret;
}

static int look_at_params(const struct sector_size *size, const struct names *n,
                          struct errmsg *damage, struct errmsg *err)
{
    int fd = open(n->params, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 && errno == ENOENT)
        return errmsg_set(err, -EBADMSG, "%s: is a link that leads nowhere: mount what it leads to, or remove it", n->params);
    if (fd < 0)
        return errmsg_set(err, -errno, "%s: cannot open: %s", n->params, strerror(errno));
    int ret = look_at_open(fd, size, n, damage, err);
    close(fd);
    return ret;
}

/* One that whoever fetched published files has put beside the marker. What is no key at all is a damaged one of ours. */
static int check_key_is_ours(const struct sector_size *size, const struct names *n, struct errmsg *err)
{
    struct srs_counts counts;
    bool ours = true;

    srs_counts(size, &counts);
    const size_t len = vk_bytes(counts.ic);
    uint8_t *key = malloc(len);
    int fd = open(n->vk, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int ret = key ? 0 : errmsg_set(err, -ENOMEM, "no memory for a key");

    if (ret == 0 && fd >= 0 && pread_full(fd, key, len, 0) == 0)
        (void)read_whose(key, len, &ours, NULL);
    if (!ours)
        ret = errmsg_set(err, -EEXIST,
                         "%s: is not a key of the development parameters that the marker beside it tells of (%s); remove what is "
                         "wrong, or choose another directory",
                         n->vk, n->marker);
    if (fd >= 0)
        close(fd);
    free(key);
    return ret;
}

/* 1: all there; 0: to be made, anew where *damage says why; -EEXIST: somebody else's; -EBADMSG: what a person has to remove. */
static int names_look(const struct sector_size *size, const struct names *n, struct errmsg *damage,
                      struct errmsg *err)
{
    const char *const ours[] = {n->params, n->vk, n->meta};
    size_t there = 0;
    int ret = 0;

    bool marked = exists(n->marker);
    for (size_t i = 0; i < ARRAY_LEN(ours) && ret == 0; i++) {
        if (!exists(ours[i]))
            continue;
        if (!marked)
            return errmsg_set(
                err, -EEXIST,
                "%s: is there without our marker (%s): it may be official, so it is not "
                "overwritten; choose another directory",
                ours[i], n->marker);
        ret = check_kind(ours[i], err);
        there++;
    }
    if (ret == 0 && exists(n->vk))
        ret = check_key_is_ours(size, n, err);
    if (ret == 0 && exists(n->params))
        ret = look_at_params(size, n, damage, err);
    return ret < 0 ? ret : marked && there == ARRAY_LEN(ours) && !damage->text[0];
}

/* mkdir -p. */
static int make_directory(const char *dir, struct errmsg *err)
{
    char path[4096];

    if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
        return errmsg_set(err, -ENAMETOOLONG, "%s: name too long", dir);
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return errmsg_set(err, -errno, "%s: cannot make this directory: %s", path,
                              strerror(errno));
        if (!slash)
            return 0;
        *slash = '/';
    }
}

/* Before hours of work for files that cannot be made. */
static int check_directory(const char *dir, struct errmsg *err)
{
    struct stat st;

    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return errmsg_set(err, -ENOTDIR, "%s: not a directory", dir);
    if (access(dir, W_OK | X_OK) < 0)
        return errmsg_set(err, -errno, "%s: no file can be made here: %s", dir, strerror(errno));
    return 0;
}

static int write_marker(const struct sector_size *size, const char *path, struct errmsg *err)
{
    char text[512];

    int len = snprintf(
        text, sizeof(text),
        "INSECURE development parameters for %s sectors.\n"
        "They are made from published labels: whoever knows the labels can forge proofs.\n"
        "For tests only. Proofs made with them mean nothing on a real network.\n"
        "Written by proofd's setup; the files beside this one with the same name belong to it.\n",
        size->name);
    return newfile_put(path, text, (size_t)len, err);
}

static int write_files(struct setup *s, const struct names *n, struct errmsg *err)
{
    char meta[64];
    size_t key_bytes = vk_bytes(s->vk.ic_len);
    uint8_t *key = malloc(key_bytes);

    if (!key)
        return errmsg_set(err, -ENOMEM, "setup: no memory for the verifying key");
    vk_write(key, &s->vk);
    int meta_len =
        snprintf(meta, sizeof(meta), "{\"sector_size\":%llu}", (unsigned long long)s->size->bytes);
    int ret = write_marker(s->size, n->marker, err);
    if (ret == 0)
        ret = write_params(s, n->params, key, key_bytes, err);
    if (ret == 0)
        ret = newfile_put(n->vk, key, key_bytes, err);
    if (ret == 0)
        ret = newfile_put(n->meta, meta, (size_t)meta_len, err);
    /* Checking points that were multiplied out a moment ago would cost as much as making them. What cannot be
     * remembered is checked at its first use. */
    if (ret == 0)
        (void)srs_remember(s->size, n->params, s->file_digest, NULL);
    free(key);
    return ret;
}

static void setup_fini(struct setup *s)
{
    qap_destroy(s->qap);
    vk_fini(&s->vk);
    fixed_base_destroy(s->g1);
    fixed_base_destroy(s->g2);
    free(s->scalars);
    free(s->points);
}

/* Without the device where its memory does not do. */
static int make_points_anywhere(struct setup *s, struct errmsg *err)
{
    struct errmsg why = {""};
    int ret = s->device ? make_points_on_device(s, &why) : -ENOMEM;

    if (ret != -ENOMEM) {
        if (err)
            *err = why;
        return ret;
    }
    if (s->device && s->opt->without_device)
        s->opt->without_device(s->opt->progress_ctx, &why);
    s->device = NULL;
    return make_points(s, err);
}

int setup_run(const struct sector_size *size, const struct setup_options *opt, bool *made,
              struct errmsg *err)
{
    struct setup s = {
        .size = size,
        .opt = opt,
        .device = opt->device && opt->device->ops->develop ? opt->device : NULL,
        .secrets = secrets_from_labels(),
    };
    struct names names;
    struct errmsg damage = {""};
    int ret;

    if ((ret = make_directory(opt->dir, err)) < 0 ||
        (ret = names_make(&names, size, opt->dir, err)) < 0 ||
        (ret = names_look(size, &names, &damage, err)) < 0)
        return ret;
    if (ret == 1) {
        *made = false;
        return 0;
    }
    ret = check_directory(opt->dir, err);
    if (ret == 0 && damage.text[0] && opt->damaged)
        opt->damaged(opt->progress_ctx, &damage);
    if (ret == 0)
        ret = make_points_anywhere(&s, err);
    if (ret == 0)
        ret = write_files(&s, &names, err);
    setup_fini(&s);
    if (ret == 0)
        *made = true;
    return ret;
}

/* -------------------------------------------------------------------------------------- key alone */

static int compare_key(const char *path, const uint8_t *key, size_t len, struct errmsg *err)
{
    struct stat st = {0};
    uint8_t *there = malloc(len);
    int ret = there ? 0 : -ENOMEM, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (ret == 0 && (fd < 0 || fstat(fd, &st) < 0))
        ret = -errno;
    if (ret == 0)
        ret = (size_t)st.st_size == len ? pread_full(fd, there, len, 0) : -EBADMSG;
    if (ret == 0 && memcmp(there, key, len) != 0)
        ret = -EBADMSG;
    if (fd >= 0)
        close(fd);
    free(there);
    if (ret == -EBADMSG)
        return errmsg_set(err, ret, "%s: is not the key of the parameters that were made now",
                          path);
    return ret < 0 ? errmsg_set(err, ret, "%s: cannot read: %s", path, strerror(-ret)) : 0;
}

/* With the directory locked. */
static int keep_key(const struct sector_size *size, const struct names *n, const uint8_t *key,
                    size_t len, struct errmsg *err)
{
    if (exists(n->vk) && !exists(n->marker))
        return errmsg_set(err, -EEXIST, "%s: is there without our marker (%s)", n->vk, n->marker);
    if (exists(n->vk))
        return compare_key(n->vk, key, len, err);
    int ret = write_marker(size, n->marker, err);
    return ret < 0 ? ret : newfile_put(n->vk, key, len, err);
}

int setup_keep_key(const struct sector_size *size, const char *dir, const struct vk *vk,
                   struct errmsg *err)
{
    const size_t len = vk_bytes(vk->ic_len);
    struct names names;
    int ret;

    if ((ret = make_directory(dir, err)) < 0 || (ret = names_make(&names, size, dir, err)) < 0)
        return ret;
    uint8_t *key = malloc(len);
    if (!key)
        return errmsg_set(err, -ENOMEM, "%s: no memory for a key", dir);
    vk_write(key, vk);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        ret = errmsg_set(err, -errno, "%s: cannot lock: %s", dir, strerror(errno));
    else
        ret = keep_key(size, &names, key, len, err);
    if (fd >= 0)
        close(fd);
    free(key);
    return ret;
}
