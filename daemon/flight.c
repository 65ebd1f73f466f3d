#include "daemon/flight.h"

#define RELAXED memory_order_relaxed

const char *flight_stage_name(enum flight_stage stage)
{
    static const char *const names[] = {"waiting", "synthesizing", "ready", "proving", "finishing"};

    return names[stage];
}

void flight_enter(struct flight *f, enum flight_stage stage, uint64_t bytes)
{
    atomic_fetch_add_explicit(&f->stages[stage].partitions, 1, RELAXED);
    atomic_fetch_add_explicit(&f->stages[stage].bytes, bytes, RELAXED);
    atomic_fetch_add_explicit(&f->stages[stage].entered, 1, RELAXED);
}

void flight_leave(struct flight *f, enum flight_stage stage, uint64_t bytes, uint64_t us)
{
    atomic_fetch_sub_explicit(&f->stages[stage].partitions, 1, RELAXED);
    atomic_fetch_sub_explicit(&f->stages[stage].bytes, bytes, RELAXED);
    atomic_fetch_add_explicit(&f->stages[stage].us, us, RELAXED);
}

void flight_count(struct flight *f, enum flight_event event)
{
    atomic_fetch_add_explicit(&f->events[event], 1, RELAXED);
}

void flight_read(struct flight *f, struct flight_counts *out)
{
    for (int i = 0; i < FLIGHT_STAGES; i++) {
        out->now[i].partitions = atomic_load_explicit(&f->stages[i].partitions, RELAXED);
        out->now[i].bytes = atomic_load_explicit(&f->stages[i].bytes, RELAXED);
        out->entered[i] = atomic_load_explicit(&f->stages[i].entered, RELAXED);
        out->stage_us[i] = atomic_load_explicit(&f->stages[i].us, RELAXED);
    }
    for (int i = 0; i < FLIGHT_EVENTS; i++)
        out->events[i] = atomic_load_explicit(&f->events[i], RELAXED);
}

bool flight_is_idle(const struct flight_counts *c)
{
    for (int i = 0; i < FLIGHT_STAGES; i++)
        if (c->now[i].partitions || c->now[i].bytes)
            return false;
    return true;
}
