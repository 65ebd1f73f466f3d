#include "fuse/texts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_MAX 4096 /* bytes of a text for NAME.priority, log_level */

struct text {
    struct handle handle; /* in all->open */
    struct texts *all;
    uint64_t ino;
    /* Guarded by all->lock: */
    char *bytes;
    size_t len;
    bool fresh; /* changed since it was last read */
    struct fuse_pollhandle *ph;
};

struct texts {
    struct tree *tree;
    pthread_mutex_t lock;
    struct handle *open; /* guarded by lock */
};

int texts_create(struct tree *tree, struct texts **out)
{
    struct texts *all = calloc(1, sizeof(*all));

    if (!all)
        return -ENOMEM;
    all->tree = tree;
    pthread_mutex_init(&all->lock, NULL);
    *out = all;
    return 0;
}

void texts_close_all(struct texts *all)
{
    while (all->open)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): takes itself off the list */
        text_close((struct text *)all->open);
}

void texts_destroy(struct texts *all)
{
    if (!all)
        return;
    texts_close_all(all);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

struct text *texts_open(struct texts *all, uint64_t ino)
{
    struct text *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->handle.kind = HANDLE_TEXT;
    t->all = all;
    t->ino = ino;
    t->fresh = true;
    handle_link(&all->open, &all->lock, &t->handle);
    return t;
}

void text_close(struct text *t)
{
    handle_unlink(&t->all->open, &t->all->lock, &t->handle);
    if (t->ph)
        fuse_pollhandle_destroy(t->ph);
    free(t->bytes);
    free(t);
}

static int refresh(struct text *t)
{
    char *bytes = NULL;
    size_t len = 0;

    pthread_mutex_lock(&t->all->lock);
    t->fresh = false; /* first: a change from now on is one that this read may miss */
    pthread_mutex_unlock(&t->all->lock);
    int ret = tree_render(t->all->tree, t->ino, &bytes, &len);
    if (ret < 0)
        return ret;
    pthread_mutex_lock(&t->all->lock);
    char *old = t->bytes;
    t->bytes = bytes;
    t->len = len;
    pthread_mutex_unlock(&t->all->lock);
    free(old);
    return 0;
}

/* A piece of the snapshot, malloc'ed: the answer is sent without the lock. */
static int copy_piece(struct text *t, size_t size, uint64_t offset, char **out, size_t *len)
{
    int ret = 0;

    pthread_mutex_lock(&t->all->lock);
    if (offset < t->len) {
        *len = min_size(size, t->len - (size_t)offset);
        *out = malloc(*len);
        if (*out)
            memcpy(*out, t->bytes + offset, *len);
        else
            ret = -ENOMEM;
    }
    pthread_mutex_unlock(&t->all->lock);
    return ret;
}

/* A reader may begin anywhere: tail -c +193. */
static bool was_never_read(struct text *t)
{
    pthread_mutex_lock(&t->all->lock);
    bool never = !t->bytes;
    pthread_mutex_unlock(&t->all->lock);
    return never;
}

void text_read(struct text *t, fuse_req_t req, size_t size, uint64_t offset)
{
    char *piece = NULL;
    size_t len = 0;
    int ret = offset == 0 || was_never_read(t) ? refresh(t) : 0;

    if (ret == 0)
        ret = copy_piece(t, size, offset, &piece, &len);
    if (ret < 0)
        fuse_reply_err(req, -ret);
    else
        fuse_reply_buf(req, piece, len);
    free(piece);
}

void text_write(struct text *t, fuse_req_t req, const char *buf, size_t len, bool trusted)
{
    char text[WRITE_MAX + 1];
    struct errmsg err = {""};

    if (len > WRITE_MAX) {
        fuse_reply_err(req, EFBIG);
        return;
    }
    memcpy(text, buf, len);
    text[len] = '\0';
    text[strcspn(text, "\n")] = '\0';
    int ret = tree_write(t->all->tree, t->ino, text, trusted, &err);
    if (ret < 0)
        fuse_reply_err(req, -ret);
    else
        fuse_reply_write(req, len);
}

unsigned text_poll(struct text *t, struct fuse_pollhandle *ph)
{
    pthread_mutex_lock(&t->all->lock);
    struct fuse_pollhandle *old = ph ? t->ph : NULL;
    if (ph)
        t->ph = ph;
    bool fresh = t->fresh;
    pthread_mutex_unlock(&t->all->lock);
    if (old)
        fuse_pollhandle_destroy(old);
    return fresh ? POLLIN | POLLRDNORM | POLLPRI : 0;
}

/* Marks all open files of `ino`; returns the poll handle of one that has not been told yet. */
static struct fuse_pollhandle *mark(struct texts *all, uint64_t ino)
{
    struct fuse_pollhandle *ph = NULL;

    pthread_mutex_lock(&all->lock);
    for (struct handle *h = all->open; h; h = h->next) {
        struct text *t = (struct text *)h;
        if (t->ino != ino)
            continue;
        t->fresh = true;
        if (!ph) {
            ph = t->ph;
            t->ph = NULL;
        }
    }
    pthread_mutex_unlock(&all->lock);
    return ph;
}

void texts_changed(struct texts *all, uint64_t ino)
{
    struct fuse_pollhandle *ph;

    while ((ph = mark(all, ino)) != NULL) {
        fuse_lowlevel_notify_poll(ph);
        fuse_pollhandle_destroy(ph);
    }
}
