/*
 * A list of lanes that have something to do. A thread takes the first lane, runs one task of it,
 * and puts the lane back at the end if there is more.
 */
#include "fuse/intake.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct intake {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct intake_lane *first, **last; /* ready lanes, guarded by lock, as every lane's fields */
    bool stop;                         /* guarded by lock */
    unsigned running;                  /* tasks, guarded by lock */
    unsigned threads_len, threads_max;
    pthread_t threads[];
};

static void make_ready(struct intake *in, struct intake_lane *lane)
{
    lane->next = NULL;
    *in->last = lane;
    in->last = &lane->next;
    pthread_cond_signal(&in->work);
}

static struct intake_lane *take_lane(struct intake *in)
{
    struct intake_lane *lane = in->first;

    in->first = lane->next;
    if (!in->first)
        in->last = &in->first;
    return lane;
}

static struct intake_task *take_task(struct intake_lane *lane)
{
    struct intake_task *task = lane->first;

    lane->first = task->next;
    return task;
}

/* Under the lock, which is released while the task runs. */
static void run_one(struct intake *in)
{
    struct intake_lane *lane = take_lane(in);
    struct intake_task *task = take_task(lane);

    in->running++;
    pthread_mutex_unlock(&in->lock);
    bool lives = task->run(task);
    pthread_mutex_lock(&in->lock);
    in->running--;
    if (lives && lane->first)
        make_ready(in, lane);
    else if (lives)
        lane->busy = false;
}

static void *intake_thread(void *arg)
{
    struct intake *in = arg;

    pthread_setname_np(pthread_self(), "intake");
    pthread_mutex_lock(&in->lock);
    for (;;) {
        if (in->first)
            run_one(in);
        else if (in->stop && in->running == 0)
            break;
        else
            pthread_cond_wait(&in->work, &in->lock);
    }
    pthread_cond_broadcast(&in->work); /* the last task may have been what others waited for */
    pthread_mutex_unlock(&in->lock);
    return NULL;
}

int intake_start(struct intake *in, struct errmsg *err)
{
    sigset_t all, old;
    int ret = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (in->threads_len < in->threads_max && ret == 0) {
        ret = -pthread_create(&in->threads[in->threads_len], NULL, intake_thread, in);
        in->threads_len += ret == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ret < 0 ? errmsg_set(err, ret, "intake: cannot start a thread") : 0;
}

int intake_create(unsigned threads, struct intake **out, struct errmsg *err)
{
    struct intake *in = calloc(1, sizeof(*in) + threads * sizeof(in->threads[0]));

    if (!in)
        return errmsg_set(err, -ENOMEM, "intake: no memory");
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->work, NULL);
    in->last = &in->first;
    in->threads_max = threads;
    *out = in;
    return 0;
}

void intake_destroy(struct intake *in)
{
    if (!in)
        return;
    pthread_mutex_lock(&in->lock);
    in->stop = true;
    pthread_cond_broadcast(&in->work);
    pthread_mutex_unlock(&in->lock);
    for (unsigned i = 0; i < in->threads_len; i++)
        pthread_join(in->threads[i], NULL);
    pthread_cond_destroy(&in->work);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

void intake_push(struct intake *in, struct intake_lane *lane, struct intake_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&in->lock);
    if (!lane->first)
        lane->last = &lane->first;
    *lane->last = task;
    lane->last = &task->next;
    if (!lane->busy) {
        lane->busy = true;
        make_ready(in, lane);
    }
    pthread_mutex_unlock(&in->lock);
}
