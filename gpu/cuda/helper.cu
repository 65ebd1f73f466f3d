#include "gpu/cuda/helper.cuh"

#include <csignal>

void *helper::main(void *self)
{
    helper &h = *(helper *)self;

    pthread_mutex_lock(&h.lock);
    while (!h.stop) {
        if (!h.body) {
            pthread_cond_wait(&h.changed, &h.lock);
            continue;
        }
        pthread_mutex_unlock(&h.lock);
        h.body(h.ctx);
        pthread_mutex_lock(&h.lock);
        h.body = nullptr;
        pthread_cond_broadcast(&h.changed);
    }
    pthread_mutex_unlock(&h.lock);
    return nullptr;
}

int helper::create(const char *name, struct errmsg *err)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int ret = pthread_create(&thread, nullptr, main, this);
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    if (ret != 0)
        return errmsg_set(err, -ret, "cannot start a thread: %s", strerror(ret));
    pthread_setname_np(thread, name);
    created = true;
    return 0;
}

void helper::begin(void (*what)(void *ctx), void *with)
{
    pthread_mutex_lock(&lock);
    body = what;
    ctx = with;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void helper::wait()
{
    pthread_mutex_lock(&lock);
    while (body)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

helper::~helper()
{
    if (!created)
        return;
    pthread_mutex_lock(&lock);
    stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, nullptr);
}
