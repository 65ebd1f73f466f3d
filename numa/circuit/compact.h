/*
 * The compact witness of a partition: packed bits, and field elements only where a variable is no bit. 32 GiB: 16 MB of
 * bits and 1.7 million values, 71 MB in all instead of 4.2 GB.
 *
 * It is computed without the constraint system: each challenge, label, path and hash stands at an offset that the circuit
 * (circuit.h) knows beforehand, so threads compute the parts in any order. The gadgets' assignment (witness.h) is the oracle.
 *
 * A compact witness belongs to one thread while it is made and may be read by any afterwards. The circuit must outlive it.
 */
#ifndef CIRCUIT_COMPACT_H
#define CIRCUIT_COMPACT_H

#include "numa/circuit/circuit.h"
#include "numa/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct c1;
struct porep_roots;
struct porep_challenge;

/*
 * Flat form, `bytes` long from `values` on, for one upload:
 *
 *     fr_t     values[n_values]    inputs (ONE first), then the aux variables that are no bits, in order; Montgomery form
 *     uint64_t bits[aux_words]     aux variable i is bit i % 64 of word i / 64; 0 where it is no bit, and past the end
 *
 * Counts are the circuit's. `values` is aligned to 4096 bytes. So `bits` is at once the bitmap of the variables whose base point is added once;
 * values[n_inputs ..] with circuit->value_aux is the list of the others (where a 0 or 1 may turn up, and is a value like any).
 */
struct compact {
    const struct circuit *circuit; /* borrowed */
    fr_t *values;
    uint64_t *bits;
    size_t bytes;
};

/* Bytes of the flat form. */
size_t compact_bytes(const struct circuit *c);
/* The same without the circuit; 0 for a size that is none of sector_sizes. */
size_t compact_bytes_of_size(const struct sector_size *size);

/* Room for the witness of one partition after another. Returns 0 with *out set (end it with compact_destroy), or -ENOMEM. */
int compact_create(const struct circuit *c, struct compact **out, struct errmsg *err);
void compact_destroy(struct compact *w);

/* Lays a witness out in memory of the caller's, compact_bytes long and aligned to 32. */
void compact_place(struct compact *w, const struct circuit *c, void *memory);

/* Computes the witness of a partition of `c1`, whose size is the circuit's, on all of `workers` (may be NULL). Returns 0, or
 * as porep_synthesize (porep.h): -EBADMSG when the roots of the partition differ, -ENOMEM. */
int compact_make(struct compact *w, const struct c1 *c1, uint32_t partition,
                 struct workers *workers, struct errmsg *err);

/* The same from what the circuit takes of a partition, decoded: `challenges` has as many as the size says. Whether it is
 * honest does not matter. */
void compact_compute(struct compact *w, const struct porep_roots *roots,
                     const struct porep_challenge *challenges, struct workers *workers);

/* Aux variables [first, end) as 32 bytes each. */
void compact_expand(const struct compact *w, uint32_t first, uint32_t end, fr_t *out);

/* A and B of rows [first, end), closing rows included, over the witness: a[0] is that of row `first`. c = a * b where all
 * rows are satisfied. Any thread may call it, many at once for different ranges; ranges from a multiple of two on, with a
 * and b aligned to 64 bytes, are written past the caches. */
void compact_rows(const struct compact *w, uint64_t first, uint64_t end, fr_t *a, fr_t *b);

/* All rows on all of `workers`, and zeros up to the domain's end: 2^log2_domain elements each. */
void compact_all_rows(const struct compact *w, struct workers *workers, fr_t *a, fr_t *b);

#ifdef __cplusplus
}
#endif

#endif
