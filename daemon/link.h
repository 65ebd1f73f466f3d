/*
 * What front and engine say to each other over their socket pair (SOCK_SEQPACKET): one packet, one
 * message, a descriptor of the decoded C1 with LINK_WORK. Both ends come from one build, so messages
 * are structs; lengths, types and every value are checked all the same, for a dying engine may send
 * anything.
 */
#ifndef DAEMON_LINK_H
#define DAEMON_LINK_H

#include "daemon/jobs.h"
#include "daemon/node_status.h"

#define LINK_SIZES 10 /* of sector_sizes */

/* Provers are known by their GPU's number (node_status.h), -1: one that is none. */
#define LINK_NO_PROVER (-2)

enum link_type {
    LINK_HELLO = 1, /* engine: ready */
    LINK_WORK,      /* front: prove this partition; carries a descriptor */
    LINK_CANCEL,    /* front: forget what you have of this job */
    LINK_PRIORITY,  /* front: from now on this job is of that class */
    LINK_RECALL,    /* front: give this partition back, if it has not been begun; nothing is said if it has */
    LINK_SET_ASIDE, /* front: do without this prover */
    LINK_STAGE,     /* engine: a partition entered a stage */
    LINK_DONE,      /* engine: a verified proof */
    LINK_FAILED,    /* engine: this partition cannot be proved */
    LINK_WRONG,     /* engine: its proof did not verify */
    LINK_STATUS,    /* engine: what it holds, about once a second and at changes */
    LINK_LOG_LEVELS, /* front: log from here on at these levels */
    LINK_PARAMS,     /* front: load a circuit's parameters, or give them up */
    LINK_PARAMS_DONE, /* engine: what became of that */
    LINK_STOP       /* front: give back what is in flight, then exit */
};

struct link_hello {
    int32_t node;
    uint32_t threads;
    uint32_t capacity; /* partitions it takes at a time */
    char device[64];
    /* Memory that proving each of sector_sizes takes at least, what there is at most, and who says so. */
    uint64_t needed_bytes[LINK_SIZES], limit_bytes;
    char limit_from[64];
};

struct link_work {
    uint64_t job;
    uint32_t partition;
    uint32_t priority;
    uint64_t turn; /* within the priority: lower ones first, then older jobs */
    int32_t avoid; /* the prover whose proof of it did not verify, where the engine has another; or LINK_NO_PROVER */
};

struct link_recall {
    uint64_t job;
    uint32_t partition;
};

struct link_set_aside {
    int32_t gpu;
};

struct link_cancel {
    uint64_t job;
};

struct link_priority {
    uint64_t job;
    uint32_t priority;
};

struct link_stage {
    uint64_t job;
    uint32_t partition;
    uint32_t stage; /* enum partition_stage */
    uint32_t percent; /* of PARTITION_LOADING */
};

struct link_done {
    uint64_t job;
    uint32_t partition;
    uint8_t proof[192];
    struct partition_report report;
    struct flight_course course; /* its prover as a GPU's number */
};

struct link_failed {
    uint64_t job;
    uint32_t partition;
    /* Negative errno. -EAGAIN, -ECANCELED: back to the queue; -ENOMEM, -EIO: back to the queue, a few
     * times; -ENOKEY: the parameters cannot be used, -EBUSY: there is no memory for this size at present, back to the queue and after a
     * pause once more; any other: the job fails. */
    int32_t code;
    char text[768];
};

struct link_wrong {
    uint64_t job;
    uint32_t partition;
    int32_t gpu; /* whose proof it was */
    char text[256];
};

struct link_status {
    uint64_t resident_bytes; /* put in by the front */
    struct node_status node;
    char params[256]; /* what is loaded, for people: "2KiB (insecure development parameters)" */
};

struct link_log_levels {
    uint32_t levels; /* LOG_LEVELS */
};

struct link_params {
    uint32_t size; /* of sector_sizes */
    uint32_t evict; /* 1; 0: load */
};

struct link_params_done {
    struct link_params asked;
    int32_t code; /* 0, or a negative errno: -EBUSY, partitions need them or the room that they would take */
    char text[256];
};

struct link_message {
    uint32_t type;
    union {
        struct link_hello hello;
        struct link_work work;
        struct link_cancel cancel;
        struct link_priority priority;
        struct link_recall recall;
        struct link_set_aside set_aside;
        struct link_stage stage;
        struct link_done done;
        struct link_failed failed;
        struct link_wrong wrong;
        struct link_status status;
        struct link_log_levels log_levels;
        struct link_params params;
        struct link_params_done params_done;
    };
};

/* The order in which an engine takes partitions, at synthesis and again at its provers: higher priority, earlier turn, older job, lower
 * index. */
bool link_work_is_before(const struct link_work *a, const struct link_work *b);

/* Sends one message, with descriptor `fd` when >= 0. 0 or a negative errno (-EPIPE: nobody there;
 * -EAGAIN: a non-blocking socket is full). */
int link_send(int sock, const struct link_message *m, int fd);
/* Waits for one message. *fd is -1 or a received descriptor (close-on-exec; LINK_WORK has one, the
 * others none). 0; -ENOTCONN at the end; -EBADMSG for a packet of a wrong length or type or with
 * wrong descriptors or with a value that cannot be, of which nothing is kept; -EAGAIN: nothing there on a non-blocking socket. */
int link_receive(int sock, struct link_message *m, int *fd);

#endif
