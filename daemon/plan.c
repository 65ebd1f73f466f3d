#include "daemon/plan.h"

#include <errno.h>

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void lay_out(const struct plan_wish *wish, uint32_t permits, struct plan *out)
{
    out->slots = (struct slots_shape){.witness_bytes = wish->witness_bytes,
                                      .evaluation_bytes = wish->evaluation_bytes,
                                      .witnesses = permits};
    if (wish->evaluation_bytes)
        out->slots.evaluations = permits > 1 ? permits - 1 : 1;
    out->arena_bytes = add(slots_bytes(&out->slots), wish->scratch_bytes);
    out->total_bytes = add(out->arena_bytes, wish->params_bytes);
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (double)(UINT64_C(1) << 30);
}

int plan_make(const struct plan_wish *wish, uint64_t limit_bytes, const char *limit_from,
              struct plan *out, struct errmsg *err)
{
    struct plan plan = {0};

    for (uint32_t permits = wish->permits; permits > 0; permits--) {
        lay_out(wish, permits, &plan);
        if (plan.total_bytes > limit_bytes)
            continue;
        *out = plan;
        return 0;
    }
    return errmsg_set(err, -ENOMEM,
                      "%s: %.1f GiB of memory are needed (parameters %.1f, a slot %.1f, scratch "
                      "%.1f), %s has %.1f GiB",
                      wish->name, gib(plan.total_bytes), gib(wish->params_bytes),
                      gib(slots_bytes(&plan.slots)), gib(wish->scratch_bytes), limit_from,
                      gib(limit_bytes));
}

uint64_t plan_least_bytes(const struct plan_wish *wish)
{
    struct plan plan;

    lay_out(wish, 1, &plan);
    return plan.total_bytes;
}
