/*
 * Writes a decoded C1 in each of the forms it may arrive in (c2-formats 1.1 to 1.3).
 */
#ifndef TESTS_LIB_C1_FORMS_H
#define TESTS_LIB_C1_FORMS_H

#include "numa/circuit/c1.h"

/* A growing string of bytes. All zero at the beginning; free(bytes) at the end. */
struct text {
    uint8_t *bytes;
    size_t len, room;
};

void text_add(struct text *t, const void *bytes, size_t len);
void text_addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* How to write JSON; all zero: as serde does. */
struct json_style {
    uint64_t shuffle;  /* keys in an order that follows from this number; 0: as in the specification */
    bool spaces;       /* white space wherever it may be */
    bool unknown_keys; /* keys that no reader knows, with values of every type */
    bool no_h;         /* leave the marker `_h` out */
};

void write_json(const struct c1 *c1, const struct json_style *style, struct text *out);

void write_base64(const void *bytes, size_t len, struct text *out);

/* The wrapper and the task form around the bare JSON. */
void write_wrapper(const struct text *bare, uint64_t sector_number, uint64_t sector_size,
                   const char *miner, struct text *out);
void write_task(const struct text *bare, const uint8_t prover_id[32], uint64_t sector_number,
                struct text *out);

void write_gzip(const void *bytes, size_t len, struct text *out);
void write_zstd(const void *bytes, size_t len, struct text *out);

#endif
