/*
 * What an engine gives up before it begins: capabilities, new privileges, and the system calls that proving never needs.
 *
 * An engine reads files of others' making for a living. Should one of them ever take it over, it cannot start a program,
 * reach a network, look into other processes or change the system. The filter names what is refused (-EPERM), not what is
 * allowed: drivers of GPUs make calls that no list of ours would know.
 *
 * To be called by main, before any thread.
 */
#ifndef DAEMON_CONFINE_H
#define DAEMON_CONFINE_H

#include "numa/base.h"

enum confine { CONFINE_AUTO, CONFINE_ON, CONFINE_OFF };

/* "auto", "on", "off". -EINVAL. */
int confine_parse(const char *word, enum confine *out);
/* Auto: yes, unless a driver of GPUs is there whose devices are not: it starts helpers of root's to make them. */
bool confine_wanted(enum confine how, bool gpus);

/* Gives up all capabilities but those to lock and bind memory and to read any file; no program that is executed gets more;
 * then the filter. Under sanitizers there is no filter: they look at the process from outside when it ends. -ENOSYS and
 * the like where the kernel has no filters: the rest is done all the same. */
int confine_apply(struct errmsg *err);

#endif
