/*
 * A job table on a store of its own, for tests: in memory where there is /dev/shm, with the small vectors at
 * hand as documents, and a diary of what opt.changed was told.
 *
 * What goes wrong here ends the test.
 */
#ifndef TESTS_LIB_JOB_STORE_H
#define TESTS_LIB_JOB_STORE_H

#include "daemon/jobs.h"

#define DIARY_MAX 4096

struct diary_line {
    uint64_t id;
    enum job_state was, is;
    bool gone;
    uint32_t partitions_done;
};

struct job_store {
    char dir[128];
    struct jobs_options opt;
    struct jobs *jobs;
    struct diary_line diary[DIARY_MAX];
    size_t diary_len;
};

/* A new, empty store, with an open table on it. */
struct job_store *job_store_create(void);
/* The same while the calls of its store are recorded (tests/lib/disk_model.h). */
struct job_store *job_store_create_recorded(void);
/* Closes the table and opens it again, with js->opt. */
void job_store_reopen(struct job_store *js);
/* A second table on a copy of the directory: what a kill at this moment leaves. */
struct job_store *job_store_copy(struct job_store *js);
void job_store_destroy(struct job_store *js);

/* Text of tests/vectors/c1/NAME/bare.json.zst, kept until the end of the program. */
const uint8_t *document(const char *name, size_t *len);

struct job_info js_find(struct job_store *js, const char *name);
/* JOB_STATES when there is no such name. */
enum job_state js_state(struct job_store *js, const char *name);
/* MKNOD where needed, then OPEN. */
struct upload *js_open(struct job_store *js, const char *name);
void js_write(struct upload *u, const void *bytes, size_t len, uint64_t offset);
/* What cp does: creates, writes, judges, closes; `len` of the document's bytes, or all (SIZE_MAX). Returns what
 * the judgement was. */
int js_copy(struct job_store *js, const char *name, const char *vector, size_t len);
/* A copy that must be accepted; the job's id. */
uint64_t js_submit(struct job_store *js, const char *name, const char *vector);

/* Takes partitions and finishes them with js_proof, until there are none. Returns how many. */
unsigned js_prove_all(struct job_store *js);
/* A proof that tells (job's vector, partition) apart from others: 192 bytes. */
void js_fill_proof(uint8_t out[192], unsigned char seed, uint32_t partition);
struct partition_report js_report(void);

/* Entries of the store's directory: jobs and others (without the counter). */
void js_count_dirs(struct job_store *js, unsigned *jobs, unsigned *others);
/* Files in a job's directory. */
unsigned js_count_files(struct job_store *js, uint64_t id);
/* rm -r */
void remove_tree(const char *dir);

#endif
