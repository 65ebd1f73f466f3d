/*
 * For each size the last look, and the stamp of the file that it was at. A look at a file that nobody has checked yet is
 * not kept, nor one at transformed points that are not taken: the engine may check it, or proofctl remember them, at any time.
 */
#include "daemon/params_watch.h"

#include <errno.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/transformed.h"
#include "gpu/trusted.h"

#define SIZES 10 /* of sector_sizes */

struct params_watch {
    const char *dir, *memory, *made;
    pthread_mutex_t lock;
    struct seen {
        uint64_t stamp; /* 0: nothing seen */
        int ret;
        struct srs_look look;
        struct errmsg err;
    } seen[SIZES]; /* guarded by lock */
};

int params_watch_create(const char *dir, const char *memory, const char *made,
                        struct params_watch **out)
{
    struct params_watch *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->dir = dir && *dir ? dir : NULL;
    w->memory = memory;
    w->made = made;
    pthread_mutex_init(&w->lock, NULL);
    *out = w;
    return 0;
}

void params_watch_destroy(struct params_watch *w)
{
    if (!w)
        return;
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        hash = (hash ^ (value & 0xff)) * 1099511628211u; /* FNV-1a */
    return hash;
}

static uint64_t mix_file(uint64_t hash, const struct stat *st)
{
    const uint64_t parts[] = {st->st_dev,
                              st->st_ino,
                              (uint64_t)st->st_size,
                              (uint64_t)st->st_mtim.tv_sec,
                              (uint64_t)st->st_mtim.tv_nsec,
                              (uint64_t)st->st_ctim.tv_sec,
                              (uint64_t)st->st_ctim.tv_nsec};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        hash = mix(hash, parts[i]);
    return hash;
}

uint64_t params_watch_stamp(struct params_watch *w, const struct sector_size *size)
{
    char path[4096], transformed[4096];
    struct stat st;
    uint64_t hash = 14695981039346656037u;

    if (srs_find(size, w->dir, ".params", path, NULL) < 0 || stat(path, &st) < 0)
        return 1;
    for (const char *c = path; *c; c++)
        hash = mix(hash, (uint8_t)*c);
    hash = mix(mix_file(hash, &st), srs_is_marked(path));
    if (transformed_path(path, transformed) == 0 && stat(transformed, &st) == 0)
        hash = mix_file(hash, &st);
    return hash > 1 ? hash : 2;
}

bool params_watch_is_there(struct params_watch *w, const struct sector_size *size)
{
    char path[4096];

    return w->made || srs_find(size, w->dir, ".params", path, NULL) == 0;
}

/* Their key, where there is one that nobody else can have written. */
static bool digest_made_key(const struct params_watch *w, const struct sector_size *size,
                            uint8_t digest[SRS_VK_DIGEST_BYTES])
{
    struct srs_counts counts;
    char path[4096];
    size_t len = 0;

    srs_counts(size, &counts);
    if (srs_find(size, w->made, ".vk", path, NULL) < 0)
        return false;
    char *key = trusted_read_own(path, vk_bytes(counts.ic), &len);
    const bool whole = key && len == vk_bytes(counts.ic);
    if (whole)
        SHA256((const uint8_t *)key, len, digest);
    free(key);
    return whole;
}

static void look_at_made(const struct params_watch *w, const struct sector_size *size,
                         struct seen *now)
{
    now->ret = 0;
    now->err.text[0] = '\0';
    now->look = (struct srs_look){.made_by_devices = true, .trust = SRS_INSECURE};
    now->look.has_been_made = digest_made_key(w, size, now->look.vk_digest);
}

static bool may_be_kept(const struct seen *s)
{
    return s->ret == -EBADMSG || (s->ret == 0 && s->look.trust != SRS_UNCHECKED &&
                                  !s->look.not_transformed.text[0]);
}

static int answer(const struct seen *s, struct srs_look *out, struct errmsg *err)
{
    *out = s->look;
    if (err)
        *err = s->err;
    return s->ret;
}

int params_watch_look(struct params_watch *w, const struct sector_size *size, struct srs_look *out,
                      struct errmsg *err)
{
    struct seen *kept = &w->seen[size - sector_sizes];
    struct seen now = {.stamp = params_watch_stamp(w, size)};

    pthread_mutex_lock(&w->lock);
    if (kept->stamp == now.stamp)
        now = *kept;
    pthread_mutex_unlock(&w->lock);
    if (may_be_kept(&now) && now.look.path[0])
        return answer(&now, out, err);
    now.ret = srs_look(size, w->dir, w->memory, &now.look, &now.err);
    if (now.ret == -ENOENT && w->made)
        look_at_made(w, size, &now);
    else if (may_be_kept(&now)) {
        pthread_mutex_lock(&w->lock);
        *kept = now;
        pthread_mutex_unlock(&w->lock);
    }
    return answer(&now, out, err);
}
