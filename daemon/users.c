#include "daemon/users.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 256

struct user {
    struct user *next;
    uid_t id;
    uint64_t has[USER_SHARES];
};

struct users {
    pthread_mutex_t lock;
    struct user *buckets[BUCKETS]; /* guarded by lock */
};

int users_create(struct users **out)
{
    struct users *users = calloc(1, sizeof(*users));

    if (!users)
        return -ENOMEM;
    pthread_mutex_init(&users->lock, NULL);
    *out = users;
    return 0;
}

void users_destroy(struct users *users)
{
    if (!users)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct user *u = users->buckets[i], *next; u; u = next) {
            next = u->next;
            free(u);
        }
    }
    pthread_mutex_destroy(&users->lock);
    free(users);
}

static struct user **find(struct users *users, uid_t id)
{
    struct user **place = &users->buckets[id % BUCKETS];

    while (*place && (*place)->id != id)
        place = &(*place)->next;
    return place;
}

uint64_t users_has(struct users *users, uid_t user, enum user_share share)
{
    pthread_mutex_lock(&users->lock);
    const struct user *u = *find(users, user);
    uint64_t n = u ? u->has[share] : 0;
    pthread_mutex_unlock(&users->lock);
    return n;
}

static int take(struct users *users, uid_t user, enum user_share share, uint64_t n, uint64_t limit)
{
    struct user **place = find(users, user);
    uint64_t has = *place ? (*place)->has[share] : 0;

    if (has > limit || n > limit - has)
        return -EDQUOT;
    if (!*place) {
        *place = calloc(1, sizeof(**place));
        if (!*place)
            return -ENOMEM;
        (*place)->id = user;
    }
    (*place)->has[share] += n;
    return 0;
}

int users_take(struct users *users, uid_t user, enum user_share share, uint64_t n, uint64_t limit)
{
    if (n == 0)
        return 0;
    pthread_mutex_lock(&users->lock);
    int ret = take(users, user, share, n, limit);
    pthread_mutex_unlock(&users->lock);
    return ret;
}

static bool holds_nothing(const struct user *u)
{
    uint64_t any = 0;

    for (size_t i = 0; i < USER_SHARES; i++)
        any |= u->has[i];
    return any == 0;
}

void users_give(struct users *users, uid_t user, enum user_share share, uint64_t n)
{
    if (n == 0)
        return;
    pthread_mutex_lock(&users->lock);
    struct user **place = find(users, user), *u = *place;
    assert(u && u->has[share] >= n);
    u->has[share] -= n;
    if (holds_nothing(u)) {
        *place = u->next;
        free(u);
    }
    pthread_mutex_unlock(&users->lock);
}
