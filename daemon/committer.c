#include "daemon/committer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define TOGETHER_MAX 256

/* In order of coming. */
struct queue {
    struct commit *first, **last;
};

struct committer {
    struct jobs *jobs;
    void (*written)(void *ctx);
    void *ctx;
    pthread_t thread;
    bool running;
    struct proof_result batch[TOGETHER_MAX]; /* the thread's */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock: */
    bool stop;
    struct queue in, out;
};

static void queue_init(struct queue *q)
{
    q->first = NULL;
    q->last = &q->first;
}

static void queue_add(struct queue *q, struct commit *one)
{
    one->next = NULL;
    *q->last = one;
    q->last = &one->next;
}

static struct commit *queue_take(struct queue *q)
{
    struct commit *all = q->first;

    queue_init(q);
    return all;
}

/* Up to TOGETHER_MAX of them; returns the rest. */
static struct commit *write_some(struct committer *c, struct commit *list, struct queue *out)
{
    size_t len = 0;

    for (struct commit *one = list; one && len < TOGETHER_MAX; one = one->next)
        c->batch[len++] = one->result;
    jobs_partitions_done(c->jobs, c->batch, len);
    for (size_t i = 0; i < len; i++) {
        struct commit *one = list;
        list = one->next;
        one->result.ret = c->batch[i].ret;
        queue_add(out, one);
    }
    return list;
}

static void hand_out(struct committer *c, struct queue *done)
{
    pthread_mutex_lock(&c->lock);
    *c->out.last = done->first;
    c->out.last = done->last;
    pthread_mutex_unlock(&c->lock);
    c->written(c->ctx);
}

/* Without lock. */
static void write_all(struct committer *c, struct commit *list)
{
    while (list) {
        struct queue done;
        queue_init(&done);
        list = write_some(c, list, &done);
        hand_out(c, &done);
    }
}

static void *committer_main(void *arg)
{
    struct committer *c = arg;

    pthread_mutex_lock(&c->lock);
    while (c->in.first || !c->stop) {
        if (!c->in.first) {
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        struct commit *list = queue_take(&c->in);
        pthread_mutex_unlock(&c->lock);
        write_all(c, list);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int committer_create(struct jobs *jobs, void (*written)(void *ctx), void *ctx,
                     struct committer **out)
{
    struct committer *c = calloc(1, sizeof(*c));
    sigset_t all, old;

    if (!c)
        return -ENOMEM;
    c->jobs = jobs;
    c->written = written;
    c->ctx = ctx;
    queue_init(&c->in);
    queue_init(&c->out);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int ret = pthread_create(&c->thread, NULL, committer_main, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        committer_destroy(c);
        return -ret;
    }
    pthread_setname_np(c->thread, "committer");
    c->running = true;
    *out = c;
    return 0;
}

void committer_put(struct committer *c, struct commit *one)
{
    pthread_mutex_lock(&c->lock);
    queue_add(&c->in, one);
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

struct commit *committer_take(struct committer *c)
{
    pthread_mutex_lock(&c->lock);
    struct commit *list = queue_take(&c->out);
    pthread_mutex_unlock(&c->lock);
    return list;
}

void committer_stop(struct committer *c)
{
    if (!c || !c->running)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    c->running = false;
}

void committer_destroy(struct committer *c)
{
    if (!c)
        return;
    committer_stop(c);
    for (struct commit *one = c->out.first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
