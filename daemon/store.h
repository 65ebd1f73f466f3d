/*
 * Jobs on disk: one directory, in it one directory for each job, in that a few files
 * (doc/formats.md, "Job store").
 *
 * A job is there if and only if its record is. So whatever a record promises is synced before the
 * record appears, and taking the record away, synced, takes the job away. A file other than the C1
 * being received and the journal appears whole or not at all: temporary name, fsync, rename.
 *
 * A disk may give back anything. The record has a spare copy from which it is written anew; proof,
 * report and error are checked at each read; whatever has a name of ours and is no file, or is longer
 * than it can be, is damaged too: -EBADMSG.
 *
 * The store knows files, not the rules of jobs. Calls for one job must not overlap, except reads;
 * different jobs are independent. The functions that make something durable say so.
 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include "daemon/record.h"

/* What every store has: the numbers of its jobs. */
#define STORE_COUNTER "store"

enum store_file {
    STORE_C1,         /* as it was written */
    STORE_DECODED,    /* API form in bincode: what engines get */
    STORE_RECORD,     /* struct job_record */
    STORE_SPARE,      /* the same once more, written before it */
    STORE_PARTITIONS, /* the journal: struct partition_entry, one after another */
    STORE_PROOF,
    STORE_REPORT,
    STORE_ERROR,
    STORE_FILES
};

struct store;

/* Whether store_open would find a store there that it can use, or nothing yet: changes nothing. That another process has it is no
 * error. */
int store_check(const char *dir, struct errmsg *err);

/* Opens the store, which is made if it is absent, and locks it. -EBUSY when another process has it (err names it, if the kernel does), -EROFS or -EACCES when it cannot be written,
 * -EPROTO when a later version of the service wrote it. */
int store_open(const char *dir, struct store **out, struct errmsg *err);
void store_close(struct store *store);

/* Bytes of the file system that the store is on, at the last look; 0 where it does not say. */
uint64_t store_disk_bytes(const struct store *store);
/* Looks; store_open does so too. */
void store_look_at_disk(struct store *store);

/* A number below JOB_ID_END that this store has never given before and that nothing in it is called by.
 * Durable: not after a crash either. */
int store_next_id(struct store *store, uint64_t *out);
/* The same without a look at the disk, of numbers that were reserved before: -EAGAIN when none is left. What may have this number without
 * being ours store_spool_create finds. */
int store_quick_id(struct store *store, uint64_t *out);
/* Sees to it that hundreds are reserved; store_next_id does so too. */
int store_reserve_ids(struct store *store);

/* Goes through the store at start: calls `each` for every job that is there, and removes the rest,
 * temporary files included, and logs how many files of users were among it. A job whose record and spare copy are damaged, and what has a job's name
 * and is no directory, is set aside as ID.damaged and logged. What cannot be read, or not be set aside,
 * ends the scan: a job must not seem to be gone for a disk in trouble. */
int store_scan(struct store *store, void (*each)(void *ctx, const struct job_record *record),
               void *ctx, struct errmsg *err);

struct store_health {
    uint32_t set_aside; /* entries ID.damaged, of this start or earlier ones */
    uint32_t repaired;  /* records written anew from their spare copies since the start */
};
struct store_health store_health(const struct store *store);

/* ---- the C1 file as it arrives ---- */
/* Makes the job's directory and an empty file. -EEXIST: there is something of that name, which is left
 * alone. */
int store_spool_create(struct store *store, uint64_t id, int *fd);
/* Opens the file that store_spool_create made. */
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
/* malloc'ed, with a NUL behind; -ENOENT; -EBADMSG: damaged. */
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
/* -ENOENT: there is no such job; -EBADMSG: damaged, and the spare copy too. A damaged record that the
 * spare copy can replace is written anew (then as store_record_put) and logged. */
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
