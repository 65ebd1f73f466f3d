/*
 * A list of users that have something to do, each with a list of lanes; it is made of the lanes themselves, so
 * nothing is allocated. A thread takes the first lane of the first user that may have one more thread, runs
 * one task of it, and puts both at the end if there is more.
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
    struct intake_lane *first; /* of the first user; guarded by lock, as every lane's fields */
    bool stop;                 /* guarded by lock */
    unsigned running_len;      /* guarded by lock */
    uid_t *running;            /* users of the tasks that run; guarded by lock */
    unsigned threads_len, threads_max;
    pthread_t threads[];
};

/* ---- who is next (under the lock) ---- */

/* Where the first lane of this user is, or would be: behind all users. */
static struct intake_lane **find_user(struct intake *in, uid_t user)
{
    struct intake_lane **place = &in->first;

    while (*place && (*place)->user != user)
        place = &(*place)->next_user;
    return place;
}

/* In front of the user's lanes, or behind them. */
static void make_ready(struct intake *in, struct intake_lane *lane, bool in_front)
{
    struct intake_lane **place = find_user(in, lane->user);
    struct intake_lane *head = *place;

    lane->next = lane->next_user = NULL;
    if (!head) {
        *place = lane;
    } else if (in_front) {
        lane->next = head;
        lane->next_user = head->next_user;
        *place = lane;
    } else {
        while (head->next)
            head = head->next;
        head->next = lane;
    }
    pthread_cond_signal(&in->work);
}

static bool may_run(const struct intake *in, uid_t user)
{
    unsigned n = 0;

    for (unsigned i = 0; i < in->running_len; i++)
        n += in->running[i] == user;
    return n == 0 || n + 1 < in->threads_max || in->stop;
}

/* NULL: nobody has anything to do, or only those who have enough threads. */
static struct intake_lane *take_lane(struct intake *in)
{
    struct intake_lane **place = &in->first;

    while (*place && !may_run(in, (*place)->user))
        place = &(*place)->next_user;
    struct intake_lane *lane = *place;
    if (!lane)
        return NULL;
    *place = lane->next_user;
    if (lane->next) { /* the user's turn has passed */
        lane->next->next_user = NULL;
        *find_user(in, lane->user) = lane->next;
    }
    return lane;
}

static struct intake_task *take_task(struct intake_lane *lane)
{
    struct intake_task *task = lane->first;

    lane->first = task->next;
    return task;
}

static void put_task_back(struct intake_lane *lane, struct intake_task *task)
{
    task->next = lane->first;
    if (!lane->first)
        lane->last = &task->next;
    lane->first = task;
}

/* ---- the threads ---- */

static void no_longer_running(struct intake *in, uid_t user)
{
    unsigned i = 0;

    while (in->running[i] != user)
        i++;
    in->running[i] = in->running[--in->running_len];
}

/* Under the lock, which is released while the task runs. A piece is followed by the next of the same, so
 * that a user has not more half done than there are threads. */
static void run_one(struct intake *in, struct intake_lane *lane)
{
    struct intake_task *task = take_task(lane);
    uid_t user = lane->user;

    in->running[in->running_len++] = user;
    pthread_mutex_unlock(&in->lock);
    enum intake_result result = task->run(task);
    pthread_mutex_lock(&in->lock);
    no_longer_running(in, user);
    if (result == INTAKE_AGAIN)
        put_task_back(lane, task);
    if (result != INTAKE_GONE && lane->first)
        make_ready(in, lane, result == INTAKE_AGAIN);
    else if (result != INTAKE_GONE)
        lane->busy = false;
    if (in->first) /* somebody may have waited for one thread less at this user */
        pthread_cond_signal(&in->work);
}

static void *intake_thread(void *arg)
{
    struct intake *in = arg;

    pthread_setname_np(pthread_self(), "intake");
    pthread_mutex_lock(&in->lock);
    for (;;) {
        struct intake_lane *lane = take_lane(in);
        if (lane)
            run_one(in, lane);
        else if (in->stop && in->running_len == 0)
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

    if (in)
        in->running = calloc(threads, sizeof(*in->running));
    if (!in || !in->running) {
        free(in);
        return errmsg_set(err, -ENOMEM, "intake: no memory");
    }
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->work, NULL);
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
    free(in->running);
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
        make_ready(in, lane, false);
    }
    pthread_mutex_unlock(&in->lock);
}
