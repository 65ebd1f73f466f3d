/*
 * Reads a C1 file as it arrives: any wrapping of c2-formats 1.2 and 1.3, plain or compressed.
 *
 * What a file is is found out by its bytes, never by its name: gzip, zstd, JSON (bare, wrapper, task
 * form), base64, bincode. The reader holds the decoded form (at most 11.2 MB for one interactive sector) and a
 * bounded window beside it, whatever comes in.
 *
 * A reader belongs to one thread at a time.
 */
#ifndef CIRCUIT_C1_READER_H
#define CIRCUIT_C1_READER_H

#include "numa/circuit/c1.h"
#include "numa/workers.h"

#define C1_TEXT_MAX ((uint64_t)1 << 30) /* bytes of a file, and of its decompressed text */

/* What a document may say beside the C1 itself. */
struct c1_extra {
    bool has_sector_number, has_prover_id, has_sector_size;
    uint64_t sector_number;
    uint8_t prover_id[32]; /* from prover_id, miner_id or "Miner" (c2-formats 3) */
    uint64_t sector_size;
};

enum c1_checks {
    C1_CHECK_FORM,  /* checks 1 to 3 of c2-formats 1.5 */
    C1_CHECK_STRICT /* all of them; Merkle paths and labels while bytes still arrive */
};

struct c1_reader;

/* `workers` (may be NULL) does the hashing of the strict checks; it is borrowed until the reader's
 * end. Returns 0 or -ENOMEM. */
int c1_reader_create(enum c1_checks checks, struct workers *workers, struct c1_reader **out);
void c1_reader_destroy(struct c1_reader *r);

/* Takes the next `len` bytes of the file. Returns 0 to go on, or what is wrong, for good: -EBADMSG (not a
 * C1, or one that contradicts itself), -EINVAL (well formed but not supported), -EFBIG (too long),
 * -ENOMEM. err says where: path in the document, byte offset, found and wanted value. */
int c1_reader_feed(struct c1_reader *r, const void *bytes, size_t len, struct errmsg *err);

/* After the last byte: 0 with *out set (its owner ends it with c1_destroy) and *extra filled, or as
 * c1_reader_feed; an incomplete document is -EBADMSG. Called once. */
int c1_reader_finish(struct c1_reader *r, struct c1 **out, struct c1_extra *extra,
                     struct errmsg *err);

/* How far the file has come, for progress: bytes fed. */
uint64_t c1_reader_bytes_in(const struct c1_reader *r);

/* A whole file, by a bounded buffer: feed and finish. */
int c1_read_file(const char *path, enum c1_checks checks, struct workers *workers, struct c1 **out,
                 struct c1_extra *extra, struct errmsg *err);
/* The rest of an open one, which the caller closes; `name` is for errors. */
int c1_read_fd(int fd, const char *name, enum c1_checks checks, struct workers *workers,
               struct c1 **out, struct c1_extra *extra, struct errmsg *err);

#endif
