#include "daemon/stage_times.h"

#include <inttypes.h>

/* Two to a decade: from a simulated stage to a partition of 32 GiB on few CPUs. */
static const struct {
    int64_t us;
    const char *seconds;
} bounds[STAGE_TIMES_BUCKETS] = {
    {1000, "0.001"},      {3000, "0.003"},     {10000, "0.01"},    {30000, "0.03"},
    {100000, "0.1"},      {300000, "0.3"},     {1000000, "1"},     {3000000, "3"},
    {10000000, "10"},     {30000000, "30"},    {100000000, "100"}, {300000000, "300"},
    {1000000000, "1000"}, {INT64_MAX, "+Inf"},
};

void stage_times_add(struct stage_times *t, const struct flight_course *course)
{
    for (int stage = 0; stage < FLIGHT_STAGES; stage++) {
        const int64_t us = course->us[stage + 1] - course->us[stage];
        size_t i = 0;
        while (us > bounds[i].us)
            i++;
        t->counts[stage][i]++;
        t->us[stage] += (uint64_t)us;
    }
}

void stage_times_print(const struct stage_times *t, const char *name, int node, FILE *out)
{
    for (int stage = 0; stage < FLIGHT_STAGES; stage++) {
        const char *what = flight_stage_name((enum flight_stage)stage);
        uint64_t count = 0;
        for (size_t i = 0; i < STAGE_TIMES_BUCKETS; i++) {
            count += t->counts[stage][i];
            fprintf(out, "%s_bucket{node=\"%d\",stage=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, node,
                    what, bounds[i].seconds, count);
        }
        fprintf(out, "%s_sum{node=\"%d\",stage=\"%s\"} %.6f\n", name, node, what,
                (double)t->us[stage] * 1e-6);
        fprintf(out, "%s_count{node=\"%d\",stage=\"%s\"} %" PRIu64 "\n", name, node, what, count);
    }
}
