/*
 * NAME.report and NAME.error: what a job was, what it cost, why it failed.
 *
 * Pure functions; any thread may call them.
 */
#ifndef DAEMON_REPORT_H
#define DAEMON_REPORT_H

#include "daemon/record.h"

/* What can be said of the parameters of all of them. */
enum srs_trust entries_params(const struct partition_entry *entries, size_t len);

/* The JSON of a job that ends as `r` says; `entries` are its finished partitions, in any order.
 * `failure` is NULL for a proof. malloc'ed; -ENOMEM. */
int report_make(const struct job_record *r, const struct partition_entry *entries,
                size_t entries_len, const char *failure, char **json);

#endif
