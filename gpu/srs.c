/*
 * A file is looked for, read, and then one of three things makes its points believable: its digest is the
 * published one, or every point is checked, or one of the two was found at an earlier start and every chunk is what it was then.
 */
#include "gpu/srs.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/setup.h"
#include "gpu/srs_file.h"
#include "gpu/transformed.h"
#include "gpu/trusted.h"

#define PATH_BYTES 4096
#define PARAMS ".params"
#define VK ".vk"
#define MARKER ".insecure"

/* ---------------------------------------------------------------------------------------- where */

int srs_development_dir(char out[PATH_BYTES], struct errmsg *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int len = -1;

    if (data && data[0] == '/')
        len = snprintf(out, PATH_BYTES, "%s/proofd/params-insecure", data);
    else if (home && home[0] == '/')
        len = snprintf(out, PATH_BYTES, "%s/.local/share/proofd/params-insecure", home);
    if (len > 0 && len < PATH_BYTES)
        return 0;
    return errmsg_set(
        err, -ENOENT,
        "no place for development parameters: neither XDG_DATA_HOME nor HOME is a path");
}

/* The directories to be searched, in order; returns how many. */
static size_t search_dirs(const char *dir, char out[2][PATH_BYTES])
{
    const char *cache = getenv("FIL_PROOFS_PARAMETER_CACHE");

    if (dir) {
        snprintf(out[0], PATH_BYTES, "%s", dir);
        return 1;
    }
    snprintf(out[0], PATH_BYTES, "%s", cache && *cache ? cache : SRS_DEFAULT_DIR);
    return srs_development_dir(out[1], NULL) == 0 ? 2 : 1;
}

/* Why nothing is seen at `path` in `dir`, where that is more than that nothing is there; else "". */
static const char *why_not_in(const char *dir, const char *path)
{
    struct stat st;

    if (access(path, F_OK) == 0)
        return "";
    if (errno != ENOENT)
        return errno == ENOTDIR ? "no directory" : strerror(errno);
    if (lstat(path, &st) == 0)
        return "a link that leads nowhere";
    return stat(dir, &st) < 0 ? "no such directory" : "";
}

/* "A nor in B (no such directory)", where `name` is not found. */
static void list_dirs(char dirs[2][PATH_BYTES], size_t count, const char *name, struct errmsg *out)
{
    out->text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char path[PATH_BYTES + SECTOR_CACHE_ID_MAX + 16];
        size_t used = strlen(out->text);
        snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
        const char *why = why_not_in(dirs[i], path);
        snprintf(out->text + used, sizeof(out->text) - used, "%s%s%s%s%s", i ? " nor in " : "",
                 dirs[i], *why ? " (" : "", why, *why ? ")" : "");
    }
}

void srs_list_dirs(const char *dir, struct errmsg *out)
{
    char dirs[2][PATH_BYTES];
    size_t count = search_dirs(dir, dirs);

    list_dirs(dirs, count, ".", out);
}

int srs_find(const struct sector_size *size, const char *dir, const char *suffix,
             char out[PATH_BYTES], struct errmsg *err)
{
    char dirs[2][PATH_BYTES], id[SECTOR_CACHE_ID_MAX], name[SECTOR_CACHE_ID_MAX + 16];
    size_t count = search_dirs(dir, dirs);
    struct errmsg where;

    sector_cache_id(size, id);
    snprintf(name, sizeof(name), "%s%s", id, suffix);
    for (size_t i = 0; i < count; i++) {
        char path[PATH_BYTES + sizeof(name) + 1];
        int len = snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
        if (len < PATH_BYTES && access(path, F_OK) == 0) {
            memcpy(out, path, (size_t)len + 1);
            return 0;
        }
    }
    list_dirs(dirs, count, name, &where);
    return errmsg_set(err, -ENOENT, "no %s for %s: %s is not found in %s",
                      strcmp(suffix, VK) == 0 ? "verifying key" : "parameters", size->name, name,
                      where.text);
}

/* Whether files can be looked for there, once it is made. */
static bool may_be_searched(const char *dir)
{
    char itself[PATH_BYTES + 2];

    snprintf(itself, sizeof(itself), "%s/.", dir);
    return access(itself, X_OK) == 0 || errno == ENOENT;
}

/* Where a user's own are, or for root, whose service others ask, what all look into; that of all without a home, too. NULL: nowhere. */
static const char *place_for_new(char dirs[2][PATH_BYTES], size_t count)
{
    const size_t first = count > 1 && geteuid() != 0;

    for (size_t i = 0; i < count; i++) {
        const char *dir = dirs[(first + i) % count];
        if (may_be_searched(dir))
            return dir;
    }
    return NULL;
}

void srs_say_what_to_do(const struct sector_size *size, const char *dir, struct errmsg *err)
{
    char dirs[2][PATH_BYTES];
    size_t count = search_dirs(dir, dirs);
    const char *place = place_for_new(dirs, count);
    const struct errmsg what = *err;

    if (place)
        errmsg_write(
            err,
            "%s; fetch the published files (lotus fetch-params %s, curio fetch-params %s), "
            "or make insecure development parameters: proofctl setup --params %s %s",
            what.text, size->name, size->name, place, size->name);
}

bool srs_is_marked(const char *path)
{
    char marker[PATH_BYTES + 16];
    const char *dot = strrchr(path, '.');

    snprintf(marker, sizeof(marker), "%.*s%s", (int)(dot ? dot - path : (long)strlen(path)), path,
             MARKER);
    return access(marker, F_OK) == 0;
}

/* The marker is beside the file, or the key is the one everybody can forge proofs under. */
static bool is_insecure(const char *path, const struct vk *vk)
{
    return srs_is_marked(path) || setup_made(vk);
}

/* ----------------------------------------------------------------------------------------- trust */

/* Digests of what every file of these counts begins with and no two ceremonies share: vk and ic. */
static int digest_head(const struct vk *vk, uint8_t head_digest[TRUSTED_DIGEST_BYTES],
                       uint8_t vk_digest[SRS_VK_DIGEST_BYTES])
{
    size_t bytes = vk_bytes(vk->ic_len);
    uint8_t whole[64], *head = malloc(bytes);

    if (!head)
        return -ENOMEM;
    vk_write(head, vk);
    int ok = EVP_Digest(head, bytes, whole, NULL, EVP_blake2b512(), NULL);
    if (ok == 1)
        ok = EVP_Digest(head, bytes, vk_digest, NULL, EVP_sha256(), NULL);
    free(head);
    if (ok != 1)
        return -ENOMEM;
    memcpy(head_digest, whole, TRUSTED_DIGEST_BYTES);
    return 0;
}

static int head_vk(int fd, const char *name, uint32_t ic, struct vk *out, struct errmsg *err);

/* Everything that is known about the file before it is read. */
struct opening {
    const struct srs_source *source;
    const struct sector_size *size; /* or NULL */
    const struct srs_options *opt;
    int fd;
    const char *memory; /* NULL: none */
    char memory_path[PATH_BYTES];
    struct trusted_file file;
    uint8_t vk_digest[SRS_VK_DIGEST_BYTES];
    bool insecure;
    bool points_expected; /* they will be checked, as far as one can say: for the progress */
    struct errmsg not_transformed; /* as in srs */
};

static void choose_memory(struct opening *o)
{
    if (o->opt->memory)
        o->memory = *o->opt->memory ? o->opt->memory : NULL;
    else if (trusted_default_path(o->memory_path) == 0)
        o->memory = o->memory_path;
}

/* Fills o->file, from the head alone. */
static int identify(struct opening *o, struct errmsg *err)
{
    struct vk vk = {.ic = NULL};

    int ret = head_vk(o->fd, o->source->path, o->source->counts.ic, &vk, err);
    if (ret < 0)
        return ret;
    ret = digest_head(&vk, o->file.head_digest, o->vk_digest);
    o->insecure = is_insecure(o->source->path, &vk);
    vk_fini(&vk);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: no memory for a digest of its head", o->source->path);
    if (fstat(o->fd, &o->file.st) < 0)
        return errmsg_set(err, -errno, "%s: %s", o->source->path, strerror(errno));
    return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* srs_read saw no change while it read; this rules one out before that, after the file was identified. */
static int check_identity(const struct opening *o, const struct srs *srs, struct errmsg *err)
{
    uint8_t head_digest[TRUSTED_DIGEST_BYTES], vk_digest[SRS_VK_DIGEST_BYTES];
    const struct stat *then = &o->file.st;
    struct stat now;

    if (fstat(o->fd, &now) < 0)
        return errmsg_set(err, -errno, "%s: %s", o->source->path, strerror(errno));
    int ret = digest_head(&srs->vk, head_digest, vk_digest);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: no memory for a digest of its head", o->source->path);
    if (now.st_size != then->st_size || !same_time(&now.st_mtim, &then->st_mtim) ||
        memcmp(vk_digest, o->vk_digest, sizeof(vk_digest)) != 0)
        return errmsg_set(err, -EBADMSG, "%s: changed while it was read", o->source->path);
    return 0;
}

static bool is_published(const struct opening *o)
{
    char hex[2 * SRS_DIGEST_BYTES + 1];

    hex_encode(hex, o->file.digest, SRS_DIGEST_BYTES);
    return o->source->digest && strcmp(hex, o->source->digest) == 0;
}

/* Of a file whose points are known to be good. */
static enum srs_trust trust_of(const struct opening *o)
{
    return o->insecure ? SRS_INSECURE : is_published(o) ? SRS_DIGEST : SRS_CHECKED;
}

/* All the work in bytes: checking a point takes longer than reading it, but not so much that it would matter here. */
static void show_progress(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    const struct opening *o = ctx;

    if (!o->points_expected)
        o->opt->progress(o->opt->progress_ctx, stage, done, total);
    else if (strcmp(stage, "check") == 0)
        o->opt->progress(o->opt->progress_ctx, stage, total + done, 2 * total);
    else
        o->opt->progress(o->opt->progress_ctx, stage, done, 2 * total);
}

static int read_file(struct opening *o, const struct srs_reading *how, struct srs *srs,
                     struct errmsg *err)
{
    int ret = srs_read(o->fd, o->source->path, &o->source->counts, how, srs, err);

    return ret < 0 ? ret : check_identity(o, srs, err);
}

static struct srs_reading reading_of(struct opening *o)
{
    return (struct srs_reading){.workers = o->opt->workers,
                                .progress = o->opt->progress ? show_progress : NULL,
                                .progress_ctx = o};
}

/* The digest that was taken while the file was read speaks for the points in memory; where it says nothing they are
 * checked themselves. */
static int trust_points(struct opening *o, const struct srs_reading *how, struct srs *srs,
                        struct errmsg *err)
{
    if (is_published(o) || (o->memory && trusted_lookup_bytes(o->memory, &o->file)))
        return 0;
    o->points_expected = true;
    return srs_check_points(srs, o->source->path, how, err);
}

/* With what tells whose it is. */
static struct chunk_note note_of(const struct opening *o)
{
    struct chunk_note note = {.file_bytes = (uint64_t)o->file.st.st_size,
                              .chunk_points = SRS_CHUNK_POINTS,
                              .chunks = srs_chunks(&o->source->counts)};

    memcpy(note.vk_digest, o->vk_digest, sizeof(note.vk_digest));
    return note;
}

/* What was believed for the digest that was published then is not, where another one is now. */
static bool find_note(struct opening *o, struct chunk_note *note)
{
    if (!o->memory || !chunk_note_read(o->memory, note))
        return false;
    memcpy(o->file.digest, note->digest, sizeof(o->file.digest));
    if (!note->published || is_published(o))
        return true;
    free(note->digests);
    note->digests = NULL;
    return false;
}

static struct transformed_owner owner_of(const struct opening *o)
{
    struct transformed_owner owner = {.counts = o->source->counts};

    memcpy(owner.vk_digest, o->vk_digest, sizeof(owner.vk_digest));
    memcpy(owner.digest, o->file.digest, sizeof(owner.digest));
    return owner;
}

/* Opens transformed points that are to be believed, with their note. -ENOENT: there are none, and *why is as it was. */
static int open_transformed(const struct opening *o, char path[PATH_BYTES], int *fd,
                            struct chunk_note *note, struct errmsg *why)
{
    const struct transformed_owner owner = owner_of(o);

    *note = transformed_note(&owner);
    if (transformed_path(o->source->path, path) < 0 || access(path, F_OK) < 0)
        return -ENOENT;
    int ret = transformed_open(path, &owner, fd, why);
    if (ret < 0)
        return ret == -ENOENT ? errmsg_set(why, -EBADMSG, "%s: is gone", path) : ret;
    if (chunk_note_read(o->memory, note))
        return 0;
    close(*fd);
    return errmsg_set(why, -EBADMSG, "%s: is not remembered as written here", path);
}

static int read_transformed(struct opening *o, struct srs *points, struct errmsg *why)
{
    struct srs_reading how = reading_of(o);
    struct chunk_note note;
    char path[PATH_BYTES];
    int fd, ret = open_transformed(o, path, &fd, &note, why);

    if (ret < 0)
        return ret;
    how.expected = note.digests;
    ret = srs_read_transformed(fd, path, &o->source->counts, &how, points, why);
    free(note.digests);
    close(fd);
    return ret;
}

/* *taken: whether they were to be had; if not, o->not_transformed says why, where there are any. Memory alone is worth an error: others may make room. */
static int load_transformed(struct opening *o, struct srs *points, bool *taken, struct errmsg *err)
{
    struct errmsg why = {""};

    *taken = false;
    if (o->opt->plain)
        return 0;
    int ret = read_transformed(o, points, &why);
    *taken = ret == 0;
    if (ret == -ENOMEM)
        return errmsg_set(err, ret, "%s", why.text);
    if (ret < 0 && ret != -ENOENT)
        errmsg_set(&o->not_transformed, ret,
                   "%.600s; it is not used, proofctl transform %s makes it anew", why.text,
                   o->size ? o->size->name : "SIZE");
    return 0;
}

static void take_transformed(struct srs *srs, const struct srs *points)
{
    srs->transformed = true;
    srs->h = points->h;
    srs->l = points->l;
    srs->input_l = points->input_l;
    srs->h_len = points->h_len;
}

/* Every chunk as it was. -ESTALE: one is not. */
static int load_noted(struct opening *o, const struct chunk_note *note, struct srs *srs,
                      struct errmsg *err)
{
    struct srs_reading how = reading_of(o);
    struct srs points = {0};
    int ret = load_transformed(o, &points, &how.without_h_and_l, err);

    if (ret < 0)
        return ret;
    how.expected = note->digests;
    ret = read_file(o, &how, srs, err);
    if (how.without_h_and_l && ret == 0)
        take_transformed(srs, &points);
    else if (how.without_h_and_l)
        srs_fini(&points);
    return ret;
}

/* There may be transformed points that nobody has asked for, since the file had to be checked from its beginning. */
static void explain_untransformed(struct opening *o)
{
    char path[PATH_BYTES];

    if (!o->opt->plain && !o->not_transformed.text[0] &&
        transformed_path(o->source->path, path) == 0 && access(path, F_OK) == 0)
        errmsg_set(&o->not_transformed, 0,
                   "%s: not used this time, for the parameters had to be checked anew", path);
}

/* For later loads and looks. What cannot be remembered is checked again next time: no reason to fail. */
static void remember(struct opening *o, struct chunk_note *note)
{
    if (!o->memory)
        return;
    (void)trusted_remember(o->memory, &o->file, o->source->path, NULL); /* makes the directory */
    note->published = is_published(o);
    memcpy(note->digest, o->file.digest, sizeof(note->digest));
    (void)chunk_note_write(o->memory, note, NULL);
}

/* For looks alone: known bytes, perhaps elsewhere, or touched. */
static void remember_place(const struct opening *o)
{
    struct trusted_file known = o->file;

    if (!trusted_lookup(o->memory, &known) ||
        memcmp(known.digest, o->file.digest, sizeof(known.digest)) != 0)
        (void)trusted_remember(o->memory, &o->file, o->source->path, NULL);
}

/* All that there is to be checked. */
static int load_anew(struct opening *o, struct srs *srs, struct errmsg *err)
{
    struct srs_reading how = reading_of(o);
    struct chunk_note note = note_of(o);

    note.digests = malloc((size_t)note.chunks * CHUNK_DIGEST_BYTES);
    if (!note.digests)
        return errmsg_set(err, -ENOMEM, "%s: no memory for digests", o->source->path);
    how.digest = o->file.digest;
    how.chunks = note.digests;
    o->points_expected = o->insecure || !o->source->digest;
    int ret = read_file(o, &how, srs, err);
    if (ret == 0)
        ret = trust_points(o, &how, srs, err);
    if (ret == 0)
        remember(o, &note);
    free(note.digests);
    return ret;
}

/* Where a file is not as noted that may be a fault, or another file: then it is as good as any new one. */
static int load_after(struct opening *o, const struct errmsg *differs, struct srs *srs,
                      struct errmsg *err)
{
    const size_t name = strlen(o->source->path) + strlen(": ");
    struct errmsg why = {""};

    srs_fini(srs);
    int ret = load_anew(o, srs, &why);
    if (ret == -EBADMSG && strlen(why.text) > name)
        return errmsg_set(err, ret, "%s: %s", differs->text, why.text + name);
    return ret < 0 ? errmsg_set(err, ret, "%s", why.text) : 0;
}

static int load_and_trust(struct opening *o, struct srs *srs, struct errmsg *err)
{
    struct chunk_note note = note_of(o);
    struct errmsg differs = {""};
    int ret;

    bool noted = find_note(o, &note);
    if (!noted) {
        ret = load_anew(o, srs, err);
    } else if ((ret = load_noted(o, &note, srs, &differs)) == -ESTALE) {
        noted = false;
        ret = load_after(o, &differs, srs, err);
    } else if (ret < 0) {
        errmsg_set(err, ret, "%s", differs.text);
    } else if (!srs->transformed) { /* then all of it was seen */
        remember_place(o);
    }
    free(note.digests);
    if (ret < 0)
        return ret;
    if (!srs->transformed)
        explain_untransformed(o);
    srs->not_transformed = o->not_transformed;
    memcpy(srs->file_digest, o->file.digest, sizeof(srs->file_digest));
    srs->trust = trust_of(o);
    srs->remembered = noted;
    memcpy(srs->vk_digest, o->vk_digest, sizeof(srs->vk_digest));
    return 0;
}

/* ------------------------------------------------------------------------------------------ open */

int srs_load(const struct srs_source *source, const struct sector_size *size,
             const struct srs_options *opt, struct srs **out, struct errmsg *err)
{
    struct opening o = {.source = source, .size = size, .opt = opt, .fd = -1};
    struct srs *srs = NULL;
    int ret;

    o.fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (o.fd < 0)
        return errmsg_set(err, -errno, "%s: cannot open: %s", source->path, strerror(errno));
    srs = calloc(1, sizeof(*srs));
    if (!srs) {
        ret = errmsg_set(err, -ENOMEM, "%s: no memory", source->path);
        goto out;
    }
    choose_memory(&o);
    if ((ret = srs_check_layout(o.fd, source->path, &source->counts, err)) < 0 ||
        (ret = identify(&o, err)) < 0 || (ret = load_and_trust(&o, srs, err)) < 0)
        goto out;
    srs->size = size;
    snprintf(srs->path, sizeof(srs->path), "%s", source->path);
    *out = srs;
    srs = NULL; /* now the caller's */
out:
    srs_close(srs);
    close(o.fd);
    return ret;
}

int srs_remember(const struct sector_size *size, const char *path,
                 const uint8_t digest[SRS_DIGEST_BYTES], struct errmsg *err)
{
    struct srs_options defaults = {.dir = NULL};
    struct srs_source source = {.path = path};
    struct opening o = {.source = &source, .opt = &defaults, .fd = -1};

    choose_memory(&o);
    if (!o.memory)
        return 0;
    srs_counts(size, &source.counts);
    o.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (o.fd < 0)
        return errmsg_set(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    int ret = identify(&o, err);
    memcpy(o.file.digest, digest, SRS_DIGEST_BYTES);
    if (ret == 0)
        ret = trusted_remember(o.memory, &o.file, path, err);
    close(o.fd);
    return ret;
}

/* What to do about a damaged file. Returns -EBADMSG. */
static int say_remedy(const struct sector_size *size, const char *path, struct errmsg *err)
{
    const int dir_len = (int)(strrchr(path, '/') - path);
    struct errmsg what;

    if (!err)
        return -EBADMSG;
    what = *err;
    if (srs_is_marked(path))
        return errmsg_set(err, -EBADMSG, "%s; remove it and run proofctl setup --params %.*s %s",
                          what.text, dir_len, path, size->name);
    return errmsg_set(err, -EBADMSG, "%s; fetch it again", what.text);
}

/* Who writes it now may do so rightly. */
static bool has_changed(const char *path, const struct stat *before)
{
    struct stat now;

    return stat(path, &now) < 0 || now.st_size != before->st_size ||
           !same_time(&now.st_mtim, &before->st_mtim);
}

int srs_open(const struct sector_size *size, const struct srs_options *opt, struct srs **out,
             struct errmsg *err)
{
    char path[PATH_BYTES];
    struct srs_source source = {.path = path, .digest = sector_params_digest(size)};
    struct stat before = {.st_size = -1};

    int ret = srs_find(size, opt->dir, PARAMS, path, err);
    if (ret < 0)
        return ret;
    srs_counts(size, &source.counts);
    (void)stat(path, &before);
    ret = srs_load(&source, size, opt, out, err);
    return ret == -EBADMSG && !has_changed(path, &before) ? say_remedy(size, path, err) : ret;
}

/* Whether a load would take transformed points. */
static void look_for_transformed(struct opening *o, struct srs_look *out)
{
    struct chunk_note note = note_of(o), transformed;
    char path[PATH_BYTES];
    int fd;

    if (transformed_path(o->source->path, path) < 0 || access(path, F_OK) < 0)
        return;
    if (!find_note(o, &note)) {
        errmsg_set(&out->not_transformed, 0, "%s: the parameters are to be checked first", path);
        return;
    }
    free(note.digests);
    int ret = open_transformed(o, path, &fd, &transformed, &out->not_transformed);
    out->transformed = ret == 0;
    if (ret < 0)
        return;
    free(transformed.digests);
    close(fd);
}

static int look_at(struct opening *o, struct srs_look *out, struct errmsg *err)
{
    if (fstat(o->fd, &out->st) < 0)
        return errmsg_set(err, -errno, "%s: %s", out->path, strerror(errno));
    int ret = srs_check_layout(o->fd, out->path, &o->source->counts, err);
    if (ret == 0)
        ret = identify(o, err);
    if (ret < 0)
        return ret;
    bool known = o->insecure || (o->memory && trusted_lookup(o->memory, &o->file));
    out->trust = known ? trust_of(o) : SRS_UNCHECKED;
    memcpy(out->vk_digest, o->vk_digest, sizeof(out->vk_digest));
    look_for_transformed(o, out);
    return 0;
}

int srs_look(const struct sector_size *size, const char *dir, const char *memory,
             struct srs_look *out, struct errmsg *err)
{
    struct srs_options opt = {.dir = dir, .memory = memory};
    struct srs_source source = {.path = out->path, .digest = sector_params_digest(size)};
    struct opening o = {.source = &source, .opt = &opt, .fd = -1};

    memset(out, 0, sizeof(*out));
    int ret = srs_find(size, dir, PARAMS, out->path, err);
    if (ret < 0)
        return ret;
    srs_counts(size, &source.counts);
    choose_memory(&o);
    o.fd = open(out->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (o.fd < 0) {
        ret = -errno;
        (void)stat(out->path, &out->st);
        return errmsg_set(err, ret, "%s: cannot open: %s", out->path, strerror(-ret));
    }
    ret = look_at(&o, out, err);
    close(o.fd);
    return ret == -EBADMSG ? say_remedy(size, out->path, err) : ret;
}

void srs_drop_points(struct srs *srs)
{
    free(srs->h);
    free(srs->l);
    free(srs->a);
    free(srs->b_g1);
    free(srs->b_g2);
    free(srs->input_l);
    srs->h = srs->l = srs->a = srs->b_g1 = srs->input_l = NULL;
    srs->b_g2 = NULL;
}

void srs_close(struct srs *srs)
{
    srs_fini(srs);
    free(srs);
}

/* -------------------------------------------------------------------------------- verifying key */

/* The key at the head of a file, which must be for `ic` inputs; `err` names the file. */
static int head_vk(int fd, const char *name, uint32_t ic, struct vk *out, struct errmsg *err)
{
    uint8_t count[4], *bytes = NULL;

    int ret = pread_full(fd, count, sizeof(count), VK_HEAD_BYTES - sizeof(count));
    if (ret == 0 && load_be32(count) != ic)
        return errmsg_set(err, -EBADMSG, "%s: ic has %u points, the circuit wants %u", name,
                          load_be32(count), ic);
    if (ret == 0) {
        bytes = malloc(vk_bytes(ic));
        ret = bytes ? pread_full(fd, bytes, vk_bytes(ic), 0) : -ENOMEM;
    }
    if (ret == -ENODATA)
        ret = errmsg_set(err, -EBADMSG, "%s: ends inside the verifying key", name);
    else if (ret < 0)
        errmsg_set(err, ret, "%s: cannot read: %s", name, strerror(-ret));
    else if ((ret = vk_read(bytes, vk_bytes(ic), out, err)) < 0)
        errmsg_prefix(err, ret, "%s", name);
    free(bytes);
    return ret;
}

/* A .vk holds the key and nothing else; a .params goes on. */
static int check_vk_size(int fd, const char *path, uint32_t ic, struct errmsg *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return errmsg_set(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return errmsg_set(err, -EBADMSG, "%s: is not a regular file", path);
    if ((uint64_t)st.st_size != vk_bytes(ic))
        return errmsg_set(err, -EBADMSG, "%s: has %llu bytes, the circuit wants %zu", path,
                          (unsigned long long)st.st_size, vk_bytes(ic));
    return 0;
}

static int read_vk_file(const char *path, uint32_t ic, bool alone, struct vk *out,
                        struct errmsg *err)
{
    int ret = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return errmsg_set(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    if (alone)
        ret = check_vk_size(fd, path, ic, err);
    if (ret == 0)
        ret = head_vk(fd, path, ic, out, err);
    close(fd);
    return ret;
}

/* The one beside the parameters that would prove: a directory may have the keys of all sizes and the parameters of few. *alone: it is
 * a .vk. */
static int find_vk(const struct sector_size *size, const char *dir, char path[PATH_BYTES],
                   bool *alone, struct errmsg *err)
{
    char params[PATH_BYTES];
    int ret = srs_find(size, dir, PARAMS, params, NULL);

    *alone = true;
    if (ret == -ENOENT)
        return srs_find(size, dir, VK, path, err);
    if (ret < 0)
        return ret;
    const int len = (int)(strlen(params) - strlen(PARAMS));
    if (snprintf(path, PATH_BYTES, "%.*s" VK, len, params) < PATH_BYTES && access(path, F_OK) == 0)
        return 0;
    *alone = false;
    memcpy(path, params, PATH_BYTES);
    return 0;
}

int srs_open_vk(const struct sector_size *size, const char *dir, struct vk *out, bool *insecure,
                struct errmsg *err)
{
    char path[PATH_BYTES];
    struct srs_counts counts;
    bool alone;

    srs_counts(size, &counts);
    int ret = find_vk(size, dir, path, &alone, err);
    if (ret < 0)
        return ret;
    ret = read_vk_file(path, counts.ic, alone, out, err);
    if (ret == 0)
        *insecure = is_insecure(path, out);
    return ret;
}
