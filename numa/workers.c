/*
 * Items are handed out one by one from an atomic counter: bodies are large (a window, a block of
 * rows), so the counter is never the bottleneck and uneven bodies balance themselves.
 */
#include "numa/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct loop {
    void (*body)(void *ctx, size_t item, unsigned thread);
    void *ctx;
    size_t len;
    atomic_size_t next;
};

struct workers {
    unsigned threads;
    unsigned started;
    pthread_t *handles;
    pthread_mutex_t caller; /* held by whoever runs a loop */
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    struct loop *loop;   /* guarded by lock */
    unsigned long round; /* guarded by lock: grows with every loop */
    unsigned busy;       /* guarded by lock: threads still in the current loop */
    bool stop;           /* guarded by lock */
    unsigned next_id;    /* guarded by lock */
};

static void loop_work(struct loop *l, unsigned thread)
{
    for (;;) {
        size_t item = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
        if (item >= l->len)
            return;
        l->body(l->ctx, item, thread);
    }
}

static void *worker_main(void *arg)
{
    struct workers *w = arg;
    unsigned long seen = 0;

    pthread_mutex_lock(&w->lock);
    unsigned id = ++w->next_id;
    for (;;) {
        while (!w->stop && w->round == seen)
            pthread_cond_wait(&w->wake, &w->lock);
        if (w->stop)
            break;
        seen = w->round;
        struct loop *l = w->loop;
        pthread_mutex_unlock(&w->lock);
        loop_work(l, id);
        pthread_mutex_lock(&w->lock);
        if (--w->busy == 0)
            pthread_cond_signal(&w->idle);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static unsigned usable_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

static int start_threads(struct workers *w)
{
    sigset_t all, old;
    int ret = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (ret == 0 && w->started + 1 < w->threads) {
        ret = pthread_create(&w->handles[w->started], NULL, worker_main, w);
        if (ret == 0)
            w->started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -ret;
}

int workers_create(unsigned threads, struct workers **out, struct errmsg *err)
{
    struct workers *w = calloc(1, sizeof(*w));

    if (!w)
        return errmsg_set(err, -ENOMEM, "no memory for worker threads");
    w->threads = threads ? threads : usable_cpus();
    pthread_mutex_init(&w->caller, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    pthread_cond_init(&w->idle, NULL);
    w->handles = calloc(w->threads, sizeof(*w->handles));
    int ret = w->handles ? start_threads(w) : -ENOMEM;
    if (ret < 0) {
        workers_destroy(w);
        return errmsg_set(err, ret, "cannot start %u worker threads", threads);
    }
    *out = w;
    return 0;
}

void workers_destroy(struct workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->started; i++)
        pthread_join(w->handles[i], NULL);
    pthread_cond_destroy(&w->idle);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->caller);
    free(w->handles);
    free(w);
}

unsigned workers_count(const struct workers *w)
{
    return w ? w->threads : 1;
}

void workers_run(struct workers *w, size_t len,
                 void (*body)(void *ctx, size_t item, unsigned thread), void *ctx)
{
    struct loop l = {.body = body, .ctx = ctx, .len = len};

    if (!w || w->started == 0 || len < 2) {
        loop_work(&l, 0);
        return;
    }
    pthread_mutex_lock(&w->caller);
    pthread_mutex_lock(&w->lock);
    w->loop = &l;
    w->busy = w->started;
    w->round++;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);

    loop_work(&l, 0);

    pthread_mutex_lock(&w->lock);
    while (w->busy > 0)
        pthread_cond_wait(&w->idle, &w->lock);
    w->loop = NULL;
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_unlock(&w->caller);
}
