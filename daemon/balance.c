#include "daemon/balance.h"

#define NEW_PART 0.25 /* of a pace, what the last partition has to say */

void pace_given(struct pace *p, size_t in_flight, int64_t now_ms)
{
    if (in_flight == 0)
        p->since = now_ms;
}

void pace_proved(struct pace *p, int64_t now_ms)
{
    double ms = now_ms > p->since ? (double)(now_ms - p->since) : 0.5; /* too quick for the clock */

    p->ms = p->ms > 0 ? p->ms + NEW_PART * (ms - p->ms) : ms;
    p->since = now_ms;
}

/* What an engine whose pace is not known is taken for: as quick as the quickest. */
static double guess(const struct load *loads, size_t len)
{
    double ms = 0;

    for (size_t i = 0; i < len; i++)
        if (loads[i].ms > 0 && (ms == 0 || loads[i].ms < ms))
            ms = loads[i].ms;
    return ms > 0 ? ms : 1;
}

/* When an engine is through with what it has and `more`. */
static double wait_ms(const struct load *l, size_t more, double guessed)
{
    return (double)(l->in_flight + more) * (l->ms > 0 ? l->ms : guessed);
}

size_t balance_choose(const struct load *loads, size_t len)
{
    const double g = guess(loads, len);
    size_t best = len;

    for (size_t i = 0; i < len; i++)
        if (loads[i].open && loads[i].room > 0 &&
            (best == len || wait_ms(&loads[i], 1, g) < wait_ms(&loads[best], 1, g)))
            best = i;
    return best;
}

size_t balance_steal(const struct load *loads, size_t len, size_t thief)
{
    const struct load *t = &loads[thief];
    const double g = guess(loads, len);
    size_t from = len;

    if (!t->open || t->room == 0 || t->in_flight > 0)
        return len;
    for (size_t i = 0; i < len; i++) {
        const struct load *l = &loads[i];
        if (i == thief || l->waiting == 0 || wait_ms(t, 1, g) >= wait_ms(l, 0, g))
            continue;
        if (from == len || l->waiting > loads[from].waiting)
            from = i;
    }
    return from;
}
