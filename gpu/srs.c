/*
 * A file is looked for, read, and then one of three things makes its points believable: its digest is the
 * published one, or every point is checked, or one of the two was found at an earlier start.
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
#include "gpu/trusted.h"

#define DEFAULT_DIR "/var/tmp/filecoin-proof-parameters"
#define PATH_BYTES 4096
#define PARAMS ".params"
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
    return errmsg_set(err, -ENOENT,
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
    snprintf(out[0], PATH_BYTES, "%s", cache && *cache ? cache : DEFAULT_DIR);
    return srs_development_dir(out[1], NULL) == 0 ? 2 : 1;
}

int srs_find(const struct sector_size *size, const char *dir, const char *suffix, char out[PATH_BYTES],
             struct errmsg *err)
{
    char dirs[2][PATH_BYTES], id[SECTOR_CACHE_ID_MAX];
    size_t count = search_dirs(dir, dirs);

    sector_cache_id(size, id);
    for (size_t i = 0; i < count; i++) {
        char path[PATH_BYTES + SECTOR_CACHE_ID_MAX + 16];
        int len = snprintf(path, sizeof(path), "%s/%s%s", dirs[i], id, suffix);
        if (len < PATH_BYTES && access(path, F_OK) == 0) {
            memcpy(out, path, (size_t)len + 1);
            return 0;
        }
    }
    return errmsg_set(err, -ENOENT, "no parameters for %s: %s%s is not in %s%s%s", size->name, id, suffix,
                      dirs[0], count > 1 ? " nor in " : "", count > 1 ? dirs[1] : "");
}

/* The marker is beside the file, or the key is the one everybody can forge proofs under. */
static bool is_insecure(const char *path, const struct vk *vk)
{
    char marker[PATH_BYTES + 16];
    const char *dot = strrchr(path, '.');

    snprintf(marker, sizeof(marker), "%.*s%s", (int)(dot ? dot - path : (long)strlen(path)), path,
             MARKER);
    return access(marker, F_OK) == 0 || setup_made(vk);
}

/* ----------------------------------------------------------------------------------------- trust */

/* A digest of what every file of these counts begins with and no two ceremonies share: vk and ic. */
static int digest_head(const struct vk *vk, uint8_t out[TRUSTED_HEAD_DIGEST_BYTES])
{
    uint8_t whole[64], *head = malloc(vk_bytes(vk->ic_len));

    if (!head)
        return -ENOMEM;
    vk_write(head, vk);
    int ok = EVP_Digest(head, vk_bytes(vk->ic_len), whole, NULL, EVP_blake2b512(), NULL);
    free(head);
    if (ok != 1)
        return -ENOMEM;
    memcpy(out, whole, TRUSTED_HEAD_DIGEST_BYTES);
    return 0;
}

static int head_vk(int fd, const char *name, uint32_t ic, struct vk *out, struct errmsg *err);

/* Everything that is known about the file before it is read. */
struct opening {
    const struct srs_source *source;
    const struct srs_options *opt;
    int fd;
    const char *memory; /* NULL: none */
    char memory_path[PATH_BYTES];
    struct trusted_file file;
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
    ret = digest_head(&vk, o->file.head_digest);
    vk_fini(&vk);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: no memory for a digest of its head", o->source->path);
    if (fstat(o->fd, &o->file.st) < 0)
        return errmsg_set(err, -errno, "%s: %s", o->source->path, strerror(errno));
    return 0;
}

/* srs_read saw no change while it read; this rules one out before that, after the file was identified. */
static int check_identity(const struct opening *o, struct errmsg *err)
{
    const struct stat *then = &o->file.st;
    struct stat now;

    if (fstat(o->fd, &now) < 0)
        return errmsg_set(err, -errno, "%s: %s", o->source->path, strerror(errno));
    if (now.st_size == then->st_size && now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == then->st_mtim.tv_nsec)
        return 0;
    return errmsg_set(err, -EBADMSG, "%s: changed while it was read", o->source->path);
}

static bool has_digest(const char *published, const uint8_t digest[SRS_DIGEST_BYTES])
{
    char hex[2 * SRS_DIGEST_BYTES + 1];

    hex_encode(hex, digest, SRS_DIGEST_BYTES);
    return strcmp(hex, published) == 0;
}

static int load_and_trust(struct opening *o, struct srs *srs, struct errmsg *err)
{
    const struct srs_source *source = o->source;
    bool remembered = o->memory && trusted_lookup(o->memory, &o->file);
    uint8_t digest[SRS_DIGEST_BYTES];
    struct srs_reading how = {
        .workers = o->opt->workers,
        .progress = o->opt->progress,
        .progress_ctx = o->opt->progress_ctx,
        .digest = !remembered && source->digest ? digest : NULL,
    };

    int ret = srs_read(o->fd, source->path, &source->counts, &how, srs, err);
    if (ret == 0)
        ret = check_identity(o, err);
    if (ret < 0)
        return ret;
    srs->insecure = is_insecure(source->path, &srs->vk);
    if (remembered) {
        srs->trust = SRS_REMEMBERED;
        return 0;
    }
    srs->trust = how.digest && has_digest(source->digest, digest) ? SRS_DIGEST : SRS_CHECKED;
    if (srs->trust == SRS_CHECKED)
        ret = srs_check_points(srs, source->path, &how, err);
    /* What cannot be remembered is checked again next time: no reason to fail. */
    if (ret == 0 && o->memory)
        (void)trusted_remember(o->memory, &o->file, source->path, NULL);
    return ret;
}

/* ------------------------------------------------------------------------------------------ open */

int srs_load(const struct srs_source *source, const struct sector_size *size,
             const struct srs_options *opt, struct srs **out, struct errmsg *err)
{
    struct opening o = {.source = source, .opt = opt, .fd = -1};
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
    if ((ret = identify(&o, err)) < 0 || (ret = load_and_trust(&o, srs, err)) < 0)
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

int srs_remember(const struct sector_size *size, const char *path, struct errmsg *err)
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
    if (ret == 0)
        ret = trusted_remember(o.memory, &o.file, path, err);
    close(o.fd);
    return ret;
}

int srs_open(const struct sector_size *size, const struct srs_options *opt, struct srs **out,
             struct errmsg *err)
{
    char path[PATH_BYTES];
    struct srs_source source = {.path = path, .digest = sector_params_digest(size)};

    int ret = srs_find(size, opt->dir, PARAMS, path, err);
    if (ret < 0)
        return ret;
    srs_counts(size, &source.counts);
    return srs_load(&source, size, opt, out, err);
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

static int read_vk_file(const char *path, uint32_t ic, bool alone, struct vk *out, struct errmsg *err)
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

int srs_open_vk(const struct sector_size *size, const char *dir, struct vk *out, bool *insecure,
                struct errmsg *err)
{
    char path[PATH_BYTES];
    struct srs_counts counts;
    bool alone = true;

    srs_counts(size, &counts);
    int ret = srs_find(size, dir, ".vk", path, NULL);
    if (ret == -ENOENT) {
        alone = false;
        ret = srs_find(size, dir, PARAMS, path, err);
    }
    if (ret < 0)
        return ret;
    ret = read_vk_file(path, counts.ic, alone, out, err);
    if (ret == 0)
        *insecure = is_insecure(path, out);
    return ret;
}
