#include "daemon/job.h"

#include <errno.h>
#include <string.h>

static const char *const state_names[JOB_STATES] = {
    [JOB_RECEIVING] = "receiving", [JOB_REJECTED] = "refused",
    [JOB_QUEUED] = "queued",       [JOB_SYNTHESIZING] = "synthesizing",
    [JOB_PROVING] = "proving",     [JOB_DONE] = "done",
    [JOB_FAILED] = "failed",       [JOB_CANCELLED] = "cancelled",
};

static const char *const priority_names[JOB_PRIORITIES] = {"low", "normal", "high", "critical"};

/* Bit `to` of next_states[from] is set where the move is legal. Work goes forth and back between the
 * three unfinished states as partitions enter and leave engines; an end is left never, but for a
 * rejected file that is written anew and a proof that the disk has lost. */
#define TO(state) (1u << (state))
#define TO_UNFINISHED (TO(JOB_QUEUED) | TO(JOB_SYNTHESIZING) | TO(JOB_PROVING))
#define TO_END (TO(JOB_DONE) | TO(JOB_FAILED) | TO(JOB_CANCELLED))

static const unsigned next_states[JOB_STATES] = {
    [JOB_RECEIVING] = TO(JOB_REJECTED) | TO_UNFINISHED | TO(JOB_CANCELLED),
    [JOB_REJECTED] = TO(JOB_RECEIVING),
    [JOB_QUEUED] = TO_UNFINISHED | TO_END,
    [JOB_SYNTHESIZING] = TO_UNFINISHED | TO_END,
    [JOB_PROVING] = TO_UNFINISHED | TO_END,
    [JOB_DONE] = TO(JOB_QUEUED) | TO(JOB_FAILED),
};

const char *job_state_name(enum job_state state)
{
    return state < JOB_STATES ? state_names[state] : "unknown";
}

const char *job_priority_name(enum job_priority priority)
{
    return priority < JOB_PRIORITIES ? priority_names[priority] : "unknown";
}

int job_priority_parse(const char *word, enum job_priority *out)
{
    for (unsigned i = 0; i < JOB_PRIORITIES; i++) {
        if (strcmp(word, priority_names[i]) == 0) {
            *out = (enum job_priority)i;
            return 0;
        }
    }
    return -EINVAL;
}

bool job_state_may_follow(enum job_state from, enum job_state to)
{
    if (from >= JOB_STATES || to >= JOB_STATES || from == to)
        return false;
    return next_states[from] & TO(to);
}

bool job_state_has_ended(enum job_state state)
{
    return state == JOB_DONE || state == JOB_FAILED;
}

bool job_state_is_final(enum job_state state)
{
    return state == JOB_REJECTED || state == JOB_DONE || state == JOB_FAILED ||
           state == JOB_CANCELLED;
}

bool job_changes_state(const struct job_info *info, enum job_state was, bool gone)
{
    bool ran = was != JOB_RECEIVING && was != JOB_REJECTED; /* or waited for it */

    return info->state != was && (!gone || (info->state == JOB_CANCELLED && ran));
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t len = strlen(name), n = strlen(suffix);

    return len >= n && strcmp(name + len - n, suffix) == 0;
}

/* sed -i writes sed + six random characters. */
static bool is_sed_temporary(const char *name)
{
    static const char alnum[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return strncmp(name, "sed", 3) == 0 && strlen(name) == 9 && strspn(name + 3, alnum) == 6;
}

bool job_name_is_temporary(const char *name)
{
    static const char *const suffixes[] = {"~", ".swp", ".swpx", ".tmp", ".part"};

    if (name[0] == '.')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (ends_in(name, suffixes[i]))
            return true;
    }
    return is_sed_temporary(name);
}

bool job_name_is_reserved(const char *name)
{
    static const char *const suffixes[] = {".proof",  ".proof.bin", ".status",
                                           ".report", ".error",     ".priority"};

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (ends_in(name, suffixes[i]))
            return true;
    }
    return false;
}
