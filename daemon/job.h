/*
 * One proof request as the rest of the service sees it: what it is, where it stands, and which moves
 * between states are legal.
 *
 * A struct job_info is a copy taken at one moment; it may be kept by any thread and goes stale.
 */
#ifndef DAEMON_JOB_H
#define DAEMON_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "numa/base.h"
#include "numa/circuit/c1.h"

#define JOB_NAME_MAX 255 /* bytes, as NAME_MAX */

enum job_state {
    JOB_RECEIVING,    /* a file that is written, or waits under a temporary name; no job yet */
    JOB_REJECTED,     /* refused, not a C1: only NAME.error is there */
    JOB_QUEUED,       /* accepted and synced; waits for an engine, or in one for parameters */
    JOB_SYNTHESIZING, /* at least one partition is synthesized, none is at a prover */
    JOB_PROVING,      /* at least one partition is at a prover */
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED, /* removed while it ran; gone as soon as its engines have let go */
    JOB_STATES
};

enum job_priority { JOB_LOW, JOB_NORMAL, JOB_HIGH, JOB_CRITICAL, JOB_PRIORITIES };

/* "receiving", "refused", "queued", ...: the one word for each, in status, metrics, events and log. */
const char *job_state_name(enum job_state state);
const char *job_priority_name(enum job_priority priority);
/* -EINVAL for a word that is none. */
int job_priority_parse(const char *word, enum job_priority *out);

bool job_state_may_follow(enum job_state from, enum job_state to);
/* Done, failed, rejected or cancelled: nothing will change any more. */
bool job_state_is_final(enum job_state state);
/* Done or failed: its files stay as they are. */
bool job_state_has_ended(enum job_state state);

/* A leading dot, or an end in ~ .swp .swpx .tmp .part, or sed's sedXXXXXX: kept as a file, never a
 * job until it is renamed. */
bool job_name_is_temporary(const char *name);
/* Ends in a suffix of the service (.proof .proof.bin .status .report .error .priority). */
bool job_name_is_reserved(const char *name);

/* What no engine has at present that jobs of a size need. */
enum job_lack { JOB_LACKS_NOTHING, JOB_LACKS_PARAMS, JOB_LACKS_MEMORY };

struct job_info {
    uint64_t id; /* grows with time, never used twice in a store; inode numbers are made of it */
    char name[JOB_NAME_MAX + 1];
    uid_t uid;
    gid_t gid;
    mode_t mode; /* permission bits */
    enum job_state state;
    enum job_priority priority;
    bool temporary;                 /* under a temporary name */
    uint64_t file_bytes;            /* of NAME */
    uint32_t report_bytes;          /* of its report, 0: there is none, or the disk has damaged it */
    uint32_t error_bytes;           /* of its error, likewise */
    const struct seal_proof *proof; /* NULL until the document is known */
    uint32_t partitions, partitions_done;
    int node;         /* where it runs, -1: nowhere */
    bool waits_for_params; /* queued, with nothing else to do */
    bool waits_for_memory; /* likewise: no engine has it at present */
    int params_percent;    /* then: how much of them an engine has loaded, -1: none does */
    uint64_t same_as; /* id of the job whose computation this one shares, or 0 */
    bool insecure;    /* proved with development parameters */
    bool has_error;   /* jobs_error has a text: failed, rejected, or the last upload over it was */
    int64_t created_ns, accepted_ns, started_ns, ended_ns; /* CLOCK_REALTIME, 0: not yet */
};

/* Whether a change is one of state that readers of events are told of: a job that left the table (`gone`) tells of its
 * cancelling if it ran or waited; a file that never became a job is only removed. */
bool job_changes_state(const struct job_info *info, enum job_state was, bool gone);

#endif
