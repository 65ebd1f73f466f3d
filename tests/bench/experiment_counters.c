/*
 * What the flight counters cost: all that a partition counts on its way through a pipeline, again and again. The counters cannot be
 * left out, so this is not a comparison. Prints a line.
 */
#include <stdio.h>
#include <time.h>

#include "daemon/flight.h"

#define PARTITIONS 1000000
#define RUNS 9

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    static struct flight flight;
    double best = 0;

    for (int run = 0; run < RUNS; run++) {
        double begin = cpu_ns();
        for (int i = 0; i < PARTITIONS; i++) {
            for (int stage = 0; stage < FLIGHT_STAGES; stage++) {
                flight_enter(&flight, (enum flight_stage)stage, 1);
                flight_leave(&flight, (enum flight_stage)stage, 1, 1);
            }
            flight_count(&flight, FLIGHT_VERIFIED);
        }
        double ns = (cpu_ns() - begin) / PARTITIONS;
        best = run == 0 || ns < best ? ns : best;
    }
    printf("counters of a partition: %.0f ns of CPU time (best of %d)\n", best, RUNS);
    return 0;
}
