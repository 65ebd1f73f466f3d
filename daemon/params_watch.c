/*
 * For each size what was found good or bad, and the stamp of the file that this was and of the memory of trusted files: it is not looked into
 * again. A look at a file that nobody has checked yet is not kept so, unless by way of its transformed points (no load of these remembers
 * its place), nor one at transformed points that are not taken: the engine may check it, or proofctl remember them, at any time. Beside
 * it what the last look said, for those who cannot wait for one.
 */
#include "daemon/params_watch.h"

#include <errno.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/transformed.h"
#include "gpu/trusted.h"

#define SIZES 10 /* of sector_sizes */
#define LOOK_S 1

struct params_watch {
    const char *dir, *memory, *made;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop; /* guarded by lock, as all below */
    struct seen {
        uint64_t stamp; /* 0: nothing seen */
        int64_t at_ms;  /* when the look began */
        int ret;
        struct srs_look look;
        struct errmsg err;
    } seen[SIZES], last[SIZES];
    struct errmsg dirs; /* where the last look at all looked */
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
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (size_t i = 0; i < SIZES; i++)
        w->last[i].ret = -ENOENT;
    *out = w;
    return 0;
}

void params_watch_destroy(struct params_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (w->runs)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
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
    return w->made || params_watch_last(w, size, NULL, NULL) != -ENOENT;
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
    return s->ret == -EBADMSG ||
           (s->ret == 0 && (s->look.trust != SRS_UNCHECKED || s->look.transformed) &&
            !s->look.not_transformed.text[0]);
}

/* As well of what is remembered of files: proofctl may add to it. */
static uint64_t look_stamp(struct params_watch *w, const struct sector_size *size)
{
    const uint64_t files = params_watch_stamp(w, size);
    char own[4096];
    struct stat st;
    const char *memory = w->memory ? w->memory : trusted_default_path(own) == 0 ? own : "";

    return stat(memory, &st) == 0 ? mix_file(files, &st) : files;
}

static int answer(const struct seen *s, struct srs_look *out, struct errmsg *err)
{
    if (out)
        *out = s->look;
    if (err)
        *err = s->err;
    return s->ret;
}

static void look(struct params_watch *w, const struct sector_size *size, struct seen *now)
{
    struct seen *kept = &w->seen[size - sector_sizes];

    *now = (struct seen){.stamp = look_stamp(w, size)};
    pthread_mutex_lock(&w->lock);
    if (kept->stamp == now->stamp)
        *now = *kept;
    pthread_mutex_unlock(&w->lock);
    if (may_be_kept(now) && now->look.path[0])
        return;
    now->ret = srs_look(size, w->dir, w->memory, &now->look, &now->err);
    if (now->ret == -ENOENT && w->made)
        look_at_made(w, size, now);
    else if (may_be_kept(now)) {
        pthread_mutex_lock(&w->lock);
        *kept = *now;
        pthread_mutex_unlock(&w->lock);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int params_watch_look(struct params_watch *w, const struct sector_size *size, struct srs_look *out,
                      struct errmsg *err)
{
    const int64_t begin = now_ms();
    struct seen now;

    look(w, size, &now);
    now.at_ms = begin;
    pthread_mutex_lock(&w->lock);
    w->last[size - sector_sizes] = now;
    pthread_mutex_unlock(&w->lock);
    return answer(&now, out, err);
}

int params_watch_last(struct params_watch *w, const struct sector_size *size, struct srs_look *out,
                      struct errmsg *err)
{
    pthread_mutex_lock(&w->lock);
    int ret = answer(&w->last[size - sector_sizes], out, err);
    pthread_mutex_unlock(&w->lock);
    return ret;
}

void params_watch_dirs(struct params_watch *w, struct errmsg *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->dirs;
    pthread_mutex_unlock(&w->lock);
}

int params_watch_key(struct params_watch *w, const struct sector_size *size, int64_t since_ms,
                     uint8_t vk_digest[SRS_VK_DIGEST_BYTES])
{
    pthread_mutex_lock(&w->lock);
    const struct seen *last = &w->last[size - sector_sizes];
    int ret = last->at_ms > since_ms ? last->ret : -EAGAIN;
    if (ret == 0 && last->look.made_by_devices && !last->look.has_been_made)
        ret = -ENOENT;
    if (ret == 0)
        memcpy(vk_digest, last->look.vk_digest, SRS_VK_DIGEST_BYTES);
    pthread_mutex_unlock(&w->lock);
    return ret;
}

/* ---- looking again and again ---- */

static void look_at_all(struct params_watch *w)
{
    struct errmsg dirs;

    srs_list_dirs(w->dir, &dirs);
    pthread_mutex_lock(&w->lock);
    w->dirs = dirs;
    pthread_mutex_unlock(&w->lock);
    for (const struct sector_size *size = sector_sizes; size->name; size++)
        params_watch_look(w, size, NULL, NULL);
}

static void *look_thread(void *arg)
{
    struct params_watch *w = arg;
    struct timespec until;

    pthread_setname_np(pthread_self(), "params");
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOOK_S;
        while (!w->stop && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
            ;
        if (w->stop)
            break;
        pthread_mutex_unlock(&w->lock);
        look_at_all(w);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int params_watch_start(struct params_watch *w)
{
    sigset_t all, old;

    look_at_all(w);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = -pthread_create(&w->thread, NULL, look_thread, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    w->runs = ret == 0;
    return ret;
}
