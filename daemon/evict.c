#include "daemon/evict.h"

#include <assert.h>

/* The next in the order in which they go; -1: there is none. */
static int next_to_go(const struct evict_set *sets, size_t len, enum evict_need most, uint32_t gone)
{
    int found = -1;

    for (size_t i = 0; i < len; i++) {
        const struct evict_set *s = &sets[i];
        if (s->bytes == 0 || s->need > most || gone >> i & 1)
            continue;
        if (found < 0 || s->need < sets[found].need ||
            (s->need == sets[found].need && s->used < sets[found].used))
            found = (int)i;
    }
    return found;
}

bool evict_choose(const struct evict_set *sets, size_t len, uint64_t want, uint64_t room,
                  bool urgent, uint32_t *go)
{
    const enum evict_need most = urgent ? EVICT_WAITING : EVICT_FREE;
    int order[EVICT_SETS_MAX], n = 0, i;

    assert(len <= EVICT_SETS_MAX);
    *go = 0;
    while (room < want && (i = next_to_go(sets, len, most, *go)) >= 0) {
        *go |= UINT32_C(1) << i;
        room += sets[i].bytes;
        order[n++] = i;
    }
    if (room < want)
        return false;
    /* A large one that came late may do without small ones before it. */
    while (n-- > 0) {
        const uint64_t bytes = sets[order[n]].bytes;
        if (room - bytes < want)
            continue;
        *go &= ~(UINT32_C(1) << order[n]);
        room -= bytes;
    }
    return true;
}
