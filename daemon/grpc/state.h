/*
 * What the service shows of itself, read from the files of the mount when it is asked for.
 *
 * Any thread.
 */
#ifndef GRPC_STATE_H
#define GRPC_STATE_H

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/grpc/mount.h"

struct GpuState {
    uint32_t ordinal;
    std::string name;
    uint64_t memory_bytes = 0, memory_free_bytes = 0; /* 0: not known */
    std::string job; /* a name in jobs/, empty where it does nothing */
};

struct ParamsState {
    std::string circuit_id;
    bool on_gpu = false, in_memory = false;
    uint64_t bytes = 0;
    uint32_t holders = 0; /* engines that have them */
};

struct ServiceState {
    std::vector<GpuState> gpus;
    std::vector<ParamsState> params;
    uint32_t pending = 0, in_progress = 0;
    uint64_t done = 0, failed = 0, uptime_s = 0;
    uint64_t memory_bytes = 0, memory_limit_bytes = 0; /* for proofs */
};

/* 0 or a negative errno. */
int state_read(const Mount &mount, ServiceState *out);

/* Where the parameters of a circuit are, as its file in params/ says. */
struct ParamsPlaces {
    uint32_t nodes = 0, holders = 0; /* engines; those that have them */
    uint64_t bytes = 0;              /* of points, on hosts and GPUs together */
    bool pending = false;            /* something that was asked for is not done yet */
    std::string failure;             /* why not, where it cannot be */
};

/* 0 or a negative errno: -ENOENT, there are none. */
int params_read(const Mount &mount, const std::string &circuit_id, ParamsPlaces *out);
/* Has all engines load them ("load"), or give them up ("evict"). As write(2) of their file says. */
int params_ask(const Mount &mount, const std::string &circuit_id, const char *what);

/* Whether it is one of PoRep's circuits: "porep-32g". */
bool circuit_is_known(const std::string &circuit_id);

#endif
