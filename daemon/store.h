/*
 * Jobs on disk: one directory, in it one directory for each job, in that a few files
 * (doc/formats.md, "Job store").
 *
 * A job is there if and only if its record is. So whatever a record promises is synced before the
 * record appears, and taking the record away, synced, takes the job away. A file other than the C1
 * being received and the journal appears whole or not at all: temporary name, fsync, rename.
 *
 * The store knows files, not the rules of jobs. Calls for one job must not overlap, except reads;
 * different jobs are independent. The functions that make something durable say so.
 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include "daemon/record.h"

enum store_file {
    STORE_C1,         /* as it was written */
    STORE_DECODED,    /* API form in bincode: what engines get */
    STORE_RECORD,     /* struct job_record */
    STORE_PARTITIONS, /* the journal: struct partition_entry, one after another */
    STORE_PROOF,
    STORE_REPORT,
    STORE_ERROR,
    STORE_FILES
};

struct store;

/* Opens the store, which is made if it is absent, and locks it. -EBUSY when another process has it,
 * -EPROTO when a later version of the service wrote it. */
int store_open(const char *dir, struct store **out, struct errmsg *err);
void store_close(struct store *store);

/* A number that this store has never given before. Durable: not after a crash either. */
int store_next_id(struct store *store, uint64_t *out);

/* Goes through the store at start: calls `each` for every job that is there, and removes the rest,
 * temporary files included. A job whose record is damaged is set aside as ID.damaged. */
int store_scan(struct store *store, void (*each)(void *ctx, const struct job_record *record),
               void *ctx, struct errmsg *err);

/* ---- the C1 file as it arrives ---- */
/* Makes the job's directory and an empty file, or opens the file that is there. */
int store_spool_open(struct store *store, uint64_t id, int *fd);
int store_spool_write(int fd, const void *buf, size_t len, uint64_t offset);
int store_spool_truncate(int fd, uint64_t bytes);
int store_spool_sync(int fd);
void store_spool_close(int fd);

/* ---- whole files ---- */
/* The bytes are synced; the name is so only after store_sync or a later store_record_put. */
int store_put(struct store *store, uint64_t id, enum store_file file, const void *bytes,
              size_t len);
/* Makes the names in a job's directory durable, and the directory itself. */
int store_sync(struct store *store, uint64_t id);
/* malloc'ed; -ENOENT. */
int store_get(struct store *store, uint64_t id, enum store_file file, uint8_t **bytes, size_t *len);
ssize_t store_read(struct store *store, uint64_t id, enum store_file file, void *buf, size_t len,
                   uint64_t offset);
int store_open_file(struct store *store, uint64_t id, enum store_file file, int *fd);
/* Bytes of a file, -ENOENT. */
int64_t store_file_bytes(struct store *store, uint64_t id, enum store_file file);
/* No error where there is none; durable with the next sync. */
void store_drop(struct store *store, uint64_t id, enum store_file file);

/* ---- the record ---- */
/* Syncs the job's names, puts the record and syncs that: durable when it returns 0. On failure the old
 * record stands (or none), or the new one, as the disk will have it. */
int store_record_put(struct store *store, const struct job_record *record);
int store_record_get(struct store *store, uint64_t id, struct job_record *out);
/* The job is no more: durable when it returns 0. No error where there is none. */
int store_record_remove(struct store *store, uint64_t id);
/* Frees what is left of a job whose record has been removed. Negative when something is still there. */
int store_remove(struct store *store, uint64_t id);

/* ---- the journal ---- */
/* Appends at `offset`, cutting off whatever is behind it. Durable when it returns 0. */
int store_journal_append(struct store *store, uint64_t id, const void *bytes, size_t len,
                         uint64_t offset);

#endif
