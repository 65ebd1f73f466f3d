#include "fuse/parked.h"

void parked_init(struct parked_list *list, void (*interrupted)(struct parked *p))
{
    pthread_mutex_init(&list->lock, NULL);
    list->first = NULL;
    list->last = &list->first;
    list->interrupted = interrupted;
}

void parked_fini(struct parked_list *list)
{
    pthread_mutex_destroy(&list->lock);
}

/* Under the lock. */
static struct parked *unlink_at(struct parked_list *list, struct parked **place)
{
    struct parked *p = *place;

    *place = p->next;
    if (!p->next)
        list->last = place;
    return p;
}

static bool is_request(void *ctx, const struct parked *p)
{
    return p->req == ctx;
}

/* libfuse keeps `req` alive while this runs, so no other request can have its address. */
static void on_interrupt(fuse_req_t req, void *data)
{
    struct parked_list *list = data;
    struct parked *p = parked_take(list, is_request, req);

    if (p)
        list->interrupted(p);
}

static void link_at(struct parked_list *list, struct parked **place, struct parked *p)
{
    p->next = *place;
    *place = p;
    if (!p->next)
        list->last = &p->next;
}

static void park(struct parked_list *list, struct parked *p, bool at_head)
{
    pthread_mutex_lock(&list->lock);
    struct parked **place = at_head ? &list->first : list->last;
    link_at(list, place, p);
    bool hit = fuse_req_interrupted(p->req);
    if (hit)
        unlink_at(list, place);
    pthread_mutex_unlock(&list->lock);
    if (hit)
        list->interrupted(p);
}

void parked_add(struct parked_list *list, struct parked *p)
{
    /* Not linked yet: should it call back at once, it finds nothing. */
    fuse_req_interrupt_func(p->req, on_interrupt, list);
    park(list, p, false);
}

void parked_return(struct parked_list *list, struct parked *p)
{
    park(list, p, true);
}

/* Under the lock. */
static struct parked **find(struct parked_list *list,
                            bool (*wanted)(void *ctx, const struct parked *p), void *ctx)
{
    struct parked **place = &list->first;

    while (*place && wanted && !wanted(ctx, *place))
        place = &(*place)->next;
    return place;
}

struct parked *parked_take(struct parked_list *list,
                           bool (*wanted)(void *ctx, const struct parked *p), void *ctx)
{
    pthread_mutex_lock(&list->lock);
    struct parked **place = find(list, wanted, ctx);
    struct parked *found = *place ? unlink_at(list, place) : NULL;
    pthread_mutex_unlock(&list->lock);
    return found;
}

bool parked_has(struct parked_list *list, bool (*wanted)(void *ctx, const struct parked *p),
                void *ctx)
{
    pthread_mutex_lock(&list->lock);
    bool has = *find(list, wanted, ctx) != NULL;
    pthread_mutex_unlock(&list->lock);
    return has;
}
