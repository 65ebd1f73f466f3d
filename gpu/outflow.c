/*
 * Digesting takes about as long as writing does, and as making the bytes takes sixteen cores: in a row the three would add up. What
 * has happened is four counts under a lock. A thread that fails goes on taking pieces without looking at them, so nobody waits for it.
 */
#include "gpu/outflow.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "gpu/newfile.h"
#include "numa/memory.h"

/* One is made, one digested, one written, and one more where they are out of step. */
#define PIECES 4

enum taker { DIGESTER, WRITER, TAKERS };

struct outflow {
    struct newfile file; /* the writer's, until it has ended */
    EVP_MD_CTX *digest;  /* the digester's, likewise */
    pthread_t threads[TAKERS];
    unsigned running; /* threads that were started */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock; a piece's bytes belong to its maker until it is put, then to the takers */
    uint8_t *bytes[PIECES];
    size_t len[PIECES];
    uint64_t put, taken[TAKERS]; /* pieces so far */
    bool ended;                  /* nothing more will be put */
    int ret;                     /* of the writer */
    struct errmsg err;
};

/* The piece that a taker takes next, when it is there; NULL: none will be. */
static const uint8_t *next_piece(struct outflow *o, enum taker who, size_t *len)
{
    pthread_mutex_lock(&o->lock);
    while (o->taken[who] == o->put && !o->ended)
        pthread_cond_wait(&o->changed, &o->lock);
    const unsigned at = o->taken[who] % PIECES;
    const bool there = o->taken[who] < o->put;
    *len = o->len[at];
    pthread_mutex_unlock(&o->lock);
    return there ? o->bytes[at] : NULL;
}

static void piece_taken(struct outflow *o, enum taker who)
{
    pthread_mutex_lock(&o->lock);
    o->taken[who]++;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static void *digest_pieces(void *arg)
{
    struct outflow *o = arg;
    const uint8_t *piece;
    size_t len;

    while ((piece = next_piece(o, DIGESTER, &len))) {
        EVP_DigestUpdate(o->digest, piece, len);
        piece_taken(o, DIGESTER);
    }
    return NULL;
}

static void note_failure(struct outflow *o, int ret, const struct errmsg *err)
{
    pthread_mutex_lock(&o->lock);
    o->ret = ret;
    o->err = *err;
    pthread_mutex_unlock(&o->lock);
}

static void *write_pieces(void *arg)
{
    struct outflow *o = arg;
    const uint8_t *piece;
    struct errmsg err;
    size_t len;
    int ret = 0;

    while ((piece = next_piece(o, WRITER, &len))) {
        if (ret == 0 && (ret = newfile_write(&o->file, piece, len, &err)) < 0)
            note_failure(o, ret, &err);
        piece_taken(o, WRITER);
    }
    return NULL;
}

static int start_threads(struct outflow *o)
{
    static void *(*const bodies[TAKERS])(void *) = {digest_pieces, write_pieces};
    static const char *const names[TAKERS] = {"setup-digest", "setup-write"};
    sigset_t all, old;
    int ret = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (o->running < TAKERS &&
           (ret = pthread_create(&o->threads[o->running], NULL, bodies[o->running], o)) == 0) {
        pthread_setname_np(o->threads[o->running], names[o->running]);
        o->running++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -ret;
}

/* When the threads have taken everything. */
static void end_threads(struct outflow *o)
{
    pthread_mutex_lock(&o->lock);
    o->ended = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    while (o->running > 0)
        pthread_join(o->threads[--o->running], NULL);
}

static int make_room(struct outflow *o, size_t piece_bytes)
{
    for (size_t i = 0; i < PIECES; i++) {
        o->bytes[i] = memory_alloc(piece_bytes, 1);
        if (!o->bytes[i])
            return -ENOMEM;
    }
    o->digest = EVP_MD_CTX_new();
    return o->digest && EVP_DigestInit_ex(o->digest, EVP_blake2b512(), NULL) == 1 ? 0 : -ENOMEM;
}

int outflow_open(const char *path, uint64_t bytes, size_t piece_bytes, struct outflow **out,
                 struct errmsg *err)
{
    struct outflow *o = calloc(1, sizeof(*o));

    if (!o)
        return errmsg_set(err, -ENOMEM, "%s: no memory to write it", path);
    o->file.fd = -1;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    int ret = make_room(o, piece_bytes);
    if (ret < 0)
        errmsg_set(err, ret, "%s: no memory to write pieces of %zu bytes", path, piece_bytes);
    if (ret == 0)
        ret = newfile_open(&o->file, path, bytes, err);
    if (ret == 0 && (ret = start_threads(o)) < 0)
        errmsg_set(err, ret, "%s: no thread to write it", path);
    if (ret == 0)
        *out = o;
    else
        outflow_close(o);
    return ret;
}

/* With lock. */
static bool has_room(const struct outflow *o)
{
    return o->put - o->taken[DIGESTER] < PIECES && o->put - o->taken[WRITER] < PIECES;
}

int outflow_room(struct outflow *o, uint8_t **room, struct errmsg *err)
{
    pthread_mutex_lock(&o->lock);
    while (!has_room(o))
        pthread_cond_wait(&o->changed, &o->lock);
    const int ret = o->ret;
    pthread_mutex_unlock(&o->lock);
    *room = o->bytes[o->put % PIECES];
    return ret < 0 ? errmsg_set(err, ret, "%s", o->err.text) : 0;
}

void outflow_put(struct outflow *o, size_t len)
{
    pthread_mutex_lock(&o->lock);
    o->len[o->put++ % PIECES] = len;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

int outflow_commit(struct outflow *o, uint8_t digest[OUTFLOW_DIGEST_BYTES], struct errmsg *err)
{
    end_threads(o);
    if (o->ret < 0)
        return errmsg_set(err, o->ret, "%s", o->err.text);
    EVP_DigestFinal_ex(o->digest, digest, NULL);
    return newfile_commit(&o->file, err);
}

void outflow_close(struct outflow *o)
{
    if (!o)
        return;
    end_threads(o);
    newfile_close(&o->file);
    EVP_MD_CTX_free(o->digest);
    for (size_t i = 0; i < PIECES; i++)
        free(o->bytes[i]);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    free(o);
}
