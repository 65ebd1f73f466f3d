/*
 * Each user has a sorted list of entries for each class and size. Entries come mostly youngest last and go mostly oldest first, and a
 * list of ten thousand is 80 kB to move, so an array is as good as a tree. Looking for the next one costs a glance at
 * the heads of all users' lists, not at what is behind them.
 */
#include "daemon/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct order_entry **entries; /* by age, the oldest first */
    size_t len, room;
};

/* Of one user who has something waiting. */
struct share {
    uid_t user;
    size_t waiting;
    struct {
        uint64_t turn; /* of his next partition */
        size_t waiting;
        struct list sizes[ORDER_SIZES];
    } classes[JOB_PRIORITIES];
};

struct order {
    int64_t aging_ms;
    struct share **shares;
    size_t len, room;
    struct {
        uint64_t turn; /* of the last partition given out */
        int64_t since; /* when that was, or when the class began to wait */
        size_t waiting;
    } classes[JOB_PRIORITIES];
};

int order_create(int64_t aging_ms, struct order **out)
{
    struct order *o = calloc(1, sizeof(*o));

    if (!o)
        return -ENOMEM;
    o->aging_ms = aging_ms;
    *out = o;
    return 0;
}

static void share_free(struct share *s)
{
    for (int c = 0; c < JOB_PRIORITIES; c++)
        for (int i = 0; i < ORDER_SIZES; i++)
            free(s->classes[c].sizes[i].entries);
    free(s);
}

void order_destroy(struct order *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->len; i++)
        share_free(o->shares[i]);
    free(o->shares);
    free(o);
}

/* ---- lists ---- */

/* Where an entry of this age is, or would be. */
static size_t list_find(const struct list *l, uint64_t age)
{
    size_t low = 0, high = l->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->entries[middle]->key.age < age)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int list_add(struct list *l, struct order_entry *e)
{
    if (l->len == l->room) {
        size_t room = l->room ? 2 * l->room : 4;
        struct order_entry **more = realloc(l->entries, room * sizeof(struct order_entry *));
        if (!more)
            return -ENOMEM;
        l->entries = more;
        l->room = room;
    }
    size_t at = list_find(l, e->key.age);
    memmove(&l->entries[at + 1], &l->entries[at], (l->len - at) * sizeof(struct order_entry *));
    l->entries[at] = e;
    l->len++;
    return 0;
}

static void list_remove(struct list *l, const struct order_entry *e)
{
    size_t at = list_find(l, e->key.age);

    memmove(&l->entries[at], &l->entries[at + 1], (--l->len - at) * sizeof(struct order_entry *));
}

/* ---- users ---- */

static struct share *find_share(const struct order *o, uid_t user)
{
    for (size_t i = 0; i < o->len; i++)
        if (o->shares[i]->user == user)
            return o->shares[i];
    return NULL;
}

static struct share *get_share(struct order *o, uid_t user)
{
    struct share *s = find_share(o, user);

    if (s)
        return s;
    if (o->len == o->room) {
        size_t room = o->room ? 2 * o->room : 4;
        struct share **more = realloc(o->shares, room * sizeof(struct share *));
        if (!more)
            return NULL;
        o->shares = more;
        o->room = room;
    }
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->user = user;
    o->shares[o->len++] = s;
    return s;
}

/* Forgets a user who has nothing waiting. Where he was in the turns does not matter: nobody is ahead by more than one. */
static void put_share(struct order *o, struct share *s)
{
    size_t i = 0;

    if (s->waiting > 0)
        return;
    while (o->shares[i] != s)
        i++;
    o->shares[i] = o->shares[--o->len];
    share_free(s);
}

/* Begins where the others are. Not before them: one job after another would always be the next. */
static void join_turns(const struct order *o, struct share *s, enum job_priority c)
{
    uint64_t lowest = UINT64_MAX, turn = o->classes[c].turn;

    for (size_t i = 0; i < o->len; i++)
        if (o->shares[i]->classes[c].waiting > 0 && o->shares[i]->classes[c].turn < lowest)
            lowest = o->shares[i]->classes[c].turn;
    if (lowest != UINT64_MAX && lowest > turn)
        turn = lowest;
    if (s->classes[c].turn < turn)
        s->classes[c].turn = turn;
}

/* ---- in and out ---- */

int order_put(struct order *o, struct order_entry *e, const struct order_key *key, int64_t now_ms)
{
    const enum job_priority c = key->priority;
    struct share *s = get_share(o, key->user);

    if (!s)
        return -ENOMEM;
    e->key = *key;
    int ret = list_add(&s->classes[c].sizes[key->size], e);
    if (ret < 0) {
        put_share(o, s);
        return ret;
    }
    e->in = true;
    if (s->classes[c].waiting == 0)
        join_turns(o, s, c);
    s->classes[c].waiting++;
    if (o->classes[c].waiting++ == 0)
        o->classes[c].since = now_ms;
    s->waiting++;
    return 0;
}

void order_remove(struct order *o, struct order_entry *e)
{
    const enum job_priority c = e->key.priority;

    struct share *s = e->in ? find_share(o, e->key.user) : NULL;

    if (!s)
        return;
    list_remove(&s->classes[c].sizes[e->key.size], e);
    e->in = false;
    s->classes[c].waiting--;
    o->classes[c].waiting--;
    s->waiting--;
    put_share(o, s);
}

/* ---- whose turn it is ---- */

/* The user's oldest of the class. */
static struct order_entry *oldest(const struct share *s, enum job_priority c, uint32_t refused)
{
    struct order_entry *found = NULL;

    if (s->classes[c].waiting == 0)
        return NULL;
    for (unsigned i = 0; i < ORDER_SIZES; i++) {
        const struct list *l = &s->classes[c].sizes[i];
        if (l->len > 0 && !(refused >> i & 1) &&
            (!found || l->entries[0]->key.age < found->key.age))
            found = l->entries[0];
    }
    return found;
}

static bool next_of_class(const struct order *o, enum job_priority c, uint32_t refused,
                          struct order_turn *out)
{
    bool found = false;

    for (size_t i = 0; i < o->len && o->classes[c].waiting > 0; i++) {
        struct order_entry *e = oldest(o->shares[i], c, refused);
        uint64_t turn = o->shares[i]->classes[c].turn;
        if (!e || (found &&
                   (turn > out->turn || (turn == out->turn && e->key.age > out->entry->key.age))))
            continue;
        *out = (struct order_turn){.entry = e, .priority = c, .turn = turn};
        found = true;
    }
    return found;
}

bool order_next(const struct order *o, uint32_t refused, int64_t now_ms, struct order_turn *out)
{
    int c = JOB_PRIORITIES - 1;
    int64_t longest = o->aging_ms;
    struct order_turn due;

    while (c >= 0 && !next_of_class(o, (enum job_priority)c, refused, out))
        c--;
    const int top = c;
    while (o->aging_ms && --c >= 0) {
        int64_t waited = now_ms - o->classes[c].since;
        if (waited < longest || !next_of_class(o, (enum job_priority)c, refused, &due))
            continue;
        longest = waited;
        *out = (struct order_turn){
            .entry = due.entry, .priority = (enum job_priority)top, .turn = o->classes[top].turn};
    }
    return top >= 0;
}

void order_taken(struct order *o, const struct order_turn *t, int64_t now_ms)
{
    const enum job_priority c = t->entry->key.priority;
    struct share *s = find_share(o, t->entry->key.user);

    if (!s) /* it has been removed meanwhile */
        return;
    o->classes[c].since = now_ms;
    o->classes[c].turn = s->classes[c].turn;
    if (o->classes[c].waiting > s->classes[c].waiting) /* somebody else waits */
        s->classes[c].turn++;
}
