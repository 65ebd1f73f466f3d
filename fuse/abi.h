/*
 * The interface of /dev/proof: all that a client program includes. See proof(4).
 *
 * Reading gives event records (struct proof_event). What is written is a C1 file; SUBMIT or close(2) makes it a job. All
 * structs are flat, of fixed size, the same for 32 and 64 bits, in the byte order of the machine. Fields called reserved
 * are zero.
 */
#ifndef FUSE_ABI_H
#define FUSE_ABI_H

#include <linux/ioctl.h>
#include <stdint.h>

#define PROOF_ABI_VERSION 1
#define PROOF_NAME_BYTES 256 /* a NUL behind the longest name */
#define PROOF_TEXT_BYTES 512
#define PROOF_DATA_BYTES 3072

enum proof_state {
    PROOF_SERVICE = 0,   /* of an event: about no job, `name` is a line of text */
    PROOF_RECEIVING = 1, /* being written; no job yet */
    PROOF_REFUSED = 2,   /* is no C1, or cannot be proved: never became a job */
    PROOF_QUEUED = 3,    /* accepted: on disk, survives a crash */
    PROOF_SYNTHESIZING = 4,
    PROOF_PROVING = 5,
    PROOF_DONE = 6,
    PROOF_FAILED = 7,
    PROOF_CANCELLED = 8,
    PROOF_REMOVED = 9 /* of an event: the name is gone */
};

enum proof_flags {
    PROOF_INSECURE = 1 /* proved with development parameters */
};

struct proof_event {
    uint64_t seq;  /* 1, 2, 3, ... since the service started */
    uint64_t lost; /* events before this one that this reader was too slow for */
    uint64_t job;  /* its number, 0: about no job */
    int64_t realtime_ns, monotonic_ns;
    uint32_t state; /* enum proof_state */
    uint32_t partitions_done;
    char name[PROOF_NAME_BYTES]; /* as it is, nothing escaped; NULs behind it */
};

struct proof_version {
    uint32_t abi;         /* PROOF_ABI_VERSION */
    uint32_t event_bytes; /* sizeof(struct proof_event) */
    uint32_t events_kept; /* that a slow reader may lag behind */
    uint32_t reserved;
    char service[32]; /* proofd's version */
};

struct proof_name {
    char name[PROOF_NAME_BYTES];
};

/* Which job: by `job`; that being 0, by `name`; that being empty, the last one of this descriptor. */
struct proof_status {
    uint64_t job;
    uint32_t state, priority; /* 0 low, 1 normal, 2 high, 3 critical */
    uint32_t partitions, partitions_done;
    int32_t node; /* where it runs, -1: nowhere */
    uint32_t flags;
    uint32_t uid, gid;
    uint64_t file_bytes;
    int64_t created_ns, accepted_ns, started_ns, ended_ns; /* CLOCK_REALTIME, 0: not yet */
    char name[PROOF_NAME_BYTES];
    char text[PROOF_TEXT_BYTES]; /* why it failed or was refused: one line */
};

struct proof_job {
    uint64_t job; /* 0: the last one of this descriptor */
};

/* A piece of a proof: `offset` and `job` in, the rest out. */
struct proof_data {
    uint64_t job; /* 0: the last one of this descriptor */
    uint64_t offset;
    uint32_t len;   /* of this piece; 0 at the end */
    uint32_t total; /* 192 bytes for each partition */
    uint8_t data[PROOF_DATA_BYTES];
};

#define PROOF_IOC_MAGIC 0xC2
#define PROOF_IOC_VERSION _IOR(PROOF_IOC_MAGIC, 0, struct proof_version)
/* Names what will be written; without it a free name is chosen, device-1 and so on. */
#define PROOF_IOC_NAME _IOW(PROOF_IOC_MAGIC, 1, struct proof_name)
/* What a close does, with an answer: 0: accepted and on disk. */
#define PROOF_IOC_SUBMIT _IOR(PROOF_IOC_MAGIC, 2, struct proof_status)
#define PROOF_IOC_STATUS _IOWR(PROOF_IOC_MAGIC, 3, struct proof_status)
/* The same when the job has ended; an interrupt ends the wait. */
#define PROOF_IOC_WAIT _IOWR(PROOF_IOC_MAGIC, 4, struct proof_status)
/* What rm of the name does: cancels a job that has not ended, forgets one that has. */
#define PROOF_IOC_CANCEL _IOW(PROOF_IOC_MAGIC, 5, struct proof_job)
#define PROOF_IOC_PROOF _IOWR(PROOF_IOC_MAGIC, 6, struct proof_data)

#ifdef __cplusplus
#define PROOF_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#else
#define PROOF_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif
PROOF_SIZE(struct proof_event, 304);
PROOF_SIZE(struct proof_version, 48);
PROOF_SIZE(struct proof_name, 256);
PROOF_SIZE(struct proof_status, 848);
PROOF_SIZE(struct proof_job, 8);
PROOF_SIZE(struct proof_data, 3096);
#undef PROOF_SIZE

#endif
